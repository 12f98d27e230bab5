"""Structures' formats: recognised by their content, and what is none of them refused in one line."""

from __future__ import annotations

import bz2
import gzip
import logging
import shutil

import pytest
from structure_files import MDA, SMALL, small_cif

from vmdpotential import io
from vmdpotential.errors import InputError
from vmdpotential.io.files import recognise

RECOGNISED = [
    ("adk_closed.pdb", "pdb"), ("1hvr.pdb", "pdb"), ("5digitResid.pdb", "pdb"), ("adk_open.pqr", "pqr"),
    ("1A2C.pqr", "pqr"), ("mmcif/1YJP.cif", "mmcif"), ("4x8u.pdbx", "mmcif"), ("adk_oplsaa.gro", "gro"),
    ("two_water_gro.gro", "gro"), ("adk.psf", "psf"), ("SiN_tric_namd.psf", "psf"), ("Amber/ache.prmtop", "prmtop"),
    ("Amber/posfor.top", "prmtop"), ("Amber/test.inpcrd", "amber-coordinates"), ("adk_oplsaa.tpr", "mdanalysis"),
    ("Amber/parmed_ala2_solv.rst7", "amber-coordinates"), ("Amber/ace_tip3p.nc", "amber-coordinates"),
    ("adk_oplsaa.xtc", "frames"), ("adk_oplsaa.trr", "frames"), ("SiN_tric_namd.dcd", "frames"),
    ("gromacs_ala10.top", "gromacs-topology"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), RECOGNISED)
def test_formats_are_recognised_by_content(tmp_path, name, kind):
    shutil.copy(MDA / name, tmp_path / "file with blanks")
    assert recognise.kind_of(tmp_path / "file with blanks") == kind
    assert recognise.kind_of(MDA / name) == kind
    (tmp_path / "packed.gz").write_bytes(gzip.compress((MDA / name).read_bytes()[:200_000]))
    assert recognise.kind_of(tmp_path / "packed.gz") == kind


GOOD = "ATOM      1  N   ALA A   1       1.000   2.000   3.000  1.00  0.00           N  \n"
GRO = "title\n  2\n    1SOL     OW    1   0.230   0.628   0.113\n    1SOL    HW1    2   0.137   0.626   0.150\n"
PQR = "ATOM 1 N ALA 1 1.0 2.0 3.0 0.1 1.5\n"
BAD = {
    "empty.pdb": (b"", "is empty"),
    "blank.cif": (b"\n \n", "is empty"),
    "remarks.pdb": (b"REMARK nothing\nEND\n", "no ATOM or HETATM records"),
    "text.pdb": (b"hello\n", "no ATOM or HETATM records"),
    "nan.pdb": (GOOD.replace("   1.000", "     nan").encode(), r"atom 1 \(ALA1:N\) has coordinates that are not"),
    "columns.pdb": ((GOOD + GOOD.replace("   2.000", "   2,000")).encode(), "line 2: columns 31-54 are not three"),
    "short.pdb": ((GOOD + GOOD[:45] + "\n").encode(), "line 2: columns 31-54"),
    "cell.pdb": (b"CRYST1   10.000   10.000   10.000  90.00  90.00 300.00 P 1\n" + GOOD.encode(), "line 1: .*cell"),
    "cell2.pdb": (b"CRYST1   10.000   10.000      abc  90.00  90.00  90.00 P 1\n" + GOOD.encode(), "line 1: CRYST1"),
    "end.pdb": ((GOOD * 2 + "END\n" + GOOD).encode(), "line 3 is END, but 1 more atoms follow"),
    "plain.pdb.gz": (GOOD.encode(), "is not a gzip file"),
    "cut.pdb.gz": (gzip.compress(GOOD.encode() * 50)[:60], "gzip file is damaged or cut short"),
    "cut.pdb.bz2": (bz2.compress(GOOD.encode() * 50)[:60], "bzip2 file is damaged or cut short"),
    "nothing.cif": (b"data_x\n_cell.length_a 10\n", "no _atom_site loop"),
    "broken.cif": (b"data_x\nloop_\n_atom_site.id\n_atom_site.Cartn_x\n1 2 3\n", "not a valid mmCIF file"),
    "text.cif": (b"hello\n", "not a valid mmCIF file"),
    "number.cif": (small_cif({**SMALL, "Cartn_y": ["1", "one"]}).encode(), "row 2 of _atom_site: Cartn_y is 'one'"),
    "null.cif": (small_cif({**SMALL, "Cartn_y": ["1", "?"]}).encode(), r"atom 2 .* not numbers"),
    "seq.cif": (small_cif({**SMALL, "auth_seq_id": ["1", "x"]}).encode(), "residue number 'x'"),
    "count.gro": (b"title\nmany\n", "line 2 must be the number of atoms"),
    "cut.gro": (GRO.encode(), "states 2 atoms but has 4 lines; it is cut short"),
    "zero.gro": (b"title\n0\n 1 1 1\n", "has no atoms"),
    "box.gro": (GRO.encode() + b" a b c\n", "line 5 must be the box"),
    "flat.gro": (GRO.encode() + b" 1.0 1.0 0.0\n", "line 5: the lengths of the box must be positive"),
    "value.gro": (GRO.replace("0.626", "0,626").encode() + b" 1.0 1.0 1.0\n", "line 4 lacks three coordinates"),
    "nan.gro": (GRO.replace("0.626", "  nan").encode() + b" 1.0 1.0 1.0\n", r"atom 2 .* not numbers"),
    "short.pqr": (b"ATOM 1 N ALA 1 1.0 2.0 3.0 0.1\n", "line 1 is not 'ATOM serial name"),
    "value.pqr": ((PQR + PQR.replace("0.1", "abc")).encode(), "line 2 is not 'ATOM serial name"),
    "nan.pqr": (PQR.replace("0.1", "nan").encode(), "has a charge that is not a number"),
    "none.pqr": (b"REMARK\n", "no ATOM or HETATM lines"),
    "unknown": (b"hello\n", "its format is not recognised"),
    "unknown.xyzzy": (b"\x00\x01\x02", "its format is not recognised"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_give_one_line(tmp_path, name):
    content, message = BAD[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        io.read_structure(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_warnings_are_logged_not_printed(capsys, caplog):
    caplog.set_level(logging.WARNING)
    io.read_structure(MDA / "4E43.pdb")
    assert capsys.readouterr().out == ""
    assert caplog.records[0].name.startswith("vmdpotential.io")
