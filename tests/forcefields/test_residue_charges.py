"""Charges of a ligand from a file of its own, next to templates for the rest."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from helpers import refused
from messages import naming
from numpy.testing import assert_allclose, assert_array_equal
from openmm import app
from structure_files import MDA, TOOLS

from vmdpotential.errors import ChargeError, InputError
from vmdpotential.frontend.cli import main
from vmdpotential.io import read_structure
from vmdpotential.molecule.charges import charges_and_report
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.templates import template_library
from vmdpotential.molecule.user_charges import ResidueCharges
from vmdpotential.plugins.forcefields.residue_charges import read_residue_charges

LYSOZYME = TOOLS / "T4-lysozyme-L99A-implicit"  # with p-xylene, TMP

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:MDAnalysis", "ignore::DeprecationWarning:MDAnalysis")


@pytest.fixture(scope="module")
def lysozyme() -> Structure:
    return read_structure(LYSOZYME / "complex.pdb")


@pytest.fixture(scope="module")
def xylene() -> ResidueCharges:
    (result,) = read_residue_charges(LYSOZYME / "ligand.mol2")
    return result


def files(charges: dict[str, float], folder: Path) -> list[Path]:
    """Return the same charges in the other formats; some are those of types, and macros."""
    first, *others = charges.items()
    types = {atom: f"t{n}" for n, atom in enumerate(charges)}
    itp = f"""#define FIRST {first[1]}
[ atomtypes ]
{types[others[0][0]]} 6 12.0 {others[0][1]} A 0.34 0.45
[ moleculetype ]
xylene 3
[ atoms ]
1 {types[first[0]]} 1 TMP {first[0]} 1 FIRST 12.0
2 {types[others[0][0]]} 1 TMP {others[0][0]} 2
"""
    itp += "".join(f"{n} x 1 TMP {atom} {n} {charge}\n" for n, (atom, charge) in enumerate(others[1:], 3))
    residue = "".join(f'<Atom name="{atom}" type="{types[atom]}"/>' for atom in charges)
    forces = "".join(f'<Atom {"class" if n % 2 else "type"}="{"c" * (n % 2)}{types[atom]}" charge="{charge}"/>'
                     for n, (atom, charge) in enumerate(charges.items()))
    classes = "".join(f'<Type name="{kind}" class="c{kind}"/>' for kind in types.values())
    content = {
        "ligand.itp": itp,
        "ligand.xml": f"<ForceField><AtomTypes>{classes}</AtomTypes><Residues><Residue name='TMP'>{residue}</Residue>"
                      f"</Residues><NonbondedForce>{forces}</NonbondedForce></ForceField>",
        "ligand.csv": "residue,atom,charge\n" + "".join(f"tmp,{a},{q}\n" for a, q in charges.items()),
        "ligand.txt": "# blanks\n" + "".join(f"TMP {a.lower()} {q}\n" for a, q in charges.items()),
    }
    for name, text in content.items():
        (folder / name).write_text(text)
    return [folder / name for name in content]


def test_a_ligand_of_any_format_beside_templates_is_as_tleap_made_it(
        lysozyme: Structure, xylene: ResidueCharges, tmp_path: Path) -> None:
    expected = read_structure(LYSOZYME / "complex.crd", LYSOZYME / "complex.prmtop").charges
    for path in [LYSOZYME / "ligand.mol2", *files(xylene.charges, tmp_path)]:
        structure, report = charges_and_report(lysozyme, "amber14", residues=read_residue_charges(path))
        assert_allclose(structure.charges, expected, atol=2e-6, err_msg=str(path))
        name = "tmp" if path.suffix == ".csv" else "TMP"
        assert str(report) == (f"charges from amber14 templates (162 residues, 21 kinds), {name} from {path.name} "
                               "(1 residue, net charge +0.0002 e); net charge +8 e")
        assert report.data["charges_given"] == [f"{name} from {path.name} (1 residue, net charge +0.0002 e)"]
    with naming(ChargeError, "charges"):
        charges_and_report(lysozyme, "amber14")


def test_files_of_others() -> None:
    universe = MDAnalysis.Universe(str(MDA / "gromacs_ala10.itp"))
    for residue in read_residue_charges(MDA / "gromacs_ala10.itp"):
        own = next(other.atoms for other in universe.residues if set(other.atoms.names) == set(residue.charges))
        assert_allclose([residue.charges[name] for name in own.names], own.charges, atol=1e-6)
    force_field = {residue.residue: residue.charges for residue in
                   read_residue_charges(Path(app.__file__).parent / "data" / "amber14" / "protein.ff14SB.xml")}
    ours = next(template for template in template_library("amber14").templates("TRP"))
    assert force_field["TRP"] == ours.charges
    universe = MDAnalysis.Universe(str(MDA / "mol2" / "Molecule.mol2"))
    (residue,) = read_residue_charges(MDA / "mol2" / "Molecule.mol2")
    assert residue.short == "Q10"  # the number of the residue may be at the end
    assert_allclose(list(residue.charges.values()), universe.atoms.charges, atol=1e-6)


def test_residues_must_have_just_the_atoms_that_are_given(
        lysozyme: Structure, xylene: ResidueCharges, caplog: pytest.LogCaptureFixture) -> None:
    renamed = {{"H10": "HX", "C1": "CX"}.get(name, name): charge for name, charge in xylene.charges.items()}
    nothing = ResidueCharges("NIL", {"X": 1.0}, "nil.csv")
    for given, said in (
        ([replace(xylene, charges=renamed)], r"residue TMP has other atoms than in ligand.mol2, which has no charge "
                                             r"for C1, H10 and has charges for CX, HX, which the residue lacks"),
        ([nothing], r"nil.csv: contains the residues NIL, and \S+ has none of them"),
        ([xylene, replace(xylene, charges=dict.fromkeys(xylene.charges, 0.0), source="zero.csv")],
         r"zero.csv and ligand.mol2 give different charges for the same atoms of TMP"),
    ):
        with pytest.raises(ChargeError, match=said):
            charges_and_report(lysozyme, "amber14", residues=given if given == [nothing] else [*given, nothing])
    # forms of other atoms, and a name that MOL2 joined with its number, are no fault; what is not there is reported
    renamed = replace(xylene, residue="TMP1", short="TMP")
    structure, report = charges_and_report(
        lysozyme, "amber14", residues=[renamed, replace(renamed, charges={"C1": 1.0}), nothing])
    assert report.given[0].startswith("TMP1 from ligand.mol2 (1 residue")
    assert "has no residues NIL, for which charges were given" in caplog.text
    with refused("charges"):
        charges_and_report(structure, residues=[xylene])


def test_damaged_files_of_charges(tmp_path: Path) -> None:
    for name, text, said in (
        ("a.csv", "residue,atom,charge\nLIG,C1\n", "line 2: a residue, an atom and its charge"),
        ("a.csv", "LIG,C1,0.1\nLIG,C1,0.1\n", "line 2: residue LIG has two atoms named C1"),
        ("a.csv", "LIG,C1,x\n", "line 1: 'x' is not a charge"), ("a.csv", "LIG,C1,nan\n", "charge of LIG C1"),
        ("a.csv", "# nothing\n", "has no charges"),
        ("a.mol2", "@<TRIPOS>MOLECULE\nx\n 1 0\nSMALL\nNO_CHARGES\n", "has no charges"),
        ("a.mol2", "@<TRIPOS>MOLECULE\nx\n 1 0\nSMALL\nNO_CHARGES\n@<TRIPOS>ATOM\n1 C1 0 0 0 C.3 1 LIG\n",
         "no hydrogens"),
        ("a.sdf", "LIG\n\n\n  2  1  0  0  0  0            999 V2000\n", "incomplete"),
        ("a.sdf", "LIG\n\n\n  0  0  0     0  0            999 V3000\n", "incomplete"),
        ("a.mol2", "@<TRIPOS>ATOM\n1 C1 0 0 0 C.3\n", "line 2: an atom without a residue and a charge"),
        ("a.itp", "[ moleculetype ]\nx 3\n[ atoms ]\n1 t 1 LIG C1 1\n", "type x: neither the atom C1 nor its type t"),
        ("a.xml", "<System/>", "begins with <System>"), ("a.xml", "<ForceField>", "is not XML"),
        ("a.xml", "<ForceField><Residues><Residue name='L'><Atom name='C' type='t'/></Residue></Residues></ForceField>",
         "the atom C has no charge"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=said) as caught:
            read_residue_charges(tmp_path / name)
        assert name in str(caught.value)


def test_what_is_not_selected_needs_no_charges_and_is_named(
        lysozyme: Structure, tmp_path: Path, capsys: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    path, out = str(LYSOZYME / "complex.pdb"), tmp_path / "map.npz"
    words = ["map", path, "--force-field", "amber14", "--method", "direct", "--spacing", "6", "--json", "--force",
             "-o", str(out), "--atoms"]
    assert main([*words, "protein"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["without_charges"] == {"TMP": 1}
    assert "left out: 1 residue without charges (TMP 1)" in report["report"][0]
    assert main([*words, "all"]) == 3
    assert "TMP (1)" in capsys.readouterr().err
    assert main([*words, "resname TMP or around 4 resname TMP", "--prepare", "never"]) == 2
    assert "TMP C1 (1)" in capsys.readouterr().err
    assert main([*words, "solute", "--charges", str(LYSOZYME / "ligand.mol2")]) == 0
    assert json.loads(capsys.readouterr().out)["charges_given"]
    mask = np.zeros(len(lysozyme), bool)
    mask[:100] = True
    part, _ = charges_and_report(lysozyme, "amber14", needed=mask)
    assert_array_equal(part.charges == 0, lysozyme.residue_names == "TMP")


def test_molecules_without_charges_have_rdkits_gasteiger_charges(tmp_path: Path) -> None:
    from rdkit import Chem
    from rdkit.Chem import AllChem

    for smiles, net in (("CC(=O)[O-]", -1), ("C[NH3+]", 1), ("c1ccccc1C(N)=O", 0), ("O=[N+]([O-])c1ccncc1", 0),
                        ("CS(=O)(=O)Nc1ccccc1", 0), ("COP(=O)([O-])OC", -1), ("NC(=[NH2+])NC", 1), ("c1c[nH]cn1", 0)):
        molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
        AllChem.EmbedMolecule(molecule, randomSeed=1)
        AllChem.ComputeGasteigerCharges(molecule, 12)
        expected = [atom.GetDoubleProp("_GasteigerCharge") for atom in molecule.GetAtoms()]
        Chem.Kekulize(molecule, clearAromaticFlags=True)
        molecule.SetProp("_Name", "LIG")
        (tmp_path / "lig.sdf").write_text(Chem.MolToMolBlock(molecule) + "$$$$\n")
        (made,) = read_residue_charges(tmp_path / "lig.sdf")
        assert made.residue == "LIG"
        assert "Gasteiger" in made.source
        assert_allclose(list(made.charges.values()), expected, atol=1e-3, err_msg=smiles)
        orders = {1.0: "1", 2.0: "2", 3.0: "3", 1.5: "ar"}
        atoms = [f"{n} {atom.GetSymbol()}{n} 0 0 0 {atom.GetSymbol()} 1 LIG" for n, atom in
                 enumerate(molecule.GetAtoms(), 1)]
        bonds = [f"{n} {bond.GetBeginAtomIdx() + 1} {bond.GetEndAtomIdx() + 1} {orders[bond.GetBondTypeAsDouble()]}"
                 for n, bond in enumerate(molecule.GetBonds(), 1)]
        (tmp_path / "lig.mol2").write_text("\n".join([
            "@<TRIPOS>MOLECULE", "LIG", f"{len(atoms)} {len(bonds)}", "SMALL", "NO_CHARGES", "",
            "@<TRIPOS>ATOM", *atoms, "@<TRIPOS>BOND", *bonds, ""]))
        (made,) = read_residue_charges(tmp_path / "lig.mol2")
        assert_allclose(list(made.charges.values()), expected, atol=1e-3, err_msg=smiles)
        assert round(sum(made.charges.values()), 6) == net
