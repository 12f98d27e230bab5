"""Commands: functions with declared parameters, and what they know about the call that runs them."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from vmdpotential.errors import Message, TaskError, UsageError, VmdpotentialError, shorten_text, similar_hint
from vmdpotential.parameters.declared import groups_of, parameters_of
from vmdpotential.parameters.option import Parameter, by_own_names
from vmdpotential.parameters.report import Report

log = logging.getLogger(__name__)

#: What viewers draw of a command's result, from which their options follow: a map as colours of the molecular surface
#: of its own atoms, or, for a difference of maps, of the shown ones; a map as isosurfaces, among the viewer's atoms, or
#: of an orbital with the nuclei of its file; a map that follows the atoms; a coloured surface; ions; a figure; a page.
Drawing = Literal["", "surface", "difference", "isosurfaces", "orbital", "live", "mesh", "ions", "figure", "page"]


@dataclass(frozen=True)
class Command:
    """A function and its declared parameters.

    Parameters
    ----------
    name : str
    function : function
    parameters : tuple of Parameter
    repeatable : bool
        Whether the command ``batch`` can run it for many inputs.
    examples : tuple of str
        Lines of a shell, without the program's name, which :meth:`of` removes.
    python : str
        Example in the docstring of the function of Python, if it is registered as a ``task``.
    draws : Drawing
        What viewers draw of its result; empty for its text, and the values of atoms if there are any.
    makes : str
        Name in viewers of the objects and temporary files that it makes, its own unless given.
    unattended : bool
        Whether agents may run it with nobody present: false if it waits for input, runs other commands, or is about
        the installation or a shell.
    """

    name: str
    function: Callable[..., Report]
    parameters: tuple[Parameter, ...]
    repeatable: bool = True
    examples: tuple[str, ...] = ()
    python: str = ""
    draws: Drawing = ""
    makes: str = ""
    unattended: bool = True

    @classmethod
    def of(cls, function: Callable[..., Report], name: str = "", repeatable: bool = True,
           examples: Sequence[str] = (), python: str = "", draws: Drawing = "", makes: str = "",
           unattended: bool = True) -> Self:
        """Return the command that a function declares; its name is the function's unless given."""
        name = name or function.__name__.strip("_")
        return cls(name, function, tuple(parameters_of(function)), repeatable,
                   tuple(line.removeprefix("vmdpotential ") for line in examples), python, draws, makes or name,
                   unattended)

    def for_arguments(self, words: Sequence[str]) -> Command:
        """Return the command with its parameters in a call, which for ``batch`` depend on the call's first word."""
        return self

    @property
    def advice(self) -> str:
        """How to give what a call has too much of."""
        return f"see 'vmdpotential {self.name} --help'"

    @property
    def summary(self) -> str:
        """First line of the docstring, without the full stop."""
        return (inspect.getdoc(self.function) or "").split("\n", 1)[0].rstrip(".")

    @property
    def description(self) -> str:
        """The docstring up to its numpydoc sections."""
        return (inspect.getdoc(self.function) or "").split("\n\nRaises\n", 1)[0].split("\n\nReturns\n", 1)[0]

    def __call__(self, **values: Any) -> Report:
        """Check the values and run the function.

        Raises
        ------
        UsageError
            For an unknown parameter, or a missing or invalid value.
        TaskError
            When the function belongs to another package, and fails in a way that this package does not know.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        values = by_own_names(self.parameters, values)
        for name in values:
            if name not in known:
                raise UsageError(name, f"{self.name} has no such parameter{similar_hint(name, known)}; it has "
                                 f"{', '.join(known)}")
        missing = [p.name for p in self.parameters if p.required and p.name not in values]
        if missing:
            raise UsageError(missing[0], "a value is needed")
        values = {name: known[name].convert(value) for name, value in values.items()}
        token = _reading.set(tuple(self._files(values, written=False)))
        try:
            with options_set(values), self._named_errors():
                return self.function(**self._arguments(values))
        finally:
            _reading.reset(token)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Name the package of a command of others whose error is none of this package's, in one line."""
        package = self.function.__module__.partition(".")[0]
        try:
            yield
        except (VmdpotentialError, MemoryError, BrokenPipeError):
            raise
        except Exception as error:
            if package == "vmdpotential":
                raise
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise TaskError(f"the command {self.name} of the package {package} failed ({shorten_text(reason, 200)})",
                            f"report it to the authors of {package}") from error

    def _arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the function, with the values of a group's fields in one object."""
        arguments: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = {group.name: {} for group in groups_of(self.function)}
        for parameter in self.parameters:
            if parameter.name in values:
                target = groups[parameter.group] if parameter.group else arguments
                target[parameter.argument or parameter.name] = values[parameter.name]
        for group in groups_of(self.function):
            values = groups[group.name]
            arguments[group.name] = group.kind(**values) if group.default is None else replace(group.default, **values)
        return arguments

    def writes(self, values: Mapping[str, Any]) -> list[Path]:
        """Return the files that a run with some values writes, as far as the values name them."""
        return list(self._files(values, written=True))

    def _files(self, values: Mapping[str, Any], written: bool) -> Iterator[Path]:
        for parameter in self.parameters:
            value = values.get(parameter.name)
            if isinstance(value, Mapping) and not written:  # maps names to files
                yield from (item for item in value.values() if isinstance(item, Path))
            if parameter.type is Path and parameter.option.written == written and value is not None:
                for item in value if isinstance(value, (list, tuple)) else [value]:
                    if isinstance(item, (str, Path)):
                        yield Path(item)


_reading: ContextVar[tuple[Path, ...]] = ContextVar("reading", default=())


#: Names of the options that the caller set and was not warned of; None outside of a task.
_set_options: ContextVar[set[str] | None] = ContextVar("set_options", default=None)


@contextmanager
def options_set(names: Iterable[str]) -> Iterator[None]:
    """Run a task of which these options were set; within another task, those of that one count."""
    if _set_options.get() is not None:
        yield
        return
    token = _set_options.set(set(names))
    try:
        yield
    finally:
        _set_options.reset(token)


def warn_unused(names: Iterable[str], reason: str) -> None:
    """Warn, in one line and once, of those of some options that the caller set although they have no effect.

    Parameters
    ----------
    names : iterable of str
        Options without an effect in this run, whether they were set or not.
    reason : str
        Why they have none, in our own words, with parameters such as ``{like}``.
    """
    options = _set_options.get() or set()
    unused = [name for name in names if name in options]
    if unused:
        options.difference_update(unused)
        verb = "has" if len(unused) == 1 else "have"
        log.warning(Message(f"{' and '.join(f'{{{name}}}' for name in unused)} {verb} no effect: {reason}"))


#: Whether the caller uses the result itself, so that no file has to be written.
_returning: ContextVar[bool] = ContextVar("returning", default=False)


@contextmanager
def returning_results() -> Iterator[None]:
    """Run commands for a program that uses their results, and needs no files."""
    token = _returning.set(True)
    try:
        yield
    finally:
        _returning.reset(token)


def result_is_used() -> bool:
    """Return whether the caller uses the result itself."""
    return _returning.get()


def check_output(output: Path | None, source: object, what: str, example: str) -> None:
    """Raise an error for a run in a shell without an output, whose result would be lost.

    Raises
    ------
    UsageError
        When `source` is a file, no output is given, and the caller does not use the result itself.
    """
    if output is None and isinstance(source, Path) and not result_is_used():
        raise UsageError("output", f"a file is needed for the {what}", f"such as {{output {example}}}")


def files_read() -> tuple[Path, ...]:
    """Return the files that the current command reads, which it must not write to."""
    return _reading.get()
