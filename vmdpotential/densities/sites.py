"""Sites: maxima of a density, and how many atoms are there on average (hydration sites, ions, ligands)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]

#: Maxima that are looked at, at most.
MOST = 20_000


@dataclass(frozen=True, eq=False)
class Site:
    """A maximum of a density.

    Parameters
    ----------
    position : (3,) float64, A
        Mean of the places around the maximum, weighted by their density.
    peak : float
        The density at the maximum, in the map's unit.
    occupancy : float
        Atoms within the radius, on average.
    error : float or None
        Standard error of the occupancy.
    """

    position: Floats
    peak: float
    occupancy: float
    error: float | None


def find_sites(density: Floats, error: Floats | None, lattice: Lattice, *, volume: float, radius: float = 1.4,
               threshold: float = 0.0, most: int = 100, cell: Cell | None = None, wraps: bool = False) -> list[Site]:
    """Return the sites of a density, the highest first: no two are nearer to each other than the radius.

    Parameters
    ----------
    density : (nx, ny, nz) float64
    error : (nx, ny, nz) float64 or None
        Standard error of the mean of each value; those of neighbours count as independent.
    lattice : Lattice
    volume : float
        What the sum of the values within the radius is multiplied by to be a number of atoms.
    radius : float, A
    threshold : float
        Maxima are above this.
    most : int
        Sites at most.
    cell : Cell, optional
        Of a periodic density.
    wraps : bool
        Whether the nodes are one period of it along each axis.
    """
    from scipy.ndimage import maximum_filter

    reach, shape = np.ceil(radius / lattice.spacing).astype(int), np.array(lattice.shape)
    peaks = density == maximum_filter(density, 3, mode="wrap" if wraps else "nearest")
    places = np.argwhere(peaks & (density > threshold))
    # of the images of a site, one whose surroundings are all on the lattice
    cut = np.zeros(len(places), bool) if wraps else ((places < reach) | (places >= shape - reach)).any(1)
    places = places[np.lexsort((cut, -density[tuple(places.T)]))][:MOST]
    steps = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in reach), indexing="ij"), -1).reshape(-1, 3)
    steps = steps[((steps * lattice.spacing) ** 2).sum(1) <= radius**2]
    taken, result = np.zeros((0, 3)), []
    for place in places:
        around = place + steps
        inside = np.ones(len(around), bool) if wraps else ((around >= 0) & (around < shape)).all(1)
        at = tuple((around[inside] % shape).T)
        values = density[at]
        total = values.sum()
        centre = lattice.origin + lattice.spacing * (values @ around[inside] / total)
        apart = taken - centre
        if len(apart) and (((cell.minimum_image(apart) if cell else apart) ** 2).sum(1) < radius**2).any():
            continue
        taken = np.concatenate([taken, centre[None]])
        known = None if error is None else float(volume * np.sqrt(np.square(error[at]).sum()))
        result.append(Site(centre, float(density[tuple(place)]), float(volume * total), known))
        if len(result) == most:
            break
    return result
