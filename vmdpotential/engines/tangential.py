"""The input of engines for the flow along a molecule's surface, see :mod:`vmdpotential.continuum.tangential`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]

#: Number of coefficients of a polynomial: of 1, x, y, z, x y, y z, z x, x^2 - y^2 and 2 z^2 - x^2 - y^2.
TERMS = 9


@dataclass(frozen=True, eq=False)
class SurfaceFlow:
    """A solution around a molecule, whose flow along the surface the equation lacks.

    Parameters
    ----------
    lattice : Lattice
    distances : (nx, ny, nz) float32, A
        Of nodes to the surface, negative inside.
    within : (nx, ny, nz) bool
        Whether these are negative.
    unknown : (nx, ny, nz) float32, kT/e
        The potential outside.
    inside : float
        Permittivity of the molecule.
    outside : (nz,) float64
        Permittivity around the molecule, at each height.
    margin : int
        Layers of nodes at the faces of the lattice that are left out.
    reach : float, A
        Largest distance from the surface of nodes that have polynomials.
    few, enough : int
        Numbers of outer nodes around a node up to which its polynomial is 0, and from which on it is not reduced.
    stiffness : (TERMS,) float64
        Regularisation of each coefficient, for the mean spacing as the unit of length.
    """

    lattice: Lattice
    distances: NDArray[np.float32]
    within: NDArray[np.bool_]
    unknown: NDArray[np.float32]
    inside: float
    outside: Floats
    margin: int
    reach: float
    few: int
    enough: int
    stiffness: Floats
