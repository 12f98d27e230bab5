"""Trajectories that end within a frame, are damaged, or become shorter while they are read."""


import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest
from fuzz.seeds import NAMES, frames, system
from helpers import shell

from vmdpotential import write_structure
from vmdpotential.errors import InputError
from vmdpotential.io.trajectories.frames import Trajectory

pytest.importorskip("MDAnalysis")


def write(path, atoms, count=10):
    """Write frames whose first coordinate is their number."""
    import MDAnalysis

    universe = MDAnalysis.Universe.empty(atoms, trajectory=True)
    places = np.random.default_rng(1).uniform(0, 20, (atoms, 3))
    with warnings.catch_warnings(), MDAnalysis.Writer(str(path), atoms) as writer:
        warnings.simplefilter("ignore")
        for number in range(count):
            places[0, 0] = number
            universe.atoms.positions = places
            universe.dimensions = [20, 20, 20, 90, 90, 90]
            writer.write(universe.atoms)
    return path


@pytest.mark.parametrize("atoms", [5, 40])
@pytest.mark.parametrize(("suffix", "left"), [
    *((suffix, left) for suffix in (".xtc", ".trr") for left in (4, 50, 79, 0.5, -1)), (".dcd", 0.5), (".dcd", -1)])
def test_whole_frames_of_a_cut_file_are_read(tmp_path, caplog, suffix, atoms, left):
    """Cut within the header of the last frame, in its middle, and a byte before its end."""
    path = write(tmp_path / f"a{suffix}", atoms)
    data = path.read_bytes()
    last = write(tmp_path / f"nine{suffix}", atoms, 9).stat().st_size
    frame = len(data) - last
    stop = last + (left if left > 1 else frame + left if left < 0 else int(frame * left))
    path.write_bytes(data[: int(stop)])
    for slices in (slice(None), slice(0, 9), slice(2, 7, 2), slice(-1, None)):
        results = [(frame.number, round(frame.positions[0, 0], 3)) for frame in Trajectory(path, atoms, slices)]
        assert results == [(n, n) for n in range(9)[slices]]
    if suffix != ".dcd":  # of which a command warns
        assert path.name in caplog.text
    path.write_bytes(data[:100])
    with pytest.raises(InputError):  # not one whole frame
        list(Trajectory(path, atoms))


@pytest.mark.slow
def test_commands_read_the_whole_frames(tmp_path, capsys):
    path = write(tmp_path / "a.xtc", len(NAMES))
    path.write_bytes(path.read_bytes()[:-10])
    write_structure(system(), tmp_path / "a.pqr")
    for words in (("--frames", "0:5"), ()):
        code, out, err = shell(capsys, "rdf", tmp_path / "a.pqr", path, "--between", "all", "all", *words)
        assert code == 0, err
        assert ("5 frames" if words else "9 frames") in out
        assert path.name in err


@pytest.mark.parametrize("word", [16, 8, 13, 2])
@pytest.mark.parametrize("value", [0, 1, -1, 2**31 - 1])
def test_a_damaged_trr_does_not_end_the_process(tmp_path, word, value):
    """Its library divides by the number of atoms before it can be asked."""
    data = bytearray(dict(frames((".trr",)))[".trr"])
    data[4 * word : 4 * word + 4] = struct.pack(">i", value)
    path = tmp_path / "a.trr"
    path.write_bytes(data)
    write_structure(system(), tmp_path / "a.pdb")
    write_structure(system(), tmp_path / "a.psf")
    if (word, value) != (16, 0):
        with pytest.raises(InputError):
            next(iter(Trajectory(path, len(NAMES))))
        return
    done = subprocess.run([sys.executable, "-m", "vmdpotential", "map", "a.pdb", "--topology", "a.psf", "--trajectory",
                           "a.trr", "--frame", "0", "-o", "a.dx"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "a.trr" in done.stderr
    assert not (tmp_path / "a.dx").exists()


CUT_WHILE_READ = """
import os, sys
from vmdpotential.errors import InputError
from vmdpotential.io.trajectories.frames import Trajectory, on_demand
path, part = sys.argv[1], float(sys.argv[2])
try:
    with on_demand():
        for frame in Trajectory(__import__("pathlib").Path(path), 40):
            if frame.number == 3:
                os.truncate(path, int(os.stat(path).st_size * part))
except InputError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xtc", ".trr", ".dcd", ".ncdf", ".pdb"])
@pytest.mark.parametrize("part", [0.0, 0.51])
def test_a_file_that_is_cut_while_it_is_read(tmp_path, suffix, part):
    path = write(tmp_path / f"a{suffix}", 40, 100)
    done = subprocess.run([sys.executable, "-c", CUT_WHILE_READ, path, str(part)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(path))
    assert not done.stderr
