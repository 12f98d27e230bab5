"""Sizes that files promise: nothing is believed, and nothing is unpacked that does not fit."""

import bz2
import gzip
import struct

import pytest
from damaged import CIF, CUBE, DX, GRO, MRC, PDB, PSF, read, refused
from fuzz import seeds

from vmdpotential import read_map
from vmdpotential.errors import MemoryPlanError, VmdpotentialError


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
