"""Orbitals on a lattice on the CPU: exponentials are tabulated along each axis, rows along z are vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vmdpotential.engines.orbitals import Floats, OrbitalSum, Singles
from vmdpotential.kernels.launch import KernelFile, launch

KERNELS = KernelFile(Path(__file__).parents[2] / "orbitals" / "evaluate.cu")

#: Number of orbitals whose coefficients are next to each other, as in the kernels.
ORBITALS_AT_ONCE = 16

#: Tables along each axis are padded to a multiple of this, the number of floats in the longest vector.
_VECTOR = 16

#: Exponentials along one axis below this are set to 0, because products of three could be subnormal, which is slow.
_LEAST = 1e-12


def orbitals(work: OrbitalSum) -> Singles:
    """Return an orbital, or the weighted sum of the squares of several; see :class:`vmdpotential.engines.Engine`."""
    lattice, squares = work.lattice, len(work.weights) > 0
    factors = [_exponentials(work, axis, d) for d, axis in enumerate(lattice.axes())]
    factors[0] *= work.factors.astype(np.float32)[:, None]
    values = np.empty(lattice.shape, np.float32)
    count, monomials = work.coefficients.shape
    together = ORBITALS_AT_ONCE if squares else 1
    groups = -(-count // together)
    coefficients = np.zeros((groups * together, monomials), np.float32)
    coefficients[:count] = work.coefficients
    launch(KERNELS["sum_squared_orbitals" if squares else "evaluate_orbital"], lattice.shape[0], "orbitals", 1,
           table=work.shells, centres=work.centres, reaches=work.reaches, factors_x=factors[0], factors_y=factors[1],
           factors_z=factors[2], weights=work.weights, values=values,
           coefficients=np.ascontiguousarray(coefficients.reshape(groups, together, monomials).transpose(0, 2, 1)),
           origin=lattice.origin, spacing=lattice.spacing, shape=lattice.shape,
           padded=[factor.shape[1] for factor in factors], shells=len(work.shells), monomials=monomials, orbitals=count)
    return values


def _exponentials(work: OrbitalSum, nodes: Floats, axis: int) -> Singles:
    """Return exp(-a x^2), (P, n), of all primitives at the coordinates of the nodes along an axis, and zeros."""
    result = np.zeros((len(work.exponents), -(-len(nodes) // _VECTOR) * _VECTOR), np.float32)
    for (_, begin, end, _), centre in zip(work.shells.tolist(), work.centres[:, axis].tolist(), strict=True):
        part = np.exp(-work.exponents[begin:end, None] * (nodes - centre) ** 2)
        result[begin:end, : len(nodes)] = np.where(part < _LEAST, 0.0, part)
    return result
