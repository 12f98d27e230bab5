"""Standard input and pipes in place of files."""

import bz2
import gzip
import io
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from damaged import CUBE, DX, MRC, NPZ, PDB, PSF, SEEDS, TEXTS, read, same
from fuzz import seeds
from messages import naming

from vmdpotential import read_map, read_structure, write_map
from vmdpotential.errors import InputError, MemoryPlanError
from vmdpotential.frontend import cli


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
        result = (read_map if suffix in (".dx", ".cube", ".mrc", ".npz") else read_structure)("-")
        same(result, read(path))
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
    with naming(InputError, "standard input: "):
        read_structure("-")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(), isatty=lambda: True))
    with naming(InputError, "standard input: "):
        read_map("-")
    monkeypatch.setattr(sys, "stdin", None)
    with naming(InputError, "standard input: "):
        read_map("-")
    with naming(InputError, "file name"):
        read_structure("a\0b.pdb")
    stdin(b"no format\n" * 9)
    with naming(InputError, "standard input: "):
        read_structure("-")


def test_streams_are_bounded(stdin, monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1M")
    stdin(b" " * 10_000_000)
    with naming(MemoryPlanError, "standard input "):
        read_structure("-")
    with naming(MemoryPlanError, "/dev/zero "):
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
