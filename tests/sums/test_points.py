"""The potential at arbitrary points: closed forms, direct and Ewald sums, OpenMM, the way it is chosen."""

import itertools
from dataclasses import replace
from functools import cache

import ewald
import numpy as np
import pytest
from helpers import charges_at, rms, slow
from messages import Words, naming

import vmdpotential
from vmdpotential import potential_at
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, MemoryPlanError, TaskError, UsageError
from vmdpotential.interactions import coulomb, shifted_coulomb
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.ions.ewald_pair import EwaldPair, EwaldSites
from vmdpotential.sums import machine
from vmdpotential.sums.cpu.nearby import cutoff_at_points
from vmdpotential.sums.points import request_at, sum_at
from vmdpotential.units import coulomb_constant

CELLS = {
    "cube": Cell.from_parameters(30, 30, 30),
    "box": Cell.from_parameters(24, 31, 37),
    "triclinic": Cell.from_parameters(28, 33, 30, 70, 100, 115),
    "hexagonal": Cell.from_parameters(30, 30, 26, 90, 90, 120),
    "thin": Cell.from_parameters(9, 30, 33),
    "turned": Cell(np.diag([25.0, 30.0, 35.0]) @ np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]),
}


@pytest.fixture(params=CELLS)
def cell(request):
    return CELLS[request.param]


def cloud(cell, atoms, points, seed=0):
    """Random charges that do not sum to zero, in and around the cell, and points likewise."""
    random = np.random.default_rng(seed)
    places = random.uniform(-1, 2, (atoms + points, 3)) @ cell.vectors
    return places[:atoms], random.normal(0.05, 0.5, atoms), places[atoms:]


# ---- pairs within a cutoff -------------------------------------------------------------------------------


@pytest.mark.parametrize("cutoff", slow([3.0, 9.0, 40.0], [40.0]))
def test_all_images_within_a_cutoff_count(cell, cutoff):
    positions, charges, points = cloud(cell, 60, 20)
    interaction = shifted_coulomb.INTERACTION.bind(cutoff=cutoff)
    reach = np.ceil(cutoff * np.linalg.norm(np.linalg.inv(cell.vectors), axis=0)).astype(int) + 4
    expected = np.zeros(len(points))
    for step in itertools.product(*(range(-n, n + 1) for n in reach)):
        r = np.linalg.norm(points[:, None] - positions - step @ cell.vectors, axis=2)
        expected += np.where(r < cutoff, (1 - (r / cutoff) ** 2) ** 2 / r, 0.0) @ charges
    # by images of the atoms, and of a few points; with the field, which is a difference of what is shifted alike
    for few in (slice(None), slice(5)):
        actual, *field = cutoff_at_points(points[few], positions, charges, interaction, cell, True)
        np.testing.assert_allclose(actual, expected[few], atol=1e-11 * max(1.0, abs(expected).max()))
        nearby = [cutoff_at_points(points[few] + step, positions, charges, interaction, cell)[0]
                  for step in 1e-5 * np.array([[1.0, 0, 0], [-1, 0, 0]])]
        slope = (nearby[1] - nearby[0]) / 2e-5
        np.testing.assert_allclose(field[0], slope, atol=1e-5 * max(1.0, abs(slope).max()))


@pytest.mark.parametrize("cutoff", [0.5, 4.0, 1000.0])
def test_pairs_within_a_cutoff_in_an_open_boundary(cutoff):
    random = np.random.default_rng(1)
    # dense enough for more atoms in range than are collected at once, and some far away
    positions = np.concatenate([random.uniform(0, 8, (1500, 3)), random.uniform(-300, 300, (50, 3))])
    points = np.concatenate([random.uniform(-2, 10, (60, 3)), random.uniform(-500, 500, (20, 3)), positions[:1]])
    charges = random.normal(size=len(positions))
    interaction = coulomb.INTERACTION.bind().truncated(cutoff)
    r = np.linalg.norm(points[:, None] - positions, axis=2)
    expected = np.where(r < cutoff, 1 / np.maximum(r, 0.01), 0.0) @ charges
    np.testing.assert_allclose(cutoff_at_points(points, positions, charges, interaction)[0], expected, atol=1e-10)


def test_no_points_and_no_atoms():
    empty, bound = np.zeros((0, 3)), shifted_coulomb.INTERACTION.bind(cutoff=5.0)
    assert cutoff_at_points(empty, np.ones((1, 3)), np.ones(1), bound).shape == (1, 0)
    assert cutoff_at_points(np.ones((2, 3)), empty, np.zeros(0), bound).tolist() == [[0, 0]]
    far = cutoff_at_points(np.full((2, 3), 1e5), np.ones((1, 3)), np.ones(1), bound)
    assert far.tolist() == [[0, 0]]


# ---- one charge and its images ---------------------------------------------------------------------------


@pytest.mark.slow
def test_one_charge_with_all_its_images(cell):
    pair = EwaldPair(cell)
    _, _, points = cloud(cell, 0, 200)
    place = np.array([0.3, -1.7, 0.9]) @ cell.vectors
    actual = np.ones(len(points))
    pair.add(points, place, -2.0, actual)
    expected = ewald.potential(points, place[None], np.array([-2.0]), cell.vectors)
    length = np.linalg.norm(cell.reduced, axis=1).min()
    np.testing.assert_allclose(actual - 1, expected, atol=2e-5 / length)
    assert rms(actual - 1 - expected) < 4e-6 / length


def test_what_waits_at_many_sites_is_the_same_potential(cell):
    pair = EwaldPair(cell)
    _, _, points = cloud(cell, 0, 700)
    sites, length = EwaldSites(pair, points), np.linalg.norm(cell.reduced, axis=1).min()
    assert sorted(sites.order) == list(range(len(points)))
    sums, expected, rows = np.zeros(len(points)), np.zeros(len(points)), np.arange(0, len(points), 3)
    # on, next to and between nodes; in, at the corners of and outside the cell
    corners = np.array([[0, 0, 0], [1, 1, 1], [-1e-17, 0.999999, 0.5]]) @ pair.basis.vectors
    places = np.concatenate([corners, cloud(cell, 40, 0, seed=1)[0]])
    for n, place in enumerate(places):
        sites.add(place, (-1.0) ** n * 2, sums)
        pair.add(points, place, (-1.0) ** n * 2, expected)
        waits = sites.at(rows)
        assert abs(waits).max() <= sites.slack
        np.testing.assert_allclose(sums[rows] + waits, expected[sites.order[rows]], atol=6e-5 / length)
    assert sites.slack > 100 * 6e-5 / length
    sites.add_pending(sums)
    assert sites.slack == 0
    assert not sites.at(rows).any()
    np.testing.assert_allclose(sums, expected[sites.order], atol=6e-5 / length)
    assert rms(sums - expected[sites.order]) < 2e-5 / length


# ---- the full potential ----------------------------------------------------------------------------------


@cache
def exact_in(name):
    """Return a structure, points, the potential by the direct sum, and by Ewald's at ten of them."""
    positions, charges, points = cloud(CELLS[name], 800, 300)
    structure = charges_at(positions, charges, CELLS[name])
    few = coulomb_constant("V") * ewald.potential(points[:10], positions, charges, CELLS[name].vectors)
    return structure, points, potential_at(structure, points, method="direct", unit="V"), few


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-5])
def test_a_mesh_keeps_the_tolerance_in_every_cell(name, tolerance):
    structure, points, expected, few = exact_in(name)
    actual = potential_at(structure, points, method="pme", tolerance=tolerance, unit="V")
    assert rms(actual - expected) < 1.5 * tolerance * rms(expected)  # 200 of the points were measured
    assert rms(actual[:10] - few) < 4 * tolerance * rms(expected)
    np.testing.assert_allclose(expected[:10], few, atol=1e-7 * rms(expected))


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
def test_a_mesh_keeps_the_tolerance_in_an_open_boundary(tolerance):
    positions, charges, points = cloud(CELLS["box"], 3000, 400)
    points = points[:, ::-1] + [5.0, -20.0, 30.0]  # next to the atoms, too
    structure = charges_at(positions, charges)
    actual = potential_at(structure, points, method="pme", tolerance=tolerance, unit="kcal/mol/e", dielectric=4.0)
    r = np.linalg.norm(points[:, None] - positions, axis=2)
    expected = coulomb_constant("kcal/mol/e") / 4 * (1 / r @ charges)
    assert rms(actual - expected) < 1.5 * tolerance * rms(expected)


@pytest.mark.parametrize("method", ["direct", "pme"])
def test_the_potential_in_rock_salt_is_madelungs(method):
    # Madelung's constant of NaCl, and a charge's potential from its own images: R. E. Crandall, J. P. Buhler,
    # J. Phys. A 20 (1987) 5497; B. R. A. Nijboer, Th. W. Ruijgrok, J. Stat. Phys. 53 (1988) 361
    madelung, images, step = 1.747564594633182, -2.837297479480620, 2.82
    nodes = np.array(list(itertools.product(range(8), repeat=3)))
    structure = charges_at(nodes[1:] * step, 1.0 - 2 * (nodes[1:].sum(1) % 2), Cell.from_parameters(*[8 * step] * 3))
    # the potential at an image of an ion that is taken out with all its images
    result = potential_at(structure, [[0.0, 8 * step, -16 * step]], method=method, tolerance=1e-6, unit="V")
    assert result[0] / coulomb_constant("V") == pytest.approx(-madelung / step - images / (8 * step), rel=3e-6)


def test_openmm_agrees():
    import openmm
    from openmm import unit

    cell = CELLS["box"]
    random = np.random.default_rng(8)
    positions = random.uniform(0, 1, (80, 3)) @ cell.vectors
    charges = random.normal(size=80)
    charges -= charges.mean()
    # a test charge at a point: the change of OpenMM's energy with it is q times the potential
    points = random.uniform(0, 1, (6, 3)) @ cell.vectors

    def energy(point, charge):
        system, force = openmm.System(), openmm.NonbondedForce()
        system.setDefaultPeriodicBoxVectors(*cell.vectors / 10)
        for q in [*charges, charge]:
            system.addParticle(1.0)
            force.addParticle(float(q), 0.3, 0.0)
        force.setNonbondedMethod(openmm.NonbondedForce.Ewald)
        force.setEwaldErrorTolerance(1e-9)
        force.setCutoffDistance(1.1)
        system.addForce(force)
        context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
        context.setPositions(np.concatenate([positions, point[None]]) / 10)
        value = context.getState(getEnergy=True).getPotentialEnergy()
        return value.value_in_unit(unit.kilocalories_per_mole)

    # (E(+1) - E(-1)) / 2 has no energy of the charge with its own images and background
    expected = [(energy(p, 1.0) - energy(p, -1.0)) / 2 for p in points]
    for method in ("direct", "pme"):
        actual = potential_at(charges_at(positions, charges, cell), points, method=method, tolerance=1e-6,
                             unit="kcal/mol/e")
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=2e-3)


def test_a_point_on_an_atom_is_finite():
    cell = CELLS["cube"]
    positions, charges, _ = cloud(cell, 100, 0)
    for box in (cell, None):
        structure = charges_at(positions, charges, box)
        result, near = (
            potential_at(structure, positions[:3] + shift, method="pme", tolerance=1e-5, unit="V")
            for shift in ([0, 0, 0], [0, 0, 0.01])
        )
        np.testing.assert_allclose(result, near, rtol=2e-3)
        np.testing.assert_allclose(result, coulomb_constant("V") * charges[:3] / 0.01, rtol=0.2)


def test_atoms_may_be_selected_and_boundaries_chosen():
    positions, charges, points = cloud(CELLS["box"], 40, 5)
    structure = charges_at(positions, charges, CELLS["box"])
    alone = potential_at(structure, points, boundary="open", unit="V", atoms="all")
    np.testing.assert_allclose(alone, coulomb_constant("V") * (1 / np.linalg.norm(points[:, None] - positions, axis=2)
                                                             @ charges), rtol=1e-10)
    names = np.repeat(["ABC", "LIG"], 20)
    number = np.repeat([1, 2], 20)
    halves = replace(structure, residue_names=names, residue_index=number - 1, residue_ids=number)
    half = potential_at(halves, points, boundary="open", unit="V", atoms="(ABC)")
    np.testing.assert_allclose(half, potential_at(charges_at(positions[:20], charges[:20]), points, unit="V"),
                               rtol=1e-10)
    assert potential_at(structure, np.zeros((0, 3))).shape == (0,)
    assert vmdpotential.potential_at is potential_at


def test_few_points_are_summed_exactly_and_many_by_a_mesh():
    for cell, exact in ((None, "direct"), (Cell.from_parameters(50, 50, 50), "ewald")):
        positions, charges, points = cloud(Cell.from_parameters(50, 50, 50), 3000, 20000)
        for count, method in ((10, exact), (20000, "pme")):
            request = request_at(points[:count], positions, charges, cell, tolerance=1e-3)
            plan, _, errors = sum_at(request, positions, charges, get_engine("cpu"))
            assert plan.method == method
            assert (errors is None) == (method != "pme")


def test_far_points_in_an_open_boundary_take_no_huge_mesh(monkeypatch):
    positions, charges, points = cloud(CELLS["cube"], 50, 400)
    points[0] = 1e6
    structure = charges_at(positions, charges)
    expected = coulomb_constant("V") * (1 / np.linalg.norm(points[:, None] - positions, axis=2) @ charges)
    np.testing.assert_allclose(potential_at(structure, points, unit="V"), expected, rtol=1e-9)
    with pytest.raises(MemoryPlanError):
        potential_at(structure, points, method="pme")


def test_one_point_may_be_an_array_of_three_numbers():
    structure = charges_at([(0, 0, 0)], [1.0])
    one, several = (potential_at(structure, points) for points in ([1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]]))
    assert one.shape == ()
    assert several.shape == (1,)
    assert one == several[0]


@pytest.mark.parametrize(
    ("options", "parameter", "message"),
    [
        ({"method": "cutoff"}, "method", "method"),
        ({"tolerance": 1.0}, "tolerance", "tolerance=1"),
        ({"points": [1.0, 2.0]}, "points", "(2,)"),
        ({"points": 1.0}, "points", "()"),
        ({"points": [[1.0, 2.0, 3.0], [1.0]]}, "points", "points"),
        ({"points": [[1.0, np.nan, 3.0]]}, "points", "finite"),
        ({"unit": "J"}, None, "J"),
    ],
)
def test_wrong_usage_is_one_line(options, parameter, message):
    structure = charges_at([(0, 0, 0)], [1.0])
    points = options.pop("points", [[1.0, 2.0, 3.0]])
    with pytest.raises(UsageError) as error:
        potential_at(structure, points, **options)
    assert message in str(error.value)
    assert parameter is None or error.value.parameter == parameter
    assert "\n" not in str(error.value)


def test_unsuitable_structures():
    structure = charges_at([(0, 0, 0)], [1.0])
    with naming(InputError, Words.NO_CELL):
        potential_at(structure, [[1.0, 2.0, 3.0]], boundary="periodic")
    bare = Structure(positions=np.zeros((1, 3)), atom_names=["C"], residue_names=["LIG"], residue_ids=[1],
                     residue_index=[0])
    with naming(TaskError, "LIG"):  # which is needed to complete it
        potential_at(bare, [[1.0, 2.0, 3.0]])


def test_a_mesh_without_room_is_not_replaced_by_hours_of_pairs(monkeypatch):
    positions, charges, points = cloud(CELLS["cube"], 2000, 2000)
    request = request_at(points, positions, charges, CELLS["cube"], tolerance=1e-3)
    monkeypatch.setattr(machine, "MAX_SECONDS", 0.0)  # 2000 atoms stand for a million
    monkeypatch.setattr(machine, "MAX_RATIO", 1.0)
    assert sum_at(request, positions, charges, get_engine("cpu"))[0].method == "pme"
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "600k")
    with pytest.raises(MemoryPlanError):
        sum_at(request, positions, charges, get_engine("cpu"))
