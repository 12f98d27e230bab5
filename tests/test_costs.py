"""The choice of method and mesh by cost and tolerance."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import water
from scipy.spatial import cKDTree

from vmdpotential import methods, registry
from vmdpotential.engines import get_engine
from vmdpotential.engines.result import HostResult
from vmdpotential.errors import MemoryPlanError, TaskError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import potential_map
from vmdpotential.methods import Charges, Request, accuracy, costs, pme
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.coulomb import optimal

SIZE = costs.Size(100_000, 8_000_000, 0.5, 0.1, (100.0, 100.0, 100.0), False)
COSTS = {name: registry.get("engine", name).costs for name in ("cpu", "cuda")}
CPU = get_engine("cpu")
COULOMB = registry.get("interaction", "coulomb").bind()


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
@pytest.mark.parametrize("error", [1e-2, 1e-3, 1e-5, 1e-6])
def test_the_cheapest_mesh_keeps_the_error(engine, error):
    spacing, ratio, order, seconds = costs.cheapest(SIZE, COSTS[engine], error)
    assert optimal(ratio * spacing, spacing, order)[1] <= error
    assert seconds == costs.seconds(SIZE, COSTS[engine], spacing, ratio * spacing, order)


def test_a_smaller_error_costs_more():
    seconds = [costs.cheapest(SIZE, COSTS["cpu"], error)[-1] for error in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)]
    assert seconds == sorted(seconds)
    assert seconds[-1] > 1.5 * seconds[0]
    assert costs.cheapest(SIZE, COSTS["cpu"], 1e-12) is None
    request, _ = request_for(15.0)
    with pytest.raises(TaskError, match=r"no mesh keeps the tolerance 0\.0001; use .*, or method=direct"):
        pme.METHOD.plan(request.with_error(1e-15), CPU)


@pytest.mark.parametrize(("edge", "cell", "method"), [
    (6.0, None, "direct"), (40.0, None, "pme"), (12.0, Cell(np.eye(3) * 12.5), "pme")])
def test_auto_takes_the_fastest_method(edge, cell, method):
    grid = potential_map(water(edge, cell), spacing=0.5, padding=6, engine="cpu")
    assert grid.provenance.method == method
    assert grid.provenance.interaction == "coulomb"
    if method != "direct":
        assert max(grid.provenance.error, grid.provenance.error_away) <= 1e-4 == grid.provenance.tolerance
    else:
        assert grid.provenance.error is grid.provenance.tolerance is None


@pytest.mark.slow
def test_auto_with_another_interaction_is_exact():
    system = water(12.0, Cell(np.eye(3) * 12.5))
    for options, method in (({"boundary": "open"}, "direct"), ({"method": "cutoff", "cutoff": 7.0}, "cutoff")):
        grid = potential_map(system, interaction="screened_coulomb", spacing=2, engine="cpu", **options)
        assert grid.provenance.method == method
        assert grid.provenance.interaction.startswith("screened_coulomb")
    with pytest.raises(UsageError) as error:
        potential_map(system, method="pme", interaction="reaction_field", spacing=2)
    assert (error.value.parameter, error.value.value) == ("method", "pme")


def test_the_stated_error_is_the_measured_one():
    system = water(25.0)
    grid = potential_map(system, method="pme", tolerance=1e-3, unit="V", spacing=0.7, padding=3, engine="cpu")
    exact = potential_map(system, method="direct", unit="V", precision="double", lattice=grid.lattice, engine="cpu")
    error = np.sqrt(np.mean((grid.values - exact.values) ** 2) / np.mean(exact.values**2))
    assert error < 1e-3
    # 400 points of a potential that a few points near atoms dominate tell the error to a factor of two
    assert grid.provenance.error / 2 < error < 2 * grid.provenance.error
    away = cKDTree(system.positions).query(grid.lattice.points())[0].reshape(grid.lattice.shape) > accuracy.AWAY
    error = np.sqrt(np.mean((grid.values - exact.values)[away] ** 2) / np.mean(exact.values[away] ** 2))
    assert error < 1.1e-3
    assert grid.provenance.error_away / 1.5 < error < 1.5 * grid.provenance.error_away
    header = grid.header()
    assert float(header["tolerance"]) == 1e-3
    assert float(header["error"]) == pytest.approx(grid.provenance.error)
    assert float(header["error_away"]) == pytest.approx(grid.provenance.error_away)


@pytest.mark.parametrize("tolerance", [0, 1e-9, 0.5, np.nan])
def test_tolerances_that_make_no_sense(tolerance):
    with pytest.raises(UsageError, match=r"give 1e-06 to 0\.1") as error:
        potential_map(water(6.0), tolerance=tolerance)
    assert error.value.parameter == "tolerance"


def request_for(edge, spacing=1.0, tolerance=1e-4):
    """Return a request for the full potential of a box of water, and its sample."""
    positions, charges = water_box(edge)
    count = int(edge / spacing) + 1
    request = Request(Lattice(np.zeros(3), np.full(3, spacing), (count, count, count)), None, COULOMB,
                      Charges.of(positions, charges), tolerance=tolerance)
    sample = accuracy.sample(request, positions, charges, CPU)
    return request.with_error(tolerance * sample.target_rms), sample


class Sloppy:
    """The CPU engine, with an error in every point of its maps."""

    name, has_transforms = "cpu", True

    def __init__(self, error, times=10**9):
        self.error, self.times, self.works = error, times, []
        self.costs = CPU.costs

    def prepare(self, work):
        self.works.append(work)
        error, prepared = np.float32(self.error if len(self.works) <= self.times else 0), CPU.prepare(work)
        return SimpleNamespace(run=lambda *atoms: HostResult(prepared.run(*atoms).maps + error))


def test_a_map_that_is_not_good_enough_is_made_again_and_better(monkeypatch):
    positions, charges = water_box(15.0)
    request, sample = request_for(15.0)

    def run(engine):
        monkeypatch.setattr(methods, "get_engine", lambda name: engine)
        return accuracy.run_to_tolerance(pme.METHOD, request, positions, charges, sample, engine)

    once = Sloppy(1e-3 * sample.target_rms, times=1)
    _, result, errors = run(once)
    first, second = (work.smooth for work in once.works)
    assert optimal_error(second) < optimal_error(first) / 5
    assert sample.errors(result) == errors
    assert errors.largest < 1e-4
    with pytest.raises(TaskError, match=r"the method pme reached an error of \S+") as error:
        run(Sloppy(1e-3 * sample.target_rms))
    assert (error.value.parameter, error.value.value) == ("tolerance", "0.0001")


def optimal_error(mesh):
    return optimal(mesh.splitting.radius, np.linalg.norm(mesh.steps, axis=1).max(), mesh.order)[1]


def test_a_mesh_that_does_not_fit_is_refused(monkeypatch):
    request, _ = request_for(15.0, 3.0, 1e-5)
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "400k")
    with pytest.raises(MemoryPlanError, match=r"a mesh of \d+ x \d+ x \d+ points needs .*larger tolerance or spacing"):
        pme.METHOD.plan(request, CPU)


def test_no_charge_no_atoms_and_one_point():
    atoms = water(6.0)
    nothing = replace(atoms, charges=np.zeros(len(atoms)))
    assert not potential_map(nothing, method="pme", padding=2, engine="cpu").values.any()
    point = Lattice(np.array([3.0, 3, 3]), np.full(3, 1.0), (1, 1, 1))
    grid = potential_map(atoms, method="pme", lattice=point, unit="V", engine="cpu")
    exact = potential_map(atoms, method="direct", lattice=point, unit="V", engine="cpu")
    assert grid.values == pytest.approx(exact.values, rel=1e-3)
