"""Text files that are damaged or unusual: read right, or refused in one line; small cases of what was found."""

import os

import pytest
from damaged import CIF, CUBE, DX, GRO, PDB, PQR, PRMTOP, PSF, RST7, SEEDS, TEXTS, read, refused, same
from fuzz import seeds

from vmdpotential import read_structure
from vmdpotential.errors import InputError, one_line
from vmdpotential.io.files.numbers import real, reals, residue_number, whole


@pytest.mark.parametrize(("suffix", "content"), [*TEXTS, (".dx", DX), (".cube", CUBE)], ids=lambda value: value[:7])
def test_marks_and_ends_of_lines_change_nothing(tmp_path, suffix, content):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content.encode())
    plain = read(path)
    for changed in (b"\xef\xbb\xbf" + content.encode(), content.replace("\n", "\r\n").encode()):
        path.write_bytes(changed)
        same(read(path), plain)
    path.write_bytes(content.replace("\n", "\r").encode())
    if suffix in (".dx", ".cube"):
        refused(path, "line 1 ends in a carriage return alone; convert")
    else:
        same(read(path), plain)
        path.write_bytes(content.replace("\n", "\r\r\n").encode())
        same(read(path), plain)
    path.write_bytes(content.encode("utf-16"))
    refused(path, "is text in UTF-16; save it" if suffix not in (".dx", ".cube") else "line 1")
    path.write_bytes(content.replace(" ", "\0", 1).encode())
    refused(path, "NUL byte" if suffix not in (".dx", ".cube") else "line")


@pytest.mark.parametrize(("suffix", "content", "old", "new", "name"), [
    (".pdb", PDB, "CRYST1", " CRYST1", "CRYST1"), (".pdb", PDB, "CRYST1", "cryst1", "CRYST1"),
    (".pdb", PDB, "CRYST1", "CRYSt1", "CRYST1"), (".pdb", PDB, "ATOM ", "atom ", "ATOM"),
    (".pdb", PDB, "ATOM ", " ATOM ", "ATOM"), (".pdb", PDB, "ATOM ", "\xef\xbb\xbfATOM ", "ATOM"),
    (".pdb", PDB, "HETATM", "\thetatm", "HETATM"), (".pdb", PDB, "HETATM", "endmdl\nHETATM", "ENDMDL"),
    (".pdb", PDB, "HETATM", "model  2\nHETATM", "MODEL"), (".pdb", PDB, "HETATM", "ter\nHETATM", "TER"),
    (".pqr", PQR, "CRYST1", "cryst1", "CRYST1"), (".pqr", PQR, "ATOM ", " ATOM ", "ATOM"),
    (".pqr", PQR, "HETATM", "hetatm", "HETATM"), (".pqr", PQR, "HETATM", " end\nHETATM", "END"),
])
def test_what_would_be_a_record_but_for_blanks_or_case(tmp_path, suffix, content, old, new, name):
    path = tmp_path / f"a{suffix}"
    path.write_text(content.replace(old, new, 1), encoding="latin-1")
    refused(path, f"line [0-9]+: '.*' is not a record, but would be {name} without")


def test_lines_that_are_no_records_are_left_out(tmp_path):
    path = tmp_path / "a.pdb"
    path.write_text("atoms of a study\n#ATOM      1 commented out\n\nremark 5\n" + PDB)
    assert len(read(path)) == len(seeds.NAMES)


def test_a_cell_behind_the_atoms_of_an_mmcif_file(tmp_path):
    """However its lines begin."""
    path = tmp_path / "a.cif"
    lines = CIF.splitlines(True)
    cell = [line for line in lines if line.startswith("_cell.")]
    atoms = "".join(line for line in lines if not line.startswith("_cell."))
    path.write_text(CIF)
    expected = read(path).cell.parameters
    for between in ("", "#\n", "  #\n", " \t"):
        path.write_text(atoms.removesuffix("#\n") + between + " ".join(f" {line}" for line in cell))
        assert read(path).cell.parameters == expected


@pytest.mark.parametrize("good", ["1", "-5", "+7", "007", " 12 ", "999999999999999999"])
def test_whole_numbers(good):
    assert whole(good) == int(good)


@pytest.mark.parametrize("bad", ["1_0", "²", "١", "", "1.0", "1\xa0", "9" * 19, "0x10", "--1"])
def test_what_is_no_number(bad):
    with pytest.raises(ValueError):
        whole(bad)
    if bad not in ("1.0", "9" * 19):
        with pytest.raises(ValueError):
            real(bad)
        with pytest.raises(ValueError):
            reals(["1", bad])
    with pytest.raises(ValueError):
        residue_number("2147483648")


FIRST = "-0.470000"
SUSPECTS = [
    # underscores, and numbers that no other program can hold
    (".pdb", PDB, PDB[PDB.index("ATOM") + 30 :][:8], "   1_0.0", "line 3: columns 31-54"),
    (".pdb", PDB, "20.000", "2_0.00", "line .: CRYST1"),
    (".pdb", PDB, "ALA A   1", "ALA A  _1", "columns 23-27 are not a residue number"),
    (".pqr", PQR, " A 1 ", " A 99999999999999999999 ", "residue number 9+ is too large"),
    (".pqr", PQR, "-0.4700", "-0_4700", "line 3"),
    (".cif", CIF, "  1 ALA  A N ", "  99999999999999999999 ALA  A N ", "residue number '9+' in _atom_site"),
    (".gro", GRO, "   11", "    ²", "line 2 must be the number of atoms"),
    (".gro", GRO, "\n    1ALA", "\n  1_0ALA", "line 3: columns 1-5 are not a residue number"),
    (".gro", GRO, "2.00000", "-2.0000", "lengths of the box must be positive"),
    (".psf", PSF, FIRST, "-0_470000", "charge '-0_470000' is not a number"),
    (".psf", PSF, "14.0070", "    nan", "line 7: the mass nan is impossible"),
    (".psf", PSF, "14.0070", "-14.007", "line 7: the mass -14.007 is impossible"),
    (".prmtop", PRMTOP, "1.20100000E+01", "           nan", "section MASS .* impossible masses"),
    (".prmtop", PRMTOP, "1.20100000E+01", "1_2.100000E+01", "section MASS .* not a number"),
    (".rst7", RST7, "    11", "     ²", "second line does not begin with the number"),
    (".dx", DX, "counts 2", "counts 1_2", "line [0-9]+: 'object 1"),
    (".dx", DX, "rank 0", "rank 1", "contains vectors"),
    (".dx", DX, "rank 0 items", "items 24 rank", "contains vectors"),
    (".dx", DX, "temperature: 298.15", "temperature: inf", "its header states temperature: inf; correct"),
    (".dx", DX, "temperature: 298.15", "temperature: 0", "its header states temperature: 0; correct"),
    (".dx", DX, "dielectric: 1", "dielectric: warm", "its header states dielectric: warm; correct"),
    (".dx", DX, "error: 1e-05", "error: -1", "its header states error: -1; correct"),
    (".dx", SEEDS[".dx.gz"] and seeds.APBS, "T=300K", "T=0 K", "its header states temperature: 0; correct"),
    (".cube", CUBE, "\n    3 ", "\n   -3 ", "counts of its axes .* differ in sign"),
    (".cube", CUBE, "\n    1 ", "\n    ² ", "line 3: does not consist of a whole number and coordinates"),
    # what ended in a traceback
    (".pdb", PDB, PDB[PDB.index("ATOM") + 30 :][:8], "\x80\x80\x80 1.00", "line 3: columns 31-54"),
    (".cif", CIF, "_atom_site.id\n", "_atom_site.id\n_cell.volume\n", "not a valid mmCIF|mixed|loop"),
    (".prmtop", PRMTOP, "NAME\n%FORMAT(20a4)", "NAME\n%FORMAT(0a4)", "unknown format .0a4"),
    (".prmtop", PRMTOP, "NAME\n%FORMAT(20a4)", "NAME\n%FORMAT(20a9223372036854775807)", "unknown format"),
    (".prmtop", PRMTOP, "      11       0", "999999999999999999       0", "section POINTERS|holds"),
    (".psf", PSF, "      11 !NATOM", "9" * 30 + " !NATOM", "is not the start of a PSF section|no atom list|NATOM"),
]


@pytest.mark.parametrize(("suffix", "content", "old", "new", "match"), SUSPECTS,
                         ids=[f"{case[0]}-{ascii(case[3])[1:20]}" for case in SUSPECTS])
def test_suspects(tmp_path, suffix, content, old, new, match):
    assert old in content
    path = tmp_path / f"a{suffix}"
    path.write_text(content.replace(old, new, 1), encoding="latin-1" if "\x80" in new or "\x85" in new else "utf-8")
    refused(path, match)


def test_messages_are_short_and_show_what_cannot_be_printed(tmp_path):
    path = tmp_path / "a.pqr"
    path.write_bytes(b"ATOM 1 N ALA \x1b[31m" + b"x" * 5000 + b"\n")
    assert r"\x1b[31m" in refused(path, "line 1 is not")
    deep = tmp_path.joinpath(*["folder" * 10] * 5)
    deep.mkdir(parents=True)
    (deep / "a.pqr").write_bytes(path.read_bytes())
    refused(deep / "a.pqr", "line 1 is not")
    assert one_line("a\nb\0\udcff\u2028") == r"a\nb\x00\xff\u2028"
    assert str(InputError("a\nb\x8f")) == r"a\nb\x8f"
    odd = tmp_path / os.fsdecode(b"odd\xff\n.pdb")
    odd.write_text("nothing")
    with pytest.raises(InputError, match=r"odd\\xff\\n\.pdb: has no ATOM"):
        read_structure(odd)


@pytest.mark.parametrize("error", [RecursionError("deep"), SystemError("x\ny" * 999), KeyError(1), ZeroDivisionError()])
def test_whatever_a_reader_raises_names_the_file(tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    (tmp_path / "a.pdb").write_text(PDB)
    (tmp_path / "a.dx").write_text(DX)
    monkeypatch.setattr("vmdpotential.io.structures.pdb.read_pdb", fail)
    monkeypatch.setattr("vmdpotential.io.maps.dx.read_dx", fail)
    for path in (tmp_path / "a.pdb", tmp_path / "a.dx"):
        line = refused(path, rf"cannot be read \({type(error).__name__}: .*; correct it, write it again")
        assert "Traceback" not in line


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_keeps_its_meaning(tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    (tmp_path / "a.pdb").write_text(PDB)
    monkeypatch.setattr("vmdpotential.io.structures.pdb.read_pdb", fail)
    with pytest.raises(error):
        read_structure(tmp_path / "a.pdb")
