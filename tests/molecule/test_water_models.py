"""The models of water: their charges against OpenMM, and which of them a file holds."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from helpers import refused
from messages import naming
from structure_files import OPENMM, of_universe, universe

from vmdpotential.errors import ChargeError
from vmdpotential.molecule.charges import assign_charges, charges_and_report
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.water import MODELS


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
        _, report = charges_and_report(of_universe(universe(OPENMM / file), positions=True))
        assert report.templates == {model: 895}


def water_of(residue: str, names: str, massless: float | None = None) -> Structure:
    """One water; its massless site is `massless` A from the oxygen, which is at 0."""
    atoms = names.split()
    sites = np.zeros((len(atoms), 3))
    sites[[name.lstrip("0123456789")[0] == "H" for name in atoms], 1] = 0.9572
    if massless is not None:
        sites[[name in ("OM", "MW", "EPW", "M") for name in atoms], 0] = massless
    return Structure(sites, atoms, [residue] * len(atoms), [1] * len(atoms), [0] * len(atoms))


THREE, FOUR = "OW HW1 HW2", "O H1 H2 EPW"
EVIDENCE = ("by its name", "by the place of its massless site", "by default")


@pytest.mark.parametrize(
    ("residue", "names", "massless", "model", "charges", "stated"),
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
def test_water_models(residue, names, massless, model, charges, stated) -> None:
    result, report = charges_and_report(water_of(residue, names, massless))
    assert result.known_charges.tolist() == pytest.approx(charges)
    assert report.waters == {model: EVIDENCE[stated]}
    assert report.templates == {model: 1}
    assert f"water {model} ({EVIDENCE[stated]})" in str(report)
    assert report.data["water_models"] == {model: EVIDENCE[stated]}


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
    with naming(ChargeError, "HOH ", " 3 ", " OPC ", " 4"):
        assign_charges(water_of("HOH", "O H1 H2"), water="opc")
    with refused("water"):
        assign_charges(water_of("HOH", "O H1 H2"), water="tip6p")
    with refused("water"):
        assign_charges(result, water="opc")
