"""Commands that write files, ended by a signal at a random moment: ``python -m fuzz --kills 100 --seed 7``.

Afterwards every output is absent, what it was before, or what a run that no one touched writes; no other file has
changed; nothing of the run is left but hidden folders and blocks of frames to go on from; no process runs on. The same
command then writes its outputs, and removes what was left.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from vmdpotential import read_structure, write_map, write_structure
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

from .seeds import netcdf

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
#: What else is in the folder of the outputs, one file with a name like those of hidden folders.
FOREIGN = {"notes.txt": "mine", ".vmdpotential-mine": "mine", "out.dx.bak": "mine"}
OLD = "what was there before"
#: A run's processes end within this time, s, after it was killed.
ENDED = 20.0


@dataclass(frozen=True)
class Case:
    """A command and its outputs, and what it adds when it is run again in their place.

    Parameters
    ----------
    words : str
    outputs : tuple of str
    again : str
        Where there are old outputs.
    goes_on : str
        Where its blocks of frames are left.
    """

    words: str
    outputs: tuple[str, ...]
    again: str = "--force"
    goes_on: str = ""


CASES = (
    Case("map in/box.pqr --spacing 0.4 -o out.dx", ("out.dx",)),
    Case("map in/box.pqr --spacing 0.4 -o out.zarr", ("out.zarr",)),
    Case("average in/box.pqr in/box.nc --spacing 1 --fit none --stat mean,std -o out.npz --workers 0",
         ("out.npz", "out_std.npz"), goes_on="out.npz.blocks"),
    Case("profile in/box.pqr in/box.nc -o out.csv --figure out.png", ("out.csv", "out.png"), goes_on="out.csv.blocks"),
    Case("ionize in/box.pqr --ions SOD=3,CLA=3 -o out.pdb out.cif --table out.csv", ("out.pdb", "out.cif", "out.csv")),
    Case("prepare in/peptide.pdb -o out.pqr out.cif out.csv", ("out.pqr", "out.cif", "out.csv")),
    Case("surface in/peptide.pdb in/map.dx -o out.csv out.ply --figure out.png", ("out.csv", "out.ply", "out.png")),
    Case("slice in/map.dx -o out.png", ("out.png",)),
    Case("batch map in/many -o out --workers 2 --spacing 1 --format npz",
         tuple(f"out/{number}.npz" for number in range(4)), again=""),
)


def fill(folder: Path) -> None:
    """Write the inputs: a box of water, its frames, a peptide and a map around it, and small files for a batch."""
    rng = np.random.default_rng(3)
    edge, count = 15.0, 5
    places = (np.stack(np.meshgrid(*[np.arange(count)] * 3, indexing="ij"), -1).reshape(-1, 1, 3) + 0.2) * edge / count
    atoms = (places + np.array([[0, 0, 0], [0.957, 0, 0], [-0.24, 0.927, 0]])).reshape(-1, 3).round(3)
    index = np.repeat(np.arange(count**3), 3)
    box = Structure(atoms, np.resize(["OH2", "H1", "H2"], len(atoms)), np.full(len(atoms), "TIP3"), index + 1, index,
                    charges=np.resize([-0.834, 0.417, 0.417], len(atoms)), radii=np.resize([1.7, 0.5, 0.5], len(atoms)),
                    cell=Cell.from_parameters(edge, edge, edge))
    write_structure(box, folder / "box.pqr")
    (folder / "box.nc").write_bytes(netcdf(atoms + rng.normal(0, 0.1, (60, *atoms.shape)), edge))
    entry = read_structure(Path(__file__).parents[2] / "data" / "1hvr.pdb.gz")
    peptide = entry.take(np.flatnonzero((entry.chain_ids == "A") & (entry.residue_ids < 30)))
    write_structure(peptide, folder / "peptide.pdb")
    around = Lattice.around(peptide.positions, 0.7, 5.0)
    values = np.sin(around.points()).sum(1).reshape(around.shape).astype(np.float32)
    write_map(Grid(around, values, "kT/e", 298.15), folder / "map.dx")
    (folder / "many").mkdir()
    for number in range(4):
        write_structure(box.take(np.arange(60 * (number + 1))), folder / "many" / f"{number}.pqr")


def content(path: Path) -> dict[str, bytes]:
    """Return the content of a file, or of the files in a folder; none of what is not there."""
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()}


def start(words: str, folder: Path) -> int:
    """Run a command in a process of its own group; return its number."""
    child = os.fork()
    if not child:
        code = 99
        try:
            os.setsid()
            os.chdir(folder)
            out = os.open(folder.parent / "printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
            code = cli.main(words.split())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return child


def ended(child: int) -> int:
    """Wait for a process; return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_on(group: int) -> bool:
    """Return whether a process of a group still runs after a while."""
    end = time.monotonic() + ENDED
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    os.killpg(group, signal.SIGKILL)
    return True


class Kills:
    """Runs each command once, and then ends it at random moments.

    Parameters
    ----------
    seed : int
    folder : Path
        Where all is done.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        (folder / "in").mkdir()
        fill(folder / "in")
        self.inputs = content(folder / "in")
        self._known: dict[Case, tuple[float, dict[str, dict[str, bytes]]]] = {}

    def _fresh(self) -> Path:
        place = self.folder / "here"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        (place / "in").symlink_to(self.folder / "in")
        for name, text in FOREIGN.items():
            (place / name).write_text(text)
        return place

    def _printed(self) -> str:
        return (self.folder / "printed").read_text(errors="replace")[-600:]

    def _whole(self, case: Case) -> tuple[float, dict[str, dict[str, bytes]]]:
        """Return the time, s, that a command takes, and what it writes; the second run has all libraries loaded."""
        if case not in self._known:
            for _ in range(2):
                place, begin = self._fresh(), time.monotonic()
                code = ended(start(case.words, place))
                assert code == 0, f"{case.words}: exit code {code}: {self._printed()}"
                seconds = time.monotonic() - begin
            self._known[case] = seconds, {name: content(place / name) for name in case.outputs}
        return self._known[case]

    def check(self, index: int) -> tuple[str, list[str]]:
        """Return what was done, and what was wrong."""
        rng = Random(f"{self.seed} {index}")
        case, sent, old = rng.choice(CASES), rng.choice(SIGNALS), rng.random() < 0.5
        seconds, whole = self._whole(case)
        place, moment = self._fresh(), rng.uniform(0, 1.1) * seconds
        old = old and bool(case.again) and not case.outputs[0].endswith(".zarr")
        if old:
            for name in case.outputs:
                (place / name).write_text(OLD)
        words = f"{case.words} {case.again}" if old else case.words
        what = f"{words}: {sent.name} after {moment:.2f} of {seconds:.2f} s{', over old files' if old else ''}"
        child = start(words, place)
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, sent)
        code = ended(child)
        return what, [*self._after(case, place, whole, old, sent, code, child),
                      *self._again(case, place, whole)]

    def _after(self, case: Case, place: Path, whole: dict[str, dict[str, bytes]], old: bool, sent: int, code: int,
               child: int) -> Iterator[str]:
        if run_on(child):
            yield "a process ran on"
        printed = self._printed()
        if code not in ((0, -sent) if sent == signal.SIGKILL else (0, 130, -sent)) or "Traceback" in printed:
            yield f"exit code {code}: {printed}"
        for name in case.outputs:
            found = content(place / name)
            if found and found != whole[name] and not (old and found == {".": OLD.encode()}):
                yield f"{name} is neither absent nor old nor whole"
            if old and not found:
                yield f"{name} was there before, and is lost"
        tops = {name.split("/")[0] for name in case.outputs}
        left = {path.name for path in place.iterdir()} - set(FOREIGN) - tops - {"in"}
        hidden = {name for name in left if name.startswith(".vmdpotential-")}
        if hidden and sent != signal.SIGKILL and code != -sent:
            yield f"an interrupted run left {sorted(hidden)}"
        if left - hidden - {case.goes_on}:
            yield f"left {sorted(left - hidden)}"
        if any((place / name).read_text() != text for name, text in FOREIGN.items()):
            yield "another file has changed"
        if content(self.folder / "in") != self.inputs:
            yield "an input has changed"

    def _again(self, case: Case, place: Path, whole: dict[str, dict[str, bytes]]) -> Iterator[str]:
        more = " --resume" if case.goes_on and (place / case.goes_on).is_dir() else ""
        code = ended(start(f"{case.words}{more} {case.again}", place))
        if code:
            yield f"again, exit code {code}: {self._printed()}"
        for name in case.outputs:
            if content(place / name) != whole[name]:
                yield f"{name} is another when the command is run again"
        tops = {name.split("/")[0] for name in case.outputs}
        left = sorted({path.name for path in place.rglob("*") if path.name.startswith(".vmdpotential-")
                       or path.parent == place} - set(FOREIGN) - tops - {"in"})
        if left:
            yield f"again, left {left}"


def run(seed: int, count: int, only: int | None = None) -> int:
    """End commands `count` times, or one of these again; return the number of violations."""
    violations = 0
    with tempfile.TemporaryDirectory() as folder:
        kills = Kills(seed, Path(folder).resolve())
        for index in range(count) if only is None else (only,):
            what, wrong = kills.check(index)
            if only is not None:
                print(what)
            violations += bool(wrong)
            for line in wrong:
                print(f"--only {index}: {what}: {line}", flush=True)
    return violations
