"""Screened potentials on a mesh: the split, one ion, and maps against the sum over all images written out."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from cuda_kernels import compile_for_all, traced_on_the_host, work
from helpers import charges_at, relative_rms, rms

from vmdpotential.engines import get_engine
from vmdpotential.engines.cuda import build
from vmdpotential.errors import TaskError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import coulomb, screened_coulomb, short_screened
from vmdpotential.maps import MapOptions, bind, choose_method, plan_map, potential_map
from vmdpotential.methods import Charges, Request, accuracy, cutoff, direct, pme
from vmdpotential.methods.accuracy import AWAY
from vmdpotential.methods.reference import full_potential
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.coulomb import optimal
from vmdpotential.splitting.screened import MOST, optimal_for_screened
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


@pytest.mark.parametrize(("length", "order", "ratio"), [(2.7, 4, 3.0), (7.85, 6, 4.5), (1e4, 8, 7.0)])
def test_the_two_parts_are_the_screened_potential(length, order, ratio):
    smooth, error = optimal_for_screened(length, 4.0, 4.0 / ratio, order)
    r = np.linspace(0.2, 8.0, 500)
    np.testing.assert_allclose(smooth.short()(r) + smooth.long(r), screened(length)(r), rtol=1e-7, atol=1e-8)
    inside = r[r < 4]
    np.testing.assert_allclose(np.polynomial.polynomial.polyval((inside / 4) ** 2, smooth.polynomial),
                               smooth.long(inside), atol=1e-12)
    assert smooth.long(4.0 - 1e-9) == pytest.approx(smooth.long(4.0 + 1e-9), abs=1e-8)
    assert error == pytest.approx(optimal(4.0, 4.0 / ratio, order)[1] / smooth.strength)
    assert optimal_for_screened(length, MOST * length * 1.01, length, order)[1] == np.inf


@pytest.mark.parametrize(("length", "radius"), [(7.85, 4.0), (2.0, 4.0), (30.0, 6.0)])
def test_the_window_is_the_transform_of_the_smooth_part(length, radius):
    smooth, _ = optimal_for_screened(length, radius, radius / 4, 6)
    x, w = np.polynomial.legendre.leggauss(100)
    edges = [0, *np.linspace(radius, radius + 32 * length, 60)]
    r = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b in itertools.pairwise(edges)])
    dr = np.concatenate([(b - a) / 2 * w for a, b in itertools.pairwise(edges)])
    k = np.array([0.01, 0.3, 1.0, 3.0, 12.0]) / radius
    numeric = (k + smooth.kappa**2 / k) * ((smooth.long(r) * r * dr) @ np.sin(np.outer(r, k)))
    np.testing.assert_allclose(smooth.window(k), numeric, rtol=1e-7, atol=1e-8)
    assert smooth.integral == pytest.approx(4 * np.pi * np.sum(smooth.long(r) * r**2 * dr), rel=1e-8)
    # the mean over a cell is that of all ions' whole potential: 4 pi L^2 over its volume for each
    short = 4 * np.pi * np.sum(smooth.short()(r) * r**2 * dr)
    assert smooth.integral + short == pytest.approx(4 * np.pi * length**2, rel=1e-8)


def test_the_short_range_interaction():
    for check in short_screened.INTERACTION.checks:
        assert short_screened.INTERACTION.bind(**check.parameters)(check.r) == pytest.approx(check.value)


@pytest.mark.parametrize(("real", "field"), [("float", False), ("double", True)])
def test_the_traced_function_computes_what_numpy_does(real, field):
    bound = optimal_for_screened(7.85, 5.0, 1.1, 6)[0].short()
    r = np.linspace(0.02, 6.0, 60)
    actual = traced_on_the_host(bound, 8.0, real, field, r)
    expected = bound.derivative(r) / (2 * r) * 64 if field else bound(r)
    np.testing.assert_allclose(actual, expected, rtol={"float": 2e-5, "double": 1e-11}[real], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "field"), [("single", False), ("single", True), ("double", True)])
def test_the_kernel_of_pairs_compiles(precision, field, tmp_path):
    planned = work(optimal_for_screened(7.85, 5.0, 1.1, 6)[0].short(), precision, field=field)
    compile_for_all(build.source("cutoff.cu", planned.macros, planned.radial), planned.macros, tmp_path)


@pytest.mark.parametrize("name", ["orthogonal", "triclinic"])
@pytest.mark.parametrize("length", [0.8, 2.5, 7.85])
def test_the_reference_is_the_sum_over_images(name, length):
    points = np.random.default_rng(5).random((40, 3)) * 18
    nearest = np.empty(len(points))
    actual = full_potential(points, POSITIONS, CHARGES, CELLS[name], ENGINE, nearest, screened(length))
    (expected, *_), least = written_out(points, CELLS[name], length)
    assert relative_rms(actual, expected) < 1e-8
    np.testing.assert_allclose(nearest, least)


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
    for where in (slice(None), least > AWAY):
        for part in (slice(0, 1), slice(1, 4)):
            error = rms((actual - expected)[part, where]) / rms(expected[part, where])
            assert 1e-7 < error < 1.3 * tolerance


def test_one_ion_in_an_open_boundary():
    ion = np.array([[3.0, 3.1, 2.9]])
    lattice = Lattice(np.zeros(3), np.full(3, 0.7), (25, 12, 10))
    grid = potential_map(charges_at(ion, [2.0]), method="pme", screened=0.5, tolerance=1e-4, unit="V", engine="cpu",
                         lattice=lattice)
    r = np.linalg.norm(lattice.points() - ion, axis=1)
    length = 4.3021  # A, of 0.5 M
    expected = coulomb_constant("V") / 78.5 * 2.0 * np.exp(-r / length) / r
    far = r > 3.0
    assert relative_rms(grid.values.ravel()[far], expected[far]) < 2e-4
    # nothing wraps around a padded mesh, although the potential falls by 1e3 along it
    assert relative_rms(grid.values.ravel()[r > 12], expected[r > 12]) < 1e-2


def test_auto_weighs_the_mesh_against_pairs():
    cell = Cell.from_parameters(30, 30, 30)
    positions, charges = water_box(30.0)
    lattice = Lattice(np.zeros(3), np.full(3, 0.4), (75, 75, 75))

    def chosen(length, cell=cell, count=None):
        atoms = positions[:count], charges[:count]
        expected = MapOptions(interaction="screened_coulomb", parameters={"debye_length": length})
        request = Request(lattice, cell, bind(expected, cell), Charges.of(*atoms, cell), tolerance=1e-3)
        return choose_method(expected, request, *atoms, ENGINE)[0]

    assert chosen(7.85) is pme.METHOD
    assert chosen(0.2) is cutoff.OF_TAIL
    assert chosen(7.85, None) is pme.METHOD
    assert chosen(7.85, None, 3) is direct.METHOD


def test_what_no_mesh_does_is_refused():
    ions = charges_at(POSITIONS, CHARGES, CELLS["orthogonal"])
    options = {"interaction": "screened_coulomb", "spacing": 2.0, "engine": "cpu"}
    with pytest.raises(TaskError, match="no mesh keeps the tolerance"):
        potential_map(ions, method="pme", parameters={"debye_length": 0.12}, **options)
    with pytest.raises(UsageError, match=r"the potential of screened_coulomb is summed without a cutoff"):
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
    assert again.request.error == pytest.approx(min(planned.request.error, accuracy.SPARE * planned.plan.error))
    assert again.plan.error <= again.request.error
    assert planned.fits(POSITIONS, cell)
    assert not planned.fits(POSITIONS + 9.0, None)
    assert cell is None or not planned.fits(POSITIONS, Cell.from_parameters(18.01, 19, 20))
    if cell is not None:
        assert relative_rms(planned.plan.in_cell(cell).run(other, planned.charges).values(),
                            planned.run(other).values()) < 1e-6
