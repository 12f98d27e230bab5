"""The choice of method and mesh by cost and tolerance."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import water

from vmdpotential import registry
from vmdpotential.commands.benchmark import water_box
from vmdpotential.engines import get_engine
from vmdpotential.errors import MemoryPlanError, TaskError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import potential_map
from vmdpotential.methods import Sources, accuracy, costs, pme
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.coulomb import optimal

TASK = costs.Task(100_000, 8_000_000, 0.5, 0.1, (100.0, 100.0, 100.0), False)
COULOMB = registry.get("interaction", "coulomb").bind()


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
@pytest.mark.parametrize("error", [1e-2, 1e-3, 1e-5, 1e-6])
def test_the_cheapest_mesh_keeps_the_error(engine, error):
    spacing, ratio, order, _ = costs.cheapest(TASK, costs.COSTS[engine], error)
    assert optimal(ratio * spacing, spacing, order)[1] <= error


def test_a_smaller_error_costs_more():
    seconds = [costs.cheapest(TASK, costs.COSTS["cpu"], error)[-1] for error in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)]
    assert seconds == sorted(seconds)
    assert seconds[-1] > 1.5 * seconds[0]
    with pytest.raises(TaskError, match="no mesh reaches it"):
        costs.cheapest(TASK, costs.COSTS["cpu"], 1e-12)


def test_the_work_grows_as_it_should():
    """Twice the atoms at the same density, the points with them: everything but the transform doubles."""
    twice = replace(TASK, atoms=2 * TASK.atoms, points=2 * TASK.points)
    ratio = np.array(costs.parts(twice, 1.0, 4.0, 6)[5:9]) / costs.parts(TASK, 1.0, 4.0, 6)[5:9]
    assert ratio == pytest.approx(2)
    assert len(costs.parts(TASK, 1.0, 4.0, 6)) == len(costs.COSTS["cpu"])


@pytest.mark.parametrize(("edge", "cell", "method"), [
    (6.0, None, "direct"), (40.0, None, "pme"), (12.0, Cell(np.eye(3) * 12.5), "pme")])
def test_auto_takes_the_fastest_method(edge, cell, method):
    grid = potential_map(water(edge, cell), spacing=0.5, padding=6, engine="cpu")
    assert grid.provenance.method == method
    assert grid.provenance.interaction == "coulomb"
    if method == "pme":
        assert grid.provenance.error < 1e-4 == grid.provenance.tolerance
    else:
        assert grid.provenance.error is grid.provenance.tolerance is None


def test_auto_with_another_interaction_is_exact():
    system = water(12.0, Cell(np.eye(3) * 12.5))
    for options, method in (({"boundary": "open"}, "direct"), ({"cutoff": 7.0}, "cutoff")):
        grid = potential_map(system, interaction="screened_coulomb", spacing=2, engine="cpu", **options)
        assert grid.provenance.method == method
        assert grid.provenance.interaction.startswith("screened_coulomb")
    with pytest.raises(UsageError, match="the method pme sums coulomb alone; use --method cutoff or direct"):
        potential_map(system, method="pme", interaction="screened_coulomb", spacing=2)


def test_the_stated_error_is_the_measured_one():
    system = water(25.0)
    grid = potential_map(system, method="pme", tolerance=1e-3, unit="V", spacing=0.7, padding=3, engine="cpu")
    exact = potential_map(system, method="direct", unit="V", precision="double", lattice=grid.lattice, engine="cpu")
    error = np.sqrt(np.mean((grid.values - exact.values) ** 2) / np.mean(exact.values**2))
    assert error < 1e-3
    # 200 points of a potential that a few points near atoms dominate tell the error to a factor of two
    assert grid.provenance.error / 2 < error < 2 * grid.provenance.error
    header = grid.header()
    assert float(header["tolerance"]) == 1e-3
    assert float(header["error"]) == pytest.approx(grid.provenance.error)


@pytest.mark.parametrize("tolerance", [0, 1e-9, 0.5, np.nan])
def test_tolerances_that_make_no_sense(tolerance):
    with pytest.raises(UsageError, match=r"--tolerance .*: give 1e-06 to 0\.1"):
        potential_map(water(6.0), tolerance=tolerance)


class Sloppy:
    """The CPU engine, with an error in every point of its maps."""

    name = "cpu"

    def __init__(self, error, times=10**9):
        self.error, self.times, self.meshes = error, times, []

    def __getattr__(self, name):
        return getattr(get_engine("cpu"), name)

    def pme(self, lattice, positions, charges, mesh, *options):
        self.meshes.append(mesh)
        values = get_engine("cpu").pme(lattice, positions, charges, mesh, *options)
        return values + np.float32(self.error if len(self.meshes) <= self.times else 0)


def test_a_map_that_is_not_good_enough_is_made_again_and_better():
    positions, charges = water_box(15.0)
    lattice = Lattice(np.zeros(3), np.full(3, 1.0), (16, 16, 16))
    sources = Sources(positions, charges, None, COULOMB)
    rms = accuracy.exact(lattice, sources, get_engine("cpu")).rms
    once = Sloppy(1e-3 * rms, times=1)
    values = pme.compute(lattice, sources, once)
    assert len(once.meshes) == 2
    assert accuracy.exact(lattice, sources, once).error(values) < 1e-4
    with pytest.raises(TaskError, match=r"--tolerance 0\.0001: the method pme reached \S+ here"):
        pme.compute(lattice, sources, Sloppy(1e-3 * rms))


def test_a_mesh_that_does_not_fit_is_refused(monkeypatch):
    positions, charges = water_box(15.0)
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "400k")
    lattice = Lattice(np.zeros(3), np.full(3, 3.0), (5, 5, 5))
    with pytest.raises(MemoryPlanError, match=r"a mesh of \d+ x \d+ x \d+ points needs .*--tolerance or --spacing"):
        pme.plan(lattice, Sources(positions, charges, None, COULOMB), 1e-5, "cpu")


def test_no_charge_no_atoms_and_one_point():
    atoms = water(6.0)
    nothing = replace(atoms, charges=np.zeros(len(atoms)))
    assert not potential_map(nothing, method="pme", padding=2, engine="cpu").values.any()
    point = Lattice(np.array([3.0, 3, 3]), np.full(3, 1.0), (1, 1, 1))
    grid = potential_map(atoms, method="pme", lattice=point, unit="V", engine="cpu")
    exact = potential_map(atoms, method="direct", lattice=point, unit="V", engine="cpu")
    assert grid.values == pytest.approx(exact.values, rel=1e-3)
