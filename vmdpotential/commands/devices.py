"""The command ``devices``."""

from __future__ import annotations

from typing import Annotated, Any

from vmdpotential import cache, registry
from vmdpotential.errors import BackendError, in_words
from vmdpotential.parameters import Command, Option, Report


def devices(
    clear_cache: Annotated[bool, Option("remove the compiled kernels that are kept for later runs")] = False,
) -> Report:
    """List what can compute here: each engine with its hardware, or why it does not work.

    The last lines say which engine is used by default, and where compiled kernels are kept: 3 to 20 MB, which later
    runs use, and which are compiled again where they are missing.
    """
    from vmdpotential.engines import automatic, get_engine, reason

    lines, data = [], {}
    for name in registry.available("engine"):
        try:
            result = get_engine(name).describe()
            data[name] = {"works": True, "hardware": result}
            lines.append(f"{name}: {result}")
        except BackendError as error:
            why = error.message(in_words)
            data[name] = {"works": False, "reason": why}
            lines.append(f"{name}: does not work: {why}")
    chosen = automatic()
    lines.append(f"auto: {chosen}" + (f", because {reason()}" if reason() else ""))
    removed = cache.clear() if clear_cache else 0
    folder, size = cache.kept()
    if folder is not None:
        lines.append(f"compiled kernels: {size / 1e6:.1f} MB in {folder}")
    if clear_cache:
        lines.append(f"{removed / 1e6:.1f} MB of compiled kernels were removed")
    report: dict[str, Any] = {"engines": data, "auto": chosen, "reason": reason(),
                              "kernels": {"folder": str(folder or ""), "bytes": size, "removed": removed}}
    return Report(lines, report)


command = Command.of(devices, examples=(
    "devices",
    "devices --clear-cache",
))
