"""The command ``python -m fuzz``; see the package."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import numpy as np

from vmdpotential import cache, read_map, read_structure
from vmdpotential.errors import TaskError, VmdpotentialError
from vmdpotential.io import read_topology
from vmdpotential.plugins.web.content import ion_content

from . import kills, kinds, systems, tools
from .mutations import mutated
from .seeds import seeds, system

#: What the plan may take (VMDPOTENTIAL_MEMORY), and how much the process may grow; packing a case by LZMA takes 100 MB.
PLAN, ROOM = 60_000_000, 400_000_000
#: Cases of a process, which keeps a little of each.
LIFE = 2_000
SECONDS = 10  # of this process' own, so that a busy machine is no hang
#: How often each reader comes: MDAnalysis' are slow.
WEIGHTS = {".mol2": 0.05, ".itp": 0.05, ".top": 0.1, ".tpr": 0.1, ".dcd": 0.3, ".xtc": 0.5, ".trr": 0.5, ".h5md": 0.1,
           ".prm": 0.5, ".str": 0.5, ".par": 0.2}
#: The same of each file for a task, which takes a tenth of a second.
TASK_WEIGHT = 0.2


class Hang(BaseException):
    """Ten seconds have passed."""


class Cases:
    """Makes the mutated file of an index, and reads it."""

    def __init__(self, seed: int, folder: Path, only: str = "") -> None:
        self.seed, self.folder = seed, folder
        result = seeds()
        for kind, files in kinds.more_seeds(result).items():
            result.setdefault(kind, []).extend(files)
        self.seeds = [(kind, suffix, data) for kind, files in result.items() for suffix, data in files
                      if only in ("", kind)]
        self.weights = [TASK_WEIGHT if kind in kinds.TASKS else WEIGHTS.get(suffix, 1.0)
                        for kind, suffix, _ in self.seeds]
        self.others = [data for _, _, data in self.seeds]
        self.good = folder / "good.psf"
        self.good.write_bytes(result["topology"][0][1])
        os.environ["VMDPOTENTIAL_THREADS"] = "1"  # those of a parent do not run in its children
        os.environ["VMDPOTENTIAL_CACHE"] = str(folder / "cache")
        cache.forget()
        for kind, suffix, data in self.seeds:  # they are good; and all libraries are loaded before processes are made
            path = folder / f"seed{suffix}"
            path.write_bytes(data)
            # whose options may be wrong
            with contextlib.suppress(*[VmdpotentialError] if kind in kinds.TASKS else []):
                self._read(kind, path)
            path.unlink()

    def make(self, index: int, place: str = "case") -> tuple[str, Path]:
        """Return what reads the file, and where it is; the process that keeps files has a place of its own."""
        rng = Random(f"{self.seed} {index}")
        kind, suffix, data = rng.choices(self.seeds, self.weights)[0]
        suffix, data = mutated(rng, suffix, data, self.others)
        path = self.folder / f"{place}{suffix}"
        path.write_bytes(data)
        return kind, path

    def check(self, index: int, place: str = "case") -> str:
        """Return what is wrong with how a case is read, empty for nothing."""
        kind, path = self.make(index, place)
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                sys.unraisablehook = lambda ignored: warned.append(ignored)  # Python prints a traceback
                self._read(kind, path)
            return f"warning: {warned[0]}" if warned else ""
        except VmdpotentialError as error:
            text = str(error)
            # of a task, an option may be wrong, or atoms take too much memory
            named = path.name in text or (kind in kinds.TASKS and (error.parameter or isinstance(error, TaskError)))
            if len(text) > 300 or not text.isprintable() or not named:
                return f"message ({len(text)}): {text[:600]!a}"
            return f"warning: {warned[0]}" if warned else ""
        except (Exception, Hang) as error:
            return f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
        finally:
            path.unlink(missing_ok=True)

    def _read(self, kind: str, path: Path) -> None:
        if kind == "map":
            grid = read_map(path)
            assert np.isfinite(grid.values).all()
            assert grid.temperature is None or 0 < grid.temperature < np.inf
        elif kind in kinds.READ:
            kinds.READ[kind](path)
        elif kind == "ions":
            json.dumps(ion_content(path, system()), allow_nan=False)
        else:
            structure = (read_topology(path) if kind == "topology" else
                         read_structure(path, self.good if kind == "frame" else None))
            assert len(structure)
            assert np.isfinite(structure.positions).all()
            assert (np.abs(structure.residue_ids) < 2**31).all()
            assert structure.topology is None or (structure.topology.masses >= 0).all()


def _alarm(number: int, frame: Any) -> NoReturn:
    raise Hang(f"more than {SECONDS} s")


#: The exit code of a process that has no memory left for another case.
FULL = 7


def _child(cases: Cases, start: int, stop: int, write: int) -> NoReturn:
    """Read cases, and report each when it begins, and what is wrong with it; a crash ends this process."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
    signal.signal(signal.SIGPROF, _alarm)
    for index in range(start, stop):
        os.write(write, f"[{index}, null]\n".encode())
        signal.alarm(20 * SECONDS)  # ends this process, where no handler of Python's is called
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            wrong = cases.check(index)
        except (Hang, MemoryError) as error:
            wrong = type(error).__name__
        signal.setitimer(signal.ITIMER_PROF, 0)
        if "MemoryError" in wrong and index > start:  # the cases before may have taken it
            os._exit(FULL)
        if wrong:
            os.write(write, (json.dumps([index, wrong]) + "\n").encode())
    os._exit(0)


def run(seed: int, stop: int, keep: Path, kind: str = "") -> int:
    """Read the cases, in children that are replaced when they end early; return the number of violations."""
    violations, start = 0, 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        cases = Cases(seed, Path(folder), kind)
        while start < stop:
            reader, writer = os.pipe()
            end = min(stop, start + LIFE)
            child = os.fork()
            if not child:
                try:
                    _child(cases, start, end, writer)
                except BaseException:
                    traceback.print_exc()
                finally:  # nothing of the parent's is done twice
                    os._exit(9)
            os.close(writer)
            results = []
            with os.fdopen(reader) as lines:
                for line in lines:
                    index, wrong = json.loads(line)
                    results += [(index, wrong)] * (wrong is not None)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            start = end if code == 0 else index if code == FULL else index + 1
            if code not in (0, FULL):
                results.append((index, f"the process ended with exit code {code}"))
            for index, wrong in results:
                _keep(cases, index, wrong, keep)
            violations += len(results)
    return violations


def _keep(cases: Cases, index: int, wrong: str, keep: Path) -> None:
    kind, path = cases.make(index, "kept")
    keep.mkdir(parents=True, exist_ok=True)
    name = keep / f"{kind}-{cases.seed}-{index}{''.join(path.suffixes)}"
    name.write_bytes(path.read_bytes())
    path.unlink()
    print(ascii(f"--- {name}: {wrong}").replace("\\n", "\n"), flush=True)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("--count", type=int, default=15_000, help="how many files (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", default="", help="files of one kind alone, such as 'bare structure'")
    parser.add_argument("--only", type=int, help="one index, in this process")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "vmdpotential-fuzz")
    parser.add_argument("--kills", type=int, help="end this many commands by a signal instead; see fuzz.kills")
    parser.add_argument("--systems", type=int, help="check this many random systems instead; see fuzz.systems")
    parser.add_argument("--tools", type=int, help="make this many calls of the tools for agents instead; see tools.py")
    given = parser.parse_args()
    begin = time.monotonic()
    logging.getLogger("vmdpotential").addHandler(logging.NullHandler())  # of several models and the like
    for what, module in (("kills", kills), ("systems", systems), ("tools", tools)):
        if count := getattr(given, what):
            violations = module.run(given.seed, count, given.only)
            print(f"{count} {what}, seed {given.seed}, {time.monotonic() - begin:.0f} s: {violations} violations")
            return int(violations > 0)
    os.environ["VMDPOTENTIAL_MEMORY"] = str(PLAN)
    if given.only is not None:
        with tempfile.TemporaryDirectory() as folder:
            cases = Cases(given.seed, Path(folder), given.kind)
            kind, path = cases.make(given.only)
            print(kind, path.name, path.stat().st_size, "bytes")
            print(cases.check(given.only) or "sound")
        return 0
    violations = run(given.seed, given.count, given.keep, given.kind)
    print(f"{given.count} files, seed {given.seed}, {time.monotonic() - begin:.0f} s: {violations} violations")
    return int(violations > 0)


if __name__ == "__main__":
    sys.exit(main())
