"""Generalized Born energies: OpenMM's, closed forms, and the same kernels on both engines."""

from dataclasses import replace

import numpy as np
import openmm
import pytest
from helpers import TOOLS, charges_at
from openmm import app, unit
from openmm.app.internal import customgbforces
from scipy.integrate import quad

from vmdpotential import binding_energy, read_structure
from vmdpotential.engines import get_engine
from vmdpotential.engines.cuda import ENGINE as CUDA
from vmdpotential.errors import InputError, UsageError
from vmdpotential.plugins.pairs import generalized_born
from vmdpotential.plugins.pairs.binding import BindingOptions, BornBinding, SurfaceEnergy, plan_binding
from vmdpotential.plugins.pairs.generalized_born import KAPPA_FACTOR, MODELS, GeneralizedBorn, _neck_table
from vmdpotential.surfaces.areas import areas, lost_areas
from vmdpotential.surfaces.region import Surface
from vmdpotential.units import coulomb_constant, debye_length

WATER = 78.5
LYSOZYME = TOOLS / "T4-lysozyme-L99A-implicit"
#: OpenMM's Coulomb constant over ours.
CONSTANT = 138.935485 / 0.4184 / coulomb_constant("kcal/mol/e")
FORCES = {"obc2": customgbforces.GBSAOBC2Force, "gbn2": customgbforces.GBSAGBn2Force}


def lysozyme():
    return read_structure(LYSOZYME / "receptor.pdb", topology=LYSOZYME / "receptor.prmtop")


def by_openmm(model, salt):
    """Return the Generalized Born energy, kcal/mol, and the charges of T4 lysozyme by a force field of OpenMM."""
    pdb = app.PDBFile(str(LYSOZYME / "receptor.pdb"))
    field = app.ForceField("amber14/protein.ff14SB.xml", f"implicit/{model}.xml")
    system = field.createSystem(pdb.topology, nonbondedMethod=app.NoCutoff, sasaMethod=None, implicitSolventKappa=(
        10 * KAPPA_FACTOR / debye_length(salt, 298.15, WATER)))
    charges = None
    for force in system.getForces():
        force.setForceGroup(1 if isinstance(force, openmm.CustomGBForce) else 0)
        if isinstance(force, openmm.NonbondedForce):
            charges = [force.getParticleParameters(n)[0].value_in_unit(unit.elementary_charge)
                       for n in range(system.getNumParticles())]
    context = openmm.Context(system, openmm.VerletIntegrator(1), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(pdb.positions)
    energy = context.getState(getEnergy=True, groups=2).getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)
    positions = np.array(pdb.getPositions(asNumpy=True).value_in_unit(unit.angstrom))
    return energy, np.array(charges), positions


@pytest.mark.slow
@pytest.mark.parametrize(("model", "salt"), [("obc2", 0.15), ("obc2", 0.0), ("gbn2", 0.15), ("gbn2", 0.0)])
def test_protein_as_by_openmm(model, salt):
    energy, charges, positions = by_openmm(model, salt)
    protein = replace(lysozyme(), positions=positions).with_charges(charges)
    born = GeneralizedBorn.of(protein, model, {"salt": salt})
    assert CONSTANT * born.energies(positions).sum() == pytest.approx(energy, abs=1e-4)
    # bonds by distance, where no topology has them
    assert np.array_equal(GeneralizedBorn.of(replace(protein, topology=None), model).radii, born.radii)


@pytest.mark.parametrize("model", list(MODELS))
def test_parameters_of_nucleic_acids_as_by_openmm(model):
    atoms = [("P", "P"), ("O5'", "O"), ("C5'", "C"), ("N1", "N"), ("H5'", "H"), ("H1", "H")]
    places = np.array([[0, 0, 0], [1.6, 0, 0], [3.0, 0, 0], [4.4, 0, 0], [3.0, 1.1, 0], [4.4, 1.0, 0.0]])
    topology = app.Topology()
    residue = topology.addResidue("DG", topology.addChain())
    made = [topology.addAtom(name, app.Element.getBySymbol(element), residue) for name, element in atoms]
    for a, b in ((0, 1), (1, 2), (2, 3), (2, 4), (3, 5)):
        topology.addBond(made[a], made[b])
    structure = replace(charges_at(places, np.ones(len(atoms))), atom_names=np.array([name for name, _ in atoms]),
                        elements=np.array([element for _, element in atoms]),
                        residue_names=np.full(len(atoms), "DG"))
    born, expected = GeneralizedBorn.of(structure, model), FORCES[model].getStandardParameters(topology)
    assert born.radii == pytest.approx(10 * expected[:, 0])
    assert born.scales == pytest.approx(expected[:, 1])
    if model == "gbn2":
        assert born.shapes == pytest.approx(expected[:, 2:])


def test_table_of_necks_is_openmms():
    distances, integrals = _neck_table()
    assert distances == pytest.approx(10 * np.reshape(customgbforces.d0, (21, 21)).T, rel=1e-6)
    assert integrals == pytest.approx(0.1 * np.reshape(customgbforces.m0, (21, 21)).T, rel=1e-6)


def atoms_of(positions, charges, elements, model, **parameters):
    structure = charges_at(np.asarray(positions, float), charges)
    structure = replace(structure, elements=np.array(elements), residue_names=np.full(len(elements), "LIG"))
    return GeneralizedBorn.of(structure, model, parameters)


@pytest.mark.parametrize("model", list(MODELS))
def test_one_atom_and_two_far_apart(model):
    """M. Born's ion; and far apart the charges of two ions are screened as in water."""
    coulomb = coulomb_constant("kcal/mol/e")
    one = atoms_of([[0, 0, 0]], [2.0], ["C"], model, salt=0.0, inside=2.0)
    radius = 1.7 - MODELS[model].offset
    assert one.energies(np.zeros((1, 3))) == pytest.approx(0.5 * coulomb * 4 * (1 / WATER - 1 / 2.0) / radius, rel=1e-9)
    places = np.array([[0.0, 0, 0], [1000.0, 0, 0]])
    two = atoms_of(places, [2.0, -1.0], ["C", "N"], model, salt=0.0)
    between = two.energies(places).sum() - sum(atoms_of(places[[n]], [q], [e], model, salt=0.0).energies(places[[n]])[0]
                                               for n, q, e in ((0, 2.0, "C"), (1, -1.0, "N")))
    assert between == pytest.approx(-2 * coulomb * (1 / WATER - 1) / 1000, rel=1e-5)


@pytest.mark.parametrize("distance", [1.2, 2.0, 2.8, 3.4, 4.0, 5.0, 5.6, 9.0, 30.0])
def test_integral_over_a_ball(distance):
    """1 / (4 pi r^4) over the ball of a carbon outside of an oxygen, by shells around the latter."""
    born = atoms_of([[0, 0, 0], [distance, 0, 0]], [0.0, 0.0], ["O", "C"], "obc2")
    inner, ball = 1.5 - 0.09, 0.72 * (1.7 - 0.09)

    def shell(r):  # fraction of the sphere of radius r that is within the ball
        return 0.5 * np.clip(1 - (r * r + distance**2 - ball**2) / (2 * r * distance), 0, 2) / r**2

    low, high = max(inner, abs(distance - ball)), distance + ball
    expected = quad(shell, low, high, epsabs=1e-13)[0] if high > low else 0.0
    actual = born.integrals(np.array([[0.0, 0, 0], [distance, 0, 0]]))[0]
    assert actual == pytest.approx(expected, rel=1e-8)


def some_atoms(count, model, seed=5):
    """Return atoms in random places at least 1 A apart."""
    rng = np.random.default_rng(seed)
    nodes = np.stack(np.meshgrid(*[np.arange(10)] * 3, indexing="ij"), -1).reshape(-1, 3)
    places = 1.9 * nodes[rng.permutation(len(nodes))[:count]] + rng.uniform(-0.4, 0.4, (count, 3))
    return atoms_of(places, rng.normal(size=count), rng.choice(list("CNOHSP"), count), model), places


#: Errors of integrals by their polynomial, and of energies by exponentials in single precision, over the largest.
INTEGRALS, ENERGIES = 1e-8, 1e-7


def close_to(expected, tolerance):
    return pytest.approx(expected, rel=0, abs=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_two_sets_add_up(request, monkeypatch, engine, model, salt):
    """The integrals and energies of both, and changes from the radii of one alone; also as compiled for GPUs."""
    born, places = some_atoms(310, model)
    born = replace(born, kappa=0.1 * salt)
    if engine == "cuda":
        request.getfixturevalue("gpu")
        monkeypatch.setattr(generalized_born, "get_engine", {born.engine: CUDA}.get)
    rows = [np.arange(120), np.arange(120, 310)]
    (a, x), (b, y) = ((born.take(each), places[each]) for each in rows)
    alone = a.integrals(x), b.integrals(y)
    whole = np.concatenate(alone) + np.concatenate(a.integrals_between(x, b, y))
    assert whole == close_to(born.integrals(places), INTEGRALS)
    radii = born.born_radii(whole)
    first, second = radii[rows[0]], radii[rows[1]]
    between = a.energies_between(x, first, b, y, second)
    expected = born.energies_of(places, radii)
    energies = [part.energies_of(at, own) + 0.5 * more
                for part, at, own, more in ((a, x, first, between[0]), (b, y, second, between[1]))]
    assert np.concatenate(energies) == close_to(expected, ENERGIES)
    before = a.born_radii(alone[0])
    changes = a.energies_of(x, first) - a.energies_of(x, before)
    assert a.changes_of(x, first, before) == close_to(changes, ENERGIES)


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_the_same_on_a_gpu(gpu, monkeypatch, model, salt):
    """The same kernels as on a CPU, by what is compiled for GPUs."""
    born, places = some_atoms(300, model)
    born = replace(born, kappa=0.1 * salt)
    energies = []
    for engine in (get_engine("cpu"), CUDA):
        monkeypatch.setattr(generalized_born, "get_engine", {born.engine: engine}.get)
        energies.append(born.energies(places))
    assert energies[1] == close_to(energies[0], ENERGIES)


@pytest.mark.parametrize("model", list(MODELS))
def test_binding_is_the_difference_of_energies(model):
    """Of the complex and both parts, in a host with its guest."""
    folder = TOOLS / "cb7-viologen" / "leap"
    both = read_structure(folder / "complex-vacuum.pdb", topology=folder / "complex-vacuum.prmtop")
    guest = both.residue_names == "LIG"
    plan = plan_binding(both, guest, ~guest, BindingOptions(model=model))
    assert isinstance(plan, BornBinding)
    terms, error = plan.run(both.positions, None)
    bound = plan.binding(terms, error)
    born = GeneralizedBorn.of(both, model)
    whole = born.energies(both.positions).sum()
    parts = [born.take(np.flatnonzero(part)).energies(both.positions[part]).sum() for part in (guest, ~guest)]
    assert bound.screening + sum(bound.desolvation) == pytest.approx(whole - sum(parts), abs=1e-9 * abs(whole))
    assert binding_energy(both, guest, ~guest, model=model).total == pytest.approx(bound.total)


def test_surface_term():
    """Two balls in contact: what each loses is a cap of its accessible sphere."""
    distance, radius, tension, offset = 4.0, 1.7 + 1.4, 0.01, 0.9
    pair = replace(charges_at([[0.0, 0, 0], [distance, 0, 0]], [0.0, 1.0]), elements=np.array(["C", "C"]))
    plan = plan_binding(pair, np.array([True, False]), np.array([False, True]),
                        BindingOptions(model="obc2", surface=SurfaceEnergy(tension, offset)))
    bound = plan.binding(*plan.run(pair.positions, None))
    lost = 2 * 2 * np.pi * radius * (radius - distance / 2)
    assert bound.surface == pytest.approx(-tension * lost - offset, rel=2e-3)


def test_lost_areas_are_differences_of_accessible_areas():
    """Of the complex and both molecules alone, whose points are the same; some atoms have no radius."""
    folder = TOOLS / "cb7-viologen" / "leap"
    both = read_structure(folder / "complex-vacuum.pdb", topology=folder / "complex-vacuum.prmtop")
    guest, positions = both.residue_names == "LIG", both.positions.copy()
    positions[guest] += 0.7 * (positions[~guest].mean(0) - positions[guest].mean(0))
    radii = np.where(np.arange(len(both)) % 7 == 3, 0.0, 1.6)
    expected = np.zeros(len(both))
    for part, sign in ((np.full(len(both), True), -1), (guest, 1), (~guest, 1)):
        expected[part] += sign * areas(Surface(positions[part], radii[part], 1.4), False)[0]
    assert expected.sum() > 100
    assert lost_areas(positions, radii, 1.4, guest) == pytest.approx(expected, abs=1e-9)


def test_what_is_wrong():
    silicon = replace(charges_at([[0.0, 0, 0]], [1.0]), elements=np.array(["Si"]))
    for structure, model, parameters, error in ((silicon, "gbn2", {}, InputError),
                                                (silicon, "obc2", {"probe": 1.0}, UsageError),
                                                (replace(silicon, elements=np.array([""]), atom_names=np.array(["?"])),
                                                 "obc2", {}, InputError)):
        with pytest.raises(error):
            GeneralizedBorn.of(structure, model, parameters)
