"""Sums by the kernels of 2007 and 2008, as their tests ask for them."""

import numpy as np

from vmdpotential import registry
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.historical import METHODS
from vmdpotential.sums import ChargeStatistics, Request

CASES = [(name, precision) for name in METHODS["cutoff"] for precision in registry.get("method", name).precisions]
LATTICE = Lattice(np.array([-3.0, 1.7, 2.2]), np.array([0.5, 0.7, 0.9]), (33, 20, 9))


def shifted(cutoff):
    return registry.get("interaction", "shifted_coulomb").bind(cutoff=cutoff)


def atoms(count, low=-10, high=25, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(low, high, (count, 3)), rng.normal(size=count)


def request(method, bound, lattice=LATTICE, precision="single", cell=None, positions=None, charges=None):
    positions, charges = (np.zeros((2, 3)), np.ones(2)) if positions is None else (positions, charges)
    return Request(lattice, cell, bound, ChargeStatistics.of(positions, charges, cell), precision)


def run(name, lattice, positions, charges, bound, precision="single", cell=None):
    """Return the map of a registered method."""
    method = registry.get("method", name)
    expected = request(method, bound, lattice, precision, cell, positions, charges)
    return method.plan(expected, registry.get("engine", "cuda")).run(positions, charges).values()
