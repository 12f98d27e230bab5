"""Orbitals on a lattice on the CPU: exponentials are tabulated along each axis, rows along z become vector code."""

from __future__ import annotations

from functools import partial

import numpy as np

from vmdpotential.compiling import build, threads
from vmdpotential.engines.orbitals import Floats, OrbitalSum, Singles

#: Exponentials along one axis below this are set to 0, because products of three could be subnormal, which is slow.
_LEAST = 1e-12


def orbitals(work: OrbitalSum) -> Singles:
    """Return an orbital, or the weighted sum of the squares of several; see :class:`vmdpotential.engines.Engine`."""
    lattice = work.lattice
    factors = [_exponentials(work, axis, d) for d, axis in enumerate(lattice.axes())]
    factors[0] *= work.factors.astype(np.float32)[:, None]
    values = np.empty(lattice.shape, np.float32)
    kernel = build.load("orbital_kernel").run
    threads.run(partial(kernel, work.shells, work.centres, work.reaches, lattice.origin, lattice.spacing, *factors,
                        work.coefficients, work.weights, values), lattice.shape[0], "orbitals", 1)
    return values


def _exponentials(work: OrbitalSum, nodes: Floats, axis: int) -> Singles:
    """Return exp(-a x^2), (P, n), of all primitives at the coordinates of the nodes along an axis."""
    result = np.empty((len(work.exponents), len(nodes)), np.float32)
    for (_, begin, end, _), centre in zip(work.shells.tolist(), work.centres[:, axis].tolist(), strict=True):
        part = np.exp(-work.exponents[begin:end, None] * (nodes - centre) ** 2)
        result[begin:end] = np.where(part < _LEAST, 0.0, part)
    return result
