"""Runs over frames that were killed, and go on: the same bytes as one that no one touched."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from helpers import water

from vmdpotential import write_structure
from vmdpotential.frontend import cli
from vmdpotential.molecule.cell import Cell

libdcd = pytest.importorskip("MDAnalysis.lib.formats.libdcd", reason="trajectories need MDAnalysis")

EDGE = 12.0

#: What is run, with blocks kept that are soon computed again; the first time each of them takes a while.
PROGRAM = """
import sys, time
from vmdpotential.execution import blocks, pools
from vmdpotential.frontend import cli
blocks.DISK = 1e12
if sys.argv[1] == "slow":
    timed = pools.timed_result
    pools.timed_result = lambda work, block: (time.sleep(0.5), timed(work, block))[1]
sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    structure = water(EDGE, Cell.from_parameters(EDGE, EDGE, EDGE))
    write_structure(structure, folder / "box.pqr")
    rng = np.random.default_rng(5)
    with libdcd.DCDFile(str(folder / "box.dcd"), "w") as file:
        file.write_header("", len(structure), 0, 1, 1.0, 1)
        for _ in range(40):
            moved = structure.positions + rng.normal(0, 0.1, structure.positions.shape)
            file.write(moved.astype(np.float32), [EDGE, 90, EDGE, 90, 90, EDGE])
    return [str(folder / "box.pqr"), str(folder / "box.dcd"), "--cell", "12,12,12"]


@pytest.mark.parametrize("words", [
    pytest.param(["average", "--spacing", "1", "--fit", "none", "--tolerance", "1e-2", "-o", "{}.npz"],
                 marks=pytest.mark.slow),
    ["profile", "-o", "{}.csv"],
], ids=lambda words: words[0])
def test_a_killed_run_goes_on(files, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    words = [words[0], *files, *words[1:]]

    def argv(name, *more):
        return [*(word.format(name) for word in words), *more]

    assert cli.main(argv("whole")) == 0
    broken = argv("broken")
    kept = tmp_path / f"{broken[-1]}.blocks"
    run = subprocess.Popen([sys.executable, "-c", PROGRAM, "slow", *broken], stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not list(kept.glob("block-*.npz")) and run.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    os.kill(run.pid, signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL, "it was to be killed while it ran"
    assert list(kept.glob("block-*.npz"))
    assert not (tmp_path / broken[-1]).exists()
    again = subprocess.run([sys.executable, "-c", PROGRAM, "as it is", *broken, "--resume", "--verbose"],
                           capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert "blocks are finished" in again.stderr
    assert not kept.exists()
    first, resumed = (tmp_path / argv(name)[-1] for name in ("whole", "broken"))
    if first.suffix == ".csv":
        assert first.read_bytes() == resumed.read_bytes()
    else:
        with np.load(first) as expected, np.load(resumed) as actual:
            assert sorted(actual.files) == sorted(expected.files)
            for name in expected.files:
                assert actual[name].tobytes() == expected[name].tobytes(), name
    capsys.readouterr()
