"""One command run for many inputs, in processes of their own, with a table of results that allows a run to be resumed.

The whole table is written again at intervals during the run. It lists every input from the start, with two digests: of
the options, the program's version and the path, and of the input files. A run that finds a table computes only those
inputs that are missing, have failed, or whose files have changed.
"""

from __future__ import annotations

import contextlib
import csv
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vmdpotential import __version__
from vmdpotential.errors import InputError, OutputError, UsageError, VmdpotentialError, plain_spelling
from vmdpotential.execution.cluster import cluster_pool
from vmdpotential.execution.pools import WorkerError, collect_blocks
from vmdpotential.execution.processes import Processes
from vmdpotential.execution.work import Work, WorkNeeds, work_fingerprint
from vmdpotential.frontend import messages
from vmdpotential.io.files import output as files
from vmdpotential.io.files import text as text_files
from vmdpotential.io.files.hidden import remove_abandoned

#: File name of the table.
REPORT_NAME = "report.csv"

#: First and last columns of the table; those of the results are between them. ``structure`` is the input file.
FIRST_COLUMNS, LAST_COLUMNS = ("name", "structure", "file", "status"), ("seconds", "message", "run")

#: Separator between the names of an input's output files.
FILE_SEPARATOR = "; "

#: Least interval between two writings of the table, in seconds, and in multiples of the time that a writing takes.
INTERVAL, TIMES = 2.0, 20.0


@dataclass(frozen=True)
class BatchItem:
    """One input of a batch.

    Parameters
    ----------
    name : str
        Name of its row and of its output files.
    path : Path
        The input file.
    values : mapping
        Values of the other parameters that differ between inputs, by parameter name.
    outputs : mapping of sequences of Path
        The files to write, by parameter name.
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
    """Return the paths in the value of a parameter, which may be a path or a tuple with paths."""
    return [path for path in (value if isinstance(value, tuple) else [value]) if isinstance(path, Path)]


#: Function that computes an input and returns values for the table by column; ``file`` has the names of the files
#: written, where they differ from the expected ones.
Make = Callable[[BatchItem], Mapping[str, Any]]


def inputs_of(source: Path, fits: Callable[[Path], bool], what: str = "structure") -> list[Path]:
    """Return the matching files in a folder, sorted by name, or those listed in a text file, one path on each line.

    Empty lines and lines that begin with ``#`` are left out. A broken link in a folder is included, so that it is
    reported as a failed input.

    Raises
    ------
    InputError
        When there are no files, or the list cannot be read.
    """
    if source.is_dir():
        results = sorted(path for path in source.iterdir()
                       if fits(path) and not path.name.startswith(".")
                       and (path.is_file() or (path.is_symlink() and not path.exists())))
        if not results:
            raise InputError(f"{source}: there are no {what} files in this folder")
        return results
    with text_files.reading_file(source):
        lines = text_files.read_text(text_files.buffered_stream(source)).decode("utf-8", "surrogateescape").split("\n")
    results = [Path(line.strip()) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not results:
        raise InputError(f"{source}: lists no files", "give a path on each line")
    return results


def unique_names_of(paths: Sequence[Path]) -> list[str]:
    """Return a unique name for each input: the file name without suffixes, numbered where an earlier input has it."""
    taken: set[str] = set()
    result = []
    for path in paths:
        name = path.name
        for suffix in (*text_files.COMPRESSED_SUFFIXES, text_files.format_suffix(path)):
            if suffix and name.lower().endswith(suffix) and len(name) > len(suffix):
                name = name[: -len(suffix)]
        candidate, number = name, 1
        while candidate.lower() in taken:  # some file systems ignore case
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        result.append(candidate)
    return result


@dataclass(frozen=True)
class _Inputs(Work):
    """A work in which every block is one input."""

    make: Make
    items: Sequence[BatchItem]
    engine: str

    def needs(self) -> WorkNeeds:
        """Return the engine, whose GPUs are assigned to the processes in turn."""
        return WorkNeeds(self.engine)

    def block(self, numbers: range) -> Mapping[str, Any]:
        """Compute an input; return its values for the table, and the warnings that were issued."""
        item = self.items[numbers[0]]
        lines: list[str] = []
        with messages.warnings(lines.append, plain_spelling):
            figures = self.make(item)
        return {**figures, "message": "; ".join(line.removeprefix(f"{item.path}: ") for line in lines)}


@dataclass(frozen=True)
class BatchOutcome:
    """The result of a batch: the row of each input, the number of inputs done before, and the seconds taken."""

    rows: Sequence[Mapping[str, str]]
    before: int
    seconds: float

    @property
    def failed(self) -> list[Mapping[str, str]]:
        """Rows of the inputs that failed."""
        return [row for row in self.rows if row["status"] == "failed"]


def run_batch(make: Make, items: Sequence[BatchItem], folder: Path, options: Mapping[str, Any], *, workers: int = 1,
              scheduler: str = "", engine: str = "cpu", resume: bool = True, force: bool = False) -> BatchOutcome:
    """Compute all inputs, and write the table ``report.csv`` into a folder.

    Parameters
    ----------
    make : callable
        Function that computes one input; it is pickled.
    items : sequence of Item
        The inputs, with unique names and absolute paths, as workers may have another working folder.
    folder : Path
        Folder of the output files, created unless it exists.
    options : mapping
        Everything else that determines the results.
    workers : int
        Number of processes on this machine.
    scheduler : str
        Address of a Dask scheduler, whose workers must have access to the same folders.
    engine : str
        Engine, whose GPUs are assigned to the processes in turn.
    resume : bool
        Whether results of an earlier run are kept.
    force : bool
        Whether existing files that do not belong to the table may be replaced.

    Raises
    ------
    UsageError
        When such files exist and `force` is false.
    OutputError
        When the folder or the table cannot be written.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: the folder cannot be made ({error.strerror})", "name another") from None
    report = folder / REPORT_NAME
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
            pool = stack.enter_context(cluster_pool(scheduler, work) if scheduler else contextlib.closing(
                Processes(work, min(workers, len(todo)))))
            for index, future in collect_blocks(pool, [range(n, n + 1) for n in todo], lambda *_: None,
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
    remove_abandoned(folder)  # temporary files of processes that died
    return BatchOutcome(rows, len(rows) - len(todo), time.perf_counter() - start)


def _row(item: BatchItem, old: Mapping[str, str], options: Mapping[str, Any], resume: bool, force: bool) -> dict[str,
                                                                                                                 str]:
    """Return the row of an input: its earlier row if it is done and nothing has changed, else a pending one."""
    read = [item.path, *(path for value in item.values.values() for path in paths_in(value))]
    task = work_fingerprint(__version__, options, [os.path.realpath(path) for path in read],
                       [path.name for path in item.files],
                       {name: value for name, value in item.values.items() if not paths_in(value)})[:16]
    try:
        content = work_fingerprint(*read)[:16]
    except InputError:  # reported when it is read
        content = ""
    folder = item.files[0].parent if item.files else Path()
    written = [folder / name for name in old.get("file", "").split(FILE_SEPARATOR) if name]
    if (resume and old.get("run") == f"{task}-{content}" and content and old["status"] == "done"
            and all(path.exists() for path in written)):
        return {**old, "structure": _shown(item)}
    # files of a pending input were left by an earlier run that was killed
    if not force and old.get("status") != "pending" and old.get("run", "").partition("-")[0] != task:
        for path in item.files:
            if path.exists():
                raise UsageError("", f"{path}: was written by a run with other options",
                                 "use {force} to replace it, or another folder")
    return {"name": item.name, "structure": _shown(item), "file": FILE_SEPARATOR.join(path.name for path in item.files),
            "status": "pending", "run": f"{task}-{content}"}


def _shown(item: BatchItem) -> str:
    """Return the path of an input, relative to the working folder where it is below that."""
    path = os.path.relpath(item.path)
    return str(item.path) if path.startswith(os.pardir) else path


def _former(report: Path, force: bool) -> dict[str, dict[str, str]]:
    """Return the rows of an existing table, by the names of the inputs."""
    if not report.exists():
        return {}
    with report.open(newline="", encoding="utf-8", errors="surrogateescape") as stream:
        reader = csv.DictReader(stream)
        try:
            rows = list(reader)
        except csv.Error:
            rows = []
        known = {*FIRST_COLUMNS, *LAST_COLUMNS} <= set(reader.fieldnames or ())
    if not known and not force:
        raise UsageError("", f"{report}: exists and is not the table of a batch", "use {force} to replace it")
    # a row with more or fewer fields is damaged
    whole = (row for row in rows if None not in row and None not in row.values())
    return {row["name"]: row for row in whole} if known else {}


def _write(report: Path, rows: Sequence[Mapping[str, str]]) -> None:
    columns = [name for name in dict.fromkeys(name for row in rows for name in row)
               if name not in FIRST_COLUMNS + LAST_COLUMNS]
    with (files.writing_files([report], force=True) as (temporary,),
          temporary.open("w", newline="", encoding="utf-8", errors="surrogateescape") as stream):
        writer = csv.DictWriter(stream, (*FIRST_COLUMNS, *columns, *LAST_COLUMNS), "", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _message(error: VmdpotentialError, path: str) -> str:
    return " ".join(error.message().removeprefix(f"{os.path.abspath(path)}: ").split())


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
