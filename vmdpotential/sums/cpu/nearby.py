"""Sums over atoms within a cutoff of arbitrary points on the CPU, in linear time, and over all atoms with the field."""

from __future__ import annotations

import numpy as np

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.errors import UsageError
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
    if field is not None:
        field[:] = 0
    if not len(points) or not len(positions):
        return np.zeros(len(points))
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
        return np.zeros(len(points))
    sorted_by = cells.sort(positions, cutoff, CELLS_PER_CUTOFF)
    out = _sum_in_cells(points, positions, charges, interaction, sorted_by, cutoff, field is not None,
                        "pairs at points", GRAIN)
    if field is not None:
        field[:] = -out[1:].T
    total: Floats = out[0]
    return total


def field_at_points(points: Floats, positions: Floats, charges: Floats, interaction: Bound) -> tuple[Floats, Floats]:
    """Return the potential (P,), e/A, and field (P, 3), e/A^2, of all atoms, without images.

    Parameters are those of :func:`cutoff_at_points`. An atom nearer than 0.01 A to a point contributes no field.
    """
    count = len(positions)
    one = cells.Cells(np.arange(count), np.array([0, count]), np.ones(3, np.int64), np.inf, np.zeros(3))
    grain = max(1, min(10**6 // max(1, count), len(points) // threads.count()))
    out = _sum_in_cells(points, positions, charges, interaction, one, np.inf, True, "field at points", grain)
    return out[0], -out[1:].T


def _sum_in_cells(points: Floats, positions: Floats, charges: Floats, interaction: Bound, of: cells.Cells,
                  cutoff: float, field: bool, label: str, grain: int) -> Floats:
    """Return the potential of atoms within the cutoff, and with `field` its gradient, (1 or 4, P)."""
    scaled = interaction.scaled()
    out = np.zeros((4 if field else 1, len(points)))
    (px, py, pz), (x, y, z) = columns(points - of.low), columns(positions[of.order] - of.low, PADDING)
    charge = np.zeros(len(x))
    charge[: len(positions)] = charges[of.order]
    launch_kernel(KERNELS["sum_near_points"], len(points), label, grain, px=px, py=py, pz=pz, point_count=len(points),
                  x=x,
           y=y, z=z, q=charge, start=of.start, bins=of.shape, size=of.side, field=field, soft2=SOFT_CORE**2,
           cutoff2=cutoff**2, out=out, **radial_arguments(scaled.program, scaled.values, field))
    out *= scaled.factor
    return out


def _by_images_of_points(points: Floats, positions: Floats, charges: Floats, interaction: Bound, cell: Cell,
                         field: Floats | None) -> Floats:
    """Return the sum over images of the points instead of images of the atoms, which is the same."""
    cutoff = interaction.cutoff
    assert cutoff is not None
    positions = cell.wrap(positions)
    low, high = coordinate_bounds(positions)
    memory.require(int(150 * len(points) * cell.images_near(low, high, cutoff)),
                   f"a cutoff of {cutoff:g} A with periodic images of {len(points)} points", "use a shorter {cutoff}")
    images, index = cell.images_in_box(points, low - cutoff, high + cutoff)
    part = None if field is None else np.empty((len(images), 3))
    values = cutoff_at_points(images, positions, charges, interaction, None, part)
    if field is not None and part is not None:
        for d in range(3):
            field[:, d] = np.bincount(index, part[:, d], len(points))
    return np.bincount(index, values, len(points)).astype(np.float64, copy=False)
