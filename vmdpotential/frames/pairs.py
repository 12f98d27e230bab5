"""Energies, forces and distances between selections over frames, in blocks.

A block's result has what was found in each of its frames, which are added one after another in the order of the frames:
means, deviations and errors are the same bit by bit for any number of workers, and after a stop.
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
from vmdpotential.pairs.rdf import Counts

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairEnergies(Work):
    """Energies between pairs of selections, or forces, in every frame; the sums are planned in the first one.

    Parameters
    ----------
    frames : CellFrames
    sums : tuple of Between
    structure : Structure
    by : str
        ``total``, ``residue`` or ``atom``: what has a row; ``forces`` are those on each atom instead of energies.
    """

    frames: CellFrames
    sums: tuple[Between, ...]
    structure: Structure
    by: str

    def identity(self) -> tuple[object, ...]:
        """Return what determines the result."""
        return ("energies", self.frames, self.sums, self.structure.residue_starts, self.by)

    def needs(self) -> Needs:
        """Return the engine."""
        return Needs(self.sums[0].engine.name)

    def plan(self) -> None:
        """Plan the sums, and measure their errors, in the first frame."""
        for item in self.sums:
            item.run(self.frames.first.positions, self.frames.first.cell)

    def block(self, numbers: range) -> Arrays:
        """Return what :meth:`over` returns for some of the frames."""
        # copies have the plan, and prepare by themselves: nothing follows from the frames before
        return replace(self, sums=tuple(map(copy, self.sums))).over(self.frames.part(numbers))

    def over(self, frames: Iterable[Frame]) -> Arrays:
        """Return what was found in frames.

        Returns
        -------
        mapping
            ``frames`` (F,) their numbers; ``cell`` (3, 3) of the last one where there is one; and for the n-th pair of
            selections ``total n`` (F, 3), and ``rows n`` (F, rows, 3) unless the total alone has a row: Coulomb,
            Lennard-Jones and both. Of forces ``rows n`` (F, atoms, 3) alone.
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
    """Pairs of selections by their distance in every frame.

    Parameters
    ----------
    frames : CellFrames
    counts : tuple of Counts
    """

    frames: CellFrames
    counts: tuple[Counts, ...]

    def needs(self) -> Needs:
        """Return the engine."""
        return Needs(self.counts[0].engine.name)

    def plan(self) -> None:
        """Check in the first frame that the pairs can be counted."""
        for count in self.counts:
            count.check(self.frames.first.cell)

    def block(self, numbers: range) -> Arrays:
        """Return what :meth:`over` returns for some of the frames."""
        return self.over(self.frames.part(numbers))

    def over(self, frames: Iterable[Frame]) -> Arrays:
        """Return ``frames`` (F,), ``volumes`` (F,) of their cells, A^3, and ``counts`` (pairs, bins) of all."""
        counts = tuple(map(copy, self.counts))  # which begin at none
        numbers, volumes = [], []
        for frame in frames:
            for item in counts:
                item.add(frame.positions, frame.cell)
            numbers.append(frame.number)
            assert frame.cell is not None  # the counts raise otherwise
            volumes.append(frame.cell.volume)
        return {"frames": np.array(numbers), "volumes": np.array(volumes),
                "counts": np.array([count.counts for count in counts])}


def over_frames(work: PairEnergies | PairCounts, add: Callable[[Arrays], None], execution: PartialExecution) -> bool:
    """Compute all frames, and give the results of blocks to `add`, in the order of the frames.

    Parameters
    ----------
    work : Work
    add : callable
    execution : PartialExecution
        With `partial`, a KeyboardInterrupt after the first block ends the frames there.

    Returns
    -------
    bool
        Whether these were all frames.

    Raises
    ------
    UsageError
        When a structure alone is to be resumed.
    """
    numbers = work.frames.numbers()
    if execution.resume and not work.frames.source.portable:
        raise UsageError("resume", "needs a trajectory", "give its file after the structure's")
    if len(numbers) == 1:  # planned and computed at once
        add(work.over(work.frames.part(numbers)))
        return True
    work.plan()
    size = block_size(len(numbers), len(work.frames.first.positions))
    results, first = iter(run_blocks(work, numbers, size=size, **execution.blocks)), True
    while True:
        try:
            match = next(results, None)
        except KeyboardInterrupt:
            if execution.partial and not first:
                return False
            raise
        if match is None:
            return True
        add(match)  # an interrupt in here would leave half of a block
        first = False
