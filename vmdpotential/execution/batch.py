"""One command for many inputs: each in a process that may end, its figures in a table, continued after a stop.

The table is written repeatedly while the work goes on, whole each time. It lists every input from the start, with a
digest of the options, the program's version and the path, and one of the files as they were. A run that finds a table
computes only what is missing, has failed, or whose files have changed.
"""

from __future__ import annotations

import contextlib
import csv
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vmdpotential import __version__
from vmdpotential.errors import InputError, OutputError, UsageError, VmdpotentialError
from vmdpotential.execution.cluster import cluster
from vmdpotential.execution.pools import WorkerError, collect
from vmdpotential.execution.processes import Processes
from vmdpotential.execution.work import Needs, Work, fingerprint
from vmdpotential.io.files import output as files
from vmdpotential.io.files import text as text_files
from vmdpotential.io.files.hidden import remove_abandoned

#: The table's name.
REPORT = "report.csv"

#: Its first and last columns, between which are those of the results' figures; ``structure`` is the input file.
FIRST, LAST = ("name", "structure", "file", "status"), ("seconds", "message", "run")

#: Between the names of an input's files.
BETWEEN = "; "

#: Seconds between two writings of the table, and how many times longer than one writing that is at least.
INTERVAL, TIMES = 2.0, 20.0


@dataclass(frozen=True)
class Item:
    """One input of a batch.

    Parameters
    ----------
    name : str
        Of its row and its files.
    path : Path
        The input file.
    values : mapping
        What else differs between inputs, by the names of parameters.
    outputs : mapping of sequences of Path
        The files to write, by the names of parameters.
    """

    name: str
    path: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Sequence[Path]] = field(default_factory=dict)

    @property
    def files(self) -> list[Path]:
        """All files to write."""
        return [path for paths in self.outputs.values() for path in paths]


def paths_in(value: Any) -> list[Path]:
    """Return the files that a value of a parameter names."""
    return [path for path in (value if isinstance(value, tuple) else [value]) if isinstance(path, Path)]


#: Computes an input and returns figures for the table's columns; ``file`` are the names of the files written, if they
#: are others than expected.
Make = Callable[[Item], Mapping[str, Any]]


def inputs_of(source: Path, fits: Callable[[Path], bool], what: str = "structure") -> list[Path]:
    """Return the files in a folder that fit, by name, or those that a text file lists, one on each line.

    Empty lines, and what begins with ``#``, are left out. A link in a folder whose target is missing is listed, so that
    it is reported as an input that failed.

    Raises
    ------
    InputError
        When there are none, or the list cannot be read.
    """
    if source.is_dir():
        results = sorted(path for path in source.iterdir()
                       if fits(path) and not path.name.startswith(".")
                       and (path.is_file() or (path.is_symlink() and not path.exists())))
        if not results:
            raise InputError(f"{source}: there are no {what} files in this folder")
        return results
    with text_files.reading(source):
        lines = text_files.read_text(text_files.held(source)).decode("utf-8", "surrogateescape").split("\n")
    results = [Path(line.strip()) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not results:
        raise InputError(f"{source}: lists no files", "give a path on each line")
    return results


def names(paths: Sequence[Path]) -> list[str]:
    """Return a name for each input: its file's without suffixes, and a number where others have it before."""
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
class _Inputs(Work):
    """The work: a block is an input."""

    make: Make
    items: Sequence[Item]
    engine: str

    def needs(self) -> Needs:
        """Return whose GPUs, where it has some, the processes take in turn."""
        return Needs(self.engine)

    def block(self, numbers: range) -> Mapping[str, Any]:
        """Compute an input; return its figures, and the warnings meanwhile."""
        item = self.items[numbers[0]]
        said = _Said()
        logger = logging.getLogger("vmdpotential")
        logger.addHandler(said)
        try:
            figures = self.make(item)
        finally:
            logger.removeHandler(said)
        return {**figures, "message": "; ".join(line.removeprefix(f"{item.path}: ") for line in said.lines)}


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
    """What became of a batch: a row of the table for each input, how many were done before, and seconds."""

    rows: Sequence[Mapping[str, str]]
    before: int
    seconds: float

    @property
    def failed(self) -> list[Mapping[str, str]]:
        """The rows of inputs that failed."""
        return [row for row in self.rows if row["status"] == "failed"]


def run_batch(make: Make, items: Sequence[Item], folder: Path, options: Mapping[str, Any], *, workers: int = 1,
              scheduler: str = "", engine: str = "cpu", resume: bool = True, force: bool = False) -> Outcome:
    """Compute all inputs, and write the table ``report.csv`` into a folder.

    Parameters
    ----------
    make : callable
        Computes one input; it is pickled.
    items : sequence of Item
        The inputs, with names that differ and paths that are absolute, as workers may have another folder.
    folder : Path
        Made where it does not exist.
    options : mapping
        All that the results follow from in addition to the inputs.
    workers : int
        Processes of this machine.
    scheduler : str
        Address of a Dask scheduler; its workers see the same folders.
    engine : str
        Whose GPUs, where it has some, the processes take in turn.
    resume : bool
        Whether what an earlier run has done is kept.
    force : bool
        Whether files may be replaced that no run with this table has made.

    Raises
    ------
    UsageError
        When such files exist.
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
    rows = [_row(item, former.get(item.name, {}), options, resume, force) for item in items]
    todo = [n for n, row in enumerate(rows) if row["status"] != "done"]
    work = _Inputs(make, items, engine)
    start = time.perf_counter()
    _write(report, rows)
    interval, written = INTERVAL, time.perf_counter()
    with contextlib.ExitStack() as stack:
        stack.callback(_write, report, rows)
        if todo:
            pool = stack.enter_context(cluster(scheduler, work) if scheduler else contextlib.closing(
                Processes(work, min(workers, len(todo)))))
            for index, future in collect(pool, [range(n, n + 1) for n in todo], lambda *_: None,
                                         label="inputs", ordered=False, retries=0):
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
    remove_abandoned(folder)  # what processes left that ended
    return Outcome(rows, len(rows) - len(todo), time.perf_counter() - start)


def _row(item: Item, old: Mapping[str, str], options: Mapping[str, Any], resume: bool, force: bool) -> dict[str, str]:
    """Return the row of an input: as it was where that is done and nothing has changed, else pending."""
    read = [item.path, *(path for value in item.values.values() for path in paths_in(value))]
    task = fingerprint(__version__, options, [os.path.realpath(path) for path in read],
                       [path.name for path in item.files],
                       {name: value for name, value in item.values.items() if not paths_in(value)})[:16]
    try:
        content = fingerprint(*read)[:16]
    except InputError:  # reported when it is read
        content = ""
    folder = item.files[0].parent if item.files else Path()
    written = [folder / name for name in old.get("file", "").split(BETWEEN) if name]
    if (resume and old.get("run") == f"{task}-{content}" and content and old["status"] == "done"
            and all(path.exists() for path in written)):
        return {**old, "structure": _shown(item)}
    # what was under way when a run was killed is that run's
    if not force and old.get("status") != "pending" and old.get("run", "").partition("-")[0] != task:
        for path in item.files:
            if path.exists():
                raise UsageError("", f"{path}: was written by a run with other options",
                                 "use {force} to replace it, or another folder")
    return {"name": item.name, "structure": _shown(item), "file": BETWEEN.join(path.name for path in item.files),
            "status": "pending", "run": f"{task}-{content}"}


def _shown(item: Item) -> str:
    """Return the path of an input, from the folder that this process is in."""
    path = os.path.relpath(item.path)
    return str(item.path) if path.startswith(os.pardir) else path


def _former(report: Path, force: bool) -> dict[str, dict[str, str]]:
    """Return the rows of an existing table, by their names."""
    if not report.exists():
        return {}
    with report.open(newline="", encoding="utf-8", errors="surrogateescape") as stream:
        reader = csv.DictReader(stream)
        try:
            rows = list(reader)
        except csv.Error:
            rows = []
        known = {*FIRST, *LAST} <= set(reader.fieldnames or ())
    if not known and not force:
        raise UsageError("", f"{report}: exists and is not the table of a batch", "use {force} to replace it")
    # a row with more or fewer fields is damaged
    whole = (row for row in rows if None not in row and None not in row.values())
    return {row["name"]: row for row in whole} if known else {}


def _write(report: Path, rows: Sequence[Mapping[str, str]]) -> None:
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in FIRST + LAST]
    with (files.writing([report], force=True) as (temporary,),
          temporary.open("w", newline="", encoding="utf-8", errors="surrogateescape") as stream):
        writer = csv.DictWriter(stream, (*FIRST, *columns, *LAST), "", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _message(error: VmdpotentialError, path: str) -> str:
    return " ".join(error.message().removeprefix(f"{os.path.abspath(path)}: ").split())


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
