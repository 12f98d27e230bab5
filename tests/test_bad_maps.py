"""Files of maps that are broken, damaged or of something else: refused in one line."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from map_files import autodock_text, cube_text, dx_text, writable

from vmdpotential.errors import InputError
from vmdpotential.io.maps import read_map, write_map

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
    ("map.map", autodock_text("1 2 3"), "ends after 3 of 27 values"),
    ("map.map", autodock_text("1 " * 28), "more than the 27 values"),
    ("map.map", autodock_text("x " * 27), "line 7: 'x' is not a finite number"),
    ("map.map", autodock_text("1 " * 27, "2 2"), "line 5: NELEMENTS and 3 numbers"),
    ("map.map", autodock_text("1 " * 27, "2 2.5 2"), "line 5: NELEMENTS and 3 numbers"),
    ("map.map", autodock_text("1 " * 27, "2 2 -2"), "are impossible"),
    ("map.map", autodock_text("1 " * 27, spacing="0"), "are impossible"),
    ("map.map", autodock_text("1 " * 27, spacing="one"), "line 4: SPACING and 1 number "),
    ("map.map", "GRID_PARAMETER_FILE a\nGRID_DATA_FILE b\n", "line 3: ends within its header"),
    ("map.npz", "", "not a NumPy archive"),
    ("map.mrc", "", "is empty"),
    ("map.mrc", "x" * 2000, "no 'MAP' at byte 208"),
    ("map.dx.gz", "\x1f", "is not a gzip file"),
    ("map.xyz", "words", "that of a map format; choose one of .dx.gz, .dx"),
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
        ({"origin": np.zeros(3), "spacing": np.ones(3)}, "no numeric entry 'values'"),
        (dict.fromkeys("xyz", np.zeros((2, 2, 2))), "contains a field, which is three maps"),
        ({"values": np.zeros((2, 2)), "origin": np.zeros(3), "spacing": np.ones(3)}, "three axes"),
        ({"values": np.zeros((2, 2, 2)), "origin": np.zeros(3), "spacing": np.zeros(3)}, "spacing="),
        ({"values": np.zeros((2, 2, 2)), "origin": np.zeros(2), "spacing": np.ones(3)}, "map.npz: "),
        ({"values": np.full((2, 2, 2), np.nan), "origin": np.zeros(3), "spacing": np.ones(3)}, "is nan"),
        ({"values": np.array([None]), "origin": np.zeros(3), "spacing": np.ones(3)}, "damaged"),
    ],
)
def test_npz_of_something_else(tmp_path, entries, message):
    np.savez(tmp_path / "map.npz", **entries)
    with pytest.raises(InputError, match=message):
        read_map(tmp_path / "map.npz")
