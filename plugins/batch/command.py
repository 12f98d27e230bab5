"""The command ``batch``: run any command for many input files, or for the rows of a table of options."""

from __future__ import annotations

import csv
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

from vmdpotential import registry
from vmdpotential.commands.options import Force, check_are_maps
from vmdpotential.errors import CheckError, InputError, UsageError, similar_hint
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files import output as files
from vmdpotential.io.files import recognise
from vmdpotential.io.files import text as text_files
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Parameter, Report, ReportRows, other_names, parameters_of
from vmdpotential.results import Result, TableColumns

from .inputs import (
    FILE_SEPARATOR,
    FIRST_COLUMNS,
    LAST_COLUMNS,
    REPORT_NAME,
    BatchItem,
    BatchOutcome,
    inputs_of,
    paths_in,
    run_batch,
    unique_names_of,
)

#: Parameters of commands that do not apply to a batch, which computes every input completely.
_LEFT_OUT = ("partial",)

#: Advice where a shell has expanded a pattern such as *.pdb.
_FOR_MANY = "for many inputs, give their folder, or a text file with a path on each line"

Suffixes = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """The command to run, its inputs, and how they are distributed."""

    task: Annotated[str, Option("command to run for each input, such as map or energy", positional=True,
                                metavar="COMMAND")]
    inputs: Annotated[Path, Option(
        "folder of input files; one structure or map; text file with a path on each line; or .csv table with a row for "
        "each input, whose columns are parameters of the command", positional=True, metavar="INPUTS")]
    output: Annotated[Path, Option(
        "folder for the results, which are named after the inputs, and for report.csv", short="o", metavar="FOLDER",
        written=True)]
    format: Annotated[Suffixes, Option(
        "format of the results, as the suffix of the command's output, such as npz; several for commands that write "
        "several files", metavar="SUFFIX", heading="output")] = ()
    workers: Annotated[int | None, Option(
        "number of processes on this machine; one for each processor unless given", low=1, high=4096,
        heading="execution")] = None
    scheduler: Annotated[str, Option(
        "address of a Dask scheduler whose workers compute the inputs; without TLS, anyone who can connect to a Dask "
        "cluster can run code on it with your account", metavar="ADDRESS", role="address",
        heading="execution")] = ""
    resume: Annotated[bool, Option("keep the results of an earlier run in the same folder", heading="execution")] = True
    force: Force = False


def batch(settings: BatchOptions, **options: Any) -> Batch:
    """Run a command for each file of a folder or a list, or for each row of a table.

    All options of the command can be given, and apply to every input: "batch energy poses -o energies --between protein
    ligand". For options that name output files, give only the end of the name: "--figure .png". The table report.csv in
    the output folder has a row for each input: results, files, warnings, error. An input that fails, or crashes its
    worker, does not stop the others; the exit code is then 3. If the same batch is run again, it computes only inputs
    that are missing or have failed, or whose files have changed.

    Raises
    ------
    UsageError
        For options that contradict each other, or results of another run.
    InputError
        When there are no inputs, or the table cannot be read.
    CheckError
        When inputs failed.
    OutputError
        When the folder or the table cannot be written.
    """
    from vmdpotential.execution.processes import process_count
    from vmdpotential.kernels import threads

    command, folder = _command(settings.task), settings.output
    source = _source(command)
    if files.is_standard(folder):
        raise UsageError("output", "a folder is needed for the results", "such as {output results}")
    for parameter in command.parameters:
        if Grid in parameter.objects and Structure not in parameter.objects:
            check_are_maps(parameter.name, paths_in(options.get(parameter.name)), _FOR_MANY)
    rows = (_of_table(settings.inputs, command) if settings.inputs.suffix.lower() == ".csv" else
            [("", {source.name: path}) for path in _listed(settings.inputs, source)])
    for parameter in command.parameters:
        if parameter.required and parameter.name not in options and not all(parameter.name in row for _, row in rows):
            raise UsageError(parameter.name, "a value is needed")
    endings = _endings(command, settings.format, options)
    items = []
    paths = [paths_in(row[source.name])[0] for _, row in rows]
    names = unique_names_of([Path(name or path) for (name, _), path in zip(rows, paths, strict=True)])
    for name, path, (_, row) in zip(names, paths, rows, strict=True):
        outputs = {key: [Path(os.path.abspath(folder / f"{name}{ending}")) for ending in matches]
                   for key, matches in endings.items()}
        items.append(BatchItem(name, Path(os.path.abspath(path)), _absolute(row), outputs))
    given = _absolute({name: value for name, value in options.items() if name not in endings})
    engine = next((given.get(p.name) or p.default for p in command.parameters if p.option.role == "engine"), "cpu")
    workers = settings.workers
    if workers is None:  # reading and writing files takes longer than the computation on a GPU
        workers = threads.count() if settings.scheduler else process_count(engine, threads.count())
    outcome = run_batch(partial(_one, command.name, source.name, given), items, folder, given, workers=workers,
                        scheduler=settings.scheduler, engine=engine, resume=settings.resume, force=settings.force)
    result = Batch(command=command.name, outcome=outcome, folder=folder, report_file=folder / REPORT_NAME,
                   files=[folder / REPORT_NAME])
    if outcome.failed:
        raise CheckError(f"{len(outcome.failed)} of {len(outcome.rows)} inputs failed", result)
    return result


class Batch(Result):
    """The results of a batch: the inputs that were computed, and those that failed."""

    command: str
    outcome: BatchOutcome
    folder: Path
    report_file: Path

    @cached_property
    def structures(self) -> int:
        """The number of inputs."""
        return len(self.outcome.rows)

    @cached_property
    def done(self) -> int:
        """The number of inputs with results."""
        return self.structures - len(self.failed)

    @cached_property
    def failed(self) -> Sequence[Mapping[str, Any]]:
        """The names of inputs that failed, and their errors."""
        return [{name: row[name] for name in ("structure", "message")} for row in self.outcome.failed]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "command": self.command, "done_before": self.outcome.before, "seconds": self.outcome.seconds,
            "folder": self.folder, "report_file": self.report_file, "structures": self.structures, "done": self.done,
            "failed": self.failed}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the numbers of inputs, the errors and the speed."""
        before, seconds, failed = self.outcome.before, self.outcome.seconds, self.failed
        earlier = f" ({before} of them in an earlier run)" if before else ""
        yield f"{self.structures} inputs: {self.done} done{earlier}, {len(failed)} failed"
        yield ReportRows(lambda n: f"{failed[n]['structure']}: {failed[n]['message']}", range(len(failed)), 20)
        yield f"{seconds:.2f} s, {(self.structures - before) / max(seconds, 1e-9):.1f} inputs per second"

    def table(self) -> TableColumns:
        """Return the columns of report.csv."""
        return {name: [row.get(name) for row in self.outcome.rows]
                for name in dict.fromkeys(name for row in self.outcome.rows for name in row)}


def _command(name: str) -> Command:
    """Return the command with this name.

    Raises
    ------
    UsageError
        For a command without an input file.
    """
    command: Command = registry.get("command", name)
    if not command.repeatable or not any(p.option.positional and p.type is Path for p in command.parameters):
        raise UsageError("task", "the command has no input file, so that it cannot be run for many inputs",
                         "choose a command such as map",
                         value=name)
    return command


def _source(command: Command) -> Parameter:
    """Return the parameter of the input file."""
    return next(p for p in command.parameters if p.option.positional and p.type is Path)


def _fits(source: Parameter, path: Path) -> bool:
    """Return whether a file has a format that the command reads."""
    from vmdpotential.io.maps import is_map

    if Structure in source.objects:
        return recognise.is_structure(path)
    return is_map(path) if Grid in source.objects else True


def _listed(inputs: Path, source: Parameter) -> list[Path]:
    """Return the files of a folder or a list; a structure or map is no list of files, but the only one."""
    from vmdpotential.io.maps import is_map

    if inputs.is_file() and (recognise.is_structure(inputs) or is_map(inputs)):
        return [inputs]
    return inputs_of(inputs, partial(_fits, source), source.name)


def _absolute(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with absolute paths, because workers may have another working folder."""
    def absolute(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(absolute, value))
        return Path(os.path.abspath(value)) if isinstance(value, Path) else value
    return {name: absolute(value) for name, value in values.items()}


def _endings(command: Command, formats: Suffixes, options: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the endings of the output files of an input, by the parameters that name these files."""
    endings = {}
    for parameter in command.parameters:
        if parameter.option.written and parameter.option.short:
            chosen = [f".{word.removeprefix('.')}" for word in formats] or list(filter(None, [parameter.option.suffix]))
            if len(chosen) > 1 and not parameter.several:
                raise UsageError("format", f"{command.name} writes one file for each input", value=" ".join(formats))
            if chosen:
                endings["output"] = chosen
        elif parameter.option.written and parameter.name in options:
            endings[parameter.name] = [str(path) for path in paths_in(options[parameter.name])]
            for ending in endings[parameter.name]:
                if ending[0] not in "._-" or os.path.basename(ending) != ending:
                    raise UsageError(parameter.name, "in a batch, the end of a file name is needed",
                                     "give one such as _x.csv or .png", value=ending)
    if formats and "output" not in endings:
        raise UsageError("format", f"{command.name} has no output", value=" ".join(formats))
    return endings


def _of_table(path: Path, command: Command) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and the values of each row of a table.

    Raises
    ------
    InputError
        When it cannot be read, or a cell is wrong.
    """
    known, source = {p.name: p for p in _inner(command)}, _source(command)
    known[source.name] = source
    with text_files.reading_file(path):
        text = text_files.read_text(text_files.buffered_stream(path)).decode("utf-8-sig", "surrogateescape")
    reader = csv.DictReader(text.splitlines())
    others = other_names(known.values())
    header = list(reader.fieldnames or ())
    names = [others.get(name, name) for name in (column.strip().replace("-", "_") for column in header)]
    if twice := [column for column, name in zip(header, names, strict=True) if names.count(name) > 1]:
        raise InputError(f"{path}: the columns {' and '.join(twice)} are for the same parameter",
                         "leave one of them out")
    columns = dict(zip(header, names, strict=True))
    inputs = [name for name, parameter in known.items() if not parameter.option.written]
    for column in names:
        if column in known and column not in inputs:
            raise InputError(f"{path}: the column '{column}' is an output, which a batch names after its inputs",
                             f"leave it out; {{{column}}} takes the end of the files' names")
        if column != "name" and column not in known:
            raise InputError(f"{path}: the column '{column}' is not a parameter of {command.name}"
                             f"{similar_hint(column, inputs)}", f"name columns after parameters, such as {source.name}")
    results = []
    for row in reader:
        values: dict[str, Any] = {}
        try:
            for column, cell in row.items():
                if column is None or cell is None:
                    raise InputError("the row has more or fewer cells than the first line")
                if cell.strip() and columns[column] != "name":
                    parameter = known[columns[column]]
                    values[parameter.name] = parameter.convert(shlex.split(cell) if parameter.several else cell.strip())
            if source.name not in values:
                raise InputError(f"the row has no value for {source.name}")
        except (InputError, UsageError, ValueError) as error:
            raise InputError(f"{path}: line {reader.line_num}: {error}") from None
        results.append((next((cell.strip() for column, cell in row.items() if columns[column] == "name"), ""), values))
    if not results:
        raise InputError(f"{path}: has no rows", "write a row for each input")
    return results


def _one(name: str, source: str, options: Mapping[str, Any], item: BatchItem) -> dict[str, Any]:
    """Run the command for an input; return its values for the table."""
    command: Command = registry.get("command", name)
    known = {parameter.name: parameter for parameter in command.parameters}
    written = {key: tuple(paths) if known[key].several else paths[0] for key, paths in item.outputs.items()}
    force = {"force": True} if "force" in known else {}
    report = command(**{source: item.path, **options, **item.values, **written, **force})
    figures = {key: round(value, 4) + 0.0 if key == "net_charge" else value for key, value in report.row.items()
               if key not in FIRST_COLUMNS + LAST_COLUMNS}
    # the files that it reports: with several replicas or probes, numbers or names are added to the file names
    folders = {path.parent for path in item.files}
    made = [path.name for value in report.data.values() for text in (value if isinstance(value, list) else [value])
            if isinstance(text, str) and (path := Path(text)).parent in folders]
    return {**figures, "file": FILE_SEPARATOR.join(dict.fromkeys(made))}


def _inner(command: Command) -> list[Parameter]:
    """Return the parameters of a command that a batch of it accepts in addition to its own."""
    own = {parameter.name for parameter in parameters_of(batch)}
    taken = {_source(command).name, *own, *_LEFT_OUT}
    results = []
    for parameter in command.parameters:
        option = parameter.option
        if option.written:
            option = replace(option, help=f"{option.help}; in a batch, the ending of the names, such as .png or _x.csv")
        if parameter.name not in taken:
            results.append(replace(parameter, option=option, group="", argument=parameter.name,
                                 default=None if parameter.required else parameter.default))
    return results


class BatchCommand(Command):
    """The command ``batch``, which also accepts the parameters of the command that it runs."""

    def for_arguments(self, words: Sequence[str]) -> Command:
        """Return the command with the parameters of the command that the first word names."""
        if not words or words[0].startswith("-"):
            return self
        return replace(self, parameters=(*parameters_of(batch), *_inner(_command(words[0]))))

    @property
    def advice(self) -> str:
        """How to give many files, into which a shell expands a pattern."""
        return f"{_FOR_MANY}; {super().advice}"

    def __call__(self, **values: Any) -> Report:
        """Check the values and run."""
        return Command.__call__(self.for_arguments([str(values.get("task", "-"))]), **values)


command = BatchCommand.of(batch, repeatable=False, unattended=False, examples=(
    "batch map structures -o maps --spacing 2 --format npz",
    "batch energy structures.csv -o energies --workers 4",
))
