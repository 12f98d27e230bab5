"""Maps that follow frames: a plan for many, another when it has to be; the newest request alone; the served program."""

import io
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at
from messages import naming
from structure_files import MDA

from vmdpotential import potential_map, read_structure
from vmdpotential.commands.map import command as map_
from vmdpotential.errors import InputError
from vmdpotential.frontend.cli import main
from vmdpotential.io import write_structure
from vmdpotential.io.maps import read_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import is_protein
from vmdpotential.plugins.live.command import command
from vmdpotential.plugins.live.command import command as live
from vmdpotential.plugins.live.live_map import LatestRequestThread


def chain(n=40):
    rng = np.random.default_rng(3)
    charges = rng.normal(size=n)
    return replace(charges_at(rng.uniform(2, 14, (n, 3)), charges), residue_names=np.full(n, "ALA"),
                   elements=np.full(n, "C"))


def deviation(grid, structure, **options):
    exact = potential_map(structure, lattice=grid.lattice, tolerance=1e-5, medium="vacuum", **options).values
    return np.sqrt(np.mean((grid.values - exact) ** 2) / np.mean(exact**2))


@pytest.mark.parametrize("method", ["pme", "msm", "direct"])
def test_frames_of_an_open_boundary(method):
    structure = chain()
    made = command(structure=structure, method=method, spacing=1.0, padding=6.0).objects["live"]
    near, far = structure.positions + 2.5, structure.positions + np.array([0, 8.0, 0])
    grid = made.update(near)
    assert np.array_equal(grid.lattice.origin, made.first.lattice.origin)
    assert made.plans == 1
    assert deviation(grid, replace(structure, positions=near)) < 2e-3
    assert (made.first.provenance.error is None) == (method == "direct")
    assert grid.provenance.error is None  # which was not measured
    grid = made.update(far)  # out of the box that was planned
    assert made.plans == 2
    np.testing.assert_allclose(grid.lattice.origin, made.first.lattice.origin + np.array([0, 8, 0]))
    assert deviation(grid, replace(structure, positions=far)) < 2e-3
    assert made.update(structure.positions + np.array([0, 8, 0.5])).lattice is grid.lattice


def test_frames_with_cells():
    structure = replace(chain(), cell=Cell(np.diag([16.0, 16, 16])))
    made = command(structure=structure, medium="explicit").objects["live"]
    other = Cell(np.diag([16.5, 16, 16]))
    grid = made.update(structure.positions * [16.5 / 16, 1, 1], other)
    assert (made.plans, grid.provenance.cell[0]) == (2, 16.5)
    assert deviation(grid, replace(structure, positions=structure.positions * [16.5 / 16, 1, 1], cell=other)) < 2e-3
    assert made.update(structure.positions).provenance.cell[0] == 16.5  # without one it stays what it was
    fixed = command(structure=structure, cell=Cell(np.diag([17.0, 17, 17])), medium="explicit").objects["live"]
    assert fixed.update(structure.positions, other).provenance.cell[0] == 17
    assert fixed.plans == 1


def test_frames_that_cannot_be():
    structure = chain()
    made = command(structure=structure).objects["live"]
    with naming(InputError, "39 ", " 40"):
        made.update(structure.positions[:39])
    with pytest.raises(InputError):
        made.update(structure.positions * np.nan)


def test_the_newest_alone():
    begun, go = threading.Event(), threading.Event()
    done = []

    def work(number):
        begun.set()
        assert go.wait(20)
        done.append(number)
        return number

    latest = LatestRequestThread(work)
    latest.ask(0)
    assert begun.wait(20)
    for number in range(1, 6):
        latest.ask(number)
    assert latest.busy
    assert latest.take() is None
    go.set()
    assert latest.wait(20)
    assert done == [0, 5]
    assert (latest.asked, latest.done, latest.dropped) == (6, 2, 4)
    assert latest.take() == 5  # and 0, which was not taken in time, is dropped
    assert latest.take() is None
    assert latest.rate > 0
    latest.stop()
    assert not latest.running


def test_an_error_ends_it_and_is_told_once():
    def work(number):
        return 1 // number

    latest = LatestRequestThread(work)
    latest.ask(1)
    assert latest.wait(20)
    assert latest.take() == 1
    latest.ask(0)
    assert latest.wait(20)
    assert not latest.running
    with pytest.raises(ZeroDivisionError):
        latest.take()
    assert latest.take() is None
    latest.ask(1)
    assert latest.wait(20)
    assert latest.take() is None
    latest.stop()


def test_stopped_in_the_middle_of_work():
    from vmdpotential import progress

    begun, go = threading.Event(), threading.Event()

    def work():
        begun.set()
        assert go.wait(20)
        progress.report_progress("planning", 0.5)
        raise AssertionError("work went on")

    latest = LatestRequestThread(work)
    latest.ask()
    assert begun.wait(20)
    stopping = threading.Thread(target=latest.stop)
    stopping.start()
    while latest.running:
        pass
    go.set()
    stopping.join(20)
    assert not stopping.is_alive()
    assert latest.take() is None


def test_the_served_program(tmp_path, monkeypatch, capsys):
    structure = chain()
    path, output = tmp_path / "chain.pqr", tmp_path / "live.mrc"
    write_structure(structure, path)
    seen = []
    frames = [structure.positions + 1, structure.positions + np.array([0, 0, 20])]

    class Pipe(io.BytesIO):
        """Looks at the map whenever a frame has been answered."""

        def readline(self, *limit):
            seen.append(read_map(output))
            return super().readline(*limit)

    def run(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(data)))
        seen.clear()
        code = main(["live", str(path), "-o", str(output), "--medium", "vacuum"])
        return code, capsys.readouterr()

    sent = b"".join(b"frame %d\n" % n + np.float32(x).tobytes() for n, x in enumerate(frames))
    code, report = run(sent)
    assert code == 0
    levels = [float(word) for word in report.out.split()[2:4]]
    assert levels[0] == seen[0].display_limit()
    assert levels[0] <= levels[1] <= np.abs(seen[0].values).max() * 2
    assert {line.split()[4] for line in report.out.splitlines()[:3]} == {"0"}  # no atom is elsewhere
    assert [line.split()[:2] for line in report.out.splitlines()[:3]] == [["map", "first"], ["map", "0"], ["map", "1"]]
    assert report.out.splitlines()[-1] == "2 frames"
    assert not output.exists()
    for grid, positions in zip(seen, [structure.positions, *frames], strict=True):
        assert deviation(grid, replace(structure, positions=positions)) < 2e-3
    code, report = run(sent + b"frame 2\n\0\0")
    assert (code, report.err) == (2, "vmdpotential: standard input: it ends within frame 2, after 2 of 480 bytes\n")
    code, report = run(b"frame 1 10 10 10 90 90\n")
    assert code == 2
    assert "is not a valid frame header" in report.err
    assert "file is needed" in (main(["live", str(path)]), capsys.readouterr())[1].err


OPTIONS = {"method": "pb", "spacing": 2.0, "padding": 6.0}


@pytest.fixture(scope="module")
def bpti():
    """BPTI as X rays show it: heavy atoms alone."""
    entry = read_structure(MDA / "mmcif" / "5PTI.cif.gz")
    return dry(entry, is_protein(entry) & ~np.isin(entry.elements, ["H", "D"]))


def dry(structure, rows):
    return replace(structure.part(rows), whole=None, whole_rows=None, cell=None)


def net(report):
    return float(report.objects["structure"].charges.sum())


def at_once(structure, shift, lattice):
    """Return the map of a completed structure that is moved."""
    return potential_map(replace(structure, positions=structure.positions + shift), lattice=lattice, method="pb")


def alike(grid, other, limit):
    assert grid.lattice.shape == other.lattice.shape
    difference = grid.values - other.values
    return np.sqrt(np.mean(difference**2)) < limit * np.sqrt(np.mean(other.values**2))


@pytest.mark.slow
def test_states_of_protonation(bpti):
    charges = []
    for ph in (2.0, 7.0):
        report, made = live(structure=bpti, ph=ph, **OPTIONS), map_(structure=bpti, ph=ph, **OPTIONS)
        charges.append(net(report))
        assert "water" in report.objects["grid"].provenance.medium
        assert alike(report.objects["grid"], made.objects["grid"], 1e-5)
        shift = [0.7, -0.4, 0.2]  # hydrogens move with their atoms
        result = report.objects["live"].update(bpti.positions + shift)
        assert alike(result, at_once(report.objects["structure"], shift, result.lattice), 1e-4)
    assert charges[1] == pytest.approx(6, abs=0.01)
    assert charges[0] > 10  # its acids are neutral
