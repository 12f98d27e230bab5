"""Implicit ligand sampling: the free energy of a small molecule at every grid point, from frames without it.

J. Cohen, A. Arkhipov, R. Braun, K. Schulten, Biophys. J. 91 (2006) 1844: the molecule is so small, and interacts so
weakly, that a simulation without it samples the same configurations. Its free energy in a node's voxel, relative to
vacuum, follows from insertions there (B. Widom, J. Chem. Phys. 39 (1963) 2808)::

    W(r) = -kT ln < exp(-E / kT) >

with the mean over frames, over positions in the voxel, and over orientations. The standard error of the mean Boltzmann
factor follows from blocks of frames, and the error of W is kT times its relative error.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError
from vmdpotential.execution.blocks import block_size
from vmdpotential.execution.work import Arrays, FrameCost, WorkNeeds
from vmdpotential.frames.gridded import GridWork, frames_text
from vmdpotential.frames.statistics import BlockMean, Moments
from vmdpotential.frames.sums import FrameSum, named_arrays
from vmdpotential.frames.task import MergedSums, TaskPlan
from vmdpotential.frames.whole import reference_group
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.io.trajectories.frames import Frames
from vmdpotential.molecule.cell import SAME_CELL, Cell, cell_stretch, same_cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.sums.potential_sum import Prepared

from .energies import ProbeSum
from .ligands import KELVIN, Ligand
from .options import InsertionOptions

#: Highest free energy in a map, kcal/mol: the insertions of a run cannot sample higher ones.
HIGHEST = 20.0

#: Largest number of prepared sums that are kept from frame to frame.
_MOST_PREPARED = 2000


@dataclass(frozen=True, eq=False)
class Insertions(GridWork):
    """Mean Boltzmann factors of inserting a ligand, over blocks of frames.

    Parameters
    ----------
    atoms : tuple of ProbeSum
        One for each atom of the ligand.
    orientations : sequence of (S, 3) float64
        Positions of the ligand's atoms in each orientation, A.
    parts : int
        Number of positions along each edge of a voxel.
    kt : float
        Thermal energy, kcal/mol.
    engine : str
    """

    atoms: tuple[ProbeSum, ...]
    orientations: tuple[Floats, ...]
    parts: int
    kt: float
    engine: str

    def needs(self) -> WorkNeeds:
        """Return the engine, the memory of a block, and the cost."""
        return WorkNeeds(self.engine, (24 + 12 * self.parts**3) * self.lattice.size,
                     self._cost if self.frames.portable else None)

    def _cost(self) -> FrameCost:
        """Return the time for a frame, measured on one orientation in the first, and the size of a block's result."""
        numbers = self.frames.numbers()
        positions, cell = next(self.moved(numbers[:1], Moments.none((3, 3))))
        lattice, turns = self.in_cell(cell), range(1)
        self._factors(lattice, positions, cell, turns)
        start = time.perf_counter()
        _, device = self._factors(lattice, positions, cell, turns)
        seconds, count = time.perf_counter() - start, len(self.orientations)
        return FrameCost(count * max(device, 1e-6), count * (seconds - device) + self.frames.seconds(),
                         8 * lattice.size)

    def sums(self) -> Mapping[str, FrameSum]:
        """Return the mean Boltzmann factors (nx, ny, nz), their mean over the whole map (1,), and the cells."""
        return {"factors": BlockMean(self.sample, spread=False), "whole": BlockMean(spread=False),
                "cells": Moments.none((3, 3))}

    def block(self, numbers: range) -> Arrays:
        """Return the arrays of the sums over some frames."""
        total, cells = np.zeros(self.lattice.shape), Moments.none((3, 3))
        for positions, cell in self.moved(numbers, cells):
            total += self.factors(positions, cell)
        mean = total / max(1, len(numbers))
        return named_arrays(len(numbers),
                            {"factors": {"mean": mean}, "whole": {"mean": mean.mean(keepdims=True).reshape(1)},
                                    "cells": cells.arrays})

    def factors(self, positions: Floats, cell: Cell | None) -> Floats:
        """Return the mean Boltzmann factor (nx, ny, nz) of one frame over orientations and positions in a voxel."""
        turns = range(len(self.orientations))
        total, _ = self._factors(self.in_cell(cell), positions, cell, turns)
        return total / (self.parts**3 * len(turns))

    def _factors(self, lattice: Lattice, positions: Floats, cell: Cell | None, turns: range) -> tuple[Floats, float]:
        """Return the sum of Boltzmann factors over some orientations and all positions, and the GPU time in seconds."""
        parts, (nx, ny, nz), seconds = self.parts, lattice.shape, 0.0
        total = np.zeros(lattice.shape)
        for turn in turns:
            energy = np.zeros((nx * parts, ny * parts, nz * parts), np.float32)
            for atom, prepared in zip(self.atoms, self._prepared(lattice, cell, turn), strict=True):
                seconds += atom.add_to(energy, prepared, positions)
            energy *= np.float32(-1 / self.kt)
            np.exp(energy, out=energy)
            total += energy.reshape(nx, parts, ny, parts, nz, parts).sum((1, 3, 5), dtype=np.float64)
        return total, seconds

    def _prepared(self, lattice: Lattice, cell: Cell | None, turn: int) -> list[list[Prepared]]:
        """Return the prepared sums of each ligand atom in an orientation, which are reused if the lattice is fixed."""
        count = len(self.orientations) * sum(len(item.rmin) for item in self.atoms)
        reused = lattice is self.lattice and count < _MOST_PREPARED
        if reused and turn in self._prepared_sums:
            return self._prepared_sums[turn]
        engine, images = get_engine(self.engine), None if self.cell is None else self.cell if reused else cell
        parts = self.parts
        origin = lattice.origin + lattice.spacing * (0.5 / parts - 0.5)  # positions are the centres of the subvoxels
        shape = (lattice.shape[0] * parts, lattice.shape[1] * parts, lattice.shape[2] * parts)
        prepared = [atom.prepare(engine, Lattice(origin + place, lattice.spacing / parts, shape), images)
                    for place, atom in zip(self.orientations[turn], self.atoms, strict=True)]
        if reused:
            self._prepared_sums[turn] = prepared
        return prepared

    @cached_property
    def _prepared_sums(self) -> dict[int, list[list[Prepared]]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_prepared_sums"}

    def in_cell(self, cell: Cell | None) -> Lattice:
        """Return the lattice with its nodes at the same fractional coordinates in a frame's cell.

        Raises
        ------
        InputError
            When the cell is sheared with respect to that of the lattice.
        """
        if self.cell is None or cell is None or same_cell(self.cell, cell, SAME_CELL):
            return self.lattice
        along = cell_stretch(self.cell, cell)
        if along is None:
            raise InputError(f"the cell of a frame ({cell}) differs from the first frame's in more than its lengths "
                             "along x, y and z, so that the axes of the map would turn with it",
                             "choose other {frames}, or use {boundary open}")
        return self.lattice.stretched(along)


@dataclass(frozen=True, eq=False)
class InsertionPlan(TaskPlan["FreeEnergy"]):
    """Everything that is needed to compute insertions.

    Parameters
    ----------
    work : Insertions
    ligand : Ligand
    temperature : float, K
    inputs : tuple of str
        Names of the input files.
    """

    work: Insertions
    ligand: Ligand
    temperature: float
    inputs: tuple[str, ...]

    def result(self, merged: MergedSums) -> FreeEnergy:
        """Return the free energy over the frames of the sums."""
        work, blocks, whole = self.work, merged["factors"], merged["whole"]
        mean, uncertainty, mean_uncertainty = blocks.mean, blocks.uncertainty(), whole.uncertainty()
        least = np.exp(-HIGHEST / work.kt)
        free = np.maximum(-work.kt * np.log(np.maximum(mean, least)), -1e6)
        cell, lattice = None, work.lattice
        if work.cell is not None:
            cell = Cell(merged["cells"].mean)
            lattice = work.in_cell(cell)
        provenance = Provenance(
            quantity=f"free energy of {self.ligand.name}", method="implicit ligand sampling",
            interaction=f"Lennard-Jones to {work.atoms[0].cutoff:g} A",
            boundary="open" if cell is None else "periodic", cutoff=work.atoms[0].cutoff, precision="single",
            engine=work.engine, inputs=self.inputs, frames=frames_text(self.numbers[: merged.count]),
            zero="the molecule in vacuum", cell=None if cell is None else tuple(cell.vectors.reshape(-1).tolist()))
        grids = {"mean": Grid(lattice, free.astype(np.float32), "kcal/mol", self.temperature, provenance=provenance)}
        error = None
        if uncertainty is not None:
            errors = np.where(mean > least, work.kt * uncertainty.error / np.maximum(mean, least), 0.0)
            error = float(np.median(errors[mean > least])) if (mean > least).any() else None
            grids["sem"] = Grid(
                lattice, np.minimum(errors, HIGHEST).astype(np.float32), "kcal/mol", self.temperature,
                provenance=replace(
                    provenance, quantity=f"standard error of the mean {provenance.quantity}", derived="error"))
        average = float(mean.mean())
        return FreeEnergy(
            grids, merged.count, tuple(merged.counts), cell, error, float(-work.kt * np.log(max(average, least))),
            None if mean_uncertainty is None or average <= 0 else float(
                work.kt * mean_uncertainty.error[0] / average), "" if uncertainty is not None else blocks.too_short())


def plan_insertions(structure: Structure, frames: Frames, ligand: Ligand, sums: tuple[ProbeSum, ...],
                    insertion: InsertionOptions, *, lattice: Lattice | None, spacing: float, padding: float | None,
                    engine: str, fixed_cell: bool) -> InsertionPlan:
    """Return the plan of the free energy of a ligand over frames.

    Parameters
    ----------
    structure : Structure
    frames : Frames
    ligand : Ligand
    sums : tuple of ProbeSum
        One for each atom of the ligand.
    insertion : InsertionOptions
    lattice : Lattice or None
        If None, a lattice over the periodic cell; with a padding, or in an open boundary (where 5 A is the
        default), around the group.
    spacing : float, A
    padding : float or None, A
    engine : str
    fixed_cell : bool
        Whether the cell of the structure is that of all frames.

    Raises
    ------
    MemoryPlanError
        When the map does not fit into memory.
    InputError
        For frames of other atoms, or without a cell where one is needed.
    """
    group, name = reference_group(structure, insertion.fit)
    work = Insertions.of(
        structure, frames, {"group": group, "name": name}, lattice, spacing=spacing, padding=padding,
        around=structure.positions, boundary=insertion.boundary, fixed_cell=fixed_cell, atoms=sums,
        orientations=tuple(ligand.orientations(insertion.orientations)), parts=insertion.places,
        kt=KELVIN * insertion.temperature, engine=get_engine(engine).name)
    lattice, numbers = work.lattice, frames.numbers()
    memory.require((72 + 12 * insertion.places**3) * lattice.size,
                   f"a map of {' x '.join(map(str, lattice.shape))} points", "use a larger {spacing}")
    inputs = (*structure.sources, frames.name)
    return InsertionPlan(work=work, numbers=numbers, size=min(8, block_size(len(numbers))), ligand=ligand,
                         temperature=insertion.temperature, inputs=inputs)


@dataclass(frozen=True, eq=False)
class FreeEnergy:
    """Free energy of a ligand over frames, with its errors.

    Parameters
    ----------
    grids : mapping
        ``mean``, the free energy, and ``sem``, its standard error if it is known; kcal/mol.
    frames : int
        Number of frames.
    blocks : tuple of int
        Number of frames in each block.
    cell : Cell or None
        Mean cell.
    error : float or None
        Median of the standard error over the nodes below :data:`HIGHEST`, kcal/mol.
    solvation : float
        Free energy of the Boltzmann factor's mean over the map, kcal/mol: the excess chemical potential if the map
        covers a whole periodic cell.
    solvation_error : float or None
        Its standard error, kcal/mol.
    no_error : str
        Why there is no standard error; empty if there is one.
    """

    grids: Mapping[str, Grid]
    frames: int
    blocks: tuple[int, ...]
    cell: Cell | None
    error: float | None
    solvation: float
    solvation_error: float | None
    no_error: str
