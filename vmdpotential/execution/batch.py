"""The same of many structures: each in a process that may die, its figures in a table, to be gone on with after a stop.

The table is written again and again while the work goes on, whole each time. It lists every structure from the start,
with a digest of the options, the program's version and the path, and one of the file as it was. A run that finds a
table computes only what is missing, has failed, or whose file has changed.
"""

from __future__ import annotations

import contextlib
import csv
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmdpotential import __version__
from vmdpotential.errors import InputError, OutputError, UsageError, VmdpotentialError
from vmdpotential.execution.cluster import cluster
from vmdpotential.execution.pools import WorkerError, collect
from vmdpotential.execution.processes import Processes
from vmdpotential.execution.work import Needs, Work, fingerprint
from vmdpotential.io.files import output as files
from vmdpotential.io.files import recognise
from vmdpotential.io.files import text as text_files
from vmdpotential.io.files.hidden import remove_abandoned

#: The table's name.
REPORT = "report.csv"

COLUMNS = ("name", "structure", "file", "status", "net_charge", "atoms", "points", "method", "error", "error_away",
           "seconds", "prepared", "message", "run")

#: Seconds between two writings of the table, and how many times longer than one writing that is at least.
INTERVAL, TIMES = 2.0, 20.0

#: Makes a file of a structure's file and returns figures for the table's columns.
Make = Callable[[Path, Path], Mapping[str, Any]]


def structures_of(source: Path) -> list[Path]:
    """Return the structure files in a folder, by name, or those that a text file has, one a line.

    Empty lines, and what begins with ``#``, are left out. A link in a folder whose target is missing is listed, so that
    it is reported as a structure that failed.

    Raises
    ------
    InputError
        When there are none, or the list cannot be read.
    """
    if source.is_dir():
        found = sorted(path for path in source.iterdir()
                       if recognise.is_structure(path) and not path.name.startswith(".")
                       and (path.is_file() or (path.is_symlink() and not path.exists())))
        if not found:
            raise InputError(f"{source}: there are no structure files in this folder")
        return found
    with text_files.reading(source):
        lines = text_files.read_text(text_files.held(source)).decode("utf-8", "surrogateescape").split("\n")
    found = [Path(line.strip()) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not found:
        raise InputError(f"{source}: lists no structures", "give a path on each line")
    return found


def names(paths: Sequence[Path]) -> list[str]:
    """Return a name for each structure: its file's without suffixes, and a number where others have it before."""
    taken: set[str] = set()
    result = []
    for path in paths:
        name = path.name
        for suffix in (*text_files.COMPRESSED, text_files.suffix(path)):
            if suffix and name.lower().endswith(suffix) and len(name) > len(suffix):
                name = name[: -len(suffix)]
        candidate, number = name, 1
        while candidate.lower() in taken:  # on some systems names that differ in case are one
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        result.append(candidate)
    return result


@dataclass(frozen=True)
class _Structures(Work):
    """The work: a block is a structure."""

    make: Make
    paths: Sequence[Path]
    outputs: Sequence[Path]
    engine: str

    def needs(self) -> Needs:
        """Return whose GPUs, where it has some, the processes take in turn."""
        return Needs(self.engine)

    def block(self, numbers: range) -> Mapping[str, Any]:
        """Make the file of a structure; return its figures, and what was said meanwhile."""
        (number,) = numbers
        said = _Said()
        logger = logging.getLogger("vmdpotential")
        logger.addHandler(said)
        try:
            figures = self.make(self.paths[number], self.outputs[number])
        finally:
            logger.removeHandler(said)
        return {**figures, "message": "; ".join(line.removeprefix(f"{self.paths[number]}: ") for line in said.lines)}


class _Said(logging.Handler):
    """Keeps warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.lines.append(" ".join(record.getMessage().split()))


@dataclass(frozen=True)
class Outcome:
    """What became of a batch: a row of the table for each structure, how many were done before, and seconds."""

    rows: Sequence[Mapping[str, str]]
    before: int
    seconds: float

    @property
    def failed(self) -> list[Mapping[str, str]]:
        """The rows of structures that failed."""
        return [row for row in self.rows if row["status"] == "failed"]


def run_batch(make: Make, paths: Sequence[Path], folder: Path, suffix: str, options: Mapping[str, Any], *,
              workers: int = 1, scheduler: str = "", engine: str = "cpu", force: bool = False) -> Outcome:
    """Make a file in a folder of each structure, and the table ``report.csv``.

    Parameters
    ----------
    make : callable
        Makes the file; it is pickled.
    paths : sequence of Path
        The structures.
    folder : Path
        Made where it is not there.
    suffix : str
        Of the files, such as ``.npz``.
    options : mapping
        All that the result follows from beside the structure.
    workers : int
        Processes of this machine.
    scheduler : str
        Address of a Dask scheduler; its workers see the same folders.
    engine : str
        Whose GPUs, where it has some, the processes take in turn.
    force : bool
        Whether files may be replaced that no run with this table has made.

    Raises
    ------
    UsageError
        When such files are there.
    OutputError
        When the folder or the table cannot be written.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: the folder cannot be made ({error.strerror})", "name another") from None
    report = folder / REPORT
    files.check([report], force=True)
    former = _former(report, force)
    rows: list[dict[str, str]] = []
    for path, name in zip(paths, names(paths), strict=True):
        task = fingerprint(__version__, options, os.path.realpath(path))[:16]
        try:
            content = fingerprint(path)[:16]
        except InputError:  # reported when it is read
            content = ""
        digest = f"{task}-{content}"
        file = folder / f"{name}{suffix}"
        old = former.get(file.name, {})
        fits = old.get("run", "").partition("-")[0] == task
        if old.get("run") == digest and content and old["status"] == "done" and file.exists():
            rows.append({**old, "structure": str(path)})
            continue
        # what was under way when a run was killed is that run's
        if file.exists() and not fits and not force and old.get("status") != "pending":
            raise UsageError("", f"{file}: exists, and is of another run", "use {force} to replace it")
        rows.append({**dict.fromkeys(COLUMNS, ""), "name": name, "structure": str(path), "file": file.name,
                     "status": "pending", "run": digest})
    todo = [n for n, row in enumerate(rows) if row["status"] != "done"]
    # of full names, as workers may have another folder
    work = _Structures(make, [Path(os.path.abspath(path)) for path in paths],
                       [Path(os.path.abspath(folder / row["file"])) for row in rows], engine)
    start = time.perf_counter()
    _write(report, rows)
    interval, written = INTERVAL, time.perf_counter()
    with contextlib.ExitStack() as stack:
        stack.callback(_write, report, rows)
        if todo:
            pool = stack.enter_context(cluster(scheduler, work) if scheduler else contextlib.closing(
                Processes(work, min(workers, len(todo)))))
            for index, future in collect(pool, [range(n, n + 1) for n in todo], lambda *_: None,
                                         label="structures", ordered=False, retries=0):
                row = rows[todo[index]]
                try:
                    figures, seconds = future.result()
                except Exception as error:
                    row.update(status="failed", message=_message(WorkerError.of(error), row["structure"]))
                else:
                    row.update({name: _text(value) for name, value in figures.items()}, status="done",
                               seconds=f"{seconds:.3f}")
                if (now := time.perf_counter()) - written > interval:
                    _write(report, rows)
                    written = time.perf_counter()
                    interval = max(INTERVAL, TIMES * (written - now))
    remove_abandoned(folder)  # what processes left that died
    return Outcome(rows, len(rows) - len(todo), time.perf_counter() - start)


def _former(report: Path, force: bool) -> dict[str, dict[str, str]]:
    """Return the rows of a table that is there, by their files."""
    if not report.exists():
        return {}
    with report.open(newline="", encoding="utf-8", errors="surrogateescape") as stream:
        reader = csv.DictReader(stream)
        try:
            rows = list(reader)
        except csv.Error:
            rows = []
        known = reader.fieldnames is not None and tuple(reader.fieldnames) == COLUMNS
    if not known and not force:
        raise UsageError("", f"{report}: exists, and is no table of a batch", "use {force} to replace it")
    # a row with more or fewer fields is damaged
    whole = (row for row in rows if None not in row and None not in row.values())
    return {row["file"]: row for row in whole} if known else {}


def _write(report: Path, rows: Sequence[Mapping[str, str]]) -> None:
    with (files.writing([report], force=True) as (temporary,),
          temporary.open("w", newline="", encoding="utf-8", errors="surrogateescape") as stream):
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _message(error: VmdpotentialError, structure: str) -> str:
    return " ".join(error.message().removeprefix(f"{os.path.abspath(structure)}: ").split())


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
