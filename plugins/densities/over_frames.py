"""Densities of atoms over the frames of a trajectory: mean, standard deviation and standard error at every node.

Each atom is counted at its nearest node, or is spread as a Gaussian, and a node's value is divided by the volume of its
voxel. In a periodic cell that changes, atoms are placed by their fractional coordinates, and the map is given in the
mean cell. Blocks of frames (:mod:`vmdpotential.execution.blocks`) return only the nodes that atoms contributed to,
usually a small part of all.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, UsageError
from vmdpotential.execution.work import Arrays, WorkNeeds
from vmdpotential.frames.gridded import DERIVED_VALUES, GridWork, frames_text, lattice_in
from vmdpotential.frames.statistics import MIN_STATISTICS_BLOCKS, BlockMean, Moments
from vmdpotential.frames.sums import FrameSum, named_arrays
from vmdpotential.frames.task import MergedSums, TaskPlan
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.io.trajectories.frames import Frames
from vmdpotential.kernels.launch import KernelFile, launch_kernel
from vmdpotential.maps.options import Boundary, Engine
from vmdpotential.molecule.cell import Cell, same_cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import CheckedOptions, Option
from vmdpotential.plugins.densities.counting import AtomCounting, DensityCounter, ListedCounter, NodeCounter
from vmdpotential.plugins.densities.quantities import QUANTITY_UNITS, CountedAtoms

log = logging.getLogger(__name__)

KERNELS = KernelFile(Path(__file__).with_name("totals.cu"))

#: Number of nodes that a thread adds up or evaluates at a time.
NODES_PER_TASK = 65536

#: Radius at which a Gaussian is truncated, in standard deviations. It is renormalised over the nodes within, since 5e-4
#: of it is beyond along each axis.
REACH = 3.5


class NodeSums(FrameSum):
    """Sums at those nodes that atoms contributed to.

    A block has the arrays ``nodes`` (T,), increasing, ``sums`` (T,) over its frames of the values there, and
    ``squares`` (T,) of their squares.

    Parameters
    ----------
    size : int
        Number of all nodes.
    spread : bool
        Whether squares of the values of single frames are added up.
    """

    def __init__(self, size: int, spread: bool) -> None:
        #: (size, 2) sums over frames, and sums over blocks of the squared sums by the block's number of frames.
        self.totals = np.zeros((size, 2))
        self.squares = np.zeros(size) if spread else None

    def add_block(self, block: Arrays, count: int) -> None:
        """Add the sums of a block."""
        launch_kernel(KERNELS["add_block"], len(block["nodes"]), "density", NODES_PER_TASK, totals=self.totals,
               all_squares=self.squares, **block, share=1 / count)


@dataclass(frozen=True, eq=False)
class Densities(GridWork):
    """Sums of the counted quantity over blocks of frames.

    Parameters
    ----------
    counted : CountedAtoms
    width : float
        Standard deviation, A, of the Gaussian of each atom; 0 counts it at the nearest node.
    engine : str
    """

    counted: CountedAtoms
    width: float
    engine: str = "cpu"

    def needs(self) -> WorkNeeds:
        """Return the engine and the memory of a block."""
        return WorkNeeds(self.engine, memory=self.node_bytes * self.lattice.size)

    @property
    def node_bytes(self) -> int:
        """Bytes of a block for each node: its result, and for atoms that are spread or on a GPU arrays of all nodes."""
        return 24 if self._counter is ListedCounter else 72

    @property
    def _counter(self) -> type[ListedCounter | NodeCounter]:
        listed = self.spreading == "nearest" and self.engine == "cpu"
        return ListedCounter if listed else NodeCounter

    @property
    def spreading(self) -> str:
        """The kernel's name for how atoms are spread."""
        return "occupancy" if self.counted.radii is not None else "gaussian" if self.width else "nearest"

    @cached_property
    def _idle_counters(self) -> list[DensityCounter]:
        """Counters of finished blocks, at most one for each thread, for use in later blocks."""
        return []

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_idle_counters"}

    def sums(self, spread: bool = True) -> Mapping[str, FrameSum]:
        """Return the sums at the nodes, the means at the sample, and the cells."""
        return {"density": NodeSums(self.lattice.size, spread), "sample": BlockMean(spread=False),
                "cells": Moments.none((3, 3))}

    def block(self, numbers: range) -> Arrays:
        """Return the arrays of the sums over some frames."""
        try:
            counter = self._idle_counters.pop()
        except IndexError:
            counter = self._counter(self.counting, get_engine(self.engine))
        cells = Moments.none((3, 3))
        rows = self.counted.rows if self.alignment is None else None
        for positions, cell in self.moved(numbers, cells, self.counted.rows):
            counter.add(positions, self._to_lattice_cell(cell), rows)
        nodes, sums, squares = counter.take()
        self._idle_counters.append(counter)
        places = np.searchsorted(nodes, self.sample) % max(1, len(nodes))  # a node beyond the last is none of them
        sample = np.where(nodes[places] == self.sample, sums[places], 0.0) if len(nodes) else np.zeros(len(self.sample))
        return named_arrays(len(numbers), {"density": {"nodes": nodes, "sums": sums, "squares": squares},
                                    "sample": {"mean": sample / len(numbers)}, "cells": cells.arrays})

    def _to_lattice_cell(self, cell: Cell | None) -> Floats | None:
        """Return the matrix (3, 3) that maps positions to the same fractions of the lattice's cell; None if equal."""
        if self.cell is None or cell is None or same_cell(self.cell, cell):
            return None
        return np.ascontiguousarray(np.linalg.inv(cell.vectors) @ self.cell.vectors)

    @property
    def counting(self) -> AtomCounting:
        """How atoms are counted, the same in all frames."""
        counted, lattice = self.counted, self.lattice
        widths = np.full(len(counted.rows), self.width or 1.0) if counted.radii is None else np.maximum(
            counted.radii, 1e-3)  # a site without a radius occupies a node only if it is at the node
        far = 0.0 if self.spreading == "nearest" else REACH * self.width if counted.radii is None else float(
            widths.max(initial=0.0))
        reach = np.ceil(far / lattice.spacing).astype(np.int64)
        none: Floats = np.zeros((0, 3))
        cell = inverse = images = none
        if self.cell is not None:
            cell = self.cell.vectors / lattice.spacing
            inverse = np.asarray(np.linalg.inv(cell), np.float64)
            images = _images(cell, np.array(lattice.shape), reach)
        return AtomCounting(self.spreading, counted.weights, widths, lattice.origin, lattice.spacing,
                        np.array(lattice.shape), cell, inverse, images, reach)


def _images(cell: Floats, shape: NDArray[np.int64], reach: NDArray[np.int64]) -> Floats:
    """Return the lattice translations (S, 3), in spacings, whose images of the cell are within `reach` nodes of the
    lattice; the cell begins half a spacing before the first node.
    """
    corners = np.array([[n >> 2 & 1, n >> 1 & 1, n & 1] for n in range(8)], float)
    low, high = -0.5 - reach, shape - 0.5 + reach
    box = (low + corners * (high - low) + 0.5) @ np.linalg.inv(cell)
    first, last = np.floor(box.min(0) - 1e-6).astype(int) - 1, np.ceil(box.max(0) + 1e-6).astype(int)
    steps = np.stack(np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(first, last, strict=True)), indexing="ij"), -1)
    shifts = steps.reshape(-1, 3) @ cell
    cell_corners = corners @ cell - 0.5
    # an image that only touches the outer face of the lattice contributes no atoms
    overlaps = ((shifts + cell_corners.min(0) < high - 1e-6) & (shifts + cell_corners.max(0) > low + 1e-6)).all(1)
    return shifts[overlaps]


@dataclass(frozen=True, eq=False)
class DensityPlan(TaskPlan["MeanDensity"]):
    """Everything that is needed to compute densities.

    Parameters
    ----------
    work : Densities
    name : str
        Selection text of the counted atoms.
    inputs : tuple of str
        Names of the input files.
    statistics : tuple of str
        Any of ``mean``, ``std`` and ``sem``.
    bulk : float or None
        Density that relative densities are divided by, in the first unit of the quantity; the mean over the cell if
        None.
    """

    work: Densities
    name: str
    inputs: tuple[str, ...]
    statistics: tuple[str, ...]
    bulk: float | None

    def sums(self) -> Mapping[str, FrameSum]:
        """Return the sums that the statistics need."""
        return self.work.sums("std" in self.statistics)

    def result(self, merged: MergedSums) -> MeanDensity:
        """Return the maps over the frames of the sums."""
        work, counted, blocks, cells = self.work, self.work.counted, merged["sample"], merged["cells"]
        nodes, bulk = merged["density"], self.bulk
        lattice, cell, deviation, volume_ratio = work.lattice, None, None, 1.0
        if work.cell is not None and cells.count:
            cell, deviation = cells.mean, np.sqrt(cells.variance())
            lattice = lattice_in(lattice, work.cell, Cell(cell))
            volume_ratio = float(abs(np.linalg.det(np.linalg.inv(work.cell.vectors) @ cell)))
        voxel = float(np.prod(work.lattice.spacing)) * volume_ratio
        factor = counted.factor / (1.0 if counted.radii is not None else voxel)
        if counted.unit == "relative":
            if bulk is None:
                assert cell is not None
                bulk = float(counted.weights.sum() / abs(np.linalg.det(cell)) * counted.factor)
            factor /= bulk
        factors = blocks.factors()
        maps = {name: np.empty(lattice.size, np.float32) for name in {"mean", *self.statistics}}
        error, partial = 0.0 if factors is None else factors[0], np.zeros((-(-lattice.size // NODES_PER_TASK), 2))
        launch_kernel(KERNELS["compute_statistics"], lattice.size, "density", NODES_PER_TASK, totals=nodes.totals,
               all_squares=nodes.squares, mean=maps["mean"], deviation=maps.get("std"), errors=maps.get("sem"),
               partial=partial, frames=merged.count, unit=factor, error=error, piece=NODES_PER_TASK)
        total, squared_errors = partial.sum(0) * [1, error * error]
        grids = {}
        for name in self.statistics:
            if name == "sem" and factors is None:
                continue
            grids[name] = Grid(lattice, maps[name].reshape(lattice.shape), counted.unit,
                               provenance=self._provenance(name, merged.count, cell))
            if not np.isfinite(grids[name].values).all():
                raise InputError("the density is too large for a map (3e38)", "use a larger {spacing}")
        rms = None if factors is None else float(np.sqrt(squared_errors / lattice.size) * abs(factor))
        return MeanDensity(grids, merged.count, tuple(merged.counts), float(total), bulk, cell, deviation, rms, voxel,
                       "" if factors is not None else blocks.too_short())

    def _provenance(self, name: str, count: int, cell: Floats | None) -> Provenance:
        """Return the provenance of a map over the first `count` frames, whose mean cell has these vectors."""
        work, counted = self.work, self.work.counted
        kind = {"mean": "mean", "std": "standard deviation of the", "sem": "standard error of the mean"}[name]
        quantity = {"number": "number density", "mass": "mass density", "charge": "charge density",
                    "electrons": "electron density", "occupancy": "occupancy"}[counted.quantity]
        return Provenance(
            quantity=f"{kind} {quantity}", derived=DERIVED_VALUES[name], method=(
                f"Gaussians of {work.width:g} A" if work.width else
                "nearest grid point" if counted.radii is None else "radii"),
            boundary="open" if work.cell is None else "periodic", atoms=self.name, precision="double",
            engine=work.engine, frames=frames_text(self.numbers[:count]), inputs=self.inputs,
            cell=None if cell is None else tuple(cell.reshape(-1).tolist()))


@dataclass(frozen=True, kw_only=True)
class DensityOptions(CheckedOptions):
    """All options of densities over frames: the counted quantity and the grid."""

    of: Annotated[str, Option(
        "counted quantity: number of atoms, mass, charge, electrons (atomic number minus partial charge), or occupancy "
        "(the fraction of frames in which a grid point is within an atom's van der Waals radius)",
        choices=tuple(QUANTITY_UNITS),
        front=True)] = "number"
    atoms: Annotated[str, Option(
        "atoms that are counted", metavar="SEL", selection=True, front=True)] = "all"
    unit: Annotated[str, Option(
        "unit of the values: 1/A^3 or mol/L of numbers, g/cm^3 of masses, e/A^3 of charges and electrons, or relative "
        "to the mean over the cell",
        choices=("auto", "1/A^3", "mol/L", "g/cm^3", "e/A^3", "relative", "fraction"), heading="output")] = "auto"
    bulk: Annotated[float | None, Option(
        "reference density of relative values, in 1/A^3, g/cm^3 or e/A^3; the mean over the cell unless given",
        above=0, heading="output")] = None
    smear: Annotated[float, Option(
        "standard deviation of the Gaussians by which atoms are spread; 0 counts each atom at its nearest grid point",
        unit="A", low=0, high=20, heading="method and accuracy")] = 0.0
    spacing: Annotated[float, Option(
        "distance between grid points", unit="A", low=0.05, high=100, heading="main options")] = 1.0
    padding: Annotated[float | None, Option(
        "margin of the grid around the fitted atoms, or around the counted atoms if none are fitted; unless given, the "
        "grid covers the whole periodic cell, or has a margin of 5 A in an open boundary",
        unit="A", low=0, high=1000, heading="grid")] = None
    boundary: Boundary = "auto"
    engine: Engine = "auto"


def plan_density(structure: Structure, frames: Frames, counted: CountedAtoms, options: DensityOptions | None = None, *,
                 alignment: Mapping[str, Any], fixed_cell: bool = False, lattice: Lattice | None = None,
                 statistics: Sequence[str] = ("mean",)) -> DensityPlan:
    """Return the plan of densities over frames.

    Parameters
    ----------
    structure : Structure
        Frames are fitted onto its positions, which also determine the lattice.
    frames : Frames
    counted : CountedAtoms
    options : DensityOptions, optional
        Without a padding the lattice covers the periodic cell; with one, or with 5 A in an open boundary, it is around
        the group.
    alignment : mapping
        Arguments of :meth:`vmdpotential.frames.whole.FrameAlignment.of`: ``group``, ``name``, and ``rotate``. With a
        rotation the boundary is open.
    fixed_cell : bool
        Whether the structure's cell replaces those of the frames.
    lattice : Lattice, optional
        The lattice; it replaces the one that the options describe.
    statistics : sequence of str
        Any of ``mean``, ``std`` and ``sem``.

    Raises
    ------
    UsageError
        For a rotation in a periodic boundary, a lattice around no atoms, or relative densities without a bulk density
        or a periodic cell.
    InputError
        For frames of other atoms, or without a cell.
    MemoryPlanError
        When the map does not fit into memory.
    """
    options = options or DensityOptions()
    rotate = bool(alignment.get("rotate"))
    if rotate and options.boundary == "periodic":
        raise UsageError("motion", "a periodic cell is not rotated: its images would stay where they are while its "
                         "atoms turn", "translate only, or leave out {boundary}", value="rotation")
    work = Densities.of(
        structure, frames, {**alignment, "rotate": rotate}, lattice, spacing=options.spacing, padding=options.padding,
        around=structure.positions[counted.rows], boundary=options.boundary, fixed_cell=fixed_cell, counted=counted,
        width=options.smear, engine=get_engine(options.engine).name)
    lattice, numbers = work.lattice, frames.numbers()
    if work.cell is None and work.fixed is not None and work.alignment is not None:
        _warn_of_corners(lattice, work.fixed)
    if counted.unit == "relative" and options.bulk is None and work.cell is None:
        raise UsageError("bulk", "a bulk density is needed for relative densities without a periodic cell",
                         "give {bulk 0.0334}, that of water molecules in 1/A^3, or choose another {unit}")
    memory.require((work.node_bytes + 40) * lattice.size, f"a density on {' x '.join(map(str, lattice.shape))} points",
                   "use a larger {spacing}")
    return DensityPlan(work=work, numbers=numbers, size=max(1, len(numbers) // MIN_STATISTICS_BLOCKS),
                       name=options.atoms,
                       inputs=(*structure.sources, frames.name), statistics=tuple(statistics), bulk=options.bulk)


def _warn_of_corners(lattice: Lattice, cell: Cell) -> None:
    """Warn if corners of the lattice are farther from its centre than molecules, each placed once, can be."""
    half = float(np.linalg.norm(lattice.last - lattice.origin)) / 2
    least = float(np.linalg.norm(cell.reduced, axis=1).min()) / 2
    if half > least:
        log.warning("the corners of the map are up to %.3g A from its centre, but each molecule is placed once, at its "
                    "image nearest to the fitted atoms (%.3g A at most): densities beyond are too low", half, least)


@dataclass(frozen=True, eq=False)
class MeanDensity:
    """Density over frames, with its errors.

    Parameters
    ----------
    grids : mapping
        Maps by their names, ``mean``, ``std`` and ``sem``.
    frames : int
        Number of frames.
    blocks : tuple of int
        Number of frames in each block.
    total : float
        Mean over frames of the counted quantity on the whole lattice: atoms, u, e, electrons, or occupied nodes.
    bulk : float or None
        Density that relative densities are divided by, in the unit of the quantity.
    cell, cell_deviation : (3, 3) float64 or None
        Mean of the cell vectors, A, and their standard deviation.
    error : float or None
        Root mean square of the standard error over the map.
    voxel : float
        Mean volume of a voxel, A^3.
    no_error : str
        Why there is no standard error; empty if there is one.
    """

    grids: Mapping[str, Grid]
    frames: int
    blocks: tuple[int, ...]
    total: float
    bulk: float | None
    cell: Floats | None
    cell_deviation: Floats | None
    error: float | None
    voxel: float
    no_error: str
