"""Maps without their values inside molecules, for isosurfaces: inside, potentials form a thicket around every atom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vmdpotential.grid.lattice import Grid
from vmdpotential.molecule.selection import is_ion, is_water
from vmdpotential.molecule.structure import Structure

#: Smallest spacing of the lattice of depths, A.
_SPACING = 0.35


def outside_molecule(grid: Grid, structure: Structure) -> Grid:
    """Return a map that is 0 at the nodes deeper than a lattice spacing inside the molecular surface of the solute.

    Isosurfaces of the result end a little below that surface. A system without a solute keeps all values.

    Raises
    ------
    InputError, MemoryPlanError
        See :func:`vmdpotential.surfaces.depth_map`.
    """
    from vmdpotential.surfaces import depth_map

    solute = ~is_water(structure) & ~is_ion(structure)
    if not solute.any():
        return grid
    lattice = grid.lattice
    spacing = max(_SPACING, float(lattice.spacing.max()))
    depth = depth_map(structure, solute, spacing)
    values = np.array(grid.values)
    low = np.clip(np.floor((depth.lattice.origin - lattice.origin) / lattice.spacing), 0, None).astype(int)
    high = np.ceil((depth.lattice.last - lattice.origin) / lattice.spacing).astype(int) + 1
    (nx, ny, nz), inside = lattice.shape, slice(low[0], max(high[0], 0))
    for i in range(nx)[inside]:  # plane by plane, to save memory
        rows = np.stack(np.meshgrid([i], np.arange(ny), np.arange(nz), indexing="ij"), -1)
        values[i][depth.sample(lattice.points(rows.reshape(-1, 3)), -np.inf).reshape(ny, nz) > spacing] = 0
    return replace(grid, values=values)
