"""Mean potential over frames for maps whose sums do not fit into memory: all frames for one slab after another.

The trajectory is read once for each slab, which takes little time compared with the sums over its charges. A block's
result has the size of a slab, so that blocks are kept, resumed and computed by other processes like those of smaller
maps. Means and deviations are written as soon as a slab is done. Standard errors need the correlation of blocks over
the whole map; until then, the deviations of the blocks are in a temporary file without a name, which the system deletes
when the process ends.
"""

from __future__ import annotations

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
from vmdpotential.frames.average import Average, AveragePlan, CommonProperties, node_bytes
from vmdpotential.frames.statistics import BlockMean, Moments
from vmdpotential.frames.task import merge_blocks
from vmdpotential.grid.lattice import Lattice
from vmdpotential.grid.stored import StoredGrid
from vmdpotential.sums.slabs import Sink


def parts_of(planning: AveragePlan) -> Iterator[tuple[int, AveragePlan]]:
    """Yield the first plane and the planning of each slab; plans of slabs are as accurate as that of the whole map.

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


def average_in_slabs(planning: AveragePlan, compute: Callable[[int, AveragePlan], Iterable[Arrays]],
                     sinks: Mapping[str, Sink], folder: Path) -> Average:
    """Return the average over frames; the values of its maps are not kept in memory but passed to `sinks`.

    Parameters
    ----------
    planning : AveragePlan
        With `planes` > 0.
    compute : callable
        Function of the number of a slab and its planning that returns the results of its blocks.
    sinks : mapping
        One sink for each map of :data:`vmdpotential.frames.average.STATISTICS`; that of the standard error is not begun
        if there are too few frames for one.
    folder : Path
        Folder of the temporary file.
    """
    result: list[_Slab] = []
    lattice = planning.lattice
    with tempfile.TemporaryFile(dir=folder) as waiting, progress.parts(
            "average in slabs", -(-lattice.shape[2] // planning.planes)) as done:
        for number, (start, part) in enumerate(parts_of(planning)):
            results, first = compute(number, part), planning if number == 0 else None
            result.append(_slab(first, start, part, results, sinks, waiting))
            done()
        sampled = BlockMean.of_samples([each.sampled for each in result])
        common = CommonProperties.of(planning, sampled, result[0].cells)
        factors = sampled.factors()
        if factors is not None and "sem" in sinks:
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
    """Data kept of a slab: means at the sample, cells, and sums over nodes of squared deviations."""

    sampled: BlockMean
    cells: Moments
    between: float
    deviation: float


def _slab(first: AveragePlan | None, start: int, part: AveragePlan, results: Iterable[Arrays],
          sinks: Mapping[str, Sink], waiting: IO[bytes]) -> _Slab:
    """Pass the maps of a slab to their sinks, and return what is needed later; its maps do not stay in memory."""
    merged = merge_blocks(part.sums(), results)
    blocks, cells = merged["map"], merged["cells"]
    if first is not None:
        lattice = CommonProperties.of(first, blocks, cells).lattice  # the mean cell is that of every slab
        for name in set(sinks) - {"sem"}:
            sinks[name].begin(lattice)
    sinks["mean"].put(start, _single(blocks.mean)[None])
    deviation = 0.0
    if part.work.spread:
        values = blocks.deviation()
        deviation = float(np.vdot(values, values))
        if "std" in sinks:
            sinks["std"].put(start, _single(values)[None])
    if "sem" in sinks:
        np.sqrt(blocks.between).astype(np.float32).tofile(waiting)
    return _Slab(BlockMean.of_samples([blocks]), cells, float(blocks.between.sum()), deviation)


def _single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # sinks check for infinite values
        return values.astype(np.float32)


def _put_errors(waiting: IO[bytes], sink: Sink, lattice: Lattice, planes: int, factor: float) -> None:
    """Pass standard errors to their sink; the file holds the roots of the sums of squares between blocks."""
    waiting.seek(0)
    sink.begin(lattice)
    nx, ny, nz = lattice.shape
    for start in range(0, nz, planes):
        count = min(planes, nz - start)
        roots = np.fromfile(waiting, np.float32, nx * ny * count).reshape(1, nx, ny, count)
        sink.put(start, roots * np.float32(factor))
