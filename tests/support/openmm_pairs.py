"""Energies of all pairs of atoms: summed as Nonbonded has it, and by OpenMM."""

import itertools

import numpy as np
import openmm
from numpy.testing import assert_allclose, assert_array_equal
from openmm import unit

from vmdpotential import units
from vmdpotential.molecule.nonbonded import unique_pairs

COULOMB = units.coulomb_constant("kcal/mol/e")


def places(count, spacing=2.8, seed=0):
    """Return places of a lattice that was shaken: near enough for each term to count, and no two on each other."""
    side = int(np.ceil(count ** (1 / 3)))
    nodes = np.array(list(itertools.islice(itertools.product(range(side), repeat=3), count)), float)
    return spacing * nodes + np.random.default_rng(seed).uniform(-0.5, 0.5, (count, 3))


def energy(potential, positions, charges):
    """Return the sum over all pairs, kcal/mol, as the docstring of Nonbonded has it."""
    i, j = np.triu_indices(len(positions), 1)
    excluded = np.zeros((len(positions),) * 2, bool)
    excluded[tuple(potential.exclusions.T)] = True
    apart = ~excluded[i, j]
    i, j = i[apart], j[apart]
    r = np.sqrt(((positions[i] - positions[j]) ** 2).sum(1))
    a, b = potential.types[i], potential.types[j]
    total = (potential.c12[a, b] / r**12 - potential.c6[a, b] / r**6 + COULOMB * charges[i] * charges[j] / r).sum()
    i, j = potential.pairs14.T
    r = np.sqrt(((positions[i] - positions[j]) ** 2).sum(1))
    products = potential.charges14 * charges[i] * charges[j]
    return total + (potential.c12_14 / r**12 - potential.c6_14 / r**6 + COULOMB * products / r).sum()


def energy_of_openmm(system, positions, charged):
    """Return what the pair forces of a system sum to, kcal/mol, with or without its charges."""
    system = openmm.XmlSerializer.clone(system)
    for force in system.getForces():
        pairs = isinstance(force, openmm.NonbondedForce | openmm.CustomNonbondedForce) or "14" in force.getName()
        force.setForceGroup(1 if pairs else 2)
        if isinstance(force, openmm.NonbondedForce) and not charged:
            for k in range(force.getNumParticles()):
                force.setParticleParameters(k, 0, *force.getParticleParameters(k)[1:])
            for k in range(force.getNumExceptions()):
                i, j, _, *rest = force.getExceptionParameters(k)
                force.setExceptionParameters(k, i, j, 0, *rest)
    context = openmm.Context(system, openmm.VerletIntegrator(1), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(positions / 10)
    result = context.getState(getEnergy=True, groups=2).getPotentialEnergy()
    return result.value_in_unit(unit.kilocalorie_per_mole)


def check_energy(potential, system, positions, charges):
    for scale in (0.0, 1.0):
        expected = energy_of_openmm(system, positions, charged=scale > 0)
        assert_allclose(energy(potential, positions, scale * charges), expected, 1e-5)


def check_plain(potential):
    """Check what each Nonbonded promises."""
    count = len(potential.types)
    for table in (potential.c6, potential.c12):
        assert table.shape == (len(potential.names),) * 2
        assert table.dtype == np.float64
        assert_array_equal(table, table.T)
    assert potential.types.dtype == potential.exclusions.dtype == potential.pairs14.dtype == np.int64
    assert_array_equal(potential.exclusions, unique_pairs(potential.exclusions, count))
    assert (potential.pairs14[:, 0] < potential.pairs14[:, 1]).all()
    assert np.isin(potential.pairs14 @ [count, 1], potential.exclusions @ [count, 1]).all()
    assert len(potential.c6_14) == len(potential.c12_14) == len(potential.charges14) == len(potential.pairs14)
