"""The electric field: derivatives of traced interactions, and fields of every method against definitions."""

import ewald
import numpy as np
import pytest
import sums
from helpers import EVERYTHING, OURS, interaction, random_charges, relative_errors, slow

from vmdpotential.engines import get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.coulomb import optimal_splitting
from vmdpotential.splitting.mesh import over_cell

ENGINE = get_engine("cpu")


@pytest.mark.parametrize("bound", [*OURS, EVERYTHING.bind(), optimal_splitting(4.0, 1.3, 6)[0].short()],
                         ids=lambda b: b.interaction.name)
def test_derivative_equals_finite_differences(bound):
    r = np.random.default_rng(3).uniform(0.3, (bound.cutoff or 30.0) * 1.2, 400)
    kinks = np.array([bound.cutoff or 0.0, 1.25, 5.0, 10.0])  # where a branch of `everything` or a cutoff begins
    r = r[(np.abs(r[:, None] - kinks) > 2e-5 * r[:, None]).all(1)]
    h = 1e-5 * r
    expected = (bound(r + h) - bound(r - h)) / (2 * h)
    np.testing.assert_allclose(bound.derivative(r), expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


CELLS = {"orthogonal": Cell.from_parameters(24, 25, 26),
         "triclinic": Cell.from_parameters(24, 25, 26, 70, 80, 110),
         "rotated": Cell(np.array([[20.0, 3, 2], [1, 22, 4], [2, -3, 21]]))}


@pytest.mark.parametrize("name", slow(CELLS, ["orthogonal", "rotated"]))
def test_mesh_field_equals_ewalds_sum(name):
    cell = CELLS[name]
    positions, charges = random_charges(60, -10, 30)
    lattice = Lattice.over_cell(cell, 2.0)
    pick = np.random.default_rng(1).integers(0, lattice.shape, (60, 3))
    expected = ewald.with_field(lattice.points(pick), positions, charges, cell.vectors)
    values = sums.by_mesh(ENGINE, lattice, positions, charges, over_cell(cell, 0.7, 8, 5.0), "single", True)
    potential, field = relative_errors(values[(slice(None), *pick.T)], expected)
    assert potential < 1e-5
    assert field < 1e-4


@pytest.mark.parametrize(("spacing", "order", "ratio", "tolerance"), [(1.25, 8, 3.0, 1e-3), (0.7, 8, 5.0, 1e-5)])
def test_open_mesh_field_equals_the_direct_sum(spacing, order, ratio, tolerance):
    positions, charges = water_box(20.0)
    lattice = Lattice(np.array([1.1, 2.1, 0.1]), np.array([0.5, 0.55, 0.6]), (33, 30, 31))
    exact = sums.direct(ENGINE, lattice, positions, charges, interaction("coulomb"), "double", True)
    mesh = sums.mesh_around(lattice, positions, spacing, order, ratio)
    values = sums.by_mesh(ENGINE, lattice, positions, charges, mesh, "single", True)
    assert max(relative_errors(values, exact)) < tolerance
    alone = sums.by_mesh(ENGINE, lattice, positions, charges, mesh, "single")
    np.testing.assert_allclose(values[0], alone, rtol=0, atol=5e-6)


def test_field_between_charged_planes():
    # charges 1 A apart in planes 8 A apart, of a cell 24 A long: 4 pi times their density more between
    # the planes than outside, and none on average, as conducting surroundings have it
    side = np.arange(8.0)
    x, y = (a.ravel() for a in np.meshgrid(side, side))
    planes = [np.stack([x, y, np.full(64, z)], 1) for z in (8.0, 16.0)]
    cell = Cell.from_parameters(8, 8, 24)
    lattice = Lattice(np.array([0.3, 0.1, 0.0]), np.array([1.1, 0.9, 1.0]), (6, 7, 24))
    charges = np.repeat([1.0, -1.0], 64)
    mesh = over_cell(cell, 0.7, 8, 5.0)
    values = sums.by_mesh(ENGINE, lattice, np.concatenate(planes), charges, mesh, "single", True)
    between, outside = values[3, :, :, 11:14], values[3][:, :, [0, 1, 2, 3, 4, 20, 21, 22, 23]]
    np.testing.assert_allclose(between, 4 * np.pi * (1 - 8 / 24), rtol=2e-5)
    np.testing.assert_allclose(outside, -4 * np.pi * 8 / 24, rtol=2e-5)
    np.testing.assert_allclose(values[1:3, :, :, 11:14], 0, atol=2e-4)
