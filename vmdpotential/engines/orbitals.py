"""The input of engines for orbitals on a lattice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class OrbitalSum:
    """Orbitals in contracted Gaussians times monomials, at the points of a lattice.

    Parameters
    ----------
    lattice : Lattice
        Lattice in bohr.
    shells : (S, 4) int64
        Angular momentum, first primitive, end of the primitives, and first monomial of each shell.
    centres, reaches : (S, 3) and (S,) float64, bohr
        Centre of each shell, and the distance beyond which it counts as zero.
    exponents, factors : (P,) float64
        Exponents (bohr^-2) and factors of the primitives ``factor exp(-exponent r^2)``.
    coefficients : (O, M) float32
        Coefficients of the monomials x^a y^b z^c of all shells in each orbital; within a shell sorted by c, then by a.
    weights : (O,) float32
        Weights of the squares that are summed; size 0 for the value of a single orbital.
    """

    lattice: Lattice
    shells: NDArray[np.int64]
    centres: Floats
    reaches: Floats
    exponents: Floats
    factors: Floats
    coefficients: Singles
    weights: Singles
