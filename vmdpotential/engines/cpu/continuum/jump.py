"""The potential of charges on the edges that a molecule's surface cuts, with the kernels of jump_kernel.py."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.engines.jump import EdgeSum
from vmdpotential.grid.lattice import bounds

Floats = NDArray[np.float64]

#: Largest number of cubes along an axis.
MAX_CUBES = 256

#: Edges that a thread takes at a time.
TOGETHER = 500


def potential_on_edges(work: EdgeSum) -> Floats:
    """Return the potential, its derivatives and its flow (4, E); see :class:`vmdpotential.engines.Engine`."""
    lattice, result = work.lattice, np.empty((4, len(work.share)))
    threads.run(partial(
        build.load("jump_kernel").known, work.inner, work.outer, work.share, work.line, np.array(lattice.shape),
        lattice.origin, lattice.spacing, *in_cubes(work), work.near, result), len(work.share), "surface", TOGETHER)
    return result


def in_cubes(work: EdgeSum) -> tuple[Floats, NDArray[np.int64], Floats, float, NDArray[np.int64]]:
    """Return charges that are not 0 sorted by cubes whose side is at least `near`.

    Positions and charges (N, 4); the index (C + 1,) of the first charge of each cube, with z changing fastest; the
    corner (3,) of the first cube, A; the side of a cube, A; and the number of cubes (3,) along each axis.
    """
    low, high = bounds(work.positions) if len(work.positions) else (np.zeros(3), np.zeros(3))
    side = max(work.near, float((high - low).max()) / MAX_CUBES)
    counts = ((high - low) / side).astype(np.int64) + 1
    starts, charges = np.zeros(counts.prod() + 1, np.int64), np.empty((len(work.charges), 4))
    build.load("jump_kernel").sort(work.positions, work.charges, low, side, counts, starts, charges)
    return charges[: starts[-1]], starts, low, side, counts
