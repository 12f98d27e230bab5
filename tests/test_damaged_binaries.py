"""Binary files that are damaged, hostile or unusual: archives of NumPy, MRC, trajectories."""

import gzip
import io
import struct
import zipfile

import numpy as np
import pytest
from damaged import MRC, NPZ, SEEDS, read, refused
from fuzz import seeds

from vmdpotential import read_map

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
    refused(archive(tmp_path, unit=npy(header, b"\xff" * 8)), "not valid Unicode")
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
    refused(path, "is an XTC file of the kind for more than 298 million atoms, which is not supported; write")


def test_compressed_files_of_mdanalysis_are_to_be_unpacked(tmp_path):
    pytest.importorskip("MDAnalysis")
    path = tmp_path / "a.mol2.gz"
    path.write_bytes(gzip.compress(seeds.MOL2.encode()))
    refused(path, "is read from a plain file only; unpack it first")
