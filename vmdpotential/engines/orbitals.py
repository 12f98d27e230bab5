"""Orbitals on a lattice: what engines get, and what they return."""

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
        In bohr.
    shells : (S, 4) int64
        Angular momentum, first primitive, end of the primitives, and first monomial.
    centres, reaches : (S, 3) and (S,) float64, bohr
        A shell counts as zero beyond its reach.
    exponents, factors : (P,) float64
        Of the primitives ``factor exp(-exponent r^2)``.
    coefficients : (O, M) float32
        Of the monomials x^a y^b z^c of all shells in the orbitals: by c, then by a.
    weights : (O,) float32
        Of the squares that are summed; of none for an orbital itself.
    """

    lattice: Lattice
    shells: NDArray[np.int64]
    centres: Floats
    reaches: Floats
    exponents: Floats
    factors: Floats
    coefficients: Singles
    weights: Singles
