"""The CUDA engine's sums over pairs without a GPU: kernels compile, and do on the host what the definition says."""

from dataclasses import replace

import numpy as np
import pytest
from cuda_kernels import ARCHITECTURES, compile_for_all
from helpers import relative_rms
from pairs import coulomb_by_hand, distances, reference
from pairs_on_gpus import EWALD, FIELD, TOLERANCE, TRICLINIC, check, some_atoms, split

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.engines.cuda import ENGINE as CUDA
from vmdpotential.engines.cuda import build
from vmdpotential.interactions import coulomb
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.historical import buckingham, nbody
from vmdpotential.plugins.historical.lists import ListedPairs
from vmdpotential.plugins.historical.polynomial import ewald_polynomial
from vmdpotential.plugins.pairs import all_pairs, clusters, in_range
from vmdpotential.plugins.pairs.distances import count_distances
from vmdpotential.plugins.pairs.in_range import Atoms, PairList, PairsInRange
from vmdpotential.plugins.pairs.pair_terms import CHARGES_RULE, LORENTZ_BERTHELOT, PairPotential, PairTerm


@pytest.mark.parametrize("pieces", [1, 3])
def test_all_pairs_on_the_host(gpu, monkeypatch, pieces):
    """The same kernel as on a CPU, by what is compiled for GPUs."""
    monkeypatch.setattr(all_pairs, "BLOCKS", 3 * pieces)
    rng = np.random.default_rng(4)
    x, q, y, p = rng.uniform(0, 9, (300, 3)), rng.normal(size=300), rng.uniform(0, 9, (400, 3)), rng.normal(size=400)
    for others in (None, (y, p)):
        expected = coulomb_by_hand(x, q, others)
        for actual, exact in zip(all_pairs.sum_coulomb(CUDA, x, q, others), expected, strict=True):
            assert relative_rms(actual, exact) < 1e-12
    for actual, exact in zip(all_pairs.coulomb_between(CUDA, x, q, y, p),
                             (coulomb_by_hand(x, q, (y, p))[0], coulomb_by_hand(y, p, (x, q))[0]), strict=True):
        assert relative_rms(actual, exact) < 1e-12
    for kernel in ("gravity_jerk", "sigmoidal"):
        columns = np.column_stack([x, rng.uniform(0.5, 1, (300, 4 if "jerk" in kernel else 3))]).T
        on_cpu, on_gpu = (nbody.sum_bodies(engine, kernel, columns, "double", softening=0.1)
                          for engine in (get_engine("cpu"), CUDA))
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-9, atol=1e-12 * np.abs(on_cpu).max())




@pytest.mark.parametrize(("potential", "cell", "precision"), [
    (FIELD, TRICLINIC, "single"), (EWALD, Cell.from_parameters(10.4, 10.2, 10.8), "single"), (FIELD, None, "single"),
    (FIELD, TRICLINIC, "double"), (EWALD, None, "double")],
    ids=["triclinic", "orthogonal", "open", "double triclinic", "double open"])
def test_pairs_in_range_on_the_host(gpu, potential, cell, precision):
    """Cells of less than twice the cutoff: several images of an atom, and its own, are in range."""
    atoms = some_atoms(cell=cell)
    prepared = ListedPairs(CUDA, potential, cell, precision, energy=True, buffer=0.5)
    actual = prepared.search(atoms)
    assert actual.slots % 32 == 0
    assert actual.slots > 0
    moved = atoms.positions + np.random.default_rng(5).uniform(-0.1, 0.1, atoms.positions.shape)
    expected = reference(potential, replace(atoms, positions=moved), cell)
    if cell is not None:  # wrapped in another way
        moved += np.random.default_rng(6).integers(-2, 3, moved.shape) @ cell.vectors
    check(actual.run_moved(moved), expected, tolerance=TOLERANCE[precision])


def test_pairs_of_two_sets_in_range_on_the_host(gpu, monkeypatch):
    atoms, others = split(some_atoms(150, cell=TRICLINIC))
    monkeypatch.setattr(PairList, "_expected", lambda *_: 1.0)  # too little room at first
    prepared = ListedPairs(CUDA, FIELD, TRICLINIC, energy=True)
    check(prepared.run(atoms, others), reference(FIELD, atoms, TRICLINIC, others))
    assert not prepared.run(atoms, Atoms(np.zeros((0, 3)))).forces.any()


def test_few_atoms_of_a_large_cell_on_the_host(gpu):
    """They are not wrapped, so that their clusters stay whole across its faces."""
    cell = Cell.from_parameters(31, 33, 35, 80, 70, 100)
    atoms = some_atoms()
    atoms = replace(atoms, positions=atoms.positions - 5 + 3 * cell.vectors[1])
    others = some_atoms(60, seed=3)
    others = replace(others, positions=others.positions + np.array([-5.0, -4.0, 6.0]), exclusions=None)
    prepared = PairsInRange(CUDA, FIELD, cell)
    check(prepared.run(atoms), reference(FIELD, atoms, cell), tolerance=1e-12)
    check(prepared.run(atoms, others), reference(FIELD, atoms, cell, others), tolerance=1e-12)


@pytest.mark.parametrize("cell", [None, TRICLINIC])
def test_distances_on_the_host(gpu, cell, monkeypatch):
    atoms, others = some_atoms(90).positions, some_atoms(70, seed=3).positions
    monkeypatch.setattr("vmdpotential.plugins.pairs.distances.BLOCKS", 30)
    for second, bins in ((None, 14), (others, 14), (None, 5000)):  # counted in shared memory, and without
        actual = count_distances(CUDA, atoms, second, cell, 7.0, bins)
        expected = distances(atoms, second, cell, 7.0, bins)
        if bins < 100:
            np.testing.assert_array_equal(actual, expected)
        else:
            np.testing.assert_allclose(actual.cumsum(), expected.cumsum(), atol=3)  # rounding at the edges of ranges


#: Every page with every rule that it takes, as potentials.
PAGES = {name: registry.get("pair", name).bind() for name in registry.available("pair")}
PAGES |= {name: registry.get("interaction", name).bind() for name in registry.available("interaction")}
PAGES |= {"ewald_polynomial": ewald_polynomial(10.0, 0.312), "cut_coulomb": coulomb.CUT.bind()}


@pytest.mark.nightly
@pytest.mark.parametrize("name", PAGES)
def test_kernels_compile_with_every_page(name, tmp_path):
    rules = {"a": buckingham.RULE, "a6": LORENTZ_BERTHELOT}
    rule = rules[next(iter(PAGES[name].interaction.pair))] if PAGES[name].interaction.pair else CHARGES_RULE
    bound = PAGES[name] if PAGES[name].cutoff is not None else PAGES[name].truncated(10.0)
    potential = PairPotential((PairTerm("only", bound, rule),))
    source, macros = compiled_with(ListedPairs(CUDA, potential, energy=True))
    architecture = ARCHITECTURES[list(PAGES).index(name) % len(ARCHITECTURES)]  # each in turn
    compile_for_all(source, macros, tmp_path, 64, (architecture,))


def compiled_with(prepared):
    """Return the whole source of a sum, and its macros."""
    macros = {**prepared.program.macros, "WARPS": in_range.WARPS[bool(prepared.program.macros["LEAN"])]}
    return build.source(in_range.KERNELS.path, macros, prepared.program.source), macros


@pytest.mark.slow
@pytest.mark.parametrize(("potential", "sums", "architectures"), [
    (FIELD, {"energy": True}, ARCHITECTURES), (EWALD, {}, ARCHITECTURES[1:2]),
    (FIELD, {"energy": True, "precision": "double"}, ARCHITECTURES[2:])])
def test_kernels_compile(potential, sums, architectures, tmp_path):
    source, macros = compiled_with(ListedPairs(CUDA, potential, **sums))
    compile_for_all(source, macros, tmp_path, 16 if macros["REAL"] == "float" else 128, architectures)


@pytest.mark.slow
def test_kernels_that_search_compile(tmp_path):
    compile_for_all(build.source(clusters.KERNELS.path, {}), {}, tmp_path, 64)
