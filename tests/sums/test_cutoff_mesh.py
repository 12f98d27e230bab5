"""The cutoff method on a mesh: the split of the shifted potential, and maps against the sum pair by pair."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import sums
from helpers import charges_at, rms, slow, water
from messages import naming

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.errors import MemoryPlanError, TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import SumOptions, bind_interaction, choose_method, potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.mesh import over_cell
from vmdpotential.splitting.shifted import optimal_for_cutoff
from vmdpotential.sums import ChargeStatistics, Request, accuracy, cutoff

ENGINE = get_engine("cpu")
TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
CELLS = {
    "open": None,
    "orthogonal": Cell.from_parameters(27, 30, 33),
    "triclinic": Cell.from_parameters(28, 30, 29, 78, 72, 105),
    "turned": Cell(Cell.from_parameters(28, 30, 29, 90, 70, 90).vectors @ TURN),
}


def shifted(reach):
    return registry.get("interaction", "shifted_coulomb").bind(cutoff=reach)


def random_charges(box, count=2000, seed=0, net=20.0):
    rng = np.random.default_rng(seed)
    charges = rng.choice([-0.6, 0.6], count)
    return rng.random((count, 3)) @ box, charges + (net - charges.sum()) / count


def lattice_for(cell, spacing=0.7):
    if cell is not None:
        return Lattice.over_cell(cell, spacing, np.array([0.1, -3.0, 5.0]))
    return Lattice(np.full(3, 0.2), np.full(3, spacing), (37, 41, 45))


def pairwise(lattice, positions, charges, reach, cell):
    return sums.cutoff(ENGINE, lattice, positions, charges, shifted(reach), "double", cell).astype(np.float64)


@pytest.mark.parametrize("boundary", slow(CELLS, ["turned"]))
@pytest.mark.parametrize(("reach", "spacing", "order", "ratio"), [
    (8.0, 1.0, 4, 3.0), *slow([(9.0, 0.6, 6, 4.0), (12.0, 1.4, 8, 4.5)], [(9.0, 0.6, 6, 4.0)]),
    pytest.param(20.0, 1.0, 8, 5.0, marks=pytest.mark.slow)])
def test_the_error_is_as_predicted(boundary, reach, spacing, order, ratio):
    """For charges without correlation, with a net charge, also for a cutoff longer than half the cell."""
    cell = CELLS[boundary]
    box = np.diag([27.0, 30, 33]) if cell is None else cell.vectors
    positions, charges = random_charges(box)
    lattice = lattice_for(cell)
    split = partial(optimal_for_cutoff, reach)
    if cell is None:
        mesh = sums.mesh_around(lattice, positions, spacing, order, ratio, split)
        step = spacing
    else:
        mesh = over_cell(cell, spacing, order, ratio, split)
        step = np.linalg.norm(mesh.steps, axis=1).max()
    values = sums.by_mesh(ENGINE, lattice, positions, charges, mesh, "double")
    error = rms(values - pairwise(lattice, positions, charges, reach, cell))
    predicted = split(ratio * spacing, step, order)[1] * np.sqrt(np.sum(charges**2) / abs(np.linalg.det(box)))
    # an open box is smaller than the sphere of the longest cutoff, and steps of a cell are shorter than asked for
    assert (0.4 if reach > 12 else 0.65) * predicted < error < 1.1 * predicted


@pytest.mark.parametrize("reach", [3.0, 9.0, 60.0])
def test_nothing_wraps_around_an_open_mesh(reach):
    """Strong charges near one face of a long box are not felt near the other, also where the cutoff is longer."""
    positions = np.array([[0.3, 0.2, 0.4], [0.9, 1.2, 0.1]])
    charges = np.array([50.0, -20.0])
    lattice = Lattice(np.array([-2.0, -2.0, -3.0]), np.full(3, 0.5), (9, 12, 100))
    mesh = sums.mesh_around(lattice, positions, 0.8, 6, 3.0, partial(optimal_for_cutoff, reach))
    exact = pairwise(lattice, positions, charges, reach, None)
    difference = sums.by_mesh(ENGINE, lattice, positions, charges, mesh, "double") - exact
    worst = abs(difference).max((0, 1))
    far = int((reach + 5 + 3.4) / 0.5)
    assert worst.max() < 5 * optimal_for_cutoff(reach, 2.4, 0.8, 6)[1] * 50
    # what a sharp end of the mesh's band leaves falls with the distance, and nothing else comes back
    assert worst[far:].max(initial=0) < 0.1 * worst.max()
    assert worst[-5:].max() < 0.02 * worst.max()
    assert rms(difference[:, :, :far]) < 1e-2 * rms(exact[:, :, :far])


def request_for(lattice, positions, charges, cell=None, reach=10.0, tolerance=1e-4, **options):
    """Return a request with its sample, and the error that keeps the tolerance."""
    request = Request(lattice, cell, shifted(reach), ChargeStatistics.of(positions, charges, cell), tolerance=tolerance,
                      **options)
    sample = accuracy.sample(request, positions, charges, ENGINE)
    return request.with_error(tolerance * sample.target_rms or np.inf), sample


class TestMethod:

    def test_atoms_that_no_point_sees_do_not_matter(self):
        positions, charges = random_charges(np.eye(3) * 20)
        lattice = Lattice(np.full(3, 2.0), np.full(3, 0.8), (12, 12, 12))
        far = np.array([[500.0, 0, 0], [0, 0, -3000.0]])
        options = {"method": "cutoff", "algorithm": "mesh", "cutoff": 8.0, "tolerance": 1e-3, "lattice": lattice,
                   "engine": "cpu"}
        alone = potential_map(charges_at(positions, charges), **options)
        grid = potential_map(charges_at(np.vstack([positions, far]), np.append(charges, [1.0, 2.0])), **options)
        np.testing.assert_array_equal(grid.values, alone.values)
        assert 0 < grid.provenance.error == alone.provenance.error <= 1e-3
        assert not potential_map(charges_at(far, np.ones(2)), **options).values.any()

    def test_what_cannot_be_done_is_refused(self, monkeypatch):
        positions, charges = random_charges(np.eye(3) * 20)
        lattice = Lattice(np.full(3, 2.0), np.full(3, 0.8), (12, 12, 12))
        request, _ = request_for(lattice, positions, charges, reach=2.0, tolerance=1e-6)
        with naming(TaskError, "1e-06", "algorithm=pair"):
            cutoff.BY_MESH.plan(request, ENGINE)
        request, _ = request_for(lattice, positions, charges, reach=9.0, tolerance=1e-3)
        monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "300k")
        with naming(MemoryPlanError, "algorithm=pair"):
            cutoff.BY_MESH.plan(request, ENGINE)

    def test_auto_weighs_pairs_against_the_mesh(self):
        positions, charges = water_box(60.0)
        lattice = Lattice(np.zeros(3), np.full(3, 0.4), (150, 150, 150))

        def chosen(reach, tolerance, count=None, interaction="auto"):
            atoms = positions[:count], charges[:count]
            expected = SumOptions(method="cutoff", algorithm="auto", interaction=interaction, cutoff=reach)
            request = Request(lattice, None, bind_interaction(expected, None), ChargeStatistics.of(*atoms),
                              tolerance=tolerance)
            method, request, sample = choose_method(expected, request, *atoms, ENGINE)
            assert (method is cutoff.BY_MESH) == (not method.exact) == (sample is not None)
            assert method.exact or request.error == tolerance * sample.target_rms  # nothing is computed twice
            return "pair" if method.exact else "mesh"

        assert chosen(25.0, 1e-3) == "mesh"
        assert chosen(5.0, 1e-4) == "pair"
        assert chosen(12.0, 1e-6) == "pair"
        assert chosen(25.0, 1e-2, interaction="coulomb") == "pair"
        assert chosen(25.0, 1e-2, count=30) == "pair"
        assert chosen(25.0, 1e-2, count=0) == "pair"


class TestOption:
    @pytest.mark.parametrize("boundary", slow(CELLS, ["turned"]))
    def test_a_map_by_mesh(self, boundary):
        structure = water(24.0, CELLS[boundary])
        options = {"method": "cutoff", "cutoff": 9.0, "padding": 3, "tolerance": 1e-3, "engine": "cpu"}
        pair = potential_map(structure, **options)
        mesh = potential_map(structure, algorithm="mesh", **options)
        assert pair.provenance.tolerance is None
        assert pair.provenance.error is None
        assert mesh.provenance.tolerance == 1e-3
        assert 0 < mesh.provenance.error <= 1e-3
        assert 0 < mesh.provenance.error_away <= 1e-3
        assert replace(mesh.provenance, tolerance=None, error=None, error_away=None) == pair.provenance
        assert mesh.lattice.shape == pair.lattice.shape
        error = rms(mesh.values - pair.values) / rms(pair.values)
        assert 1e-5 < error < 1.2e-3  # it was on a mesh
