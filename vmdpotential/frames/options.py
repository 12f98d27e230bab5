"""How frames are computed: in this process or others, and from the beginning or after a stop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

from vmdpotential.execution.blocks import folder_of
from vmdpotential.parameters import Option


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Where blocks of frames are computed and kept; `folder` is where, see :func:`.blocks.folder_of`."""

    resume: Annotated[bool, Option("continue an interrupted run; finished blocks are reused", viewer=False)] = False
    workers: Annotated[int, Option(
        "number of worker processes on this machine; 0 computes in the main process", viewer=False,
        low=0, high=4096)] = 0
    scheduler: Annotated[str, Option(
        "address of a Dask scheduler whose workers compute blocks of frames; without TLS, everybody who can connect to "
        "a Dask cluster can run code on it as you", viewer=False, metavar="ADDRESS")] = ""
    folder: Path | None = None

    def keeping(self, output: Path | None) -> Self:
        """Return the same with a folder for the blocks of an output.

        Raises
        ------
        UsageError
            When blocks are to be used again, and there is no such folder.
        """
        return replace(self, folder=folder_of(output, self.resume))

    @property
    def blocks(self) -> dict[str, Any]:
        """The keywords of :func:`vmdpotential.execution.blocks.run_blocks`."""
        return {"folder": self.folder, "resume": self.resume, "workers": self.workers, "scheduler": self.scheduler}


@dataclass(frozen=True, kw_only=True)
class PartialExecution(Execution):
    """Where blocks are computed, of a task that may end with some of the frames."""

    partial: Annotated[bool, Option(
        "when the run is stopped, write the result of the frames that are done", viewer=False)] = False
