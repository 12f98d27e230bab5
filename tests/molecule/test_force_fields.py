"""Which force field's charges atoms have: by the conventions of their names, in the whole structure."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from messages import naming

from vmdpotential.errors import ChargeError
from vmdpotential.molecule import templates
from vmdpotential.molecule.charges import charges_and_report
from vmdpotential.molecule.structure import Structure

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
    results = [
        templates.template_library(force_field).match(residue,
                                                      atoms.split()) for residue in residues for atoms in names.values()
    ]
    assert all(isinstance(match, templates.TemplateMatch) for match in results)
    assert len({(match.label, match.charges) for match in results}) == 1
    assert {match.own_names for match in results} == {True, False}


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
    with naming(ChargeError, "LIG X1"):
        charges_and_report(whole.part(backbone | (whole.atom_names == "X1")))


def test_a_force_field_that_is_a_guess_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Atom names of the PDB are Amber's too: what is taken is reported, with the option that chooses."""
    _, report = charges_and_report(residues(("ALA", ALANINE)))
    assert report.source == "amber14"
    assert "its names fit amber14 and charmm36; the charges are those of amber14" in caplog.text
    assert "{force_field}" in caplog.records[0].msg.template
    caplog.clear()
    _, report = charges_and_report(residues(("ALA", ALANINE.replace("H ", "HN ", 1))))
    assert report.source == "charmm36"
    assert report.data["force_fields_that_fit"] == ["charmm36", "amber14"]
    assert not caplog.records  # HN is CHARMM's own
    _, report = charges_and_report(residues(("ALA", ALANINE)), "charmm36")
    assert report.fits == ("charmm36",)
    assert not caplog.records
