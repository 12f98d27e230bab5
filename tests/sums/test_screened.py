"""Screened potentials on a mesh: maps, points and fields against the sum over all images written out."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at, refused, relative_rms, rms

from vmdpotential import potential_at
from vmdpotential.engines import get_engine
from vmdpotential.engines.cpu import CpuEngine
from vmdpotential.errors import TaskError
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.interactions import SOFT_CORE, coulomb, screened_coulomb
from vmdpotential.interactions.screened_coulomb import in_water
from vmdpotential.maps import MapOptions, bind_interaction, choose_method, plan_map, potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.fields.field import field_at
from vmdpotential.plugins.fields.sites import FieldSites
from vmdpotential.sums import ChargeStatistics, Request, cutoff, direct, pme
from vmdpotential.sums.accuracy import AWAY_DISTANCE
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum
from vmdpotential.sums.reference import full_potential
from vmdpotential.sums.refinement import SAFETY_FACTOR
from vmdpotential.units import coulomb_constant

ENGINE = get_engine("cpu")
CELLS = {"open": None, "orthogonal": Cell.from_parameters(18, 19, 20),
         "triclinic": Cell.from_parameters(18, 21, 20, 75, 80, 112)}
RNG = np.random.default_rng(4)
POSITIONS = RNG.random((50, 3)) * 17
#: With a sum: a solution needs no background.
CHARGES = RNG.normal(size=50) + 0.2


def screened(length):
    return screened_coulomb.INTERACTION.bind(debye_length=length)


def written_out(points, cell, length, decays=20.0):
    """Return potential and field (4, P) of the charges and all images within some Debye lengths, and the least r (P,).

    In float64.
    """
    positions, charges, reach = POSITIONS, CHARGES, decays * length
    if cell is not None:
        positions, index = cell.images_in_box(positions, points.min(0) - reach, points.max(0) + reach)
        charges = charges[index]
    result, least = np.empty((4, len(points))), np.empty(len(points))
    for part in np.array_split(np.arange(len(points)), 1 + len(points) * len(positions) // 500_000):
        away = [points[part, d, None] - positions[:, d] for d in range(3)]
        r = np.sqrt(sum(x * x for x in away))
        each = charges * np.exp(-r / length) / r
        pull = each * (1 / r + 1 / length) / r
        result[:, part] = each.sum(1), *((x * pull).sum(1) for x in away)
        least[part] = r.min(1)
    return result, least


@pytest.mark.parametrize("name", ["orthogonal", "triclinic"])
@pytest.mark.parametrize("length", [0.8, 2.5, 7.85])
def test_the_reference_is_the_sum_over_images(name, length):
    points = np.random.default_rng(5).random((40, 3)) * 18
    actual = full_potential(points, POSITIONS, CHARGES, CELLS[name], ENGINE, screened(length))
    (expected, *_), least = written_out(points, CELLS[name], length)
    assert relative_rms(actual.values(), expected) < 1e-8
    np.testing.assert_allclose(actual.distances, least)


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize(("length", "tolerance"), [(2.5, 1e-4), (4.0, 1e-3)])
def test_maps_keep_the_tolerance(name, length, tolerance):
    cell = CELLS[name]
    lattice = Lattice(np.array([0.11, -0.3, 0.2]), np.full(3, 1.4), (13, 12, 13))
    grid = potential_map(charges_at(POSITIONS, CHARGES, cell), method="pme", interaction="screened_coulomb",
                         parameters={"debye_length": length}, tolerance=tolerance, unit="V", field=True,
                         lattice=lattice, engine="cpu")
    made = grid.provenance
    assert (made.method, made.boundary) == ("pme", "open" if cell is None else "periodic")
    assert 0 < max(made.error, made.error_away, made.error_field, made.error_field_away) <= tolerance
    expected, least = written_out(lattice.points(), cell, length, 16.0)
    expected *= coulomb_constant("V")
    actual = np.array([part.values.ravel() for part in (grid, *grid.field)])
    for where in (slice(None), least > AWAY_DISTANCE):
        for part in (slice(0, 1), slice(1, 4)):
            error = rms((actual - expected)[part, where]) / rms(expected[part, where])
            assert 1e-7 < error < 1.3 * tolerance


def test_auto_weighs_the_mesh_against_pairs():
    cell = Cell.from_parameters(30, 30, 30)
    positions, charges = water_box(30.0)
    lattice = Lattice(np.zeros(3), np.full(3, 0.4), (75, 75, 75))

    def chosen(length, cell=cell, count=None):
        atoms = positions[:count], charges[:count]
        expected = MapOptions(interaction="screened_coulomb", parameters={"debye_length": length})
        request = Request(lattice, cell, bind_interaction(expected, cell), ChargeStatistics.of(*atoms, cell),
                          tolerance=1e-3)
        return choose_method(expected, request, *atoms, ENGINE)[0]

    assert chosen(7.85) is pme.METHOD
    assert chosen(0.2) is cutoff.OF_TAIL
    assert chosen(7.85, None) is pme.METHOD
    assert chosen(7.85, None, 3) is direct.METHOD


def test_what_no_mesh_does_is_refused():
    ions = charges_at(POSITIONS, CHARGES, CELLS["orthogonal"])
    options = {"interaction": "screened_coulomb", "spacing": 2.0, "engine": "cpu"}
    with pytest.raises(TaskError):
        potential_map(ions, method="pme", parameters={"debye_length": 0.12}, **options)
    with refused("cutoff"):
        potential_map(ions, cutoff=9.0, **options)


@pytest.mark.parametrize("cell", [None, CELLS["orthogonal"]])
def test_plans_for_many_frames_are_by_mesh(cell):
    """Those of a trajectory's mean and of a live map, whose cells may change."""
    required = MapOptions(method="pme" if cell is None else "auto", screened=0.15, spacing=1.5, padding=2.0,
                        tolerance=1e-3, engine="cpu")
    planned, result = plan_map(
        charges_at(POSITIONS, CHARGES, cell), required, margin=2.0, soon=0.0)
    assert planned.method is pme.METHOD
    assert not planned.request.neutralised  # its zero is far from all charges
    assert replace(planned.request, interaction=coulomb.INTERACTION.bind()).neutralised == (cell is not None)
    other = np.clip(POSITIONS + np.random.default_rng(6).normal(size=POSITIONS.shape), 0, 17)
    mean = planned.plan.new_mean()
    for positions in (POSITIONS, other):
        mean.add(positions, planned.charges)
    expected = (result.values() + planned.run(other).values()) / 2
    assert relative_rms(mean.result().values(), expected) < 1e-5
    again = planned.renewed(other, None if cell is None else Cell.from_parameters(18.2, 19, 20))
    assert again.plan.method == "pme"
    assert again.request.error == pytest.approx(min(planned.request.error, SAFETY_FACTOR * planned.plan.error))
    assert again.plan.error <= again.request.error
    assert planned.fits(POSITIONS, cell)
    assert not planned.fits(POSITIONS + 9.0, None)
    assert cell is None or not planned.fits(POSITIONS, Cell.from_parameters(18.01, 19, 20))
    if cell is not None:
        assert relative_rms(planned.plan.in_cell(cell).run(other, planned.charges).values(),
                            planned.run(other).values()) < 1e-6


BOXES = {"open": None, "box": Cell.from_parameters(17, 19, 21),
         "triclinic": Cell.from_parameters(18, 19, 20, 75, 85, 95)}

#: M, whose Debye length of 3 A lets the sums over images end soon.
SALT = 1.0


def bound():
    return in_water(SALT, 298.15, 78.5)


def system(cell, count=300):
    """Return random charges, which are not neutral, in a cell and around it, the same for an open boundary."""
    random = np.random.default_rng(7)
    vectors = np.diag([17.0, 19, 21]) if cell is None else cell.vectors
    return charges_at(random.uniform(-0.5, 1.5, (count, 3)) @ vectors, random.normal(0.05, 0.5, count), cell)


def by_pairs(points, ions, cell, own=False):
    """Return potential and field at points, V and V/A, of all pairs within 60 A; at atoms without their own potential.
    """
    work = PotentialSum(Points(points), bound().truncated(60.0), cell, field=True)
    result = prepare_sum(get_engine("cpu"), work).run(ions.positions, ions.charges)
    potential, slope = result.values(), result.field().T
    if own:
        potential = potential - ions.charges * bound()(SOFT_CORE)
    return coulomb_constant("V", 298.15, 78.5) * potential, coulomb_constant("V", dielectric=78.5) * slope


@pytest.mark.parametrize("name", BOXES)
def test_points_by_a_mesh(name):
    cell = BOXES[name]
    ions = system(cell)
    points = np.random.default_rng(8).uniform(-10, 30, (250, 3))
    expected, _ = by_pairs(points, ions, cell)
    for tolerance in (1e-3, 1e-5):
        actual = potential_at(ions, points, screened=SALT, unit="V", method="pme", tolerance=tolerance)
        assert 1e-9 < rms(actual - expected) / rms(expected) < tolerance
    exact = potential_at(ions, points[:40], screened=SALT, unit="V")
    assert rms(exact - expected[:40]) < 1e-7 * rms(expected)


def test_points_that_hardly_anything_reaches_are_summed_exactly():
    ions = system(None, 50)
    far = np.random.default_rng(9).uniform(-10, 10, (300, 3)) + 150.0
    expected, _ = by_pairs(far, ions, None)
    direct = potential_at(ions, far, screened=SALT, unit="V", method="direct")
    assert 0 < rms(direct) < 1e-15
    assert rms(potential_at(ions, far, screened=SALT, unit="V") - direct) < 1e-5 * rms(direct)
    assert not expected.any()  # beyond its end


@pytest.mark.parametrize("name", BOXES)
def test_field_at_atoms_by_a_mesh(name, monkeypatch):
    # so that a mesh takes less time for few atoms too
    monkeypatch.setattr(CpuEngine, "costs", CpuEngine.costs._replace(
        point_pair_field=1e-3, sort=1e-3, image=1e-3))
    cell = BOXES[name]
    ions = system(cell)
    result = field_at(ions, FieldSites.atoms(np.arange(len(ions)), [str(n) for n in range(len(ions))]), screened=SALT)
    potential, slope = by_pairs(ions.positions, ions, cell, own=True)
    assert rms(result.potential[0, 0] - potential) < 2e-5 * rms(potential)
    error = rms(result.field[0, 0] - slope)
    assert error < 2e-5 * rms(slope)
    assert 0.2 * error < result.error < 5 * error
