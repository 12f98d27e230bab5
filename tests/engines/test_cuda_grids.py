"""Surfaces, orbitals, charges, hydrogen bonds, counts, multigrid for a GPU, on the host, against the CPU's; copies."""

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from messages import Words, naming

from vmdpotential.engines import get_engine
from vmdpotential.engines.cuda import CudaEngine, blocks, copies, device
from vmdpotential.errors import MemoryPlanError, TaskError
from vmdpotential.frames.sums import arrays_of
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io import read_structure
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.plugins.continuum import multigrid
from vmdpotential.plugins.continuum.equation import Problem
from vmdpotential.plugins.continuum.lattices import enclosing_lattice
from vmdpotential.plugins.continuum.molecule import Continuum, Membrane
from vmdpotential.plugins.continuum.node_potential import NodePotential
from vmdpotential.plugins.densities.counting import NodeCounter
from vmdpotential.plugins.densities.over_frames import Densities
from vmdpotential.plugins.densities.quantities import CountedAtoms
from vmdpotential.plugins.orbitals import potential
from vmdpotential.plugins.orbitals.evaluate import _evaluate
from vmdpotential.plugins.orbitals.gaussians import Gaussians, hermite
from vmdpotential.plugins.orbitals.mesh import build_mesh
from vmdpotential.plugins.orbitals.shells import Shell, monomials
from vmdpotential.plugins.probes.bonds import DONOR, ONE_PAIR, TWO_PAIRS, Directions, Wells, bond_energies
from vmdpotential.surfaces import region
from vmdpotential.surfaces.region import Surface


@pytest.mark.slow
@pytest.mark.parametrize("orbitals", [0, 5, 20])
def test_orbitals_are_those_of_the_cpu(gpu, orbitals):
    rng = np.random.default_rng(3)
    momenta = [0, 1, 2, 3, 4, 5, 1]
    shells = tuple(Shell(centre, momentum, exponents, rng.uniform(0.5, 1, 2), tuple(
        "".join(axis * power for axis, power in zip("xyz", powers, strict=True)) for powers in monomials(momentum)))
        for centre, momentum, exponents in zip(rng.uniform(-1, 1, (7, 3)), momenta, rng.uniform(0.3, 4, (7, 2)),
                                               strict=True))
    shells = (replace(shells[0], exponents=np.array([20.0, 30.0])), *shells[1:])  # one has a short reach
    assert 1 < shells[0].reach < 1.5
    coefficients = rng.normal(size=(sum(len(shell.functions) for shell in shells), max(1, orbitals)))
    lattice = Lattice(np.full(3, -2.0), np.array([0.5, 0.6, 0.4]), (9, 7, 11))
    weights = rng.uniform(0, 2, orbitals).astype(np.float32)
    actual, expected = (_evaluate(shells, lattice, coefficients, weights, engine)
                        for engine in (CudaEngine(), get_engine("cpu")))
    assert gpu.used == {"sum_squared_orbitals" if orbitals else "evaluate_orbital"}
    assert np.abs(actual - expected).max() < 1e-5 * np.abs(expected).max()


@pytest.mark.slow
def test_potentials_of_charges_are_those_of_the_cpu(gpu, monkeypatch):
    rng = np.random.default_rng(6)
    orders = np.array([0, 3, 1, 4, 2, 6, 0])
    counts = [len(hermite(order)) for order in orders]
    exponents = rng.uniform(0.3, 4, 7)
    electrons = Gaussians(rng.uniform(-1, 1, (7, 3)), exponents, orders, np.cumsum(counts) - counts,
                          rng.normal(size=sum(counts)) * np.repeat(exponents, counts) ** -2)
    lattice = Lattice(np.full(3, -6.0), np.array([1.1, 1.3, 0.9]), (9, 7, 13))  # near and far
    nuclei = lattice.points()[:2] + 0.1, np.array([1.0, 6.0])

    def summed(engine, electrons, mesh=None):
        return potential.sum_potential(engine, lattice, electrons, mesh, *nuclei, 0.5)

    for mesh in (None, build_mesh(electrons, lattice.origin, lattice.last, 1.0)):
        expected = summed(get_engine("cpu"), electrons, mesh)
        assert np.abs(summed(CudaEngine(), electrons, mesh) - expected).max() < 1e-6 * np.abs(expected).max()
    assert {"add_gaussians_0", "add_gaussians_6", "add_nuclei"} <= gpu.used
    monkeypatch.setattr(potential, "TERMS_PER_LAUNCH", 1.0)
    expected = summed(get_engine("cpu"), electrons)
    assert np.abs(summed(CudaEngine(), electrons) - expected).max() < 1e-6 * np.abs(expected).max()
    none = Gaussians(np.zeros((0, 3)), np.zeros(0), *np.zeros((2, 0), np.int64), np.zeros(0))
    assert np.abs(summed(CudaEngine(), none) - summed(get_engine("cpu"), none)).max() < 1e-5


@pytest.mark.parametrize("donors", [False, True])
def test_hydrogen_bonds_are_those_of_the_cpu(gpu, donors):
    rng = np.random.default_rng(5)
    count = 14
    along, axes = rng.normal(size=(2, count, 3))
    along /= np.linalg.norm(along, axis=1)[:, None]
    axes = np.cross(along, axes)
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    kinds = np.full(count, DONOR) if donors else rng.choice([ONE_PAIR, TWO_PAIRS], count)
    bonding = Directions(np.arange(1, count + 1), kinds, along, axes, rng.choice([2.0, 4.0], count))
    depths = np.array([[0.6, 0.12], [0.5, 0.3], [0.4, 0.2], [0.3, 0.1], [0.5, 0.5]])
    wells = Wells(np.array([[1.9, 2.5], [1.8, 2.0], [2.2, 1.9], [1.7, 1.8], [2.0, 2.4]]), depths,
                  np.array([True, False, False, True, False]), 0.25, 1e5, 5.0)
    lattice = Lattice(np.full(3, -4.0), np.array([0.9, 1.1, 0.7]), (9, 8, 21))
    positions, types = rng.uniform(-5, 6, (count + 1, 3)), rng.integers(0, 2, count + 1)
    actual, expected = (bond_energies(engine, lattice, positions, types, bonding, wells)
                        for engine in (CudaEngine(), get_engine("cpu")))
    assert "sum_bonds" in gpu.used
    assert expected.min() < -0.3
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spreading", ["nearest", "gaussian", "occupancy"])
@pytest.mark.parametrize("periodic", [False, True])
def test_counts_are_those_of_the_cpu(gpu, spreading, periodic):
    rng = np.random.default_rng(4)
    positions = rng.uniform(-4, 9, (2, 40, 3)).astype(np.float64 if periodic else np.float32)
    cells = [Cell.from_parameters(*lengths, 75, 70, 80) for lengths in ((11, 12, 10), (11.2, 11.9, 10.1))]
    frames = LoadedFrames("frames", list(zip(positions, cells if periodic else (None, None), strict=True)))
    radii = np.array(rng.uniform(0.8, 2, 30)) if spreading == "occupancy" else None
    counted = CountedAtoms("number", "1/A^3", np.arange(3, 33), rng.normal(size=30), radii, "")
    lattice = Lattice.over_cell(cells[0], 1.0) if periodic else Lattice(np.full(3, -3.0), np.full(3, 1.1), (9, 8, 10))
    work = Densities(frames, None, lattice, cells[0] if periodic else None, True, None, counted,
                     1.1 if spreading == "gaussian" else 0.0)
    results = []
    for engine, kind in ((get_engine("cpu"), work._counter), (CudaEngine(), NodeCounter)):
        work._idle_counters[:] = [kind(work.counting, engine)]
        for _ in range(2):  # it begins again
            arrays = arrays_of("density", work.block(range(2)))
            values = np.zeros((2, lattice.size))
            values[:, arrays["nodes"]] = arrays["sums"], arrays["squares"]
            results.append(values)
        assert len(arrays["nodes"]) > 10
    assert "add_frame" in gpu.used
    for values in results[1:]:
        np.testing.assert_allclose(values, results[0], rtol=0, atol=1e-10)


def solve(engine, edges, k2, ions, levels, boundary, sources, tolerance):
    """Return the solution for arrays of numpy, and the number of iterations."""
    with engine.room(0):
        w = engine.array(boundary.copy())
        solver = multigrid.MultigridSolver(engine, *map(engine.array, edges), engine.array(k2), ions, levels)
        count = solver.solve(w, engine.array(sources), tolerance)
        return engine.to_host(w), count


@pytest.mark.parametrize("engine", [get_engine("cpu"), CudaEngine()], ids=lambda engine: engine.name)
def test_unconverged_last_round_is_no_solution(gpu, monkeypatch, engine):
    monkeypatch.setattr(multigrid, "ITERATIONS", 1)
    monkeypatch.setattr(multigrid, "ROUNDS", 1)
    shape = (17, 17, 17)
    edges = [np.random.default_rng(4).uniform(1.0, 80.0, shape).astype(np.float32) for _ in range(3)]
    for source in (1.0, 3e38):  # the second overflows
        zeros, sources = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        sources.ravel()[2456] = source
        with pytest.raises(TaskError):
            solve(engine, edges, zeros, np.zeros((0, 2)), 2, zeros, sources, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("ions", [np.zeros((0, 2)), np.array([(1.0, 0.5), (-2.0, 0.5)])], ids=["linear", "full"])
@pytest.mark.parametrize(("shape", "levels"), [
    pytest.param((49, 33, 65), 4, marks=pytest.mark.nightly), ((17, 17, 17), 2), ((25, 21, 45), 3), ((9, 9, 9), 1)])
def test_solution_is_that_of_the_cpu(gpu, monkeypatch, shape, levels, ions):
    """Both blocks compute levels of more than 6000 nodes; the coarsest one may have rows of an even number of nodes."""
    monkeypatch.setattr(multigrid, "LARGEST_LAUNCH", 4 * np.prod(shape))  # four iterations in each launch
    rng = np.random.default_rng(4)
    edges = [rng.uniform(1.0, 3.0, shape).astype(np.float32) for _ in range(3)]
    k2 = np.where(rng.uniform(size=shape) < 0.5, 0.1, 0).astype(np.float32)
    sources, boundary = np.zeros(shape, np.float32), rng.normal(size=shape).astype(np.float32)
    sources[tuple(rng.integers(1, min(shape) - 1, (3, 50)))] = rng.normal(size=50)
    boundary[1:-1, 1:-1, 1:-1] = 0
    results = []
    for engine in (get_engine("cpu"), CudaEngine()):
        results.append(solve(engine, edges, k2, ions, levels, boundary, sources, 1e-6))
    assert abs(results[0][1] - results[1][1]) <= 1
    assert np.abs(results[0][0] - results[1][0]).max() < 1e-4
    assert {"coarsen_conductances", "invert_diagonals", "solve_gradients"} <= gpu.used


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_systems_that_are_solved_together_have_their_own_solutions(gpu, monkeypatch, name):
    """Each block of the GPU, of which the host has two, is then a team of its own, and one of them takes two systems.

    The second system is solved before the first step, and the last one needs fewer steps than others.
    """
    engine, shape = get_engine("cpu") if name == "cpu" else CudaEngine(), (25, 21, 45)
    rng = np.random.default_rng(4)
    edges = [rng.uniform(1.0, 3.0, shape).astype(np.float32) for _ in range(3)]
    k2, ions = np.where(rng.uniform(size=shape) < 0.5, 0.1, 0).astype(np.float32), np.zeros((0, 2))
    sources, boundaries = np.zeros((2, 4, *shape), np.float32)
    sources[0, 5, 6, 7], sources[3, 12, 10, 20] = 3.0, -1e-3
    boundaries[2] = rng.normal(size=shape)
    together, count = solve(engine, edges, k2, ions, 3, boundaries, sources, 1e-5)
    counts = []
    for alone, boundary, source in zip(together, boundaries, sources, strict=True):
        expected, each = solve(engine, edges, k2, ions, 3, boundary, source, 1e-5)
        np.testing.assert_allclose(alone, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
        counts.append(each)
    assert counts[1] == 0
    assert count == max(counts) > 0


def protein(count=2489):
    """Return the positions and radii of a protein's first atoms."""
    structure = read_structure(Path(__file__).parents[2] / "data" / "dhfr.pdb.gz")
    radii = {"H": 1.2, "C": 1.7, "N": 1.55, "O": 1.52, "S": 1.8}
    return structure.positions[:count], np.array([radii[element] for element in structure.elements[:count]])


def assert_same_surface(surface, lattice, ion, layers=1):
    reach = 1.01 * layers * lattice.spacing.max()
    (actual, shares), (expected, others) = (
        surface.with_ions(lattice, ion, layers, engine) for engine in (CudaEngine(), get_engine("cpu")))
    near = abs(expected) < reach
    assert near.sum() > 100
    np.testing.assert_allclose(actual[near], expected[near], rtol=0, atol=1e-5)
    assert (abs(actual[~near]) >= reach - 1e-5).all()
    np.testing.assert_array_equal(actual < 0, expected < 0)
    if ion is None:
        assert shares is None
    else:
        assert 0 < others.mean() < 1
        np.testing.assert_allclose(shares, others, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("probe", "ion", "layers"), [(1.4, 2.0, 1), (1.4, None, 2), (0.0, 2.0, 1), (2.5, 1.0, 1)])
def test_surface_of_a_protein_is_that_of_the_cpu(gpu, probe, ion, layers):
    surface, spacing = Surface(*protein(), probe), np.array([1.5, 1.2, 1.3])
    lattice = Lattice(surface.centres.min(0) - 7, spacing, (37, 48, 45))
    for case in (lattice, Lattice(lattice.origin + 13, 2 * spacing, (12, 9, 10))):  # the second is inside in part
        assert_same_surface(surface, case, ion, layers)
    assert {"stamp_spheres", "project_depths"} <= gpu.used
    assert ({"find_neighbours", "find_arcs", "roll_probes"} <= gpu.used) == (probe > 0)


def test_surfaces_on_few_nodes_and_of_few_atoms_are_those_of_the_cpu(gpu):
    positions, radii = protein(300)
    lattice = Lattice(positions.mean(0) - [9, 9, 0.3], np.full(3, 0.4), (46, 46, 2))
    assert_same_surface(Surface(positions, radii, 1.4), lattice, 2.0)
    alone = Surface(np.array([[0.1, 0.2, 0.3]]), np.full(1, 1.7), 1.4)
    assert_same_surface(alone, Lattice(np.full(3, -4.0), np.full(3, 0.5), (17,) * 3), 2.0)
    for engine in (CudaEngine(), get_engine("cpu")):  # nothing is inside of atoms without radii
        assert (Surface(positions, np.zeros(300), 1.4).distances(lattice, engine=engine) > 0.4).all()


def test_surfaces_of_crowded_atoms_are_those_of_the_cpu(gpu, monkeypatch):
    """With more neighbours than are sorted, more arcs than there is room for at first, and circles in many parts."""
    rng = np.random.default_rng(5)
    crowd = rng.uniform(-3.2, 3.2, (700, 3))
    lattice = Lattice(np.full(3, -7.0), np.full(3, 0.7), (21,) * 3)
    monkeypatch.setattr(region, "ARCS_PER_SPHERE", 0)
    crowded = Surface(crowd, rng.uniform(1.0, 1.6, 700), 1.4)
    assert np.diff(crowded.neighbours[0]).max() > 600
    assert_same_surface(crowded, lattice, 2.0)
    turns = 2 * np.pi * np.arange(36) / 36
    # small spheres along the circle where two large ones intersect cut it into 36 parts
    ring = np.stack([2.4 * np.cos(turns), 2.4 * np.sin(turns), np.zeros(36)], 1)
    cut = Surface(np.concatenate([ring, [[0, 0, 1.8], [0, 0, -1.8]]]), np.array([0.1] * 36 + [2.9, 2.9]), 0.1)
    assert_same_surface(cut, lattice, None)
    assert len(cut._kept["cuda"].arcs) == cut._kept["cuda"].arc_count > 36  # those of the CPU


def test_what_a_gpu_holds_of_a_surface_is_released_with_it(gpu):
    lattice = Lattice(np.full(3, -4.0), np.full(3, 0.5), (17,) * 3)
    surface = Surface(np.eye(3), np.full(3, 1.7), 1.4)
    surface.distances(lattice, engine=CudaEngine())
    held = weakref.ref(surface._kept["cuda"].arcs)
    assert held() is not None
    del surface
    gc.collect()
    assert held() is None


def test_a_surface_that_does_not_fit_says_what_helps(gpu, monkeypatch):
    surface = Surface(np.eye(3), np.full(3, 1.7), 1.4)
    monkeypatch.setattr(gpu, "free", lambda: 100_000)
    monkeypatch.setattr(device, "LITTLE", 0)
    with naming(MemoryPlanError, Words.GPU_MEMORY):
        surface.distances(Lattice(np.full(3, -4.0), np.full(3, 0.3), (27,) * 3), engine=CudaEngine())


@pytest.mark.parametrize(("spacing", "membrane"), [(1.5, None), ((1.9, 1.4, 1.6), Membrane(20.0, 45.0, 4.0))])
def test_flow_at_the_surface_of_a_protein_is_that_of_the_cpu(gpu, monkeypatch, spacing, membrane):
    arrays = Surface.arrays  # the same distances to the last bit: flows depend on whether the surface meets a face
    monkeypatch.setattr(Surface, "arrays", lambda surface, lattice, ion, engine: tuple(
        None if each is None else engine.array(each) for each in arrays(surface, lattice, ion, get_engine("cpu"))))
    data, count = Path(__file__).parents[2] / "data", 2489
    dhfr = read_structure(data / "dhfr.pdb.gz", topology=data / "dhfr.psf.gz")
    radii, _ = atomic_radii(dhfr, np.arange(len(dhfr)) < count, "bondi")
    protein = Continuum(dhfr.positions[:count], dhfr.charges[:count], radii[:count], 560.0, 2.0, 78.5, 1.4, 2.0, 0.0,
                        np.zeros((0, 2)), membrane)
    low, high = protein.positions.min(0) - 4, protein.positions.max(0) + 4
    steps = np.broadcast_to(np.array(spacing), 3)
    # the last plane along z is in the molecule
    lattice, _, depth = enclosing_lattice(Lattice(low, steps, tuple(((high - [0, 0, 14] - low) / steps).astype(int))))
    changes = []
    for engine in (get_engine("cpu"), CudaEngine()):
        with engine.room(0):
            problem = Problem(protein, lattice, depth, NodePotential("cpu"), engine)
            problem.charge(protein.charges)
            before = problem.host(problem.sources).copy()
            of_charges = problem.host(problem._phi)[1:-1, 1:-1, 1:-1]
            problem.unknown = engine.array(of_charges * np.float32(protein.inside / protein.outside))
            problem.correct()
            changes.append((before, problem.host(problem.sources) - before))
    assert {"find_potential_on_edge", "fit_polynomials", "add_flows"} <= gpu.used
    for expected, actual in zip(*changes, strict=True):
        assert np.count_nonzero(expected) > 2000
        rounding = np.finfo(np.float32).eps * np.abs(before).max()  # of sources, from which changes are differences
        assert np.abs(actual - expected).max() < 1e-5 * np.sqrt(np.mean(expected[expected != 0] ** 2)) + rounding


class Late:
    """A driver that copies when somebody waits for it, and keeps what is copied in an array."""

    def __init__(self, size):
        self.memory, self.queue, self.most = np.zeros(size, np.uint8), [], 0

    def memcpy_htod(self, address, array):
        self.memory[address : address + array.nbytes] = array.reshape(-1).view(np.uint8)

    def memcpy_htod_async(self, address, array, stream):
        self._wait(lambda: self.memcpy_htod(address, array))

    def _wait(self, call):
        self.queue.append(call)
        self.most = max(self.most, len(self.queue))

    def event(self):
        event = SimpleNamespace(last=None)

        def record():
            event.last = self.queue[-1]

        def synchronize():
            while event.last in self.queue:
                self.queue.pop(0)()

        event.record, event.synchronize = record, synchronize
        return event


@pytest.mark.parametrize("size", [1, 64, 65, 500, 512, 513, 2000])
def test_arrays_arrive_whole_at_the_gpu(monkeypatch, size):
    driver = Late(8 * size + 16)
    driver.Event = driver.event
    monkeypatch.setattr(copies, "PIECE", 64)
    monkeypatch.setattr(copies, "cuda_driver", lambda: driver)
    monkeypatch.setattr(copies.pinned, "empty_pinned", lambda shape, dtype: np.zeros(shape, dtype))
    values = np.random.default_rng(size).normal(size=size)
    copies.put((16, values[: size // 3]), (16 + 8 * (size // 3), values[size // 3 :]))
    assert not driver.queue
    assert driver.memory[16:].tobytes() == values.tobytes()
    assert driver.most <= copies.PIECES


@pytest.mark.parametrize("sizes", [[64, 300, 8], [500], [512], [255, 256, 257, 0], list(range(0, 512, 7))])
def test_small_arrays_arrive_whole_however_late_they_are_copied(monkeypatch, sizes):
    sizes = 60 * sizes
    driver = Late(16 + sum(sizes) + 2 * 2048)
    driver.Event, driver.mem_alloc = driver.event, lambda size: 16 + sum(sizes)
    driver.pagelocked_empty = lambda size, kind: np.zeros(size, kind)
    monkeypatch.setattr(blocks, "HALF_BYTES", 2048)
    monkeypatch.setattr(blocks, "cuda_driver", lambda: driver)
    stage, rng, address = blocks.PinnedStage(), np.random.default_rng(1), 16
    values = rng.integers(1, 255, sum(sizes), np.uint8)
    for part in np.split(values, np.cumsum(sizes)[:-1]):
        given = part.copy()
        assert stage.put(given, address) == address
        given[:], address = 0, address + len(part)
    for copy in driver.queue:
        copy()
    assert driver.memory[16:address].tobytes() == values.tobytes()
