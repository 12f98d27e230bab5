"""Bonds that CONECT records list stay in files that are written, with the new numbers of their atoms."""

from pathlib import Path

import numpy as np
import pytest

from vmdpotential.io import read_structure
from vmdpotential.io.structures.pdbwrite import write_pdb
from vmdpotential.plugins.ions.command import command as ionize

app = pytest.importorskip("openmm.app", reason="openmm is not installed")
DATA = Path(app.__file__).parent / "data"


def bonds_of(path):
    """Return the bonds outside of water as OpenMM reads them, by the positions of their atoms."""
    file = app.PDBFile(str(path))
    places = np.array(file.positions._value).round(4)
    return {tuple(sorted((tuple(places[a.index]), tuple(places[b.index])))) for a, b in file.topology.bonds()
            if a.residue.name != "HOH"}


@pytest.mark.slow
def test_lipids_of_a_file_written_by_ionize_match_openmms_templates(tmp_path):
    pdb, out = DATA / "POPC.pdb", tmp_path / "ions.pdb"
    ionize(structure=pdb, force_field="amber14", water="tip3p", concentration=0.02, output=[out])
    assert bonds_of(out) == bonds_of(pdb)
    topology = app.PDBFile(str(out)).topology
    app.ForceField("amber14-all.xml", "amber14/tip3p.xml").createSystem(topology)  # raises an error without a template


def test_bonds_are_written_again_and_renumbered(tmp_path):
    lines = [f"HETATM{n + 11:5d}  C{n}  LIG A   1    {1.4 * n:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00           C"
             for n in range(7)]
    bonds = ["CONECT   11   12   13   14   15", "CONECT   11   16", "CONECT   12   11   13   13",
             "CONECT   13   11   12   12", "CONECT   17   16   99", "END"]
    path, again = tmp_path / "x.pdb", tmp_path / "y.pdb"
    # an atom with five bonds, a double bond, one listed at one atom only, and one of an atom that does not exist
    path.write_text("\n".join([*lines, *bonds]) + "\n")
    structure = read_structure(path)
    expected = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (1, 2), (5, 6)]
    assert sorted(map(tuple, structure.listed_bonds.pairs.tolist())) == expected
    write_pdb(structure, again)
    assert sorted(map(tuple, read_structure(again).listed_bonds.pairs.tolist())) == expected
    part = structure.take(np.array([1, 2, 5, 6]))
    assert part.listed_bonds.pairs.tolist() == [[0, 1], [0, 1], [2, 3]]
    topology, _ = structure.to_openmm()
    assert len(list(topology.bonds())) == 7


def test_bonds_of_recurring_serial_numbers_are_left_out_with_a_word(tmp_path, caplog):
    line = "HETATM    1  C{} LIG A   1       0.000   0.000  {:6.3f}  1.00  0.00           C"
    lines = [line.format("1 ", 0), line.format("2 ", 2), "CONECT    1    1", "END"]
    (tmp_path / "x.pdb").write_text("\n".join(lines) + "\n")
    assert read_structure(tmp_path / "x.pdb").listed_bonds is None
    assert "CONECT" in caplog.text
