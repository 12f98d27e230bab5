"""Particle mesh sums, and the float64 reference they are compared with, against lattice constants and Ewald sums."""

import ewald
import numpy as np
import pytest
import sums
from helpers import relative_rms, rms, slow

from vmdpotential.engines import get_engine
from vmdpotential.errors import MemoryPlanError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting import mesh as meshes
from vmdpotential.splitting.coulomb import optimal_splitting
from vmdpotential.sums.potential_sum import PRECISIONS
from vmdpotential.sums.reference import full_potential

ENGINE = get_engine("cpu")
#: Potential at a unit charge from its images and a neutralising background, times the edge of the cubic
#: cell (B. R. A. Nijboer, Th. W. Ruijgrok, J. Stat. Phys. 53, 361, 1988).
WIGNER = -2.837297479480620

ROTATION = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
CELLS = {
    "box": Cell.from_parameters(18, 21, 24),
    "truncated octahedron": Cell.from_parameters(22, 22, 22, 70.5287794, 109.4712206, 70.5287794),
    "monoclinic": Cell.from_parameters(19, 21, 24, 90, 105, 90),
    "hexagonal": Cell.from_parameters(20, 20, 22, 90, 90, 120),
    "triclinic": Cell.from_parameters(20, 24, 22, 80, 75, 100),
    "turned box": Cell(np.diag([18.0, 21.0, 24.0]) @ ROTATION),
    "turned triclinic": Cell(Cell.from_parameters(20, 24, 22, 80, 75, 100).vectors @ ROTATION),
    "axes exchanged": Cell(np.array([[0, 0, 21.0], [18.0, 0, 0], [0, 24.0, 0]])),
    "left-handed": Cell(np.array([[18.0, 0, 0], [4.0, 21, 0], [0, 0, -24]])),
}


def random_charges(cell=None, count=500, seed=0):
    """Return uncorrelated charges with a net charge; in a cell, some are images outside of it."""
    rng = np.random.default_rng(seed)
    places = rng.random((count, 3))
    if cell is not None:
        places = (places + rng.integers(-1, 2, (count, 3))) @ cell.vectors
    else:
        places = 20 * places
    return places, rng.normal(size=count) + 0.05


def full_map(lattice, positions, charges, mesh, precision="single"):
    values = sums.by_mesh(ENGINE, lattice, positions, charges, mesh, precision)
    assert values.dtype == np.float32
    assert values.shape == lattice.shape
    return values


def predicted(mesh, charges, volume):
    """Return the rms error for uncorrelated charges, e/A."""
    step = np.linalg.norm(mesh.steps, axis=1).max()
    return optimal_splitting(mesh.splitting.radius, step, mesh.order)[1] * np.sqrt((charges**2).sum() / volume)


def scattered(cell, count=4, spacing=0.7, shape=(8, 9, 7), seed=1):
    """Return small lattices here and there, in and around a cell."""
    rng = np.random.default_rng(seed)
    return [Lattice((2 * rng.random(3) - 0.5) @ cell.vectors, spacing, shape) for _ in range(count)]


def measured(lattices, positions, charges, mesh, precision="single"):
    """Return the rms error over some lattices, and the rms potential, e/A."""
    exact = [full_potential(at.points(), positions, charges, mesh.cell, ENGINE).values().reshape(at.shape)
             for at in lattices]
    results = [full_map(at, positions, charges, mesh, precision) for at in lattices]
    return rms(np.subtract(results, exact)), rms(exact)


@pytest.mark.parametrize("spacing", [0.6, 0.9])
def test_madelung_constant_of_sodium_chloride(spacing):
    edge = 5.6402
    ions = np.indices((4, 4, 4)).reshape(3, -1).T / 2  # 2 x 2 x 2 cells
    charges = (-1.0) ** (2 * ions).sum(1)
    cell = Cell(2 * edge * np.eye(3))
    lattice = Lattice(np.zeros(3), edge / 2, (4, 4, 4))
    mesh = meshes.over_cell(cell, spacing, 8, 6.6 if spacing < 0.8 else 7.5)
    for removed in (0, 21):
        others = np.arange(64) != removed
        values = full_map(lattice, edge * ions[others], charges[others], mesh, "double")
        # the potential at an ion: of the others, and of its own images
        site = values.reshape(-1)[removed] + charges[removed] * WIGNER / (2 * edge)
        assert -charges[removed] * site * edge / 2 == pytest.approx(1.7475645946331822, rel=1e-5)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize(("order", "ratio"), [(4, 3.0), (6, 4.0), (8, 6.0)])
def test_error_is_the_predicted_one(name, order, ratio):
    cell = CELLS[name]
    positions, charges = random_charges(cell)
    mesh = meshes.over_cell(cell, 1.1, order, ratio)
    error, _ = measured(scattered(cell), positions, charges, mesh)
    assert 0.6 < error / predicted(mesh, charges, cell.volume) < 1.4


@pytest.mark.parametrize(("order", "ratio"), [(4, 3.0), (6, 4.0), (8, 5.0)])
def test_error_is_the_predicted_one_in_an_open_boundary(order, ratio):
    positions, charges = random_charges()
    lattice = Lattice(np.array([2.1, 3.2, 2.3]), 0.9, (17, 16, 18))  # inside, where the density is even
    mesh = sums.mesh_around(lattice, positions, 1.1, order, ratio)
    error, _ = measured([lattice], positions, charges, mesh, "double")
    assert 0.6 < error / predicted(mesh, charges, 20.0**3) < 1.4


def test_lattice_larger_than_the_cell_repeats_it():
    cell = CELLS["box"]
    positions, charges = random_charges(cell)
    mesh = meshes.over_cell(cell, 1.0, 6, 4.0)
    values = full_map(Lattice(np.full(3, -20.0), 1.5, (36, 20, 34)), positions, charges, mesh)
    scale = rms(values)
    np.testing.assert_allclose(values[12:], values[:-12], atol=2e-5 * scale)  # 18 A
    np.testing.assert_allclose(values[:, 14:], values[:, :-14], atol=2e-5 * scale)  # 21 A
    np.testing.assert_allclose(values[:, :, 16:], values[:, :, :-16], atol=2e-5 * scale)  # 24 A


@pytest.mark.parametrize("origin", [[5.0, 6.0, 7.0], [-45.0, 10.0, 30.0], [25.0, 25.0, 25.0]])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 9, 2), (20, 1, 11)])
def test_open_lattice_smaller_than_the_atoms_or_away_from_them(origin, shape):
    positions, charges = random_charges()
    lattice = Lattice(np.array(origin), 0.75, shape)
    mesh = sums.mesh_around(lattice, positions, 1.0, 6, 4.0)
    error, potential = measured([lattice], positions, charges, mesh)
    # single points may have more than the mean
    assert error < 4 * predicted(mesh, charges, 20.0**3) + 1e-6 * potential


@pytest.mark.parametrize("cell", [Cell.from_parameters(3, 4, 5), Cell.from_parameters(2.2, 1.4, 3, 75, 80, 110)],
                         ids=["box", "triclinic"])
@pytest.mark.parametrize("order", slow([4, 8], [8]))
def test_cell_smaller_than_the_split_radius(cell, order):
    positions, charges = random_charges(cell, count=6)
    mesh = meshes.over_cell(cell, 1.0, order, 6.0)
    assert mesh.splitting.radius > 5
    lattice = Lattice(np.array([0.1, 0.3, 0.2]), 0.31, (12, 13, 14))
    error, potential = measured([lattice], positions, charges, mesh)
    assert error < 1e-4 * potential


def test_lattice_with_three_spacings():
    positions, charges = random_charges()
    lattice = Lattice(np.array([1.0, 2.0, 3.0]), np.array([0.31, 0.77, 1.9]), (30, 19, 8))
    mesh = sums.mesh_around(lattice, positions, 1.0, 6, 4.0)
    error, _ = measured([lattice], positions, charges, mesh)
    assert error < 1.5 * predicted(mesh, charges, 20.0**3)


@pytest.mark.parametrize("boundary", ["open", "box", "triclinic"])
def test_precisions(boundary):
    # a mesh so good that rounding is what is left
    positions, charges = random_charges(CELLS.get(boundary))
    charges -= charges.mean()
    lattice = Lattice(np.array([1.0, 2.0, 3.0]), 0.8, (17, 16, 15))
    if boundary == "open":
        mesh = sums.mesh_around(lattice, positions, 0.8, 8, 8.0)
    else:
        mesh = meshes.over_cell(CELLS[boundary], 0.8, 8, 8.0)
    for precision in PRECISIONS:
        error, potential = measured([lattice], positions, charges, mesh, precision)
        assert error < {"single": 5e-6, "compensated": 1e-6, "double": 1e-6}[precision] * potential, precision


def test_point_on_an_atom_is_finite():
    positions, charges = random_charges(count=3)
    lattice = Lattice(positions[0] - 1.0, 0.5, (5, 5, 5))
    values = full_map(lattice, positions, charges, sums.mesh_around(lattice, positions, 1.0, 6, 4.0))
    # an atom counts at 0.01 A
    assert values[2, 2, 2] == pytest.approx(100 * charges[0], rel=0.02)
    assert np.isfinite(values).all()


SHAPES = {
    "cube": Cell.from_parameters(21, 21, 21),
    "box": Cell.from_parameters(20, 22, 24),
    "turned box": Cell(np.diag([20.0, 22.0, 24.0]) @ ROTATION),
    "truncated octahedron": Cell.from_parameters(22, 22, 22, 70.5287794, 109.4712206, 70.5287794),
    "hexagonal": Cell.from_parameters(18, 18, 26, 90, 90, 120),
    "triclinic": Cell.from_parameters(20, 24, 22, 80, 75, 100),
    "skewed": Cell(np.array([[15.0, 0, 0], [37.0, 16, 0], [-24.0, 25, 17]])),
    "plate": Cell.from_parameters(4, 30, 33),
    "needle": Cell.from_parameters(5, 4, 60, 80, 95, 70),
    "left-handed": Cell(np.diag([20.0, 22.0, -24.0])),
    "small": Cell.from_parameters(1.1, 1.2, 1.3, 85, 80, 95),
}


def random_case(cell, count=40, seed=0):
    """Return points, and charges with a net charge, inside and outside a cell."""
    rng = np.random.default_rng(seed)
    positions = (3 * rng.random((count, 3)) - 1) @ cell.vectors
    return rng.random((30, 3)) @ cell.vectors, positions, rng.normal(size=count) + 0.1


@pytest.mark.parametrize("name", slow(SHAPES, set(SHAPES) - {"cube", "skewed", "needle"}))
def test_periodic_is_a_gaussian_ewald_sum(name):
    points, positions, charges = random_case(SHAPES[name])
    values = full_potential(points, positions, charges, SHAPES[name], ENGINE).values()
    assert relative_rms(values, ewald.with_field(points, positions, charges, SHAPES[name].vectors)[0]) < 2e-9


@pytest.mark.parametrize(("crystal", "madelung", "distance", "ions"), [
    ("NaCl", -1.7475645946331822, 0.5, [[i, j, k] for i in (0, 0.5) for j in (0, 0.5) for k in (0, 0.5)]),
    ("CsCl", -1.7626747730709883, np.sqrt(0.75), [[0, 0, 0], [0.5, 0.5, 0.5]]),
])
def test_madelung_constants(crystal, madelung, distance, ions):
    # the ion itself left out, whose images and background are known
    edge = 5.6402
    ions = np.array(ions)
    charges = (-1.0) ** (2 * ions).sum(1)
    cell = Cell.from_parameters(edge, edge, edge)
    others = full_potential(np.zeros((1, 3)), ions[1:] * edge, charges[1:], cell, ENGINE).values()[0]
    assert (others * edge + WIGNER) * distance == pytest.approx(madelung, rel=1e-9)


def test_waves_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "10k")
    with pytest.raises(MemoryPlanError):
        full_potential(np.zeros((1, 3)), np.ones((1, 3)), np.ones(1), SHAPES["cube"], ENGINE)
