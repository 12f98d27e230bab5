"""The mean of a map over planes across an axis."""

from __future__ import annotations

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Grid
from vmdpotential.molecule.cell import Cell

#: Distance, A, of a cell corner from a plane that is attributed to the rounding of angles in files.
_LEVEL = 0.05
#: Largest number of planes of cell corners per height of the cell vector that extends farthest along the axis; a
#: truncated octahedron has three.
_MOST_PARTS = 6


def mean_over_planes(grid: Grid, axis: int) -> tuple[Floats, Floats]:
    """Return coordinates (n,) in A along an axis and the mean (n,) of the map over the planes across it.

    If the map states its cell, and the cell is triclinic or rotated, the mean is over one period of the plane.

    Raises
    ------
    UsageError
        If planes across the axis are not periodic in the cell.
    """
    coordinates, cell = grid.lattice.axes()[axis], grid.provenance.cell
    periodic = None if cell is None else Cell(np.array(cell))
    if periodic is None or periodic.orthogonal:
        mean, others = np.zeros(len(coordinates)), tuple(d for d in range(3) if d != axis)
        for start, values in grid.slabs():
            part = slice(start, start + values.shape[2]) if axis == 2 else slice(None)
            mean[part] += values.sum(axis=others, dtype=np.float64)
        return coordinates, mean * len(coordinates) / grid.lattice.size
    step = _plane_spacing(periodic, axis)
    if step is None:
        name = "xyz"[axis]
        possible = [f"{{profile {other}}}" for d, other in enumerate("xyz") if _plane_spacing(periodic, d) is not None]
        hint = " or ".join(possible) or "a map of the rotated structure, with two of its cell vectors across an axis"
        raise UsageError("profile", f"planes across {name} are not periodic in the map's triclinic cell, and all have "
                         "the mean of the whole map", f"use {hint}", value=name)
    return coordinates, _mean_over_periods(grid, periodic, axis, step)


def _plane_spacing(cell: Cell, axis: int) -> float | None:
    """Return the distance, A, between planes of cell corners across an axis; None if the planes lie densely.

    Two independent lattice vectors are parallel to a plane only if the components of a, b and c along the axis are
    small multiples of one length.
    """
    heights = cell.vectors[:, axis]
    for parts in range(1, _MOST_PARTS + 1):
        step = float(np.abs(heights).max()) / parts
        if (np.abs(heights - np.rint(heights / step) * step) < _LEVEL).all():
            return step
    return None


def _mean_over_periods(grid: Grid, cell: Cell, axis: int, step: float) -> Floats:
    """Return the mean (n,) over one period of the planes across an axis, where planes `step` A apart are images.

    A point of a plane may have images in the same plane and in others at multiples of `step`. The weight of a node is
    divided by the weights of all its images in the map's box, so that every point of the period counts once. Weights
    decrease linearly from the middle of the box to 0 one node beyond its edges: if they were discontinuous, the error
    would be of first order in the spacing.
    """
    lattice, x = grid.lattice, grid.lattice.axes()[axis]
    size = lattice.last - lattice.origin + 2 * lattice.spacing
    shifts = cell.images_in_box(np.zeros((1, 3)), -size, size)[0]
    plane_shifts = np.rint(shifts[:, axis] / step)

    def weight(d: int, moved: Floats) -> Floats:
        node = np.arange(lattice.shape[d]) + moved[:, None] / lattice.spacing[d]
        weights: Floats = np.maximum(np.minimum(node + 1, lattice.shape[d] - node), 0)
        return weights

    p, q = (d for d in range(3) if d != axis)
    over_plane = "xyz,n{}{}->n{}".format(*("xyz"[d] for d in (p, q, axis)))
    node_weights = weight(p, np.zeros(1)).T * weight(q, np.zeros(1))
    below, above = (np.floor(height / step + 1e-6) for height in (x - x[0], x[-1] - x))
    mean = np.empty(len(x))
    for count in np.unique(below + above + 1):  # images of a plane in the box, two numbers that differ by one at most
        shares = []
        for plane in range(int(count)):
            inside = (plane + plane_shifts >= 0) & (plane + plane_shifts < count)
            shares.append(node_weights / (weight(p, shifts[inside, p]).T @ weight(q, shifts[inside, q])))
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
        plane_sums = [np.interp(lowest + n * step, x, row) for n, row in enumerate(sums)]
        mean[chosen] = np.sum(plane_sums, axis=0) / np.sum(shares)
    return mean
