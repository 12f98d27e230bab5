"""The CPU engine against float64 definitions and independent programs."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial import cKDTree

from vmdpotential import registry
from vmdpotential.commands.benchmark import water_box
from vmdpotential.engines import PRECISIONS, get_engine
from vmdpotential.engines.cpu import threads
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Interaction, Quantity
from vmdpotential.interactions.tracing import erfc, exp, fma, less, maximum, minimum, select, sqrt
from vmdpotential.molecule.cell import Cell

ENGINE = get_engine("cpu")
#: Relative rms error that each precision promises.
TOLERANCE = {"single": 1e-6, "compensated": 1e-7, "double": 1e-7}


def interaction(name, **values):
    return registry.get("interaction", name).bind(**values)


def random_charges(count, low, high, seed=0):
    rng = np.random.default_rng(seed)
    charges = rng.normal(size=count)
    return rng.uniform(low, high, (count, 3)), charges - charges.mean()


def definition(points, positions, charges, bound, cell=None, reach=None):
    """Return the sum at points, in float64, with the nearest 0.01 A cut off."""
    if cell is not None:
        positions, index = cell.images_in_box(positions, points.min(0) - reach, points.max(0) + reach)
        charges = charges[index]
    result = np.empty(len(points))
    for n, point in enumerate(points):
        r = np.maximum(np.sqrt(((positions - point) ** 2).sum(1)), 0.01)
        result[n] = charges @ bound(r)
    return result


def relative_rms(values, reference):
    return np.sqrt(((values - reference) ** 2).mean() / (reference**2).mean())


# shapes straddle the edges of leaves (4) and tiles (8)
SHAPES = [(1, 1, 1), (3, 4, 5), (7, 8, 9), (8, 17, 4), (16, 1, 23)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_direct_equals_definition(shape, precision):
    positions, charges = random_charges(1100, -6, 14)  # more than two chunks of atoms
    lattice = Lattice(np.array([-3.0, 1.7, 2.2]), np.array([0.5, 0.7, 0.9]), shape)
    values = ENGINE.direct(lattice, positions, charges, interaction("coulomb"), precision)
    assert values.shape == shape
    assert values.dtype == np.float32
    reference = definition(lattice.points(), positions, charges, interaction("coulomb")).reshape(shape)
    assert relative_rms(values, reference) < TOLERANCE[precision]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("cutoff", [2.3, 9.0])
def test_cutoff_equals_definition(shape, precision, cutoff):
    positions, charges = random_charges(3000, -10, 20)
    lattice = Lattice(np.array([-3.0, 1.7, 2.2]), np.array([0.5, 0.7, 0.9]), shape)
    bound = interaction("shifted_coulomb", cutoff=cutoff)
    values = ENGINE.cutoff(lattice, positions, charges, bound, precision)
    reference = definition(lattice.points(), positions, charges, bound).reshape(shape)
    # relative to what a map has, where a single point may have next to nothing
    assert np.abs(values - reference).max() < TOLERANCE[precision] * 3 * max(1, np.abs(reference).max())


def everything(r2, rinv, p):
    r = r2 * rinv
    a = fma(r, rinv, -1.0) + minimum(r, p.length) / maximum(sqrt(r2), 0.25 * p.length)
    b = select(less(r, p.length), exp(-r / p.length), erfc(r / p.length) ** 3)
    return (a * b - (b - 2.0) / (1.0 + a * a)) * rinv


FOREIGN = [
    Interaction("everything", everything, [Quantity("length", "A", 5.0, 0.1, 100, "any")]).bind(),
    Interaction("ewald", lambda r2, rinv, p: erfc(r2 * rinv * p.alpha) * rinv,
                [Quantity("alpha", "1/A", 0.35, 0.01, 10, "splitting")]).bind(),
    Interaction("cubic", lambda r2, rinv, p: rinv - (1.5 - 0.5 * r2 / p.cutoff**2) / p.cutoff,
                [Quantity("cutoff", "A", 6.0, 0.1, 100, "end")]).bind(),
]
OURS = [interaction(name) for name in registry.available("interaction")]


@pytest.mark.parametrize("bound", [*OURS, *FOREIGN], ids=lambda b: b.interaction.name)
@pytest.mark.parametrize("precision", ["single", "double"])
def test_every_interaction_in_every_traversal(bound, precision):
    positions, charges = random_charges(400, 0, 16)
    lattice = Lattice(np.array([4.0, 4.1, 4.2]), np.full(3, 0.8), (9, 9, 9))
    tolerance = {"single": 2e-6, "double": 1e-7}[precision]
    reference = definition(lattice.points(), positions, charges, bound).reshape(lattice.shape)
    if bound.cutoff is None:
        values = ENGINE.direct(lattice, positions, charges, bound, precision)
        assert relative_rms(values, reference) < tolerance
        bound = bound.truncated(5.0)
        reference = definition(lattice.points(), positions, charges, bound).reshape(lattice.shape)
    values = ENGINE.cutoff(lattice, positions, charges, bound, precision)
    assert relative_rms(values, reference) < tolerance
    at_points = ENGINE.at_points(lattice.points(), positions, charges, None, bound)
    np.testing.assert_allclose(at_points, reference.ravel(), atol=1e-12 * np.abs(reference).max())


def test_direct_equals_the_fast_multipole_method():
    import fmm3dpy

    positions, charges = water_box(40.0)
    lattice = Lattice(np.full(3, 0.3), np.full(3, 1.0), (40, 40, 40))
    pick = np.random.default_rng(1).integers(0, 40, (2000, 3))
    found = fmm3dpy.lfmm3d(eps=1e-9, sources=positions.T.copy(), charges=charges,
                           targets=lattice.points(pick).T.copy(), pgt=1)
    reference = 4 * np.pi * found.pottarg
    for precision, tolerance in (("single", 1e-5), ("compensated", 2e-6), ("double", 2e-6)):
        values = ENGINE.direct(lattice, positions, charges, interaction("coulomb"), precision)
        assert relative_rms(values[tuple(pick.T)], reference) < tolerance


CELLS = [Cell.from_parameters(24, 25, 26), Cell.from_parameters(24, 25, 26, 70, 80, 110),
         Cell.from_parameters(30, 30, 30, 60, 60, 90), Cell.from_parameters(9, 10, 40)]


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: " ".join(f"{x:g}" for x in c.parameters))
def test_periodic_cutoff_counts_every_image(cell):
    positions, charges = random_charges(300, -40, 40)  # many outside the cell
    lattice = Lattice.over_cell(cell, 1.3, [-5.0, 2.0, 1.0])
    bound = interaction("shifted_coulomb", cutoff=11.0)  # longer than half of each cell, and than one edge
    values = ENGINE.cutoff(lattice, positions, charges, bound, "single", cell)
    pick = np.random.default_rng(2).integers(0, lattice.shape, (300, 3))
    reference = definition(lattice.points(pick), positions, charges, bound, cell, 11.0)
    assert relative_rms(values[tuple(pick.T)], reference) < 1e-6
    # moving the origin by a lattice vector changes nothing
    moved = Lattice(lattice.origin + cell.vectors[2], lattice.spacing, lattice.shape)
    again = ENGINE.cutoff(moved, positions, charges, bound, "single", cell)
    assert relative_rms(again, values) < 2e-6


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_point_on_an_atom_has_the_potential_at_the_soft_core(precision):
    lattice = Lattice(np.zeros(3), np.full(3, 0.5), (10, 10, 10))
    positions = np.array([[1.0, 1.5, 2.0], [3.0, 3.0, 3.004], [2.2, 2.2, 2.2]])
    charges = np.array([0.7, -0.4, 1.0])
    bound = interaction("shifted_coulomb", cutoff=4.0)
    reference = definition(lattice.points(), positions, charges, bound).reshape(lattice.shape)
    values = ENGINE.cutoff(lattice, positions, charges, bound, precision)
    np.testing.assert_allclose(values, reference, rtol=2e-6, atol=2e-7)
    assert values[2, 3, 4] == pytest.approx(0.7 / 0.01, rel=0.01)
    reference = definition(lattice.points(), positions, charges, interaction("coulomb")).reshape(lattice.shape)
    values = ENGINE.direct(lattice, positions, charges, interaction("coulomb"), precision)
    np.testing.assert_allclose(values, reference, rtol=2e-6, atol=2e-7)


def test_a_cutoff_much_shorter_than_the_spacing():
    lattice = Lattice(np.zeros(3), np.full(3, 100.0), (9, 10, 11))
    atoms = lattice.points() + np.random.default_rng(4).uniform(-0.4, 0.4, (lattice.size, 3))
    charges = np.random.default_rng(5).normal(size=lattice.size)
    bound = interaction("shifted_coulomb", cutoff=1.0)
    expected = charges * bound(np.maximum(np.linalg.norm(atoms - lattice.points(), axis=1), 0.01))
    values = ENGINE.cutoff(lattice, atoms, charges, bound, "double")
    assert relative_rms(values.ravel(), expected) < 1e-7


def test_a_crystal_on_the_lattice_is_finite_and_right():
    # every atom on a lattice point: the rule for coincident points carries the whole map
    side = np.arange(6) * 2.0
    positions = np.stack(np.meshgrid(side, side, side, indexing="ij"), -1).reshape(-1, 3)
    charges = (-1.0) ** (positions.sum(1) / 2)
    lattice = Lattice(np.zeros(3), np.full(3, 1.0), (11, 11, 11))
    bound = interaction("shifted_coulomb", cutoff=5.0)
    values = ENGINE.cutoff(lattice, positions, charges, bound)
    np.testing.assert_allclose(values, definition(lattice.points(), positions, charges, bound).reshape(11, 11, 11),
                               rtol=2e-6, atol=2e-6)


def test_water_box_at_the_papers_measure():
    """Maximum relative error where |V| > 1e-4, in part of the 96,000-atom water box."""
    positions, charges = water_box(100.0)
    lattice = Lattice(np.full(3, 40.25), np.full(3, 0.5), (48, 48, 48))
    bound = interaction("shifted_coulomb", cutoff=12.0)
    tree = cKDTree(positions)
    worst = {}
    exact = ENGINE.cutoff(lattice, positions, charges, bound, "double")
    # the points that matter most to this measure, and others, checked against the definition
    order = np.argsort(np.abs(exact).ravel())
    order = order[np.abs(exact).ravel()[order] > 1e-4]
    pick = np.concatenate([order[:300], np.random.default_rng(0).choice(order, 300)])
    points = lattice.points(np.stack(np.unravel_index(pick, lattice.shape), 1))
    reference = np.empty(len(pick))
    for n, near in enumerate(tree.query_ball_point(points, 12.0)):
        reference[n] = charges[near] @ bound(np.maximum(np.linalg.norm(positions[near] - points[n], axis=1), 0.01))
    for precision in PRECISIONS:
        values = ENGINE.cutoff(lattice, positions, charges, bound, precision)
        worst[precision] = np.abs(values.ravel()[pick] / reference - 1).max()
        assert relative_rms(values, exact) < TOLERANCE[precision]
    assert worst["single"] < 1e-2
    assert worst["compensated"] < 4.8e-3
    assert worst["double"] < 1e-5


@pytest.mark.parametrize("cell", [None, *CELLS], ids=str)
def test_at_points_takes_the_nearest_image(cell):
    positions, charges = random_charges(150, -60, 60)
    points = np.random.default_rng(7).uniform(-60, 60, (131, 3))  # more than two blocks
    points[0] = positions[3]
    d = points[:, None] - positions
    r2 = (d * d).sum(2)
    if cell is not None:
        d -= np.rint(cell.fractional(d)) @ cell.vectors
        r2 = np.min([((d + np.array(step) @ cell.vectors) ** 2).sum(2)
                     for step in itertools.product(range(-3, 4), repeat=3)], axis=0)
    reference = (charges / np.maximum(np.sqrt(r2), 0.01)).sum(1)
    np.testing.assert_allclose(ENGINE.at_points(points, positions, charges, cell), reference, rtol=1e-11, atol=1e-12)


def test_no_atoms_give_a_map_of_zeros():
    lattice = Lattice(np.zeros(3), np.ones(3), (3, 3, 3))
    nothing = np.zeros((0, 3)), np.zeros(0)
    assert not ENGINE.direct(lattice, *nothing, interaction("coulomb")).any()
    assert not ENGINE.cutoff(lattice, *nothing, interaction("shifted_coulomb")).any()
    far = np.full((2, 3), 1e3), np.ones(2)
    assert not ENGINE.cutoff(lattice, *far, interaction("shifted_coulomb")).any()


def test_an_interaction_without_end_has_no_cutoff_map():
    lattice = Lattice(np.zeros(3), np.ones(3), (3, 3, 3))
    with pytest.raises(UsageError, match="no cutoff"):
        ENGINE.cutoff(lattice, np.zeros((1, 3)), np.ones(1), interaction("coulomb"))


def test_threads_do_every_part_once_and_pass_errors_on(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "5")
    done = []
    threads.run(lambda first, last: done.extend(range(first, last)), 103, "count", grain=7)
    assert sorted(done) == list(range(103))

    def fail(first, last):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.run(fail, 3, "fail")
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "two")
    with pytest.raises(UsageError, match="VMDPOTENTIAL_THREADS"):
        threads.count()


def test_maps_do_not_depend_on_the_number_of_threads(monkeypatch):
    positions, charges = random_charges(500, 0, 20)
    lattice = Lattice(np.zeros(3), np.full(3, 0.9), (22, 23, 24))
    maps = []
    for count in ("1", "3"):
        monkeypatch.setenv("VMDPOTENTIAL_THREADS", count)
        maps.append(ENGINE.cutoff(lattice, positions, charges, interaction("shifted_coulomb")))
    np.testing.assert_array_equal(*maps)


@pytest.mark.parametrize("features", ["", "+avx2,+fma"], ids=["generic", "avx2"])
def test_older_processors_get_the_same_map(features, tmp_path):
    """The kernels compiled for a processor without AVX-512 or AVX2 give the map to single precision."""
    code = (
        "import sys, numpy as np\n"
        "from vmdpotential.engines import get_engine\nfrom vmdpotential.engines.cpu import simd\n"
        "from vmdpotential.commands.benchmark import water_box\nfrom vmdpotential.grid.lattice import Lattice\n"
        "from vmdpotential.interactions.shifted_coulomb import INTERACTION\n"
        "positions, charges = water_box(30.0)\nlattice = Lattice(np.full(3, 8.1), np.full(3, 0.5), (20, 20, 20))\n"
        "for precision in ('single', 'double'):\n"
        "    np.save(sys.argv[1] + precision + '.npy', get_engine('cpu').cutoff(\n"
        "        lattice, positions, charges, INTERACTION.bind(cutoff=9.0), precision))\n"
        "print(simd.LEVEL)\n"
    )
    if features and not _host_has_avx2():
        pytest.skip("this processor has no AVX2")
    environment = os.environ | {"VMDPOTENTIAL_CACHE": str(tmp_path), "NUMBA_CPU_NAME": "generic",
                                "NUMBA_CPU_FEATURES": features}
    prefix = str(tmp_path / "map-")
    done = subprocess.run([sys.executable, "-c", code, prefix], env=environment, capture_output=True, text=True,
                          check=True)
    assert done.stdout.split() == ["avx2" if features else "generic"]
    positions, charges = water_box(30.0)
    lattice = Lattice(np.full(3, 8.1), np.full(3, 0.5), (20, 20, 20))
    bound = interaction("shifted_coulomb", cutoff=9.0)
    reference = definition(lattice.points(), positions, charges, bound).reshape(lattice.shape)
    for precision in ("single", "double"):
        assert relative_rms(np.load(f"{prefix}{precision}.npy"), reference) < TOLERANCE[precision]


def _host_has_avx2():
    from llvmlite import binding

    return binding.get_host_cpu_features().get("avx2", False)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_pads_a_tile_is_on_no_lattice_point(precision):
    """Spacings of hundreds of cutoffs, in which a tile reaches as far as the atoms that must not count."""
    lattice = Lattice(np.zeros(3), np.array([40.0, 51.2, 51.2]), (8, 8, 8))
    bound = interaction("shifted_coulomb", cutoff=0.1)
    values = ENGINE.cutoff(lattice, lattice.spacing[None], np.ones(1), bound, precision)
    expected = np.zeros(lattice.shape)
    expected[1, 1, 1] = bound(0.01)
    np.testing.assert_allclose(values, expected, rtol=1e-6)
