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


def energy(found, positions, charges):
    """Return the sum over all pairs, kcal/mol, as the docstring of Nonbonded has it."""
    i, j = np.triu_indices(len(positions), 1)
    excluded = np.zeros((len(positions),) * 2, bool)
    excluded[tuple(found.exclusions.T)] = True
    apart = ~excluded[i, j]
    i, j = i[apart], j[apart]
    r = np.sqrt(((positions[i] - positions[j]) ** 2).sum(1))
    a, b = found.types[i], found.types[j]
    total = (found.c12[a, b] / r**12 - found.c6[a, b] / r**6 + COULOMB * charges[i] * charges[j] / r).sum()
    i, j = found.pairs14.T
    r = np.sqrt(((positions[i] - positions[j]) ** 2).sum(1))
    products = found.charges14 * charges[i] * charges[j]
    return total + (found.c12_14 / r**12 - found.c6_14 / r**6 + COULOMB * products / r).sum()


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


def check_energy(found, system, positions, charges):
    for scale in (0.0, 1.0):
        expected = energy_of_openmm(system, positions, charged=scale > 0)
        assert_allclose(energy(found, positions, scale * charges), expected, 1e-5)


def check_plain(found):
    """Check what each Nonbonded promises."""
    count = len(found.types)
    for table in (found.c6, found.c12):
        assert table.shape == (len(found.names),) * 2
        assert table.dtype == np.float64
        assert_array_equal(table, table.T)
    assert found.types.dtype == found.exclusions.dtype == found.pairs14.dtype == np.int64
    assert_array_equal(found.exclusions, unique_pairs(found.exclusions, count))
    assert (found.pairs14[:, 0] < found.pairs14[:, 1]).all()
    assert np.isin(found.pairs14 @ [count, 1], found.exclusions @ [count, 1]).all()
    assert len(found.c6_14) == len(found.c12_14) == len(found.charges14) == len(found.pairs14)
