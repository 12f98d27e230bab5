"""The field on a GPU against that of the CPU engine and float64 definitions."""

import numpy as np
import pytest
import sums

from vmdpotential import engines, registry
from vmdpotential.engines import PRECISIONS
from vmdpotential.engines.cuda import maps
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.mesh import over_cell

pytestmark = pytest.mark.gpu

CPU = engines.get_engine("cpu")


def interaction(name, **values):
    return registry.get("interaction", name).bind(**values)


def random_charges(count, low, high, seed=0):
    rng = np.random.default_rng(seed)
    charges = rng.normal(size=count)
    return rng.uniform(low, high, (count, 3)), charges - charges.mean()


def relative_rms(values, reference):
    """Return the error of the potential, and of the field as a vector."""
    assert values.shape == reference.shape
    values, reference = (a.astype(float).reshape(4, -1) for a in (values, reference))
    return tuple(np.sqrt(((values[part] - reference[part]) ** 2).sum() / (reference[part] ** 2).sum())
                 for part in (slice(1), slice(1, 4)))


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 8, 9), (17, 9, 65)])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_pairs(engine, shape, precision):
    positions, charges = random_charges(3000, -10, 20)
    lattice = Lattice(np.array([-3.0, 1.7, 2.2]), np.array([0.5, 0.7, 0.9]), shape)
    positions[:2] = lattice.origin, lattice.last + np.array([0.0, 0.0, 0.004])  # no field there
    bound = interaction("shifted_coulomb", cutoff=9.0)
    for one, other in (
        (sums.cutoff(engine, lattice, positions, charges, bound, precision, field=True),
         sums.cutoff(CPU, lattice, positions, charges, bound, "double", field=True)),
        (sums.direct(engine, lattice, positions, charges, interaction("coulomb"), precision, True),
         sums.direct(CPU, lattice, positions, charges, interaction("coulomb"), "double", True)),
    ):
        potential, field = relative_rms(one, other)
        assert potential < TOLERANCE[precision]
        assert field < TOLERANCE[precision]


@pytest.mark.parametrize("name", registry.available("interaction"))
def test_every_interaction_has_a_field(engine, name):
    positions, charges = random_charges(400, 0, 16)
    lattice = Lattice(np.array([4.0, 4.1, 4.2]), np.full(3, 0.8), (9, 9, 9))
    bound = interaction(name)
    for case in [bound] if bound.cutoff is not None else [bound, bound.truncated(4.0)]:
        values = sums.direct(engine, lattice, positions, charges, case, "single", True)
        assert max(relative_rms(values, sums.direct(CPU, lattice, positions, charges, case, "double", True))) < 2e-5


@pytest.mark.parametrize("mesh", ["open", "orthogonal", "triclinic", "rotated"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_mesh(engine, mesh, precision):
    positions, charges = water_box(20.0)
    lattice = Lattice(np.array([1.1, 2.1, 0.1]), np.array([0.5, 0.55, 0.6]), (33, 30, 31))
    cell = {"orthogonal": Cell.from_parameters(20, 20, 20), "triclinic": Cell.from_parameters(20, 21, 22, 70, 80, 110),
            "rotated": Cell(np.array([[20.0, 3, 2], [1, 22, 4], [2, -3, 21]]))}.get(mesh)
    plan = sums.mesh_around(lattice, positions, 1.0, 6, 4.0) if cell is None else over_cell(cell, 1.0, 6, 4.0)
    values = sums.by_mesh(engine, lattice, positions, charges, plan, precision, True)
    potential, field = relative_rms(values, sums.by_mesh(CPU, lattice, positions, charges, plan, "double", True))
    assert potential < 3e-6 if precision == "single" else 3e-7
    assert field < 1e-5 if precision == "single" else 3e-7
    alone = sums.by_mesh(engine, lattice, positions, charges, plan, precision)
    assert np.abs(alone - values[0]).max() < 1e-5


def test_slabs_make_the_same_field(engine, monkeypatch):
    positions, charges = random_charges(500, 0, 20)
    lattice = Lattice(np.zeros(3), np.full(3, 0.7), (43, 21, 22))
    bound = interaction("shifted_coulomb", cutoff=6.0)
    whole = sums.cutoff(engine, lattice, positions, charges, bound, field=True)
    monkeypatch.setattr(maps, "PAIRS_PER_LAUNCH", 1e5)
    np.testing.assert_array_equal(sums.cutoff(engine, lattice, positions, charges, bound, field=True), whole)
