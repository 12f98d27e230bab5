"""Limits on what files may ask for, flat cells and long distances that took minutes, and messages stay short."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from damaged import MRC, PDB
from ewald import with_field
from helpers import relative_rms, shell
from numpy.testing import assert_allclose

from vmdpotential import memory, potential_at, progress, read_map, read_structure
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, MemoryPlanError, TaskError, UsageError, shorten_text
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.files.cellfile import parse_cell, read_cell
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.pairs.distances import count_distances
from vmdpotential.plugins.pairs.rdf import PairHistogram
from vmdpotential.splitting.coulomb import PER_RADIUS, optimal_splitting
from vmdpotential.splitting.mesh import over_cell
from vmdpotential.units import coulomb_constant

# ---- compressed files ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("name", "start", "read"), [
    ("a.pdb.gz", PDB, read_structure), ("a.mrc.gz", "", read_map)])
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
    ("map", PDB, "--atoms", "A" * 5000), ("map", PDB, "--unit", "A" * 5000),
])
def test_long_values_are_cut_in_messages(capsys, tmp_path, words):
    path = tmp_path / "a.pdb"
    path.write_text(PDB)
    code, _, error = shell(capsys, *(path if word is PDB else word for word in words))
    assert code == 2
    assert len(error) < 1000


def test_a_long_path_and_a_long_reason_are_shortened_in_the_middle(tmp_path, capsys):
    folder = tmp_path / "a-folder-with-a-long-name" / ("b" * 120) / ("c" * 120)
    folder.mkdir(parents=True)
    missing, broken = folder / "missing.pdb", folder / "broken.xsc"
    broken.write_text(f"# NAMD\n0 {'9' * 4000}x 0 0 0 0 0 0 0 0 0 0 0\n")
    for words in (("map", missing), ("map", tmp_path / "a.pdb", "--cell", broken)):
        (tmp_path / "a.pdb").write_text(PDB)
        code, _, error = shell(capsys, *words, "-o", tmp_path / "a.dx")
        assert code == 2
        assert "..." in error
        assert f"/{words[-1].name}: " in error
        assert ("; give three lengths instead, such as --cell 60,60,80" if "--cell" in words else "; check its name"
                ) in error
        assert len(error) < 300
    assert shorten_text("0123456789", 9) == "012...789"
    assert shorten_text("0123456789", 9, 5) == "0...56789"
    assert shorten_text("0123456789", 10) == "0123456789"


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


@pytest.mark.parametrize(("radius", "mesh", "order"), [(40.0, 6.25, 8), (4.0, 1.0, 4)])
def test_the_transform_far_out_is_that_of_quadrature(radius, mesh, order):
    splitting, _ = optimal_splitting(radius, mesh, order)
    count = 100_000
    table = splitting.window_table(PER_RADIUS * splitting.radius, count)
    chosen = np.r_[65_500:65_600, count - 50 : count]  # on both sides of where another way begins
    expected = splitting.window(chosen / PER_RADIUS / radius)
    assert len(table) == count
    assert_allclose(table[chosen], expected, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_the_potential_in_a_very_flat_cell():
    positions, charges = np.array([[10.0, 10, 0.1], [14.0, 10, 0.3]]), np.array([1.0, -1.0])
    vectors = np.diag([30.0, 30, 0.5])
    names = np.array(["NA", "CL"])
    ions = Structure(positions, names, names, np.array([1, 2]), np.array([0, 1]), charges=charges, cell=Cell(vectors))
    points = np.random.default_rng(1).uniform(0, 1, (12, 3)) @ vectors
    actual = potential_at(ions, points, method="pme", unit="V")
    expected = coulomb_constant("V", 298.15, 1.0) * with_field(points, positions, charges, vectors)[0]
    assert relative_rms(actual, expected) < 1e-4


def test_a_cell_that_is_too_flat_for_a_mesh_is_refused():
    with pytest.raises(InputError):
        over_cell(Cell.from_parameters(100, 100, 0.01), 6.25, 8, 6.4).influence()


def test_distances_over_many_images_are_in_parts(monkeypatch):
    """Between parts progress is reported, where Ctrl-C is noticed."""
    said = []
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "1")
    positions = np.random.default_rng(1).uniform(0, 5, (40, 3))
    engine, cell = get_engine("cpu"), Cell.from_parameters(5, 5, 5)
    whole = count_distances(engine, positions, None, cell, 60.0, 30)
    monkeypatch.setattr("vmdpotential.plugins.pairs.distances.PART", 2e5)
    with progress.listen_to_progress(lambda label, fraction: said.append(fraction)):
        assert (count_distances(engine, positions, None, cell, 60.0, 30) == whole).all()
        assert (count_distances(engine, positions, positions[:7], cell, 60.0, 30)
                >= count_distances(engine, positions, positions[:6], cell, 60.0, 30)).all()
    assert len(said) > 20


def test_a_range_that_takes_days_is_refused(caplog):
    every = np.ones(1000, bool)
    positions = np.random.default_rng(1).uniform(0, 10, (1000, 3))
    with pytest.raises(TaskError) as caught:
        PairHistogram(every, every, 1e5, 10).count(positions, Cell.from_parameters(10, 10, 10))
    assert caught.value.parameter == "range"
    assert not caplog.records





@pytest.mark.parametrize("charge", ["1e300", "1e10"])
@pytest.mark.parametrize("words", ["map a.pqr -o a.dx", "field a.pqr --at all", "profile a.pqr --cell 20,20,20"])
def test_impossible_charges(tmp_path, capsys, monkeypatch, charge, words):
    monkeypatch.chdir(tmp_path)
    Path("a.pqr").write_text(f"ATOM 1 O HOH A 1 0.0 0.0 0.0 {charge} 1.5\nATOM 2 H1 HOH A 1 1.0 0.0 0.0 0.4 1.2\n")
    code, _, err = shell(capsys, *words.split())
    assert code == 2
    assert "a.pqr" in err
    assert len(err.splitlines()) == 1
