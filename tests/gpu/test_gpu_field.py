"""The field on a GPU against that of the CPU engine and float64 definitions."""

import numpy as np
import pytest
import sums
from helpers import interaction, random_charges, relative_errors

from vmdpotential import engines
from vmdpotential.engines.cuda import maps
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.mesh import over_cell

pytestmark = pytest.mark.gpu

CPU = engines.get_engine("cpu")


@pytest.mark.parametrize("mesh", ["open", "orthogonal", "triclinic", "rotated"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_mesh(engine, mesh, precision):
    positions, charges = water_box(20.0)
    lattice = Lattice(np.array([1.1, 2.1, 0.1]), np.array([0.5, 0.55, 0.6]), (33, 30, 31))
    cell = {"orthogonal": Cell.from_parameters(20, 20, 20), "triclinic": Cell.from_parameters(20, 21, 22, 70, 80, 110),
            "rotated": Cell(np.array([[20.0, 3, 2], [1, 22, 4], [2, -3, 21]]))}.get(mesh)
    plan = sums.mesh_around(lattice, positions, 1.0, 6, 4.0) if cell is None else over_cell(cell, 1.0, 6, 4.0)
    values = sums.by_mesh(engine, lattice, positions, charges, plan, precision, True)
    potential, field = relative_errors(values, sums.by_mesh(CPU, lattice, positions, charges, plan, "double", True))
    assert potential < {"single": 3e-6, "double": 3e-7}[precision]
    assert field < {"single": 1e-5, "double": 3e-7}[precision]
    alone = sums.by_mesh(engine, lattice, positions, charges, plan, precision)
    assert np.abs(alone - values[0]).max() < 1e-5


def test_slabs_make_the_same_field(engine, monkeypatch):
    positions, charges = random_charges(500, 0, 20)
    lattice = Lattice(np.zeros(3), np.full(3, 0.7), (43, 21, 22))
    bound = interaction("shifted_coulomb", cutoff=6.0)
    whole = sums.cutoff(engine, lattice, positions, charges, bound, field=True)
    monkeypatch.setattr(maps, "PAIRS_PER_LAUNCH", 1e5)
    np.testing.assert_array_equal(sums.cutoff(engine, lattice, positions, charges, bound, field=True), whole)
