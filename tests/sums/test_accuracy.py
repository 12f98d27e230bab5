"""The error that a map states: where it is measured, and against what."""

import tracemalloc
import weakref
from types import SimpleNamespace

import ewald
import numpy as np
import pytest
from helpers import charges_at
from messages import naming
from scipy.spatial import cKDTree

from vmdpotential.engines import get_engine
from vmdpotential.errors import MemoryPlanError, TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import coulomb, screened_coulomb, shifted_coulomb
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums import ChargeStatistics, Estimate, Request, accuracy, cutoff, direct
from vmdpotential.sums.accuracy import AWAY_DISTANCE, COMPARED_NODES, Sample
from vmdpotential.sums.choice import fastest_method
from vmdpotential.sums.refinement import BY_ERROR_OF_MAPS, BY_SPACING, PlanAttempt, refine_to_tolerance
from vmdpotential.sums.result import Errors, HostResult

CPU = get_engine("cpu")
COULOMB = coulomb.INTERACTION.bind()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_stated_error_is_that_of_the_whole_map(seed):
    """Charges in one corner of a large map, and one far from them: few points are where the error is."""
    rng = np.random.default_rng(seed)
    positions = np.concatenate([rng.uniform(0, 15, (300, 3)), [[300.0, 200, 250]]])
    structure = charges_at(positions, [*np.tile([0.8, -0.8], 150), 3.0])
    exact = potential_map(structure, method="direct", precision="double", spacing=4, padding=5, engine="cpu")
    grid = potential_map(structure, method="pme", tolerance=1e-2, lattice=exact.lattice, engine="cpu")
    true = np.sqrt(np.mean((grid.values - exact.values) ** 2) / np.mean(exact.values**2))
    assert 0.5 * true < grid.provenance.error < 2 * true
    away = cKDTree(positions).query(grid.lattice.points())[0].reshape(grid.lattice.shape) > AWAY_DISTANCE
    true = np.sqrt(np.mean((grid.values - exact.values)[away] ** 2) / np.mean(exact.values[away] ** 2))
    assert 0.5 * true < grid.provenance.error_away < 2 * true


def result_of(sample, lattice_shape, error=0.0, where=slice(None), maps=1):
    """Return a map that is the sample at its points, but for an error at some of them, and ten elsewhere."""
    values = np.full((maps, *lattice_shape), 10.0, np.float32)
    result = sample.values.copy()
    result[:, where] += error
    values[(slice(None), *sample.indices.T)] = result
    return HostResult(values)


def test_weights_count_in_every_region():
    distances = np.array([1.0, 1.0, 3.0, 4.0])
    indices = np.stack([np.arange(4), np.zeros(4, int), np.zeros(4, int)], 1)
    sample = Sample(indices, np.array([[1.0, 2, 3, 4]]), np.array([0.1, 0.2, 0.3, 0.4]), distances)
    errors = sample.errors(result_of(sample, (4, 1, 1), np.array([0, 0, 0.1, 0.2])))
    squares = 0.3 * 0.01 + 0.4 * 0.04
    assert errors.everywhere == pytest.approx(np.sqrt(squares) / np.sqrt(np.mean([1, 4, 3.1**2, 4.2**2])), rel=1e-5)
    assert errors.away == pytest.approx(np.sqrt(squares / (0.3 * 9 + 0.4 * 16)), rel=1e-5)


def test_where_few_points_are_away_the_farthest_quarter_is():
    distances = np.linspace(0.1, 2.1, 200)  # ten are farther than 2 A
    sample = Sample(np.zeros((200, 3), int), np.ones((1, 200)), np.full(200, 1 / 200), distances)
    assert sample.away.sum() == 50
    assert distances[sample.away].min() > distances[~sample.away].max()


def test_a_region_that_nothing_reaches_is_measured_by_the_whole():
    """With a cutoff of less than 2 A the potential away from charges is zero."""
    distances = np.repeat([1.0, 3.0], 50)
    indices = np.stack([np.arange(100), np.zeros(100, int), np.zeros(100, int)], 1)
    sample = Sample(indices, np.where(distances > 2, 0.0, 5.0)[None], np.full(100, 1 / 100), distances)
    assert sample.target_rms == pytest.approx(5 / np.sqrt(2))
    errors = sample.errors(result_of(sample, (100, 1, 1), 1e-3, sample.away))
    assert errors.away == pytest.approx(1e-3 / (5 / np.sqrt(2)), rel=1e-3)
    nothing = Sample(indices, np.zeros((1, 100)), np.full(100, 1 / 100), distances)
    assert nothing.target_rms == 0
    assert nothing.errors(HostResult(np.zeros((1, 100, 1, 1), np.float32))).largest == 0
    assert not np.isfinite(nothing.errors(HostResult(np.full((1, 100, 1, 1), np.inf, np.float32))).largest)
    assert not np.isfinite(Errors(1e-5, 1e-5, np.nan, 1e-5).largest)


def test_a_cutoff_that_hardly_reaches_a_point():
    """Three atoms in a large box, between the points: the mesh has nothing to be compared with."""
    positions = np.array([[100.0, 100, 100], [103, 100, 100], [200, 77, 50]]) + 10
    lattice = Lattice(np.zeros(3), np.full(3, 20.0), (15, 15, 15))
    structure = charges_at(positions, [1, -1, 0.5])
    for algorithm in ("mesh", "auto"):
        grid = potential_map(structure, method="cutoff", cutoff=8.0, algorithm=algorithm, lattice=lattice)
        assert not grid.values.any()  # no point is within 8 A


class Made:
    """A method whose plans give the exact map, and on top of it the next of some errors."""

    name = "made"

    def __init__(self, exact, errors, predicted=None, same=False):
        self.exact, self.errors, self.predicted, self.same, self.requests = exact, errors, predicted, same, []

    def plan(self, request, engine):
        self.requests.append(request)
        return SimpleNamespace(run=self.run, method=self.name, error=self.predicted and self.predicted.pop(0),
                               estimate=Estimate(1.0 if self.same else float(len(self.requests)), 0))

    def run(self, positions, charges):
        return HostResult((self.exact + self.errors.pop(0)).astype(np.float32)[None])


class TestToTolerance:
    """A potential of 1 at every point, so that errors are relative ones."""

    positions, charges = np.full((1, 3), 50.0), np.ones(1)
    lattice = Lattice(np.zeros(3), np.ones(3), (5, 5, 5))
    sample = Sample(np.argwhere(np.ones((5, 5, 5))), np.ones((1, 125)), np.full(125, 1 / 125), np.full(125, 9.0))

    def run(self, errors, predicted=None, precision="single", same=False):
        request = Request(self.lattice, None, COULOMB, ChargeStatistics.of(self.positions, self.charges), precision,
                          1e-3).with_error(1e-3)
        made = Made(np.ones(self.lattice.shape), errors, predicted, same)
        return made, accuracy.run_to_tolerance(made, request, self.positions, self.charges, self.sample, CPU)

    def test_one_that_is_not_is_followed_by_a_better_one(self):
        made, (_, _, errors) = self.run([5e-3, 2e-3, 1e-4])
        first, second, third = (request.error for request in made.requests)
        assert first == 1e-3
        assert second == pytest.approx(1e-3 / (1.3 * 5), rel=1e-3)
        assert third == pytest.approx(second / (1.5 * 2), rel=1e-3)  # by more each time
        assert errors.largest == pytest.approx(1e-4, rel=1e-3)

    def test_what_was_expected_counts_where_it_is_better_than_what_was_asked_for(self):
        made, _ = self.run([5e-3, 1e-4], [1e-4, 1e-5])
        assert made.requests[1].error == pytest.approx(1.5e-4 / (1.3 * 5), rel=1e-3)

    @pytest.mark.parametrize("errors", [[9.5e-4, 9.4e-4], [2e-3, 9.5e-4, 9.4e-4], [9.5e-4, 2e-3, 2e-3, 9.4e-4]])
    def test_two_in_a_row_or_the_last_of_four_may_be_within_the_tolerance_by_a_hair(self, errors):
        made, (_, _, result) = self.run([*errors, 0.0])
        assert len(made.requests) == len(errors) <= BY_ERROR_OF_MAPS.max_plans == 4
        assert result.largest == pytest.approx(9.4e-4, rel=1e-3)

    @pytest.mark.parametrize(("precision", "hint"), [("single", "precision=double, or another"), ("double", "method")])
    def test_a_tolerance_that_cannot_be_kept(self, precision, hint):
        with naming(TaskError, "2.0e-03", hint) as error:
            self.run([4e-3, 3e-3, 2e-3, 2e-3], precision=precision)
        assert (error.value.parameter, error.value.value) == ("tolerance", "0.001")
        assert ("precision" in error.value.hint) == (precision == "single")

    def test_the_same_plan_is_not_tried_again(self):
        errors = [3e-3, 2e-3, 1e-5]
        with naming(TaskError, "2.0e-03"):
            self.run(errors, same=True)
        assert errors == [1e-5]
        self.run([9.5e-4, 9.5e-4, 0.0], same=True)  # and is taken where it is good enough

    def test_where_no_better_plan_is_to_be_had_the_last_one_counts(self):
        def no_more(request, engine):
            if request.error < 1e-3:
                raise TaskError("no mesh keeps the tolerance")
            return Made.plan(made, request, engine)

        for error in (9.5e-4, 2e-3):
            made, request = Made(np.ones(self.lattice.shape), [error, error]), Request(
                self.lattice, None, COULOMB, ChargeStatistics.of(self.positions, self.charges), "single",
                1e-3).with_error(1e-3)
            made.plan = no_more
            arguments = made, request, self.positions, self.charges, self.sample, CPU
            if error < 1e-3:
                assert accuracy.run_to_tolerance(*arguments)[2].largest == pytest.approx(error, rel=1e-3)
            else:
                with naming(TaskError, "made ", "2.0e-03"):
                    accuracy.run_to_tolerance(*arguments)


def test_images_count_in_the_plan_of_memory(monkeypatch):
    """800 atoms in a cell of 20 A, and a lattice over 2,000 such cells."""
    positions = np.random.default_rng(14).uniform(0, 20, (800, 3))
    structure = charges_at(positions, np.tile([1.0, -1], 400), Cell(np.eye(3) * 20))
    lattice = Lattice(np.zeros(3), np.full(3, 8.0), (32, 32, 32))
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "150M")
    for method in ("pme", "msm"):
        with naming(MemoryPlanError, "tolerance or spacing"):
            potential_map(structure, method=method, lattice=lattice)


@pytest.mark.parametrize("cell", [None, Cell.from_parameters(9, 8, 10), Cell.from_parameters(9, 8, 10, 70, 80, 100)])
def test_the_sample_is_exact_potential_field_and_distances(cell):
    rng = np.random.default_rng(5)
    positions, charges = rng.uniform(0, 8, (40, 3)), rng.normal(size=40)
    charges -= charges.mean()
    lattice = Lattice(np.zeros(3), np.full(3, 0.8), (10, 10, 11))
    request = Request(lattice, cell, COULOMB, ChargeStatistics.of(positions, charges, cell), field=True)
    sample = accuracy.sample(request, positions, charges, CPU)
    points = lattice.points(sample.indices)
    images = positions if cell is None else cell.images_in_box(positions, np.full(3, -12.0), np.full(3, 20.0))[0]
    np.testing.assert_allclose(sample.distances, cKDTree(images).query(points)[0], rtol=1e-9)
    assert sample.values.shape == (4, len(sample.weights))
    assert 0.75 * COMPARED_NODES < len(sample.weights) <= COMPARED_NODES
    assert sample.weights.sum() == pytest.approx(1)
    assert sample.weights.sum() == pytest.approx(1)
    if cell is None:
        d = points[:, None] - positions
        r = np.linalg.norm(d, axis=2)
        np.testing.assert_allclose(sample.values[0], (1 / r) @ charges, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(sample.values[1:], np.einsum("pn,pnd->dp", charges / r**3, d), rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_allclose(sample.values[0], ewald.potential(points, positions, charges, cell.vectors),
                                   atol=1e-6 * np.abs(sample.values[0]).max())


def test_nodes_next_to_many_atoms_are_sampled_in_little_memory():
    """A map of 27 million points, of which each atom has 5832 within 2 A: those pairs would take 700 MB."""
    positions = np.random.default_rng(8).normal(37.5, 9, (5000, 3))
    lattice = Lattice(np.zeros(3), np.full(3, 0.25), (300, 300, 300))
    tracemalloc.start()
    indices, weights = accuracy.choose_points(lattice, positions, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    assert weights.sum() == pytest.approx(1)
    # nodes within 2 A of an atom's voxel along every axis
    first = np.floor(positions / 0.25).astype(int) - 8
    mask = np.zeros(lattice.shape, bool)
    for x, y, z in first:
        mask[x:x + 18, y:y + 18, z:z + 18] = True
    assert weights[mask[tuple(indices.T)]].sum() == pytest.approx(mask.mean(), rel=0.05)
    assert mask[tuple(indices.T)].sum() > 0.45 * COMPARED_NODES


def test_a_point_at_the_edge_of_the_soft_core_does_not_count_with_a_field():
    """The field jumps there."""
    lattice = Lattice(np.zeros(3), np.ones(3), (3, 3, 3))
    positions = np.array([[1.0, 1.0, 1.01], [2.0, 2.0, 2.2]])
    for field in (False, True):
        request = Request(lattice, None, COULOMB, ChargeStatistics.of(positions, np.ones(2)), field=field)
        sample = accuracy.sample(request, positions, np.ones(2), CPU)
        on_edge = abs(sample.distances - 0.01) < 1e-6
        assert on_edge.any()
        assert (sample.weights[on_edge] > 0).all() == (not field)
        assert (sample.weights[~on_edge] > 0).all()


def lattice_water(number, step, cell):
    """Return water molecules in parallel, on a cubic lattice."""
    oxygens = step * np.stack(np.meshgrid(*3 * [np.arange(number)], indexing="ij"), -1).reshape(-1, 1, 3)
    angle = np.radians(52.26)
    shape = 0.9572 * np.array([[0, 0, 0], [np.cos(angle), np.sin(angle), 0], [np.cos(angle), -np.sin(angle), 0]])
    return charges_at((oxygens + shape).reshape(-1, 3), np.tile([-0.834, 0.417, 0.417], number**3), cell=cell)


@pytest.mark.slow
def test_auto_ends_with_a_precision_that_keeps_the_tolerance():
    """In a long cell the potential is small at most points, and rounding in single precision is a large part of it."""
    water = lattice_water(4, 3.2, Cell.from_parameters(12.8, 12.8, 3999.999))
    options = {"spacing": 3.0, "boundary": "periodic", "engine": "cpu"}
    with pytest.raises(TaskError) as error:
        potential_map(water, method="pme", **options)
    assert error.value.parameter == "tolerance"
    grid = potential_map(water, **options)
    assert grid.provenance.precision == "double"
    assert grid.provenance.error_away < grid.provenance.tolerance == 1e-4
    exact = potential_map(water, method="pme", precision="double", tolerance=1e-5, **options)
    assert np.abs(grid.values - exact.values).max() < 1e-4 * np.abs(exact.values).max()


def test_the_exact_field_holds_next_to_a_charge():
    """At 0.02 A a difference over 4e-4 A is off by 1e-4."""
    positions, charges = np.array([[0.02, 0, 0], [3.0, 4.0, 5.0]]), np.array([0.7, -0.4])
    lattice = Lattice(np.zeros(3), np.full(3, 1.0), (4, 4, 4))
    request = Request(lattice, None, COULOMB, ChargeStatistics.of(positions, charges), field=True)
    result = accuracy.sample(request, positions, charges, CPU)
    away = lattice.points(result.indices)[:, None] - positions
    field = np.einsum("j,pjd,pj->dp", charges, away, np.linalg.norm(away, axis=2) ** -3)
    assert (result.distances < 0.03).any()
    assert np.abs(result.values[1:] - field).max() < 2e-6 * np.abs(field).max()


class Plan:
    """A plan with an expected error."""

    method, error, estimate = "made", 1e-3, Estimate(1.0, 0)


def test_one_result_is_alive_at_a_time():
    """Memory is planned for one map: the first is within the tolerance by a hair, and the second is not to be had."""
    class Result:
        pass

    alive, errors = weakref.WeakSet(), []

    def attempt(error):
        assert not alive
        errors.append(error)
        if len(errors) == 2:
            raise TaskError("no mesh keeps the tolerance")
        alive.add(result := Result())
        return PlanAttempt(result, 9.5e-4, Plan())

    assert refine_to_tolerance(1e-3, 1.0, attempt) in alive
    assert errors[2] == errors[0] > errors[1]  # made again, as a file of it has been overwritten

    def spaced(spacing):
        assert not alive
        alive.add(result := Result())
        return PlanAttempt(result, spacing / 10)

    assert refine_to_tolerance(0.05, 2.0, spaced, BY_SPACING) in alive


def test_a_better_plan_without_room_is_named():
    def attempt(error):
        if error < 1.0:
            raise MemoryPlanError("a mesh does not fit")
        return PlanAttempt(None, 2e-3, Plan())

    with pytest.raises(MemoryPlanError):
        refine_to_tolerance(1e-3, 1.0, attempt)


def test_the_fastest_that_fits_is_not_taken_if_it_is_far_slower(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1G")
    lattice = Lattice(np.zeros(3), np.ones(3), (5, 5, 5))
    request = Request(lattice, None, COULOMB, ChargeStatistics.of(np.zeros((1, 3)), np.ones(1)), "single", 1e-3)

    def chosen(*seconds_and_bytes):
        methods = [SimpleNamespace(name=str(n), exact=True, refusal=lambda request: None,
                                   estimate=lambda request, engine, each=each: Estimate(*each))
                   for n, each in enumerate(seconds_and_bytes)]
        return fastest_method(methods, request, np.zeros((1, 3)), np.ones(1), CPU)[0].name

    assert chosen((10.0, 10**12), (5.0, 10**12), (50.0, 10), (40.0, 10)) == "3"
    assert chosen((10.0, 10**12), (5.0, 10**12), (5000.0, 10)) == "1"  # refused, with what would help
    assert chosen((1000.0, 10**12), (5000.0, 10)) == "1"


def test_estimates_know_that_exponentials_take_longer():
    """Times of 1.05 million points and 2489 atoms on one core of an EPYC: 0.28, 0.93, 0.41 and 1.02 s."""
    positions = np.random.default_rng(3).uniform(0, 60, (2489, 3))
    lattice = Lattice(np.zeros(3), np.full(3, 0.6), (100, 100, 100))
    charges = ChargeStatistics.of(positions, np.ones(len(positions)))

    def seconds(method, bound):
        return method.estimate(Request(lattice, None, bound, charges, "single", 1e-3).with_error(1e-3), CPU).seconds

    screened = screened_coulomb.INTERACTION.bind(debye_length=7.85)
    assert 2 < seconds(direct.METHOD, screened) / seconds(direct.METHOD, COULOMB) < 5
    shifted = shifted_coulomb.INTERACTION.bind(cutoff=90.0)
    assert 2 < seconds(cutoff.OF_TAIL, screened) / seconds(cutoff.METHOD, shifted) < 5


@pytest.mark.parametrize(("apart", "spacing", "tolerance"), [(0.1, 1.0, 1e-3), (0.1, 0.5, 1e-3), (0.3, 0.5, 1e-5)])
def test_stated_error_of_close_charges(apart, spacing, tolerance):
    """Nodes next to them, which are few, have the largest errors: stated errors are those over all nodes."""
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        positions, charges = 8 + apart * rng.normal(size=(12, 3)), rng.normal(size=12)
        molecule = charges_at(positions, charges)
        lattice = Lattice((0, 0, 0), spacing, (round(16 / spacing) + 1,) * 3)
        mesh, exact = (potential_map(molecule, method=name, lattice=lattice, boundary="open", **options)
                       for name, options in (("pme", {"tolerance": tolerance}), ("direct", {"precision": "double"})))
        difference = mesh.values.astype(np.float64) - exact.values
        ratios.append(np.sqrt(np.mean(difference**2) / np.mean(exact.values.astype(np.float64) ** 2))
                      / mesh.provenance.error)
    assert max(ratios) < 1.35


@pytest.mark.parametrize(("count", "reach"), [(1, 2.0), (30, 2.0), (3_000, 0.0), (450, 2.0)])
def test_boxes_around_nodes_are_counted_exactly(count, reach):
    rng = np.random.default_rng(count)
    lattice = Lattice([1.0, -2.0, 0.0], [0.5, 0.6, 0.9], (60, 50, 40))
    steps = (reach / lattice.spacing).astype(int)
    # some are partly outside of the lattice
    first = np.stack([rng.integers(-2 * step - 1, n, count) for n, step in zip(lattice.shape, steps, strict=True)])
    marks = np.zeros(lattice.shape, np.int64)
    for low in first.T:
        marks[tuple(slice(max(a, 0), a + width) for a, width in zip(low, 2 * steps + 2, strict=True))] += 1
    nodes = np.argwhere(np.ones(lattice.shape))
    reaches = np.array([steps, steps + 2])  # rows of the larger reach's lattice
    counts = next(accuracy._boxes_around(nodes, first + steps[:, None], reaches, np.array(lattice.shape)))
    np.testing.assert_array_equal(counts, marks.ravel())


@pytest.mark.parametrize("count", [3, 300])
def test_chosen_points_represent_the_lattice(count):
    """The mean of a function with a peak at each atom, by the weights of the points, is that over all nodes."""
    positions = np.random.default_rng(count).uniform(4, 12, (count, 3))
    lattice = Lattice(np.zeros(3), np.full(3, 0.8), (40, 40, 40))
    points, weights = accuracy.choose_points(lattice, positions, None, 40_000)
    values = np.exp(-cKDTree(positions).query(lattice.points())[0]).reshape(lattice.shape)
    assert weights @ values[tuple(points.T)] == pytest.approx(values.mean(), rel=0.03)
