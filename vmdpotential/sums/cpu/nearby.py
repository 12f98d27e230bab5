"""Sums over atoms within a cutoff of arbitrary points on the CPU, in linear time, and over all atoms with the field."""

from __future__ import annotations

import numpy as np

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.grid.lattice import coordinate_bounds
from vmdpotential.interactions import SOFT_CORE, Bound
from vmdpotential.interactions.compiled import radial_arguments
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import launch_kernel
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums import cells
from vmdpotential.sums.cpu.points import KERNELS, columns

#: Cells per cutoff length: finer ones fit the sphere better, coarser ones give longer ranges of atoms; 1 and 2 are
#: fastest.
CELLS_PER_CUTOFF = 2

#: Number of points in one task of a thread.
GRAIN = 1024

#: Number of atoms that kernels read beyond the last one.
PADDING = 8

#: Ratio of atoms to points above which images of the points are made instead of images of the atoms.
ATOMS_PER_POINT = 4


def cutoff_at_points(points: Floats, positions: Floats, charges: Floats, interaction: Bound,
                     cell: Cell | None = None, field: bool = False) -> Floats:
    """Return the sum over the atoms within the cutoff, and over all their periodic images if there is a cell.

    Parameters
    ----------
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    interaction : Bound
        Interaction with a cutoff of any length.
    cell : Cell or None
    field : bool
        Whether the field is summed too.

    Returns
    -------
    (1 or 4, P) float64
        Potential, e/A, and field, e/A^2, exact to rounding. An atom nearer than 0.01 A to a point counts as at that
        distance, without field.
    """
    cutoff = interaction.cutoff
    assert cutoff is not None
    nothing = np.zeros((4 if field else 1, len(points)))
    if not len(points) or not len(positions):
        return nothing
    if cell is not None:
        compact = cell if cell.orthogonal else Cell(cell.reduced)  # fewer images are in its bounding box
        if ATOMS_PER_POINT * len(points) < len(positions):
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
        return nothing
    return _sum_in_cells(points, positions, charges, interaction, cells.sort(positions, cutoff, CELLS_PER_CUTOFF),
                         cutoff, field, "pairs at points", GRAIN)


def field_at_points(points: Floats, positions: Floats, charges: Floats, interaction: Bound) -> Floats:
    """Return potential and field, (4, P), of all atoms, without images.

    Parameters are those of :func:`cutoff_at_points`. An atom nearer than 0.01 A to a point contributes no field.
    """
    grain = max(1, min(10**6 // max(1, len(positions)), len(points) // threads.count()))
    return _sum_in_cells(points, positions, charges, interaction, cells.single_cell(len(positions)), np.inf, True,
                         "field at points", grain)


def _sum_in_cells(points: Floats, positions: Floats, charges: Floats, interaction: Bound, of: cells.Cells,
                  cutoff: float, field: bool, label: str, grain: int) -> Floats:
    """Return the potential of atoms within the cutoff, and with `field` the field, (1 or 4, P)."""
    scaled = interaction.scaled()
    out = np.zeros((4 if field else 1, len(points)))
    (px, py, pz), (x, y, z) = columns(points - of.low), columns(positions[of.order] - of.low, PADDING)
    charge = np.zeros(len(x))
    charge[: len(positions)] = charges[of.order]
    launch_kernel(KERNELS["sum_near_points"], len(points), label, grain, px=px, py=py, pz=pz, point_count=len(points),
                  x=x, y=y, z=z, q=charge, start=of.start, bins=of.shape, size=of.side, field=field,
                  soft2=SOFT_CORE**2, cutoff2=cutoff**2, out=out,
                  **radial_arguments(scaled.program, scaled.values, field))
    out *= scaled.factor
    out[1:] *= -1  # the gradient
    return out


def _by_images_of_points(points: Floats, positions: Floats, charges: Floats, interaction: Bound, cell: Cell,
                         field: bool) -> Floats:
    """Return the sum over images of the points instead of images of the atoms, which is the same."""
    cutoff = interaction.cutoff
    assert cutoff is not None
    positions = cell.wrap(positions)
    low, high = coordinate_bounds(positions)
    memory.require(int(150 * len(points) * cell.images_near(low, high, cutoff)),
                   f"a cutoff of {cutoff:g} A with periodic images of {len(points)} points", "use a shorter {cutoff}")
    images, index = cell.images_in_box(points, low - cutoff, high + cutoff)
    values = cutoff_at_points(images, positions, charges, interaction, None, field)
    return np.stack([np.bincount(index, row, len(points)) for row in values])
