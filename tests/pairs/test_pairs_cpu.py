"""Pairs within a cutoff on the CPU against their definition, and what must not change them."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import refused, working
from pairs import reference

from vmdpotential.errors import InputError, UsageError
from vmdpotential.interactions import (
    coulomb,
    ewald,
    reaction_field,
    short_range,
    sigmoidal_dielectric,
)
from vmdpotential.kernels.launch import load_library
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.historical import buckingham
from vmdpotential.plugins.historical.layouts import set_layout
from vmdpotential.plugins.historical.lists import ListedPairs
from vmdpotential.plugins.historical.polynomial import ewald_polynomial
from vmdpotential.plugins.pairs import lennard_jones
from vmdpotential.plugins.pairs.in_range import Atoms, PairsInRange
from vmdpotential.plugins.pairs.pair_terms import (
    CHARGES_RULE,
    GEOMETRIC_RULE,
    LORENTZ_BERTHELOT,
    TABLE_RULE,
    PairPotential,
    PairTerm,
)

ENGINE = working("cpu")
CUTOFF = 5.0

LJ = lennard_jones.INTERACTION.bind().truncated(CUTOFF)
FIELD = reaction_field.INTERACTION.bind(cutoff=CUTOFF)
WATER = PairPotential((PairTerm("lj", LJ, GEOMETRIC_RULE), PairTerm("charges", FIELD, CHARGES_RULE)))
POTENTIALS = {
    "geometric, reaction field": WATER,
    "Lorentz-Berthelot, polynomial": PairPotential((
        PairTerm("lj", lennard_jones.SHIFTED.bind(cutoff=CUTOFF), LORENTZ_BERTHELOT),
        PairTerm("charges", ewald_polynomial(CUTOFF, 0.6), CHARGES_RULE))),
    "table, Ewald": PairPotential((
        PairTerm("lj", lennard_jones.SWITCHED.bind(cutoff=CUTOFF, switch=3.5), TABLE_RULE),
        PairTerm("charges", ewald.INTERACTION.bind(cutoff=CUTOFF, beta=0.6), CHARGES_RULE))),
    "Buckingham, dielectric": PairPotential((
        PairTerm("rest", buckingham.INTERACTION.bind().truncated(CUTOFF), buckingham.RULE),
        PairTerm("charges", sigmoidal_dielectric.INTERACTION.bind().truncated(CUTOFF), CHARGES_RULE))),
}
CELLS = {
    "open": None,
    "orthogonal": Cell(np.diag([12.0, 13.0, 14.0])),
    "triclinic": Cell.from_parameters(13, 12, 14, 75, 65, 100),
    "tiny": Cell(np.array([[0, 6.0, 0.5], [4.0, 0, 0], [1.0, -1.0, 7.0]])),
}
#: Relative rms errors of forces, energies and the virial.
ERRORS = {"single": 5e-6, "double": 1e-12}


def atoms(count, cell=None, seed=0):
    """Return atoms of every kind of parameter, not very near to each other or to images, and some exclusions."""
    rng = np.random.default_rng(seed)
    edge = int(np.ceil(count ** (1 / 3)))
    grid = np.stack(np.meshgrid(*[np.arange(edge)] * 3, indexing="ij"), -1).reshape(-1, 3)
    fraction = (rng.permutation(grid)[:count] + rng.uniform(0.3, 0.7, (count, 3))) / max(edge, 1)
    positions = (fraction + rng.integers(-1, 2, (count, 3))) @ cell.vectors if cell else 13 * fraction - 3
    names = ("charge", "root_a6", "root_a12", "half_rmin", "root_depth", "root_a", "half_b", "root_c", "source")
    parameters = {name: rng.uniform(0.5, 1.5, count) for name in names}
    parameters["charge"] -= 1
    for name in ("root_a6", "root_a12", "root_depth"):
        parameters[name][rng.uniform(size=count) < 0.6] = 0
    table = {name: (lambda a: a + a.T)(rng.uniform(0, 1, (3, 3))) for name in ("a6", "a12")}
    pairs = rng.integers(0, max(count, 1), (2 * count, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return Atoms(positions, parameters, rng.integers(0, 3, count), table, pairs)


def startof(whole, part):
    return Atoms(whole.positions[part], {name: value[part] for name, value in whole.parameters.items()},
                 whole.types[part], whole.tables)


def compute(potential, sample, cell=None, others=None, layout=None, **options):
    pairs = ListedPairs(ENGINE, potential, cell, **{"energy": True} | options)
    if layout:
        set_layout(pairs, layout)
    return pairs.run(sample, others)


def errors(result, expected):
    def compare(a, b):
        return np.sqrt(((a - b) ** 2).sum() / max((b**2).sum(), 1e-300))

    actual = [compare(result.forces, expected.forces)]
    if result.energies is not None:
        actual.append(compare(result.energies, expected.energies))
    return max(actual + ([] if expected.other is None else [errors(result.other, expected.other)]))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", POTENTIALS)
def test_every_potential_is_its_definition(name, cell):
    sample = atoms(40, CELLS[cell])
    expected = reference(POTENTIALS[name], sample, CELLS[cell])
    for precision, most in ERRORS.items():
        assert errors(compute(POTENTIALS[name], sample, CELLS[cell], precision=precision), expected) < most
    result = compute(POTENTIALS[name], sample, CELLS[cell], precision="double")
    assert np.abs(result.forces.sum(0)).max() < 1e-11 * np.abs(result.forces).sum()


@pytest.mark.parametrize("precision", ["single", "double"])
def test_whole_chunks_are_as_right_as_packed_atoms(precision):
    lanes = int(load_library().vector_floats()) // (1 if precision == "single" else 2)
    layout = f"{min(4, lanes)}x{lanes}"
    for cell in CELLS.values():
        sample = atoms(120, cell)
        expected = reference(WATER, sample, cell)
        assert errors(compute(WATER, sample, cell, layout=layout, precision=precision), expected) < ERRORS[precision]


SWAPPED = PairPotential(WATER.terms[::-1])
LONG = PairPotential((
    PairTerm("charges", short_range.bind(CUTOFF, [0.3, 0.01, 1e-4, 1e-6, 1e-7, 1e-9, 1e-10]), CHARGES_RULE),
    PairTerm("lj", LJ, LORENTZ_BERTHELOT)))
CUT = PairPotential((PairTerm("charges", coulomb.CUT.bind(cutoff=CUTOFF), CHARGES_RULE),
                     PairTerm("lj", LJ, GEOMETRIC_RULE)))
EWALD = PairPotential((PairTerm("charges", ewald_polynomial(CUTOFF, 0.6), CHARGES_RULE),
                       PairTerm("lj", LJ, GEOMETRIC_RULE)))
TRUNCATED = PairPotential((
    PairTerm("charges", coulomb.INTERACTION.bind().truncated(CUTOFF), CHARGES_RULE),
    PairTerm("lj", LJ, LORENTZ_BERTHELOT)))
LOOKED_UP = PairPotential((PairTerm("lj", LJ, TABLE_RULE), PairTerm("charges", FIELD, CHARGES_RULE)))


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("energy", [False, True])
@pytest.mark.parametrize("potential", [WATER, SWAPPED, LONG, CUT, EWALD, TRUNCATED, LOOKED_UP])
def test_common_potentials(potential, energy, precision):
    """They have loops of their own."""
    cell = CELLS["triclinic"]
    sample = atoms(90, cell)
    result = compute(potential, sample, cell, energy=energy, precision=precision)
    expected = reference(potential, sample, cell)
    assert errors(result, expected) < ERRORS[precision]
    assert (result.energies is not None) == energy


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("name", POTENTIALS)
def test_what_other_packages_register_is_interpreted(name, precision, monkeypatch):
    monkeypatch.setattr("vmdpotential.plugins.pairs.programs.number_of", lambda program: -1)
    cell = CELLS["triclinic"]
    sample = atoms(90, cell)
    result = compute(POTENTIALS[name], sample, cell, precision=precision)
    assert errors(result, reference(POTENTIALS[name], sample, cell)) < ERRORS[precision]


@pytest.mark.parametrize("name", ["table, Ewald", "Buckingham, dielectric"])
def test_two_sets(name):
    for cell in CELLS.values():
        first, second = (startof(atoms(100, cell), part) for part in (slice(40), slice(40, None)))
        expected = reference(POTENTIALS[name], first, cell, second)
        result = compute(POTENTIALS[name], first, cell, second)
        assert errors(result, expected) < ERRORS["single"]
        assert len(result.other.forces) == 60


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 15, 16, 17, 33])
def test_few_atoms(count):
    for cell in CELLS.values():
        sample = atoms(count, cell)
        assert errors(compute(WATER, sample, cell), reference(WATER, sample, cell)) < ERRORS["single"]


def test_far_away_single_precision_keeps_its_digits():
    rng = np.random.default_rng(0)
    near = replace(atoms(60), exclusions=None)
    away = near.positions + np.array([4000.0, -3000.0, 5000.0])
    both = replace(near, positions=np.concatenate([near.positions, away]),
                   parameters={name: np.tile(value, 2) for name, value in near.parameters.items()},
                   types=np.tile(near.types, 2))
    both = replace(both, positions=both.positions + rng.uniform(0, 1e-3, 3))
    expected = reference(WATER, near, None).forces
    result = compute(WATER, both).forces
    for half in (result[:60], result[60:]):
        assert np.sqrt(((half - expected) ** 2).sum() / (expected**2).sum()) < ERRORS["single"]


def test_a_list_serves_atoms_that_have_moved_a_little():
    cell = CELLS["triclinic"]
    sample = atoms(100, cell)
    rng = np.random.default_rng(4)
    pairs = ListedPairs(ENGINE, WATER, cell, energy=True, buffer=1.0).search(sample)
    step = rng.normal(size=(100, 3))
    step *= 0.499 / np.linalg.norm(step, axis=1)[:, None]
    wrapped = sample.positions + step + rng.integers(-1, 2, (100, 3)) @ cell.vectors
    expected = reference(WATER, replace(sample, positions=sample.positions + step), cell)
    assert errors(pairs.run_moved(wrapped), expected) < ERRORS["single"]
    for wrong, error in ((sample.positions + 1.003 * step, UsageError), (sample.positions[:99], UsageError),
                         (np.full((100, 3), np.nan), InputError)):
        with pytest.raises(error):
            pairs.run_moved(wrong)
    first, second = (startof(sample, part) for part in (slice(40), slice(40, None)))
    both = ListedPairs(ENGINE, POTENTIALS["table, Ewald"], cell).search(first, second)
    with pytest.raises(InputError):
        both.run_moved(first.positions, np.full((60, 3), np.inf))


def test_threads_give_the_same(monkeypatch):
    cell = Cell(np.diag([14.0] * 3))
    sample = atoms(600, cell)
    monkeypatch.setattr("vmdpotential.plugins.pairs.clusters.LEAST", 8)
    results = []
    for threads, at_once in (("1", 2**27), ("3", 2**27), ("3", 1)):
        monkeypatch.setenv("VMDPOTENTIAL_THREADS", threads)
        monkeypatch.setattr("vmdpotential.plugins.pairs.in_range.AT_ONCE", at_once)  # parts one by one, or all
        results.append(compute(WATER, sample, cell))
    assert errors(results[1], results[0]) < 1e-6
    for a, b in ((results[1].forces, results[2].forces), (results[1].energies, results[2].energies)):
        np.testing.assert_array_equal(a, b)


def test_a_list_that_does_not_fit_is_made_again(monkeypatch):
    cell = CELLS["triclinic"]
    sample = atoms(400, cell)
    monkeypatch.setattr("vmdpotential.plugins.pairs.clusters.LEAST", 10**6)
    monkeypatch.setattr("vmdpotential.plugins.pairs.clusters.ROOM", 0.0)
    pairs = PairsInRange(ENGINE, WATER, cell).search(sample)
    assert pairs.listed.limits[0] > 64 + 1
    assert errors(pairs.run(), reference(WATER, sample, cell)) < ERRORS["double"]


def test_atoms_of_one_part_of_a_large_cell():
    """And some far away from them, in columns and bins that are mostly empty."""
    cell = Cell.from_parameters(150, 160, 170, 75, 65, 100)
    near = atoms(200)
    positions = near.positions.copy()
    positions[150:] += 0.4 * cell.vectors.sum(0) + np.array([-3.0, 5.0, 2.0])
    sample = replace(near, positions=positions - 2 * cell.vectors[0])
    assert errors(PairsInRange(ENGINE, WATER, cell).run(sample), reference(WATER, sample, cell)) < ERRORS["double"]


def test_what_cannot_be():
    work = PairPotential((PairTerm("q", coulomb.INTERACTION.bind().truncated(CUTOFF), CHARGES_RULE),))
    with pytest.raises(UsageError) as caught:
        PairsInRange(ENGINE, PairPotential((PairTerm("q", coulomb.INTERACTION.bind(), CHARGES_RULE),)))
    assert caught.value.parameter == "cutoff"
    with refused("layout"):
        set_layout(ListedPairs(ENGINE, work), "3x5")
    with refused("parameters"):
        PairsInRange(ENGINE, work).run(Atoms(np.zeros((3, 3))))



def test_layouts_of_other_processors_say_so(monkeypatch):
    monkeypatch.setattr(type(ENGINE), "vector_size", 4)
    for layout in ("compressed", "4x16", "2x2"):
        with pytest.raises(UsageError) as caught:
            set_layout(ListedPairs(ENGINE, WATER), layout)
        assert caught.value.parameter == "layout"


def test_a_potential_of_more_terms_than_kernels_have_room_for_is_refused():
    terms = tuple(PairTerm(f"charges{n}", FIELD, CHARGES_RULE) for n in range(9))
    with pytest.raises(UsageError) as caught:
        PairsInRange(ENGINE, PairPotential(terms))
    assert caught.value.parameter == "potential"
    sample = atoms(40)
    result = compute(PairPotential(terms[:3]), sample, precision="double")
    assert errors(result, reference(PairPotential(terms[:3]), sample, None)) < ERRORS["double"]
