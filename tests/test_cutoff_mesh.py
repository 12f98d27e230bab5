"""The cutoff method on a mesh: the split of the shifted potential, and maps against the sum pair by pair."""

import itertools
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import sums
from helpers import rms, slow
from scipy.spatial import cKDTree

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.engines.result import HostResult
from vmdpotential.errors import InputError, MemoryPlanError, TaskError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import short_cutoff
from vmdpotential.io import read_map
from vmdpotential.maps import SumOptions, bind, choose_method, potential_map
from vmdpotential.methods import Charges, Request, accuracy, cutoff
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.molecule.structure import Structure
from vmdpotential.splitting.coulomb import Splitting, mesh_loss
from vmdpotential.splitting.mesh import over_cell
from vmdpotential.splitting.shifted import SmoothCutoff, optimal_for_cutoff

ENGINE = get_engine("cpu")
TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
CELLS = {
    "open": None,
    "orthogonal": Cell.from_parameters(27, 30, 33),
    "triclinic": Cell.from_parameters(28, 30, 29, 78, 72, 105),
    "turned": Cell(Cell.from_parameters(28, 30, 29, 90, 70, 90).vectors @ TURN),
}


def shifted(reach):
    return registry.get("interaction", "shifted_coulomb").bind(cutoff=reach)


def random_charges(box, count=2000, seed=0, net=20.0):
    rng = np.random.default_rng(seed)
    charges = rng.choice([-0.6, 0.6], count)
    return rng.random((count, 3)) @ box, charges + (net - charges.sum()) / count


def lattice_for(cell, spacing=0.7):
    if cell is not None:
        return Lattice.over_cell(cell, spacing, np.array([0.1, -3.0, 5.0]))
    return Lattice(np.full(3, 0.2), np.full(3, spacing), (37, 41, 45))


def pairwise(lattice, positions, charges, reach, cell):
    return sums.cutoff(ENGINE, lattice, positions, charges, shifted(reach), "double", cell).astype(np.float64)


@pytest.mark.parametrize(("reach", "radius"), [(12.0, 4.0), (8.0, 8.0), (30.0, 2.5)])
def test_the_two_parts_are_the_shifted_potential(reach, radius):
    smooth, error = optimal_for_cutoff(reach, radius, radius / 4, 6)
    assert 0 < error < 1
    r = np.linspace(0.05, 1.2 * reach, 500)
    np.testing.assert_allclose(smooth.short()(r) + smooth.long(r), shifted(reach)(r), atol=1e-12)
    assert smooth.short().cutoff == smooth.radius == radius
    assert smooth.long(reach + 1e-6) == 0
    assert smooth.end == reach
    # continuous at the radius, although nothing but the least error makes the slope so
    step = 1e-6
    below, above = (smooth.long(radius + side * np.array([1, 2]) * step) for side in (-1, 1))
    assert below[0] == pytest.approx(above[0], abs=1e-5)
    assert (below[0] - below[1]) / step == pytest.approx((above[1] - above[0]) / step, abs=2e-2 / radius**2)


@pytest.mark.parametrize(("reach", "radius"), [(12.0, 4.0), (8.0, 8.0), (20.0, 3.0)])
def test_the_window_is_the_transform_of_the_smooth_part(reach, radius):
    smooth, _ = optimal_for_cutoff(reach, radius, radius / 3.5, 4)
    x, w = np.polynomial.legendre.leggauss(400)
    edges = np.array([0, radius, (radius + reach) / 2, reach])
    r = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b in itertools.pairwise(edges)])
    dr = np.concatenate([(b - a) / 2 * w for a, b in itertools.pairwise(edges)])
    k = np.array([0.01, 0.5, 0.999, 1.001, 3.0, 20.0, 100.0]) / reach
    numeric = k * ((smooth.long(r) * r * dr) @ np.sin(np.outer(r, k)))  # 4 pi / k int r L sin(k r) dr over 4 pi / k^2
    np.testing.assert_allclose(smooth.window(k), numeric, rtol=1e-8, atol=1e-13)
    assert smooth.integral == pytest.approx(4 * np.pi * np.sum(smooth.long(r) * r**2 * dr), rel=1e-10)
    assert smooth.short_integral == pytest.approx(4 * np.pi * np.sum(smooth.short()(r) * r**2 * dr), rel=1e-10)


def loss_of(smooth, order):
    """Return the predicted error by quadrature, with the cutoff's own waves in it, for a mesh step of 1."""
    k, loss = mesh_loss(order)
    fine = np.arange(0.005, k[-1], 0.01)
    return np.sqrt(8 * 0.01 * np.sum(np.interp(fine, k, loss) * (smooth.window(fine) / fine) ** 2))


@pytest.mark.parametrize(("reach", "radius", "order"), [(12.0, 4.0, 6), (25.0, 3.0, 8), (9.0, 3.0, 4)])
def test_no_other_polynomial_is_better(reach, radius, order):
    smooth, predicted = optimal_for_cutoff(reach, radius, 1.0, order)
    best = loss_of(smooth, order)
    assert predicted == pytest.approx(best, rel=0.1)
    rng = np.random.default_rng(0)
    for _ in range(8):
        change = rng.normal(size=len(smooth.inner.legendre)) * 3e-3
        change[0] = 0  # the first makes it continuous
        other = SmoothCutoff(Splitting(radius, smooth.inner.legendre + change), reach)
        assert loss_of(other, order) > best


def test_the_error_scales_as_it_should():
    """Lengths in another unit; a spacing half as large; a radius beyond the cutoff."""
    error = optimal_for_cutoff(12.0, 4.0, 1.0, 6)[1]
    assert optimal_for_cutoff(24.0, 8.0, 2.0, 6)[1] == pytest.approx(error * np.sqrt(2))
    assert optimal_for_cutoff(12.0, 3.0, 0.5, 6)[1] == pytest.approx(error / 2**2.5, rel=0.05)
    assert optimal_for_cutoff(12.0, 12.5, 1.0, 6)[1] == np.inf


def test_the_short_range_interaction():
    for check in short_cutoff.INTERACTION.checks:
        assert short_cutoff.INTERACTION.bind(**check.parameters)(check.r) == pytest.approx(check.value)
    bound = optimal_for_cutoff(9.0, 4.0, 1.0, 6)[0].short()
    positions, charges = random_charges(np.eye(3) * 16, 600)
    lattice = Lattice(np.full(3, 4.0), np.full(3, 0.8), (9, 9, 9))
    distances = np.linalg.norm(lattice.points()[:, None] - positions, axis=2)
    expected = bound(np.maximum(distances, 0.01)) @ charges
    for precision, tolerance in (("single", 2e-6), ("double", 1e-7)):
        values = sums.cutoff(ENGINE, lattice, positions, charges, bound, precision).ravel()
        assert rms(values - expected) < tolerance * rms(expected)


@pytest.mark.parametrize("boundary", slow(CELLS, ["turned"]))
@pytest.mark.parametrize(("reach", "spacing", "order", "ratio"), [
    (8.0, 1.0, 4, 3.0), *slow([(9.0, 0.6, 6, 4.0), (12.0, 1.4, 8, 4.5)], [(9.0, 0.6, 6, 4.0)]),
    pytest.param(20.0, 1.0, 8, 5.0, marks=pytest.mark.slow)])
def test_the_error_is_as_predicted(boundary, reach, spacing, order, ratio):
    """For charges without correlation, with a net charge, also for a cutoff longer than half the cell."""
    cell = CELLS[boundary]
    box = np.diag([27.0, 30, 33]) if cell is None else cell.vectors
    positions, charges = random_charges(box)
    lattice = lattice_for(cell)
    split = partial(optimal_for_cutoff, reach)
    if cell is None:
        mesh = sums.mesh_around(lattice, positions, spacing, order, ratio, split)
        step = spacing
    else:
        mesh = over_cell(cell, spacing, order, ratio, split)
        step = np.linalg.norm(mesh.steps, axis=1).max()
    values = sums.by_mesh(ENGINE, lattice, positions, charges, mesh, "double")
    error = rms(values - pairwise(lattice, positions, charges, reach, cell))
    predicted = split(ratio * spacing, step, order)[1] * np.sqrt(np.sum(charges**2) / abs(np.linalg.det(box)))
    # an open box is smaller than the sphere of the longest cutoff, and steps of a cell are shorter than asked for
    assert (0.4 if reach > 12 else 0.65) * predicted < error < 1.1 * predicted


@pytest.mark.parametrize("reach", [3.0, 9.0, 60.0])
def test_nothing_wraps_around_an_open_mesh(reach):
    """Strong charges near one face of a long box are not felt near the other, also where the cutoff is longer."""
    positions = np.array([[0.3, 0.2, 0.4], [0.9, 1.2, 0.1]])
    charges = np.array([50.0, -20.0])
    lattice = Lattice(np.array([-2.0, -2.0, -3.0]), np.full(3, 0.5), (9, 12, 100))
    mesh = sums.mesh_around(lattice, positions, 0.8, 6, 3.0, partial(optimal_for_cutoff, reach))
    exact = pairwise(lattice, positions, charges, reach, None)
    difference = sums.by_mesh(ENGINE, lattice, positions, charges, mesh, "double") - exact
    worst = abs(difference).max((0, 1))
    far = int((reach + 5 + 3.4) / 0.5)
    assert worst.max() < 5 * optimal_for_cutoff(reach, 2.4, 0.8, 6)[1] * 50
    # what a sharp end of the mesh's band leaves falls with the distance, and nothing else comes back
    assert worst[far:].max(initial=0) < 0.1 * worst.max()
    assert worst[-5:].max() < 0.02 * worst.max()
    assert rms(difference[:, :, :far]) < 1e-2 * rms(exact[:, :, :far])


def test_padding_is_by_the_cutoff_alone():
    positions, _ = water_box(40.0)
    lattice = Lattice(np.zeros(3), np.full(3, 0.5), (80, 80, 80))
    split = partial(optimal_for_cutoff, 12.0)
    compact, full = (sums.mesh_around(lattice, positions, 1.0, 6, 3.5, *split) for split in ([split], []))
    for padded, n, doubled in zip(compact.transform_shape, compact.shape, full.transform_shape, strict=True):
        assert n + 12 <= padded <= 1.1 * (n + 12) < doubled
        assert padded % 2 == 0


def request_for(lattice, positions, charges, cell=None, reach=10.0, tolerance=1e-4, **options):
    """Return a request with its sample, and the error that keeps the tolerance."""
    request = Request(lattice, cell, shifted(reach), Charges.of(positions, charges, cell), tolerance=tolerance,
                      **options)
    sample = accuracy.sample(request, positions, charges, ENGINE)
    return request.with_error(tolerance * sample.target_rms or np.inf), sample


class TestMethod:
    @pytest.mark.parametrize("boundary", slow(CELLS, ["turned"]))
    @pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 3e-4])
    def test_the_tolerance_is_kept(self, boundary, tolerance):
        cell = CELLS[boundary]
        positions, charges = water_box(28.0)
        lattice = lattice_for(cell)
        values, errors = sums.to_tolerance(cutoff.BY_MESH, lattice, positions, charges, cell, shifted(10.0), tolerance)
        assert values.dtype == np.float32
        assert errors.largest <= tolerance
        difference = values - pairwise(lattice, positions, charges, 10.0, cell)
        exact = values - difference
        assert rms(difference) < 1.2 * tolerance * rms(exact)  # measured at 400 points alone
        images = positions if cell is None else cell.images_in_box(positions, lattice.origin - 3, lattice.last + 3)[0]
        away = cKDTree(images).query(lattice.points())[0].reshape(lattice.shape) > accuracy.AWAY
        if away.mean() > 0.25:
            assert rms(difference[away]) < 1.3 * tolerance * rms(exact[away])

    @pytest.mark.parametrize("boundary", slow(CELLS, ["turned"]))
    def test_the_sample_is_exact(self, boundary):
        cell = CELLS[boundary]
        positions, charges = random_charges(np.eye(3) * 27)
        lattice = lattice_for(cell)
        for reach in (7.0, 22.0):
            _, sample = request_for(lattice, positions, charges, cell, reach)
            exact = pairwise(lattice, positions, charges, reach, cell).astype(np.float32)
            assert sample.errors(HostResult(exact[None])).largest < 1e-7

    def test_atoms_that_no_point_sees_do_not_matter(self):
        positions, charges = random_charges(np.eye(3) * 20)
        lattice = Lattice(np.full(3, 2.0), np.full(3, 0.8), (12, 12, 12))
        far = np.array([[500.0, 0, 0], [0, 0, -3000.0]])
        options = {"method": "cutoff", "algorithm": "mesh", "cutoff": 8.0, "tolerance": 1e-3, "lattice": lattice,
                   "engine": "cpu"}
        alone = potential_map(made_of(positions, charges), **options)
        grid = potential_map(made_of(np.vstack([positions, far]), np.append(charges, [1.0, 2.0])), **options)
        np.testing.assert_array_equal(grid.values, alone.values)
        assert 0 < grid.provenance.error == alone.provenance.error <= 1e-3
        assert not potential_map(made_of(far, np.ones(2)), **options).values.any()

    def test_a_plan_leaves_out_what_no_point_sees_and_refuses_what_it_was_not_made_for(self):
        positions, charges = random_charges(np.eye(3) * 20)
        lattice = Lattice(np.full(3, 2.0), np.full(3, 0.8), (12, 12, 12))
        request, _ = request_for(lattice, positions, charges, reach=8.0, tolerance=1e-3)
        plan = cutoff.BY_MESH.plan(request, ENGINE)
        expected = plan.run(positions, charges).values()
        extended = np.vstack([positions, [[28.9, 5.0, 5.0]]]), np.append(charges, 1.0)
        np.testing.assert_array_equal(plan.run(*extended).values(), expected)
        extended[0][-1, 0] = 18.0  # 7.2 A from the last point
        plan.run(*extended)
        extended[0][-1] = [5.0, 5.0, -0.5]
        with pytest.raises(InputError, match="outside of the box"):
            plan.run(*extended)

    def test_charges_of_zero(self):
        positions, charges = random_charges(np.eye(3) * 20)
        grid = potential_map(made_of(positions, 0 * charges), method="cutoff", algorithm="mesh", cutoff=8.0, spacing=2,
                             engine="cpu")
        assert not grid.values.any()

    def test_what_cannot_be_done_is_refused(self, monkeypatch):
        positions, charges = random_charges(np.eye(3) * 20)
        lattice = Lattice(np.full(3, 2.0), np.full(3, 0.8), (12, 12, 12))
        request, _ = request_for(lattice, positions, charges, reach=2.0, tolerance=1e-6)
        with pytest.raises(TaskError, match=r"no mesh keeps the tolerance 1e-06 with a cutoff of 2 A.*algorithm=pair"):
            cutoff.BY_MESH.plan(request, ENGINE)
        request, _ = request_for(lattice, positions, charges, reach=9.0, tolerance=1e-3)
        monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "300k")
        with pytest.raises(MemoryPlanError, match=r"a mesh of .* points needs .*algorithm=pair"):
            cutoff.BY_MESH.plan(request, ENGINE)

    def test_auto_weighs_pairs_against_the_mesh(self):
        positions, charges = water_box(60.0)
        lattice = Lattice(np.zeros(3), np.full(3, 0.4), (150, 150, 150))

        def chosen(reach, tolerance, count=None, interaction="auto"):
            atoms = positions[:count], charges[:count]
            expected = SumOptions(method="cutoff", algorithm="auto", interaction=interaction, cutoff=reach)
            request = Request(lattice, None, bind(expected, None), Charges.of(*atoms), tolerance=tolerance)
            method, request, sample = choose_method(expected, request, *atoms, ENGINE)
            assert (method is cutoff.BY_MESH) == (not method.exact) == (sample is not None)
            assert method.exact or request.error == tolerance * sample.target_rms  # nothing is computed twice
            return "pair" if method.exact else "mesh"

        assert chosen(25.0, 1e-3) == "mesh"
        assert chosen(5.0, 1e-4) == "pair"
        assert chosen(12.0, 1e-6) == "pair"
        assert chosen(25.0, 1e-2, interaction="coulomb") == "pair"
        assert chosen(25.0, 1e-2, count=30) == "pair"
        assert chosen(25.0, 1e-2, count=0) == "pair"

    def test_the_default_is_the_sum_pair_by_pair(self):
        positions, charges = random_charges(np.eye(3) * 20)
        lattice = Lattice(np.full(3, 2.0), np.full(3, 0.8), (12, 12, 12))
        request = Request(lattice, None, shifted(9.0), Charges.of(positions, charges), tolerance=0.1)
        method, same, sample = choose_method(SumOptions(method="cutoff"), request, positions, charges, ENGINE)
        assert method is cutoff.METHOD is registry.get("method", "cutoff")
        assert same is request
        assert sample is None
        truncated = replace(request, interaction=registry.get("interaction", "coulomb").bind().truncated(9.0))
        for algorithm, wrong, parameter, text in (("fast", request, "algorithm", "choose one of pair, mesh, auto"),
                                                  ("mesh", truncated, "method", "only sums shifted_coulomb")):
            with pytest.raises(UsageError, match=text) as error:
                choose_method(SumOptions(method="cutoff", algorithm=algorithm), wrong, positions, charges, ENGINE)
            assert error.value.parameter == parameter


def made_of(positions, charges, cell=None):
    count = len(charges)
    return Structure(positions, np.full(count, "C"), np.full(count, "MOL"), np.ones(count), np.zeros(count),
                     charges=charges, cell=cell)


def water(cell):
    positions, charges = water_box(24.0)
    count = len(charges)
    return Structure(positions, np.tile(np.array(["OH2", "H1", "H2"]), count // 3), np.full(count, "TIP3"),
                     np.arange(count) // 3 + 1, np.arange(count) // 3, charges=charges, cell=cell)


class TestOption:
    @pytest.mark.parametrize("boundary", slow(CELLS, ["turned"]))
    def test_a_map_by_mesh(self, boundary):
        structure = water(CELLS[boundary])
        options = {"method": "cutoff", "cutoff": 9.0, "padding": 3, "tolerance": 1e-3, "engine": "cpu"}
        pair = potential_map(structure, **options)
        mesh = potential_map(structure, algorithm="mesh", **options)
        assert pair.provenance.tolerance is None
        assert pair.provenance.error is None
        assert mesh.provenance.tolerance == 1e-3
        assert 0 < mesh.provenance.error <= 1e-3
        assert 0 < mesh.provenance.error_away <= 1e-3
        assert replace(mesh.provenance, tolerance=None, error=None, error_away=None) == pair.provenance
        assert mesh.lattice.shape == pair.lattice.shape
        error = rms(mesh.values - pair.values) / rms(pair.values)
        assert 1e-5 < error < 1.2e-3  # it was on a mesh

    def test_auto_is_exact_where_that_is_as_fast(self):
        grid = potential_map(water(None), method="cutoff", algorithm="auto", cutoff=4.0, spacing=2.0, engine="cpu")
        assert grid.provenance.error is None

    @pytest.mark.parametrize(("options", "parameter", "text"), [
        ({"method": "pme", "algorithm": "mesh"}, "algorithm", "only applies to the method cutoff"),
        ({"method": "direct", "algorithm": "auto"}, "algorithm", "only applies to the method cutoff"),
        ({"method": "cutoff", "algorithm": "fast"}, "algorithm", "choose one of pair, mesh, auto"),
        ({"method": "cutoff", "algorithm": "mesh", "interaction": "screened_coulomb"}, "method",
         "only sums shifted_coulomb"),
    ])
    def test_what_does_not_fit_is_refused(self, options, parameter, text):
        with pytest.raises(UsageError, match=text) as error:
            potential_map(water(None), **options)
        assert error.value.parameter == parameter

    def test_from_the_shell(self, tmp_path, capsys):
        positions, charges = water_box(20.0)
        path = tmp_path / "water.pqr"
        path.write_text("".join(f"ATOM {n + 1} O HOH {n // 3 + 1} {x:.4f} {y:.4f} {z:.4f} {q:.4f} 1.5\n"
                                for n, ((x, y, z), q) in enumerate(zip(positions, charges, strict=True))))
        arguments = ["map", str(path), "--method", "cutoff", "--algorithm", "mesh", "--cutoff", "9", "--tolerance",
                     "1e-3", "--engine", "cpu", "--json", "-o", str(tmp_path / "map.dx")]
        assert cli.main(arguments) == 0
        data = json.loads(capsys.readouterr().out)
        assert (data["method"], data["cutoff"], data["tolerance"]) == ("cutoff", 9.0, 1e-3)
        assert 0 < data["error"] <= 1e-3
        kept = read_map(tmp_path / "map.dx").provenance
        assert (kept.tolerance, kept.error) == (1e-3, pytest.approx(data["error"], rel=1e-3))
        assert cli.main([*arguments[:4], "--algorithm", "quick", *arguments[6:]]) == 2
        assert "choose one of pair, mesh, auto" in capsys.readouterr().err
