"""A molecule in a solution of ions, as the Poisson-Boltzmann equation has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vmdpotential.continuum.region import Surface
from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]
Scalars = TypeVar("Scalars", NDArray[np.float32], NDArray[np.float64])

#: Gives the sum of q / r (nx, ny, nz), e/A, at the nodes of a lattice, of charges (N,) at positions (N, 3).
Sum = Callable[[Lattice, Floats, Floats], NDArray[np.float32]]


@dataclass(frozen=True)
class Membrane:
    """A slab across z from `low` to `high`, A, of a permittivity, without ions."""

    low: float
    high: float
    permittivity: float

    def share(self, low: Floats, high: Floats) -> Floats:
        """Return which part of ranges of z the slab has."""
        result: Floats = np.clip(np.minimum(high, self.high) - np.maximum(low, self.low), 0, None) / (high - low)
        return result


@dataclass(frozen=True, eq=False)
class Continuum:
    """A molecule in a solution of ions.

    Parameters
    ----------
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    radii : (N,) float64, A
    constant : float, kT/e A/e
        Potential of 1 e at 1 A in vacuum.
    inside, outside : float
        Permittivities.
    probe : float, A
        Of the molecular surface; 0 for van der Waals'.
    ion_radius : float, A
        How near the centre of an ion comes to an atom's surface.
    kappa : float, 1/A
        Inverse Debye length of the solution.
    ions : (I, 2) float64
        Valence and share of the ionic strength of each kind, for the full equation; none for the linear one.
    membrane : Membrane or None
        A slab across z in the place of the solution.
    gaussian : float
        Width of the Gaussian densities of atoms, in their radii, of a permittivity without a sharp surface
        (:mod:`vmdpotential.continuum.smooth`); 0 for a surface.
    """

    positions: Floats
    charges: Floats
    radii: Floats
    constant: float
    inside: float
    outside: float
    probe: float
    ion_radius: float
    kappa: float
    ions: Floats
    membrane: Membrane | None = None
    gaussian: float = 0.0

    @cached_property
    def surface(self) -> Surface:
        """The surface of the molecule; van der Waals' for a permittivity without one."""
        return Surface(self.positions, self.radii, 0.0 if self.gaussian else self.probe)

    def mixed(self, free: Scalars) -> Scalars:
        """Return the permittivity where the molecule leaves a part of the space to the solvent."""
        return self.inside + (self.outside - self.inside) * free
