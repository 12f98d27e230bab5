"""The choice of method and mesh by cost and tolerance."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import water

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.errors import MemoryPlanError, TaskError
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


def request_for(edge, spacing=1.0, tolerance=1e-4):
    """Return a request for the full potential of a box of water, and its sample."""
    positions, charges = water_box(edge)
    count = int(edge / spacing) + 1
    request = Request(Lattice(np.zeros(3), np.full(3, spacing), (count, count, count)), None, COULOMB,
                      Charges.of(positions, charges), tolerance=tolerance)
    sample = accuracy.sample(request, positions, charges, CPU)
    return request.with_error(tolerance * sample.goal), sample


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
