"""Maps in every format: read back by other programs, and by us from other programs."""

from __future__ import annotations

import gzip
import os
import struct
import warnings
from dataclasses import replace

import gemmi
import gridData
import mrcfile
import numpy as np
import pytest
from scipy import constants

from vmdpotential import progress
from vmdpotential.errors import InputError, OutputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.io import maps
from vmdpotential.io.maps import SUFFIXES, check_map_format, read_map, write_map

BOHR = constants.physical_constants["Bohr radius"][0] / constants.angstrom
# largest relative error that the digits of a format leave
DIGITS = {".dx": 6e-7, ".dx.gz": 6e-7, ".cube": 6e-6, ".cub": 6e-6}

PROVENANCE = Provenance(
    method="cutoff", interaction="shifted coulomb", boundary="periodic", cutoff=12.0, tolerance=1e-4,
    cell=(38.4265938, 0, 0, 19.1797637, 33.2590814, 0, -1e-6, -123.456789, 44.7598),
    precision="single", engine="cpu", atoms="solute", program="vmdpotential 0.1.0",
    inputs=("my protein; 100%.psf", "/a  long/folder, with 'quotes' and Ångström/" + "x" * 150 + ".pdb"),
)


def make(shape=(5, 6, 7), origin=(-3, 4, 7.5), spacing=(0.5, 0.75, 1.25), seed=1, **changes):
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 40
    settings = {"unit": "kT/e", "temperature": 298.15, "dielectric": 2.0, "provenance": PROVENANCE} | changes
    return Grid(Lattice(origin, spacing, shape), values, **settings)


def writable(suffix, **kwargs):
    # a .ccp4 file starts at whole spacings
    return make(**({"origin": (-3, 4.5, 7.5)} | kwargs if suffix == ".ccp4" else kwargs))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shape", [(5, 6, 7), (1, 6, 7), (5, 1, 1), (1, 1, 1), (2, 3, 13)])
def test_round_trip_keeps_values_lattice_unit_and_provenance(tmp_path, suffix, shape):
    grid = writable(suffix, shape=shape)
    path = tmp_path / f"a map{suffix}"
    write_map(grid, path)
    back = read_map(path)
    np.testing.assert_allclose(back.values, grid.values, rtol=DIGITS.get(suffix, 0))
    np.testing.assert_array_equal(back.lattice.origin, grid.lattice.origin)
    np.testing.assert_array_equal(back.lattice.spacing, grid.lattice.spacing)
    assert (back.unit, back.temperature, back.dielectric) == ("kT/e", 298.15, 2.0)
    assert back.provenance == PROVENANCE
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_uneven_spacing_survives_exactly(tmp_path, suffix):
    # 61.64472 A in 124 steps has no short decimal form
    grid = writable(suffix, spacing=61.64472315757705 / 124, origin=np.array([-7, 3, 11]) * 61.64472315757705 / 124)
    write_map(grid, tmp_path / f"map{suffix}")
    back = read_map(tmp_path / f"map{suffix}").lattice
    np.testing.assert_array_equal(back.spacing, grid.lattice.spacing)
    np.testing.assert_array_equal(back.origin, grid.lattice.origin)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_big_and_tiny_values(tmp_path, suffix):
    extremes = [0, -0.0, 1e-45, -1e-38, 3.4e38, -3.4e38, 1e-9, 123456.78]
    grid = writable(suffix, shape=(2, 2, 2)).with_values(np.array(extremes, np.float32).reshape(2, 2, 2))
    write_map(grid, tmp_path / f"map{suffix}")
    np.testing.assert_allclose(
        read_map(tmp_path / f"map{suffix}").values, grid.values, rtol=DIGITS.get(suffix, 0), atol=1e-44)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_many_blocks(tmp_path, suffix):
    """More values than are formatted at once, and a last line that is not full."""
    grid = writable(suffix, shape=(41, 53, 71))
    steps = []
    with progress.listening(lambda label, fraction: steps.append(fraction)):
        write_map(grid, tmp_path / f"map{suffix}")
        back = read_map(tmp_path / f"map{suffix}")
    np.testing.assert_allclose(back.values, grid.values, rtol=DIGITS.get(suffix, 0))
    assert suffix == ".npz" or max(steps) == 1.0


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_map_without_provenance(tmp_path, suffix):
    grid = writable(suffix, unit="", temperature=None, dielectric=None, provenance=Provenance())
    write_map(grid, tmp_path / f"map{suffix}")
    back = read_map(tmp_path / f"map{suffix}")
    assert (back.unit, back.temperature, back.provenance) == ("", None, Provenance())


@pytest.mark.parametrize("text", ["1 2 3", "1 0 0 0 1 0 0 0 x", "1 0 0 0 1 0 0 0 nan", "1 0 0 0 1 0 1 1 0", "9"])
def test_a_cell_that_makes_no_sense_is_not_known(tmp_path, text):
    path = tmp_path / "map.dx"
    write_map(make(), path)
    lines = path.read_text().splitlines(keepends=True)
    changed = [f"# cell: {text}\n" if line.startswith("# cell: ") else line for line in lines]
    assert changed != lines
    path.write_text("".join(changed))
    assert read_map(path).provenance == replace(PROVENANCE, cell=None)


# --- other programs read what we write -----------------------------------------------------------


@pytest.mark.parametrize("suffix", [".dx", ".cube"])
def test_the_far_corner_is_right_for_other_programs(tmp_path, suffix):
    """After the last of 300 steps of no round length; six decimals were 1e-4 A off."""
    grid = make(shape=(300, 2, 3), origin=(-70.123456789, 1 / 3, 1e-7), spacing=(61.64472315757705 / 124, 1 / 3, 2 / 3))
    write_map(grid, tmp_path / f"map{suffix}")
    if suffix == ".cube":
        _, _, origin, steps, _ = plain_cube(tmp_path / "map.cube")
        last = origin + (np.array(grid.lattice.shape) - 1) @ steps
    else:
        other = gridData.Grid(str(tmp_path / "map.dx"))
        last = np.array([edge[-1] for edge in other.midpoints])
    np.testing.assert_allclose(last, grid.lattice.last, rtol=0, atol=1e-6)


@pytest.mark.parametrize("suffix", [".dx", ".dx.gz", ".mrc", ".ccp4"])
def test_griddataformats_reads(tmp_path, suffix):
    grid = writable(suffix)
    write_map(grid, tmp_path / f"map{suffix}")
    other = gridData.Grid(str(tmp_path / f"map{suffix}"))
    np.testing.assert_allclose(other.grid, grid.values, rtol=DIGITS.get(suffix, 0))
    np.testing.assert_allclose(other.delta, grid.lattice.spacing, rtol=1e-6)
    np.testing.assert_allclose(other.origin, grid.lattice.origin, rtol=1e-6)


@pytest.mark.parametrize("suffix", [".mrc", ".map", ".ccp4"])
def test_mrcfile_reads(tmp_path, suffix):
    grid = writable(suffix)
    path = tmp_path / f"map{suffix}"
    write_map(grid, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # how mrcfile complains of a file
        with mrcfile.open(path, permissive=False) as other:
            np.testing.assert_array_equal(other.data.transpose(2, 1, 0), grid.values)
            np.testing.assert_allclose(list(other.voxel_size.tolist()), grid.lattice.spacing, rtol=1e-6)
            header = other.header
            origin = np.array(header.origin.tolist())
            start = np.array([header.nxstart, header.nystart, header.nzstart]) * np.array(other.voxel_size.tolist())
            assert other.is_volume()
            assert header.dmin == grid.values.min()
            assert header.dmax == grid.values.max()
            assert header.rms == pytest.approx(grid.values.std(), rel=1e-5)
            labels = other.get_labels()
    # one of the two places the map, never both
    placed, empty = (start, origin) if suffix == ".ccp4" else (origin, start)
    np.testing.assert_allclose(placed, grid.lattice.origin, rtol=1e-6)
    assert not empty.any()
    assert labels[0] == "vmdpotential map: electrostatic potential, kT/e at 298.15 K"
    assert "temperature: 298.15" in labels


@pytest.mark.parametrize("suffix", [".mrc", ".map", ".ccp4"])
def test_gemmi_reads(tmp_path, suffix):
    grid = writable(suffix)
    path = tmp_path / f"map{suffix}"
    write_map(grid, path)
    other = gemmi.read_ccp4_map(str(path))
    other.setup(float("nan"), gemmi.MapSetup.NoSymmetry)
    # gemmi wraps a map into its cell, by NSTART
    start = np.rint(grid.lattice.origin / grid.lattice.spacing).astype(int) if suffix == ".ccp4" else (0, 0, 0)
    np.testing.assert_array_equal(np.array(other.grid, copy=False), np.roll(grid.values, start, (0, 1, 2)))
    cell = other.grid.unit_cell
    np.testing.assert_allclose(
        [cell.a, cell.b, cell.c], grid.lattice.spacing * grid.lattice.shape, rtol=1e-6)
    assert (cell.alpha, cell.beta, cell.gamma) == (90, 90, 90)


def plain_cube(path):
    """A second reader of cube files, by the letter of their description."""
    with open(path) as stream:
        comments = [stream.readline() for _ in range(2)]
        words = stream.read().split()
    atoms, origin = int(words[0]), np.array(words[1:4], float)
    rows = [words[4 + 4 * n : 8 + 4 * n] for n in range(3)]
    shape = [int(row[0]) for row in rows]
    steps = np.array([row[1:] for row in rows], float)
    data = words[16 + 5 * atoms :]
    assert len(data) == np.prod(shape)
    return comments, atoms, origin * BOHR, steps * BOHR, np.array(data, np.float32).reshape(shape)


def test_cube_by_a_second_reader(tmp_path):
    grid = make()
    write_map(grid, tmp_path / "map.cube")
    comments, atoms, origin, steps, values = plain_cube(tmp_path / "map.cube")
    assert atoms == 1  # VMD takes a file without atoms for one of orbitals
    # the buffers of VMD's reader
    assert len(comments[0]) < 255
    assert len(comments[1]) < 1023
    np.testing.assert_allclose(origin, grid.lattice.origin, atol=1e-6)
    np.testing.assert_allclose(steps, np.diag(grid.lattice.spacing), atol=1e-6)
    np.testing.assert_allclose(values, grid.values, rtol=6e-6)


def test_cube_comments_stay_short_whatever_the_names(tmp_path):
    names = tuple(f"/some/very/long/folder/{'n' * 100}/{i}.pdb" for i in range(20))
    grid = make(provenance=Provenance(method="direct", inputs=names))
    write_map(grid, tmp_path / "map.cube")
    comments = plain_cube(tmp_path / "map.cube")[0]
    assert len(comments[1]) < 1023
    back = read_map(tmp_path / "map.cube")
    assert back.provenance.inputs == tuple(f"{i}.pdb" for i in range(20))
    assert (back.provenance.method, back.temperature) == ("direct", 298.15)


def test_dx_suits_every_viewer(tmp_path):
    grid = make(spacing=(0.5, 0.5, 0.497096774193548))
    write_map(grid, tmp_path / "map.dx")
    raw = (tmp_path / "map.dx").read_bytes()
    lines = raw.decode("ascii").splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("object 1"))
    assert all(line.startswith("# ") for line in lines[:first])  # VMD: comments nowhere else
    assert not any("#" in line for line in lines[first:])
    assert all(line.strip() and len(line) < 2040 for line in lines)  # ChimeraX: no blank lines; VMD: short ones
    assert lines[first : first + 6] == [
        "object 1 class gridpositions counts 5 6 7",
        "origin -3.000000 4.000000 7.500000",
        "delta 0.500000 0 0",
        "delta 0 0.500000 0",
        "delta 0 0 0.497096774194",
        "object 2 class gridconnections counts 5 6 7",
    ]
    assert lines[first + 6] == "object 3 class array type double rank 0 items 210 data follows"


def test_npz_opens_without_us(tmp_path):
    grid = make()
    write_map(grid, tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz") as archive:
        np.testing.assert_array_equal(archive["values"], grid.values)
        assert archive["origin"].tolist() == [-3, 4, 7.5]
        assert archive["spacing"].tolist() == [0.5, 0.75, 1.25]
        assert str(archive["unit"]) == "kT/e"
        assert float(str(archive["temperature"])) == 298.15


# --- we read what other programs write -----------------------------------------------------------


def dx_text(values="1 2 3\n4 5 6\n7 8\n", head="", counts="2 2 2", items="8", kind="double", **parts):
    deltas = parts.get("deltas", "delta 0.5 0 0\ndelta 0 0.5 0\ndelta 0 0 0.5\n")
    return (
        f"{head}object 1 class gridpositions counts {counts}\norigin -3 4 7.5\n{deltas}"
        f"object 2 class gridconnections counts {counts}\n"
        f"object 3 class array type {kind} rank 0 items {items} {parts.get('data', 'data follows')}\n{values}"
        f"{parts.get('tail', '')}"
    )


COUNTING = np.arange(1, 9).reshape(2, 2, 2)


@pytest.mark.parametrize(
    "text",
    [
        dx_text(),
        dx_text(tail='attribute "dep" string "positions"\nobject "regular" class field\n'),
        dx_text(kind='"double"', head="# OpenDX density file written by gridDataFormats.Grid.export()\n"),
        dx_text(values="1\n2\n3\n4\n5\n6\n7\n8\n"),
        dx_text(values="1 2 3 4 5 6 7 8"),
        dx_text(values="1.0D+00 2.0D+00 3.0d0\n4 5 6\n7 8\n"),
        dx_text(head="#\n\n   \n# comments and blank lines\n"),
        dx_text().replace("\n", "\r\n"),
        dx_text(deltas="delta 5.000000e-01 0.000000e+00 0.000000e+00\ndelta 0 .5 0\ndelta 0 0 5e-1\n"),
    ],
)
def test_dialects_of_dx(tmp_path, text):
    (tmp_path / "map.dx").write_bytes(text.encode())
    grid = read_map(tmp_path / "map.dx")
    np.testing.assert_array_equal(grid.values, COUNTING)
    assert grid.lattice.origin.tolist() == [-3, 4, 7.5]
    assert grid.lattice.spacing.tolist() == [0.5, 0.5, 0.5]
    assert grid.provenance.quantity == ""  # nothing says that it is a potential


@pytest.mark.parametrize(
    ("text", "unit", "temperature"),
    [
        (dx_text(head="# Data from 1.4\n#\n# POTENTIAL (kT/e)\n#\n"), "kT/e", None),
        (dx_text(tail='attribute "dep" string "positions"\nobject "PME potential (kT/e, T=300K)" class field\n'),
         "kT/e", 300.0),
    ],
)
def test_units_that_other_programs_state(tmp_path, text, unit, temperature):
    (tmp_path / "map.dx").write_text(text)
    grid = read_map(tmp_path / "map.dx")
    assert (grid.unit, grid.temperature) == (unit, temperature)


@pytest.mark.parametrize(
    ("kind", "dtype", "words"),
    [("float", "<f4", "binary data follows"), ("double", "<f8", "lsb ieee data follows"),
     ("double", ">f8", "msb ieee data follows")],
)
def test_binary_dx(tmp_path, kind, dtype, words):
    head = dx_text(values="", kind=kind, data=words).encode()
    (tmp_path / "map.dx").write_bytes(head + COUNTING.astype(dtype).tobytes() + b'\nattribute "dep"\n')
    np.testing.assert_array_equal(read_map(tmp_path / "map.dx").values, COUNTING)


def test_gzip_is_recognised_by_its_content(tmp_path):
    (tmp_path / "map.dx").write_bytes(gzip.compress(dx_text().encode()))
    (tmp_path / "plain.dx.gz").write_text(dx_text())
    np.testing.assert_array_equal(read_map(tmp_path / "map.dx").values, COUNTING)
    with pytest.raises(InputError, match=r"plain\.dx\.gz: is not a gzip file; rename it without \.gz"):
        read_map(tmp_path / "plain.dx.gz")


def test_axes_that_run_backwards_or_in_another_order(tmp_path):
    text = dx_text(deltas="delta 0 0 0.5\ndelta 0 -1 0\ndelta 0.25 0 0\n")
    (tmp_path / "map.dx").write_text(text)
    grid = read_map(tmp_path / "map.dx")
    assert grid.lattice.origin.tolist() == [-3, 3, 7.5]
    assert grid.lattice.spacing.tolist() == [0.25, 1, 0.5]
    # value 1 is at the file's origin, 3 one step along its second axis, 2 one along its third
    for position, value in (((-3, 4, 7.5), 1), ((-3, 3, 7.5), 3), ((-2.75, 4, 7.5), 2), ((-3, 4, 8), 5)):
        assert grid.sample(np.array(position)) == value


def test_griddataformats_files(tmp_path):
    values = np.random.default_rng(3).normal(size=(4, 5, 6))
    other = gridData.Grid(values, origin=(-3, 4.2, 7.7), delta=(0.5, 0.6, 0.7))
    other.export(str(tmp_path / "map.dx"), type="double")
    other.export(str(tmp_path / "map.mrc"))
    for name in ("map.dx", "map.mrc"):
        grid = read_map(tmp_path / name)
        np.testing.assert_allclose(grid.values, values, rtol=2e-6)
        np.testing.assert_allclose(grid.lattice.origin, (-3, 4.2, 7.7), rtol=1e-6)
        np.testing.assert_allclose(grid.lattice.spacing, (0.5, 0.6, 0.7), rtol=1e-6)


def test_files_in_the_wheel_of_griddataformats():
    from gridData.tests import datafiles

    for name in ("CCP4", "CCP4_1JZV", "DX"):
        path = str(getattr(datafiles, name))
        grid, other = read_map(path), gridData.Grid(path)
        np.testing.assert_allclose(grid.values, other.grid, rtol=1e-6)
        np.testing.assert_allclose(grid.lattice.spacing, other.delta, rtol=1e-6)
        np.testing.assert_allclose(grid.lattice.origin, other.origin, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 1, 3), (2, 3, 1), (3, 1, 2)])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<i2", ">i2", "<i1", "<u2", "<f2"])
def test_mrc_of_any_byte_order_axis_order_and_mode(tmp_path, order, dtype):
    """Written by mrcfile's arrays and a header of our making; gemmi is the judge of the axes."""
    values = np.random.default_rng(4).integers(0, 100, (3, 4, 5))
    end = dtype[0]
    words = np.zeros(256, end + "i4")
    floats = words.view(end + "f4")
    columns = [order[n] - 1 for n in range(3)]
    words[0:3] = [values.shape[axis] for axis in columns]
    words[3] = {"i1": 0, "i2": 1, "f4": 2, "u2": 6, "f2": 12}[dtype[1:]]
    words[4:7] = [(-6, 8, 15)[axis] for axis in columns]
    words[7:10] = (10, 12, 14)
    floats[10:13] = (5, 6, 7)
    floats[13:16] = 90
    words[16:19] = order
    words[22] = 1
    raw = bytearray(words.tobytes())
    raw[208:216] = b"MAP " + (b"\x44\x44\0\0" if end == "<" else b"\x11\x11\0\0")
    data = values.transpose(columns[::-1]).astype(dtype)
    (tmp_path / "map.mrc").write_bytes(bytes(raw) + data.tobytes())
    grid = read_map(tmp_path / "map.mrc")
    np.testing.assert_array_equal(grid.values, values)
    np.testing.assert_allclose(grid.lattice.origin, (-3, 4, 7.5))
    np.testing.assert_allclose(grid.lattice.spacing, 0.5)
    if dtype in ("<f4", ">f4", "<i2", "<i1", "<u2"):  # those that gemmi reads
        other = gemmi.read_ccp4_map(str(tmp_path / "map.mrc"))
        other.setup(float("nan"), gemmi.MapSetup.ReorderOnly)
        np.testing.assert_array_equal(np.array(other.grid, copy=False), values)


def cube_text(values="1 2\n3 4\n5 6\n7 8\n", natoms="1", counts=(2, 2, 2), extra="", atom="8 8.0 0 0 0\n", steps=None):
    steps = steps or ("0.5 0 0", "0 0.5 0", "0 0 0.5")
    rows = "".join(f"{n} {step}\n" for n, step in zip(counts, steps, strict=True))
    return f"title\ncomment\n{natoms} 1 2 3{extra}\n{rows}{atom}{values}"


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (cube_text(), BOHR),
        (cube_text(extra=" 1"), BOHR),  # NVAL
        (cube_text(natoms="-1", atom="8 8.0 0 0 0\n 1 27\n"), BOHR),  # one orbital
        (cube_text(counts=(-2, -2, -2)), 1.0),  # angstrom
        (cube_text(natoms="0", atom=""), BOHR),
    ],
)
def test_dialects_of_cube(tmp_path, text, unit):
    (tmp_path / "map.cube").write_text(text)
    grid = read_map(tmp_path / "map.cube")
    np.testing.assert_array_equal(grid.values, COUNTING)
    np.testing.assert_allclose(grid.lattice.origin, np.array([1, 2, 3]) * unit)
    np.testing.assert_allclose(grid.lattice.spacing, 0.5 * unit)


# --- what cannot be read or written --------------------------------------------------------------


SKEW = "delta 0.5 0 0\ndelta 0.25 0.5 0\ndelta 0 0 0.5\n"
BAD_TEXT = [
    ("map.dx", "", "is empty"),
    ("map.dx", "hello\n", "line 1: 'hello' does not belong"),
    ("map.dx", "\0\1\2" * 1000, "line 1"),
    ("map.dx", dx_text(deltas=SKEW), "do not lie along x, y and z"),
    ("map.dx", dx_text(deltas="delta 0 0 0\ndelta 0 0.5 0\ndelta 0 0 0.5\n"), "do not lie along"),
    ("map.dx", dx_text(deltas="delta nan 0 0\ndelta 0 0.5 0\ndelta 0 0 0.5\n"), "is not a number"),
    ("map.dx", dx_text(deltas="delta 0.5 0 0\n"), "three deltas are missing"),
    ("map.dx", dx_text(values="1 2 3\n4 5 6\n7\n"), "ends after 7 of 8 values"),
    ("map.dx", dx_text(values="1 2 3\n4 5 6\n7\n", tail='attribute "dep"\n'), "ends after 7 of 8 values"),
    ("map.dx", dx_text(values="1 2 3\n4 5 6\n7 8 9\n"), "more than the 8 values"),
    ("map.dx", dx_text(values="1 2 3\n4 x 6\n7 8\n"), "line 9: 'x' is not a finite number"),
    ("map.dx", dx_text(values="1 2 3\n4 5 6\n7 nan\n"), "line 10: 'nan' is not a finite number"),
    ("map.dx", dx_text(values="1 2 3\n4 5 6\n-inf 8\n"), "line 10: '-inf'"),
    ("map.dx", dx_text(values="1 2 3\n4 1e300 6\n7 8\n"), "line 9: '1e300'"),
    ("map.dx", dx_text(items="9"), "9 items do not fill 2 x 2 x 2 = 8 points"),
    ("map.dx", dx_text(counts="2 2"), "three positive counts"),
    ("map.dx", dx_text(counts="0 2 2"), "three positive counts"),
    ("map.dx", dx_text(counts="100000 100000 100000", items="1000000000000000"), "ends after 8 of"),
    ("map.dx", dx_text(data="data file other.bin"), "in another file"),
    ("map.dx", dx_text().replace("rank 0", "rank 1 shape 3"), "vectors"),
    ("map.dx", dx_text(kind="float", data="binary data follows", values="abc"), "ends after 0 of 8 values"),
    ("map.cube", "", "is empty"),
    ("map.cube", "title\n", "line 2: ends within its header"),
    ("map.cube", "title\ncomment\nx 1 2 3\n", "line 3"),
    ("map.cube", cube_text(values="1 2 3"), "ends after 3 of 8 values"),
    ("map.cube", cube_text(values="1 2 3 4 5 6 7 8 9"), "more than the 8 values"),
    ("map.cube", cube_text(values="1 2 3 4 5 6 7 *****"), "line 8: '\\*\\*\\*\\*\\*' is not a finite number"),
    ("map.cube", cube_text(extra=" 2"), "2 orbitals"),
    ("map.cube", cube_text(natoms="-1", atom="8 8.0 0 0 0\n 2 27 28\n"), "2 orbitals"),
    ("map.cube", cube_text(counts=(0, 2, 2)), "line 4: an axis of 0 points"),
    ("map.cube", cube_text(steps=("0.5 0 0", "0.1 0.5 0", "0 0 0.5")), "do not lie along"),
    ("map.npz", "", "not a NumPy archive"),
    ("map.mrc", "", "is empty"),
    ("map.mrc", "x" * 2000, "no 'MAP' at byte 208"),
    ("map.dx.gz", "\x1f", "is not a gzip file"),
    ("map.xyz", "words", "of no map format; choose one of .dx.gz, .dx"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD_TEXT)
def test_broken_files(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_map(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def damaged(tmp_path, change, suffix=".mrc"):
    path = tmp_path / f"map{suffix}"
    write_map(writable(suffix), path)
    path.write_bytes(change(path.read_bytes()))
    return path


def put(offset, form, *values):
    return lambda raw: raw[:offset] + struct.pack(form, *values) + raw[offset + struct.calcsize(form) :]


@pytest.mark.parametrize(
    ("suffix", "change", "message"),
    [
        (".mrc", lambda raw: raw[:-1], "is truncated"),
        (".mrc", lambda raw: raw[:500], "no 'MAP'"),
        (".mrc", lambda raw: raw + b"x", "does not fit its header"),
        (".mrc", put(12, "<i", 4), "mode 4"),
        (".mrc", put(0, "<i", 0), "the header is damaged"),
        (".mrc", put(0, "<i", 2000000000), "is truncated"),
        (".mrc", put(60, "<f", 120.0), "90 90 120"),
        (".mrc", put(40, "<f", 0.0), "states no cell"),
        (".mrc", put(64, "<i", 3), "axes are numbered"),
        (".mrc", put(92, "<i", -5), "does not fit|truncated"),
        (".mrc", lambda raw: raw[:-4] + struct.pack("<f", float("nan")), "node 4 5 6\\) is nan"),
        (".mrc", lambda raw: raw[:-4] + struct.pack("<f", float("inf")), "is inf"),
        (".npz", lambda raw: raw[:-30], "not a NumPy archive, or is truncated"),
        (".npz", lambda raw: raw.replace(b"NUMPY", b"NUMPX", 1), "damaged"),
        (".dx.gz", lambda raw: raw[:-20], "damaged or cut short"),
        (".dx.gz", lambda raw: raw[:200] + b"\xff\xff\xff" + raw[203:], "damaged|not a finite|does not belong|line"),
    ],
)
def test_damaged_binary_files(tmp_path, suffix, change, message):
    path = damaged(tmp_path, change, suffix)
    with pytest.raises(InputError, match=message) as caught:
        read_map(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"origin": np.zeros(3), "spacing": np.ones(3)}, "no numbers called 'values'"),
        (dict.fromkeys("xyz", np.zeros((2, 2, 2))), "holds a field, which is three maps"),
        ({"values": np.zeros((2, 2)), "origin": np.zeros(3), "spacing": np.ones(3)}, "three axes"),
        ({"values": np.zeros((2, 2, 2)), "origin": np.zeros(3), "spacing": np.zeros(3)}, "spacing=.*above 0"),
        ({"values": np.zeros((2, 2, 2)), "origin": np.zeros(2), "spacing": np.ones(3)}, "map.npz: "),
        ({"values": np.full((2, 2, 2), np.nan), "origin": np.zeros(3), "spacing": np.ones(3)}, "is nan"),
        ({"values": np.array([None]), "origin": np.zeros(3), "spacing": np.ones(3)}, "damaged"),
    ],
)
def test_npz_of_something_else(tmp_path, entries, message):
    np.savez(tmp_path / "map.npz", **entries)
    with pytest.raises(InputError, match=message):
        read_map(tmp_path / "map.npz")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_map(tmp_path / "none.dx")
    (tmp_path / "folder.dx").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        read_map(tmp_path / "folder.dx")


def test_unknown_suffix_is_refused_before_work(tmp_path):
    for name in ("map.xplor", "map", ".dx", "map.dx.bz2"):
        with pytest.raises(UsageError, match="choose one of"):
            check_map_format(tmp_path / name)
    for suffix in SUFFIXES:
        check_map_format(tmp_path / f"A.MAP{suffix.upper()}")


def test_ccp4_refuses_what_it_would_move(tmp_path):
    grid = make(origin=(-3, 4, 7.6))
    with pytest.raises(UsageError, match=r"map.ccp4: .* write .mrc or .dx"):
        check_map_format(tmp_path / "map.ccp4", grid.lattice)
    with pytest.raises(UsageError, match="whole number of spacings"):
        write_map(grid, tmp_path / "map.ccp4")
    check_map_format(tmp_path / "map.mrc", grid.lattice)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_values_that_are_not_finite_are_not_written(tmp_path, suffix):
    grid = writable(suffix)
    values = grid.values.copy()
    values[1, 2, 3] = np.nan
    with pytest.raises(InputError, match="node 1 2 3"):
        write_map(grid.with_values(values), tmp_path / f"map{suffix}")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_existing_files_stay_without_force(tmp_path, suffix):
    path = tmp_path / f"map{suffix}"
    path.write_text("precious")
    with pytest.raises(UsageError, match="exists; use force"):
        write_map(writable(suffix), path)
    assert path.read_text() == "precious"
    write_map(writable(suffix), path, force=True)
    assert read_map(path).unit == "kT/e"


@pytest.mark.parametrize("suffix", [".dx", ".dx.gz", ".mrc", ".cube"])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, suffix):
    path = tmp_path / f"map{suffix}"
    path.write_text("precious")

    def interrupt(label, fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress.listening(interrupt):
        write_map(writable(suffix), path, force=True)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_nothing(tmp_path, suffix, monkeypatch):
    """/dev/full accepts nothing: the same error as a full disk, in each writer."""
    def put(grid, path):
        if path.is_dir():  # of which a file is as full
            with open("/dev/full", "wb", buffering=0) as full:
                full.write(b"x")
        path.unlink()
        path.symlink_to("/dev/full")
        put_map(grid, path)

    put_map = maps.put_map
    monkeypatch.setattr(maps, "put_map", put)
    with pytest.raises(OutputError, match=rf"map{suffix}: the disk is full; nothing was written"):
        write_map(writable(suffix, shape=(30, 30, 30)), tmp_path / f"map{suffix}")
    assert not os.listdir(tmp_path)


def test_missing_folder(tmp_path):
    with pytest.raises(OutputError, match="does not exist"):
        write_map(make(), tmp_path / "none" / "map.dx")
