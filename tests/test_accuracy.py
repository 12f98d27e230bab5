"""The error that a map states: where it is measured, and against what."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, MemoryPlanError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import potential_map
from vmdpotential.methods import Sources, accuracy
from vmdpotential.methods.accuracy import POINTS, Attempts, Sample, choose_points
from vmdpotential.molecule.cell import Cell

CPU = get_engine("cpu")


def test_points_of_a_full_lattice_are_anywhere():
    lattice = Lattice(np.zeros(3), np.full(3, 0.5), (40, 30, 20))
    indices, weights = choose_points(lattice, np.random.default_rng(11).uniform(0, 1, (500, 3)) * lattice.last, None)
    assert indices.shape == (POINTS, 3)
    assert (indices >= 0).all()
    assert (indices < lattice.shape).all()
    assert (weights == 1 / POINTS).all()
    assert np.ptp(indices, axis=0).tolist() > [35, 25, 15]


@pytest.mark.parametrize("cell", [
    None, Cell.from_parameters(150, 150, 150), Cell.from_parameters(150, 150, 150, 70, 80, 60)])
def test_points_near_few_atoms_count_for_less(cell):
    """The mean of any function over the lattice is the weighted mean over the points."""
    lattice = Lattice(np.zeros(3), np.array([1.0, 1.5, 2.0]), (150, 100, 75))
    positions = np.array([20.0, 40, 60]) + np.random.default_rng(12).uniform(0, 12, (60, 3))
    if cell is not None:
        positions += np.array([2, -1, 3]) @ cell.vectors
    indices, weights = choose_points(lattice, positions, cell)
    assert weights.sum() == pytest.approx(1)
    assert len(np.unique(weights)) == 2
    near, far = (indices[weights == value] for value in (weights.min(), weights.max()))
    images = positions if cell is None else cell.images_in_box(positions, lattice.origin, lattice.last)[0]

    def nearest(points):
        return np.linalg.norm(lattice.points(points)[:, None] - images, axis=2).min(1)

    assert len(near) == POINTS // 2
    assert nearest(near).max() < 8 * np.sqrt(3) + 3  # in a block with an atom
    assert np.median(nearest(near)) < 8 < np.median(nearest(far))
    # the weight of a point near atoms is the part of the lattice in such blocks, over their number
    everywhere = np.indices(lattice.shape).reshape(3, -1).T
    side = np.array([8, 5, 4])
    nodes = np.rint((images - lattice.origin) / lattice.spacing).astype(int)
    nodes = nodes[((nodes >= 0) & (nodes < lattice.shape)).all(1)]
    blocks = {tuple(block) for block in (nodes // side).tolist()}
    part = np.mean([tuple(block) in blocks for block in (everywhere // side).tolist()])
    assert weights.min() * POINTS / 2 == pytest.approx(part)


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


@pytest.mark.parametrize("shape", [(4, 2100, 2100), (3000, 60, 60), (400, 400, 60)])
def test_parts_of_a_map_stand_for_all_of_it(shape):
    """A potential that changes from plane to plane and from row to row."""
    x, y, z = (np.float32(axis) for axis in np.ogrid[: shape[0], : shape[1], : shape[2]])
    values = np.cos(x / 10) + 3 * x / shape[0] + np.cos(y / 14) + np.cos(z / 2) / 3
    indices = np.random.default_rng(5).integers(0, shape, (POINTS, 3))
    sample = Sample(indices, values[tuple(indices.T)] + 0.01, np.full(POINTS, 1 / POINTS))
    assert sample.error(values) == pytest.approx(0.01 / np.sqrt(np.mean(values.astype(float) ** 2)), rel=0.02)


def test_msm_keeps_tolerances_between_those_of_its_levels():
    """Of ions of one sign the potential is large: the coarsest levels do better than is asked at first."""
    positions = np.random.default_rng(13).uniform(0, 40, (600, 3))
    ions = charges_at(positions, np.ones(600))
    for tolerance in (1e-2, 3e-3, 1e-3, 3e-4):
        assert potential_map(ions, method="msm", tolerance=tolerance, spacing=2).provenance.error <= tolerance


def test_a_cutoff_that_hardly_reaches_a_point():
    """Three atoms in a large box, between the points: the mesh has nothing to be compared with."""
    positions = np.array([[100.0, 100, 100], [103, 100, 100], [200, 77, 50]]) + 10
    lattice = Lattice(np.zeros(3), np.full(3, 20.0), (15, 15, 15))
    structure = charges_at(positions, [1, -1, 0.5])
    for algorithm in ("mesh", "auto"):
        grid = potential_map(structure, method="cutoff", cutoff=8.0, algorithm=algorithm, lattice=lattice)
        assert not grid.values.any()  # no point is within 8 A


def test_charges_that_no_map_can_hold():
    attempts = Attempts("pme", 1e-4, "single")
    with pytest.raises(InputError, match="charges are too large for a map in single precision"):
        attempts.enough(np.inf)


def test_images_count_in_the_plan_of_memory(monkeypatch):
    """800 atoms in a cell of 20 A, and a lattice over 16,000 such cells."""
    positions = np.random.default_rng(14).uniform(0, 20, (800, 3))
    structure = charges_at(positions, np.tile([1.0, -1], 400), Cell(np.eye(3) * 20))
    lattice = Lattice(np.zeros(3), np.full(3, 8.0), (64, 64, 64))
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1G")
    for method in ("pme", "msm"):
        with pytest.raises(MemoryPlanError, match="are free; use a larger --tolerance or --spacing"):
            potential_map(structure, method=method, lattice=lattice)


def test_the_sample_is_of_the_sources():
    """Where a sample is given, it is taken."""
    lattice = Lattice(np.zeros(3), np.ones(3), (5, 5, 5))
    sources = Sources(np.full((1, 3), 2.2), np.ones(1), None, registry.get("interaction", "coulomb").bind())
    sample = accuracy.exact(lattice, sources, CPU)
    distance = np.linalg.norm(lattice.points(sample.indices) - 2.2, axis=1)
    np.testing.assert_allclose(sample.values, 1 / distance, rtol=1e-12)
    assert accuracy.exact(lattice, replace(sources, sample=sample), CPU) is sample
