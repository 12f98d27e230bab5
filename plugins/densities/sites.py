"""Sites: maxima of a density and their mean numbers of atoms (hydration sites, ions, ligands)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell

#: Largest number of maxima that are examined.
MOST = 20_000


@dataclass(frozen=True, eq=False)
class DensitySite:
    """Maximum of a density.

    Parameters
    ----------
    position : (3,) float64, A
        Centroid of the density within the radius around the maximum.
    peak : float
        Density at the maximum, in the map's unit.
    occupancy : float
        Mean number of atoms within the radius.
    error : float or None
        Standard error of the occupancy.
    """

    position: Floats
    peak: float
    occupancy: float
    error: float | None


def find_sites(density: Floats, error: Floats | None, lattice: Lattice, *, volume: float, radius: float = 1.4,
               threshold: float = 0.0, most: int = 100, cell: Cell | None = None,
               wraps: bool = False) -> list[DensitySite]:
    """Return the sites of a density, the highest first, no two of which are closer than the radius.

    Parameters
    ----------
    density : (nx, ny, nz) float64
    error : (nx, ny, nz) float64 or None
        Standard error of each value; errors of neighbouring nodes are treated as independent.
    lattice : Lattice
    volume : float
        Factor that converts the sum of the values within the radius to a number of atoms.
    radius : float, A
    threshold : float
        Density that a maximum must exceed.
    most : int
        Largest number of sites.
    cell : Cell, optional
        Cell of a periodic density.
    wraps : bool
        Whether the nodes are one period of the density along each axis.
    """
    from scipy.ndimage import maximum_filter

    reach, shape = np.ceil(radius / lattice.spacing).astype(int), np.array(lattice.shape)
    peaks = density == maximum_filter(density, 3, mode="wrap" if wraps else "nearest")
    nodes = np.argwhere(peaks & (density > threshold))
    # among equal maxima, such as images of a site, prefer one whose surroundings are not cut by the lattice's edge
    cut = np.zeros(len(nodes), bool) if wraps else ((nodes < reach) | (nodes >= shape - reach)).any(1)
    nodes = nodes[np.lexsort((cut, -density[tuple(nodes.T)]))][:MOST]
    steps = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in reach), indexing="ij"), -1).reshape(-1, 3)
    steps = steps[((steps * lattice.spacing) ** 2).sum(1) <= radius**2]
    centres, result = np.zeros((0, 3)), []
    for node in nodes:
        around = node + steps
        inside = np.ones(len(around), bool) if wraps else ((around >= 0) & (around < shape)).all(1)
        indices = tuple((around[inside] % shape).T)
        values = density[indices]
        total = values.sum()
        centre = lattice.origin + lattice.spacing * (values @ around[inside] / total)
        apart = centres - centre
        if len(apart) and (((cell.minimum_image(apart) if cell else apart) ** 2).sum(1) < radius**2).any():
            continue
        centres = np.concatenate([centres, centre[None]])
        site_error = None if error is None else float(volume * np.sqrt(np.square(error[indices]).sum()))
        result.append(DensitySite(centre, float(density[tuple(node)]), float(volume * total), site_error))
        if len(result) == most:
            break
    return result
