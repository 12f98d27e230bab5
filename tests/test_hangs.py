"""What took minutes or could not be stopped: flat cells, distances over many images; and numbers that overflow."""

import shlex
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from broken_inputs import PROGRAM
from ewald import with_field
from fuzz.kinds import PARAMETERS
from fuzz.seeds import system
from helpers import relative_rms, shell
from numpy.testing import assert_allclose

from vmdpotential import potential_at, progress
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, TaskError
from vmdpotential.io.topologies.forcefield import nonbonded
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.pairs.rdf import PairHistogram
from vmdpotential.splitting.coulomb import PER_RADIUS, optimal
from vmdpotential.splitting.mesh import over_cell
from vmdpotential.units import coulomb_constant


@pytest.mark.parametrize(("radius", "mesh", "order"), [(40.0, 6.25, 8), (4.0, 1.0, 4)])
def test_the_transform_far_out_is_that_of_quadrature(radius, mesh, order):
    splitting, _ = optimal(radius, mesh, order)
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
    whole = engine.count_distances(positions, None, cell, 60.0, 30)
    monkeypatch.setattr("vmdpotential.engines.cpu.pairs.distances.PART", 2e5)
    with progress.listening(lambda label, fraction: said.append(fraction)):
        assert (engine.count_distances(positions, None, cell, 60.0, 30) == whole).all()
        assert (engine.count_distances(positions, positions[:7], cell, 60.0, 30)
                >= engine.count_distances(positions, positions[:6], cell, 60.0, 30)).all()
    assert len(said) > 20


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_long_range_can_be_stopped(tmp_path, sent):
    places = [f"{n % 5 * 2:8.3f}{n // 5 % 5 * 2:8.3f}{n // 25 * 2:8.3f}" for n in range(125)]
    lines = [f"HETATM{n + 1:5d}  NA   NA A{n + 1:4d}    {place}  1.00  0.00" for n, place in enumerate(places)]
    (tmp_path / "a.pdb").write_text("CRYST1   10.000   10.000   10.000  90.00  90.00  90.00 P 1           1\n"
                                    + "\n".join(lines) + "\nEND\n")
    command = [*PROGRAM, *shlex.split("rdf a.pdb --between all all --range 1000")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as process:
        line = ""
        while "distances" not in line:  # after two seconds of work
            line = process.stderr.readline()
            assert line
        process.send_signal(sent)
        process.communicate(timeout=20)
    assert process.returncode == 130


def test_a_range_that_takes_days_is_refused(caplog):
    every = np.ones(1000, bool)
    positions = np.random.default_rng(1).uniform(0, 10, (1000, 3))
    with pytest.raises(TaskError) as caught:
        PairHistogram(every, every, 1e5, 10).add(positions, Cell.from_parameters(10, 10, 10))
    assert caught.value.parameter == "range"
    assert not caplog.records


# ---- numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("charge", ["1e300", "-1e300", "1e10"])
@pytest.mark.parametrize("words", ["map a.pqr -o a.dx --method msm", "map a.pqr -o a.dx", "field a.pqr --at all",
                                   "profile a.pqr --cell 20,20,20"])
def test_impossible_charges(tmp_path, capsys, monkeypatch, charge, words):
    monkeypatch.chdir(tmp_path)
    Path("a.pqr").write_text(f"ATOM 1 O HOH A 1 0.0 0.0 0.0 {charge} 1.5\nATOM 2 H1 HOH A 1 1.0 0.0 0.0 0.4 1.2\n")
    code, _, err = shell(capsys, *words.split())
    assert code == 2
    assert "a.pqr" in err
    assert len(err.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), [
    ("SOD O -0.075 3.2", "SOD O -0.1 1e308"), ("SOD O -0.075 3.2", "SOD O -1e308 30.0"),
    ("SOD 0.0 -0.5 1.4", "SOD 0.0 -0.5 1e308"), ("SOD 0.0 -0.5 1.4", "SOD 0.0 -1e308 1.4")])
def test_charmm_parameters_that_overflow(tmp_path, recwarn, old, new):
    path = tmp_path / "a.prm"
    path.write_text(PARAMETERS.replace(old, new))
    with pytest.raises(InputError) as caught:
        nonbonded(system(), [path])
    assert "a.prm" in str(caught.value)
    assert not recwarn.list
