"""The potential of charges on the edges that a molecule's surface cuts, with the kernels of continuum/jump.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.jump import EdgeSum
from vmdpotential.grid.lattice import bounds
from vmdpotential.kernels.launch import KernelFile, call, launch

Floats = NDArray[np.float64]

KERNELS = KernelFile(Path(__file__).parents[3] / "continuum" / "jump.cu")

#: Largest number of cubes along an axis.
MAX_CUBES = 256

#: Edges that a thread takes at a time.
EDGES_PER_TASK = 500


def potential_on_edges(work: EdgeSum) -> Floats:
    """Return the potential, its derivatives and its flow (4, E); see :class:`vmdpotential.engines.Engine`."""
    lattice, result = work.lattice, np.empty((4, len(work.share)))
    charges, starts, low, side, counts = in_cubes(work)
    launch(KERNELS["find_potential_on_edge"], len(work.share), "surface", EDGES_PER_TASK, inner=work.inner,
           outer=work.outer, share=work.share, line=work.line, charges=charges, starts=starts, out=result,
           shape=lattice.shape, counts=counts, edges=len(work.share), origin=lattice.origin, spacing=lattice.spacing,
           low=low, side=side, near=work.near)
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
    call(KERNELS["sort_charges"], 0, 1, positions=np.ascontiguousarray(work.positions),
         charges=np.ascontiguousarray(work.charges), starts=starts, places=np.empty_like(starts),
         numbers=np.empty(len(work.charges), np.int64), out=charges, counts=counts, count=len(work.charges),
         cubes=len(starts) - 1, low=low, side=side)
    return charges[: starts[-1]], starts, low, side, counts
