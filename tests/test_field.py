"""The electric field: derivatives of traced interactions, and fields of every method against definitions."""

import os
import subprocess
import sys
from pathlib import Path

import ewald
import numpy as np
import pytest
import sums
from scipy.special import erfc as erfc_of

from vmdpotential import registry
from vmdpotential.engines import PRECISIONS, get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.coulomb import optimal
from vmdpotential.splitting.mesh import over_cell

ENGINE = get_engine("cpu")


@pytest.mark.parametrize("bound", [*OURS, EVERYTHING.bind(), optimal(4.0, 1.3, 6)[0].short()],
                         ids=lambda b: b.interaction.name)
def test_derivative_equals_finite_differences(bound):
    r = np.random.default_rng(3).uniform(0.3, (bound.cutoff or 30.0) * 1.2, 400)
    kinks = np.array([bound.cutoff or 0.0, 1.25, 5.0, 10.0])  # where a branch of `everything` or a cutoff begins
    r = r[(np.abs(r[:, None] - kinks) > 2e-5 * r[:, None]).all(1)]
    h = 1e-5 * r
    expected = (bound(r + h) - bound(r - h)) / (2 * h)
    np.testing.assert_allclose(bound.derivative(r), expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


def test_derivative_of_coulomb_is_the_inverse_square():
    bound = interaction("coulomb")
    np.testing.assert_allclose(bound.derivative([0.5, 2.0, 40.0]), [-4.0, -0.25, -1 / 1600], rtol=1e-15)
    np.testing.assert_array_equal(bound.truncated(5.0).derivative([5.0, 6.0]), 0.0)


def random_charges(count, low, high, seed=0):
    rng = np.random.default_rng(seed)
    charges = rng.normal(size=count)
    return rng.uniform(low, high, (count, 3)), charges - charges.mean()


def definition(points, positions, charges, bound, cell=None, reach=None):
    """Return potential and field (4, P) at points; an atom nearer than 0.01 A makes no field."""
    if cell is not None:
        positions, index = cell.images_in_box(positions, points.min(0) - reach, points.max(0) + reach)
        charges = charges[index]
    d = points[:, None] - positions
    r = np.sqrt((d * d).sum(2))
    far = np.maximum(r, 0.01)
    pull = np.where(r < 0.01, 0.0, -bound.derivative(far) / far) * charges
    return np.concatenate([[bound(far) @ charges], np.einsum("pn,pnd->dp", pull, d)])


def relative_rms(values, reference):
    """Return the error of the potential, and of the field as a vector."""
    values, reference = (np.asarray(a, np.float64).reshape(4, -1) for a in (values, reference))
    return tuple(np.sqrt(((values[part] - reference[part]) ** 2).sum() / (reference[part] ** 2).sum())
                 for part in (slice(1), slice(1, 4)))


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 8, 9), (8, 17, 4)])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_cutoff_equals_definition(shape, precision):
    positions, charges = random_charges(3000, -10, 20)
    lattice = Lattice(np.array([-3.0, 1.7, 2.2]), np.array([0.5, 0.7, 0.9]), shape)
    bound = interaction("shifted_coulomb", cutoff=9.0)
    values = sums.cutoff(ENGINE, lattice, positions, charges, bound, precision, field=True)
    assert values.shape == (4, *shape)
    assert values.dtype == np.float32
    potential, field = relative_rms(values, definition(lattice.points(), positions, charges, bound))
    assert potential < 0.2 * TOLERANCE[precision] * (10 if shape == (1, 1, 1) else 1)
    assert field < TOLERANCE[precision]
    alone = sums.cutoff(ENGINE, lattice, positions, charges, bound, precision)
    np.testing.assert_allclose(values[0], alone, rtol=0, atol=4e-6 if precision == "single" else 1e-7)


@pytest.mark.parametrize("bound", ALL, ids=lambda b: b.interaction.name)
def test_every_interaction_has_a_field(bound):
    positions, charges = random_charges(400, 0, 16)
    lattice = Lattice(np.array([4.0, 4.1, 4.2]), np.full(3, 0.8), (9, 9, 9))
    values = sums.direct(ENGINE, lattice, positions, charges, bound, "single", field=True)
    potential, field = relative_rms(values, definition(lattice.points(), positions, charges, bound))
    assert potential < 3e-6
    assert field < 2e-5


def test_truncated_interactions_end():
    positions, charges = random_charges(400, 0, 16)
    lattice = Lattice(np.array([4.0, 4.1, 4.2]), np.full(3, 0.8), (9, 9, 9))
    bound = interaction("coulomb").truncated(4.0)
    values = sums.cutoff(ENGINE, lattice, positions, charges, bound, "double", field=True)
    assert max(relative_rms(values, definition(lattice.points(), positions, charges, bound))) < 1e-7


def test_one_charge_and_a_dipole():
    lattice = Lattice(np.array([-4.0, -5.0, -6.0]), np.full(3, 1.7), (7, 7, 7))
    points = lattice.points() - [0.3, 0.2, 0.1]
    r = np.linalg.norm(points, axis=1)[:, None]
    at = np.array([[0.3, 0.2, 0.1]])
    values = sums.direct(ENGINE, lattice, at, np.array([-2.0]), interaction("coulomb"), "double", True)
    np.testing.assert_allclose(values[1:].reshape(3, -1).T, -2 * points / r**3, rtol=1e-6, atol=1e-9)
    # E = (3 (p n) n - p) / r^3
    moment, length = np.array([0.6, -0.8, 0.5]), 1e-3
    values = sums.direct(ENGINE, lattice, at + np.array([[0.5], [-0.5]]) * length * moment,
                           np.array([1.0, -1.0]) / length, interaction("coulomb"), "double", True)
    n = points / r
    expected = (3 * (n @ moment)[:, None] * n - moment) / r**3
    np.testing.assert_allclose(values[1:].reshape(3, -1).T, expected, rtol=0, atol=3e-6 * np.abs(expected).max())


def test_field_is_the_negative_gradient_of_the_potential():
    positions, charges = random_charges(300, 0, 12)
    lattice = Lattice(np.full(3, 1.0), np.full(3, 1.1), (9, 9, 9))
    bound = interaction("screened_coulomb")
    values = sums.direct(ENGINE, lattice, positions, charges, bound, "double", True)
    h = 1e-4
    for d, step in enumerate(np.eye(3) * h):
        ahead, behind = (ENGINE.at_points(lattice.points() + s, positions, charges, None, bound)
                         for s in (step, -step))
        np.testing.assert_allclose(values[1 + d].ravel(), (behind - ahead) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_atom_on_a_point_makes_no_field_there(precision):
    lattice = Lattice(np.zeros(3), np.full(3, 0.5), (10, 10, 10))
    positions = np.array([[1.0, 1.5, 2.0], [3.0, 3.0, 3.004], [2.2, 2.2, 2.2]])
    charges = np.array([0.7, -0.4, 1.0])
    bound = interaction("shifted_coulomb", cutoff=9.0)
    values = sums.cutoff(ENGINE, lattice, positions, charges, bound, precision, field=True)
    expected = definition(lattice.points(), positions, charges, bound).reshape(4, 10, 10, 10)
    np.testing.assert_allclose(values, expected, rtol=2e-5, atol=2e-6)
    others = definition(lattice.points([[2, 3, 4]]), positions[1:], charges[1:], bound)
    np.testing.assert_allclose(values[1:, 2, 3, 4], others[1:, 0], rtol=1e-5)


CELLS = [Cell.from_parameters(24, 25, 26), Cell.from_parameters(24, 25, 26, 70, 80, 110),
         Cell(np.array([[20.0, 3, 2], [1, 22, 4], [2, -3, 21]]))]


@pytest.mark.parametrize("cell", CELLS, ids=("orthogonal", "triclinic", "rotated"))
def test_periodic_cutoff_counts_every_image(cell):
    positions, charges = random_charges(100, -40, 40)
    lattice = Lattice.over_cell(cell, 3.0, [-5.0, 2.0, 1.0])
    bound = interaction("shifted_coulomb", cutoff=9.0)
    values = sums.cutoff(ENGINE, lattice, positions, charges, bound, "single", cell, True)
    assert max(relative_rms(values, definition(lattice.points(), positions, charges, bound, cell, 9.0))) < 1e-5


def ewald(points, positions, charges, cell, alpha=0.45):
    """Return potential and field (4, P) of all periodic images in a neutral cell, to 1e-12."""
    images, index = cell.images_in_box(positions, points.min(0) - 14, points.max(0) + 14)
    d = points[:, None] - images
    r = np.sqrt((d * d).sum(2))
    near = erfc_of(alpha * r) / r
    potential = near @ charges[index]
    bell = 2 * alpha / np.sqrt(np.pi) * np.exp(-((alpha * r) ** 2))
    field = np.einsum("pn,pnd->dp", charges[index] * (near + bell) / r**2, d)
    n = np.stack(np.meshgrid(*[np.arange(-18, 19)] * 3, indexing="ij"), -1).reshape(-1, 3)
    k = n @ (2 * np.pi * np.linalg.inv(cell.vectors).T)
    k2 = (k * k).sum(1)
    keep = (k2 > 0) & (k2 < 33 * 4 * alpha**2)
    k, k2 = k[keep], k2[keep]
    waves = 4 * np.pi / cell.volume / k2 * np.exp(-k2 / (4 * alpha**2)) * (np.exp(-1j * k @ positions.T) @ charges)
    phases = np.exp(1j * points @ k.T) * waves
    return np.concatenate([[potential + phases.real.sum(1)], field + (phases @ k).imag.T])


@pytest.mark.parametrize("cell", CELLS, ids=("orthogonal", "triclinic", "rotated"))
def test_mesh_field_equals_ewalds_sum(cell):
    positions, charges = random_charges(60, -10, 30)
    lattice = Lattice.over_cell(cell, 2.0)
    pick = np.random.default_rng(1).integers(0, lattice.shape, (60, 3))
    expected = ewald(lattice.points(pick), positions, charges, cell)
    values = sums.by_mesh(ENGINE, lattice, positions, charges, over_cell(cell, 0.7, 8, 5.0), "single", True)
    potential, field = relative_rms(values[(slice(None), *pick.T)], expected)
    assert potential < 1e-5
    assert field < 1e-4


@pytest.mark.parametrize(("spacing", "order", "ratio", "tolerance"), [(1.25, 8, 3.0, 1e-3), (0.7, 8, 5.0, 1e-5)])
def test_open_mesh_field_equals_the_direct_sum(spacing, order, ratio, tolerance):
    positions, charges = water_box(20.0)
    lattice = Lattice(np.array([1.1, 2.1, 0.1]), np.array([0.5, 0.55, 0.6]), (33, 30, 31))
    exact = sums.direct(ENGINE, lattice, positions, charges, interaction("coulomb"), "double", True)
    mesh = sums.mesh_around(lattice, positions, spacing, order, ratio)
    values = sums.by_mesh(ENGINE, lattice, positions, charges, mesh, "single", True)
    assert max(relative_rms(values, exact)) < tolerance
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


def test_no_atoms_give_no_field():
    lattice = Lattice(np.zeros(3), np.ones(3), (3, 3, 3))
    values = sums.cutoff(ENGINE, lattice, np.zeros((0, 3)), np.zeros(0), interaction("shifted_coulomb"), field=True)
    assert values.shape == (4, 3, 3, 3)
    assert not values.any()


@pytest.mark.parametrize("features", ["", "+avx2,+fma"], ids=["generic", "avx2"])
def test_older_processors_get_the_same_field(features, tmp_path):
    from llvmlite import binding

    if features and not binding.get_host_cpu_features().get("avx2", False):
        pytest.skip("this processor has no AVX2")
    code = (
        "import sys, numpy as np, sums\n"
        "from vmdpotential.engines import get_engine\nfrom vmdpotential.grid.lattice import Lattice\n"
        "from vmdpotential.interactions.shifted_coulomb import INTERACTION\n"
        "rng = np.random.default_rng(0)\nlattice = Lattice(np.full(3, 2.1), np.full(3, 0.5), (9, 10, 11))\n"
        "np.save(sys.argv[1], sums.cutoff(\n"
        "    get_engine('cpu'), lattice, rng.uniform(0, 9, (300, 3)), rng.normal(size=300),\n"
        "    INTERACTION.bind(cutoff=5.0), 'single', field=True))\n"
    )
    environment = os.environ | {"VMDPOTENTIAL_CACHE": str(tmp_path), "NUMBA_CPU_NAME": "generic",
                                "NUMBA_CPU_FEATURES": features, "PYTHONPATH": str(Path(__file__).parent)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "map.npy")], env=environment, check=True)
    rng = np.random.default_rng(0)
    lattice = Lattice(np.full(3, 2.1), np.full(3, 0.5), (9, 10, 11))
    reference = definition(lattice.points(), rng.uniform(0, 9, (300, 3)), rng.normal(size=300),
                           interaction("shifted_coulomb", cutoff=5.0), field=True)
    assert max(relative_errors(np.load(tmp_path / "map.npy"), reference.reshape(4, *lattice.shape))) < 1e-5
