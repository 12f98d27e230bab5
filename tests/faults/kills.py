"""Commands with several outputs that are killed (SIGKILL) before a random one of the steps in which they handle files.

``PYTHONPATH=tests python tests/faults/kills.py 200`` kills 200 runs, and counts the outcomes. After each kill every
output is the complete old file or the complete new one; the next run in that folder changes none of them, and leaves
nothing hidden.
"""

import contextlib
import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from helpers import water
from steps import forked, hidden

from vmdpotential.frontend import cli
from vmdpotential.io import write_structure
from vmdpotential.io.files import output
from vmdpotential.molecule.cell import Cell

COMMANDS = {
    "ionize": ("ionize box.pdb --topology box.pqr --ions SOD=2,CLA=2 -o out.pdb -o out.cif -o out.pqr.gz "
               "--table out.csv --force"),
    "map": "map box.pqr -o out.dx --field f.dx --padding 1 --spacing 1 --method direct --force",
}


class Job:
    """A command in a folder of its own, where half of its outputs exist before each run."""

    def __init__(self, folder, command):
        self.folder, self.words = folder, command.split()
        folder.mkdir()
        for name in ("box.pdb", "box.pqr"):
            write_structure(water(14.0, Cell.from_parameters(14, 14, 14)), folder / name)
        inputs = set(os.listdir(folder))
        with contextlib.chdir(folder), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            assert cli.main(self.words) == 0  # kernels are compiled here
        self.names = sorted(set(os.listdir(folder)) - inputs)
        self.new = self.contents()
        self.old = [b"old" if n % 2 else None for n in range(len(self.names))]
        self.steps = self.run(0)
        assert self.contents() == self.new

    def contents(self):
        paths = [self.folder / name for name in self.names]
        return [path.read_bytes() if path.exists() else None for path in paths]

    def run(self, stop):
        """Run until the step `stop`; return the number of steps of a run that was not killed."""
        for name, content in zip(self.names, self.old, strict=True):
            (self.folder / name).unlink(missing_ok=True)
            if content is not None:
                (self.folder / name).write_bytes(content)
        with contextlib.chdir(self.folder):
            return forked(lambda: cli.main(self.words), self.folder, stop)

    def check(self):
        """Return "all old", "all new" or "some new", after the next run in this folder."""
        left = self.contents()
        for name, content, *complete in zip(self.names, left, self.old, self.new, strict=True):
            assert content in complete, f"{name}: neither old nor new ({len(content or b'')} bytes)"
        with output.writing([self.folder / "next"], force=True) as (path,):
            path.write_text("next")
        assert not hidden(self.folder), hidden(self.folder)
        assert self.contents() == left, "the next run has changed outputs of another"
        return "all new" if left == self.new else "all old" if left == self.old else "some new"


def survey(number, seed=1):
    """Kill that many runs; return how often outputs were old or new, by command."""
    outcomes, generator = Counter(), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for name, command in COMMANDS.items():
            job = Job(Path(folder) / name, command)
            for _ in range(number // len(COMMANDS)):
                assert job.run(generator.randint(1, job.steps)) is None
                outcomes[name, job.check()] += 1
    return outcomes


if __name__ == "__main__":
    outcomes = survey(int(sys.argv[1]), *map(int, sys.argv[2:]))
    for (name, left), count in sorted(outcomes.items()):
        print(f"{name}: {count} times {left}")
    print(f"{sum(outcomes.values())} kills, no incomplete file, nothing left behind")
