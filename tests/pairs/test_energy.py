"""Energies and forces between selections: against OpenMM, the exact sum and closed forms."""

import numpy as np
import openmm
import pytest
from helpers import TOOLS
from openmm import app, unit

from vmdpotential import io
from vmdpotential.engines import get_engine
from vmdpotential.engines.cpu import CpuEngine
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.pairs.energy import InteractionEnergyPlan, by_residue, interaction_energy
from vmdpotential.plugins.pairs.options import EnergyOptions
from vmdpotential.plugins.pairs.potentials import ELECTROSTATICS
from vmdpotential.sums.reference import full_potential
from vmdpotential.units import coulomb_constant

C = coulomb_constant("kcal/mol/e")


def openmm_between(prmtop, positions, cell, a, b, cutoff, method, platform="CPU"):
    """Return Coulomb and Lennard-Jones energies of two sets by OpenMM's: of both less of each."""
    made = app.AmberPrmtopFile(str(prmtop)).createSystem(
        nonbondedMethod=method, nonbondedCutoff=cutoff * unit.angstrom, constraints=None, rigidWater=False)
    force = openmm.XmlSerializer.clone(next(f for f in made.getForces() if isinstance(f, openmm.NonbondedForce)))
    force.setUseDispersionCorrection(False)
    force.setEwaldErrorTolerance(1e-7)
    force.setReactionFieldDielectric(78.5)
    system = openmm.System()
    for _ in range(force.getNumParticles()):
        system.addParticle(1)
    if cell is not None:
        system.setDefaultPeriodicBoxVectors(*(cell.vectors / 10))
    system.addForce(force)
    force.setReciprocalSpaceForceGroup(1)
    # plain numbers, in the units of OpenMM: its quantities take longer than the sums
    atoms = [[value._value for value in force.getParticleParameters(n)] for n in range(force.getNumParticles())]
    exceptions = [[i, j, *(value._value for value in values)] for i, j, *values in
                  map(force.getExceptionParameters, range(force.getNumExceptions()))]
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName(platform))
    context.setPositions(positions / 10)

    def energy_of(mask, charges, depths):
        for n, (q, sigma, epsilon) in enumerate(atoms):
            force.setParticleParameters(n, q * mask[n] * charges, sigma, epsilon * mask[n] * depths)
        for n, (i, j, qq, sigma, epsilon) in enumerate(exceptions):
            on = mask[i] * mask[j]
            force.setExceptionParameters(n, i, j, qq * on * charges, sigma, epsilon * on * depths)
        force.updateParametersInContext(context)
        state = context.getState(getEnergy=True, groups={0, 1} if charges else {0})
        return state.getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)

    a, b = a.astype(float), b.astype(float)
    return [energy_of(np.maximum(a, b), *what) - energy_of(a, *what) - energy_of(b, *what) for what in ((1, 0), (0, 1))]


@pytest.fixture(scope="module")
def lysozyme():
    folder = TOOLS / "T4-lysozyme-L99A-implicit"
    return io.read_structure(folder / "complex.crd", folder / "complex.prmtop")


def halves(structure, count):
    a = np.arange(len(structure)) < count
    return a, ~a


@pytest.mark.slow
def test_a_peptide_and_water_in_a_cell_are_as_openmm_and_ewald_have_them(peptide):
    a, b = halves(peptide, 22)
    result = interaction_energy(peptide, peptide.topology.nonbonded(), a, b, cutoff=9.0)
    exact = C * peptide.charges[a] @ full_potential(
        peptide.positions[a], peptide.positions[b], peptide.charges[b], peptide.cell, get_engine("cpu")).values()
    assert result.coulomb.sum() == pytest.approx(exact, abs=5e-5)
    coulomb, lj = openmm_between(TOOLS / "alanine-dipeptide-explicit" / "alanine-dipeptide.prmtop", peptide.positions,
                                 peptide.cell, a, b, 9.0, app.PME)
    assert result.coulomb.sum() == pytest.approx(coulomb, abs=2e-3)  # OpenMM's mesh
    assert result.lennard_jones.sum() == pytest.approx(lj, rel=1e-5)


@pytest.mark.slow
def test_bonded_parts_of_a_peptide_are_as_openmm_has_them(peptide):
    a, b = np.arange(2269) < 12, (np.arange(2269) >= 12) & (np.arange(2269) < 22)
    result = interaction_energy(peptide, peptide.topology.nonbonded(), a, b, cutoff=9.0)
    coulomb, lj = openmm_between(TOOLS / "alanine-dipeptide-explicit" / "alanine-dipeptide.prmtop", peptide.positions,
                                 peptide.cell, a, b, 9.0, app.PME)
    assert (result.coulomb.sum(), result.lennard_jones.sum()) == pytest.approx((coulomb, lj), rel=1e-5)


@pytest.mark.slow
def test_a_ligand_and_its_protein_are_as_openmm_has_them(lysozyme):
    ligand = lysozyme.residue_names == lysozyme.residue_names[-1]
    result = interaction_energy(lysozyme, lysozyme.topology.nonbonded(), ligand, ~ligand, cutoff=200.0)
    coulomb, lj = openmm_between(TOOLS / "T4-lysozyme-L99A-implicit" / "complex.prmtop", lysozyme.positions, None,
                                 ligand, ~ligand, 10.0, app.NoCutoff, "Reference")
    assert result.coulomb.sum() == pytest.approx(coulomb, rel=1e-5)
    assert result.lennard_jones.sum() == pytest.approx(lj, rel=1e-5)


def test_a_mesh_of_an_open_boundary_is_the_sum_of_all_pairs(lysozyme, monkeypatch):
    a = np.arange(len(lysozyme)) < 1500
    b = np.arange(len(lysozyme)) >= 1000
    terms = lysozyme.topology.nonbonded()
    exact = InteractionEnergyPlan(lysozyme, terms, a, b, forces=True).run(lysozyme.positions, None)
    monkeypatch.setattr(CpuEngine, "costs", CpuEngine.costs._replace(point_pair=1.0))
    mesh = InteractionEnergyPlan(lysozyme, terms, a, b, forces=True)
    result = mesh.run(lysozyme.positions, None)
    assert mesh._long is not None
    np.testing.assert_allclose(result.coulomb, exact.coulomb, atol=2e-4)
    np.testing.assert_allclose(result.forces, exact.forces, atol=1e-4 * np.abs(exact.forces).max())


@pytest.mark.parametrize("electrostatics", ELECTROSTATICS)
def test_overlapping_selections_count_each_pair_once(peptide, electrostatics):
    terms, n = peptide.topology.nonbonded(), np.arange(len(peptide))

    def total(a, b):
        result = interaction_energy(peptide, terms, a, b, electrostatics=electrostatics, cutoff=8.0)
        return np.array([result.coulomb.sum(), result.lennard_jones.sum()])

    a, b, both = n < 8, (n >= 12) & (n < 60), (n >= 8) & (n < 12)
    parts = total(a, b) + total(a, both) + total(both, b) + total(both, both)
    np.testing.assert_allclose(total(a | both, b | both), parts, rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(total(b | both, a | both), parts, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("electrostatics", ELECTROSTATICS)
def test_forces_are_slopes_of_energies(peptide, electrostatics):
    n = np.arange(len(peptide))
    for b, atom, axis in (((n >= 6) & (n < 100), 0, 0), (n < 100, 7, 2)):  # in A alone, and in both
        between = InteractionEnergyPlan(peptide, peptide.topology.nonbonded(), n < 10, b,
                          EnergyOptions(electrostatics=electrostatics, cutoff=8.0), forces=True)
        forces = between.run(peptide.positions, peptide.cell).forces
        energies = []
        for h in (-1e-3, 1e-3):
            moved = peptide.positions.copy()
            moved[atom, axis] += h
            energies.append(between.run(moved, peptide.cell).total.sum())
        assert forces[atom, axis] == pytest.approx((energies[0] - energies[1]) / 2e-3, abs=0.02)


def ions(distance, cell=None):
    c6, c12 = np.full((1, 1), 200.0), np.full((1, 1), 3e5)
    none = np.zeros((0, 2), np.int64)
    empty = np.zeros(0)
    terms = Nonbonded("test", ("X",), np.zeros(2, np.int64), c6, c12, none, none, empty, empty, empty)
    structure = Structure(
        positions=np.array([[0, 0, 0], [distance, 0, 0.0]]), atom_names=["NA", "CL"], residue_names=["NA", "CL"],
        residue_ids=[1, 2], residue_index=[0, 1], charges=np.array([1.0, -1.0]), cell=cell)
    return structure, terms


@pytest.mark.parametrize("parameters", [(16, 17, 18), (16, 17, 18, 70, 80, 100)])
def test_ewald_by_waves_is_the_exact_sum(parameters):
    """As the reference has it, whose split is another; pme is as near as it states."""
    structure, terms = ions(3.0, Cell.from_parameters(*parameters))
    place, other = structure.positions[:1], structure.positions[1:]
    exact = full_potential(place, other, np.array([-1.0]), structure.cell, get_engine("cpu")).values()
    between = InteractionEnergyPlan(structure, terms, [0], [1], EnergyOptions(electrostatics="ewald", cutoff=6.0),
                                    forces=True)
    result = between.run(structure.positions, structure.cell)
    assert result.coulomb[0] == pytest.approx(C * exact[0], rel=1e-8)
    mesh = InteractionEnergyPlan(structure, terms, [0], [1], EnergyOptions(cutoff=6.0), forces=True).run(
        structure.positions, structure.cell)
    assert mesh.coulomb[0] == pytest.approx(result.coulomb[0], abs=1e-4)
    np.testing.assert_allclose(mesh.forces, result.forces, atol=1e-4)


def test_two_ions_by_hand():
    structure, terms = ions(3.0)
    lj = 3e5 / 3.0**12 - 200 / 3.0**6
    values = {"pme": 1 / 3, "ewald": 1 / 3, "cutoff": 1 / 3 - 1 / 10, "ddd": 1 / 36,
              "rf": 1 / 3 + 77.5 / 158 / 1000 * 9 - (1 / 10 + 77.5 / 158 / 10)}
    for electrostatics, value in values.items():
        result = interaction_energy(structure, terms, [0], [1], electrostatics=electrostatics, cutoff=10.0)
        assert result.coulomb[0] == pytest.approx(-C * value, rel=1e-6), electrostatics
        assert result.lennard_jones[0] == pytest.approx(lj, rel=1e-5)
    result = interaction_energy(structure, terms, [0], [1], dielectric=80.0)
    assert result.coulomb[0] == pytest.approx(-C / 3 / 80, rel=1e-6)


def test_residues_and_atoms_sum_to_the_total(peptide):
    a, b = halves(peptide, 22)
    result = interaction_energy(peptide, peptide.topology.nonbonded(), b, a, cutoff=9.0)
    residues, values = by_residue(peptide, result.atoms, result.total)
    assert len(residues) == peptide.residue_count - 3
    assert values.sum() == pytest.approx(result.total.sum())
    other = interaction_energy(peptide, peptide.topology.nonbonded(), a, b, cutoff=9.0)
    assert other.total.sum() == pytest.approx(result.total.sum(), abs=1e-4)
