"""Cells that are too small for their atoms, and atoms at the same place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import water
from structure_files import MDA, OPENMM, TOOLS

from vmdpotential import io
from vmdpotential.errors import InputError
from vmdpotential.frontend import cli
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.overlaps import check_overlaps, warn_of_duplicates
from vmdpotential.preparation.charged import charge_structure


@pytest.mark.parametrize("command", [
    "map box.pqr -o m.dx", "ionize box.pqr --ions SOD=1 -o o.pqr", "energy box.pqr --between all all",
    "profile box.pqr --axis z -o p.csv", "rdf box.pqr --between all all -o g.csv"])
def test_every_command_refuses_a_cell_that_is_too_small(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    io.write_structure(water(20), "box.pqr")
    assert cli.main([*command.split(), "--cell", "13,13,13"]) == 2
    assert "--cell" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["box.pqr"]


@pytest.mark.parametrize("path", [OPENMM / "POPC.pdb", MDA / "adk_oplsaa.gro",
                                  TOOLS / "alanine-dipeptide-explicit" / "alanine-dipeptide.pdb"])
def test_cells_of_simulations_fit_and_much_smaller_ones_do_not(path, caplog):
    structure = io.read_structure(path)
    check_overlaps(structure)
    shifted = structure.positions + np.array([33.0, -71.0, 12.0])
    check_overlaps(replace(structure, positions=shifted))
    check_overlaps(replace(structure, positions=structure.cell.wrap(shifted)))  # molecules are cut at the faces
    assert not caplog.records
    with pytest.raises(InputError):
        check_overlaps(replace(structure, cell=Cell(structure.cell.vectors * 0.65)))


def test_atoms_at_the_same_place_are_reported(caplog):
    structure = io.read_structure(TOOLS / "alanine-dipeptide-explicit" / "alanine-dipeptide.pdb")
    positions = structure.positions.copy()
    positions[100] = positions[7]
    made = replace(structure, positions=positions)
    charge_structure(replace(made, charges=np.zeros(len(made))), "auto", "auto")
    assert "1 atoms" in caplog.text
    assert "atom 101 " in caplog.text


def test_atoms_that_a_residue_lists_twice_are_left_out_and_not_said_to_count(tmp_path, caplog):
    # as in the entry 2GU3 from the wheel of MDAnalysis' tests
    text = (Path(__file__).parents[1] / "data" / "caps_amber_heavy.pdb").read_text().splitlines(keepends=True)
    path = tmp_path / "twice.pdb"
    path.write_text("".join([*text[:14], *text[11:]]))  # three atoms of the lysine
    made, report = charge_structure(io.read_structure(path), "auto", "auto", prepare="auto")
    assert "twice" in report.prepared
    assert (made.atom_names == "CG").sum() == 1
    assert made.net_charge == pytest.approx(1, abs=1e-4)
    assert "same place" not in caplog.text


def test_drude_particles_and_virtual_sites_may_be_where_their_atoms_are(caplog):
    structure = io.read_structure(OPENMM / "swm4ndp.pdb")
    check_overlaps(structure)
    warn_of_duplicates(structure)
    assert not caplog.records
