"""Implicit ligand sampling: the free energy of a small molecule at every place, from frames without it.

J. Cohen, A. Arkhipov, R. Braun, K. Schulten, Biophys. J. 91 (2006) 1844: the molecule is so small, and acts so weakly,
that the frames of a simulation without it are those that it would see. Its free energy in a node's box, against vacuum,
is that of inserting it there (B. Widom, J. Chem. Phys. 39 (1963) 2808)::

    W(r) = -kT ln < exp(-E / kT) >

with the mean over frames, over places in the box, and over orientations. The mean of the Boltzmann factor is a mean
over frames as any other, so that its error comes from blocks of them, and that of W is kT times its relative error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.engines import get_engine, stretch
from vmdpotential.errors import InputError
from vmdpotential.execution.blocks import LABEL, Run, block_size
from vmdpotential.execution.work import Arrays, Needs, Work
from vmdpotential.frames.statistics import TOO_SHORT, BlockMean, Moments
from vmdpotential.frames.whole import Alignment
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.io.trajectories.frames import Frame, Frames, periodic_cell
from vmdpotential.maps import choose_cell, lay_lattice
from vmdpotential.molecule.cell import SAME, Cell, same_cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.probes.energies import ProbeSum
from vmdpotential.probes.ligands import KELVIN, Ligand

Floats = NDArray[np.float64]

log = logging.getLogger(__name__)

#: kcal/mol, the highest free energy that a map states: no insertion of a run finds one that is higher.
HIGHEST = 20.0

#: Nodes, at random, at which blocks are looked at for their correlation.
POINTS = 1024


@dataclass(frozen=True, eq=False)
class Insertions(Work):
    """What is computed of each block of frames: small, picklable, and the same for all.

    Parameters
    ----------
    frames : Frames
    alignment : Alignment or None
        None moves nothing.
    sums : tuple of ProbeSum
        Of each atom of the ligand.
    orientations : sequence of (S, 3) float64
        Places of its atoms, A.
    lattice : Lattice
    parts : int
        Places along each edge of a node's box.
    cell : Cell or None
        In which the lattice is laid; None where the boundary is open.
    own_cells : bool
        Whether each frame has its own cell, else `fixed` is that of all.
    fixed : Cell or None
    kt : float
        kcal/mol.
    engine : str
    """

    frames: Frames
    alignment: Alignment | None
    sums: tuple[ProbeSum, ...]
    orientations: tuple[Floats, ...]
    lattice: Lattice
    parts: int
    cell: Cell | None
    own_cells: bool
    fixed: Cell | None
    kt: float
    engine: str

    def needs(self) -> Needs:
        """Return engine and memory of a block."""
        return Needs(self.engine, memory=(24 + 12 * self.parts**3) * self.lattice.size)

    def block(self, numbers: range) -> Arrays:
        """Return ``count``, the ``mean`` Boltzmann factors (nx, ny, nz), and ``cells`` (6, 3) as in `average`."""
        total, cells = np.zeros(self.lattice.shape), Moments.none((3, 3))
        for done, frame in enumerate(self.frames.part(numbers), 1):
            cell = self.cell_of(frame)
            if cell is not None:
                cells.add(cell.vectors)
            positions = np.asarray(frame.positions, np.float64)
            total += self.factors(positions if self.alignment is None else self.alignment.align(positions, cell), cell)
            progress.report(LABEL, done / len(numbers))
        return {"count": np.array(len(numbers)), "mean": total / max(1, len(numbers)),
                "cells": np.concatenate([cells.mean, cells.m2])}

    def factors(self, positions: Floats, cell: Cell | None) -> Floats:
        """Return the mean Boltzmann factor (nx, ny, nz) of one frame over orientations and places in a box."""
        engine = get_engine(self.engine)
        lattice = self.in_cell(cell)
        images = cell if self.cell is not None else None
        parts, (nx, ny, nz) = self.parts, lattice.shape
        origin = lattice.origin + lattice.spacing * (0.5 / parts - 0.5)  # places are in the middles of parts of the box
        total = np.zeros(lattice.shape)
        for places in self.orientations:
            energy = np.zeros((nx * parts, ny * parts, nz * parts), np.float32)
            for place, atom in zip(places, self.sums, strict=True):
                finer = Lattice(origin + place, lattice.spacing / parts, energy.shape)
                atom.add_to(energy, engine, finer, positions, images)
            energy *= np.float32(-1 / self.kt)
            np.exp(energy, out=energy)
            total += energy.reshape(nx, parts, ny, parts, nz, parts).sum((1, 3, 5), dtype=np.float64)
        return total / (parts**3 * len(self.orientations))

    def cell_of(self, frame: Frame) -> Cell | None:
        """Return the cell in which a frame is."""
        if not self.own_cells:
            return self.fixed
        return frame.cell if self.cell is None else periodic_cell(self.frames.name, frame, self.cell)

    def in_cell(self, cell: Cell | None) -> Lattice:
        """Return the lattice with its nodes at the same fractions of a frame's cell.

        Raises
        ------
        InputError
            Where the cell shears.
        """
        if self.cell is None or cell is None or same_cell(self.cell, cell, SAME):
            return self.lattice
        along = stretch(self.cell, cell)
        if along is None:
            raise InputError(f"the cell of a frame ({cell}) has another shape than that of the first one, not other "
                             "lengths along x, y and z alone: the axes of the map would turn with it",
                             "choose other {frames}, or use {boundary open}")
        return Lattice(self.lattice.origin * along, self.lattice.spacing * along, self.lattice.shape)

    @cached_property
    def sample(self) -> NDArray[np.int64]:
        """(P,) places in the flattened map at which blocks are looked at."""
        return np.unique(np.random.default_rng(2010).integers(0, self.lattice.size, POINTS))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "sample"}


@dataclass(frozen=True, eq=False)
class Planning:
    """Insertions that are about to be computed: the work, the numbers of the frames, frames in a block, and what of."""

    work: Insertions
    numbers: range
    size: int
    ligand: Ligand
    temperature: float
    inputs: tuple[str, ...]


def plan_insertions(structure: Structure, frames: Frames, ligand: Ligand, sums: tuple[ProbeSum, ...], *,
                    alignment: Mapping[str, Any], lattice: Lattice | None, spacing: float, padding: float | None,
                    options: Mapping[str, Any]) -> Planning:
    """Return what is to be done for the free energy of a ligand over frames.

    Parameters
    ----------
    structure : Structure
    frames : Frames
    ligand : Ligand
    sums : tuple of ProbeSum
        Of each of its atoms.
    alignment : mapping
        Of :meth:`vmdpotential.frames.whole.Alignment.of`: ``group`` and ``name``.
    lattice : Lattice or None
        Over the periodic cell, or around the group with a `padding`, unless given.
    spacing, padding : float, A
    options : mapping
        ``orientations``, ``parts`` (places along each edge of a node's box), ``temperature``, ``boundary``, ``engine``,
        ``fixed_cell``.

    Raises
    ------
    MemoryPlanError
        When the map does not fit into memory.
    InputError
        For frames of other atoms, or without a cell where one is needed.
    """
    numbers = frames.numbers()
    first = next(iter(frames.part(numbers[:1])))
    own_cells = not options["fixed_cell"] and first.cell is not None
    here = replace(structure, positions=np.asarray(first.positions, np.float64),
                   cell=first.cell if own_cells else structure.cell)
    cell = choose_cell(here, "cutoff", options["boundary"])
    group = alignment.get("group")
    moves = None if group is None else Alignment.of(structure, boundary="open" if cell is None else "periodic",
                                                    **alignment)
    if lattice is None and cell is not None and padding is None:
        lattice = lay_lattice(structure, structure.positions, cell, spacing, 0.0)
    if lattice is None:
        around = structure.positions if moves is None else moves.reference
        lattice = Lattice.around(around, spacing, 5.0 if padding is None else padding)
    memory.require((72 + 12 * options["parts"] ** 3) * lattice.size,
                   f"a map of {' x '.join(map(str, lattice.shape))} points", "use a larger {spacing}")
    work = Insertions(frames, moves, sums, tuple(ligand.orientations(options["orientations"])), lattice,
                      options["parts"], cell, own_cells, here.cell, KELVIN * options["temperature"],
                      get_engine(options["engine"]).name)
    inputs = (*structure.sources, frames.name)
    return Planning(work, numbers, min(8, block_size(len(numbers))), ligand, options["temperature"], inputs)


@dataclass(frozen=True, eq=False)
class FreeEnergy:
    """What came of the frames.

    Parameters
    ----------
    grids : mapping
        ``mean``, the free energy, and ``sem``, its standard error where it is known; kcal/mol.
    frames : int
    blocks : tuple of int
    cell : Cell or None
        The mean one.
    error : float or None
        Median of the standard error over the nodes below :data:`HIGHEST`, kcal/mol.
    solvation : float
        kcal/mol, of the mean over the map: the excess chemical potential where that is a whole periodic cell.
    solvation_error : float or None
    """

    grids: Mapping[str, Grid]
    frames: int
    blocks: tuple[int, ...]
    cell: Cell | None
    error: float | None
    solvation: float
    solvation_error: float | None


def merge(planning: Planning, results: Iterable[Arrays] | Run, partial: bool = False) -> FreeEnergy:
    """Return what the blocks' results amount to; with `partial`, a KeyboardInterrupt ends the frames there."""
    work = planning.work
    blocks, whole = BlockMean(work.lattice.shape, work.sample, spread=False), BlockMean((1,), spread=False)
    cells = Moments.none((3, 3))
    try:
        for found in results:
            count = int(found["count"])
            blocks.add(count, found["mean"])
            whole.add(count, np.asarray(found["mean"]).mean(keepdims=True).reshape(1))
            cells.merge(Moments(count, found["cells"][:3], found["cells"][3:]))
    except KeyboardInterrupt:
        if not (partial and blocks.count):
            raise
    mean, known, of_all = blocks.mean, blocks.uncertainty(), whole.uncertainty()
    least = np.exp(-HIGHEST / work.kt)
    free = np.maximum(-work.kt * np.log(np.maximum(mean, least)), -1e6)
    cell, lattice = None, work.lattice
    if work.cell is not None:
        cell = Cell(cells.mean)
        lattice = work.in_cell(cell)
    numbers = planning.numbers[: blocks.count]
    step = f", every {numbers.step}" if numbers.step > 1 else ""
    made = Provenance(
        quantity=f"free energy of {planning.ligand.name}", method="implicit ligand sampling",
        interaction=f"Lennard-Jones to {work.sums[0].cutoff:g} A", boundary="open" if cell is None else "periodic",
        cutoff=work.sums[0].cutoff, precision="single", engine=work.engine, inputs=planning.inputs,
        frames=f"{len(numbers)}: {numbers[0]} to {numbers[-1]}{step}", zero="the molecule in vacuum",
        cell=None if cell is None else tuple(cell.vectors.reshape(-1).tolist()))
    grids = {"mean": Grid(lattice, free.astype(np.float32), "kcal/mol", planning.temperature, provenance=made)}
    error = None
    if known is None:
        log.warning("%s", TOO_SHORT)
    else:
        of_free = np.where(mean > least, work.kt * known.error / np.maximum(mean, least), 0.0)
        error = float(np.median(of_free[mean > least])) if (mean > least).any() else None
        grids["sem"] = Grid(lattice, np.minimum(of_free, HIGHEST).astype(np.float32), "kcal/mol", planning.temperature,
                            provenance=replace(made, quantity=f"standard error of the mean {made.quantity}"))
    average = float(mean.mean())
    return FreeEnergy(
        grids, blocks.count, tuple(blocks.counts), cell, error, float(-work.kt * np.log(max(average, least))),
        None if of_all is None or average <= 0 else float(work.kt * of_all.error[0] / average))
