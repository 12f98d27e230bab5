"""The shell program ``vmdpotential``, built from the command registry."""

from __future__ import annotations

import codecs
import contextlib
import gc
import itertools
import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from vmdpotential import progress, registry
from vmdpotential.errors import (
    BackendError,
    CheckError,
    OutputError,
    Spelling,
    UsageError,
    VmdpotentialError,
    plain_spelling,
    similar_hint,
)
from vmdpotential.frontend import child, interrupts, messages
from vmdpotential.frontend.arguments import build_parser, called_command, is_for_tcl, join_negative_values
from vmdpotential.frontend.declarations import parameter_kind
from vmdpotential.parameters import Command, Parameter, returning_results


def run(arguments: Sequence[str]) -> None:
    """Parse, run and print one command.

    Raises
    ------
    VmdpotentialError
        Whatever the command raises.
    """
    first = next(iter(arguments), "")
    if first and not first.startswith("-"):
        try:
            registry.get("command", first)
        except UsageError as error:  # which suggests a similar name
            raise UsageError("", f"the command {first} {error.text}", "see 'vmdpotential --help'") from None
    try:
        parser = build_parser(arguments)
        known, unknown = parser.parse_known_args(join_negative_values(arguments))
    except SystemExit:  # after --help; a closed pipe has to be noticed here, not at the end of Python
        sys.stdout.flush()
        raise
    values = vars(known)
    command: Command
    if unknown:
        command = called_command(arguments)
        options = [f"--{parameter.flag}" for parameter in command.parameters if not parameter.option.positional]
        hint = similar_hint(unknown[0].partition("=")[0], options)
        raise UsageError("", f"unrecognized arguments: {' '.join(unknown)}{hint}", command.advice)
    command = called_command(arguments)
    del values["command"]
    as_json = values.pop("json")
    answer = values.pop("tcl")
    for_vmd = answer is not None
    surface, part = values.pop("tcl_surface"), values.pop("surface_of")
    verbose = values.pop("verbose")
    data_on_stdout = False
    if written := command.writes(values):
        from vmdpotential.io.files.output import is_standard  # imported here because not every command needs it

        data_on_stdout = any(map(is_standard, written))
    if as_json and data_on_stdout:
        raise UsageError("", "--json and the data cannot both be written to standard output",
                         "write the data to a file")
    if answer:
        child.end_with_input()
    # VMD's plugin draws a progress bar from these lines
    terminal = progress.Terminal(delay=1.0, every=1.0) if for_vmd else progress.Terminal()
    failure: CheckError | None = None
    try:
        with progress.listen_to_progress(terminal), returning_results() if answer else contextlib.nullcontext():
            report = command(**values)
    except CheckError as error:
        report, failure = error.report, error
    finally:
        terminal.close()
    if as_json or for_vmd:  # the report's lines are included for viewers that run the program
        data = {**report.data, "report": list(report.lines), **({} if failure is None else _fields(failure))}
        text = json.dumps(data, allow_nan=False) if not for_vmd else registry.get("answer", "tcl")(
            data, report, surface, part, Path(answer).parent if answer else None)
        if answer:
            Path(answer).write_text(text, "ascii")
        else:
            _print(text)
    elif lines := report.full if verbose else report.lines:
        (_to_stderr if data_on_stdout else _print)("\n".join(lines))
    if failure is not None:
        raise failure


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop("stdout")
        raise OutputError(f"standard output: cannot be written ({error.strerror})", "redirect it elsewhere") from None


def _to_stderr(text: str) -> None:
    """Print on stderr; if that is full or closed, only the exit code reports the error."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _drop("stderr")


def _drop(name: str) -> None:
    """Redirect a stream to nowhere, with its buffered output, which Python would try to write again at its end."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), getattr(sys, name).fileno())
    setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; streams and signal handlers are restored.

    Without arguments, those of the process are used, which is then expected to end.
    """
    if arguments is None:
        gc.set_threshold(50_000)  # importing modules alone would trigger a hundred garbage collections
        try:
            return main(sys.argv[1:])
        finally:
            gc.freeze()  # avoids a last garbage collection of a tenth of a second
    words = arguments
    with interrupts.handled(), _streams():
        try:
            with messages.warnings(partial(_warn, words), _spelling(words), "--verbose" in words):
                run(words)
        except (VmdpotentialError, MemoryError) as error:
            return _fail(messages.as_package_error(error), words)
        except KeyboardInterrupt:
            return _fail(VmdpotentialError("interrupted"), words, 130)
        except BrokenPipeError:  # the reader of the output, such as head, has ended
            _drop("stdout")
            return 141
        except ImportError as error:  # a broken installation, or not enough memory to load a library
            hint = "install it again, or see 'ulimit -v'"
            return _fail(BackendError(f"a package cannot be loaded ({error})", hint), words)
        except OSError as error:  # from files other than inputs and outputs, such as compiled kernels and fonts
            where = error.filename or "a temporary file"
            hint = "free disk space, or correct the permissions"
            return _fail(OutputError(f"{where}: {error.strerror or error}", hint), words)
    return 0


def _warn(arguments: Sequence[str], line: str) -> None:
    _to_stderr(f"{'warning: ' if is_for_tcl(arguments) else ''}{line}")


def _fail(error: VmdpotentialError, arguments: Sequence[str], code: int = 0) -> int:
    """Print an error as one line without control characters, which may come from a file; return the exit code."""
    if "--json" in arguments and not isinstance(error, CheckError):  # run() has printed that with its report
        with contextlib.suppress(OSError, OutputError):
            _print(json.dumps(_fields(error)))
    # an interrupted import may have left modules that cannot be imported any more
    message = messages.one_line(error, plain_spelling if code else _spelling(arguments))
    _to_stderr("vmdpotential: " + "".join(letter if letter.isprintable() else "?" for letter in message))
    return code or error.exit_code


def _fields(error: VmdpotentialError) -> dict[str, dict[str, str]]:
    """Return an error as plain data, with parameters not yet in the syntax of an interface."""
    return {"error": {name: getattr(error, name) for name in ("parameter", "value", "text", "hint")}}


def _spelling(arguments: Sequence[str]) -> Spelling:
    """Return the function that writes parameters in the shell's syntax, ``--spacing -1``, or in that of VMD's plugin.

    Options of another command are named with it. Other names stay bare: positional files, parameters of an interaction,
    environment variables.
    """
    words = list(itertools.dropwhile(lambda word: word.startswith("-"), arguments))
    typed = {word.partition("=")[0] for word in words}
    parameters: dict[str, Parameter] = {}
    with contextlib.suppress(VmdpotentialError):  # no such command
        parameters = {p.name: p for p in called_command(words).parameters} if words else {}
        if words and is_for_tcl(arguments):
            shown = registry.get("answer", "tcl-options")(called_command(words))
            parameters = {p.name: p for p in shown} | parameters

    def tcl(name: str, value: str) -> str:
        if (other := messages.owner(name, parameters)) is not None:
            return f"-{name} {value}".rstrip() + f" of vmdpotential {other.name}"
        if name not in parameters:
            return plain_spelling(name, value)
        word = f"{{{value}}}" if any(letter in ' ;"$[' for letter in value) else value  # one word, as one would type it
        return f"-{'sel' if parameter_kind(parameters[name]) == 'structure' else name} {word}".rstrip()

    def spell(name: str, value: str) -> str:
        if (other := messages.owner(name, parameters)) is not None:
            return f"--{name.replace('_', '-')} {value}".rstrip() + f" of {other.name}"
        if name not in parameters or parameters[name].option.positional:
            return plain_spelling(name, value)
        aliases = [alias.replace("_", "-") for alias in parameters[name].option.aliases]
        flag = next((alias for alias in aliases if f"--{alias}" in typed), parameters[name].flag)
        if parameters[name].type is bool:
            return f"--{'no-' if value.lower() in ('no', 'false') else ''}{flag}"
        return f"--{flag}" + (f" {shlex.quote(value)}" if value else "")

    return tcl if is_for_tcl(arguments) else spell


def _escape(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the original byte for a surrogate from a file name, or an escape for another unencodable character."""
    assert isinstance(error, UnicodeEncodeError)
    error.end = error.start + 1
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


@contextlib.contextmanager
def _streams() -> Iterator[None]:
    """Write characters that the terminal's encoding lacks as escapes, and redirect closed streams to nowhere."""
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
                with contextlib.suppress(OSError):  # the reader of the pipe has ended
                    stream.reconfigure(errors=errors)
