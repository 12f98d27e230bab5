"""Histograms of distances, with the kernels of distances.cu."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats, Integers
from vmdpotential.engines import Engine
from vmdpotential.errors import UsageError
from vmdpotential.kernels.launch import KernelFile
from vmdpotential.molecule.cell import Cell

KERNELS = KernelFile(Path(__file__).with_name("distances.cu"))

#: Number of cells along the reach, and smallest mean number of atoms in a cell.
PARTS, FEWEST = 2, 0.5

#: Largest mean number of atoms in a cell, and number of pairs in a task, which takes a tenth of a second.
MOST_IN_CELL, PART = 500, 1e8

#: Number of elements that keep a GPU busy, threads of a block that computes one, and most threads of a CPU.
BLOCKS, BLOCK_THREADS, MOST_THREADS = 16384, 128, 1024

#: Number of atoms that a thread takes at a time.
ATOMS_AT_ONCE = 10_000


def count_distances(engine: Engine, positions: Floats, others: Floats | None, cell: Cell | None, reach: float,
                    bins: int) -> Integers:
    """Return the number of pairs (bins,) in each of `bins` equal ranges of distance from 0 to `reach` (A).

    Pairs are those of positions (N, 3) and others (M, 3); without `others`, each pair of positions counts once. A
    distance of exactly 0 counts, and the upper end of a range belongs to the next one. Distances are float64 on a CPU,
    float32 on a GPU. Every image within reach counts, however short the cell's vectors are, also those of the atom
    itself, each pair of them once.

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
        basis = np.diag(np.maximum(extent, 1e-6 * reach))
    else:
        basis = np.ascontiguousarray(cell.vectors if cell.orthogonal else cell.reduced)
    heights = 1 / np.linalg.norm(np.linalg.inv(basis), axis=0)
    shape = _shape(heights, reach, max(map(len, sets)))
    rows = _rows(basis, heights, shape, reach, others is None, cell is not None)
    count = int(shape.prod())
    # the rows around a cell are divided where there are few cells, and where many images make the work of a cell long,
    # because Ctrl-C only acts between tasks
    pairs = len(sets[0]) * len(sets[-1]) * 4 / 3 * np.pi * reach**3 / abs(np.linalg.det(basis))
    parts = min(len(rows), max(1 + int(pairs / count / PART), BLOCKS // count))
    elements = count * parts
    workers = engine.team_size((MOST_THREADS, 1))
    grain = max(1, min(elements // (8 * workers), int(PART * elements / max(pairs, 1))))
    with engine.room(8 * bins + rows.nbytes + 52 * sum(map(len, sets)) + 24 * count * len(sets)):
        held = [_sorted(engine, p, basis, low, shape, cell is not None) for p in sets]
        names = (("px", "py", "pz", "first_i"), ("x", "y", "z", "first_j"))
        values: dict[str, Any] = {name: array for n, table in zip(names, (held[0], held[-1]), strict=True)
                                  for name, array in zip(n, table, strict=True)}
        counts = engine.zeros(bins, np.int64)
        engine.launch(KERNELS["count_distances"], (elements, elements * BLOCK_THREADS), "distances", grain, **values,
                      rows=rows, row_count=len(rows), parts=parts, counts=counts, shape=shape, bins=bins, basis=basis,
                      low=low, scale=bins / reach, periodic=cell is not None, alone=others is None)
        total: Integers = engine.to_host(counts)
    return total


def _shape(heights: Floats, reach: float, atoms: int) -> Integers:
    """Return the number of cells along each vector: :data:`PARTS` along the reach, unless most would be empty."""
    shape = np.maximum(np.cbrt(atoms / MOST_IN_CELL), np.maximum(1, np.floor(heights * (PARTS / reach)))) // 1
    while shape.prod() > max(1, atoms / FEWEST):
        shape = np.maximum(1, shape // 2)
    return np.asarray(shape, np.int64)


def _sorted(engine: Engine, positions: Floats, basis: Floats, low: Floats, shape: Integers,
            periodic: bool) -> tuple[Any, ...]:
    """Return x, y and z of the atoms sorted by cell, and the first atom of each cell, in arrays of the engine."""
    atoms, count = len(positions), int(shape.prod())
    cells, counts = engine.empty(atoms, np.int32), engine.zeros(count, np.int64)
    x, y, z = (engine.empty(atoms, np.float64) for _ in range(3))
    given = {"positions": engine.array(np.ascontiguousarray(positions)), "cells": cells, "counts": counts, "x": x,
             "y": y, "z": z, "basis": basis, "inverse": np.linalg.inv(basis), "low": low, "shape": shape,
             "wraps": periodic}
    engine.launch(KERNELS["place_in_cells"], atoms, "distances", ATOMS_AT_ONCE, following=None, **given)
    first = np.zeros(count + 1, np.int64)
    np.cumsum(engine.to_host(counts), out=first[1:])
    engine.launch(KERNELS["sort_by_cells"], atoms, "distances", ATOMS_AT_ONCE,
                  following=engine.array(first[:-1].copy()), **given)
    return x, y, z, engine.array(first)


def _rows(basis: Floats, heights: Floats, shape: Integers, reach: float, half: bool,
          periodic: bool) -> NDArray[np.int32]:
    """Return the rows of cells in reach of a cell; with `half`, one of each two opposite rows, and half of its own."""
    most = np.ceil(np.minimum(reach * shape / heights, np.inf if periodic else shape - 1)).astype(np.int64)
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
    return np.array(results, np.int32)

