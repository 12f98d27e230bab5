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
import openmmtools
import pytest
from MDAnalysisTests import datafiles
from numpy.typing import NDArray
from openmm import app, unit

from vmdpotential.errors import ChargeError, InputError, UsageError
from vmdpotential.molecule import templates
from vmdpotential.molecule.charges import assign_charges, charges_and_report
from vmdpotential.molecule.names import IONS
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.water import MODELS

OPENMM = Path(app.__file__).parent / "data"
OPENMMTOOLS = Path(openmmtools.__file__).parent / "data"
MDA = Path(datafiles.__file__).parent / "data"

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
    atoms = list(model.topology.atoms())
    return Structure(
        np.array(model.positions.value_in_unit(unit.angstrom)),
        [atom.name for atom in atoms],
        [atom.residue.name for atom in atoms],
        [0] * len(atoms),
        [atom.residue.index for atom in atoms],
    )


def of_universe(universe: Any, positions: bool = False) -> Structure:
    atoms = universe.atoms
    return Structure(
        atoms.positions if positions else np.zeros((len(atoms), 3)),
        atoms.names.astype(str),
        atoms.resnames.astype(str),
        atoms.resids,
        atoms.resindices,
    )


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
        for tag, wanted in (("Residues", residues), ("Patches", patches)):
            parent = root.find(tag)
            for element in list(parent) if parent is not None else []:
                if element.get("name") not in wanted:
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
    model = load(OPENMMTOOLS / "dna_dodecamer_explicit" / "minimized_dna_dodecamer.pdb")
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
    assert report.is_integer
    assert report.source == force_field
    assert sum(report.templates.values()) == structure.residue_count


@pytest.mark.parametrize(
    "variants",
    [{"ASP": "ASH", "GLU": "GLH", "LYS": "LYN", "HIS": "HIP"}, {"HIS": "HID"}, {"HIS": "HIE"}],
    ids=["ASH GLH LYN HIP", "HID", "HIE"],
)
@pytest.mark.parametrize("force_field", ["charmm36", "amber14"])
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
        (OPENMMTOOLS / "dhfr" / "JAC.prmtop", "amber14"),  # protein in water
        (OPENMMTOOLS / "dna_dodecamer_explicit" / "prmtop", "amber14"),
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
    assert report.is_integer


def test_auto_takes_the_force_field_of_the_names() -> None:
    def chosen(path: Path) -> str:
        return charges_and_report(of_universe(MDAnalysis.Universe(str(path))))[1].source

    assert chosen(OPENMMTOOLS / "dhfr" / "JAC.prmtop") == "amber14"  # HIE
    assert chosen(MDA / "adk.psf") == "charmm36"  # HSD


def test_gromacs_names_and_four_site_water() -> None:
    """The same protein with GROMACS' names has the charges that its CHARMM PSF gives."""
    universe = MDAnalysis.Universe(datafiles.PDB)
    result, report = charges_and_report(of_universe(universe, positions=True), "charmm36")
    assert report.net_charge == pytest.approx(0, abs=1e-9)
    assert report.templates["TIP4P"] == 11_084
    assert report.waters == {"TIP4P": "by the place of its massless site"}
    assert report.templates["SOD"] == 4
    waters = universe.atoms.resnames == "SOL"
    assert set(np.round(result.known_charges[waters], 6)) == {0.0, 0.52, -1.04}

    reference = MDAnalysis.Universe(datafiles.PSF)
    protein = universe.select_atoms("protein").residues
    assert len(protein) == len(reference.residues) == 214
    renamed = {"CD": "CD1", "O1": "O", "O2": "OXT", "OT1": "O", "OT2": "OXT"}
    histidines = 0
    for ours, theirs in zip(protein, reference.residues, strict=True):
        if ours.resname.startswith("HIS"):
            histidines += 1  # protonated elsewhere
            continue
        by_name = []
        for residue, charges in ((ours, result.known_charges[ours.atoms.indices]), (theirs, theirs.atoms.charges)):
            renames = renamed if residue.resname == "ILE" or residue.atoms.names[-1] in renamed else {}
            names = [renames.get(name, name) for name in residue.atoms.names]
            # hydrogens are numbered differently
            names = ["H" if name.lstrip("123")[0] == "H" else name for name in names]
            by_name.append(sorted(zip(names, np.round(charges, 5).tolist(), strict=True)))
        assert by_name[0] == by_name[1], ours
    assert histidines == 3


@pytest.mark.parametrize("force_field", ["charmm36", "amber14"])
def test_standard_residues_have_integer_charges(force_field: str) -> None:
    library = templates.library(force_field)
    names = AMINO_ACIDS if force_field == "charmm36" else [
        end + name
        for end in ("", "N", "C")
        for name in ["ALA", "ARG", "ASN", "ASP", "CYS", "CYX", "GLN", "GLU", "GLY", "HID", "HIE", "HIP", "ILE", "LEU",
                     "LYS", "MET", "PHE", "PRO", "SER", "THR", "TRP", "TYR", "VAL"]
    ]  # fmt: skip
    charged = {"ARG": 1, "LYS": 1, "HSP": 1, "HIP": 1, "ASP": -1, "GLU": -1}
    for name in names:
        for template in library.templates(name):
            net = sum(template.charges.values())
            assert net == pytest.approx(round(net), abs=1e-6), template.label
            if template.label == name:
                end = {"N": 1, "C": -1}[name[0]] if len(name) == 4 else 0
                assert round(net) == charged.get(name[-3:], 0) + end
    nucleotides = {"charmm36": ("ADE", "CYT", "GUA", "THY"), "amber14": ("DA", "DC", "DG", "DT", "A", "C", "G", "U")}
    for name in nucleotides[force_field]:
        assert sum(next(library.templates(name)).charges.values()) == pytest.approx(-1, abs=1e-6)


NAMES = {
    "PDB": "N CA C O CB CG1 CG2 CD1 H HA HB HG12 HG13 HG21 HG22 HG23 HD11 HD12 HD13",
    "CHARMM": "N CA C O CB CG1 CG2 CD HN HA HB HG11 HG12 HG21 HG22 HG23 HD1 HD2 HD3",
    "old PDB": "N CA C O CB CG1 CG2 CD1 H HA HB 1HG1 2HG1 1HG2 2HG2 3HG2 1HD1 2HD1 3HD1",
}
BASE = "N1 C6 H6 C5 H5 C2 O2 N3 H3 C4 O4"
RNA = {
    "PDB": f"P OP1 OP2 O5' C5' H5' H5'' C4' H4' O4' C1' H1' C2' H2' O2' HO2' C3' H3' O3' {BASE}",
    "CHARMM": f"P O1P O2P O5' C5' H5' H5'' C4' H4' O4' C1' H1' C2' H2'' O2' H2' C3' H3' O3' {BASE}",
    "old": f"P O1P O2P O5* C5* 1H5* 2H5* C4* H4* O4* C1* H1* C2* 1H2* O2* 2HO* C3* H3* O3* {BASE}",
}
FIRST = {
    "PDB": "N H1 H2 H3 CA HA2 HA3 C O",
    "PDB with H": "N H H2 H3 CA HA2 HA3 C O",
    "CHARMM": "N HT1 HT2 HT3 CA HA1 HA2 C O",
    "old PDB": "N 1H 2H 3H CA 1HA 2HA C O",
}
LAST = {
    "PDB": "N H CA HA2 HA3 C O OXT",
    "CHARMM": "N HN CA HA1 HA2 C OT1 OT2",
    "GROMACS": "N H CA HA1 HA2 C O1 O2",
    "OPLS": "N H CA HA1 HA2 C OC1 OC2",
}


@pytest.mark.parametrize("force_field", ["charmm36", "amber14"])
@pytest.mark.parametrize(
    ("residues", "names"),
    [(("ILE",), NAMES), (("U", "URA", "RU"), RNA), (("GLY",), FIRST), (("GLY",), LAST)],
    ids=["isoleucine", "uridine", "first glycine", "last glycine"],
)
def test_conventions_of_names(residues: tuple[str, ...], names: dict[str, str], force_field: str) -> None:
    found = [
        templates.library(force_field).match(residue, atoms.split()) for residue in residues for atoms in names.values()
    ]
    assert all(isinstance(match, templates.Match) for match in found)
    assert len({(match.label, match.charges) for match in found}) == 1
    assert {match.own_names for match in found} == {True, False}


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
            if len(atoms) == 1 and name in IONS:
                assert IONS[name].charge == float(atoms[0].get("charge", "nan")), name
                compared += 1
    assert compared > 40
    for name in ("Na+", "Cl-", "SOD", "CLA", "NA", "CL", "MG2+", "ZN", "CAL", "K+"):
        structure = Structure(np.zeros((1, 3)), [name], [name], [1], [0])
        assert assign_charges(structure).net_charge == IONS[name.upper()].charge


@pytest.mark.parametrize(
    ("file", "model"),
    [
        ("amber14/tip3p.xml", "tip3p"),
        ("spce.xml", "spce"),
        ("opc3.xml", "opc3"),
        ("tip4pew.xml", "tip4pew"),
        ("tip4pfb.xml", "tip4pfb"),
        ("opc.xml", "opc"),
        ("charmm36/tip4p2005.xml", "tip4p2005"),
    ],
)
def test_water_models_equal_openmm(file: str, model: str) -> None:
    root = ET.parse(OPENMM / file).getroot()
    water = next(r for r in root.iterfind("Residues/Residue") if len(r.findall("Atom")) > 2)
    charges = {(atom.get("type"), atom.get("name")): atom.get("charge") for atom in water.findall("Atom")}
    of_type = {atom.get("type"): atom.get("charge") for atom in root.iterfind("NonbondedForce/Atom")}
    expected = [float(charge or of_type[type_] or "nan") for (type_, _), charge in charges.items()]
    ours = MODELS[model]
    assert ours.sites == len(expected)
    assert sorted([ours.oxygen, ours.hydrogen, ours.hydrogen, ours.site][: len(expected)]) == pytest.approx(
        sorted(expected), abs=1e-5
    )


def test_four_site_model_by_geometry() -> None:
    for file, model in (("tip4pew.pdb", "TIP4P-Ew"),):
        _, report = charges_and_report(of_universe(MDAnalysis.Universe(str(OPENMM / file)), positions=True))
        assert report.templates == {model: 895}


def water_of(residue: str, names: str, massless: float | None = None) -> Structure:
    """One water; its massless site stands `massless` A from the oxygen, which is at 0."""
    atoms = names.split()
    sites = np.zeros((len(atoms), 3))
    sites[[name.lstrip("0123456789")[0] == "H" for name in atoms], 1] = 0.9572
    if massless is not None:
        sites[[name in ("OM", "MW", "EPW", "M") for name in atoms], 0] = massless
    return Structure(sites, atoms, [residue] * len(atoms), [1] * len(atoms), [0] * len(atoms))


THREE, FOUR = "OW HW1 HW2", "O H1 H2 EPW"
TOLD = ("by its name", "by the place of its massless site", "by default")


@pytest.mark.parametrize(
    ("residue", "names", "massless", "model", "charges", "told"),
    [
        ("TIP3", "OH2 H1 H2", None, "TIP3P", (-0.834, 0.417, 0.417), 0),
        ("HOH", "O H1 H2", None, "TIP3P", (-0.834, 0.417, 0.417), 2),
        ("SOL", THREE, None, "TIP3P", (-0.834, 0.417, 0.417), 2),
        ("SPC", THREE, None, "SPC", (-0.82, 0.41, 0.41), 0),
        ("SPCE", THREE, None, "SPC/E", (-0.8476, 0.4238, 0.4238), 0),
        ("OP3", THREE, None, "OPC3", (-0.89517, 0.447585, 0.447585), 0),
        # OPC had TIP4P's charges where its massless site is not exactly where the paper has it
        ("OPC", FOUR, 0.16, "OPC", (0, 0.679142, 0.679142, -1.358284), 0),
        ("OPC", FOUR, None, "OPC", (0, 0.679142, 0.679142, -1.358284), 0),
        ("T4E", FOUR, 0.125, "TIP4P-Ew", (0, 0.52422, 0.52422, -1.04844), 0),
        ("TP4", FOUR, 0.15, "TIP4P", (0, 0.52, 0.52, -1.04), 1),
        ("SOL", "OW HW1 HW2 MW", 0.1594, "OPC", (0, 0.679142, 0.679142, -1.358284), 1),
        ("SOL", "OW HW1 HW2 MW", 0.14, "TIP4P", (0, 0.52, 0.52, -1.04), 2),
        ("TIP4", "OH2 OM H1 H2", 0.1546, "TIP4P/2005", (0, -1.1128, 0.5564, 0.5564), 1),
        ("TIP4", "OH2 H1 H2 OM", 0.15, "TIP4P", (0, 0.52, 0.52, -1.04), 1),
    ],
)
def test_water_models(residue, names, massless, model, charges, told) -> None:
    result, report = charges_and_report(water_of(residue, names, massless))
    assert result.known_charges.tolist() == pytest.approx(charges)
    assert report.waters == {model: TOLD[told]}
    assert report.templates == {model: 1}
    assert f"water {model} ({TOLD[told]})" in str(report)
    assert report.data["water_models"] == {model: TOLD[told]}


@pytest.mark.parametrize(
    ("residue", "names", "massless", "message"),
    [
        ("OPC", THREE, None, "OPC waters lack their massless site, and OPC has 4 sites"),
        ("TP4", THREE, None, "TP4 waters lack their massless site, and TIP4P has 4 sites"),
        ("TIP4", "OH2 H1 H2", None, "TIP4 waters lack their massless site"),
        ("T4E", THREE, None, "T4E waters lack their massless site, and TIP4P-Ew has 4 sites"),
        ("SPCE", FOUR, 0.15, "SPCE waters have a massless site, and SPC/E has 3 sites"),
        ("OPC", FOUR, 0.125, "OPC waters have their massless site 0.1250 A from the oxygen, and OPC has it at 0.1594"),
        ("TP5", THREE, None, "TP5 waters have five sites"),
        ("SOL", "OW HW1 HW2 LP1 LP2", None, "SOL waters have more than four sites"),
        ("SWM4", "OH2 DOH2 LP H1 H2", None, "SWM4 waters have Drude particles"),
    ],
)
def test_water_that_is_no_model_is_refused(residue, names, massless, message) -> None:
    with pytest.raises(ChargeError, match=message):
        assign_charges(water_of(residue, names, massless))


def test_water_model_as_asked() -> None:
    result, report = charges_and_report(water_of("HOH", "O H1 H2"), water="spce")
    assert result.known_charges.tolist() == [-0.8476, 0.4238, 0.4238]
    assert report.waters == {"SPC/E": "as asked"}
    with pytest.raises(ChargeError, match="HOH waters have 3 sites, and OPC has 4"):
        assign_charges(water_of("HOH", "O H1 H2"), water="opc")
    with pytest.raises(UsageError, match="water=tip6p: choose one of auto, tip3p"):
        assign_charges(water_of("HOH", "O H1 H2"), water="tip6p")
    with pytest.raises(UsageError, match="water=opc: is for waters without charges"):
        assign_charges(result, water="opc")


ALANINE = "N H CA HA CB HB1 HB2 HB3 C O"


def residues(*named: tuple[str, str]) -> Structure:
    names = [(residue, atom) for residue, atoms in named for atom in atoms.split()]
    index = np.repeat(np.arange(len(named)), [len(atoms.split()) for _, atoms in named])
    return Structure(np.random.default_rng(1).uniform(0, 30, (len(names), 3)), [atom for _, atom in names],
                     [residue for residue, _ in names], index + 1, index)


def test_the_force_field_is_that_of_the_whole_structure(caplog: pytest.LogCaptureFixture) -> None:
    """A part, whose names fit both, has the charges that it has in the whole."""
    lysine = "N H CA HA CB HB2 HB3 CG HG2 HG3 CD HD2 HD3 CE HE2 HE3 NZ HZ1 HZ2 HZ3 C O"
    histidine = "N H CA HA CB HB2 HB3 CG ND1 CE1 HE1 NE2 HE2 CD2 HD2 C O"
    for name, force_field in (("HIE", "amber14"), ("HSE", "charmm36")):
        whole = residues((name, histidine), ("ALA", ALANINE), ("LYS", lysine))
        charges, report = charges_and_report(whole)
        assert report.source == report.data["force_field"] == force_field
        assert report.fits == (force_field, *({"amber14", "charmm36"} - {force_field}))
        assert not caplog.records  # the residue's name tells
        part = whole.take(np.arange(len(histidine.split()), len(whole)))
        alone, _ = charges_and_report(dataclasses.replace(part, whole=whole))
        np.testing.assert_array_equal(alone.known_charges, charges.known_charges[len(histidine.split()):])


def test_atoms_selected_from_residues_have_the_charges_that_they_have_there() -> None:
    """Also where others of their residues are left out; what has no template and is not selected is not asked for."""
    whole = residues(("ALA", ALANINE), ("LIG", "X1 X2"), ("ALA", ALANINE))
    backbone = np.isin(whole.atom_names, ["N", "CA", "C"])
    of_one = np.isin(ALANINE.split(), ["N", "CA", "C"])
    part = whole.part(backbone)
    charges = charges_and_report(part)[0].known_charges
    expected = charges_and_report(residues(("ALA", ALANINE)))[0].known_charges[of_one]
    np.testing.assert_array_equal(charges, np.tile(expected, 2))
    again = part.take([0, 4])  # of a selection
    np.testing.assert_array_equal(charges_and_report(again)[0].known_charges, charges[[0, 4]])
    with pytest.raises(ChargeError, match="LIG X1"):
        charges_and_report(whole.part(backbone | (whole.atom_names == "X1")))


def test_a_force_field_that_is_a_guess_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Atom names of the PDB are Amber's too: what is taken is told, with the option that chooses."""
    _, report = charges_and_report(residues(("ALA", ALANINE)))
    assert report.source == "amber14"
    assert "its names fit amber14 and charmm36; the charges are those of amber14" in caplog.text
    assert "{force_field}" in caplog.records[0].msg
    caplog.clear()
    _, report = charges_and_report(residues(("ALA", ALANINE.replace("H ", "HN ", 1))))
    assert report.source == "charmm36"
    assert report.data["force_fields_that_fit"] == ["charmm36", "amber14"]
    assert not caplog.records  # HN is CHARMM's own
    _, report = charges_and_report(residues(("ALA", ALANINE)), "charmm36")
    assert report.fits == ("charmm36",)
    assert not caplog.records


def test_charges_of_a_topology_are_kept() -> None:
    structure = Structure(np.zeros((1, 3)), ["X"], ["UNK"], [1], [0], charges=[0.25])
    result, report = charges_and_report(structure)
    assert result is structure
    assert not report.is_integer
    assert "+0.2500 e, which is no integer" in str(report)
    texts = [str(charges_and_report(structure.with_charges([q]))[1]) for q in (-3.0004, 1e-5, -3.0011)]
    assert texts[0].endswith("; net charge -3 e")
    assert texts[1].endswith("; net charge 0 e")
    assert "no integer" in texts[2]


def test_unknown_ligand_is_one_line() -> None:
    structure = of_universe(MDAnalysis.Universe(str(OPENMMTOOLS / "cb7-b2" / "complex-explicit.pdb")))
    with pytest.raises(ChargeError) as caught:
        assign_charges(structure)
    message = str(caught.value)
    assert "\n" not in message
    assert "no amber14 charge for 156 atoms: B2 C1 (1)" in message
    assert message.count("(1)") == 10
    assert "and 146 more kinds" in message
    assert "as topology" in message
    assert caught.value.exit_code == 2


def test_unknown_atoms_are_sorted_by_count() -> None:
    names = ["ONE", "TWO", "TWO", "TWO", "SIX", "SIX"]
    atoms = ["A", "B", "B", "B", "C", "C"]
    structure = Structure(np.zeros((6, 3)), atoms, names, [1] * 6, range(6), sources=("x.pdb",))
    expected = r"^x.pdb: no charmm36 charge for 6 atoms: TWO B \(3\), SIX C \(2\), ONE A \(1\);"
    with pytest.raises(ChargeError, match=expected):
        assign_charges(structure)


def test_missing_hydrogens_are_named() -> None:
    structure = of_universe(MDAnalysis.Universe(str(OPENMMTOOLS / "dna_dodecamer_explicit" / "4c64_no_mg.pdb")))
    expected = r"needs are missing: .*HOH H \(262\).*complete the residues \(hydrogens too\)"
    with pytest.raises(ChargeError, match=expected):
        assign_charges(structure)


def test_another_molecule_of_a_known_name_is_unknown() -> None:
    """TMP is thymidine monophosphate in CHARMM, and a ligand in this file."""
    structure = of_universe(MDAnalysis.Universe(str(OPENMMTOOLS / "T4-lysozyme-L99A-implicit" / "ligand.pdb")))
    with pytest.raises(ChargeError, match="no charmm36 charge for 18 atoms"):
        assign_charges(structure)


def test_atoms_of_one_name_in_a_residue() -> None:
    structure = Structure(np.zeros((3, 3)), ["N", "CA", "CA"], ["ALA"] * 3, [1] * 3, [0] * 3)
    with pytest.raises(ChargeError, match=r"ALA CA \(1\)"):
        assign_charges(structure)


def test_unknown_force_field() -> None:
    with pytest.raises(UsageError, match="force_field=opls: choose one of auto, charmm36, amber14"):
        assign_charges(Structure(np.zeros((0, 3)), [], [], [], []), "opls")


def test_no_atoms() -> None:
    assert len(assign_charges(Structure(np.zeros((0, 3)), [], [], [], [])).known_charges) == 0


@pytest.mark.slow
def test_table_is_what_the_script_makes() -> None:
    checkout = Path(__file__).parent.parent
    kept = gzip.decompress((checkout / "data" / "charges.csv.gz").read_bytes()).decode().splitlines()
    made = runpy.run_path(str(checkout / "scripts" / "make_charge_table"))["table"]()
    if kept[0] == made[0]:  # the same version of OpenMM
        assert kept == made
    else:
        standard = (*(f"charmm36,residue,{name}," for name in AMINO_ACIDS), "amber14,residue,")
        assert {line for line in kept if line.startswith(standard)} <= set(made)
    assert (checkout / "data" / "charges.csv.gz").stat().st_size < 200_000
    assert templates.table_text().splitlines() == kept


def test_missing_table_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "__file__", "/nowhere/vmdpotential/templates.py")
    monkeypatch.setattr("importlib.resources.files", lambda name: Path("/nowhere"))
    with pytest.raises(InputError, match=r"charge table is missing; reinstall"):
        templates.table_text()
