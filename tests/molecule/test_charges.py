"""Template charges against OpenMM's own assignment and against the topologies of real systems."""

from __future__ import annotations

import dataclasses
import gzip
import io
import runpy
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import MDAnalysis
import numpy as np
import openmm
import pytest
from helpers import refused, slow
from messages import naming
from numpy.typing import NDArray
from openmm import app, unit
from structure_files import MDA, OPENMM, TOOLS, of_universe, universe

from vmdpotential.errors import ChargeError, InputError
from vmdpotential.molecule import templates
from vmdpotential.molecule.charges import assign_charges, charges_and_report
from vmdpotential.molecule.names import ION_RESIDUES
from vmdpotential.molecule.structure import Structure

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:MDAnalysis", "ignore::PendingDeprecationWarning")

AMINO_ACIDS = (
    "ALA", "ARG", "ASN", "ASP", "CYS", "GLN", "GLU", "GLY", "HSD", "HSE", "HSP",
    "ILE", "LEU", "LYS", "MET", "PHE", "PRO", "SER", "THR", "TRP", "TYR", "VAL",
)  # fmt: skip


def load(path: Path) -> app.Modeller:
    """Read a PDB file with OpenMM, which cannot read an empty MODEL record."""
    lines = [line for line in path.read_text().splitlines(True) if not line.startswith("MODEL")]
    pdb = app.PDBFile(io.StringIO("".join(lines)))
    return app.Modeller(pdb.topology, pdb.positions)


def of_openmm(model: app.Modeller) -> Structure:
    return Structure.from_openmm(model.topology, model.positions)


def openmm_charges(force_field: app.ForceField, topology: Any) -> NDArray[np.float64]:
    system = force_field.createSystem(topology)  # owns the forces
    force = next(force for force in system.getForces() if isinstance(force, openmm.NonbondedForce))
    parameters = [force.getParticleParameters(i)[0] for i in range(force.getNumParticles())]
    return np.array([charge.value_in_unit(unit.elementary_charge) for charge in parameters])


@pytest.fixture(scope="module")
def amber() -> app.ForceField:
    return app.ForceField("amber14-all.xml", "amber14/tip3p.xml")


@pytest.fixture(scope="module")
def charmm(tmp_path_factory: pytest.TempPathFactory) -> app.ForceField:
    """CHARMM36 of OpenMM, cut down to common residues, without which it takes a minute a system."""
    residues = {*AMINO_ACIDS, "ADE", "CYT", "GUA", "THY", "POPC", "DLPE", "TIP3", "SOD", "CLA"}
    patches = {"NTER_1", "GLYP_1", "PROP_1", "CTER_2", "ASPP_0", "GLUP_0", "LSN_0", "DISU"}
    patches |= {"DEO5TER", "DEOX_0", "3TER_1"}
    files = []
    for name in ("charmm36_2024.xml", "charmm36_2024/water.xml"):
        root = ET.parse(OPENMM / name).getroot()
        for tag, expected in (("Residues", residues), ("Patches", patches)):
            parent = root.find(tag)
            for element in list(parent) if parent is not None else []:
                if element.get("name") not in expected:
                    parent.remove(element)
                for allowed in element.findall("AllowPatch"):
                    if allowed.get("name") not in patches:
                        element.remove(allowed)
        for element in list(root):
            if element.tag not in ("AtomTypes", "Residues", "Patches", "NonbondedForce"):
                root.remove(element)
        files.append(str(tmp_path_factory.mktemp("charmm") / "ff.xml"))
        ET.ElementTree(root).write(files[-1])
    return app.ForceField(*files)


def bilayer(path: Path) -> app.Modeller:
    """Two lipids and some waters of a bilayer."""
    model = load(path)
    kept = Counter[str]()
    surplus = []
    for residue in model.topology.residues():
        kept[residue.name] += 1
        if kept[residue.name] > (20 if residue.name == "HOH" else 2):
            surplus.append(residue)
    model.delete(surplus)
    return model


def dna() -> app.Modeller:
    model = load(TOOLS / "dna_dodecamer_explicit" / "minimized_dna_dodecamer.pdb")
    model.deleteWater()
    return model


SYSTEMS = {
    "villin with water and chloride": lambda: load(OPENMM / "test.pdb"),
    "cobrotoxin, four disulfides, ions": lambda: load(MDA / "cobrotoxin_dry_neutral_0.pdb"),
    "first proline": lambda: load(MDA / "A6PA6_alpha.pdb"),
    "POPC, names cut to POP": lambda: bilayer(OPENMM / "POPC.pdb"),
    "DLPE, names cut to DLP": lambda: bilayer(OPENMM / "DLPE.pdb"),
    "DNA with both ends": dna,
}


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("force_field", ["charmm36", "amber14"])
def test_equals_openmm(system: str, force_field: str, amber: app.ForceField, charmm: app.ForceField) -> None:
    model = SYSTEMS[system]()
    expected = openmm_charges(amber if force_field == "amber14" else charmm, model.topology)
    structure = of_openmm(model)
    result, report = charges_and_report(structure, force_field)
    np.testing.assert_allclose(result.known_charges, expected, atol=1e-6)
    assert report.net_charge == pytest.approx(round(report.net_charge), abs=1e-3)
    assert report.source == force_field
    assert sum(report.templates.values()) == structure.residue_count


@pytest.mark.parametrize(
    "variants",
    [{"ASP": "ASH", "GLU": "GLH", "LYS": "LYN", "HIS": "HIP"}, {"HIS": "HID"}, {"HIS": "HIE"}],
    ids=["ASH GLH LYN HIP", "HID", "HIE"],
)
@pytest.mark.parametrize("force_field", slow(["charmm36", "amber14"], ["charmm36"]))
def test_protonation_by_the_atoms_present(
    variants: dict[str, str], force_field: str, amber: app.ForceField, charmm: app.ForceField
) -> None:
    model = load(OPENMM / "test.pdb")
    model.deleteWater()
    model.delete([atom for atom in model.topology.atoms() if atom.element.symbol == "H"])
    model.addHydrogens(amber, variants=[variants.get(residue.name) for residue in model.topology.residues()])
    expected = openmm_charges(amber if force_field == "amber14" else charmm, model.topology)
    result = assign_charges(of_openmm(model), force_field)
    np.testing.assert_allclose(result.known_charges, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("path", "force_field"),
    [
        (MDA / "adk.psf", "charmm36"),  # protein, CHARMM names, both ends
        (MDA / "nosegid.psf", "amber14"),  # peptide, H instead of HN
        (MDA / "tprs" / "drew_gmx_4.5.5.double.tpr", "charmm36"),  # DOPC, cholesterol and water
        (TOOLS / "dhfr" / "JAC.prmtop", "amber14"),  # protein in water
        (TOOLS / "dna_dodecamer_explicit" / "prmtop", "amber14"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_equals_the_topology_of_real_systems(path: Path, force_field: str) -> None:
    kind = {"topology_format": "PRMTOP"} if path.name == "prmtop" else {}
    universe = MDAnalysis.Universe(str(path), **kind)
    structure = of_universe(universe)
    result, report = charges_and_report(structure, force_field)
    # Amber's charges times 18.2223 have eight digits, GROMACS' are float32
    np.testing.assert_allclose(result.known_charges, universe.atoms.charges, atol=1e-5)
    assert report.net_charge == pytest.approx(round(report.net_charge), abs=1e-3)


def test_cysteine_without_hydrogen_is_cystine_or_thiolate() -> None:
    model = load(MDA / "cobrotoxin_dry_neutral_0.pdb")
    structure = of_openmm(model)
    sulphur = int(np.flatnonzero(structure.atom_names == "SG")[0])
    residue = structure.residue_index == structure.residue_index[sulphur]
    alone = structure.take(residue)
    for force_field, bridged, thiolate in (("charmm36", -0.08, -0.8), ("amber14", -0.1081, -0.8844)):
        for part, expected in ((structure, bridged), (alone, thiolate)):
            charges = assign_charges(part, force_field).known_charges
            assert charges[part.atom_names == "SG"][0] == pytest.approx(expected)
    for name, expected in (("CYX", -0.08), ("CYM", -0.8)):  # the name decides where there is no partner
        renamed = dataclasses.replace(alone, residue_names=np.full(len(alone), name))
        charges = assign_charges(renamed, "charmm36").known_charges
        assert charges[alone.atom_names == "SG"][0] == pytest.approx(expected)


def test_ions_have_the_charges_of_both_force_fields() -> None:
    compared = 0
    for file in ("amber14/tip3p.xml", "charmm36/water.xml"):
        for residue in ET.parse(OPENMM / file).getroot().iterfind("Residues/Residue"):
            name, atoms = residue.get("name", ""), residue.findall("Atom")
            if len(atoms) == 1 and name in ION_RESIDUES:
                assert ION_RESIDUES[name].charge == float(atoms[0].get("charge", "nan")), name
                compared += 1
    assert compared > 40
    for name in ("Na+", "Cl-", "SOD", "CLA", "NA", "CL", "MG2+", "ZN", "CAL", "K+"):
        structure = Structure(np.zeros((1, 3)), [name], [name], [1], [0])
        assert assign_charges(structure).net_charge == ION_RESIDUES[name.upper()].charge


@pytest.mark.slow
def test_table_is_what_the_script_makes() -> None:
    checkout = Path(__file__).parents[2]
    kept = gzip.decompress((checkout / "data" / "charges.csv.gz").read_bytes()).decode().splitlines()
    made = runpy.run_path(str(checkout / "scripts" / "make_charge_table"))["table"]()
    if kept[0] == made[0]:  # the same version of OpenMM
        assert kept == made
    else:
        standard = (*(f"charmm36,residue,{name}," for name in AMINO_ACIDS), "amber14,residue,")
        assert {line for line in kept if line.startswith(standard)} <= set(made)
    assert (checkout / "data" / "charges.csv.gz").stat().st_size < 200_000
    assert templates.table_text().splitlines() == kept


def test_charges_of_a_topology_are_kept() -> None:
    structure = Structure(np.zeros((1, 3)), ["X"], ["UNK"], [1], [0], charges=[0.25])
    result, report = charges_and_report(structure)
    assert result is structure
    assert abs(report.net_charge - round(report.net_charge)) > 1e-3
    assert "+0.2500 e, which is no integer" in str(report)
    texts = [str(charges_and_report(structure.with_charges([q]))[1]) for q in (-3.0004, 1e-5, -3.0011)]
    assert texts[0].endswith("; net charge -3 e")
    assert texts[1].endswith("; net charge 0 e")
    assert "no integer" in texts[2]


def test_unknown_atoms_are_sorted_by_count() -> None:
    names = ["ONE", "TWO", "TWO", "TWO", "SIX", "SIX"]
    atoms = ["A", "B", "B", "B", "C", "C"]
    structure = Structure(np.zeros((6, 3)), atoms, names, [1] * 6, range(6), sources=("x.pdb",))
    expected = r"^x.pdb: no charmm36 charge for 6 atoms: TWO B \(3\), SIX C \(2\), ONE A \(1\);"
    with pytest.raises(ChargeError, match=expected):
        assign_charges(structure)


def test_another_molecule_of_a_known_name_is_unknown() -> None:
    """TMP is thymidine monophosphate in CHARMM, and a ligand in this file."""
    structure = of_universe(universe(TOOLS / "T4-lysozyme-L99A-implicit" / "ligand.pdb"))
    with naming(ChargeError, "18 atoms"):
        assign_charges(structure)


def test_atoms_of_one_name_in_a_residue() -> None:
    structure = Structure(np.zeros((3, 3)), ["N", "CA", "CA"], ["ALA"] * 3, [1] * 3, [0] * 3)
    with naming(ChargeError, "ALA CA (1)"):
        assign_charges(structure)


def test_unknown_force_field() -> None:
    with refused("force_field", "opls"):
        assign_charges(Structure(np.zeros((0, 3)), [], [], [], []), "opls")


def test_no_atoms() -> None:
    assert len(assign_charges(Structure(np.zeros((0, 3)), [], [], [], [])).known_charges) == 0


def test_missing_table_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "__file__", "/nowhere/vmdpotential/templates.py")
    monkeypatch.setattr("importlib.resources.files", lambda name: Path("/nowhere"))
    with pytest.raises(InputError):
        templates.table_text()
