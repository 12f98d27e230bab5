"""Cells that are too small for their atoms, and atoms at the same place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import water
from structure_files import MDA, OPENMM, TOOLS

from vmdpotential import io
from vmdpotential.errors import InputError
from vmdpotential.frontend import cli
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.overlaps import check_overlaps


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
    check_overlaps(replace(structure, positions=positions))
    assert "1 atoms" in caplog.text
    assert "atom 101 " in caplog.text


def test_drude_particles_and_virtual_sites_may_be_where_their_atoms_are(caplog):
    check_overlaps(io.read_structure(OPENMM / "swm4ndp.pdb"))
    assert not caplog.records
