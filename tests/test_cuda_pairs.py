"""The CUDA engine's sums over pairs without a GPU: kernels compile, and do on the host what the definition says."""

from dataclasses import replace

import numpy as np
import pytest
from cuda_kernels import ARCHITECTURES, compile_for_all
from helpers import relative_rms
from pairs import reference
from test_distances import definition as distances

from vmdpotential import registry
from vmdpotential.engines.cuda import ENGINE as CUDA
from vmdpotential.engines.cuda import build, clusters, nbody
from vmdpotential.engines.pairs import Atoms, PairSum
from vmdpotential.errors import InputError, UsageError
from vmdpotential.interactions import coulomb, ewald, lennard_jones, reaction_field
from vmdpotential.interactions.pairs import (
    BUCKINGHAM,
    CHARGES,
    GEOMETRIC,
    LORENTZ_BERTHELOT,
    SOURCES,
    TABLE,
    PairPotential,
    Term,
)
from vmdpotential.molecule.cell import Cell

LJ = lennard_jones.INTERACTION.bind()
GRAVITY = PairPotential((Term("gravity", coulomb.INTERACTION.bind(), SOURCES),), softening=0.3)
OPEN = PairPotential((Term("coulomb", coulomb.INTERACTION.bind(), CHARGES), Term("lj", LJ, LORENTZ_BERTHELOT)))
FIELD = PairPotential((Term("coulomb", reaction_field.INTERACTION.bind(cutoff=6.0), CHARGES),
                       Term("lj", LJ.truncated(6.0), TABLE)))
EWALD = PairPotential((Term("coulomb", ewald.polynomial(6.0, 0.5), CHARGES), Term("lj", LJ.truncated(6.0), GEOMETRIC)))


#: Relative rms errors by precision.
TOLERANCE = {"single": 3e-6, "double": 1e-12}


def some_atoms(count=90, edge=10.0, seed=1, cell=None):
    """Return atoms nowhere near each other in a box or cell, with what every rule takes, and excluded pairs."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(count ** (1 / 3)))
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)[:count]
    vectors = np.eye(3) * edge if cell is None else cell.vectors
    positions = (grid + rng.uniform(0.0, 0.3, (count, 3))) / side @ vectors
    parameters = {"charge": rng.normal(size=count) * 5, "source": rng.uniform(-1, 0, count),
                  "half_rmin": rng.uniform(0.8, 1.2, count), "root_depth": rng.uniform(0.3, 1.0, count),
                  "root_a6": rng.uniform(2, 6, count), "root_a12": rng.uniform(10, 40, count)}
    table = rng.uniform(5, 50, (2, 3, 3))
    pairs = np.unique(np.sort(rng.integers(0, count, (count, 2)), axis=1), axis=0)
    near = np.stack([np.arange(count - 1), np.arange(1, count)], 1)[::2]
    exclusions = np.unique(np.concatenate([pairs[pairs[:, 0] != pairs[:, 1]], near]), axis=0)
    return Atoms(positions, parameters, rng.integers(0, 3, count),
                 {"a6": table[0] + table[0].T, "a12": 10 * (table[1] + table[1].T)}, exclusions,
                 rng.normal(size=(count, 3)))


def split(atoms):
    """Return two thirds of atoms and the others, nowhere near each other, without excluded pairs."""
    for part in (np.arange(len(atoms)) % 3 > 0, np.arange(len(atoms)) % 3 == 0):
        yield Atoms(atoms.positions[part], {n: v[part] for n, v in atoms.parameters.items()}, atoms.types[part],
                    atoms.tables, None, atoms.velocities[part])


def check(values, expected, virial=True, tolerance=3e-6):
    assert relative_rms(values.forces, expected.forces) < tolerance
    assert relative_rms(values.energies, expected.energies) < tolerance
    if virial:
        assert relative_rms(values.virial, expected.virial) < 4 * tolerance
    if values.jerks is not None:
        assert relative_rms(values.jerks, expected.jerks) < tolerance
    if expected.other is not None:
        check(values.other, expected.other, False, tolerance)


def test_all_pairs_on_the_host(gpu, monkeypatch):
    atoms, others = some_atoms(150), some_atoms(70, seed=2)
    for potential, jerk, chosen, precision in (
            (GRAVITY, True, (2, 1, 64), "single"), (OPEN, False, (1, 3, 64), "single"),
            (GRAVITY, True, (1, 2, 64), "double"), (OPEN, True, (2, 1, 64), "double")):
        monkeypatch.setattr(nbody, "launch_sizes", lambda *_, chosen=chosen: chosen)
        prepared = CUDA.prepare_pairs(PairSum(potential, None, precision, True, potential is OPEN, jerk))
        expected = reference(potential, atoms, None)
        check(prepared.run(atoms), expected, potential is OPEN, TOLERANCE[precision])
        shifted = replace(others, positions=others.positions + 0.5, exclusions=None)
        check(prepared.run(atoms, shifted), reference(potential, atoms, None, shifted), potential is OPEN,
              TOLERANCE[precision])
        no_atoms = Atoms(np.zeros((0, 3)))
        assert len(prepared.run(no_atoms).forces) == 0
        assert not prepared.run(atoms, no_atoms).forces.any()


TRICLINIC = Cell.from_parameters(10.5, 11, 12, 80, 70, 100)


@pytest.mark.parametrize(("potential", "cell", "precision"), [
    (FIELD, TRICLINIC, "single"), (EWALD, Cell.from_parameters(10.4, 10.2, 10.8), "single"), (FIELD, None, "single"),
    (FIELD, TRICLINIC, "double"), (EWALD, None, "double")],
    ids=["triclinic", "orthogonal", "open", "double triclinic", "double open"])
def test_pairs_in_range_on_the_host(gpu, potential, cell, precision):
    """Cells of less than twice the cutoff: several images of an atom, and its own, are in range."""
    atoms = some_atoms(cell=cell)
    prepared = CUDA.prepare_pairs(PairSum(potential, cell, precision, energy=True, virial=True, buffer=0.5))
    actual = prepared.search(atoms)
    assert actual.slots % 32 == 0
    assert actual.slots > 0
    moved = atoms.positions + np.random.default_rng(5).uniform(-0.1, 0.1, atoms.positions.shape)
    expected = reference(potential, replace(atoms, positions=moved), cell)
    if cell is not None:  # wrapped in another way
        moved += np.random.default_rng(6).integers(-2, 3, moved.shape) @ cell.vectors
    check(actual.run(moved), expected, tolerance=TOLERANCE[precision])


def test_pairs_of_two_sets_in_range_on_the_host(gpu, monkeypatch):
    atoms, others = split(some_atoms(150, cell=TRICLINIC))
    monkeypatch.setattr(clusters, "_entries", lambda *_: 1.0)  # too little room at first
    prepared = CUDA.prepare_pairs(PairSum(FIELD, TRICLINIC, energy=True, virial=True))
    check(prepared.run(atoms, others), reference(FIELD, atoms, TRICLINIC, others))
    assert not prepared.run(atoms, Atoms(np.zeros((0, 3)))).forces.any()


@pytest.mark.parametrize("cell", [None, TRICLINIC])
def test_distances_on_the_host(gpu, cell, monkeypatch):
    atoms, others = some_atoms(90).positions, some_atoms(70, seed=3).positions
    for second, room in ((None, 40_000), (others, 0)):
        monkeypatch.setattr(clusters, "COUNTS", room)
        actual = CUDA.count_distances(atoms, second, cell, 7.0, 14)
        np.testing.assert_array_equal(actual, distances(atoms, second, cell, 7.0, 14))


#: Every page with every rule that it takes, as potentials.
PAGES = {name: registry.get("pair", name).bind() for name in registry.available("pair")}
PAGES |= {name: registry.get("interaction", name).bind() for name in registry.available("interaction")}
PAGES |= {"ewald_polynomial": ewald.polynomial(10.0, 0.312), "cut_coulomb": coulomb.CUT.bind()}


@pytest.mark.nightly
@pytest.mark.parametrize("name", PAGES)
def test_kernels_compile_with_every_page(name, tmp_path):
    rules = {"a": BUCKINGHAM, "a6": LORENTZ_BERTHELOT}
    rule = rules[next(iter(PAGES[name].interaction.pair))] if PAGES[name].interaction.pair else CHARGES
    potential = PairPotential((Term("only", PAGES[name], rule),))
    prepared = CUDA.prepare_pairs(PairSum(potential, energy=True))
    macros = compiled_with(prepared)
    architecture = ARCHITECTURES[list(PAGES).index(name) % len(ARCHITECTURES)]  # each in turn
    compile_for_all(build.source(*macros), macros[1], tmp_path, 64, (architecture,))


def compiled_with(prepared):
    """Return what a kernel file of a sum is compiled from: its name, macros and programs."""
    if isinstance(prepared, nbody.AllPairs):
        return "nbody.cu", prepared.macros(2, 128), prepared.programs.source
    return "clusters.cu", prepared.macros | {"WARPS": clusters.WARPS[prepared.summing]}, prepared.programs.source


@pytest.mark.slow
@pytest.mark.parametrize(("potential", "sums", "architectures"), [
    (GRAVITY, {"jerk": True}, ARCHITECTURES), (OPEN, {"energy": True}, ARCHITECTURES[:1]),
    (FIELD, {"energy": True, "virial": True}, ARCHITECTURES), (EWALD, {}, ARCHITECTURES[1:2]),
    (GRAVITY, {"jerk": True, "precision": "double"}, ARCHITECTURES[1:2]),
    (FIELD, {"energy": True, "precision": "double"}, ARCHITECTURES[2:])])
def test_kernels_compile(potential, sums, architectures, tmp_path):
    macros = compiled_with(CUDA.prepare_pairs(PairSum(potential, **sums)))
    spilled = 16 if macros[1]["REAL"] == "float" else 128
    compile_for_all(build.source(*macros), macros[1], tmp_path, spilled, architectures)


@pytest.mark.slow
def test_counts_of_distances_compile(tmp_path):
    macros = clusters.DISTANCES | {"WARPS": clusters.WARPS["distances"]}
    compile_for_all(build.source("clusters.cu", macros, clusters.POINTS), macros, tmp_path,
                    architectures=ARCHITECTURES[2:])


def test_what_the_engine_does_not_do_is_refused():
    with pytest.raises(UsageError, match="8x4"):
        CUDA.prepare_pairs(PairSum(FIELD, layout="4x4"))
    with pytest.raises(UsageError, match="cutoff"):
        CUDA.prepare_pairs(PairSum(OPEN)).search(some_atoms())
    with pytest.raises(InputError, match="too small"):
        clusters.geometry(Cell.from_parameters(0.1, 10, 10), 12.0)
