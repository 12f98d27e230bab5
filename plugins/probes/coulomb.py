"""Coulomb energy of a probe in water on a lattice, without a cutoff.

GPUs sum over all pairs. On the CPU the energy is split, as in multilevel summation (R. D. Skeel, I. Tezcan, D. J.
Hardy, J. Comput. Chem. 23 (2002) 673): a smooth part is summed at fewer nodes and interpolated by polynomials of the
fifth degree, and the remainder is summed over pairs closer than :data:`END`, beyond which it is 0.
"""

from __future__ import annotations

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Bound
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum

from .interactions import SCREENED, split

#: Cutoff of the remainder and largest spacing of the smooth part's nodes, A: in a protein of 1,805 atoms the error is
#: at most 5e-5 kcal/mol, a tenth of AutoGrid's rounding.
END, COARSE = 9.0, 0.8

#: Number of pairs of atoms and nodes from which the split sum is faster.
MANY = 3e7

#: Nodes from which a value is interpolated, relative to the node below it.
NODES = np.arange(-2, 4)


def coulomb(engine: Engine, lattice: Lattice, positions: Floats, charges: Floats) -> Floats:
    """Return the sum (nx, ny, nz) of :data:`vmdpotential.plugins.probes.interactions.SCREENED` over charges (N,)."""
    steps = np.maximum(1, np.floor(COARSE / lattice.spacing + 1e-9)).astype(int)
    if engine.devices() or steps.prod() < 8 or lattice.size * len(charges) < MANY:
        return _sum(engine, lattice, SCREENED.bind(), positions, charges)
    near, far = split(END)
    shape = tuple(((np.array(lattice.shape) - 1) // steps + len(NODES)).tolist())
    coarse = Lattice(lattice.origin + NODES[0] * steps * lattice.spacing, steps * lattice.spacing, shape)
    result = _sum(engine, coarse, far, positions, charges)
    for points, step in zip(lattice.shape, steps.tolist(), strict=True):  # the first axis becomes the last
        result = np.tensordot(result, _weights(points, step), (0, 1))
    return result + _sum(engine, lattice, near, positions, charges)


def _sum(engine: Engine, lattice: Lattice, bound: Bound, positions: Floats, charges: Floats) -> Floats:
    values = prepare_sum(engine, PotentialSum(lattice, bound)).run(positions, charges).values()
    return np.asarray(values, np.float64).reshape(lattice.shape)


def _weights(points: int, step: int) -> Floats:
    """Return the weights (points, nodes) of Lagrange interpolation from nodes that are `step` points apart."""
    base, offset = np.divmod(np.arange(points), step)
    result = np.zeros((points, (points - 1) // step + len(NODES)))
    for n, node in enumerate(NODES.tolist()):
        others = np.delete(NODES, n)
        result[np.arange(points), base + n] = ((offset[:, None] / step - others) / (node - others)).prod(1)
    return result
