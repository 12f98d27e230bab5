"""Maps that other programs read from us, and that we read from other programs."""

from __future__ import annotations

import gzip
import io
import warnings
from dataclasses import replace

import gemmi
import gridData
import mrcfile
import numpy as np
import pytest
from map_files import COUNTING, DIGITS, FAR, dx_text, make, writable
from messages import naming

from vmdpotential.errors import InputError
from vmdpotential.io.maps import read_map, write_map
from vmdpotential.io.maps.ccp4 import Ccp4Writer
from vmdpotential.io.maps.dx import write_dx
from vmdpotential.io.maps.mapformat import write_layers

# --- other programs read what we write -----------------------------------------------------------


def test_the_far_corner_is_right_for_other_programs(tmp_path):
    """After the last of 300 steps of no round length; six decimals were 1e-4 A off."""
    grid = make(**FAR)
    write_map(grid, tmp_path / "map.dx")
    last = np.array([edge[-1] for edge in gridData.Grid(str(tmp_path / "map.dx")).midpoints])
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
@pytest.mark.parametrize("reserve", [0, 200])
def test_mrcfile_validates(tmp_path, suffix, reserve):
    """Also where the provenance is longer than the header, and where a map is written in slabs."""
    grid = writable(suffix)
    grid = replace(grid, provenance=replace(grid.provenance, inputs=("a long name " * 100,)))
    path = tmp_path / f"map{suffix}"
    if reserve:
        write_layers(Ccp4Writer(path, suffix == ".ccp4", reserve), grid, 16)
    else:
        write_map(grid, path)
    report = io.StringIO()
    assert mrcfile.validate(path, print_file=report), report.getvalue()
    assert read_map(path).provenance.inputs == grid.provenance.inputs


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


# --- we read what other programs write -----------------------------------------------------------


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


def test_written_binary_dx_is_what_vmd_reads(tmp_path):
    """VMD takes the word binary for native float32 values, from the next line on."""
    (tmp_path / "text.dx").write_text(dx_text())
    grid = read_map(tmp_path / "text.dx")
    write_dx(tmp_path / "map.dx", grid, binary=True)
    head, _, data = (tmp_path / "map.dx").read_bytes().partition(b"binary data follows\n")
    assert head.splitlines()[-1].startswith(b"object 3 ")
    np.testing.assert_array_equal(np.frombuffer(data, np.float32, COUNTING.size), COUNTING.ravel())
    again = read_map(tmp_path / "map.dx")
    np.testing.assert_array_equal(again.values, COUNTING)
    assert str(again.lattice) == str(grid.lattice)


def test_gzip_is_recognised_by_its_content(tmp_path):
    (tmp_path / "map.dx").write_bytes(gzip.compress(dx_text().encode()))
    (tmp_path / "plain.dx.gz").write_text(dx_text())
    np.testing.assert_array_equal(read_map(tmp_path / "map.dx").values, COUNTING)
    with naming(InputError, "plain.dx.gz: "):
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


def test_npz_opens_without_us(tmp_path):
    grid = make()
    write_map(grid, tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz") as archive:
        np.testing.assert_array_equal(archive["values"], grid.values)
        assert archive["origin"].tolist() == [-3, 4, 7.5]
        assert archive["spacing"].tolist() == [0.5, 0.75, 1.25]
        assert str(archive["unit"]) == "kT/e"
        assert float(str(archive["temperature"])) == 298.15
