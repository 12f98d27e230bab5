"""The method `pb` at points, and its field: closed forms, maps, finer grids, and the errors that are stated."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at
from scipy.special import eval_legendre
from test_pb import INSIDE, PLACE, RADIUS, START, WATER, C, ball
from test_pb_energies import peptide

from vmdpotential import potential_at, potential_map
from vmdpotential.errors import InputError, TaskError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import MapOptions, plan_map
from vmdpotential.maps.medium import Medium
from vmdpotential.plugins.fields.field import field_at
from vmdpotential.plugins.fields.field_command import command as field_
from vmdpotential.plugins.fields.sites import FieldSites
from vmdpotential.sums import accuracy
from vmdpotential.units import coulomb_constant, debye_length

VOLTS = coulomb_constant("V") / C


def rms(values):
    return np.sqrt(np.mean(np.square(values)))


def directions(count, seed=7):
    d = np.random.default_rng(seed).normal(size=(count, 3))
    return d / np.linalg.norm(d, axis=1)[:, None]


def born_everywhere(r, salt):
    """Return potential and radial field of a unit charge in a ball, kT/e and kT/e/A."""
    kappa = 1 / debye_length(salt, 298.15, WATER)
    tail = kappa / (1 + kappa * START)
    inside = C / INSIDE / r + C * (1 / WATER - 1 / INSIDE) / RADIUS - C / WATER * tail
    far = C / WATER * np.exp(-kappa * (r - START)) / (1 + kappa * START) / r
    layer = r < START
    return (np.where(r < RADIUS, inside, np.where(layer, C / WATER * (1 / r - tail), far)),
            np.where(r < RADIUS, C / INSIDE / r**2, np.where(layer, C / WATER / r**2, far * (kappa + 1 / r))))


@pytest.mark.parametrize(("low", "high", "limits"), [
    (0.3, 2.95, (1e-3, 1e-3)), (3.02, 3.5, (5e-3, 0.02)), (3.5, 8.0, (4e-3, 8e-3)), (12.0, 17.0, (0.01, 0.01))])
def test_borns_ion(low, high, limits):
    """Inside, next to the surface, outside, and where the coarse lattice alone is."""
    ion = replace(charges_at([PLACE], [1.0]), radii=[RADIUS])
    d = directions(300)
    r = np.random.default_rng(1).uniform(low, high, 300)
    potential, slope = born_everywhere(r, 0.15)
    points = PLACE + d * r[:, None]
    assert rms(potential_at(ion, points, method="pb") - potential) < limits[0] * rms(potential)
    result = field_at(ion, FieldSites.at(points, [str(n) for n in range(300)]), method="pb", unit="kT/e")
    assert result.potential[0, 0] == pytest.approx(potential_at(ion, points, method="pb"), rel=1e-6)
    assert rms(result.field[0, 0] - VOLTS * slope[:, None] * d) < limits[1] * VOLTS * rms(slope)
    assert rms(result.field[0, 0] - VOLTS * slope[:, None] * d) < 3 * result.error


def test_field_of_a_map_is_that_at_its_points():
    ion = replace(charges_at([PLACE], [1.0]), radii=[RADIUS])
    lattice = Lattice((-7, -7, -7), 0.5, (29, 29, 29))
    grid = potential_map(ion, method="pb", lattice=lattice, field=True)
    d = lattice.points() - PLACE
    r = np.linalg.norm(d, axis=1)
    potential, slope = born_everywhere(r, 0.15)
    values = np.stack([part.values.ravel() for part in grid.field], 1)
    exact = VOLTS * (slope / r)[:, None] * d
    for chosen, limit in ((r < RADIUS - 0.1, 1e-3), (r > RADIUS + 0.1, 0.03)):
        assert rms((values - exact)[chosen]) < limit * rms(exact[chosen])
    assert grid.field[0].unit == "V/A"
    assert rms((values - exact)[r > RADIUS]) < 1.5 * grid.field[0].provenance.error * rms(exact[r > RADIUS])
    alone = potential_map(ion, method="pb", lattice=lattice)
    assert np.array_equal(alone.values, grid.values)
    every = np.arange(0, len(r), 7)
    result = potential_at(ion, lattice.points()[every], method="pb")
    # other lattices than the map's: as near as the closed form
    assert rms(result - alone.values.ravel()[every]) < 5e-3 * rms(potential[every])


def test_kirkwoods_sphere_at_its_charges_and_outside():
    places = PLACE + np.array([[1.2, 0.3, 0.0], [-0.7, 0.5, 0.6]])
    charges = np.array([1.0, -1.0])
    molecule = ball(places, charges)
    # J. G. Kirkwood, J. Chem. Phys. 2 (1934) 351, eq. 4: the water's answer, at the charges
    d = places - PLACE
    r = np.linalg.norm(d, axis=1)
    cosines = np.clip(d @ d.T / np.outer(r, r), -1, 1)
    answer = sum(C * (INSIDE - WATER) * (n + 1) / (WATER * (n + 1) + INSIDE * n) / INSIDE / RADIUS
                 * (eval_legendre(n, cosines) * (np.outer(r, r) / RADIUS**2) ** n) @ charges for n in range(60))
    other = C / INSIDE / np.linalg.norm(places[0] - places[1])
    rows = FieldSites.atoms(np.array([1, 2]), ["a", "b"])
    result = field_at(molecule, rows, method="pb", unit="kT/e", parameters={"salt": 0})
    assert result.potential[0, 0] == pytest.approx(answer + other * charges[::-1], rel=2e-3)
    finer = field_at(molecule, rows, method="pb", unit="kT/e", parameters={"salt": 0}, spacing=0.2)
    assert finer.potential[0, 0] == pytest.approx(answer + other * charges[::-1], rel=5e-4)
    points = PLACE + 4 * directions(200)
    exact = sum(q * (2 * n + 1) / (WATER * (n + 1) + INSIDE * n) * s**n / 4 ** (n + 1)
                * eval_legendre(n, (points - PLACE) @ away / (4 * s))
                for q, away, s in zip(charges, d, r, strict=True) for n in range(30))
    values = potential_at(molecule, points, medium=Medium.continuum(0.0), unit="V")
    assert rms(values - C * VOLTS * exact) < 0.02 * rms(C * VOLTS * exact)


@pytest.mark.slow
def test_molecule_against_its_map_and_a_finer_lattice():
    two = peptide()
    rng = np.random.default_rng(3)
    points = two.positions.mean(0) + rng.uniform(-9, 9, (500, 3))
    lattice = Lattice.around(two.positions, 0.5, 6.0)  # the one that values are interpolated from
    grid = potential_map(two, method="pb", lattice=lattice)
    chosen = rng.integers(0, lattice.shape, (500, 3))
    values = grid.values[tuple(chosen.T)]
    assert rms(potential_at(two, lattice.points(chosen), method="pb") - values) < 1e-4 * rms(values)
    atoms = FieldSites.atoms(np.arange(len(two)), [str(n) for n in range(len(two))])
    near = two.positions[np.arange(500) % len(two)] + rng.normal(size=(500, 3))
    for places in (points, near):
        exact = potential_at(two, places, method="pb", spacing=0.125)
        result = field_at(two, FieldSites.at(places, [str(n) for n in range(500)]), method="pb", unit="kT/e")
        assert rms(result.potential[0, 0] - exact) < result.relative_errors[0] * rms(exact)
    result, finer = (field_at(two, atoms, method="pb", spacing=spacing) for spacing in (0.5, 0.2))
    assert rms(result.field - finer.field) < 1.5 * result.error
    assert finer.error < result.error
    tolerance = 0.5 * max(result.relative_errors)
    better = field_at(two, atoms, method="pb", tolerance=tolerance)
    assert max(better.relative_errors) <= tolerance
    with pytest.raises(TaskError):
        potential_at(two, points, method="pb", tolerance=1e-6)


def test_command_and_contributions(tmp_path):
    two = peptide()
    report = field_(structure=two, at="name CA", method="pb", spacing=0.7, from_=("name CA", "not name CA"),
                    output=tmp_path / "field.csv")
    assert report.data["medium"].startswith("water")
    assert report.data["boundary"] == "open"
    assert report.data["tolerance"] is None
    assert 0 < report.data["error_field"] < 0.2
    potential = np.array(report.data["potential"])
    assert potential[0] == pytest.approx(potential[1:].sum(0), rel=1e-3, abs=1e-4)
    with pytest.raises(UsageError) as caught:
        field_(structure=two, at="name CA", method="pb", from_=("name CA", "name CB"), **{"set": {"nonlinear": 1.0}})
    assert caught.value.parameter == "set"
    with pytest.raises(UsageError) as caught:
        field_(structure=two, at="name CA", radii="bondi")
    assert caught.value.parameter == "radii"


def test_the_sum_of_the_charges_is_measured_when_a_map_is_planned(monkeypatch):
    """Not in each frame, in which it keeps its tolerance; so the bits of a frame depend on no other frame."""
    two, options = peptide(), MapOptions(method="pb", spacing=0.8, padding=4.0, engine="cpu")
    planned, _ = plan_map(two, options, margin=1.0)
    sent = pickle.dumps(planned.plan)
    rng = np.random.default_rng(7)
    first, second = (two.positions + 0.2 * rng.normal(size=two.positions.shape) for _ in range(2))
    expected = plan_map(replace(two, positions=second), options, lattice=planned.request.lattice)[1].values()
    monkeypatch.setattr(accuracy, "sample", None)  # which is called to measure
    planned.run(first)
    actual = planned.run(second).values()
    assert np.array_equal(actual, pickle.loads(sent).run(second, planned.charges).values())
    assert rms(actual - expected) < 3e-5 * rms(expected)


def test_field_at_a_surface_along_a_layer_of_nodes():
    """Where the nodes around a point on its side are two layers, from which no derivative across them would follow."""
    ion = replace(charges_at([PLACE], [1.0]), radii=[RADIUS])
    errors = []
    for spacing in (0.5, 0.25):
        height = RADIUS + spacing * np.linspace(0.05, 0.9, 30)
        d = np.array([[0.05, -1.0, 0.03], [0.02, 0.04, 1.0], [1.0, 0.06, -0.05]])
        d = np.repeat(d / np.linalg.norm(d, axis=1)[:, None], len(height), 0)
        r = np.tile(height, 3)
        points = FieldSites.at(PLACE + r[:, None] * d, [str(n) for n in range(len(r))])
        result = field_at(ion, points, method="pb", unit="kT/e", spacing=spacing).field[0, 0]
        exact = VOLTS * born_everywhere(r, 0.15)[1][:, None] * d
        errors.append(np.linalg.norm(result - exact, axis=1).max() / rms(exact))
    assert errors[0] < 0.1
    assert errors[1] < 0.05


def test_refusals():
    ion = charges_at([PLACE], [1.0])
    with pytest.raises(InputError):
        potential_at(replace(ion, atom_names=np.array(["?"])), [[4, 0, 0]], method="pb")
    for options in ({"boundary": "periodic"}, {"method": "apbs"}):
        with pytest.raises(UsageError):
            potential_at(replace(ion, radii=[RADIUS]), [[4, 0, 0]], **{"method": "pb", **options})
