"""Frames of trajectories: every format's positions, cells and times, as MDAnalysis has them; and what is wrong."""

import gc
import logging
import pickle
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from messages import naming
from written_frames import write_frames

from vmdpotential.errors import InputError
from vmdpotential.io.trajectories.frames import (
    Frame,
    LoadedFrames,
    Trajectory,
    parse_frames,
    periodic_cell,
    read_ahead,
    read_frame,
)
from vmdpotential.molecule.cell import Cell

MDA = pytest.importorskip("MDAnalysis")
get_reader_for = pytest.importorskip("MDAnalysis.coordinates.core").get_reader_for
DATA = pytest.importorskip("MDAnalysisTests.datafiles")

FILES = Path(DATA.PDB).parent
CELL = Cell.from_parameters(20, 21, 22, 80, 75, 70)


@pytest.mark.parametrize("suffix", ["dcd", "xtc", "trr", "nc", "pdb", "h5md"])
def test_frames_of_every_format(tmp_path, suffix):
    for package in {"h5md": ["h5py"], "nc": ["netCDF4"]}.get(suffix, []):
        pytest.importorskip(package)
    positions = np.random.default_rng(0).uniform(0, 20, (7, 12, 3)).round(2)
    path = tmp_path / f"frames.{suffix}"
    if suffix == "h5md":  # its writer wants units
        with get_reader_for(DATA.COORDINATES_H5MD)(DATA.COORDINATES_H5MD) as reader:
            path, positions = DATA.COORDINATES_H5MD, np.array([step.positions.copy() for step in reader])
    else:
        write_frames(path, positions, CELL)
    before = sorted(tmp_path.iterdir())
    trajectory = pickle.loads(pickle.dumps(Trajectory(path, positions.shape[1])))
    numbers = trajectory.numbers()
    assert numbers == range(len(positions))
    results = [frame for start in (0, 3) for frame in trajectory.part(numbers[start : start + 3])]
    results += list(trajectory.part(numbers[-1:]))
    assert [frame.number for frame in results] == [*numbers[:6], numbers[-1]]
    for frame in results:
        assert frame.positions.dtype == np.float64
        np.testing.assert_allclose(frame.positions, positions[frame.number], atol=2e-3)
        if suffix not in ("pdb", "h5md"):
            assert frame.time == pytest.approx(2.0 * frame.number)
            np.testing.assert_allclose(frame.cell.parameters, CELL.parameters, atol=1e-2)
    assert sorted(tmp_path.iterdir()) == before
    single = next(iter(Trajectory(path, positions.shape[1], single=True)))
    assert single.positions.dtype == (np.float64 if suffix == "pdb" else np.float32)  # as in the file
    assert single.positions.flags.c_contiguous


@pytest.mark.parametrize("suffix", ["xtc", "gro"])
def test_our_own_formats_need_no_other_package(tmp_path, suffix):
    positions = np.random.default_rng(0).uniform(0, 20, (3, 12, 3)).round(2)
    path = tmp_path / f"frames.{suffix}"
    if suffix == "xtc":
        write_frames(path, positions, CELL)
    else:
        path.write_text("".join("frame\n12\n" + "".join(
            f"    1MOL  {'C':>5}{n:5d}" + "".join(f"{x / 10:8.3f}" for x in place) + "\n"
            for n, place in enumerate(frame, 1)) + "2 2 2\n" for frame in positions))
    program = ("import sys; sys.modules['MDAnalysis'] = None; from pathlib import Path\n"
               "from vmdpotential.io.trajectories.frames import Trajectory\n"
               f"print(*[x for frame in Trajectory(Path({str(path)!r}), 12) for x in frame.positions.ravel()])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(np.array(done.stdout.split(), float), positions.ravel(), atol=2e-3)


@pytest.mark.parametrize("name", ["DCD", "DCD_TRICLINIC", "DCD_NAMD_TRICLINIC", "LAMMPSdcd2", "DCD_NAMD_GBIS"])
def test_a_dcd_is_read_as_mdanalysis_reads_it(name):
    path = getattr(DATA, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with MDA.coordinates.DCD.DCDReader(path) as reader:
            steps = [(step.positions.copy(), step.dimensions, step.time) for step in reader][::4]
            known = reader.dt > 0
    results = list(Trajectory(path, len(steps[0][0]), slice(None, None, 4), single=True))
    assert len(results) == len(steps)
    for frame, (positions, dimensions, time) in zip(results, steps, strict=True):
        np.testing.assert_array_equal(frame.positions, positions)
        assert frame.time == (pytest.approx(time, rel=1e-6, abs=1e-6) if known else None)
        if dimensions is None:
            assert frame.cell is None
        else:
            np.testing.assert_allclose(frame.cell.parameters, dimensions, rtol=1e-5)


def test_frames_of_an_xtc_are_looked_for_once(monkeypatch, tmp_path):
    from vmdpotential.io.trajectories import xdr

    path = tmp_path / "frames.xtc"
    shutil.copy(DATA.XTC, path)
    trajectory, looked = Trajectory(path, 47681), []
    find = xdr.frames
    monkeypatch.setattr(xdr, "frames", lambda *args: looked.append(args) or find(*args))
    numbers = trajectory.numbers()
    assert [next(iter(trajectory.part(numbers[n:]))).number for n in (0, 4, 9)] == [0, 4, 9]
    assert len(looked) == 1


@pytest.mark.parametrize(("scale", "precision"), [
    (3.0, 3), (3.0, 1), (300.0, 3), (3000.0, 3), (30.0, 5), (3000.0, 4), (3.0, 7), (100.0, 7)])
def test_unpacked_coordinates_are_those_of_its_library(tmp_path, scale, precision):
    """Numbers of up to 72 bits, and coordinates that are packed apart."""
    from MDAnalysis.lib.formats.libmdaxdr import XTCFile

    rng = np.random.default_rng(int(scale) + precision)
    path = tmp_path / "a.xtc"
    with XTCFile(str(path), "w") as file:
        for count in range(6):
            first = rng.uniform(-scale, scale, (400, 1, 3)) / 10 * [1, 0.7, 0.2 if count % 2 else 1]
            waters = first + rng.normal(0, (0.1, 0.01, 0.5)[count % 3], (400, 3, 3))
            file.write(waters.reshape(-1, 3).astype(np.float32), np.eye(3, dtype=np.float32) * scale, count, count,
                       10.0**precision)
    with XTCFile(str(path)) as file:
        for ours, theirs in zip(Trajectory(path, 1200, single=True), list(file), strict=True):
            assert np.array_equal(ours.positions, theirs.x * np.float32(10))
            assert ours.time == theirs.time


def test_damaged_bits_are_refused_or_numbers(tmp_path):
    from vmdpotential.io.trajectories import xdr

    data = Path(DATA.XTC).read_bytes()[: int(Trajectory(Path(DATA.XTC), 47681).index[1])]
    path, rng, refused = tmp_path / "a.xtc", np.random.default_rng(3), []
    for flips in (0, *[8] * 30):
        bits = np.unpackbits(np.frombuffer(data, np.uint8))
        bits[rng.integers(8 * 92, len(bits) - 64, flips)] ^= 1
        path.write_bytes(np.packbits(bits).tobytes())
        try:
            with open(path, "rb") as file:
                assert np.isfinite(xdr.read_xtc(path, file, 0, 47681)[0]).all()
            refused.append(False)
        except InputError:
            refused.append(True)
    assert not refused[0]
    assert 0 < sum(refused) < 30


def test_frames_beyond_the_end_are_told(caplog, tmp_path):
    path = write_frames(tmp_path / "frames.dcd", np.zeros((5, 3, 3)), CELL)
    with caplog.at_level(logging.WARNING):
        assert Trajectory(path, 3, slice(1, 9)).numbers() == range(1, 5)
        write_frames(tmp_path / "one.dcd", np.zeros((1, 3, 3)), CELL)
        assert len(Trajectory(tmp_path / "one.dcd", 3, slice(0, 2)).numbers()) == 1
    assert "has 5 frames, none from 5 to 8" in caplog.text
    assert "has 1 frame, none from 1 to 1" in caplog.text
    with naming(InputError, "5 frames, ", " 0 to 4"):
        Trajectory(path, 3, slice(5, None)).numbers()
    with naming(InputError, "3 atoms ", " 4"):
        Trajectory(path, 4).numbers()


@pytest.mark.parametrize("step", [2, 3, 5])
def test_frames_of_a_part_are_not_beyond_the_end(caplog, tmp_path, step):
    """The end of a range with a step may be after the last frame."""
    path = write_frames(tmp_path / "frames.dcd", np.arange(99.0).reshape(11, 3, 3), CELL)
    frames = Trajectory(path, 3, slice(None, None, step))
    held = LoadedFrames("frames", [(np.zeros((3, 3)), None)] * 11, slice(None, None, step))
    with caplog.at_level(logging.WARNING):
        for every in (frames, held):
            numbers = every.numbers()
            for part in (numbers, numbers[:2], numbers[1:], numbers[::-1]):
                assert [frame.number for frame in every.part(part)] == list(part)
    assert not caplog.text


@pytest.mark.parametrize("value", [np.nan, np.inf, -3e38, 2e8])
def test_coordinates_that_are_implausible_are_told(tmp_path, value):
    positions = np.zeros((2, 4, 3))
    positions[1, 2, 1] = value
    with naming(InputError, "frame 1 atom 3 "):
        list(Trajectory(write_frames(tmp_path / "frames.dcd", positions, CELL), 4))
    large = write_frames(tmp_path / "large.dcd", np.full((1, 40, 3), 9e7), CELL)
    assert len(list(Trajectory(large, 40, single=True))) == 1


def test_a_cell_that_is_missing_or_another_is_refused(tmp_path):
    cells = [CELL, Cell(CELL.vectors * 1.06), Cell(CELL.vectors * 1.07), None]
    path = write_frames(tmp_path / "frames.trr", np.zeros((4, 3, 3)), CELL, cells=cells)
    frames = list(Trajectory(path, 3))
    for frame in frames[:2]:
        np.testing.assert_allclose(periodic_cell(path, frame, CELL).parameters, cells[frame.number].parameters,
                                   rtol=1e-4)
    with naming(InputError, "frame 2 ", " 12", " %"):
        periodic_cell(path, frames[2], CELL)
    with naming(InputError, "frame 3 "):
        periodic_cell(path, frames[3], CELL)


def test_what_goes_wrong_ahead_is_told_where_frames_are_taken():
    def frames():
        yield Frame(0, np.zeros((1, 3)), None)
        yield Frame(1, np.zeros((1, 3)), None)
        raise InputError("the third is broken")

    taken = read_ahead(frames())
    assert [next(taken).number, next(taken).number] == [0, 1]
    with naming(InputError, "third"):
        next(taken)


@pytest.mark.parametrize(("text", "frames"), [
    ("2:8:3", [2, 5]), ("7:", [7, 8, 9]), ("-2:", [8, 9]), ("4", [4]), ("-1", [9]), ("::4", [0, 4, 8])])
def test_frames_are_those_of_a_slice(text, frames):
    results = list(Trajectory(FILES / "adk_oplsaa.xtc", 47681, parse_frames(text)))
    assert [frame.number for frame in results] == frames
    assert {frame.total for frame in results} == {len(frames)}
    positions, cell = read_frame(FILES / "adk_oplsaa.xtc", 47681, frames[-1])
    np.testing.assert_array_equal(results[-1].positions, positions)
    np.testing.assert_array_equal(results[-1].cell.vectors, cell.vectors)


def test_frames_that_are_not_there(tmp_path):
    for path, frames, message in ((FILES / "adk_dims.dcd", slice(200, None), "98 frames, numbered 0 to 97, and none"),
                                  (tmp_path / "none.dcd", slice(None), "none.dcd"),
                                  (FILES / "adk_oplsaa.gro", slice(None), "47681 atoms")):
        with pytest.raises(InputError, match=message):
            list(Trajectory(path, 3341, frames))
    for text in ("", "1:2:0", "1:2:3:4", "x", "1.5:"):
        with naming(ValueError, "frames"):
            parse_frames(text)


def test_frames_left_early_end_the_reading():
    before = threading.active_count()
    for frame in Trajectory(FILES / "adk_oplsaa.xtc", 47681):
        if frame.number == 2:
            break
    del frame
    gc.collect()
    assert threading.active_count() == before
