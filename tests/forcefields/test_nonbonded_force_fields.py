"""Van der Waals parameters of CHARMM's and OpenMM's files: energies against OpenMM, rules, and errors."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import openmm
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from openmm import app
from openmm_pairs import check_energy, check_plain, places
from structure_files import AMBER, MDA, OPENMM, TOOLS

from vmdpotential import cache
from vmdpotential.errors import BackendError, InputError, VmdpotentialError
from vmdpotential.extras import install_command
from vmdpotential.io import read_structure, read_topology
from vmdpotential.molecule.nonbonded import LazyNonbonded, Nonbonded, lorentz_berthelot, pairs_by_bonds
from vmdpotential.molecule.structure import Structure, Topology
from vmdpotential.plugins.forcefields import charmm, forcefield
from vmdpotential.plugins.forcefields.forcefield import nonbonded

# ---- CHARMM --------------------------------------------------------------------------------------------


PSF = MDA / "namd_cgenff.psf"


@pytest.fixture(scope="module")
def system_of_charmm():
    return read_structure(MDA / "namd_cgenff.pdb", PSF)


def parameters(names, numbers=False, special=True, e14fac="1.0"):
    """Return a parameter file for these types, its Lennard-Jones made up: every third with its own 1-4 pairs."""
    rng = np.random.default_rng(5)
    lines = ["* made up, by \xc5ngstr\xf6m", "*", "ATOMS"]
    lines += [f"MASS {k + 1 if numbers else -1:5d} {name} 12.011" for k, name in enumerate(names)]
    lines += ["", "NONBONDED nbxmod 5 atom cdiel shift vatom vdistance vswitch -",
              f"cutnb 14.0 ctofnb 12.0 ctonnb 10.0 eps 1.0 e14fac {e14fac} wmin 1.5 ! e14fac 7"]
    for k, name in enumerate(names):
        own = f"0.0 {-rng.uniform(0.01, 0.1):.4f} {rng.uniform(1.2, 1.8):.4f}" if k % 3 == 0 else ""
        lines.append(f"{name} 0.0 {-rng.uniform(0.02, 0.2):.4f} {rng.uniform(1.0, 2.0):.4f} {own} ! a comment")
    if special:
        lines += ["", "NBFIX", f"{names[0]} {names[1]} -0.3 3.1", f"{names[2]} {names[5]} -0.2 3.3 -0.05 3.0"]
    return "\n".join([*lines, "", "END", ""])


def bonded(psf):
    """Return terms of no strength for all that is bonded, without which OpenMM makes no system."""
    lines = []
    for title, rows, rest in (("BONDS", psf.bond_list, "0 1"), ("ANGLES", psf.angle_list, "0 100"),
                               ("DIHEDRALS", psf.dihedral_list, "0 1 0"), ("IMPROPER", psf.improper_list, "0 0 0")):
        names = [[getattr(term, f"atom{k}").attype for k in range(1, 5) if hasattr(term, f"atom{k}")] for term in rows]
        lines += [title, *sorted({" ".join([*term, rest]) for term in names}), ""]
    return "\n".join(lines)


@pytest.mark.parametrize(("special", "e14fac"), [(True, "1.0"), (False, "0.4")])
def test_psf_with_charmm_parameters_has_the_energy_of_openmm(system_of_charmm, special, e14fac, tmp_path):
    structure = system_of_charmm
    path = tmp_path / "par_made_up.prm"
    psf = app.CharmmPsfFile(str(PSF))
    text = parameters(np.unique(structure.topology.types).tolist(), special=special, e14fac=e14fac)
    head, mark, rest = text.partition("NONBONDED")
    path.write_text(head + bonded(psf) + mark + rest, encoding="latin-1")
    result = nonbonded(structure, [path])
    check_plain(result)
    assert result.source == "CHARMM par_made_up.prm"
    assert result.rule == ("table" if special else "lorentz-berthelot")
    assert set(result.charges14) == {float(e14fac)}
    plain = tmp_path / "plain.prm"
    plain.write_text(path.read_text(encoding="latin-1").encode("ascii", "replace").decode())
    system = psf.createSystem(app.CharmmParameterSet(str(plain)))
    check_energy(result, system, places(len(structure)), structure.charges)


def test_charmm_files_in_any_order_and_kind(system_of_charmm, tmp_path):
    """NBFIX before the types it names, types without MASS, numbered types, a stream, and a file that says more."""
    structure = system_of_charmm
    names = np.unique(structure.topology.types).tolist()
    whole = parameters(names, numbers=True)
    head, mark, special = whole.partition("NBFIX")
    masses = "\n".join(line for line in whole.split("\n") if line.startswith("MASS"))
    files = {"all.prm": whole, "a.prm": mark + special, "b.prm": head,
             "nomass.prm": "NONBONDED" + whole.partition("NONBONDED")[2],
             "s.str": "* t\n*\n\nread para card flex append\n* t\n*\nATOMS" + whole.partition("ATOMS")[2],
             "types.rtf": f"* t\n*\n36 1\n{masses}\nEND\n",
             "more.prm": "* t\n*\nNONBONDED\nXX 0.0 -0.1 1.0\n\nEND\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="latin-1")
    expected = nonbonded(structure, [tmp_path / "all.prm"])
    numbers = np.array([str(names.index(name) + 1) for name in structure.topology.types])
    numbered = replace(structure, topology=replace(structure.topology, types=numbers))
    for atoms, given in ((structure, ["a.prm", "b.prm"]), (structure, ["b.prm", "a.prm"]), (structure, ["nomass.prm"]),
                         (structure, ["s.str"]), (structure, ["more.prm", "types.rtf", "nomass.prm"]),
                         (numbered, ["types.rtf", "nomass.prm"]), (numbered, ["all.prm"])):
        actual = nonbonded(atoms, [tmp_path / name for name in given])
        for name in ("c6_14", "c12_14", "charges14", "exclusions", "pairs14"):
            assert_array_equal(getattr(actual, name), getattr(expected, name), str(given))
        assert_array_equal(*(nb.c12[nb.types[:, None], nb.types] for nb in (actual, expected)))


def test_psf_beside_a_structure_without_topology(tmp_path):
    path = tmp_path / "x.prm"
    structure = read_structure(MDA / "namd_cgenff.pdb")
    path.write_text(parameters(np.unique(read_topology(PSF).topology.types).tolist()), encoding="latin-1")
    assert len(nonbonded(structure, [path, PSF])) == len(structure)


def test_pairs_by_bonds_are_those_of_a_search():
    rng = np.random.default_rng(3)
    for count in (1, 2, 30, 60):
        bonds = np.concatenate([rng.integers(0, count, (count, 2)), [[0, 0]]])  # rings of any size, doubles, loops
        near = [set() for _ in range(count)]
        for i, j in bonds.tolist():
            near[i].add(j)
            near[j].add(i)
        distance = np.full((count, count), 9)
        for start in range(count):
            front = {start}
            for step in range(4):
                for atom in front:
                    distance[start, atom] = min(distance[start, atom], step)
                front = {other for atom in front for other in near[atom]}
        exclusions, pairs14 = pairs_by_bonds(bonds, count)
        assert_array_equal(exclusions, np.argwhere(np.triu((distance <= 3) & (distance > 0), 1)))
        assert_array_equal(pairs14, np.argwhere(np.triu(distance == 3, 1)))
    assert pairs_by_bonds(np.zeros((0, 2), np.int64), 3)[0].shape == (0, 2)


def test_lone_pairs_and_listed_exclusions():
    """A chain of five atoms; 5 sits on atom 0 without a bond, 6 on atom 3."""
    topology = Topology("psf", np.array(["A"] * 7), np.ones(7), np.array([[0, 1], [1, 2], [2, 3], [3, 4]]),
                        extra={"terms": {"lone_pairs": np.array([[5, 0, 1, -1], [6, 3, 2, 1]]),
                                         "exclusions": np.array([[3, 0]])}})
    exclusions, pairs14 = charmm._pairs(topology)
    assert pairs14.tolist() == [[0, 6], [1, 4], [3, 5], [5, 6]]
    apart = {(i, j) for i in range(7) for j in range(i + 1, 7)} - set(map(tuple, exclusions.tolist()))
    assert apart == {(0, 4), (4, 5)}


# ---- OpenMM --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pdb_with_amber_of_openmm_has_its_energy():
    whole = read_structure(OPENMM / "test.pdb")
    structure = whole.take(whole.residue_index < whole.residue_index[300])
    files = ("amber14/protein.ff14SB.xml",)
    with pytest.raises(InputError, match=r"[A-Z]{3} .1.; "):
        nonbonded(structure, [Path(files[0])])  # its chain was cut
    structure = whole.take(np.arange(len(whole)) < 582)
    result = nonbonded(structure, [Path(name) for name in files])
    check_plain(result)
    assert result.source == "OpenMM amber14/protein.ff14SB.xml"
    assert result.rule == "lorentz-berthelot"
    assert_allclose(result.charges14, 1 / 1.2, 1e-6)
    topology = app.PDBFile(str(OPENMM / "test.pdb"))
    model = app.Modeller(topology.topology, topology.positions)
    model.delete([atom for atom in topology.topology.atoms() if atom.index >= 582])
    system = app.ForceField(*files).createSystem(model.topology)
    charges = [force.getParticleParameters(k)[0]._value for force in system.getForces()
               if isinstance(force, openmm.NonbondedForce) for k in range(582)]
    check_energy(result, system, places(582), np.array(charges))


XML = """<ForceField>
 <AtomTypes><Type name="o" class="O" element="O" mass="16"/><Type name="h" class="H" element="H" mass="1"/>
  <Type name="na" class="NA" element="Na" mass="23"/><Type name="c" class="C" element="C" mass="12"/></AtomTypes>
 <Residues>
  <Residue name="HOH"><Atom name="O" type="o" charge="-0.8"/><Atom name="H1" type="h" charge="0.4"/>
   <Atom name="H2" type="h" charge="0.4"/><Bond from="0" to="1"/><Bond from="0" to="2"/></Residue>
  <Residue name="NA"><Atom name="NA" type="na" charge="1"/></Residue>
  <Residue name="BUT"><Atom name="C1" type="c" charge="0.1"/><Atom name="C2" type="c" charge="0"/>
   <Atom name="C3" type="c" charge="0"/>   <Atom name="C4" type="c" charge="-0.1"/><Atom name="O5" type="o" charge="0"/>
   <Bond from="0" to="1"/><Bond from="1" to="2"/><Bond from="2" to="3"/><Bond from="3" to="4"/></Residue>
 </Residues>
 <NonbondedForce coulomb14scale="0.7" lj14scale="1"><UseAttributeFromResidue name="charge"/>
  <Atom type="o" sigma="1" epsilon="0"/><Atom type="h" sigma="1" epsilon="0"/>
  <Atom type="na" sigma="1" epsilon="0"/><Atom type="c" sigma="1" epsilon="0"/></NonbondedForce>
 <LennardJonesForce lj14scale="0.9">
  <Atom type="o" sigma="0.32" epsilon="0.6"/><Atom type="h" sigma="0.04" epsilon="0.2"/>
  <Atom type="na" sigma="0.25" epsilon="0.2"/>
  <Atom type="c" sigma="0.36" epsilon="0.3" sigma14="0.34" epsilon14="0.04"/>
  <NBFixPair type1="o" type2="na" sigma="0.30" epsilon="0.1"/></LennardJonesForce>
</ForceField>"""


def small(count=4):
    """Return `count` waters, an ion and a chain of five, with bonds, those between a water's hydrogens too."""
    names = ["O", "H1", "H2"] * count + ["NA", "C1", "C2", "C3", "C4", "O5"]
    residues = np.array([*np.repeat(np.arange(count), 3), count, *[count + 1] * 5])
    labels = np.array(["HOH"] * count + ["NA", "BUT"])[residues]
    bonds = [[3 * k + i, 3 * k + j] for k in range(count) for i, j in ((0, 1), (0, 2), (1, 2))]
    bonds += [[3 * count + k, 3 * count + k + 1] for k in range(1, 5)]
    charges = np.array([-0.8, 0.4, 0.4] * count + [1, 0.1, 0, 0, -0.1, 0])
    topology = Topology("psf", np.full(len(names), "X"), np.ones(len(names)), np.array(bonds))
    symbols = np.array(["Na" if name == "NA" else name[0] for name in names])
    return Structure(places(len(names)), np.array(names), labels, residues, residues, charges=charges,
                     topology=topology, elements=symbols, sources=("small.psf",))


def test_special_pairs_of_openmm(tmp_path):
    (tmp_path / "own.xml").write_text(XML)
    structure = small()
    result = nonbonded(structure, [tmp_path / "own.xml"])
    check_plain(result)
    assert (result.source, result.rule, len(result.names)) == ("OpenMM own.xml", "table", 4)
    assert_allclose(result.charges14, 0.7)  # also of the pair of which one has no charge
    assert result.pairs14.tolist() == [[13, 16], [14, 17]]
    topology = forcefield.openmm._topology(structure)
    system = app.ForceField(str(tmp_path / "own.xml")).createSystem(topology)
    check_energy(result, system, structure.positions, structure.charges)
    waters = replace(structure, topology=None).take(np.arange(12))  # bonds by the names of standard residues
    assert_array_equal(nonbonded(waters, [tmp_path / "own.xml"]).exclusions, result.take(np.arange(12)).exclusions)


def test_a_chain_ends_where_the_next_residue_is_far():
    positions = np.array([[0, 0, 0], [1.3, 0, 0], [2.8, 0, 0], [9, 0, 0.0], [10, 0, 0]])
    structure = Structure(positions, ["C", "N", "C", "N", "X"], ["ALA"] * 5, [1, 2, 2, 3, 4], [0, 1, 1, 2, 3])
    assert forcefield.openmm._chain_ends(structure).tolist() == [False, False, True, False]


def added(text):
    return lambda root: root.append(ET.fromstring(text))


SCALED = "".join(f'<Atom type="{name}" charge="1" radius="1" scale="1"/>' for name in ("o", "h", "na", "c"))


@pytest.mark.parametrize(("change", "message"), [
    (added(f"<GBSAOBCForce>{SCALED}</GBSAOBCForce>"), "defines a GBSAOBCForce"),
    (added(f'<CustomNonbondedForce energy="1/r" bondCutoff="3">{SCALED}</CustomNonbondedForce>'),
     "defines a CustomNonbondedForce"),
    (added('<CustomBondForce energy="k*r"><PerBondParameter name="k"/><Bond class1="C" class2="C" k="1"/>'
           "</CustomBondForce>"), "defines a CustomBondForce"),
    (lambda root: root.remove(root.find("NonbondedForce")), "has no charges and Lennard-Jones"),
    (lambda root: root.find("Residues").remove(root.find("Residues")[2]), "no template matches the residues BUT (1)"),
    (lambda root: root.find("LennardJonesForce").remove(root.find("LennardJonesForce")[0]), "for the type o"),
])
def test_force_fields_that_do_not_do_are_one_line(change, message, tmp_path):
    root = ET.fromstring(XML)
    change(root)
    ET.ElementTree(root).write(tmp_path / "own.xml")
    with pytest.raises(VmdpotentialError) as error:
        nonbonded(small(), [tmp_path / "own.xml"])
    assert message in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "own.xml"))
    assert len(str(error.value)) <= 300
    assert "\n" not in str(error.value)


# ---- rules and errors ----------------------------------------------------------------------------------


def plain(c6, c12, types=(0, 1, 2)):
    none = np.zeros(0)
    pairs = np.zeros((0, 2), np.int64)
    return Nonbonded("test", ("a", "b", "c"), np.array(types), c6, c12, pairs, pairs, none, none, none)


def test_rules():
    sigma, epsilon = np.array([3.1, 0.0, 2.4]), np.array([0.2, 0.0, 0.05])
    mixed = lorentz_berthelot(sigma, epsilon)
    result = plain(*mixed)
    assert result.rule == "lorentz-berthelot"
    assert_allclose(result.sigma, sigma)
    assert_allclose(result.epsilon, epsilon)
    products = [np.sqrt(np.outer(np.diagonal(table), np.diagonal(table))) for table in mixed]
    assert plain(*products).rule == "geometric"
    for change, rule in ((1 + 5e-7, "lorentz-berthelot"), (1 + 5e-6, "table")):
        c6 = mixed[0].copy()
        c6[0, 2] = c6[2, 0] = c6[0, 2] * change
        assert plain(c6, mixed[1]).rule == rule
        assert plain(c6, mixed[1], (0, 1, 1)).rule == "geometric"  # the pair is of a type that no atom has
    c12 = mixed[1].copy()
    c12[0, 1] = c12[1, 0] = 1.0  # a type that acts on some others only
    assert plain(mixed[0], c12).rule == "table"
    assert plain(mixed[0] * 0, mixed[1]).rule == "table"  # repulsion only, mixed as it is not
    assert plain(-mixed[0], mixed[1]).rule == "table"
    assert plain(*np.zeros((2, 3, 3))).rule == "geometric"


@pytest.mark.parametrize(("package", "name"), [("parmed", "x.prm"), ("openmm", "x.xml")])
def test_a_missing_package_is_named(package, name, system_of_charmm, tmp_path, monkeypatch):
    (tmp_path / name).write_text("* t\n")
    monkeypatch.setitem(sys.modules, package, None)
    hint = re.escape(install_command("forcefields"))
    with pytest.raises(BackendError, match=rf"x\.\w+: .*package {package} .*{hint}"):
        nonbonded(system_of_charmm, [tmp_path / name])


def test_errors_are_one_line(system_of_charmm, tmp_path):
    psf, bare = system_of_charmm, replace(small(), topology=None)
    drude = replace(psf, topology=replace(psf.topology, flags=("DRUDE",)))
    three = LazyNonbonded(lambda: plain(*np.zeros((2, 3, 3))))
    grown = replace(small(), topology=replace(small().topology, nonbonded=three))
    names = np.unique(psf.topology.types).tolist()
    files = {
        "some.prm": parameters(names[:8], special=False), "empty.prm": "",
        "bad.prm": "NONBONDED\nC 0.0 -0.1 1.0\nCA 0.0 many 1.0\n", "zero.prm": parameters(names, e14fac="0"),
        "one.prm": parameters(names), "less.prm": parameters(names, e14fac="0.4"), "bad.xml": "<ForceField><Residues>",
        "huge.prm": parameters(names).replace(" 0.0 -0.", " 0.0 -1e9"),
        "nul.str": "a\0b",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="latin-1")
    cases = [
        (bare, [], "small.psf: has no Lennard-Jones parameters; give a prmtop or TPR as topology, or CHARMM"),
        (psf, [], "namd_cgenff.psf: a PSF has no Lennard-Jones parameters; give CHARMM's files"),
        (grown, [], "small.psf: has parameters for 3 atoms, but there are 18"),
        (bare, ["one.prm"], "small.psf: has no atom types"),
        (drude, ["one.prm"], "uses a Drude model"),
        (psf, ["some.prm"], f"some.prm: no Lennard-Jones for the types {', '.join(names[8:])}; give"),
        (psf, ["one.prm", "less.prm"], "scale charges of 1-4 pairs differently (e14fac 1, 0.4)"),
        (psf, ["zero.prm"], "zero.prm: cannot be read (ZeroDivisionError"), (psf, ["bad.prm"], "bad.prm"),
        (psf, ["huge.prm"], "huge.prm: contains Lennard-Jones parameters that are not numbers"),
        (psf, ["nul.str"], "nul.str: line 1: contains a NUL byte"),
        (psf, ["no.prm"], "no.prm: there is no such file"), (psf, ["no.xml"], "none of that name comes with OpenMM"),
        (bare, ["bad.xml"], "bad.xml: is not a force field of OpenMM (no element found"),
        (psf, ["empty.prm", "bad.xml"], "are for different programs"),
        (psf, [PSF, AMBER / "ache.prmtop"], "are two topologies; give one"),
        (psf, [AMBER / "ache.prmtop"], "252"),
    ]
    for structure, given, message in cases:
        with pytest.raises(InputError) as error:
            nonbonded(structure, [tmp_path / name for name in given])
        text = str(error.value)
        assert message in text, text
        assert len(text.replace(str(tmp_path), "").replace(str(MDA), "")) <= 300, text
        assert "\n" not in text


def test_parameters_are_found_once(tmp_path, monkeypatch):
    """The same atoms take them from the cache, and others do not."""
    monkeypatch.setenv("VMDPOTENTIAL_CACHE", str(tmp_path))
    cache.forget()
    folder = TOOLS / "alanine-dipeptide-gbsa"
    structure = read_structure(folder / "alanine-dipeptide.pdb", folder / "alanine-dipeptide.prmtop")
    files = ["amber14-all.xml"]
    found = nonbonded(structure, files)
    monkeypatch.setattr(app.ForceField, "createSystem", None)
    again = nonbonded(structure, files)
    for name in ("types", "c6", "c12", "exclusions", "pairs14", "c6_14", "c12_14", "charges14"):
        assert_array_equal(getattr(again, name), getattr(found, name))
    with pytest.raises(InputError):
        nonbonded(structure.take(np.arange(6)), files)
    cache.forget()
