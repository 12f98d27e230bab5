"""Sums over atoms within a cutoff of arbitrary points on the CPU, in linear time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.compiling import build, threads
from vmdpotential.engines import SOFT_CORE
from vmdpotential.engines.cpu import cells
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import bounds
from vmdpotential.interactions import Bound
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]

#: Cells per cutoff length: finer ones fit the sphere better, coarser ones give longer ranges of atoms; 1 and 2 are
#: fastest.
CELLS_PER_CUTOFF = 2

#: Number of points in one task of a thread.
GRAIN = 1024

#: Ratio of atoms to points above which images of the points are made instead of images of the atoms.
FEW = 4


def cutoff_at_points(points: Floats, positions: Floats, charges: Floats, interaction: Bound,
                     cell: Cell | None = None, field: Floats | None = None) -> Floats:
    """Return the sum over the atoms within the cutoff, and over all their periodic images if there is a cell.

    Parameters
    ----------
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    interaction : Bound
        Interaction with a cutoff of any length.
    cell : Cell or None
    field : (P, 3) float64, optional
        Filled with the field, e/A^2.

    Returns
    -------
    (P,) float64, e/A
        Potential, exact to rounding. An atom nearer than 0.01 A to a point counts as at that distance, without field.
    """
    cutoff = interaction.cutoff
    if cutoff is None:
        raise UsageError("interaction", f"{interaction} has no cutoff")
    points = np.asarray(points, np.float64).reshape(-1, 3)
    out = np.zeros((1 if field is None else 4, len(points)))
    total: Floats = out[0]
    if field is not None:
        field[:] = 0
    if not len(points) or not len(positions):
        return total
    if cell is not None:
        compact = cell if cell.orthogonal else Cell(cell.reduced)  # fewer images are in its bounding box
        if FEW * len(points) < len(positions):
            return _by_images_of_points(points, positions, charges, interaction, compact, field)
        points = compact.wrap(points)
        low, high = points.min(0) - cutoff, points.max(0) + cutoff
        images = len(positions) * float(np.prod(high - low)) / cell.volume
        memory.require(int(150 * images), f"a cutoff of {cutoff:g} A with {images:.3g} periodic images of atoms",
                       "use a shorter {cutoff} or fewer {atoms}")
        positions, index = compact.images_in_box(positions, low, high)
        charges = charges[index]
    else:
        low, high = points.min(0) - cutoff, points.max(0) + cutoff
        near = ((positions >= low) & (positions <= high)).all(1)
        positions, charges = positions[near], charges[near]
    if not len(positions):
        return total
    sorted_by = cells.sort(positions, cutoff, CELLS_PER_CUTOFF)
    order, low = sorted_by.order, sorted_by.low
    scaled = interaction.scaled()
    kernel = build.load("point_kernel", program=scaled.program, precision="double", masked=interaction.masked,
                        field=field is not None)
    columns = [np.ascontiguousarray(a[:, d]) for a in (points - low, positions[order] - low) for d in range(3)]
    fixed = (*columns, np.ascontiguousarray(charges[order], np.float64), sorted_by.start,
             sorted_by.shape, sorted_by.side, np.array(scaled.values, np.float64), SOFT_CORE**2, cutoff**2, out)
    threads.run(lambda first, last: kernel.within(*fixed, first, last), len(points), "pairs at points", GRAIN)
    out *= scaled.factor
    if field is not None:
        field[:] = -out[1:].T
    return total


def _by_images_of_points(points: Floats, positions: Floats, charges: Floats, interaction: Bound, cell: Cell,
                         field: Floats | None) -> Floats:
    """Return the sum over images of the points instead of images of the atoms, which is the same."""
    cutoff = interaction.cutoff
    assert cutoff is not None
    positions = cell.wrap(positions)
    low, high = bounds(positions)
    memory.require(int(150 * len(points) * cell.images_near(low, high, cutoff)),
                   f"a cutoff of {cutoff:g} A with periodic images of {len(points)} points", "use a shorter {cutoff}")
    images, index = cell.images_in_box(points, low - cutoff, high + cutoff)
    part = None if field is None else np.empty((len(images), 3))
    values = cutoff_at_points(images, positions, charges, interaction, None, part)
    if field is not None and part is not None:
        for d in range(3):
            field[:, d] = np.bincount(index, part[:, d], len(points))
    return np.bincount(index, values, len(points)).astype(np.float64, copy=False)
