"""Pair sums on a lattice on the CPU: sorting and scaling for the kernel in tiles.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import SOFT_CORE, Bound, ScaledInteraction
from vmdpotential.interactions.compiled import radial_arguments
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, launch_kernel
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums import cells
from vmdpotential.sums.inputs import charges_near

#: Cells per cutoff length: finer ones fit the sphere better, coarser ones give longer ranges of atoms; 2 is fastest.
CELLS_PER_CUTOFF = 2

KERNELS = KernelFile(Path(__file__).with_name("tiles.cu"))


def direct(lattice: Lattice, positions: Floats, charges: Floats, interaction: Bound,
           precision: str = "single", field: bool = False) -> NDArray[np.float32]:
    """Return the sum over all atoms at all lattice points, see :mod:`vmdpotential.engines`.

    The time is proportional to N times the number of points. Interactions with a cutoff are passed on to
    :func:`cutoff`.
    """
    if interaction.cutoff is not None:
        return cutoff(lattice, positions, charges, interaction, precision, field=field)
    scaled = interaction.scaled(float(lattice.spacing.max()))
    return _run("direct sum", lattice, scaled, positions, charges, cells.single_cell(len(charges), scaled.length),
                precision, field)


def cutoff(lattice: Lattice, positions: Floats, charges: Floats, interaction: Bound, precision: str = "single",
           cell: Cell | None = None, field: bool = False,
           add_to: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Return the sum over the atoms within the cutoff, and over their periodic images if there is a cell.

    Parameters
    ----------
    field : bool
        Whether the field is summed too.
    add_to : (nx, ny, nz) or (4, nx, ny, nz) float32, optional
        Maps to which the sum is added in place, and which are returned.

    Returns
    -------
    (nx, ny, nz) float32, e/A, or with `field` (4, nx, ny, nz): potential, and field in e/A^2
    """
    reach = interaction.cutoff
    assert reach is not None
    # the unit is between the cutoff and twice the cutoff, and gives lattice points exact coordinates
    spacing = float(lattice.spacing.max())
    scaled = interaction.scaled(spacing * 2.0 ** np.ceil(np.log2(reach / spacing)))
    if cell is not None:
        positions, index = cell.images_in_box(positions, lattice.origin - reach, lattice.last + reach)
        charges = charges[index]
    else:
        positions, charges = charges_near(lattice, reach, positions, charges)
    if not len(positions):
        return np.zeros((4, *lattice.shape) if field else lattice.shape, np.float32) if add_to is None else add_to
    return _run("cutoff sum", lattice, scaled, positions, charges, cells.sort(positions, reach, CELLS_PER_CUTOFF),
                precision, field, interaction.masked, add_to)


def _run(label: str, lattice: Lattice, scaled: ScaledInteraction, positions: Floats, charges: Floats, of: cells.Cells,
         precision: str, field: bool, masked: bool = False,
         add_to: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    unit, low, maps = scaled.length, of.low, 4 if field else 1
    atoms = np.zeros((4, len(charges) + 16))  # kernels read up to 15 elements beyond the last
    atoms[:3, : len(charges)] = ((positions[of.order] - low) / unit).T
    atoms[3, : len(charges)] = charges[of.order]
    x, y, z, q = atoms
    out = np.empty((maps, *lattice.shape) if field else lattice.shape, np.float32) if add_to is None else add_to
    tasks = int(np.prod([(n + 7) // 8 for n in lattice.shape]))
    launch_kernel(KERNELS["sum_tiles"], tasks, label, max(1, min(16, tasks // (4 * threads.count()))),
           x=x, y=y, z=z, q=q, start=of.start, bins=of.shape, bin_size=of.side / unit,
           cutoff=scaled.cutoff or 0.0, maps=out, shape=lattice.shape, origin=(lattice.origin - low) / unit,
           spacing=lattice.spacing / unit, soft=SOFT_CORE / unit,
           # E = -2 q (x - x_j) dV/d(r^2)
           factors=scaled.factor * np.array([1.0, *[-2 / unit] * 3]), add=add_to is not None,
           single=precision == "single", masked=masked, field=field, newton_steps=2 if precision == "double" else 1,
           **radial_arguments(scaled.program, scaled.values, field))
    return out
