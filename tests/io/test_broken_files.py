"""Files that are broken, damaged or unusual: read right, or refused in one line that names the file and the place."""

import bz2
import contextlib
import gzip
import io
import os
import struct
import zipfile

import numpy as np
import pytest
from damaged import CIF, CUBE, DX, GRO, MRC, NPZ, PDB, PQR, PRMTOP, PSF, RST7, SEEDS, TEXTS, read, refused, same
from fuzz import seeds
from map_files import autodock_text, cube_text, dx_text
from messages import naming
from structure_files import AMBER, MDA, SMALL, TOOLS, small_cif

from vmdpotential import read_map, read_structure, registry
from vmdpotential.errors import InputError, MemoryPlanError, one_line
from vmdpotential.io import read_topology
from vmdpotential.io.files.numbers import parse_real, parse_reals, parse_whole, residue_number
from vmdpotential.io.maps.mapformat import MapFormat
from vmdpotential.io.trajectories.frames import Trajectory
from vmdpotential.plugins.formats.amber_coordinates import read_restart

# ---- text that is unusual ------------------------------------------------------------------------------


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
        refused(path, "line 1 ")
    else:
        same(read(path), plain)
        path.write_bytes(content.replace("\n", "\r\r\n").encode())
        same(read(path), plain)
    path.write_bytes(content.encode("utf-16"))
    refused(path)
    path.write_bytes(content.replace(" ", "\0", 1).encode())
    refused(path)


@pytest.mark.parametrize(("suffix", "content", "old", "new", "name"), [
    (".pdb", PDB, "CRYST1", " CRYST1", "CRYST1"), (".pdb", PDB, "CRYST1", "CRYSt1", "CRYST1"),
    (".pdb", PDB, "ATOM ", "\xef\xbb\xbfATOM ", "ATOM"), (".pdb", PDB, "HETATM", "\thetatm", "HETATM"),
    (".pdb", PDB, "HETATM", "endmdl\nHETATM", "ENDMDL"), (".pdb", PDB, "HETATM", "model  2\nHETATM", "MODEL"),
    (".pqr", PQR, "CRYST1", "cryst1", "CRYST1"), (".pqr", PQR, "HETATM", " end\nHETATM", "END"),
])
def test_what_would_be_a_record_but_for_blanks_or_case(tmp_path, suffix, content, old, new, name):
    path = tmp_path / f"a{suffix}"
    path.write_text(content.replace(old, new, 1), encoding="latin-1")
    refused(path, f"line [0-9]+: .* {name} ")


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


@pytest.mark.parametrize("bad", ["1_0", "²", "١", "", "1.0", "1\xa0", "9" * 19, "0x10", "--1"])
def test_what_is_no_number(bad):
    assert [parse_whole(good) for good in ("-5", "+7", "007", " 12 ", "9" * 18)] == [-5, 7, 7, 12, int("9" * 18)]
    with pytest.raises(ValueError):
        parse_whole(bad)
    if bad not in ("1.0", "9" * 19):
        with pytest.raises(ValueError):
            parse_real(bad)
        with pytest.raises(ValueError):
            parse_reals(["1", bad])
    with pytest.raises(ValueError):
        residue_number("2147483648")


# ---- text that is broken -------------------------------------------------------------------------------

CHARGE, X = "-0.470000", PDB[PDB.index("ATOM") + 30 :][:8]
ACE, ALA3 = (AMBER / "ace_mbondi3.parm7").read_text(), (MDA / "parmed_ala3.psf").read_text()
SKEW = "delta 0.5 0 0\ndelta 0.25 0.5 0\ndelta 0 0 0.5\n"
RST7_X = RST7.splitlines()[2][:12]
REPLACED = [
    (".pdb", PDB, X, "   1_0.0", "line 3: columns 31-54"), (".pdb", PDB, X, "\x80\x80\x80 1.00", "line 3: columns"),
    (".pdb", PDB, X, "     nan", "line 3: columns 31-54"), (".pdb", PDB, "20.000", "2_0.00", "line .: CRYST1"),
    (".pdb", PDB, X, "    1e20", r"atom 1 \(ALA1:N\)"),
    (".pdb", PDB, " 80.00", "300.00", "line 2: .*cell"), (".pdb", PDB, "20.000", "-20.00", "line 2: .*cell"),
    (".pdb", PDB, "ALA A   1", "ALA A  _1", "columns 23-27"), (".pdb", PDB, "HETATM", "END\nHETATM", "line 8 is END"),
    (".pqr", PQR, " A 1 ", " A 99999999999999999999 ", "residue number 9+"),
    (".pqr", PQR, "-0.4700", "-0_470", "line 3"), (".pqr", PQR, "-0.4700", "    nan", "charge"),
    (".cif", CIF, "  1 ALA  A N ", "  99999999999999999999 ALA  A N ", "residue number '9+'"),
    (".cif", CIF, "_atom_site.id\n", "_atom_site.id\n_cell.volume\n", "mmCIF|mixed|loop"),
    (".gro", GRO, "   11", "    ²", "line 2"), (".gro", GRO, "   11", "   12", "states 12 atoms"),
    (".gro", GRO, "\n    1ALA", "\n  1_0ALA", "line 3: columns 1-5"), (".gro", GRO, "2.00000", "-2.0000", "box"),
    (".gro", GRO, GRO.splitlines()[3][20:28], "   0,626", "line 4"), (".gro", GRO, "2.00000", "   a   ", "box"),
    (".psf", PSF, CHARGE, "-0_470000", "line 7.*'-0_470000'"), (".psf", PSF, CHARGE, "      nan", r"atom 1 \(ALA1:N\)"),
    (".psf", PSF, "14.0070", "    nan", "line 7: the mass"), (".psf", PSF, "14.0070", "-14.007", "line 7: the mass"),
    (".psf", PSF, "      11 !NATOM", "9" * 30 + " !NATOM", "NATOM|PSF section|no atom list"),
    (".psf", ALA3, "PSF CMAP", "PDB CMAP", "not a PSF"), (".psf", ALA3, "!NATOM", "!NOTHING", "no atom list"),
    (".psf", ALA3, "      33 !NATOM", "      34 !NATOM", "line 7 states 34 atoms"),
    (".psf", ALA3, "      33 !NATOM", "      32 !NATOM", "line 7 states 32 atoms"),
    (".psf", ALA3, "  -0.300000       14.0070", "  -0.300000  14.0 14.0070", "line 8"),
    (".psf", ALA3, "32 !NBOND", "33 !NBOND", "!NBOND .line 42. "),
    (".psf", ALA3, "!NTHETA", "!NBOND", "!NBOND .*twice"),
    (".psf", PSF, "       1       2       2", "     999       2       2", "atom 999"),
    (".prmtop", PRMTOP, "1.20100000E+01", "           nan", "section MASS"),
    (".prmtop", PRMTOP, "1.20100000E+01", "1_2.100000E+01", "section MASS"),
    (".prmtop", PRMTOP, "NAME\n%FORMAT(20a4)", "NAME\n%FORMAT(0a4)", "0a4"),
    (".prmtop", PRMTOP, "NAME\n%FORMAT(20a4)", "NAME\n%FORMAT(20a9223372036854775807)", "format"),
    (".prmtop", PRMTOP, "      11       0", "999999999999999999       0", "section POINTERS|holds"),
    (".prmtop", ACE, "%FLAG MASS", "%FLAG MESS", "section MASS"),
    (".prmtop", ACE, "  2.04636429E+00 -6.67300626E+00", "  2.04636429E+00", "CHARGE .line 14. "),
    (".prmtop", ACE, "HH31CH3 HH32HH33C   O   ", "HH31CH3 HH32HH33", "section ATOM_NAME"),
    (".prmtop", ACE, "       6       4       3", "      -6       4       3", "POINTERS"),
    (".prmtop", ACE, "%FLAG MASS", "%FLAG AMOEBA_FORCEFIELD\n%FORMAT(i5)\n1\n%FLAG MASS", "AMOEBA"),
    (".rst7", RST7, "    11", "     ²", "second line"), (".rst7", RST7, "    11", "     0", "second line"),
    (".rst7", RST7, "    11", "    15", "but 15 atoms need"), (".rst7", RST7, RST7_X, "*" * 12, "number 1 .atom 1."),
    (".rst7", RST7, RST7_X, "         NaN", "atom 1"), (".rst7", RST7, RST7_X, "    12.3x456", "number 1 .atom 1."),
    (".dx", DX, "counts 2", "counts 1_2", "line [0-9]+: 'object 1"), (".dx", DX, "rank 0", "rank 1", "vectors"),
    (".dx", DX, "rank 0 items", "items 24 rank", "vectors"),
    (".dx", DX, "temperature: 298.15", "temperature: inf", "temperature: inf"),
    (".dx", DX, "dielectric: 1", "dielectric: warm", "dielectric: warm"),
    (".dx", DX, "error: 1e-05", "error: -1", "error: -1"), (".dx", seeds.APBS, "T=300K", "T=0 K", "temperature: 0"),
    (".cube", CUBE, "\n    3 ", "\n   -3 ", "axes"), (".cube", CUBE, "\n    1 ", "\n    ² ", "line 3"),
]
WRITTEN = [
    ("a.pdb", "REMARK nothing\nEND\n", "ATOM"), ("plain.pdb.gz", PDB, "gzip"), ("a.pdb", "\n \n", "empty"),
    ("cut.pdb.gz", gzip.compress(PDB.encode() * 50, mtime=0)[:90], "gzip"),
    ("cut.pdb.bz2", bz2.compress(PDB.encode() * 50)[:90], "bzip2"),
    ("a.cif", "data_x\n_cell.length_a 10\n", "no _atom_site"), ("a.cif", "hello\n", "mmCIF"),
    ("a.cif", "data_x\nloop_\n_atom_site.id\n_atom_site.Cartn_x\n1 2 3\n", "mmCIF"),
    ("a.cif", small_cif({**SMALL, "Cartn_y": ["1", "one"]}), "row 2 of _atom_site: Cartn_y"),
    ("a.cif", small_cif({**SMALL, "Cartn_y": ["1", "?"]}), "atom 2 "),
    ("a.cif", small_cif({**SMALL, "auth_seq_id": ["1", "x"]}), "residue number 'x'"),
    ("a.gro", "title\n0\n 1 1 1\n", "no atoms"), ("a.gro", PDB, "line 2"), ("a.cif", PDB, "mmCIF|PDB"),
    ("a.pqr", "ATOM 1 N ALA 1 1.0 2.0 3.0 0.1\n", "line 1 is not"), ("a.pqr", "REMARK\n", "no ATOM"),
    ("unknown", "hello\n", "format"),
    ("a.dx", "hello\n", "line 1"), ("a.dx", dx_text(deltas=SKEW), "x, y and z"),
    ("a.dx", dx_text(deltas="delta nan 0 0\ndelta 0 0.5 0\ndelta 0 0 0.5\n"), "not a number"),
    ("a.dx", dx_text(deltas="delta 0.5 0 0\n"), "three deltas"),
    ("a.dx", dx_text(values="1 2 3\n4 5 6\n7\n", tail='attribute "dep"\n'), "7 of 8 values"),
    ("a.dx", dx_text(values="1 2 3\n4 5 6\n7 8 9\n"), "more than the 8 values"),
    ("a.dx", dx_text(values="1 2 3\n4 x 6\n7 8\n"), "line 9: 'x'"),
    ("a.dx", dx_text(values="1 2 3\n4 5 6\n7 nan\n"), "line 10: 'nan'"),
    ("a.dx", dx_text(values="1 2 3\n4 1e300 6\n7 8\n"), "line 9: '1e300'"),
    ("a.dx", dx_text(items="9"), "9 items"), ("a.dx", dx_text(counts="2 2"), "counts"),
    ("a.dx", dx_text(counts="0 2 2"), "counts"), ("a.dx", dx_text(data="data file other.bin"), "another file"),
    ("a.dx", dx_text(counts="100000 100000 100000", items="1000000000000000"), "8 of"),
    ("a.dx", dx_text(kind="float", data="binary data follows", values="abc"), "0 of 8 values"),
    ("a.dx", seeds.APBS.replace("2 2 2", "900 900 900").replace("items 8", "items 729000000 binary"), "of 729,000,000"),
    ("a.dx.gz", "\x1f", "gzip"), ("a.cube", "title\n", "line 2"), ("a.cube", "title\ncomment\nx 1 2 3\n", "line 3"),
    ("a.cube", cube_text(values="1 2 3"), "3 of 8 values"), ("a.cube", cube_text(values="1 2 3 4 5 6 7 8 9"), "the 8"),
    ("a.cube", cube_text(values="1 2 3 4 5 6 7 *****"), "line 8"), ("a.cube", cube_text(extra=" 2"), "2 orbitals"),
    ("a.cube", cube_text(natoms="-1", atom="8 8.0 0 0 0\n 2 27 28\n"), "2 orbitals"),
    ("a.cube", cube_text(counts=(0, 2, 2)), "line 4"),
    ("a.cube", cube_text(steps=("0.5 0 0", "0.1 0.5 0", "0 0 0.5")), "along"),
    ("a.map", autodock_text("1 2 3"), "3 of 27 values"), ("a.map", autodock_text("1 " * 28), "the 27 values"),
    ("a.map", autodock_text("x " * 27), "line 7: 'x'"), ("a.map", autodock_text("1 " * 27, "2 2"), "line 5"),
    ("a.map", autodock_text("1 " * 27, "2 2 -2"), "impossible"), ("a.xyz", "words", "map format"),
    ("a.map", "GRID_PARAMETER_FILE a\nGRID_DATA_FILE b\n", "line 3"), ("a.npz", "", "NumPy"),
]


@pytest.mark.parametrize(("suffix", "content", "old", "new", "match"), REPLACED,
                         ids=[f"{case[0]}-{ascii(case[3])[1:20]}" for case in REPLACED])
def test_text_with_one_change(tmp_path, suffix, content, old, new, match):
    assert old in content
    path = tmp_path / f"a{suffix}"
    path.write_text(content.replace(old, new, 1), encoding="latin-1" if "\x80" in new else "utf-8")
    refused(path, match)


@pytest.mark.parametrize(("name", "content", "match"), WRITTEN)
def test_broken_text(tmp_path, name, content, match):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    refused(path, match)


@pytest.mark.parametrize("name", ["ace_mbondi3.error1.parm7", "ace_mbondi3.error4.parm7",
                                  "ache_chainid.error5.prmtop.bz2", "parmed_ala2_solv.rst7"])
def test_broken_prmtops_of_others(name):
    with pytest.raises(InputError, match=name):
        read_topology(AMBER / name)


@pytest.mark.parametrize(("path", "step"), [(AMBER / "ace_mbondi3.parm7", 101), (MDA / "parmed_ala3.psf", 97)])
def test_topologies_that_are_cut_anywhere(tmp_path, path, step):
    data, complete = path.read_bytes(), read_topology(path)
    cut = tmp_path / f"cut{path.suffix}"
    read = []
    for stop in range(0, len(data), step):
        cut.write_bytes(data[:stop])
        with contextlib.suppress(InputError):
            np.testing.assert_array_equal(read_topology(cut).charges, complete.charges)
            read.append(stop)
    assert len(read) < 3  # cut behind all that is needed


def test_messages_are_short_and_show_what_cannot_be_printed(tmp_path):
    path = tmp_path / "a.pqr"
    path.write_bytes(b"ATOM 1 N ALA \x1b[31m" + b"x" * 5000 + b"\n")
    assert r"\x1b[31m" in refused(path, "line 1 is not")
    deep = tmp_path.joinpath(*["folder" * 10] * 5)
    deep.mkdir(parents=True)
    (deep / "a.pqr").write_bytes(path.read_bytes())
    refused(deep / "a.pqr", "line 1 is not")
    assert one_line("a\nb\0\udcff\u2028") == r"a\nb\x00\xff\u2028"
    odd = tmp_path / os.fsdecode(b"odd\xff\n.pdb")
    odd.write_text("nothing")
    with naming(InputError, "odd\\xff\\n.pdb: "):
        read_structure(odd)


@pytest.mark.parametrize("error", [RecursionError("deep"), SystemError("x\ny" * 999), KeyError(1), MemoryError,
                                   KeyboardInterrupt])
def test_whatever_a_reader_raises_names_the_file(tmp_path, monkeypatch, error):
    """But memory that is missing, and an interrupt, keep their meaning."""
    def fail(*_):
        raise error

    (tmp_path / "a.pdb").write_text(PDB)
    (tmp_path / "a.dx").write_text(DX)
    monkeypatch.setitem(registry._entries["structure_reader"], "pdb", fail)
    monkeypatch.setitem(registry._entries["map_format"], ".dx", MapFormat(fail, fail))
    for path in (tmp_path / "a.pdb", tmp_path / "a.dx"):
        if isinstance(error, Exception):
            refused(path, type(error).__name__)
        else:
            with pytest.raises(error):
                read(path)


# ---- binary files --------------------------------------------------------------------------------------


def put(offset, form, *values):
    return lambda raw: raw[:offset] + struct.pack(form, *values) + raw[offset + struct.calcsize(form) :]


@pytest.mark.parametrize(("suffix", "change", "match"), [
    (".mrc", lambda raw: raw[:-1], "truncated"), (".mrc", lambda raw: raw[:500], "no 'MAP'"),
    (".mrc", lambda raw: raw + b"x", "header"), (".mrc", put(12, "<i", 4), "mode 4"),
    (".mrc", put(0, "<i", 0), "header"), (".mrc", put(0, "<i", 2000000000), "truncated"),
    (".mrc", put(60, "<f", 120.0), "90 90 120"), (".mrc", put(40, "<f", 0.0), "no cell"),
    (".mrc", put(64, "<i", 3), "axes"), (".mrc", put(92, "<i", -5), "fit|truncated"),
    (".mrc", lambda raw: raw[:-4] + struct.pack("<f", float("nan")), r"node 1 2 3\) is nan"),
    (".npz", lambda raw: raw[:-30], "truncated"), (".npz", lambda raw: raw.replace(b"NUMPY", b"NUMPX", 1), "damaged"),
    (".dx.gz", lambda raw: raw[:-20], "cut short"),
    (".dx.gz", lambda raw: raw[:200] + b"\xff\xff\xff" + raw[203:], None),
])
def test_damaged_binary_maps(tmp_path, suffix, change, match):
    path = tmp_path / f"map{suffix}"
    path.write_bytes(change(SEEDS[suffix]))
    refused(path, match)


ZERO, ONE, CUBES = np.zeros(3), np.ones(3), np.zeros((2, 2, 2))


@pytest.mark.parametrize(("entries", "match"), [
    ({"origin": ZERO, "spacing": ONE}, "'values'"), (dict.fromkeys("xyz", CUBES), "field"),
    ({"values": CUBES[0], "origin": ZERO, "spacing": ONE}, "three axes"),
    ({"values": CUBES, "origin": ZERO, "spacing": ZERO}, "spacing="),
    ({"values": CUBES, "origin": np.zeros(2), "spacing": ONE}, "origin|three"),
    ({"values": CUBES + np.nan, "origin": ZERO, "spacing": ONE}, "is nan"),
    ({"values": np.array([None]), "origin": ZERO, "spacing": ONE}, "damaged"),
])
def test_npz_of_something_else(tmp_path, entries, match):
    np.savez(tmp_path / "map.npz", **entries)
    refused(tmp_path / "map.npz", match)


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
    "{'descr': '<f4', 'fortran_order': False, 'shape': (9999, 9999, 9999), }", "{'descr': '<f4'}",
])
def test_headers_of_arrays(tmp_path, header):
    refused(archive(tmp_path, values=npy(header, b"\0" * 64)), "the NumPy archive is damaged")


def test_archives_of_numpy(tmp_path):
    assert read(archive(tmp_path)).unit == "kT/e"
    refused(archive(tmp_path, zipfile.ZIP_LZMA), "compressed")  # whose header says how much memory unpacking takes
    header = "{'descr': '<U2', 'fortran_order': False, 'shape': (), }"
    refused(archive(tmp_path, unit=npy(header, b"\xff" * 8)), "Unicode")
    refused(archive(tmp_path, temperature=npy(header, "0".encode("utf-32-le") + b"\0" * 4)), "temperature: 0")
    data = bytearray(NPZ)
    data[data.index(b"PK\1\2") + 8] |= 1
    (tmp_path / "a.npz").write_bytes(data)
    refused(tmp_path / "a.npz", "encrypted")


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


@pytest.mark.parametrize(("suffix", "word", "value"), [
    (".xtc", 13, 10**9), (".xtc", 21, 0x10001D), (".xtc", 22, 10**9), (".xtc", 22, 4), (".xtc", 22, -1),
    (".xtc", 15, 2**31 - 1), (".xtc", 0, 2023), (".trr", 13, -1), (".trr", 13, 12), (".trr", 8, 10**9),
    (".trr", 2, 2**30), (".trr", 16, -1),
])
def test_numbers_of_trajectories_that_a_library_believes(tmp_path, suffix, word, value):
    """Among them fewer bits than the atoms take, and the kind of XTC for very many atoms."""
    pytest.importorskip("MDAnalysis")
    data = SEEDS[suffix]
    path = tmp_path / f"a{suffix}"
    path.write_bytes(data)
    assert len(read(path)) == len(seeds.NAMES)
    path.write_bytes(data[: 4 * word] + struct.pack(">i", value) + data[4 * word + 4 :])
    refused(path)


def test_coordinates_of_amber_that_are_none(tmp_path):
    topology = tmp_path / "names.psf"
    topology.write_text(PSF)
    with naming(InputError, "watbox216.crd: ", "cell"):  # angles in degrees of degrees
        read_structure(TOOLS / "waterbox" / "watbox216.crd", topology)
    with naming(InputError, "HDF5"):
        read_structure(TOOLS / "reporter-examples" / "alanine_dipeptide_legacy.nc", topology)
    for stop in (10, 200, len(SEEDS[".nc"]) // 2):
        (tmp_path / "cut.nc").write_bytes(SEEDS[".nc"][:stop])
        refused(tmp_path / "cut.nc")


def test_netcdf_records_by_another_name_are_no_atoms(tmp_path):
    """Coordinates of three dimensions, of which the first is not named frame, were read as those of one frame."""
    path = tmp_path / "a.nc"
    path.write_bytes(SEEDS[".nc"].replace(b"frame", b"frama"))
    with naming(InputError, "a.nc"):
        list(Trajectory(path, 11))


def test_a_netcdf_trajectory_without_atoms_in_its_records(tmp_path):
    path, data = tmp_path / "a.nc", SEEDS[".nc"]
    size = data.index(b"atom") + 4
    path.write_bytes(data[:size] + bytes(4) + data[size + 4 :])
    refused(path)
    with naming(InputError, "a.nc"):
        list(Trajectory(path, len(seeds.NAMES)))


def test_compressed_files_of_mdanalysis_are_to_be_unpacked(tmp_path):
    pytest.importorskip("MDAnalysis")
    path = tmp_path / "a.mol2.gz"
    path.write_bytes(gzip.compress(seeds.MOL2.encode()))
    refused(path, "unpack")


# ---- sizes that files state ----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "start", "unit"), [
    ("a.pdb.gz", PDB, b" "), ("a.pdb.bz2", PDB, b"\n"), ("a.cif.gz", CIF, b"#"), ("a.psf.gz", PSF, b" "),
    ("a.dx.gz", "", b"#"), ("a.dx.gz", "", b"\n"), ("a.dx.gz", DX[: DX.index("follows") + 8], b"0 "),
    ("a.cube.gz", CUBE, b"0 "), ("a.mrc.gz", "", b"\0"),
])
def test_reading_stops_before_a_small_file_unpacks_to_64_mb(tmp_path, name, start, unit, monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "4M")
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
    refused(path, kind=(InputError, MemoryPlanError))
    assert sum(taken) < 2**25


def test_a_large_file_is_refused_with_its_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "4M")
    path = tmp_path / "a.pdb"
    path.write_text(PDB * 5000)
    refused(path, "4 MB are free", MemoryPlanError)
    path = tmp_path / "a.mrc"
    path.write_bytes(struct.pack("<3i", 100, 100, 100) + MRC[12:1024] + bytes(4_000_000 + len(MRC) - 1024 - 96))
    refused(path, "4 MB are free", MemoryPlanError)


def test_velocities_beyond_the_range_of_numbers_are_ignored_with_one_warning(tmp_path, caplog):
    text, *_ = seeds.rst7().partition("  20.0000000  21")
    body = text.splitlines(keepends=True)[2:]
    (tmp_path / "a.rst7").write_text(text + "".join(body).replace(body[0][:12], "      1.e308", 1))
    assert read_restart(tmp_path / "a.rst7")[2] is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
