"""Means over frames, against the maps of the frames one by one."""

import json
import tracemalloc
from dataclasses import dataclass, replace
from io import StringIO

import numpy as np
import pytest
from helpers import charges_at, random_charges, refused, relative_rms, rms, water
from messages import naming
from written_frames import write_frames

from vmdpotential import frontend, io, progress
from vmdpotential.commands.average import command
from vmdpotential.errors import InputError
from vmdpotential.frames.options import Execution
from vmdpotential.frontend.cli import main
from vmdpotential.io.maps import read_map
from vmdpotential.io.trajectories.frames import Frame
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell

CELL = Cell.from_parameters(9.3, 9.3, 9.3)
OPTIONS = {"spacing": 1.5, "tolerance": 1e-3, "engine": "cpu", "method": "pme"}


@dataclass(frozen=True)
class Held:
    """Frames that are in memory, as a viewer has them."""

    positions: tuple
    cells: tuple
    chosen: range
    name: str = "frames"
    portable: bool = False

    @classmethod
    def of(cls, positions, cells=None):
        return cls(tuple(positions), tuple(cells or [None] * len(positions)), range(len(positions)))

    def __iter__(self):
        for n in self.chosen:
            yield Frame(n, self.positions[n], self.cells[n], len(self.chosen), 2.0 * n)

    def numbers(self):
        return self.chosen

    def part(self, numbers):
        return replace(self, chosen=numbers)

    def seconds(self):
        return 0.0


def shaken(structure, count, seed=0, amount=0.3):
    rng = np.random.default_rng(seed)
    return [structure.positions + rng.normal(0, amount, structure.positions.shape) for _ in range(count)]


def each(structure, frames, grid, cells=None, **options):
    """Return the maps of frames one by one, on a lattice."""
    cells = cells or [structure.cell] * len(frames)
    return np.array([potential_map(replace(structure, positions=x, cell=cell), lattice=grid.lattice, **{
        **OPTIONS, "tolerance": 1e-4, **options}).values for x, cell in zip(frames, cells, strict=True)], np.float64)


@pytest.mark.parametrize("stat", ["mean,sem", "mean,std,sem"])
def test_mean_and_deviations_are_numpys_over_the_frames_maps(stat):
    box = water(9.3, CELL)
    frames = shaken(box, 60)
    made = command(structure=box, trajectory=Held.of(frames), stat=stat, fit="none", **{**OPTIONS, "tolerance": 1e-4})
    grid = made.objects["grid"]
    maps = each(box, frames, grid)
    assert relative_rms(grid.values, maps.mean(0)) < 3e-4
    assert grid.lattice.shape == potential_map(box, **OPTIONS).lattice.shape
    assert made.data["block_frames"] == 1
    assert made.data["standard_error"] >= 0.99 * rms(maps.std(0, ddof=1)) / np.sqrt(60)
    assert made.data["interval"] > 2 * made.data["standard_error"]
    np.testing.assert_allclose(rms(made.objects["sem"].values), made.data["standard_error"], rtol=1e-5)
    if "std" in stat:
        assert relative_rms(made.objects["std"].values, maps.std(0)) < 3e-3
        assert made.data["standard_deviation"] == pytest.approx(rms(maps.std(0)), rel=3e-3)
    assert 1 <= made.data["inefficiency"] < 4  # frames that are independent
    assert made.data["time_step"] == 2
    assert grid.provenance.quantity == "mean electrostatic potential"
    assert grid.provenance.frames == "60: 0 to 59"
    assert "standard error of the mean" in made.objects["sem"].provenance.quantity
    assert made.objects["sem"].provenance.error is None


def test_the_mean_of_one_frame_is_its_map(tmp_path, caplog):
    box = water(9.3, CELL)
    frames = shaken(box, 3)
    made = command(structure=box, trajectory=Held.of(frames).part(range(1, 2)), fit="none", stat="mean,sem", **OPTIONS)
    grid = made.objects["grid"]
    single, = each(box, frames[1:2], grid, tolerance=1e-3)
    np.testing.assert_allclose(grid.values, single, atol=1e-3 * rms(single))
    assert made.data["standard_error"] is None
    assert "sem" not in made.objects
    assert len([record for record in caplog.records if "no effect" not in record.getMessage()]) == 1


def test_cells_that_change_keep_nodes_at_their_fractions():
    factors = [np.array(f) for f in ([1, 1, 1], [1.02, 0.99, 1.01], [0.98, 1.0, 1.03], [1.01, 1.02, 0.97])]
    cells = [Cell(CELL.vectors * f) for f in factors]
    box = water(9.3, CELL)
    frames = [x * f for x, f in zip(shaken(box, 4), factors, strict=True)]
    made = command(structure=box, trajectory=Held.of(frames, cells), fit="none", stat="mean,std", **OPTIONS)
    grid, planned = made.objects["grid"], potential_map(box, **OPTIONS).lattice
    mean = np.mean(factors, axis=0)
    np.testing.assert_allclose(grid.lattice.origin, planned.origin * mean)
    np.testing.assert_allclose(grid.lattice.spacing, planned.spacing * mean)
    np.testing.assert_allclose(made.data["cell"][:3], 9.3 * mean, rtol=1e-6)
    np.testing.assert_allclose(np.diagonal(made.data["cell_deviation"]), 9.3 * np.std(factors, axis=0), rtol=1e-6)
    assert "deviate by" in "\n".join(made.lines)
    maps = [each(box, [x], potential_map(box, lattice=replace(
        planned, origin=planned.origin * f, spacing=planned.spacing * f), **OPTIONS), [cell])[0]
        for x, f, cell in zip(frames, factors, cells, strict=True)]
    assert relative_rms(grid.values, np.mean(maps, axis=0)) < 2e-3
    assert relative_rms(made.objects["std"].values, np.std(maps, axis=0)) < 1e-2
    kept = command(structure=box, trajectory=Held.of(frames, cells), fit="none", cell=CELL, **OPTIONS)
    assert kept.data["cell"][:3] == [9.3] * 3
    with naming(InputError, "frame 1 "):
        command(structure=box, trajectory=Held.of(frames, [CELL, Cell(CELL.vectors * 1.2), CELL, CELL]), **OPTIONS)
    with naming(InputError, "frame 2 "):
        command(structure=box, trajectory=Held.of(frames, [CELL, CELL, None, CELL]), **OPTIONS)


def solute(count=40, seed=3):
    positions, charges = random_charges(count, 0, 8, seed)
    return replace(charges_at(positions, charges), residue_names=np.full(count, "ALA"))


def test_frames_are_fitted_by_rotation_in_an_open_boundary_alone():
    """Frames that are turned, moved, and in another image each come back, so that all maps are the same."""
    molecule = solute()
    rng = np.random.default_rng(1)
    frames = []
    for _ in range(4):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        frames.append(molecule.positions @ (turn * np.linalg.det(turn)).T + rng.normal(0, 20, 3))
    made = command(structure=molecule, trajectory=Held.of(frames), stat="mean,std", padding=4.0, **OPTIONS)
    grid = made.objects["grid"]
    single = potential_map(molecule, padding=4.0, **OPTIONS)
    assert np.array_equal(grid.lattice.origin, single.lattice.origin)
    assert relative_rms(grid.values, single.values) < 1e-3
    assert made.data["standard_deviation"] < 2e-3 * rms(grid.values)
    assert "rotation and translation" in made.data["alignment"]
    fixed = command(structure=molecule, trajectory=Held.of(frames), fit="none", padding=4.0, **OPTIONS)
    assert relative_rms(fixed.objects["grid"].values, single.values) > 0.1
    boxed = replace(molecule, cell=Cell.from_parameters(12, 12, 12))
    moved = [molecule.positions + shift for shift in ([0, 0, 0], [3, 4, 5.0])]
    made = command(structure=boxed, trajectory=Held.of(moved), stat="mean,std", **OPTIONS)
    assert made.data["standard_deviation"] < 2e-3 * rms(made.objects["grid"].values)
    with refused("motion"):
        command(structure=boxed, trajectory=Held.of(moved), motion="rotation", **OPTIONS)


def test_atoms_that_leave_an_open_box_are_summed():
    molecule = solute()
    frames = [molecule.positions + np.array([shift, 0, 0]) for shift in (0.0, 30.0, 0.0)]
    made = command(structure=molecule, trajectory=Held.of(frames), fit="none", padding=4.0, **OPTIONS)
    maps = each(molecule, frames, made.objects["grid"])
    assert relative_rms(made.objects["grid"].values, maps.mean(0)) < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["mean", "std"])
def test_pieces_of_blocks_merge_to_the_mean_of_all(asked):
    from vmdpotential.frames.average import plan_average
    from vmdpotential.maps import MapOptions

    box = water(9.3, CELL)
    frames = shaken(box, 15)
    planning = plan_average(box, Held.of(frames), MapOptions(
        method="pme", spacing=1.5, tolerance=1e-3, temperature=300.0, precision="double", engine="cpu"),
        {"group": None}, statistics=("mean", asked))

    def planned(piece=0, **options):
        return planning.merge(replace(planning, size=5, piece=piece).run(Execution(**options)))

    whole, pieces, elsewhere = planned(), planned(2), planned(2, workers=2)
    assert whole.blocks == pieces.blocks == (5, 5, 5)
    for name, grid in whole.grids.items():
        scale = np.abs(grid.values).max()
        np.testing.assert_allclose(pieces.grids[name].values, grid.values, rtol=0, atol=1e-6 * scale)
        assert pieces.grids[name].values.tobytes() == elsewhere.grids[name].values.tobytes()
    np.testing.assert_allclose(pieces.cell, whole.cell)
    assert pieces.inefficiency == pytest.approx(whole.inefficiency)


@pytest.fixture
def files(tmp_path):
    """Return a box of water and twenty frames of it, in files."""
    box = water(9.3, CELL)
    path = tmp_path / "box.pqr"
    io.write_structure(box, path)
    return path, write_frames(tmp_path / "frames.dcd", np.array(shaken(box, 20)), CELL)


WORDS = ["--spacing", "1.5", "--tolerance", "1e-3", "--engine", "cpu", "--method", "pme", "--cell", "9.3,9.3,9.3"]


def test_a_run_in_a_shell(files, tmp_path, capsys):
    out = tmp_path / "mean.dx"
    files = files[0], write_frames(tmp_path / "long.dcd", np.array(shaken(water(9.3, CELL), 120)), CELL)
    code = main(["average", *map(str, files), *WORDS, "--stat", "mean,std,sem", "--frames", "2::2", "-o", str(out),
                 "--json"])
    data = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [str(tmp_path / name) for name in ("mean.dx", "mean_std.dx", "mean_sem.dx")] == data["files"]
    assert (data["frames"], data["first_frame"], data["last_frame"], data["frame_step"]) == (59, 2, 118, 2)
    assert data["blocks"] == 59
    assert data["time_step"] == pytest.approx(4.0)
    assert data["zero"] == "mean over the cell"
    assert data["background"] == pytest.approx(0, abs=1e-6)
    assert data["correlation_time"] == pytest.approx(max(0, (data["inefficiency"] - 1) / 2))
    mean, error = read_map(out), read_map(tmp_path / "mean_sem.dx")
    assert rms(error.values) == pytest.approx(data["standard_error"], rel=1e-3)
    assert mean.provenance.frames == "59: 2 to 118, every 2"
    assert mean.provenance.zero == data["zero"]
    assert mean.provenance.inefficiency == pytest.approx(data["inefficiency"])
    assert mean.provenance.error == pytest.approx(data["error"])
    assert not list(tmp_path.glob("*.blocks"))


class Stop:
    """A listener that stops the run after some blocks."""

    def __init__(self, after):
        self.after = after

    def __call__(self, label, fraction):
        if label == "20 frames" and fraction >= self.after:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_a_run_that_is_stopped_writes_what_is_done_where_it_is_asked_to(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "1")  # one block after another
    monkeypatch.setattr(frontend.cli.progress, "Terminal", lambda: Quiet(0.5))
    code = main(["average", *map(str, files), *WORDS, "-o", str(tmp_path / "again.npz"), "--partial", "--json"])
    printed = capsys.readouterr()
    assert code == 130
    assert json.loads(printed.out)["frames"] == 9
    assert "interrupted after 9" in printed.err
    assert main(["average", *map(str, files), *WORDS, "-o", str(tmp_path / "none.npz")]) == 130
    assert not (tmp_path / "none.npz").exists()


def test_progress_tells_frames_a_second(monkeypatch):
    stream, now = StringIO(), [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    terminal = progress.Terminal(stream)
    for second in (0, 10, 20):
        now[0] = second
        terminal("1000 frames", second / 50)
    assert "1000 frames:  40 %, 30 s left, 20 per second" in stream.getvalue()


class Quiet(Stop):
    def close(self):
        pass


@pytest.mark.parametrize(("words", "message"), [
    (["--stat", "mode"], "--stat mode: give some of mean, std"),
    (["--fit", "(XYZ)"], "--fit '(XYZ)': selects no atoms"),
    (["--motion", "rotation"], "--motion rotation: rotation needs atoms to fit"),
    (["--smear", "1", "--interaction", "coulomb"], "--smear 1: Gaussian charges have the interaction gaussian"),
    (["--stat", "std", "-o", "-"], "--stat std: only the mean can be written to a stream"),
])
def test_what_is_wrong_is_said_in_one_line(files, tmp_path, capsys, words, message):
    output = [] if "-o" in words else ["-o", str(tmp_path / "mean.dx")]
    assert main(["average", *map(str, files), *WORDS, *words, *output]) == 2
    line, = capsys.readouterr().err.strip().splitlines()
    assert message in line


@pytest.mark.slow
def test_memory_does_not_grow_with_frames():
    box = water(9.3, CELL)

    class Endless(Held):
        def __iter__(self):
            for n in self.chosen:
                yield Frame(n, box.positions + 0.01 * (n % 7), None, len(self.chosen))

    def most(count):
        frames = Endless((), (), range(count))
        tracemalloc.start()
        command(structure=box, trajectory=frames, smear=2.0, **{**OPTIONS, "spacing": 3.0})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    most(20)
    assert most(500) < 1.2 * most(50) + 100_000


def test_a_real_trajectory():
    """Adenylate kinase between its open and closed form, protein alone: the mean of the maps one by one."""
    datafiles = pytest.importorskip("MDAnalysisTests.datafiles")
    from vmdpotential.frames.whole import FrameAlignment
    from vmdpotential.io.trajectories.frames import Trajectory

    trajectory = Trajectory(datafiles.DCD, 3341, slice(0, 60, 30))
    structure = replace(io.read_topology(datafiles.PSF), positions=next(iter(trajectory)).positions)
    options = {"spacing": 4.0, "padding": 4.0, "tolerance": 1e-2, "engine": "cpu"}
    made = command(structure=structure, trajectory=trajectory, **options)
    alignment = FrameAlignment.of(structure, np.ones(3341, bool), "open")
    maps = [potential_map(replace(structure, positions=alignment.align(frame.positions, None)),
                          lattice=made.objects["grid"].lattice, method="direct", engine="cpu").values
            for frame in trajectory]
    assert relative_rms(made.objects["grid"].values, np.mean(maps, axis=0)) < 1e-2
