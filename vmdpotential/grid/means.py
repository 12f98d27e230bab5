"""The mean of a map over planes across an axis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Grid
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]

#: A, by which a cell's corners may miss a plane: what is left of angles that a file rounds.
_LEVEL = 0.05
#: Planes of corners in the height of a cell's longest vector, at most; a truncated octahedron has three.
_MOST_PARTS = 6


def mean_over_planes(grid: Grid, axis: int) -> tuple[Floats, Floats]:
    """Return coordinates (n,) in A along an axis and the mean (n,) of the map over the planes across it.

    Where the map knows its cell, and that is slanted or turned, the mean is over a period of the plane.

    Raises
    ------
    UsageError
        When planes across the axis have no period in the cell.
    """
    where, cell = grid.lattice.axes()[axis], grid.provenance.cell
    periodic = None if cell is None else Cell(np.array(cell))
    if periodic is None or periodic.orthogonal:
        mean, others = np.zeros(len(where)), tuple(d for d in range(3) if d != axis)
        for start, values in grid.slabs():
            part = slice(start, start + values.shape[2]) if axis == 2 else slice(None)
            mean[part] += values.sum(axis=others, dtype=np.float64)
        return where, mean * len(where) / grid.lattice.size
    step = _repeat(periodic, axis)
    if step is None:
        name = "xyz"[axis]
        possible = [f"{{profile {other}}}" for d, other in enumerate("xyz") if _repeat(periodic, d) is not None]
        cure = " or ".join(possible) or "a map of the structure turned, with two vectors of its cell across an axis"
        raise UsageError("profile", f"planes across {name} have no period in the map's slanted cell, so that each has "
                         "the mean of the whole map", f"use {cure}", value=name)
    return where, _mean_over_periods(grid, periodic, axis, step)


def _repeat(cell: Cell, axis: int) -> float | None:
    """Return the distance, A, between planes of cell corners across an axis, None where the corners fill it densely.

    Only where the heights of a, b and c are small multiples of one length do two combinations of
    the three lie in the plane.
    """
    heights = cell.vectors[:, axis]
    for parts in range(1, _MOST_PARTS + 1):
        step = float(np.abs(heights).max()) / parts
        if (np.abs(heights - np.rint(heights / step) * step) < _LEVEL).all():
            return step
    return None


def _mean_over_periods(grid: Grid, cell: Cell, axis: int, step: float) -> Floats:
    """Return the mean (n,) over the planes across an axis, which repeat every `step` A, all parts of a period alike.

    A part of a plane may have images in the same and in others of the planes that repeat it. A node counts with
    its share of the weights of all its images in the map's box. Weights fall evenly from the middle of the box to
    0 one step beyond its edges: where they jumped, the error would be of first order in the spacing.
    """
    lattice, x = grid.lattice, grid.lattice.axes()[axis]
    size = lattice.last - lattice.origin + 2 * lattice.spacing
    shifts = cell.images_in_box(np.zeros((1, 3)), -size, size)[0]
    climb = np.rint(shifts[:, axis] / step)

    def weight(d: int, moved: Floats) -> Floats:
        node = np.arange(lattice.shape[d]) + moved[:, None] / lattice.spacing[d]
        weights: Floats = np.maximum(np.minimum(node + 1, lattice.shape[d] - node), 0)
        return weights

    p, q = (d for d in range(3) if d != axis)
    over_plane = "xyz,n{}{}->n{}".format(*("xyz"[d] for d in (p, q, axis)))
    own = weight(p, np.zeros(1)).T * weight(q, np.zeros(1))
    below, above = (np.floor(height / step + 1e-6) for height in (x - x[0], x[-1] - x))
    mean = np.empty(len(x))
    for count in np.unique(below + above + 1):  # of planes in the box; it differs by one at most
        shares = []
        for plane in range(int(count)):
            inside = (plane + climb >= 0) & (plane + climb < count)
            shares.append(own / (weight(p, shifts[inside, p]).T @ weight(q, shifts[inside, q])))
        weights = np.stack(shares)
        sums = np.zeros((len(weights), len(x)))
        for start, values in grid.slabs():
            part = slice(start, start + values.shape[2])
            if axis == 2:
                sums[:, part] = np.einsum(over_plane, values, weights)
            else:
                sums += np.einsum(over_plane, values, weights[:, :, part])
        chosen = below + above + 1 == count
        lowest = x[chosen] - below[chosen] * step
        of_planes = [np.interp(lowest + n * step, x, row) for n, row in enumerate(sums)]
        mean[chosen] = np.sum(of_planes, axis=0) / np.sum(shares)
    return mean
