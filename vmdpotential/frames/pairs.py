"""Energies, forces and distances between selections over frames, in blocks.

A block's result has the values of each of its frames. They are added one after another in the order of the frames, so
that means, deviations and errors are identical to the last bit for any number of workers, and after an interruption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError
from vmdpotential.execution.blocks import block_size, run_blocks
from vmdpotential.execution.work import Arrays, Needs, Work
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.options import PartialExecution
from vmdpotential.io.trajectories.frames import Frame
from vmdpotential.molecule.structure import Structure
from vmdpotential.pairs.energy import Between, by_residue
from vmdpotential.pairs.rdf import PairHistogram

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairEnergies(Work):
    """Energies between pairs of selections, or forces, in every frame; the sums are planned for the first one.

    Parameters
    ----------
    frames : CellFrames
    sums : tuple of Between
    structure : Structure
    by : str
        ``total``, ``residue`` or ``atom`` for energies, in one row or a row for each of these; ``forces`` for the
        forces on each atom.
    """

    frames: CellFrames
    sums: tuple[Between, ...]
    structure: Structure
    by: str

    def identity(self) -> tuple[object, ...]:
        """Return the values that determine the result, for fingerprints of inputs."""
        return ("energies", self.frames, self.sums, self.structure.residue_starts, self.by)

    def needs(self) -> Needs:
        """Return the engine."""
        return Needs(self.sums[0].engine.name)

    def plan(self) -> None:
        """Plan the sums for the first frame, and measure their errors there."""
        for item in self.sums:
            item.run(self.frames.first.positions, self.frames.first.cell)

    def block(self, numbers: range) -> Arrays:
        """Return the result of :meth:`compute` for some of the frames."""
        # copies share the plan but not its prepared state, so that the result does not depend on other blocks
        return replace(self, sums=tuple(map(copy, self.sums))).compute(self.frames.part(numbers))

    def compute(self, frames: Iterable[Frame]) -> Arrays:
        """Return the energies or forces in some frames.

        Returns
        -------
        mapping
            ``frames`` (F,), their numbers; ``cell`` (3, 3) of the last one, if it has one; and for the n-th pair of
            selections ``total n`` (F, 3), the Coulomb and the Lennard-Jones energy and their sum, and ``rows n``
            (F, rows, 3) the same for each residue or atom. For forces only ``rows n`` (F, atoms, 3).
        """
        columns: dict[str, list[Any]] = {"frames": []}
        cell = None
        for frame in frames:
            cell = frame.cell
            columns["frames"].append(frame.number)
            for n, pair_sum in enumerate(self.sums):
                result = pair_sum.run(frame.positions, cell)
                if self.by == "forces":
                    columns.setdefault(f"rows {n}", []).append(result.forces)
                    continue
                values = np.stack([result.coulomb, result.lennard_jones, result.total], axis=1)
                columns.setdefault(f"total {n}", []).append(values.sum(0))
                if self.by == "residue":
                    values = by_residue(self.structure, result.atoms, values)[1]
                if self.by != "total":
                    columns.setdefault(f"rows {n}", []).append(values)
        return {**{name: np.array(values) for name, values in columns.items()},
                **({} if cell is None else {"cell": cell.vectors})}


@dataclass(frozen=True, eq=False)
class PairCounts(Work):
    """Histograms of the distances between pairs of selections, over all frames.

    Parameters
    ----------
    frames : CellFrames
    counts : tuple of PairHistogram
        One for each pair of selections.
    """

    frames: CellFrames
    counts: tuple[PairHistogram, ...]

    def needs(self) -> Needs:
        """Return the engine."""
        return Needs(self.counts[0].engine.name)

    def plan(self) -> None:
        """Check for the first frame's cell that the pairs can be counted."""
        for count in self.counts:
            count.check(self.frames.first.cell)

    def block(self, numbers: range) -> Arrays:
        """Return the result of :meth:`compute` for some of the frames."""
        return self.compute(self.frames.part(numbers))

    def compute(self, frames: Iterable[Frame]) -> Arrays:
        """Return ``frames`` (F,), ``volumes`` (F,) of their cells, A^3, and ``counts`` (pairs, bins) over all frames.
        """
        counts = tuple(map(copy, self.counts))  # copies start with empty histograms
        numbers, volumes = [], []
        for frame in frames:
            for item in counts:
                item.add(frame.positions, frame.cell)
            numbers.append(frame.number)
            assert frame.cell is not None  # otherwise, the histograms raise an error
            volumes.append(frame.cell.volume)
        return {"frames": np.array(numbers), "volumes": np.array(volumes),
                "counts": np.array([count.counts for count in counts])}


def over_frames(work: PairEnergies | PairCounts, add: Callable[[Arrays], None], execution: PartialExecution) -> bool:
    """Compute all frames, and pass the results of blocks to `add`, in the order of the frames.

    Parameters
    ----------
    work : Work
    add : callable
    execution : PartialExecution
        With `partial`, a KeyboardInterrupt after the first block ends the computation without an error.

    Returns
    -------
    bool
        Whether all frames were computed.

    Raises
    ------
    UsageError
        When a run without a trajectory is to be resumed.
    """
    numbers = work.frames.numbers()
    if execution.resume and not work.frames.source.portable:
        raise UsageError("resume", "a trajectory is needed", "give its file after the structure's")
    if len(numbers) == 1:  # computing the frame includes planning it
        add(work.compute(work.frames.part(numbers)))
        return True
    work.plan()
    size = block_size(len(numbers), len(work.frames.first.positions))
    results, first = iter(run_blocks(work, numbers, size=size, **execution.blocks)), True
    while True:
        try:
            result = next(results, None)
        except KeyboardInterrupt:
            if execution.partial and not first:
                return False
            raise
        if result is None:
            return True
        add(result)  # outside of the try block: an interrupt would leave a block partly added
        first = False
