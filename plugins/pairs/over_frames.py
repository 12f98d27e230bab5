"""Energies, forces and distances between selections over frames, in blocks.

A block's result has the values of each of its frames. They are added one after another in the order of the frames, so
that means, deviations and errors are identical to the last bit for any number of workers, and after an interruption.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError
from vmdpotential.execution.blocks import block_size
from vmdpotential.execution.work import Arrays, WorkNeeds
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.options import Execution
from vmdpotential.frames.statistics import FrameMean
from vmdpotential.frames.sums import FrameRows, FrameSum, TotalOverFrames
from vmdpotential.frames.task import FrameTask, MergedSums, merge_blocks, run_task
from vmdpotential.io.trajectories.frames import Frame
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

from .binding import BindingPlan
from .energy import InteractionEnergyPlan, by_residue
from .mutate import Mutant
from .rdf import PairHistogram

#: Terms of a binding energy in a solvent, kcal/mol.
BOUND_TERMS = ("lennard_jones", "coulomb", "screening", "desolvation_1", "desolvation_2", "surface")


@dataclass(frozen=True, eq=False)
class PairEnergies(FrameTask):
    """Energies between pairs of selections, or forces, in every frame; the sums are planned for the first one.

    Parameters
    ----------
    frames : CellFrames
    pairs : tuple of Between
    structure : Structure
    by : str
        ``total``, ``residue`` or ``atom`` for energies, in one row or a row for each of these; ``forces`` for the
        forces on each atom.
    binding : tuple of BindingPlan
        The energies of binding of each pair of selections in a solvent, or none.
    reverse : tuple of InteractionEnergyPlan
        The pairs with their selections exchanged, for Lennard-Jones energies of the rows of both.
    mutants : tuple of Mutant or None
        Whose positions each pair has; those of the structure itself unless given.
    """

    frames: CellFrames
    pairs: tuple[InteractionEnergyPlan, ...]
    structure: Structure
    by: str
    binding: tuple[BindingPlan, ...] = ()
    reverse: tuple[InteractionEnergyPlan, ...] = ()
    mutants: tuple[Mutant | None, ...] = ()

    def identity(self) -> tuple[object, ...]:
        """Return the values that determine the result, for fingerprints of inputs."""
        return ("energies", self.frames, self.pairs, self.structure.residue_starts, self.by,
                [plan.identity() for plan in self.binding],
                [None if mutant is None else mutant.identity() for mutant in self.mutants])

    def needs(self) -> WorkNeeds:
        """Return the engine."""
        return WorkNeeds(get_engine(self.binding[0].engine).name if self.binding else self.pairs[0].engine.name)

    def plan(self) -> None:
        """Plan the sums for the first frame, and measure their errors there."""
        first = self.frames.first
        for item in self.reverse:
            item.run(first.positions, first.cell)
        for n, pair in enumerate(self.pairs):
            pair.run(self._positions(n, first), first.cell)
        for n, plan in enumerate(self.binding):
            plan.run(self._positions(n, first), first.cell)

    def _positions(self, n: int, frame: Frame) -> NDArray[np.float64]:
        """Return the positions of the n-th pair of selections in a frame."""
        mutant = self.mutants[n] if self.mutants else None
        return frame.positions if mutant is None else mutant(frame.positions, frame.cell)

    def sums(self) -> Mapping[str, FrameSum]:
        """Return ``numbers`` of the frames; their ``cells`` (3, 3), if they have any; and for the n-th pair of
        selections ``total n`` (3,), the Coulomb and the Lennard-Jones energy and their sum, and ``rows n`` (rows, 3)
        the same for each residue or atom. For forces only ``rows n`` (atoms, 3), of every frame.

        In a solvent also ``bound n`` (7,), :data:`BOUND_TERMS` and their error, the first NaN if it is not known;
        and ``bound rows n`` (rows, 6), the Lennard-Jones energy, :data:`.ATOM_TERMS` and their sum for residues or
        atoms of both selections.
        """
        frames, places = len(self.frames.numbers()), range(len(self.pairs))
        result: dict[str, FrameSum] = {"numbers": FrameRows(frames)}
        if self.frames.first.cell is not None:
            result["cells"] = FrameRows(frames)
        if self.by == "forces":
            return result | {f"rows {n}": FrameRows(frames) for n in places}
        if self.by != "total":
            result |= {f"bound rows {n}": FrameMean() for n in range(len(self.binding))}
        return (result | {f"bound {n}": FrameRows(frames) for n in range(len(self.binding))}
                | {f"total {n}": FrameRows(frames) for n in places} | {f"rows {n}": FrameMean() for n in places})

    def block(self, numbers: range) -> Arrays:
        """Return the arrays of the sums over the frames of these numbers."""
        # copies share the plan but not its prepared state, so that the result does not depend on other blocks
        return replace(self, pairs=tuple(map(copy, self.pairs)), reverse=tuple(map(copy, self.reverse)),
                       binding=tuple(plan.for_block() for plan in self.binding)).compute(self.frames.part(numbers))

    def of_frame(self, frame: Frame) -> Mapping[str, ArrayLike]:
        """Return the energies or forces of a frame."""
        columns: dict[str, Any] = {"numbers": frame.number}
        if frame.cell is not None:
            columns["cells"] = frame.cell.vectors
        for n, pair in enumerate(self.pairs):
            result = pair.run(self._positions(n, frame), frame.cell)
            if self.by == "forces":
                columns[f"rows {n}"] = result.forces
                continue
            values = np.stack([result.coulomb, result.lennard_jones, result.total], axis=1)
            total = columns[f"total {n}"] = values.sum(0)
            columns[f"rows {n}"] = {"total": total[None], "atom": values}.get(self.by)
            if self.by == "residue":
                columns[f"rows {n}"] = by_residue(self.structure, result.atoms, values)[1]
        for n, plan in enumerate(self.binding):
            terms, error = plan.run(self._positions(n, frame), frame.cell)
            bound = plan.binding(terms, error)
            known = columns[f"total {n}"][1] if self.pairs else np.nan
            columns[f"bound {n}"] = np.array([known, bound.coulomb, bound.screening, *bound.desolvation, bound.surface,
                                              bound.error])
            if self.by != "total":
                columns[f"bound rows {n}"] = self._rows_of_both(n, frame, terms)
        return columns

    def _rows_of_both(self, n: int, frame: Frame, terms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Lennard-Jones energies and the terms of the atoms, or of the residues, of both selections."""
        atoms = np.flatnonzero(self.binding[n].chosen)
        lennard_jones = np.full(len(self.structure), 0.0 if self.pairs else np.nan)
        for item in (self.pairs[n], self.reverse[n]) if self.pairs else ():
            result = item.run(frame.positions, frame.cell)
            lennard_jones[result.atoms] = 0.5 * result.lennard_jones
        rows = np.concatenate([lennard_jones[atoms, None], terms], 1)
        rows = np.concatenate([rows, np.nansum(rows, 1, keepdims=True)], 1)
        return rows if self.by == "atom" else by_residue(self.structure, atoms, rows)[1]


@dataclass(frozen=True, eq=False)
class PairCounts(FrameTask):
    """Histograms of the distances between pairs of selections, over all frames.

    Parameters
    ----------
    frames : CellFrames
    histograms : tuple of PairHistogram
        One for each pair of selections.
    """

    frames: CellFrames
    histograms: tuple[PairHistogram, ...]

    def needs(self) -> WorkNeeds:
        """Return the engine."""
        return WorkNeeds(self.histograms[0].engine.name)

    def plan(self) -> None:
        """Check for the first frame's cell that the pairs can be counted."""
        for histogram in self.histograms:
            histogram.check(self.frames.first.cell)

    def sums(self) -> Mapping[str, FrameSum]:
        """Return ``counts`` (pairs, bins) over all frames, and ``volumes`` of their cells, A^3."""
        return {"counts": TotalOverFrames(), "volumes": FrameRows(len(self.frames.numbers()))}

    def of_frame(self, frame: Frame) -> Mapping[str, ArrayLike]:
        """Return the counts of a frame."""
        counts = [histogram.count(frame.positions, frame.cell) for histogram in self.histograms]
        assert frame.cell is not None  # otherwise, the histograms raise an error
        return {"counts": np.array(counts), "volumes": frame.cell.volume}


def last_cell(merged: MergedSums) -> Cell | None:
    """Return the cell of the last frame of :class:`PairEnergies`, if it has one."""
    return Cell(merged["cells"].values[-1]) if "cells" in merged.sums else None


def over_frames(work: PairEnergies | PairCounts, execution: Execution) -> MergedSums:
    """Return the sums over all frames, or with `partial` until an interruption.

    Raises
    ------
    UsageError
        When a run without a trajectory is to be resumed.
    """
    numbers = work.frames.numbers()
    if execution.resume and not work.frames.source.portable:
        raise UsageError("resume", "a trajectory is needed", "give its file after the structure's")
    if len(numbers) == 1:  # computing the frame includes planning it
        return merge_blocks(work.sums(), [work.compute(work.frames.part(numbers))])
    work.plan()
    return run_task(work, execution, size=block_size(len(numbers), len(work.frames.first.positions)))
