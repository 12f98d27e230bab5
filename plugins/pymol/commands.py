"""The registry's commands as commands of PyMOL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from pymol import CmdException, colorprinting
from pymol.shortcut import Shortcut

from vmdpotential.errors import TaskError
from vmdpotential.frontend import messages
from vmdpotential.parameters import Command, Report

from ..viewers import adapters
from . import arguments, feedback
from .saved import keep_in_sessions
from .session import Session
from .task import Task


def register(cmd: Any) -> list[str]:
    """Add every command that takes atoms or maps to PyMOL, and potential_undo and potential_dialog.

    A command of another package that cannot be loaded is left out, with a warning.

    Parameters
    ----------
    cmd : PyMOL's cmd module or instance

    Returns
    -------
    list of str
        The names of PyMOL's commands.
    """
    names = []
    keep_in_sessions(cmd)
    for command in viewer_commands():
        function = adapt(command)
        names.append(_extend(cmd, function))
        for position, (argument, parameter) in enumerate(arguments.arguments(command).items()):
            role = adapters.object_role(parameter)
            if role and position < len(cmd.auto_arg):
                complete = cmd.selection_sc if role == "structure" else lambda: Shortcut(cmd.get_names("objects"))
                cmd.auto_arg[position][function.__name__] = [complete, argument, ", "]
    return [*names, _extend(cmd, potential_undo), _extend(cmd, potential_dialog)]


def viewer_commands() -> Iterator[Command]:
    """Yield the commands that are added to PyMOL."""
    return adapters.viewer_commands(_warn)


def _warn(text: str) -> None:
    colorprinting.warning(f" {text}")


def _extend(cmd: Any, function: Callable[..., Any]) -> str:
    name = function.__name__
    if name in cmd.keyword:  # loaded again
        cmd.keyword[name][0] = function
    else:
        cmd.extend(name, function)
    return name


class PymolFunction:
    """A command's function as PyMOL calls it, with an error of one line for an unknown argument.

    PyMOL reads the names of arguments from the code object, but does not check them for functions with keyword-only
    arguments.

    Parameters
    ----------
    function : callable
        Function with the command's arguments.
    command : Command
    """

    def __init__(self, function: Any, command: Command) -> None:
        self.function, self.command = function, command
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__code__, self.__defaults__ = function.__code__, function.__defaults__

    def __call__(self, *positional: Any, **inputs: Any) -> Report:
        """Run the command.

        Raises
        ------
        CmdException
        """
        names = self.__code__.co_varnames[: self.__code__.co_argcount + self.__code__.co_kwonlyargcount]
        with adapters.in_one_line(CmdException, arguments.spelling(self.command)):
            inputs = arguments.by_own_names(self.command, inputs)
        for name in inputs:
            if name not in names:
                near = get_close_matches(name, names, 1)
                raise CmdException(f"{name}={inputs[name]}: {self.__name__} has no such argument"
                                   + (f"; did you mean {near[0]}?" if near else f"; see help {self.__name__}"))
        if len(positional) > self.__code__.co_argcount:
            raise CmdException(f"{self.__name__} has {self.__code__.co_argcount} arguments at most; "
                               f"{len(positional)} were typed")
        return self.function(*positional, **self._with_range(inputs, names))

    def _with_range(self, inputs: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Return the arguments with both limits of ``range=-5,5``, which PyMOL splits at the comma.

        PyMOL assigns the second limit to the argument at its position, and passes arguments in the order of typing.
        """
        typed = list(inputs)
        at = typed.index("range") + 1 if "range" in typed else len(typed)
        parameter = arguments.arguments(self.command).get(typed[at]) if at < len(typed) else None
        if parameter is None or typed[at] != names[at] or parameter.type in (int, float):
            return inputs
        try:
            float(inputs[typed[at]])
        except (TypeError, ValueError):
            return inputs
        return {name: f"{value},{inputs[typed[at]]}" if name == "range" else value for name, value in inputs.items()
                if name != typed[at]}


def adapt(command: Command) -> Callable[..., Report]:
    """Return the function that PyMOL calls for a command.

    PyMOL reads the names of arguments from the code object, so the function is compiled from text with
    these names: ``potential_map(selection='all', name='', ..., quiet=1, *, _self=None)``.
    """
    name = arguments.pymol_name(command)
    defaults = {argument: adapters.default_text(p) for argument, p in arguments.arguments(command).items()}
    head = ", ".join(f"{argument}={value!r}" for argument, value in defaults.items())
    values = ", ".join(f"{argument!r}: {argument}" for argument in defaults)
    space: dict[str, Any] = {"run": lambda *inputs: _run(command, *inputs)}
    exec(f"def {name}({head}, quiet=1, *, _self=None):\n    return run({{{values}}}, quiet, _self)", space)
    function = space[name]
    function.__doc__ = arguments.help_text(command)
    return PymolFunction(function, command)


def _run(command: Command, inputs: dict[str, Any], quiet: Any, cmd: Any) -> Report:
    """Run a typed command and report its results."""
    cmd, silent = _pymol(cmd), _is_quiet(quiet)
    if command.draws == "live" and (report := _live(cmd, inputs)) is not None:
        if not silent:
            print(f" live: {report.lines[0]}")
        return report
    task = Task(cmd, command, inputs, lambda text: _warn(f"warning: {text}"))
    listener = feedback.listener()
    try:
        report = task.compute(listener)
    except KeyboardInterrupt:
        if not isinstance(listener, feedback.Box):
            raise
        raise CmdException(messages.STOPPED) from None
    finally:
        if isinstance(listener, feedback.Box):
            listener.close()
    lines = task.show(report)
    if not silent:
        for line in lines:
            print(f" {command.name}: {line}")
    return report


def _live(cmd: Any, inputs: dict[str, Any]) -> Report | None:
    """End the live map, or wait for it, if off or wait is typed instead of a selection."""
    session = Session.of(cmd)
    word = arguments.unquoted(inputs["selection"])
    with adapters.in_one_line(CmdException, arguments.spell):
        if word == "off":
            return Report([session.end_live()], {})
        if word == "wait":
            if session.live is None:
                raise TaskError("there is no live map")
            session.live.wait()
            return Report([session.live.status()], {})
    if word == "on":
        inputs["selection"] = "all"
    return None


def _pymol(cmd: Any) -> Any:
    if isinstance(cmd, str):
        raise CmdException(f"_self={cmd}: is PyMOL's own argument; leave it out")
    return import_module("pymol").cmd if cmd is None else cmd


def _is_quiet(text: Any) -> bool:
    try:
        return bool(int(text))
    except ValueError:
        raise CmdException(f"quiet={text}: use 0 or 1") from None


def potential_undo(quiet: Any = 1, *, _self: Any = None) -> str:
    """DESCRIPTION

    Undo the last placement of ions: delete the objects that potential_ionize made, and show the objects that
    were shown before. It can be repeated. Objects that you have changed since then are kept.

USAGE

    potential_undo
"""
    silent = _is_quiet(quiet)
    with adapters.in_one_line(CmdException, arguments.spell):
        text = Session.of(_pymol(_self)).undo()
    if not silent:
        print(f" undo: {text}")
    return text


def potential_dialog(command: str = "", *, _self: Any = None) -> Any:
    """DESCRIPTION

    Open the dialog for the potential_ commands; it needs PyMOL's window.

USAGE

    potential_dialog [ command ]

ARGUMENTS

    command = map, ionize, slice ...: command whose page is shown first
"""
    try:
        dialog = import_module(f"{__package__}.dialog")
        if dialog.QtWidgets.QApplication.instance() is None:
            raise ImportError
    except ImportError:
        raise CmdException("there is no window; type the commands, such as potential_map, instead") from None
    return dialog.open_dialog(_pymol(_self), command)
