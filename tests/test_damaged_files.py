"""Files that are damaged, hostile or unusual: read right, or refused in one line; small cases of what was found."""

import bz2
import gzip
import io
import os
import struct
import sys
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fuzz import seeds

from vmdpotential import read_map, read_structure, write_map
from vmdpotential.errors import InputError, MemoryPlanError, UsageError, VmdpotentialError, one_line
from vmdpotential.frontend import cli
from vmdpotential.io import read_topology, text
from vmdpotential.io.numbers import real, reals, residue_number, whole

SEEDS = {suffix: data for kind, files in seeds.seeds().items() for suffix, data in reversed(files) if kind != "ions"}
PDB, CIF, PQR, GRO, PSF = (SEEDS[suffix].decode() for suffix in (".pdb", ".cif", ".pqr", ".gro", ".psf"))
PRMTOP, RST7, DX, CUBE = (SEEDS[suffix].decode() for suffix in (".prmtop", ".rst7", ".dx", ".cube"))
MRC, NPZ = SEEDS[".mrc"], SEEDS[".npz"]


def read(path):
    """Read a file by whatever reads its suffix."""
    if path.suffix in (".dx", ".mrc", ".ccp4", ".cube", ".npz"):
        return read_map(path)
    if path.suffix in (".psf", ".prmtop"):
        return read_topology(path)
    if path.suffix in (".rst7", ".nc", ".xtc", ".trr", ".dcd"):
        topology = path.parent / "names.psf"
        topology.write_text(PSF)
        return read_structure(path, topology)
    return read_structure(path)


def same(a, b):
    for name in ("positions", "charges", "residue_ids", "values"):
        ours, theirs = getattr(a, name, None), getattr(b, name, None)
        assert (ours is None) == (theirs is None)
        assert ours is None or np.array_equal(ours, theirs), name
    ours, theirs = getattr(a, "cell", None), getattr(b, "cell", None)
    assert (ours is None) == (theirs is None)
    assert ours is None or np.array_equal(ours.vectors, theirs.vectors)


def refused(path, match, kind=InputError):
    """Read what must be refused, and return the line."""
    with pytest.raises(kind, match=match) as caught:
        read(path)
    line = str(caught.value)
    assert len(line) <= 300
    assert line.isprintable()
    assert path.name in line
    return line


TEXTS = [(".pdb", PDB), (".cif", CIF), (".pqr", PQR), (".gro", GRO), (".psf", PSF), (".prmtop", PRMTOP),
         (".rst7", RST7)]


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
    refused(path, f"line [0-9]+: '.*' is no record, and would be {name} without")


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
    (".pdb", PDB, "ALA A   1", "ALA A  _1", "columns 23-27 hold no residue number"),
    (".pqr", PQR, " A 1 ", " A 99999999999999999999 ", "residue number 9+ is too large"),
    (".pqr", PQR, "-0.4700", "-0_4700", "line 3"),
    (".cif", CIF, "  1 ALA  A N ", "  99999999999999999999 ALA  A N ", "residue number '9+' in _atom_site"),
    (".gro", GRO, "   11", "    ²", "line 2 must be the number of atoms"),
    (".gro", GRO, "\n    1ALA", "\n  1_0ALA", "line 3: columns 1-5 hold no residue number"),
    (".gro", GRO, "2.00000", "-2.0000", "lengths of the box must be positive"),
    (".psf", PSF, FIRST, "-0_470000", "charge '-0_470000' is not a number"),
    (".psf", PSF, "14.0070", "    nan", "line 7: the mass nan is none"),
    (".psf", PSF, "14.0070", "-14.007", "line 7: the mass -14.007 is none"),
    (".prmtop", PRMTOP, "1.20100000E+01", "           nan", "section MASS .* masses that are none"),
    (".prmtop", PRMTOP, "1.20100000E+01", "1_2.100000E+01", "section MASS .* not a number"),
    (".rst7", RST7, "    11", "     ²", "second line does not begin with the number"),
    (".dx", DX, "counts 2", "counts 1_2", "line [0-9]+: 'object 1"), (".dx", DX, "rank 0", "rank 1", "holds vectors"),
    (".dx", DX, "rank 0 items", "items 24 rank", "holds vectors"),
    (".dx", DX, "temperature: 298.15", "temperature: inf", "its header states temperature: inf; correct"),
    (".dx", DX, "temperature: 298.15", "temperature: 0", "its header states temperature: 0; correct"),
    (".dx", DX, "dielectric: 1", "dielectric: warm", "its header states dielectric: warm; correct"),
    (".dx", DX, "error: 1e-05", "error: -1", "its header states error: -1; correct"),
    (".dx", SEEDS[".dx.gz"] and seeds.APBS, "T=300K", "T=0 K", "its header states temperature: 0; correct"),
    (".cube", CUBE, "\n    3 ", "\n   -3 ", "counts of its axes .* differ in sign"),
    (".cube", CUBE, "\n    1 ", "\n    ² ", "line 3: a whole number and three coordinates"),
    # what ended in a traceback
    (".pdb", PDB, PDB[PDB.index("ATOM") + 30 :][:8], "\x80\x80\x80 1.00", "line 3: columns 31-54"),
    (".cif", CIF, "_atom_site.id\n", "_atom_site.id\n_cell.volume\n", "not a valid mmCIF|mixed|loop"),
    (".prmtop", PRMTOP, "NAME\n%FORMAT(20a4)", "NAME\n%FORMAT(0a4)", "unknown format .0a4"),
    (".prmtop", PRMTOP, "NAME\n%FORMAT(20a4)", "NAME\n%FORMAT(20a9223372036854775807)", "unknown format"),
    (".prmtop", PRMTOP, "      11       0", "999999999999999999       0", "section POINTERS|holds"),
    (".psf", PSF, "      11 !NATOM", "9" * 30 + " !NATOM", "begins no PSF section|no atom list|NATOM"),
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
    monkeypatch.setattr("vmdpotential.io.pdb.read_pdb", fail)
    monkeypatch.setattr("vmdpotential.io.dx.read_dx", fail)
    for path in (tmp_path / "a.pdb", tmp_path / "a.dx"):
        line = refused(path, rf"cannot be read \({type(error).__name__}: .*; correct it, write it again")
        assert "Traceback" not in line


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_keeps_its_meaning(tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    (tmp_path / "a.pdb").write_text(PDB)
    monkeypatch.setattr("vmdpotential.io.pdb.read_pdb", fail)
    with pytest.raises(error):
        read_structure(tmp_path / "a.pdb")


# ---- archives of NumPy


def archive(tmp_path, method=zipfile.ZIP_DEFLATED, **changed):
    """Write a map's archive with other entries, as bytes of .npy files."""
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(io.BytesIO(NPZ)) as good, zipfile.ZipFile(path, "w", method) as bad:
        for name in good.namelist():
            bad.writestr(name, changed.get(name.removesuffix(".npy"), good.read(name)))
    return path


def npy(header, body=b""):
    text_ = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text_)) + text_ + body


@pytest.mark.parametrize("header", [
    "((((", "{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000000000000,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (9999, 9999, 9999), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1, 1, 1), }", "{'descr': '<f4'}",
])
def test_headers_of_arrays(tmp_path, header):
    refused(archive(tmp_path, values=npy(header, b"\0" * 64)), "the NumPy archive is damaged")


def test_text_that_is_none(tmp_path):
    header = "{'descr': '<U2', 'fortran_order': False, 'shape': (), }"
    refused(archive(tmp_path, unit=npy(header, b"\xff" * 8)), "no such letters")
    refused(archive(tmp_path, temperature=npy(header, "0".encode("utf-32-le") + b"\0" * 4)), "states temperature: 0")


def test_archives_whose_header_says_how_much_memory_unpacking_takes(tmp_path):
    assert read(archive(tmp_path)).unit == "kT/e"
    refused(archive(tmp_path, zipfile.ZIP_LZMA), "is compressed as NumPy never does; write it again")


def test_an_archive_that_is_encrypted(tmp_path):
    path = tmp_path / "a.npz"
    data = bytearray(NPZ)
    at = data.index(b"PK\1\2")
    data[at + 8] |= 1
    path.write_bytes(data)
    refused(path, "damaged .*encrypted")


# ---- sizes: nothing is believed, and nothing is unpacked that does not fit


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "4M")


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize(("name", "start", "unit"), [
    ("a.pdb.gz", PDB, b" "), ("a.pdb.bz2", PDB, b"\n"), ("a.cif.gz", CIF, b"#"), ("a.gro.gz", GRO, b"\n"),
    ("a.psf.gz", PSF, b" "), ("a.dx.gz", "", b"#"), ("a.dx.gz", "#\n", b"#\n"), ("a.dx.gz", "", b"\n"),
    ("a.dx.gz", DX[: DX.index("follows") + 8], b"0 "), ("a.cube.gz", CUBE, b"0 "), ("a.mrc.gz", "", b"\0"),
])
def test_bombs(tmp_path, name, start, unit, monkeypatch):
    """64 MB each; the reading stops before."""
    pack = bz2.compress if name.endswith("2") else gzip.compress
    path = tmp_path / name
    path.write_bytes(pack(start.encode()) + pack(unit * (2**20 // len(unit))) * 64)
    taken = []
    for module, kind in ((gzip, "GzipFile"), (bz2, "BZ2File")):
        class Counting(getattr(module, kind)):
            def read(self, size=-1):
                taken.append(len(data := super().read(size)))
                return data

        monkeypatch.setattr(module, kind, Counting)
    with pytest.raises(VmdpotentialError) as caught:
        (read_map if ".dx" in name or ".cube" in name or ".mrc" in name else read)(path)
    line = str(caught.value)
    assert path.name in line
    assert len(line) <= 300
    assert sum(taken) < 2**25


@pytest.mark.usefixtures("little")
def test_a_large_file_is_refused_with_its_bytes(tmp_path):
    path = tmp_path / "a.pdb"
    path.write_text(PDB * 5000)
    refused(path, r"^reading .* needs .*B of memory, 4 MB are free; read a smaller file", MemoryPlanError)
    path = tmp_path / "a.mrc"
    header = bytearray(MRC[:1024])
    header[:12] = struct.pack("<3i", 100, 100, 100)
    path.write_bytes(header + bytes(4_000_000 + len(MRC) - 1024 - 96))
    refused(path, "needs .* of memory, 4 MB are free", MemoryPlanError)


def test_a_binary_map_that_promises_much(tmp_path):
    path = tmp_path / "a.dx"
    content = seeds.APBS.replace("counts 2 2 2", "counts 900 900 900")
    path.write_text(content.replace("items 8 data", "items 729000000 binary data"))
    refused(path, "ends after [0-9]+ of 729,000,000 values")


# ---- MRC of either byte order


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("mode", [0, 1, 2, 6])
def test_maps_of_either_byte_order(tmp_path, order, mode):
    words = np.frombuffer(MRC[:1024], "<i4").astype(order + "i4")
    words[3], words[23], words[52] = mode, 0, words[52].byteswap() if order == ">" else words[52]
    values = np.arange(24).reshape(4, 3, 2).astype(order + {0: "i1", 1: "i2", 2: "f4", 6: "u2"}[mode])
    raw = bytearray(words.tobytes())
    raw[208:212] = b"MAP "
    (tmp_path / "a.mrc").write_bytes(raw + values.tobytes())
    grid = read_map(tmp_path / "a.mrc")
    np.testing.assert_array_equal(grid.values, np.arange(24).reshape(4, 3, 2).transpose(2, 1, 0))
    np.testing.assert_allclose(grid.lattice.spacing, 0.5)


# ---- trajectories whose numbers a library believes


@pytest.mark.parametrize(("suffix", "word", "value"), [
    (".xtc", 13, 10**9), (".xtc", 21, 0x10001D), (".xtc", 22, 10**9), (".xtc", 22, -1), (".xtc", 15, 2**31 - 1),
    (".trr", 13, -1), (".trr", 13, 12), (".trr", 8, 10**9), (".trr", 2, 2**30),
])
def test_numbers_of_trajectories(tmp_path, suffix, word, value):
    pytest.importorskip("MDAnalysis")
    data = SEEDS[suffix]
    path = tmp_path / f"a{suffix}"
    path.write_bytes(data)
    assert len(read(path)) == len(seeds.NAMES)
    path.write_bytes(data[: 4 * word] + struct.pack(">i", value) + data[4 * word + 4 :])
    refused(path, "damaged or cut short")


def test_packed_coordinates_that_lead_astray(tmp_path):
    """Fewer bits than the atoms take."""
    pytest.importorskip("MDAnalysis")
    data = SEEDS[".xtc"]
    path = tmp_path / "a.xtc"
    path.write_bytes(data[:88] + struct.pack(">i", 4) + data[92:96])
    refused(path, "is damaged")


def test_an_xtc_of_the_kind_for_very_many_atoms(tmp_path):
    pytest.importorskip("MDAnalysis")
    path = tmp_path / "a.xtc"
    path.write_bytes(struct.pack(">i", 2023) + SEEDS[".xtc"][4:])
    refused(path, "is an XTC file of the kind for more than 298 million atoms, which is not read; write fewer atoms")


def test_compressed_files_of_mdanalysis_are_to_be_unpacked(tmp_path):
    pytest.importorskip("MDAnalysis")
    path = tmp_path / "a.mol2.gz"
    path.write_bytes(gzip.compress(seeds.MOL2.encode()))
    refused(path, "is read from a plain file only; unpack it first")


# ---- streams


@pytest.fixture
def stdin(monkeypatch):
    """Return a function that puts bytes on standard input."""
    def put(data):
        stream = io.TextIOWrapper(io.BytesIO(data))
        monkeypatch.setattr(sys, "stdin", stream)

    return put


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_standard_input(tmp_path, stdin, pack):
    for suffix, content in [*TEXTS[:4], (".dx", DX), (".cube", CUBE), (".mrc", MRC), (".npz", NPZ)]:
        raw = content if isinstance(content, bytes) else content.encode()
        path = tmp_path / f"a{suffix}"
        path.write_bytes(raw)
        stdin(pack(raw))
        found = (read_map if suffix in (".dx", ".cube", ".mrc", ".npz") else read_structure)("-")
        same(found, read(path))
    for suffix, content in ((".rst7", SEEDS[".rst7"]), (".nc", SEEDS[".nc"])):
        (tmp_path / f"a{suffix}").write_bytes(content)
        stdin(pack(content))
        same(read_structure("-", tmp_path / "names.psf") if read(tmp_path / f"a{suffix}") else None,
             read(tmp_path / f"a{suffix}"))
    stdin(pack(PSF.encode()))
    (tmp_path / "a.pdb").write_text(PDB)
    assert read_structure(tmp_path / "a.pdb", "-").sources == (str(tmp_path / "a.pdb"), "standard input")


def test_standard_input_that_has_nothing(stdin, monkeypatch):
    stdin(b"")
    with pytest.raises(InputError, match=r"^standard input: is empty; send a file to it, and name it once"):
        read_structure("-")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(), isatty=lambda: True))
    with pytest.raises(InputError, match=r"^standard input: nothing is sent to it; send a file"):
        read_map("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match=r"^standard input: nothing is sent to it"):
        read_map("-")
    stdin(b"no format\n" * 9)
    with pytest.raises(InputError, match=r"^standard input: its format is not recognised"):
        read_structure("-")


def test_streams_are_bounded(stdin, monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1M")
    stdin(b" " * 10_000_000)
    with pytest.raises(MemoryPlanError, match="reading standard input needs"):
        read_structure("-")
    with pytest.raises(MemoryPlanError, match="reading /dev/zero needs"):
        read_map("/dev/zero")


def through(fifo, data):
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(data,), daemon=True)
    writer.start()
    return writer


def test_pipes_are_read_from_their_start(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    grid = seeds.grid()
    write_map(grid, "good.dx")
    writers = [through(tmp_path / "pipe", Path("good.dx").read_bytes()), through(tmp_path / "pipe.pdb", PDB.encode())]
    assert cli.main(["slice", "pipe", "--structure", "pipe.pdb", "-o", "a.svg"]) == 0, capsys.readouterr()
    for writer in writers:
        writer.join(10)
    Path("pipe").unlink()
    writer = through(tmp_path / "pipe", Path("good.dx").read_bytes()[:-300])
    assert cli.main(["slice", "pipe", "-o", "b.svg"]) == 2
    writer.join(10)
    assert "pipe: line " in capsys.readouterr().err


def test_the_shell_reads_standard_input(tmp_path, monkeypatch, capsys, stdin):
    monkeypatch.chdir(tmp_path)
    stdin(b"ATOM 1 C X 1 0.0 0.0 0.0 1.0 1.0\n")
    assert cli.main(["map", "-", "-o", "m.dx", "--padding", "1"]) == 0, capsys.readouterr()
    assert read_map("m.dx").provenance.inputs == ("standard input",)
    stdin(Path("m.dx").read_bytes())
    assert cli.main(["slice", "-", "-o", "f.svg"]) == 0, capsys.readouterr()
    stdin(b"")
    assert cli.main(["slice", "-", "-o", "g.svg"]) == 2
    assert "standard input: is empty" in capsys.readouterr().err


# ---- names and values


def test_mathematics_and_odd_bytes_in_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text_ = DX.replace("unit: kT/e", "unit: $\\foo$ %FF%0A" + "x" * 500).replace("quantity: electrostatic potential",
                                                                            "quantity: $\\frac{$")
    for name in ("$a$.dx", "b.dx", os.fsdecode(b"c\xff.dx")):
        Path(name).write_text(text_)
    names = ["$a$.dx", "b.dx", os.fsdecode(b"c\xff.dx")]
    for options in (["b.dx"], ["b.dx", "--profile", "z"], [*names, "--profile", "x"]):
        assert cli.main(["slice", *options, "-o", "a.png", "--force", "--dpi", "50"]) == 0, capsys.readouterr()


@pytest.mark.parametrize("command", [
    "map in.pqr -o m.dx --topology=", "map in.pqr -o m.dx --field=", "map in.pqr -o m.dx --set=", "map in.pqr -o=",
    "map in.pqr -o m.dx --atoms=", "map in.pqr -o m.dx --cutoff=", "ionize in.pqr --dry-run --keep=",
    "ionize in.pqr --dry-run --ions=", "ionize in.pqr --dry-run --table=", "ionize in.pqr --dry-run --seed=",
    "ionize in.pqr -o=", "slice m.dx -o f.png --structure=", "slice m.dx -o f.png --plane=",
    "slice m.dx -o f.png --range=", "view in.pqr -o p.html --ions=", "view in.pqr -o p.html --title=",
])
def test_an_empty_value_is_not_none(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.pqr").write_text("ATOM 1 C X 1 0.0 0.0 0.0 1.0 1.0\n")
    assert cli.main(command.split()) == 2
    line = capsys.readouterr().err
    assert "is empty; give a value, or leave it out" in line
    assert command.split()[-1].rstrip("=").strip("-").replace("o", "output", command.endswith(" -o=")) in line
    assert os.listdir(tmp_path) == ["in.pqr"]


def test_an_empty_value_in_python():
    from vmdpotential import place_ions
    from vmdpotential.molecule.selection import select

    structure = seeds.system()
    for call in (lambda: place_ions(structure, keep="", ions={"SOD": 1}), lambda: select(structure, "")):
        with pytest.raises(UsageError, match="is empty"):
            call()


def test_the_helpers_of_streams(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert text.held(path) is not None
    assert not isinstance(text.held(path), text.Held)
    with text.opened(path) as file:
        assert text.take(file, path, count=2) == b"ab"
    assert text.held("nowhere") == Path("nowhere")
    with pytest.raises(InputError, match="is no name of a file"):
        read_structure("a\0b.pdb")
