"""The command ``devices``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from vmdpotential import cache, registry
from vmdpotential.errors import BackendError, in_words
from vmdpotential.parameters import Command, Option
from vmdpotential.results import Result


def devices(
    clear_cache: Annotated[bool, Option("delete the cache of compiled kernels and speeds")] = False,
) -> Devices:
    """List the engines and the hardware of this machine, or why an engine does not work.

    The last lines name the default engine, and the folder and size of the cache of compiled kernels and measured
    speeds, which can be deleted safely. The environment variable VMDPOTENTIAL_THREADS limits the number of threads,
    VMDPOTENTIAL_VECTORS chooses the instruction set of the CPU's kernels (such as avx2), and VMDPOTENTIAL_GPUS chooses
    GPUs.
    """
    from vmdpotential.engines import automatic_engine, automatic_reason

    engines = {name: _hardware(name) for name in registry.available("engine")}
    chosen, removed = automatic_engine(), cache.clear() if clear_cache else 0
    folder, size = cache.folder_and_size()
    return Devices(engines=engines, auto=chosen, reason=automatic_reason(),
                   kernels={"folder": str(folder or ""), "bytes": size, "removed": removed}, cleared=clear_cache)


def _hardware(engine: str) -> dict[str, Any]:
    from vmdpotential.engines import get_engine

    try:
        return {"works": True, "hardware": get_engine(engine).describe()}
    except BackendError as error:
        return {"works": False, "reason": error.message(in_words)}


class Devices(Result):
    """Engines and hardware of this machine, and the cache of compiled kernels."""

    engines: Mapping[str, Mapping[str, Any]]
    auto: str
    reason: str
    kernels: Mapping[str, Any]
    cleared: bool

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "engines": self.engines, "auto": self.auto, "reason": self.reason, "kernels": self.kernels}

    def text(self) -> Iterator[str]:
        """Yield a line for each engine, the default engine, and the folder of the cache."""
        for name, about in self.engines.items():
            yield f"{name}: {about['hardware'] if about['works'] else 'does not work: ' + about['reason']}"
        yield f"auto: {self.auto}" + (f", because {self.reason}" if self.reason else "")
        if self.kernels["folder"]:
            yield f"compiled kernels: {self.kernels['bytes'] / 1e6:.1f} MB in {self.kernels['folder']}"
        if self.cleared:
            yield f"{self.kernels['removed'] / 1e6:.1f} MB of compiled kernels were removed"


command = Command.of(devices, examples=(
    "devices",
    "devices --clear-cache",
))
