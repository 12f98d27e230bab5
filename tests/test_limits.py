"""Limits on what files may ask for: includes, compressed content, digits, spacings; and messages stay short."""

import gzip
import struct

import numpy as np
import pytest
from damaged import GRO, MRC, PDB
from helpers import shell

from vmdpotential import memory, read_map, read_structure
from vmdpotential.errors import InputError, MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.files.cellfile import parse_cell, read_cell
from vmdpotential.io.topologies import charmm, gromacs_folder, ion_parameters
from vmdpotential.io.topologies.forcefield import nonbonded

# ---- includes of GROMACS -------------------------------------------------------------------------------


def lines(path):
    return [line.text for line in gromacs_folder.read_lines(path)]


def test_files_that_include_each_other_twice(tmp_path):
    """45 files of two lines, of which the last would be read 2^44 times."""
    for n in range(44):
        (tmp_path / f"{n}.top").write_text(f'#include "{n + 1}.top"\n' * 2)
    (tmp_path / "44.top").write_text("a line\n")
    with pytest.raises(InputError):
        lines(tmp_path / "0.top")
    assert lines(tmp_path / "36.top") == ["a line"] * 2**8


def test_a_long_file_that_is_included_often(tmp_path, monkeypatch):
    monkeypatch.setattr(gromacs_folder, "MOST_LINES", 5000)
    (tmp_path / "long.itp").write_text("a b c\n" * 600)
    (tmp_path / "a.top").write_text('#include "long.itp"\n' * 5)
    assert len(lines(tmp_path / "a.top")) == 3000
    (tmp_path / "a.top").write_text('#include "long.itp"\n' * 10)
    with pytest.raises(InputError):
        lines(tmp_path / "a.top")


@pytest.mark.parametrize("text", ["a \\\n" * 100_000, f"#define A {'b' * 5000}\nA A A A\n"])
def test_a_line_that_grows(tmp_path, text):
    (tmp_path / "a.top").write_text(text)
    with pytest.raises(InputError):
        lines(tmp_path / "a.top")


# ---- compressed files ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("name", "start", "read"), [
    ("a.pdb.gz", PDB, read_structure), ("a.gro.gz", GRO, read_structure), ("a.mrc.gz", "", read_map)])
def test_a_file_that_unpacks_to_a_thousand_times_its_size(tmp_path, name, start, read):
    """80 MB, which fit into memory."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(start.encode()) + gzip.compress(b"\n" * 2**20) * 80)
    with pytest.raises(InputError) as caught:
        read(path)
    assert name in str(caught.value)


def test_files_that_are_well_compressed_are_read(tmp_path):
    path = tmp_path / "a.pdb.gz"
    path.write_bytes(gzip.compress(PDB.encode() + b"REMARK\n" * 100_000))
    assert len(read_structure(path)) == 11


# ---- numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["9" * 70_000 + "x", "9" * 70_000, "1." + "3" * 70_000 + "e"])
def test_cells_of_many_digits(tmp_path, word):
    """Patterns took the square of their length: minutes."""
    path = tmp_path / "a.xsc"
    path.write_text(f"# NAMD\n0 {' '.join([word] * 9)} 0 0 0\n")
    with pytest.raises(InputError):
        read_cell(path)
    with pytest.raises(ValueError):
        parse_cell(",".join([word] * 3))


@pytest.mark.slow
def test_charmm_parameters_of_many_digits(tmp_path):
    for name in ("a.str", "a.prm"):
        path = tmp_path / name
        path.write_text("* title\n*\nread para card\nATOMS\nMASS -1 NA 22.99\nNONBONDED\n"
                        f"NA 0.0 {'9' * 70_000} 1.4\nEND\n")
        with pytest.raises(InputError) as caught:
            charmm.lennard_jones(path, ["NA"])
        assert len(str(caught.value)) < 400


def test_amber_parameters_of_many_digits(tmp_path):
    """They took minutes."""
    path = tmp_path / "a.frcmod"
    path.write_text(f"ions\nNONBON\nNa+ 1.369 0.0874\nCl- {'9' * 200_000}\nK+ {'9' * 200_000}x 1\n\n")
    assert list(ion_parameters._of_amber(path)) == ["Na+"]


@pytest.mark.parametrize("spacing", [5e-39, 1e-12, 1e30])
def test_maps_of_impossible_spacing(tmp_path, spacing):
    path = tmp_path / "a.mrc"
    header = bytearray(MRC)
    header[40:52] = struct.pack("<3f", *(spacing * n for n in struct.unpack("<3i", MRC[28:40])))
    path.write_bytes(header)
    with pytest.raises(InputError):
        read_map(path)
    with pytest.raises(UsageError):
        Lattice(np.zeros(3), np.full(3, spacing), (2, 2, 2))


# ---- messages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [
    ("map", PDB, "--cell", "A" * 5000), ("A" * 5000,), ("map", PDB, f"--{'A' * 5000}"), ("map", "A" * 5000),
    ("map", PDB, "-o", f"a.{'A' * 5000}"), ("map", PDB, "--atoms", "A" * 5000), ("map", PDB, "--frame", "9" * 5000),
    ("map", PDB, "--unit", "A" * 5000), ("map", PDB, "--cell", " ".join("A" * 5000)),
])
def test_long_values_are_cut_in_messages(capsys, tmp_path, words):
    path = tmp_path / "a.pdb"
    path.write_text(PDB)
    code, _, error = shell(capsys, *(path if word is PDB else word for word in words))
    assert code == 2
    assert len(error) < 1000


def test_a_limit_of_the_process_is_named(monkeypatch):
    """Where the machine has the memory, what the user has to change is the limit."""
    monkeypatch.delenv("VMDPOTENTIAL_MEMORY", raising=False)
    monkeypatch.setattr(memory, "_of_machine", lambda root: [10**10])
    monkeypatch.setattr(memory, "_of_groups", lambda root: [])
    monkeypatch.setattr(memory, "_limits_of_process", lambda: (2e9, float("inf")))
    for needed, named in ((5 * 10**9, True), (10**11, False)):
        with pytest.raises(MemoryPlanError) as caught:
            memory.require(needed, "a map", "use a larger {spacing}")
        assert ("ulimit" in caught.value.hint) == named
        assert "{spacing}" in caught.value.hint


# ---- force fields of OpenMM and memory -----------------------------------------------------------------


def test_a_system_that_openmm_has_no_memory_for(tmp_path, monkeypatch):
    """Refused before OpenMM begins."""
    from openmm import app
    from test_force_field_scripts import FIELD

    from vmdpotential.molecule.structure import Structure

    count = 10_000
    names = np.full(count, "NA")
    numbers = np.arange(count)
    ions = Structure(np.stack([5.0 * numbers, 0 * numbers, 0 * numbers], axis=1), names, names, numbers + 1, numbers)
    path = tmp_path / "own.xml"
    path.write_text(FIELD.format(attribute="", more=""))

    def create(*_, **__):
        raise AssertionError("it has begun")

    monkeypatch.setattr(app.ForceField, "createSystem", create)
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "15M")
    with pytest.raises(MemoryPlanError):
        nonbonded(ions, [path])
