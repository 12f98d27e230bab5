"""Van der Waals parameters, exclusions and 1-4 pairs of prmtops and TPRs: energies against OpenMM and GROMACS' own."""

import warnings
from dataclasses import replace

import numpy as np
import openmm
import parmed
import pytest
from messages import naming
from numpy.testing import assert_allclose, assert_array_equal
from openmm import app
from openmm_pairs import COULOMB, check_energy, check_plain, energy, places
from structure_files import AMBER, MDA, TOOLS

from vmdpotential import registry
from vmdpotential.errors import BackendError, InputError, listed_words
from vmdpotential.io import read_structure, read_topology
from vmdpotential.molecule.nonbonded import LazyNonbonded
from vmdpotential.plugins.forcefields import tpr_nonbonded
from vmdpotential.plugins.forcefields.forcefield import nonbonded

TPRS = MDA / "tprs"


# ---- Amber ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [
    AMBER / "chitosan.prmtop",  # two kinds of 1-4 factors
    AMBER / "ache.prmtop",
    AMBER / "cpptraj_traj.prmtop",
    TOOLS / "cb7-b2" / "complex-vacuum.prmtop",
    TOOLS / "methanol-box" / "methanol-box.prmtop",
], ids=lambda path: path.stem)
def test_prmtop_has_the_energy_of_openmm(path):
    structure = read_topology(path)
    result = nonbonded(structure)
    check_plain(result)
    assert result.source == "prmtop"
    assert result.rule == "lorentz-berthelot"
    check_energy(result, app.AmberPrmtopFile(str(path)).createSystem(), places(len(structure)), structure.charges)


def test_chamber_prmtop_has_the_energy_of_parmed():
    path = AMBER / "parmed_fad.prmtop"
    structure = read_topology(path)
    result = nonbonded(structure)
    check_plain(result)
    assert set(result.charges14) == {1.0}
    i, j = result.pairs14.T
    assert (result.c12_14 != result.c12[result.types[i], result.types[j]]).any()  # CHARMM's own for some types
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = parmed.load_file(str(path)).createSystem()
    # ParmEd divides by Amber's constant, the file is of CHARMM's
    charges = np.array([force.getParticleParameters(k)[0]._value for force in system.getForces()
                        if isinstance(force, openmm.NonbondedForce) for k in range(len(structure))])
    assert_allclose(charges, structure.charges, atol=2e-4)
    check_energy(result, system, places(len(structure)), charges)


def test_old_prmtop_with_ten_twelve_terms_of_zero():
    result = nonbonded(read_topology(AMBER / "anti.top"))
    assert result.rule == "lorentz-berthelot"
    assert result.sigma[list(result.names).index("OW")] == pytest.approx(3.1507, abs=2e-4)  # TIP3P
    assert result.epsilon[list(result.names).index("OW")] == pytest.approx(0.152, abs=1e-6)


def edited(path, folder, section, change, added=""):
    """Write a prmtop whose section's values were changed: a function of its lines, without the header's."""
    parts = path.read_text().split("%FLAG ")
    for k, part in enumerate(parts):
        if part.split()[0] == section:
            head, form, *lines = part.split("\n")
            parts[k] = "\n".join([head, form, *change(lines)])
    (folder / "x.prmtop").write_text("%FLAG ".join(parts) + added)
    return folder / "x.prmtop"


def first(text):
    """Return a change of the first number of a section."""
    return lambda lines: [text.rjust(len(lines[0]) - len(lines[0][8:])) + lines[0][8:], *lines[1:]]


C4 = "%FLAG LENNARD_JONES_CCOEF\n%FORMAT(5E16.8)\n" + "".join(
    "".join(f"{4.5 if i == 3 else 0:16.8E}" for i in range(k, min(k + 5, 10))) + "\n" for k in range(0, 10, 5))


@pytest.mark.parametrize(("section", "change", "added", "message"), [
    ("", None, C4, "has 12-6-4 terms (LENNARD_JONES_CCOEF)"),
    ("ATOM_TYPE_INDEX", first("9"), "", "ATOM_TYPE_INDEX (line 25) contains numbers other than 1 to 4"),
    ("NONBONDED_PARM_INDEX", first("11"), "", "NONBONDED_PARM_INDEX (line"),
    ("NONBONDED_PARM_INDEX", first("-2"), "", "NONBONDED_PARM_INDEX (line"),
    ("NUMBER_EXCLUDED_ATOMS", first("3"), "", "disagrees with the list of"),
    ("EXCLUDED_ATOMS_LIST", first("77"), "", "EXCLUDED_ATOMS_LIST (line"),
    ("LENNARD_JONES_ACOEF", lambda lines: [], "", "LENNARD_JONES_ACOEF (line"),
    ("LENNARD_JONES_BCOEF", lambda lines: [lines[0].replace("E+", "X+"), *lines[1:]], "", "text that is not a number"),
    ("SCEE_SCALE_FACTOR", lambda lines: [line.replace("1.2", "0.0") for line in lines], "", "that is not positive"),
])
def test_damaged_prmtop_is_one_line(section, change, added, message, tmp_path):
    path = edited(AMBER / "ace_mbondi3.parm7", tmp_path, section, change, added)
    structure = read_topology(path)  # a map needs none of it
    with pytest.raises(InputError) as error:
        nonbonded(structure)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert len(str(error.value)) <= 300


def test_ten_twelve_terms_are_refused(tmp_path):
    path = edited(AMBER / "anti.top", tmp_path, "HBOND_ACOEF",
                  lambda lines: ["7.5570E+03".rjust(16) + lines[0][16:], *lines[1:]])
    with naming(InputError, "HBOND_ACOEF"):
        nonbonded(read_topology(path))


# ---- GROMACS -------------------------------------------------------------------------------------------


def test_tpr_has_gromacs_own_energies_of_1_4_pairs():
    """No cutoff ends the sums over 1-4 pairs, so those of the first frame are in the run's energy file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        structure = read_structure(MDA / "aux_edr.xtc", MDA / "aux_edr.tpr")
    actual = nonbonded(structure)
    check_plain(actual)
    lines = (line.split(",") for line in (MDA / "aux_edr_raw.txt").read_text().splitlines()[:30])
    expected = {name: float(value) / 4.184 for name, value, _ in lines}
    i, j = actual.pairs14.T
    gap = structure.cell.minimum_image(structure.positions[i] - structure.positions[j])
    r = np.sqrt((gap * gap).sum(1))
    # a trajectory's positions are rounded to 0.01 A
    assert (actual.c12_14 / r**12 - actual.c6_14 / r**6).sum() == pytest.approx(expected["LJ-14"], rel=5e-3)
    product = actual.charges14 * structure.charges[i] * structure.charges[j]
    assert COULOMB * (product / r).sum() == pytest.approx(expected["Coulomb-14"], rel=2e-3)
    assert (actual.source, actual.rule, set(actual.charges14)) == ("tpr", "geometric", {0.5})  # OPLS-AA
    assert actual.sigma[list(actual.names).index("opls_140")] == pytest.approx(2.5, rel=1e-6)
    assert actual.epsilon[list(actual.names).index("opls_140")] == pytest.approx(0.03, rel=1e-5)
    water = np.flatnonzero(structure.residue_names == "SOL")[:3]
    assert_allclose(actual.sigma[actual.types[water]], [3.16557, 0, 0], 1e-5)  # SPC/E
    assert_allclose(actual.epsilon[actual.types[water]], [0.1554, 0, 0], 1e-5)
    assert actual.take(water).exclusions.tolist() == [[0, 1], [0, 2], [1, 2]]
    part = structure.take(water)  # the topology's own way
    assert nonbonded(part).exclusions.tolist() == [[0, 1], [0, 2], [1, 2]]


@pytest.mark.slow
def test_tprs_of_all_versions_say_the_same():
    versions = ("4.0", "2020_double", "2026_0")
    results = [nonbonded(read_topology(TPRS / f"2lyz_gmx_{version}.tpr")) for version in versions]
    for other in results[1:]:
        assert_array_equal(other.exclusions, results[0].exclusions)
        assert_array_equal(other.pairs14, results[0].pairs14)
        assert_allclose(other.c12_14, results[0].c12_14, 1e-6)
        used = [np.ix_(nb.types[::7], nb.types[::7]) for nb in (other, results[0])]
        assert_allclose(other.c6[used[0]], results[0].c6[used[1]], 1e-6)


@pytest.mark.slow
def test_tpr_with_special_pairs_and_what_is_refused():
    result = nonbonded(read_topology(TPRS / "drew_gmx_4.5.5.double.tpr"))
    assert (result.rule, set(result.charges14)) == ("table", {1.0})  # CHARMM36 with NBFIX of cholesterol
    assert not len(nonbonded(read_topology(MDA / "281_small.tpr")).exclusions)  # of atoms that were taken out
    with naming(InputError, "Buckingham"):
        nonbonded(read_topology(TPRS / "virtual_sites" / "extra-interactions-2020.tpr"))


def test_counts_of_a_damaged_tpr_take_no_memory():
    for ends in ([0, 2**40], [0, 2, 1]):
        with naming(ValueError, "exclusions"):
            tpr_nonbonded._excluded(ends, [0], 1)
    assert tpr_nonbonded._excluded([0, 2, 3], [0, 1, 7], 2).tolist() == [[0, 0], [0, 1]]


def test_tpr_with_1_4_pairs_that_are_not_excluded():
    """GROMACS sums such a pair twice, once as any other."""
    whole = read_topology(TPRS / "2lyz_gmx_2026_0.tpr")
    kept, names, starts, labels, path = (lambda make: (make.func.__self__, *make.args))(whole.topology.nonbonded.make)
    before = kept.nonbonded(names, starts, labels, path)
    for kind in kept.molecules.values():
        kind.exclusions = kind.exclusions[:0]
    after = kept.nonbonded(names, starts, labels, path)
    check_plain(after)
    i, j = before.pairs14.T
    assert_allclose(after.c6_14, before.c6_14 + before.c6[before.types[i], before.types[j]])
    assert set(after.charges14) == {1.5}
    kept.general = kept.general._replace(reppow=9.0)
    with naming(InputError, "exponent 9"):
        kept.nonbonded(names, starts, labels, path)
    kept.general = kept.general._replace(reppow=12.0)
    next(iter(kept.molecules.values())).others = ("LJC14_Q",)
    with naming(InputError, "LJC14_Q"):
        kept.nonbonded(names, starts, labels, path)


# ---- parts ---------------------------------------------------------------------------------------------


def test_a_part_has_the_energy_of_its_atoms():
    path = AMBER / "chitosan.prmtop"
    structure = read_topology(path)
    whole, positions = nonbonded(structure), places(len(structure))
    mask = np.random.default_rng(1).random(len(structure)) < 0.7
    part = whole.take(mask)
    check_plain(part)
    assert_array_equal(part.exclusions, whole.take(np.flatnonzero(mask)).exclusions)
    # what is left out has no Lennard-Jones and no charge
    none = len(whole.names)
    types = np.where(mask, whole.types, none)
    keep = mask[whole.pairs14].all(1)
    ghost = replace(whole, types=types, c6=np.pad(whole.c6, (0, 1)), c12=np.pad(whole.c12, (0, 1)),
                    c6_14=np.where(keep, whole.c6_14, 0), c12_14=np.where(keep, whole.c12_14, 0))
    assert_allclose(energy(part, positions[mask], structure.charges[mask]),
                    energy(ghost, positions, structure.charges * mask), 1e-10)
    twice = nonbonded(structure.take(mask).take(np.arange(20)))
    assert_array_equal(twice.exclusions, whole.take(np.flatnonzero(mask)[:20]).exclusions)


def test_a_prmtop_is_read_for_it_only_when_it_is_asked_for(monkeypatch):
    registry.available("parameter_reader")  # loads the plugins
    monkeypatch.setitem(registry._entries["parameter_reader"], "prmtop", "vmdpotential.plugins.forcefields.none:read")
    structure = read_topology(AMBER / "ache.prmtop")
    assert isinstance(structure.take(np.arange(9)).topology.nonbonded, LazyNonbonded)
    with naming(BackendError, "of the plugin forcefields ", "ModuleNotFoundError"):
        nonbonded(structure)


def test_long_lists_are_cut():
    assert listed_words(["a", "b\n"], 20) == "a, b\\n"
    assert listed_words(map(str, range(100)), 12) == "0, 1, 2, 3 and 96 more"
    assert listed_words(["x" * 50], 10) == "xxxx...xxx"
