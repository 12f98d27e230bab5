"""Plans: they pickle and run elsewhere, also by many threads; methods and meshes are chosen by cost and tolerance."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from helpers import water
from messages import naming

from vmdpotential import maps, registry
from vmdpotential.engines import get_engine
from vmdpotential.errors import BackendError, MemoryPlanError, TaskError, UsageError
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.molecule.structure import Structure
from vmdpotential.splitting.coulomb import optimal_splitting
from vmdpotential.sums import ChargeStatistics, Request, accuracy, costs, pme

CELL = Cell.from_parameters(18, 19, 20, 80, 85, 95)
CASES = [("direct", "pair", None)] + [(name, way, cell) for name, way in (
    ("cutoff", "pair"), ("cutoff", "mesh"), ("pme", "pair"), ("msm", "pair")) for cell in (None, CELL)]

ELSEWHERE = """
import pickle, sys
import numpy as np
folder = sys.argv[1]
with open(f"{folder}/plans", "rb") as file:
    positions, charges, plans = pickle.load(file)
for number, plan in enumerate(plans):
    result = plan.run(positions, charges)
    np.save(f"{folder}/{number}.npy", np.concatenate([result.values()[None], result.field()]))
"""


@pytest.mark.slow
def test_a_plan_runs_in_other_processes_and_gives_equal_bits(tmp_path):
    """Among processes that load the kept kernels; one that has just compiled them may differ in the last bits.

    There the functions that a kernel calls are their own compiled versions, not the copies that are kept within it.
    """
    positions, charges = water_box(18.0)
    lattice, engine = Lattice(np.array([-1.0, 0.3, 0.7]), np.array([0.6, 0.5, 0.7]), (21, 33, 18)), get_engine("cpu")
    plans = []
    for name, way, cell in CASES:
        required = maps.SumOptions(method=name, algorithm=way, cutoff=7.0 if name == "cutoff" else None)
        request = Request(lattice, cell, maps.bind_interaction(required, cell),
                          ChargeStatistics.of(positions, charges, cell),
                          tolerance=1e-2, field=True)
        method, request, _ = maps.choose_method(required, request, positions, charges, engine)
        plans.append(method.plan(request, engine))
    here = [plan.run(positions, charges) for plan in plans]
    with open(tmp_path / "plans", "wb") as file:  # after a run, of which nothing may be left in them
        pickle.dump((positions, charges, plans), file)
    assert all(len(pickle.dumps(plan)) < 2e6 for plan in plans)
    actual = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], check=True)
        actual.append([np.load(tmp_path / f"{number}.npy") for number in range(len(plans))])
    for plan, result, received, report in zip(plans, here, *actual, strict=True):
        assert received[0].any(), plan
        np.testing.assert_array_equal(received, report, str(plan))
        expected = np.concatenate([result.values()[None], result.field()])
        for part, required in zip(received, expected, strict=True):
            np.testing.assert_allclose(part, required, atol=1e-6 * np.abs(required).max(), err_msg=str(plan))


def test_eight_threads_make_what_one_makes():
    def make(number):
        rng = np.random.default_rng(number)
        count = 40 + 17 * number
        charges = rng.normal(size=count)
        structure = Structure(rng.uniform(0, 12, (count, 3)), np.full(count, "C"), np.full(count, "MOL"),
                              np.ones(count, int), np.zeros(count, int), charges=charges - charges.mean(),
                              cell=Cell.from_parameters(12 + number / 4, 13, 14) if number % 2 else None)
        method = ("direct", "cutoff", "pme", "msm", "auto", "pme", "cutoff", "msm")[number]
        grid = maps.potential_map(structure, method=method, medium="explicit", tolerance=1e-3, spacing=0.8, padding=3,
                                  engine="cpu", field=number in (1, 3, 4))
        parts = [grid, *(grid.field or ())]
        return np.stack([part.values for part in parts]), grid.provenance

    serial = [make(number) for number in range(8)]
    for _ in range(2):
        with ThreadPoolExecutor(8) as threads:
            together = list(threads.map(make, range(8)))
        for (values, provenance), (expected, provenance_expected) in zip(together, serial, strict=True):
            np.testing.assert_array_equal(values, expected)
            for name in ("error", "error_away", "error_field", "error_field_away"):
                actual, required = getattr(provenance, name), getattr(provenance_expected, name)
                assert actual == (required if required is None else pytest.approx(required, rel=1e-9))  # sums by BLAS
                provenance = replace(provenance, **{name: required})
            assert provenance == provenance_expected


def request_of(bound, cell=None, count=8, **options):
    """Return a request for a lattice of 21 x 22 x 23 points over some water."""
    positions, charges = (array[: 3 * count] for array in water_box(12.0))
    return Request(Lattice(np.zeros(3), np.full(3, 0.6), (21, 22, 23)), cell, bound,
                   ChargeStatistics.of(positions, charges, cell), **options)


COULOMB = registry.get("interaction", "coulomb").bind()
SHIFTED = registry.get("interaction", "shifted_coulomb").bind(cutoff=5.0)


@pytest.mark.parametrize(("name", "bound", "cell", "text"), [
    ("direct", COULOMB, CELL, "cannot compute a boundary that is periodic"),
    ("pme", SHIFTED, None, "needs an interaction with a splitting"),
    ("msm", SHIFTED, CELL, "only sums coulomb, not shifted_coulomb"),
    ("cutoff", COULOMB, CELL, "needs an interaction with a cutoff"),
])
def test_what_a_method_declares_not_to_do_is_refused(name, bound, cell, text):
    method, request = registry.get("method", name), request_of(bound, cell)
    assert text in method.refusal(request).reason
    with pytest.raises(UsageError, match=text) as error:
        method.plan(request, get_engine("cpu"))
    assert (error.value.parameter, error.value.value) == ("method", name)


def test_an_engine_without_transforms_has_no_pme():
    class Bare:
        name, has_transforms = "bare", False

        def __getattr__(self, name):
            return getattr(get_engine("cpu"), name)

    with naming(BackendError, "pme"):
        registry.get("method", "pme").plan(request_of(COULOMB, error=1e-3), Bare())
    bound = registry.get("interaction", "shifted_coulomb").bind(cutoff=6.0)
    with naming(BackendError, "algorithm=pair"):
        registry.get("method", "cutoff").algorithms["mesh"].plan(request_of(bound, error=1e-3), Bare())
    expected, request = maps.SumOptions(), request_of(COULOMB, CELL)
    positions, charges = (array[:24] for array in water_box(12.0))
    assert maps.choose_method(expected, request, positions, charges, Bare())[0].name == "msm"


@pytest.mark.parametrize("name", ["cutoff", "msm"])
def test_points_are_refused_by_methods_of_maps(name):
    with pytest.raises(UsageError) as raised:
        registry.get("method", name).plan(replace(request_of(COULOMB), target=Points(np.zeros((1, 3)))), CPU)
    assert raised.value.parameter == "method"


SIZE = costs.SumSize(100_000, 8_000_000, 0.5, 0.1, (100.0, 100.0, 100.0), False)
COSTS = {name: registry.get("engine", name).costs for name in ("cpu", "cuda")}
CPU = get_engine("cpu")


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
@pytest.mark.parametrize("error", [1e-2, 1e-3, 1e-5, 1e-6])
def test_the_cheapest_mesh_keeps_the_error(engine, error):
    spacing, ratio, order, seconds = costs.cheapest_mesh(SIZE, COSTS[engine], error)
    assert optimal_splitting(ratio * spacing, spacing, order)[1] <= error
    assert seconds == costs.mesh_sum_seconds(SIZE, COSTS[engine], spacing, ratio * spacing, order)


def test_a_smaller_error_costs_more():
    seconds = [costs.cheapest_mesh(SIZE, COSTS["cpu"], error)[-1] for error in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)]
    assert seconds == sorted(seconds)
    assert seconds[-1] > 1.5 * seconds[0]
    assert costs.cheapest_mesh(SIZE, COSTS["cpu"], 1e-12) is None
    request, _ = request_for(15.0)
    with naming(TaskError, "0.0001", " method=direct"):
        pme.METHOD.plan(request.with_error(1e-15), CPU)


@pytest.mark.parametrize(("edge", "cell", "method"), [
    (6.0, None, "direct"), (40.0, None, "pme"), (12.0, Cell(np.eye(3) * 12.5), "pme")])
def test_auto_takes_the_fastest_method(edge, cell, method):
    grid = potential_map(water(edge, cell), spacing=0.5, padding=6, engine="cpu", medium="explicit")
    assert grid.provenance.method == method
    assert grid.provenance.interaction == "coulomb"
    if method != "direct":
        assert max(grid.provenance.error, grid.provenance.error_away) <= 1e-4 == grid.provenance.tolerance
    else:
        assert grid.provenance.error is grid.provenance.tolerance is None


def request_for(edge, spacing=1.0, tolerance=1e-4):
    """Return a request for the full potential of a box of water, and its sample."""
    positions, charges = water_box(edge)
    count = int(edge / spacing) + 1
    request = Request(Lattice(np.zeros(3), np.full(3, spacing), (count, count, count)), None, COULOMB,
                      ChargeStatistics.of(positions, charges), tolerance=tolerance)
    sample = accuracy.sample(request, positions, charges, CPU)
    return request.with_error(tolerance * sample.target_rms), sample


def test_a_mesh_that_does_not_fit_is_refused(monkeypatch):
    request, _ = request_for(15.0, 3.0, 1e-5)
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "400k")
    with pytest.raises(MemoryPlanError, match=r"\d+ x \d+ x \d+"):
        pme.METHOD.plan(request, CPU)


def test_no_charge_no_atoms_and_one_point():
    atoms = water(6.0)
    nothing = replace(atoms, charges=np.zeros(len(atoms)))
    assert not potential_map(nothing, method="pme", padding=2, engine="cpu").values.any()
    point = Lattice(np.array([3.0, 3, 3]), np.full(3, 1.0), (1, 1, 1))
    grid = potential_map(atoms, method="pme", lattice=point, unit="V", engine="cpu")
    exact = potential_map(atoms, method="direct", lattice=point, unit="V", engine="cpu")
    assert grid.values == pytest.approx(exact.values, rel=1e-3)
