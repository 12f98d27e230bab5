"""Options of how frames are computed: in this process or others, and from the beginning or after an interruption."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from vmdpotential.errors import StoppedError, count_of
from vmdpotential.execution.blocks import clear_blocks, folder_of
from vmdpotential.parameters import CheckedOptions, Option
from vmdpotential.results import Result

R = TypeVar("R", bound=Result)


@dataclass(frozen=True, kw_only=True)
class Execution(CheckedOptions):
    """Options of where blocks of frames are computed, and kept in `folder` (see :func:`.blocks.folder_of`)."""

    resume: Annotated[bool, Option(
        "continue an interrupted run; finished blocks are reused", viewer=False, heading="execution")] = False
    workers: Annotated[int, Option(
        "number of worker processes on this machine; 0 computes in the main process", viewer=False,
        low=0, high=4096, heading="execution")] = 0
    scheduler: Annotated[str, Option(
        "address of a Dask scheduler whose workers compute blocks of frames; without TLS, anyone who can connect to a "
        "Dask cluster can run code on it with your account", viewer=False, metavar="ADDRESS", role="address",
        heading="execution")] = ""
    partial: Annotated[bool, Option(
        "when the run is interrupted, write the result of the frames that are done", viewer=False,
        heading="execution")] = False
    folder: Path | None = None

    def with_block_folder(self, output: Path | None) -> Self:
        """Return the same options with a folder for the blocks of an output.

        Raises
        ------
        UsageError
            When a run is to be resumed and there is no folder of finished blocks.
        """
        return replace(self, folder=folder_of(output, self.resume))

    @property
    def blocks(self) -> dict[str, Any]:
        """Keywords of :class:`vmdpotential.execution.blocks.BlockResults`."""
        return {"folder": self.folder, "resume": self.resume, "workers": self.workers, "scheduler": self.scheduler}

    def complete(self, result: R, done: int, total: int) -> R:
        """Return a result that was written, and remove the blocks that were kept for it, if all frames are done.

        Raises
        ------
        StoppedError
            When the run was interrupted; it has the result of the first frames.
        """
        if done < total:
            raise StoppedError(f"interrupted after {done} of {count_of(total, 'frame')}", result)
        clear_blocks(self.folder)
        return result
