"""Mean potential over frames of maps whose sums do not fit into memory: all frames for one slab after another.

The trajectory is read once for each slab, which costs little next to the sums over its charges; a block's result has
the size of a slab, so that blocks are kept, resumed and computed by other processes as those of smaller maps. Means and
deviations go to their files at once. Standard errors follow from the correlation of the blocks over the whole map: what
they are made of waits in a file without a name, which ends with the process.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.engines import get_engine
from vmdpotential.execution.work import Arrays
from vmdpotential.frames.average import Average, Common, MeanMap, Planning, collect, node_bytes
from vmdpotential.frames.statistics import TOO_SHORT, BlockMean, Moments
from vmdpotential.grid.lattice import Lattice
from vmdpotential.grid.stored import StoredGrid
from vmdpotential.methods.slabs import Sink

log = logging.getLogger(__name__)


def parts_of(planning: Planning) -> Iterator[tuple[int, Planning]]:
    """Yield the first plane and the planning of each slab, with plans as good as that of the whole map.

    Raises
    ------
    MemoryPlanError
        When the sums of a slab do not fit into memory.
    """
    work, request, lattice = planning.work, planning.map.request, planning.lattice
    indices = np.stack(np.unravel_index(work.sample, lattice.shape), axis=1)
    for start in range(0, lattice.shape[2], planning.planes):
        stop = min(start + planning.planes, lattice.shape[2])
        part = lattice.slab(start, stop, 2)
        asked = replace(request, target=part, planes=None)
        if work.plan.error is not None:
            asked = asked.with_error(min(request.error, work.plan.error))
        plan = work.method.plan(asked, get_engine(work.engine))
        memory.require(node_bytes(planning.size, planning.piece, work.spread) * part.size + plan.estimate.bytes,
                       "the sums over frames of a slab of the map", "use a larger {spacing}")
        here = indices[(indices[:, 2] >= start) & (indices[:, 2] < stop)] - [0, 0, start]
        sample = np.ravel_multi_index(tuple(here.T), part.shape)
        yield start, replace(planning, work=replace(work, request=asked, plan=plan, sample=sample), planes=0)


def average_in_slabs(planning: Planning, compute: Callable[[int, Planning], Iterable[Arrays]],
                     sinks: Mapping[str, Sink], folder: Path) -> Average:
    """Return what the frames amount to; its maps go to files as they are made, and are here without values.

    Parameters
    ----------
    planning : Planning
        With planes.
    compute : callable
        Returns the results of the blocks of a slab, by its number and its planning.
    sinks : mapping
        What takes each map of :data:`vmdpotential.frames.average.STATISTICS`; that of an error is not begun where the
        frames are too few for one.
    folder : Path
        For the file without a name.
    """
    result: list[_Slab] = []
    lattice = planning.lattice
    with tempfile.TemporaryFile(dir=folder) as waiting, progress.parts(
            "average in slabs", -(-lattice.shape[2] // planning.planes)) as done:
        for number, (start, part) in enumerate(parts_of(planning)):
            results, first = compute(number, part), planning if number == 0 else None
            result.append(_slab(first, start, part.work, results, sinks, waiting))
            done()
        sampled = BlockMean.of_samples([each.sampled for each in result])
        variances = [each.variance for each in result if each.variance is not None]
        common = Common.of(planning, sampled, result[0].cells,
                           np.concatenate(variances) if len(variances) == len(result) else None)
        factors = sampled.factors()
        if factors is None:
            log.warning("%s; its map is not written", TOO_SHORT)
        elif "sem" in sinks:
            _put_errors(waiting, sinks["sem"], common.lattice, planning.planes, factors[0])
    names = [name for name in planning.statistics if name in sinks and (name != "sem" or factors is not None)]
    medium, root = planning.map.medium, float(np.sqrt(sum(each.between for each in result) / lattice.size))
    deviation = float(np.sqrt(sum(each.deviation for each in result) / lattice.size)) if planning.work.spread else None
    grids = {name: StoredGrid.described(
        common.lattice, planning.map.options.unit, medium.temperature, medium.dielectric, common.provenance_of(name))
        for name in names}
    error, interval = (None, None) if factors is None else (factors[0] * root, factors[1] * root)
    return common.average(planning, grids, error, deviation, interval)


class _Slab(NamedTuple):
    """What stays of a slab: means at the sample, cells, variance at the sample; sums of squares over its nodes."""

    sampled: BlockMean
    cells: Moments
    variance: NDArray[np.float64] | None
    between: float
    deviation: float


def _slab(first: Planning | None, start: int, work: MeanMap, results: Iterable[Arrays], sinks: Mapping[str, Sink],
          waiting: IO[bytes]) -> _Slab:
    """Pass the maps of a slab on, and return what else is needed; nothing of its size stays in memory."""
    blocks, cells, variance = collect(work, results)
    if first is not None:
        lattice = Common.of(first, blocks, cells, None).lattice  # the mean cell is that of every slab
        for name in set(sinks) - {"sem"}:
            sinks[name].begin(lattice)
    sinks["mean"].put(start, _single(blocks.mean)[None])
    deviation = 0.0
    if work.spread:
        values = blocks.deviation()
        deviation = float(np.vdot(values, values))
        if "std" in sinks:
            sinks["std"].put(start, _single(values)[None])
    if "sem" in sinks:
        np.sqrt(blocks.between).astype(np.float32).tofile(waiting)
    return _Slab(BlockMean.of_samples([blocks]), cells, variance, float(blocks.between.sum()), deviation)


def _single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # who takes it looks for infinite values
        return values.astype(np.float32)


def _put_errors(waiting: IO[bytes], sink: Sink, lattice: Lattice, planes: int, factor: float) -> None:
    """Pass standard errors on, of the roots of what varies between blocks."""
    waiting.seek(0)
    sink.begin(lattice)
    nx, ny, nz = lattice.shape
    for start in range(0, nz, planes):
        count = min(planes, nz - start)
        roots = np.fromfile(waiting, np.float32, nx * ny * count).reshape(1, nx, ny, count)
        sink.put(start, roots * np.float32(factor))
