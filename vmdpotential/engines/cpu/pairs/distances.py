"""Histograms of distances on the CPU, with the kernel of pairs/distances.cu."""

from __future__ import annotations

from collections import deque
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cpu import cells
from vmdpotential.errors import UsageError
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, call
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

KERNELS = KernelFile(Path(__file__).parents[3] / "pairs" / "distances.cu")

#: Number of distances that the kernel computes before it counts them.
BUFFER = 1024

#: Number of cells along the reach, and smallest mean number of atoms in a cell.
PARTS, FEWEST = 2, 0.5

#: Largest mean number of atoms in a cell, and number of pairs in a task, which takes a tenth of a second.
MOST_IN_CELL, PART = 2000, 1e8


def count_distances(positions: Floats, others: Floats | None, cell: Cell | None, reach: float,
                    bins: int) -> Integers:
    """Return the number of pairs (bins,) in each range of distance; see :class:`vmdpotential.engines.Engine`.

    Distances are float64, and the upper end of a range belongs to the next one. Every image within reach counts,
    however short the cell's vectors are, also those of the atom itself, each pair of them once.

    Raises
    ------
    UsageError
        For positions that are not finite, or a range that is not positive.
    """
    if not 0 < reach < np.inf or bins < 1:
        raise UsageError("range", "of distances must be above 0", value=f"{reach:g}")
    sets = [np.asarray(p, np.float64).reshape(-1, 3) for p in ([positions] if others is None else [positions, others])]
    if not all(np.isfinite(p).all() for p in sets):
        raise UsageError("positions", "are not all finite")
    if min(map(len, sets)) == 0:
        return np.zeros(bins, np.int64)
    low = np.zeros(3)
    if cell is None:
        low = np.min([p.min(0) for p in sets], 0)
        extent = np.max([p.max(0) for p in sets], 0) - low
        basis = np.diag(np.maximum(extent, reach))
    else:
        basis = np.ascontiguousarray(cell.vectors if cell.orthogonal else cell.reduced)
    heights = 1 / np.linalg.norm(np.linalg.inv(basis), axis=0)
    shape = _shape(heights, reach, max(map(len, sets)))
    tables = [_sorted(p, basis, low, shape, cell is not None) for p in sets]
    rows = _rows(basis, heights, shape, reach, others is None)
    count = int(shape.prod())
    # if many images make the work of a cell long, its rows are divided too, because Ctrl-C only acts between tasks
    pairs = len(sets[0]) * len(sets[-1]) * 4 / 3 * np.pi * reach**3 / abs(np.linalg.det(basis))
    divided = np.array_split(rows, min(len(rows), 1 + int(pairs / count / PART)))
    total_parts = count * len(divided)
    workers = min(threads.count(), total_parts)
    free = deque(np.zeros((4, bins + 1), np.int64) for _ in range(workers))
    all_counts = list(free)

    names = (("px", "py", "pz", "first_i"), ("x", "y", "z", "first_j"))
    fixed: dict[str, Any] = {name: array for n, table in zip(names, (tables[0], tables[-1]), strict=True)
                             for name, array in zip(n, table, strict=True)}
    fixed |= {"shape": shape, "basis": basis, "periodic": cell is not None, "alone": others is None,
              "scale": bins / reach, "bins": bins}

    def task(first: int, last: int) -> None:
        result = free.pop()
        while first < last:
            part, at = divmod(first, count)
            stop = min(last, (part + 1) * count)
            call(KERNELS["count_distances"], at, at + stop - first, **fixed, rows=divided[part],
                 row_count=len(divided[part]), places=np.empty(BUFFER, np.int32), counts=result)
            first = stop
        free.append(result)

    grain = max(1, count // (8 * workers)) if len(divided) == 1 else 1
    threads.run(task, total_parts, "distances", grain)
    total: Integers = np.sum(all_counts, axis=(0, 1))[:bins]
    return total


def _shape(heights: Floats, reach: float, atoms: int) -> Integers:
    """Return the number of cells along each vector: :data:`PARTS` along the reach, unless most would be empty."""
    shape = np.maximum(np.cbrt(atoms / MOST_IN_CELL), np.maximum(1, np.floor(heights * (PARTS / reach)))) // 1
    while shape.prod() > max(1, atoms / FEWEST):
        shape = np.maximum(1, shape // 2)
    return np.asarray(shape, np.int64)


def _sorted(positions: Floats, basis: Floats, low: Floats, shape: Integers, periodic: bool) -> tuple[Any, ...]:
    """Return x, y and z of the atoms sorted by cell, and the first atom of each cell."""
    fraction = (positions - low) @ np.linalg.inv(basis)
    if periodic:
        whole = np.floor(fraction)
        positions, fraction = positions - whole @ basis, fraction - whole
    place = np.clip((fraction * shape).astype(np.int64), 0, shape - 1)
    key = (place[:, 0] * shape[1] + place[:, 1]) * shape[2] + place[:, 2]
    count = int(shape.prod())
    order = cells.order(key, count)
    start = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(key, minlength=count), out=start[1:])
    return (*np.ascontiguousarray(positions[order].T), start)


def _rows(basis: Floats, heights: Floats, shape: Integers, reach: float, half: bool) -> Integers:
    """Return the rows of cells in reach of a cell; with `half`, one of each two opposite rows, and half of its own."""
    most = np.ceil(reach * shape / heights).astype(np.int64)
    steps = [np.arange(-m, m + 1) for m in most]
    gap = [np.maximum(np.abs(s) - 1, 0) * h / n for s, h, n in zip(steps, heights, shape, strict=True)]
    orthogonal = np.count_nonzero(basis) == 3
    results = []
    for (a, gap_a), (b, gap_b) in product(zip(steps[0], gap[0], strict=True), zip(steps[1], gap[1], strict=True)):
        if half and (a, b) < (0, 0):
            continue
        # gaps along orthogonal vectors add as squares; otherwise the largest gap is a lower bound of the distance
        nearest = np.sqrt(gap_a**2 + gap_b**2 + gap[2]**2) if orthogonal else np.maximum(max(gap_a, gap_b), gap[2])
        near = steps[2][nearest < reach]
        if half and a == 0 == b:
            near = near[near >= 0]
        if len(near):
            results.append((a, b, near[0], near[-1]))
    return np.array(results, np.int64)

