"""Runs with several outputs that are killed (SIGKILL): before each of their steps, and at random times.

``python tests/faults/kills.py 200`` kills 200 runs, and says what it found. After each kill every output is the whole
old file or the whole new one; after the next run in that folder all are old or all are new, and nothing hidden is left.
"""

import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from steps import Steps, hidden, kill

from vmdpotential.frontend import cli
from vmdpotential.io import write_structure
from vmdpotential.io.files import output
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.molecule.structure import Structure

EDGE = 14.0

COMMANDS = {
    "ionize": ("ionize box.pdb --topology box.pqr --ions SOD=2,CLA=2 -o out.pdb -o out.cif -o out.pqr.gz "
               "--table out.csv --force"),
    "map": "map box.pqr -o out.dx --field f.dx --padding 1 --spacing 1 --method direct --force",
}


def water():
    """Return a box of water."""
    positions, charges = water_box(EDGE)
    residues = np.arange(len(charges)) // 3
    return Structure(positions, np.tile(["OH2", "H1", "H2"], len(charges) // 3), np.full(len(charges), "TIP3"),
                     residues + 1, residues, charges=charges, cell=Cell.from_parameters(EDGE, EDGE, EDGE))


class Job:
    """A command in a folder of its own, where half of its outputs exist before each run."""

    def __init__(self, folder, command):
        self.folder, self.words = folder, command.split()
        folder.mkdir()
        for name in ("box.pdb", "box.pqr"):
            write_structure(water(), folder / name)
        inputs = set(os.listdir(folder))
        with contextlib.chdir(folder), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            assert cli.main(self.words) == 0  # kernels are compiled here
        self.names = sorted(set(os.listdir(folder)) - inputs)
        self.new = [(folder / name).read_bytes() for name in self.names]
        self.old = [b"old" if n % 2 else None for n in range(len(self.names))]
        start = time.monotonic()
        self.steps = self.run(0)
        self.seconds = time.monotonic() - start
        assert self.contents() == self.new

    def contents(self):
        paths = [self.folder / name for name in self.names]
        return [path.read_bytes() if path.exists() else None for path in paths]

    def run(self, stop, after=None):
        """Run to the step `stop`, or for some seconds; return the steps of a run that came to its end, else None."""
        for name, content in zip(self.names, self.old, strict=True):
            if content is None:
                (self.folder / name).unlink(missing_ok=True)
            else:
                (self.folder / name).write_bytes(content)
        report, told = os.pipe()
        child = os.fork()
        if not child:
            os.chdir(self.folder)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1), os.dup2(nowhere, 2)
            steps = Steps(self.folder, stop, kill)
            if cli.main(self.words) == 0:
                os.write(told, str(steps.count).encode())
            os._exit(0)
        os.close(told)
        if after is not None:
            time.sleep(after)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        count = os.read(report, 20)
        os.close(report)
        assert count or os.WIFSIGNALED(status)
        return int(count) if count else None

    def check(self):
        """Return "old" or "new", what all outputs are after the next run."""
        for name, content, *whole in zip(self.names, self.contents(), self.old, self.new, strict=True):
            assert content in whole, f"{name}: neither old nor new ({len(content or b'')} bytes)"
        with output.writing([self.folder / "next"], force=True) as (path,):
            path.write_text("next")
        assert not hidden(self.folder), hidden(self.folder)
        contents = self.contents()
        assert contents in (self.old, self.new), "a part is new"
        return "new" if contents == self.new else "old"


def survey(number, seed=1):
    """Kill that many runs; return how often all was old or new, by command and way of killing."""
    found, random_ = Counter(), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        jobs = {name: Job(Path(folder) / name, command) for name, command in COMMANDS.items()}
        share = number // 2 // len(jobs)
        for name, job in jobs.items():
            spread = min(share, job.steps)
            for n in range(spread):
                stop = 1 + n * job.steps // spread
                assert job.run(stop) is None, stop
                found[name, "step", job.check()] += 1
            for _ in range(number // len(jobs) - spread):
                job.run(0, after=random_.uniform(0, 1.05 * job.seconds))
                found[name, "time", job.check()] += 1
    return found, {name: (job.steps, job.seconds) for name, job in jobs.items()}


if __name__ == "__main__":
    found, runs = survey(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    for name, (steps, seconds) in runs.items():
        print(f"{name}: {steps} steps, {seconds:.2f} s a run")
    for (name, way, left), count in sorted(found.items()):
        print(f"{name}, killed by {way}: {count} times all {left}")
    print(f"{sum(found.values())} kills, no half file, nothing left behind")
