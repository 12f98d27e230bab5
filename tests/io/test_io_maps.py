"""Maps in every format: written and read back, or not written at all."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import numpy as np
import pytest
from map_files import DIGITS, PROVENANCE, make, writable
from messages import naming

from vmdpotential import progress
from vmdpotential.errors import InputError, OutputError, UsageError
from vmdpotential.grid.lattice import Provenance
from vmdpotential.io import maps
from vmdpotential.io.maps import check_map_format, map_suffixes, read_map, write_map


@pytest.mark.parametrize("suffix", map_suffixes())
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


@pytest.mark.parametrize("suffix", map_suffixes())
def test_uneven_spacing_survives_exactly(tmp_path, suffix):
    # 61.64472 A in 124 steps has no short decimal form
    grid = writable(suffix, spacing=61.64472315757705 / 124, origin=np.array([-7, 3, 11]) * 61.64472315757705 / 124)
    write_map(grid, tmp_path / f"map{suffix}")
    back = read_map(tmp_path / f"map{suffix}").lattice
    np.testing.assert_array_equal(back.spacing, grid.lattice.spacing)
    np.testing.assert_array_equal(back.origin, grid.lattice.origin)


@pytest.mark.parametrize("suffix", map_suffixes())
def test_big_and_tiny_values(tmp_path, suffix):
    extremes = [0, -0.0, 1e-45, -1e-38, 3.4e38, -3.4e38, 1e-9, 123456.78]
    grid = writable(suffix, shape=(2, 2, 2)).with_values(np.array(extremes, np.float32).reshape(2, 2, 2))
    write_map(grid, tmp_path / f"map{suffix}")
    np.testing.assert_allclose(
        read_map(tmp_path / f"map{suffix}").values, grid.values, rtol=DIGITS.get(suffix, 0), atol=1e-44)


@pytest.mark.parametrize("suffix", map_suffixes())
def test_many_blocks(tmp_path, suffix):
    """More values than are formatted at once, and a last line that is not full."""
    grid = writable(suffix, shape=(41, 53, 71))
    steps = []
    with progress.listen_to_progress(lambda label, fraction: steps.append(fraction)):
        write_map(grid, tmp_path / f"map{suffix}")
        back = read_map(tmp_path / f"map{suffix}")
    np.testing.assert_allclose(back.values, grid.values, rtol=DIGITS.get(suffix, 0))
    assert max(steps, default=None) == (None if suffix == ".npz" else 1.0)


@pytest.mark.parametrize("suffix", map_suffixes())
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


# --- what is not written --------------------------------------------------------------------------


def test_unknown_suffix_is_refused_before_work(tmp_path):
    for name in ("map.xplor", "map", ".dx", "map.dx.bz2"):
        with naming(UsageError, name):
            check_map_format(tmp_path / name)
    for suffix in map_suffixes():
        check_map_format(tmp_path / f"A.MAP{suffix.upper()}")


def test_ccp4_refuses_what_it_would_move(tmp_path):
    grid = make(origin=(-3, 4, 7.6))
    with naming(UsageError, "map.ccp4: ", " .mrc or .dx"):
        check_map_format(tmp_path / "map.ccp4", grid.lattice)
    with naming(UsageError, "map.ccp4"):
        write_map(grid, tmp_path / "map.ccp4")
    check_map_format(tmp_path / "map.mrc", grid.lattice)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("suffix", map_suffixes())
def test_values_that_are_not_finite_are_not_written(tmp_path, suffix):
    grid = writable(suffix)
    values = grid.values.copy()
    values[1, 2, 3] = np.nan
    with naming(InputError, "node 1 2 3"):
        write_map(grid.with_values(values), tmp_path / f"map{suffix}")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("suffix", map_suffixes())
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
    with naming(OutputError, f"map{suffix}: "):
        write_map(writable(suffix, shape=(30, 30, 30)), tmp_path / f"map{suffix}")
    assert not os.listdir(tmp_path)


def test_numbers_in_text_are_those_that_python_reads(tmp_path):
    """Halfway cases of float32, long digits, values far below and above one, and exponents of Fortran."""
    chance, words = random.Random(3), ["1.", "-.5", "+1D3", "0e999", "-0.0", "1e-400", "7e-46", "8e-46", "1" + 30 * "0"]
    for _ in range(9_990):
        low = float(np.frombuffer(chance.randrange(0x7F7FFFFF).to_bytes(4, "little"), np.float32)[0])
        middle = (low + float(np.nextafter(np.float32(low), np.float32(np.inf)))) / 2
        near = chance.choice((low, middle, middle * (1 - 2**-53), middle * (1 + 2**-52), chance.gauss(0, 1)))
        words.append(f"{near:.{chance.choice((5, 6, 8, 17, 25, 60))}{chance.choice('eE')}}")
    words = words[:9_996]
    with np.errstate(over="ignore"):
        right = np.array([float(word.replace("D", "e")) for word in words]).astype(np.float32)
    right[~np.isfinite(right)] = 2.5
    words = [word if value != 2.5 else "2.5" for word, value in zip(words, right, strict=True)]
    path = tmp_path / "map.dx"
    write_map(make(shape=(2, 51, 98)), path)
    head = path.read_text().partition("follows\n")[0] + "follows\n"
    path.write_text(head + "".join(word + chance.choice((" ", "\n", "\t", "\r\n", " \n\n")) for word in words))
    assert read_map(path).values.ravel().tobytes() == right.tobytes()


def test_a_wrong_word_far_into_a_text_map_is_named_with_its_line(tmp_path):
    path = tmp_path / "map.dx"
    write_map(make(shape=(60, 60, 60)), path)
    lines = path.read_text().split("\n")
    lines[60_000] = lines[60_000].replace("e", "f", 1)
    path.write_text("\n".join(lines))
    with naming(InputError, "line 60001: '", "f") as caught:
        read_map(path)
    assert caught.value.exit_code == 2
