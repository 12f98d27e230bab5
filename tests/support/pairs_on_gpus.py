"""Potentials, atoms and checks for sums over pairs by the CUDA engine, on the host and on a GPU."""

import numpy as np
from helpers import relative_rms

from vmdpotential.interactions import reaction_field
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.historical.polynomial import ewald_polynomial
from vmdpotential.plugins.pairs import lennard_jones
from vmdpotential.plugins.pairs.in_range import Atoms
from vmdpotential.plugins.pairs.pair_terms import CHARGES_RULE, GEOMETRIC_RULE, TABLE_RULE, PairPotential, PairTerm

LJ = lennard_jones.INTERACTION.bind()
FIELD = PairPotential((PairTerm("coulomb", reaction_field.INTERACTION.bind(cutoff=6.0), CHARGES_RULE),
                       PairTerm("lj", LJ.truncated(6.0), TABLE_RULE)))
EWALD = PairPotential((PairTerm("coulomb", ewald_polynomial(6.0, 0.5), CHARGES_RULE),
                       PairTerm("lj", LJ.truncated(6.0), GEOMETRIC_RULE)))
TRICLINIC = Cell.from_parameters(10.5, 11, 12, 80, 70, 100)
#: Relative rms errors by precision.
TOLERANCE = {"single": 3e-6, "double": 1e-12}


def some_atoms(count=90, edge=10.0, seed=1, cell=None):
    """Return atoms nowhere near each other in a box or cell, with what every rule takes, and excluded pairs."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(count ** (1 / 3)))
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)[:count]
    vectors = np.eye(3) * edge if cell is None else cell.vectors
    positions = (grid + rng.uniform(0.0, 0.3, (count, 3))) / side @ vectors
    parameters = {"charge": rng.normal(size=count) * 5,
                  "half_rmin": rng.uniform(0.8, 1.2, count), "root_depth": rng.uniform(0.3, 1.0, count),
                  "root_a6": rng.uniform(2, 6, count), "root_a12": rng.uniform(10, 40, count)}
    table = rng.uniform(5, 50, (2, 3, 3))
    pairs = np.unique(np.sort(rng.integers(0, count, (count, 2)), axis=1), axis=0)
    near = np.stack([np.arange(count - 1), np.arange(1, count)], 1)[::2]
    exclusions = np.unique(np.concatenate([pairs[pairs[:, 0] != pairs[:, 1]], near]), axis=0)
    return Atoms(positions, parameters, rng.integers(0, 3, count),
                 {"a6": table[0] + table[0].T, "a12": 10 * (table[1] + table[1].T)}, exclusions)


def split(atoms):
    """Return two thirds of atoms and the others, nowhere near each other, without excluded pairs."""
    for part in (np.arange(len(atoms)) % 3 > 0, np.arange(len(atoms)) % 3 == 0):
        yield Atoms(atoms.positions[part], {n: v[part] for n, v in atoms.parameters.items()}, atoms.types[part],
                    atoms.tables)


def check(values, expected, tolerance=3e-6):
    assert relative_rms(values.forces, expected.forces) < tolerance
    assert relative_rms(values.energies, expected.energies) < tolerance
    if expected.other is not None:
        check(values.other, expected.other, tolerance)
