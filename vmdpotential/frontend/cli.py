"""The shell program ``vmdpotential``, built from the command registry."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import gc
import itertools
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from vmdpotential import __version__, progress, registry
from vmdpotential.errors import (
    BackendError,
    CheckError,
    OutputError,
    Spelling,
    UsageError,
    VmdpotentialError,
    plain,
    similar,
)
from vmdpotential.frontend import messages
from vmdpotential.frontend.declarations import kind, takes_data
from vmdpotential.parameters import Command, Parameter

EXIT_CODES = """exit codes: 0 done; 2 wrong usage or unsuitable input; 3 the task cannot be done;
4 an engine or package asked for by name is missing; 130 interrupted; 141 the reader of the output has gone"""


#: Errors and warnings name parameters as VMD's plugin has them.
_TCL = "--tcl"


class _Parser(argparse.ArgumentParser):
    """argparse, but an error is one line, as everywhere in this program."""

    def error(self, message: str) -> NoReturn:
        if message.endswith("expected one argument"):
            message += " (one that begins with a dash is written after '=', a file also as ./-name)"
        raise UsageError("", message, f"see '{self.prog} --help'")


class _Once(argparse.Action):
    """A file that is named once: of two outputs the first must not get lost."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        """Keep the value, or refuse a second one."""
        if hasattr(namespace, self.dest):
            parser.error(f"argument {option_string}: takes one file and is given twice")
        setattr(namespace, self.dest, values)


def _command(arguments: Sequence[str]) -> Command:
    """Return the command that arguments begin with, with the parameters that it has in this call."""
    command: Command = registry.get("command", arguments[0])
    return command.for_words(arguments[1:])


def build_parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of all registered commands, or of the one called, which is faster: others are not imported."""
    parser = _Parser(
        prog="vmdpotential", epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Electrostatic potential maps, ion placement and slice images of molecular structures.",
    )
    parser.add_argument("--version", action="version", version=f"vmdpotential {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    found: list[tuple[str, Command]] = []
    only = [name for name in arguments[:1] if name in registry.available("command")]
    for name in only or registry.available("command"):
        with contextlib.suppress(BackendError):  # of another package; `vmdpotential plugins` says why
            found.append((name, _command([name, *arguments[1:]])))
    # what is for structures and maps stands together, whoever registered it
    for name, command in sorted(found, key=lambda item: not takes_data(item[1])):
        sub = commands.add_parser(
            name, help=command.summary, description=command.description, epilog=EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )
        for parameter in command.parameters:
            _add(sub, parameter)
        sub.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        sub.add_argument("--verbose", action="store_true", help="tell what was planned and measured, on stderr")
        # for VMD's plugin, whose users read what the program says
        sub.add_argument(_TCL, action="store_true", help=argparse.SUPPRESS)
    return parser


def _add(parser: argparse.ArgumentParser, parameter: Parameter) -> None:
    option = parameter.option
    text = option.help.replace("%", "%%")
    details = [option.unit] if option.unit else []
    if parameter.default not in (None, ()) and not parameter.required:
        default = parameter.default
        if isinstance(default, bool):  # not 0.0 and 1.0, which equal False and True
            default = "yes" if default else "no"
        details.append(f"default {default}")
    if details:
        text += f" ({', '.join(map(str, details))})".replace("%", "%%")
    allowed = option.shown()
    settings: dict[str, Any] = {"help": text, "default": argparse.SUPPRESS}
    metavar = option.metavar or ("|".join(allowed) if allowed else parameter.flag.upper())
    if option.positional:
        one, several = (None, "+") if parameter.required else ("?", "*")
        nargs = several if parameter.several else one
        parser.add_argument(parameter.name, metavar=metavar, nargs=nargs, **settings)
        return
    names = [f"--{parameter.flag}"] + ([f"-{option.short}"] if option.short else [])
    if parameter.type is bool:
        parser.add_argument(*names, action=argparse.BooleanOptionalAction, **settings)
    elif parameter.several:
        parser.add_argument(*names, metavar=metavar, action="extend", nargs="+", **settings)
    elif parameter.type is Path:
        parser.add_argument(*names, metavar=metavar, action=_Once, **settings)
    else:
        parser.add_argument(*names, metavar=metavar, **settings)


def run(arguments: Sequence[str]) -> None:
    """Parse, run and print one command.

    Raises
    ------
    VmdpotentialError
        Whatever the command raises.
    """
    first = next(iter(arguments), "")
    if first and not first.startswith("-"):
        registry.get("command", first)  # which says what is similar, where there is none of this name
    if first == "map" and "--batch" in arguments:
        arguments = ["batch", "map", *(word for word in arguments[1:] if word != "--batch")]
        _tell("'map --batch' is now the command 'batch map', and will go in a later version")
    try:
        parser = build_parser(arguments)
        known, unknown = parser.parse_known_args(_join_negative_values(arguments))
    except SystemExit:  # after --help: a reader that has gone is noticed here, not while Python ends
        sys.stdout.flush()
        raise
    values = vars(known)
    command: Command
    if unknown:
        command = _command(arguments)
        options = [f"--{parameter.flag}" for parameter in command.parameters if not parameter.option.positional]
        hint = similar(unknown[0].partition("=")[0], options)
        raise UsageError(
            "", f"unrecognized arguments: {' '.join(unknown)}{hint}", f"see 'vmdpotential {values['command']} --help'")
    command = _command(arguments)
    del values["command"]
    as_json = values.pop("json")
    for_vmd = values.pop("tcl")
    del values["verbose"]
    data_on_stdout = False
    if written := command.writes(values):
        from vmdpotential.io.files.output import is_standard  # which not every command needs

        data_on_stdout = any(map(is_standard, written))
    if as_json and data_on_stdout:
        raise UsageError("", "--json prints on standard output, and so does the data", "write the data to a file")
    terminal = progress.Terminal(delay=1.0, every=1.0) if for_vmd else progress.Terminal()  # VMD draws a bar
    failure: CheckError | None = None
    try:
        with progress.listening(terminal):
            report = command(**values)
    except CheckError as error:
        report, failure = error.report, error
    finally:
        terminal.close()
    if as_json:  # with the lines for people, which viewers that run the program show
        data = {**report.data, "report": list(report.lines), **({} if failure is None else _fields(failure))}
        if for_vmd and "values" in report.objects:  # of atoms, which it colours
            data["values"] = [round(value, 6) for value in report.objects["values"].b_factors.tolist()]
        if for_vmd and "grid" in report.objects:  # which it draws
            from vmdpotential.frontend.adapters import drawn

            data |= drawn(report)
        _print(json.dumps(data, allow_nan=False))
    elif data_on_stdout:
        _tell("\n".join(report.lines))
    else:
        _print("\n".join(report.lines))
    if failure is not None:
        raise failure


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop("stdout")
        raise OutputError(f"standard output: cannot be written ({error.strerror})", "send it elsewhere") from None


def _tell(text: str) -> None:
    """Print on stderr; where that is full or closed nobody can be told, and the exit code has to say it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _drop("stderr")


def _drop(name: str) -> None:
    """Let a stream swallow what it gets, and what it holds, which Python would try to write once more."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), getattr(sys, name).fileno())
    setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115


def _join_negative_values(arguments: Sequence[str]) -> list[str]:
    """Write ``--range -5,5`` as ``--range=-5,5``, because argparse takes ``-5,5`` for an option."""
    joined: list[str] = []
    for argument in arguments:
        negative = len(argument) > 1 and argument[0] == "-" and (argument[1].isdigit() or argument[1] == ".")
        if negative and joined and joined[-1].startswith("--") and joined[-1] != "--" and "=" not in joined[-1]:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; streams and signals are afterwards as they were.

    Without arguments it is the process itself, with those of the shell, that ends.
    """
    if arguments is None:
        gc.set_threshold(50_000)  # modules alone make Python seek for garbage a hundred times
        try:
            return main(sys.argv[1:])
        finally:
            gc.freeze()  # it would go through all objects once more at the end, for a tenth of a second
    words = arguments
    with _signals(), _streams():
        try:
            with messages.warnings(partial(_warn, words), _spelling(words), "--verbose" in words):
                run(words)
        except (VmdpotentialError, MemoryError) as error:
            return _fail(messages.ours(error), words)
        except KeyboardInterrupt:
            return _fail(VmdpotentialError("interrupted"), words, 130)
        except BrokenPipeError:  # the reader of our output, such as head, has gone
            _drop("stdout")
            return 141
        except ImportError as error:  # an installation that is broken, or too little memory for a library
            cure = "install it anew, or see 'ulimit -v'"
            return _fail(BackendError(f"a package does not load ({error})", cure), words)
        except OSError as error:  # of files other than inputs and outputs: compiled kernels, fonts
            where = error.filename or "a temporary file"
            cure = "make room on the disk, or open it to you"
            return _fail(OutputError(f"{where}: {error.strerror or error}", cure), words)
    return 0


def _warn(arguments: Sequence[str], line: str) -> None:
    _tell(f"{'warning: ' if _TCL in arguments else ''}{line}")


def _fail(error: VmdpotentialError, arguments: Sequence[str], code: int = 0) -> int:
    """Print one line without control characters, which a binary file may have brought, and return the exit code."""
    if "--json" in arguments and not isinstance(error, CheckError):  # whose report has it
        with contextlib.suppress(OSError, OutputError):
            _print(json.dumps(_fields(error)))
    message = messages.one_line(error, _spelling(arguments))
    _tell("vmdpotential: " + "".join(letter if letter.isprintable() else "?" for letter in message))
    return code or error.exit_code


def _fields(error: VmdpotentialError) -> dict[str, dict[str, str]]:
    """Return an error for programs, which spell its parameters in their own way."""
    return {"error": {name: getattr(error, name) for name in ("parameter", "value", "text", "cure")}}


def _spelling(arguments: Sequence[str]) -> Spelling:
    """Return how a shell writes parameters of the command: ``--spacing -1``, ``--no-neutralize``, or how VMD's does.

    What is no option of the command stays bare: files without a name, parameters of an interaction, environment
    variables.
    """
    words = list(itertools.dropwhile(lambda word: word.startswith("-"), arguments))
    parameters: dict[str, Parameter] = {}
    with contextlib.suppress(VmdpotentialError):  # no such command
        parameters = {p.name: p for p in _command(words).parameters} if words else {}

    def tcl(name: str, value: str) -> str:
        if name not in parameters:
            return plain(name, value)
        return f"-{'sel' if kind(parameters[name]) == 'structure' else name} {value}".rstrip()

    def spell(name: str, value: str) -> str:
        if name not in parameters or parameters[name].option.positional:
            return plain(name, value)
        if parameters[name].type is bool:
            return f"--{'no-' if value.lower() in ('no', 'false') else ''}{parameters[name].flag}"
        return f"--{parameters[name].flag}" + (f" {shlex.quote(value)}" if value else "")

    return tcl if _TCL in arguments else spell


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a closed terminal, end the work as Ctrl-C does."""
    before = {}
    try:
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            # nohup ignores it, and so do we then; None is a handler that Python did not set
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                with contextlib.suppress(ValueError):  # only the main thread handles signals
                    before[number] = signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _escape(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the byte of a file's name as it is, and an escape for what the encoding lacks."""
    assert isinstance(error, UnicodeEncodeError)
    error.end = error.start + 1
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


@contextlib.contextmanager
def _streams() -> Iterator[None]:
    """Let names that the terminal's encoding lacks pass as escapes, and closed streams swallow what they get."""
    names = ("stdout", "stderr")
    before = [(stream, getattr(stream, "errors", None)) for stream in (sys.stdout, sys.stderr)]
    for name in names:
        stream: Any = getattr(sys, name)
        if stream is None or getattr(stream, "closed", False):
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure") and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
        elif hasattr(stream, "reconfigure") and stream.errors == "surrogateescape":  # in the locale C
            codecs.register_error("vmdpotential", _escape)
            stream.reconfigure(errors="vmdpotential")
    try:
        yield
    finally:
        for name, (stream, errors) in zip(names, before, strict=True):
            setattr(sys, name, stream)
            if hasattr(stream, "reconfigure") and stream.errors != errors:
                with contextlib.suppress(OSError):  # the reader has gone
                    stream.reconfigure(errors=errors)
