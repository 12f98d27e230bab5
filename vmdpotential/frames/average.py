"""Mean potential over the frames of a trajectory, with its spread and its standard error.

One plan is made for the first frame, where its error is also measured, and is run for all frames. The potential is
linear in the charges: if the cell does not change and no standard deviation is requested, the charges of a block of
frames are spread on one mesh, which is transformed once. If the cell changes, nodes stay at the same fractional
coordinates of each frame's cell, and the map is given in the mean cell.

Frames are computed in blocks (:mod:`vmdpotential.execution.blocks`), whose means give the standard error
(:mod:`vmdpotential.frames.statistics`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.arrays import Floats, Integers
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError
from vmdpotential.execution.blocks import FRAMES_LABEL, MIN_BLOCK_FRAMES, piece_size
from vmdpotential.execution.work import Arrays, FrameCost, WorkNeeds
from vmdpotential.frames.gridded import DERIVED_VALUES, frames_text, lattice_in
from vmdpotential.frames.statistics import MIN_STATISTICS_BLOCKS, BlockMean, Moments
from vmdpotential.frames.sums import FrameSum, named_arrays
from vmdpotential.frames.task import FrameTask, MergedSums, TaskPlan
from vmdpotential.frames.whole import FrameAlignment
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.grid.targets import Box
from vmdpotential.io.trajectories.frames import Frame, Frames, periodic_cell, read_ahead
from vmdpotential.maps import MapOptions, MapPlan, build_lattice, choose_cell, plan_map
from vmdpotential.maps.interaction import in_medium, medium_of_sum
from vmdpotential.maps.solute import in_continuum
from vmdpotential.molecule.cell import SAME_CELL, Cell, cell_stretch, same_cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import warn_unused
from vmdpotential.sums import Plan, PotentialMethod, Request
from vmdpotential.sums.machine import expected_seconds
from vmdpotential.sums.slabs import planes_at_once

#: The statistics of the maps of all frames, and their names in reports.
STATISTICS = {"mean": "mean", "std": "standard deviation", "sem": "standard error of the mean"}

#: Number of random lattice points at which the correlation of frames is estimated.
POINTS = 256

#: In an open boundary: margin, A, within which atoms may leave the box of the first frame, and step by which the box
#: grows if they go farther.
MARGIN, GROWTH = 4.0, 8.0


@dataclass(frozen=True, eq=False)
class MeanMap(FrameTask):
    """The mean map of a block of frames; small, picklable, and the same for all blocks.

    Parameters
    ----------
    frames : Frames
    alignment : Alignment
    method : PotentialMethod
    request : Request
        For the first frame's cell, or in an open boundary for the box in which the atoms should stay.
    plan : Plan
    engine : str
    rows : (n,) int64 or None
        Indices of the atoms whose charges make the potential; None for all.
    charges : (n,) float64
        In units in which the sum of q V(r) is the potential.
    own_cells : bool
        Whether each frame has its own cell.
    cell : Cell or None
        Cell of the first frame, used for frames that have none.
    spread : bool
        Whether a map of each single frame is computed: for standard deviations, or because cells change.
    sample : (P,) int64
        Indices into the flattened map at which the correlation of frames is estimated.
    """

    frames: Frames
    alignment: FrameAlignment
    method: PotentialMethod[Any]
    request: Request
    plan: Plan
    engine: str
    rows: Integers | None
    charges: Floats
    own_cells: bool
    cell: Cell | None
    spread: bool
    sample: Integers

    def sums(self) -> Mapping[str, FrameSum]:
        """Return the mean map and the cells."""
        return {"map": BlockMean(self.sample, self.spread), "cells": Moments.none((3, 3))}

    def block(self, numbers: range) -> Arrays:
        """Return the arrays of both; without `spread` the map has its first frame's values at the sample."""
        tally = _Tally(self)
        for done, frame in enumerate(read_ahead(self._aligned(numbers)), 1):
            tally.add(frame.positions if self.rows is None else frame.positions[self.rows], frame.cell)
            progress.report_progress(FRAMES_LABEL, done / len(numbers))
        return tally.arrays()

    def needs(self) -> WorkNeeds:
        """Return the engine, the memory for a frame's map, its sums and a finished result, and the cost."""
        memory = 0  # one map is computed at a time
        if self.plan.concurrent:
            memory = self.plan.estimate.bytes + self.request.lattice.size * (24 + 48 * self.spread)
        return WorkNeeds(self.engine, memory, self._cost if self.frames.portable else None)

    def _cost(self) -> FrameCost:
        """Return the time for a frame and the size of a block's result."""
        size = 8 * self.request.lattice.size * (1 + self.spread)
        seconds = expected_seconds(self.plan.estimate.seconds, get_engine(self.engine))
        return FrameCost(seconds, self.frames.seconds(), size)

    def _aligned(self, numbers: range) -> Iterator[Frame]:
        for frame in self.frames.part(numbers):
            cell = self.cell_of(frame)
            yield frame._replace(positions=self.alignment.align(frame.positions, cell), cell=cell)

    def cell_of(self, frame: Frame) -> Cell | None:
        """Return the cell of a frame."""
        if not self.own_cells:
            return self.cell
        if self.request.cell is None:
            return frame.cell
        assert self.cell is not None
        name = self.frames.name
        cell = periodic_cell(name, frame, self.cell)
        if cell_stretch(self.request.cell, cell) is None:
            raise InputError(
                f"{name}: the cell of frame {frame.number} ({cell}) differs from the first frame's in more than its "
                "lengths along x, y and z, so that the axes of the map would turn with it",
                "choose other {frames}; profiles, and fields at atoms or points, allow cells of any shape")
        return cell

    def plan_for(self, positions: Floats, cell: Cell | None) -> tuple[Plan, int | None]:
        """Return the plan for a frame, and the key under which frames share it; None if it is for this frame alone."""
        planned = self.request.cell
        if planned is None:
            box, other = self.request.charges.box, Box.around(positions)
            beyond = max(np.max(np.subtract(box.low, other.low)), np.max(np.subtract(other.high, box.high)))
            steps = 0 if beyond <= 0 else int(np.ceil(beyond / GROWTH))
            return self._larger(steps), steps
        assert cell is not None
        if same_cell(planned, cell, SAME_CELL):
            return self.plan, 0
        return self.plan.in_cell(cell), None

    def _larger(self, steps: int) -> Plan:
        """Return the plan for a box larger by some steps, with an error no larger than that measured for the first."""
        if not steps:
            return self.plan
        if steps not in self._plans:
            far, charges = GROWTH * steps, self.request.charges
            low, high = ((tuple((np.array(corner) + side * far).tolist()))
                         for corner, side in ((charges.box.low, -1), (charges.box.high, 1)))
            request = replace(self.request, charges=replace(charges, box=Box(low, high)))
            if self.plan.error is not None:
                request = request.with_error(min(request.error, self.plan.error))
            self._plans[steps] = self.method.plan(request, get_engine(self.engine))
        return self._plans[steps]

    @cached_property
    def _plans(self) -> dict[int, Plan]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_plans"}


class _Tally:
    """Running sums over the frames of a block."""

    def __init__(self, work: MeanMap) -> None:
        self.work = work
        self.means: dict[int, Any] = {}
        self.sums: Any = None
        self.first: Floats | None = None
        self.cells = Moments.none((3, 3))
        self.indices = np.stack(np.unravel_index(work.sample, work.request.lattice.shape), axis=1)

    def add(self, positions: Floats, cell: Cell | None) -> None:
        """Add a frame."""
        work = self.work
        plan, shared = work.plan_for(positions, cell)
        if cell is not None:
            self.cells.add(cell.vectors)
        if not work.spread and shared is not None:
            if shared not in self.means:
                self.means[shared] = plan.new_mean()
            self.means[shared].add(positions, work.charges)
            if self.first is None:
                self.first = plan.run(positions, work.charges).at(self.indices)[0]
            return
        result = plan.run(positions, work.charges)
        if self.sums is None:
            self.sums = result.new_sums()
        self.sums.add(result)

    def arrays(self) -> Arrays:
        """Return the result of the block, as :meth:`MeanMap.block` does."""
        parts = [(mean.count, mean.result().values()) for _, mean in sorted(self.means.items())]
        if self.sums is not None:
            parts.append((self.sums.count, self.sums.mean()))
        total = sum(count for count, _ in parts)
        mean = parts[0][1] if len(parts) == 1 else sum(
            count / total * np.asarray(mean, np.float64) for count, mean in parts)
        if self.means:
            sums = {"mean": mean, "first": self.first}
        else:
            m2 = self.sums.variance()
            m2 *= self.sums.count
            sums = {"mean": mean, "m2": m2}
        return named_arrays(total, {"map": sums, "cells": self.cells.arrays})


class DiscardingSink:
    """A :class:`vmdpotential.sums.slabs.Sink` that discards a map, of which only the errors are needed."""

    def begin(self, lattice: Lattice) -> None:
        """Do nothing at the start of a map."""

    def put(self, start: int, maps: NDArray[np.float32]) -> None:
        """Discard a part of the map."""


@dataclass(frozen=True, eq=False)
class AveragePlan(TaskPlan["Average"]):
    """Everything that is needed to compute an average.

    Parameters
    ----------
    map : MapPlan
        Plan of the map of the first frame.
    step : float or None
        Time between frames, ps.
    statistics : tuple of str
        Keys of :data:`STATISTICS`.
    charge : float
        Sum of the charges that make the potential, e.
    planes : int
        Thickness of the slabs in which the map is computed (:mod:`vmdpotential.frames.slabs`), in planes; 0 if it is
        computed at once.
    """

    work: MeanMap
    map: MapPlan
    step: float | None
    statistics: tuple[str, ...]
    charge: float
    planes: int = 0

    @property
    def lattice(self) -> Lattice:
        """Lattice of the map, in the first frame's cell."""
        return self.map.request.lattice

    def result(self, merged: MergedSums) -> Average:
        """Return the average over the frames of the sums."""
        blocks = merged["map"]
        uncertainty = blocks.uncertainty()
        common = CommonProperties.of(self, blocks, merged["cells"])
        error = None if uncertainty is None else uncertainty.error
        maps = {"mean": blocks.mean, "sem": error, "std": blocks.deviation() if self.work.spread else None}
        grids = {}
        for name in self.statistics:
            values = maps[name]
            if values is None:  # the standard error of too few frames
                continue
            with np.errstate(over="ignore"):
                grids[name] = common.grid(self, name, values.astype(np.float32))
            if not np.isfinite(grids[name].values).all():
                raise InputError(
                    f"the {grids[name].provenance.quantity} is too large for a map (3e38 {self.map.options.unit})",
                    "correct the charges, {temperature} or {dielectric}")
        return common.average(self, grids, _rms(error), _rms(maps["std"]),
                              None if uncertainty is None else _rms(uncertainty.interval))


def plan_average(structure: Structure, frames: Frames, options: MapOptions, alignment: Mapping[str, Any], *,
                 statistics: Sequence[str] = ("mean",), fixed_cell: bool = False, lattice: Lattice | None = None,
                 in_slabs: bool = False) -> AveragePlan:
    """Return the plan of a mean over frames.

    Parameters
    ----------
    structure : Structure
        With charges. Frames are fitted onto its positions, which also determine the lattice.
    frames : Frames
    options : MapOptions
        Options of the map of each frame.
    alignment : mapping
        Arguments of :meth:`vmdpotential.frames.whole.FrameAlignment.of`: ``group``, ``name`` and others.
    statistics : sequence of str
        Keys of :data:`STATISTICS`.
    fixed_cell : bool
        Whether the structure's cell replaces those of the frames.
    lattice : Lattice, optional
        Unless given, a lattice over the cell, or in an open boundary around the atoms.
    in_slabs : bool
        Whether a map whose sums do not fit into memory may be computed slab by slab.

    Raises
    ------
    VmdpotentialError
        The errors of :func:`vmdpotential.maps.potential_map`, and those of reading frames.
    """
    options = in_medium(options, structure)
    numbers = frames.numbers()
    opening = list(frames.part(numbers[:2]))
    first = opening[0]
    own_cells = not fixed_cell and first.cell is not None
    frame_cell = first.cell if own_cells else structure.cell
    cell = choose_cell(replace(structure, positions=first.positions, cell=frame_cell), options.summation,
                       options.boundary)
    boundary = "open" if cell is None else "periodic"
    if cell is None and not (own_cells or fixed_cell):
        frame_cell = None  # e.g. the unit cell of a crystal structure, which does not hold for the frames
    medium = medium_of_sum(options)
    if medium.method:
        warn_unused(("tolerance",), "the grid of a mean in a continuum is not made finer; set {spacing}")
    structure, chosen, _ = in_continuum(structure, options.chosen, medium)
    moves = FrameAlignment.of(structure, boundary=boundary, **alignment)
    if lattice is None:
        positions = structure.positions
        if cell is None:
            positions = moves.align(positions, structure.cell if frame_cell is not None else None)
        lattice = build_lattice(structure, positions[chosen], cell, options.spacing, options.padding)
    # in a continuum the molecule is whole and may have been rotated, so that the cell no longer fits it
    aligned = replace(structure, positions=moves.align(first.positions, frame_cell),
                      cell=None if medium.method else frame_cell)
    plan, _ = plan_map(aligned, replace(options, boundary=boundary), lattice=lattice, margin=MARGIN, soon=0.0,
                       sink=DiscardingSink() if in_slabs else None)
    second_cell = opening[-1].cell
    changes = cell is not None and own_cells and second_cell is not None and not same_cell(cell, second_cell, SAME_CELL)
    spread = "std" in statistics or changes
    size, piece = max(1, len(numbers) // MIN_STATISTICS_BLOCKS), max(MIN_BLOCK_FRAMES, piece_size(len(structure)))
    needed = node_bytes(size, piece, spread) * lattice.size + plan.plan.estimate.bytes
    planes = planes_at_once(plan.request, needed) if in_slabs and not medium.method else 0
    if not planes:
        memory.require(needed, "the sums over frames",
                       "use a larger {spacing}, or write .zarr or .mrc, which take the mean in slabs")
    sample = np.unique(np.random.default_rng(2010).integers(0, lattice.size, POINTS))
    rows = None if chosen.all() else np.flatnonzero(chosen)
    work = MeanMap(frames, moves, plan.method, plan.request, plan.plan, plan.engine.name, rows, plan.charges, own_cells,
                   frame_cell, spread, sample)
    step = None
    if len(opening) > 1 and first.time is not None and opening[1].time is not None:
        step = opening[1].time - first.time
    return AveragePlan(work=work, numbers=numbers, size=size, piece=piece, map=plan,
                       step=step if step and step > 0 else None, statistics=tuple(statistics),
                       charge=float(structure.known_charges[chosen].sum()), planes=planes)


def node_bytes(size: int, piece: int, spread: bool) -> int:
    """Return the memory of the sums over frames at each node, in bytes, for blocks of `size` frames in pieces."""
    height = (-(-size // piece)).bit_length() if size > piece else 0  # results of pieces not yet merged
    return 24 + 16 * spread + 16 * height


@dataclass(frozen=True, eq=False)
class Average:
    """Mean potential over frames, with its errors.

    Parameters
    ----------
    grids : mapping
        Maps by their names in :data:`STATISTICS`.
    frames : int
        Number of frames.
    blocks : tuple of int
        Number of frames in each block.
    inefficiency : float or None
        The statistical inefficiency g: of n frames n / g are independent. It is the median over random lattice points;
        None if there are too few blocks.
    step : float or None
        Time between frames, ps.
    error, deviation : float or None
        Root mean squares over the map of the standard error and of the standard deviation, where known.
    cell, cell_deviation : (3, 3) float64 or None
        Mean of the cell vectors, A, and their standard deviation.
    zero : str
        Description of where the potential is zero.
    interval : float or None
        Root mean square over the map of half the width of the 95 % interval.
    no_error : str
        Why there is no standard error; empty if there is one.
    """

    grids: Mapping[str, Grid]
    frames: int
    blocks: tuple[int, ...]
    inefficiency: float | None
    step: float | None
    error: float | None
    deviation: float | None
    cell: Floats | None
    cell_deviation: Floats | None
    zero: str
    interval: float | None = None
    no_error: str = ""

    @property
    def correlation_time(self) -> float | None:
        """Correlation time in frames, (g - 1) / 2."""
        return None if self.inefficiency is None else max(0.0, (self.inefficiency - 1) / 2)


@dataclass(frozen=True, eq=False)
class CommonProperties:
    """Properties shared by all maps of an average, and by all their slabs.

    Parameters
    ----------
    lattice : Lattice
        Lattice in the mean cell.
    counts : tuple of int
        Number of frames in each block.
    provenance : Provenance
    cell, deviation : (3, 3) float64 or None
        Mean and standard deviation of the cell vectors, A.
    no_error : str
        See :class:`Average`.
    """

    lattice: Lattice
    counts: tuple[int, ...]
    provenance: Provenance
    cell: Floats | None
    deviation: Floats | None
    no_error: str

    @classmethod
    def of(cls, planning: AveragePlan, blocks: BlockMean, cells: Moments) -> CommonProperties:
        """Return the properties from the means of blocks, at least at the sample, and the cells."""
        plan, inefficiency = planning.map, blocks.inefficiency()
        no_error = "" if blocks.factors() is not None else blocks.too_short()
        lattice, cell, deviation = planning.lattice, None, None
        if plan.request.cell is not None and cells.count:
            cell, deviation = cells.mean, np.sqrt(cells.variance())
            lattice = lattice_in(lattice, plan.request.cell, Cell(cell))
        provenance = replace(
            plan.provenance, frames=frames_text(planning.numbers[: blocks.count]),
            zero=_zero(plan.request), inefficiency=inefficiency,
            cell=None if cell is None else tuple(cell.reshape(-1).tolist()))
        return cls(lattice, tuple(blocks.counts), provenance, cell, deviation, no_error)

    def provenance_of(self, name: str) -> Provenance:
        """Return the provenance of a map of :data:`STATISTICS`."""
        of = "of the " if name == "std" else ""
        provenance = replace(self.provenance, quantity=f"{STATISTICS[name]} {of}{self.provenance.quantity}",
                             derived=DERIVED_VALUES[name])
        return provenance if name == "mean" else replace(provenance, error=None, error_away=None)

    def grid(self, planning: AveragePlan, name: str, values: NDArray[np.float32]) -> Grid:
        """Return a map of :data:`STATISTICS`."""
        medium = planning.map.medium
        return Grid(self.lattice, values, planning.map.options.unit, medium.temperature, medium.dielectric,
                    self.provenance_of(name))

    def average(self, planning: AveragePlan, grids: Mapping[str, Grid], error: float | None, deviation: float | None,
                interval: float | None) -> Average:
        """Return the average with these maps, and root mean squares over the map."""
        return Average(grids, sum(self.counts), self.counts, self.provenance.inefficiency, planning.step, error,
                       deviation, self.cell, self.deviation, self.provenance.zero, interval, self.no_error)


def _rms(values: Floats | None) -> float | None:
    return None if values is None else float(np.sqrt(np.vdot(values, values) / values.size))


def _zero(request: Request) -> str:
    """Return a description of where the potential is zero."""
    if request.interaction.cutoff is not None:
        return f"farther than {request.interaction.cutoff:g} A from every charge"
    return "mean over the cell" if request.neutralised else "far from all charges"
