"""Charges that a topology gives, and charges that cannot be known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from structure_files import TOOLS, of_universe, universe

from vmdpotential.errors import ChargeError, InputError, UsageError
from vmdpotential.molecule import templates
from vmdpotential.molecule.charges import assign_charges, charges_and_report
from vmdpotential.molecule.structure import Structure


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


def test_missing_table_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "__file__", "/nowhere/vmdpotential/templates.py")
    monkeypatch.setattr("importlib.resources.files", lambda name: Path("/nowhere"))
    with pytest.raises(InputError, match=r"charge table is missing; reinstall"):
        templates.table_text()
