"""The registry's commands as commands of PyMOL."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from pymol import CmdException, colorprinting
from pymol.shortcut import Shortcut

from vmdpotential import progress, registry
from vmdpotential.errors import UsageError, VmdpotentialError
from vmdpotential.lattice import Grid
from vmdpotential.parameters import Command, Parameter, Report
from vmdpotential.structure import Structure

from .convert import Selected, read_selection, read_with_topology
from .show import Results

#: Put before the name of each command.
PREFIX = "potential_"


def register(cmd: Any) -> list[str]:
    """Add every command that takes atoms or maps to a PyMOL.

    A command of another package that cannot be loaded is named and left out.

    Parameters
    ----------
    cmd : PyMOL's cmd module or instance

    Returns
    -------
    list of str
        The names of PyMOL's commands.
    """
    names = []
    for name in registry.available("command"):
        try:
            command: Command = registry.get("command", name)
        except Exception as error:  # whatever a foreign module raises on import
            colorprinting.warning(f" vmdpotential: the command '{name}' is left out: {error}")
            continue
        if not any(_role(parameter) for parameter in command.parameters):
            continue
        function = adapt(command)
        names.append(function.__name__)
        if function.__name__ in cmd.keyword:  # loaded again
            cmd.keyword[function.__name__][0] = function
        else:
            cmd.extend(function.__name__, function)
        for position, (argument, parameter) in enumerate(_arguments(command).items()):
            role = _role(parameter) if parameter else ""
            if role and position < len(cmd.auto_arg):
                complete = cmd.selection_sc if role == "selection" else lambda: Shortcut(cmd.get_names("objects"))
                cmd.auto_arg[position][function.__name__] = [complete, argument, ", "]
    return names


def _role(parameter: Parameter) -> str:
    """Return 'selection' or 'maps' for what PyMOL holds, else an empty string."""
    if Structure in parameter.objects:
        return "selection"
    return "maps" if Grid in parameter.objects else ""


def _is_topology(command: Command, parameter: Parameter) -> bool:
    """Tell the file that goes with a selection: read here, because commands take it with files only."""
    return parameter.name == "topology" and any(_role(other) == "selection" for other in command.parameters)


def _argument(parameter: Parameter) -> str:
    return "selection" if _role(parameter) == "selection" else parameter.name


def _to_file(command: Command) -> bool:
    """Tell whether the result is a file that the user names (a figure), not objects."""
    return any(parameter.name == "output" and parameter.option.viewer for parameter in command.parameters)


def _offered(command: Command) -> list[Parameter]:
    """Return the parameters that PyMOL offers: what it holds first, then the others as declared."""
    offered = [
        p for p in command.parameters
        if p.option.viewer or p.required or _is_topology(command, p) or (p.name == "force" and _to_file(command))
    ]
    return sorted(offered, key=lambda p: not (_role(p) and p.required))


def _arguments(command: Command) -> dict[str, Parameter | None]:
    """Return PyMOL's arguments in their order; None stands for the name of the objects that are made."""
    first, *others = _offered(command)
    arguments: dict[str, Parameter | None] = {_argument(first): first}
    if not _to_file(command):
        arguments["name"] = None
    return arguments | {_argument(parameter): parameter for parameter in others}


def _default(parameter: Parameter | None) -> str:
    if parameter is None:
        return ""
    if parameter.required:
        return "all" if _role(parameter) == "selection" else ""
    if isinstance(parameter.default, bool):
        return "yes" if parameter.default else "no"
    if parameter.default is None:
        return ""
    if isinstance(parameter.default, (tuple, list)):
        return " ".join(map(str, parameter.default))
    return str(parameter.default)


def adapt(command: Command) -> Callable[..., Report]:
    """Return the function that PyMOL calls for a command.

    PyMOL reads the names of arguments from the code object, so the function is made from text with
    these names: ``potential_map(selection='all', name='map', ..., quiet=1, *, _self=None)``.
    """
    name = PREFIX + re.sub(r"\W", "_", command.name)
    arguments = {argument: _default(parameter) for argument, parameter in _arguments(command).items()}
    head = ", ".join(f"{argument}={value!r}" for argument, value in arguments.items())
    values = ", ".join(f"{argument!r}: {argument}" for argument in arguments)
    space: dict[str, Any] = {"run": lambda *given: _run(command, *given)}
    exec(f"def {name}({head}, quiet=1, *, _self=None):\n    return run({{{values}}}, quiet, _self)", space)
    function: Callable[..., Report] = space[name]
    function.__doc__ = _help(name, command)
    return function


def _help(name: str, command: Command) -> str:
    """Return PyMOL's kind of docstring."""
    words = {float: "number", int: "whole number", bool: "yes or no", str: "text", Path: "file"}
    entries = []
    arguments = _arguments(command)
    for argument, parameter in arguments.items():
        if parameter is None:
            text, default = "text: what the new objects are called", Results.default_name(command)
        else:
            option, default = parameter.option, _default(parameter)
            kind = {"selection": "selection of atoms", "maps": "map objects or files"}.get(
                _role(parameter), ", ".join(option.allowed()) or words.get(parameter.type, "text"))
            text = f"{kind}: {option.help}" + (f", {option.unit}" if option.unit else "")
        text += f" {{default: {default}}}" if default else ""
        entries.append(
            textwrap.fill(f"{argument} = {text}", 78, initial_indent="    ", subsequent_indent="        "))
    usage = name + "".join(f" [, {argument}" if n else f" [ {argument}" for n, argument in enumerate(arguments))
    usage = textwrap.fill(usage + " " + "]" * len(arguments), 78, initial_indent="    ", subsequent_indent="        ")
    description = textwrap.indent(command.description, "    ")
    return "\n".join(["DESCRIPTION", "", description, "", "USAGE", "", usage, "", "ARGUMENTS", "",
                      "\n\n".join(entries), ""])


def _run(command: Command, given: dict[str, Any], quiet: Any, cmd: Any) -> Report:
    """Convert what PyMOL has, run the command and show the results."""
    if cmd is None:
        cmd = import_module("pymol").cmd
    try:
        results = Results(cmd, command, _text(given.get("name")))
        values: dict[str, Any] = {}
        atoms: Selected | None = None
        for parameter in _offered(command):
            if _is_topology(command, parameter):
                continue
            value = given[_argument(parameter)]
            text = _text(value) if value is None or isinstance(value, str) else value
            if text == "" and not (parameter.required and _role(parameter) == "selection"):
                if parameter.required:
                    raise UsageError(f"{_argument(parameter)}: a value is needed")
                continue
            if _role(parameter) == "selection" and isinstance(text, str):
                atoms = _read(cmd, text or "all", cmd.exp_path(_text(given.get("topology"))))
                values[parameter.name] = atoms.structure
            elif _role(parameter) == "maps" and isinstance(text, str):
                maps = [results.find_map(word) for word in _words(value)]
                values[parameter.name] = maps if parameter.several else maps[0]
            elif parameter.several and isinstance(text, str):
                values[parameter.name] = _words(value)
            elif text != _default(parameter):
                if parameter.type is Path:
                    text = cmd.exp_path(str(text))
                values[parameter.name] = str(text) if parameter.type in (int, float, bool) else text
        with progress.listening(progress.Terminal(sys.stdout)):
            report = command(**values)
        lines = [*report.lines, *results.show(report, atoms)]
    except VmdpotentialError as error:
        raise CmdException(_in_pymol(" ".join(str(error).split()))) from None
    except MemoryError:
        raise CmdException("out of memory; use a larger spacing or fewer atoms") from None
    if not int(quiet):
        for line in lines:
            print(f" {command.name}: {_in_pymol(line)}")
    return report


def _read(cmd: Any, selection: str, topology: str) -> Selected:
    return read_with_topology(cmd, selection, Path(topology)) if topology else read_selection(cmd, selection)


def _text(value: Any) -> str:
    """Return an argument without the quotes or brackets that keep its commas together."""
    text = "" if value is None else str(value).strip()
    for left, right in ("''", '""', "[]"):
        if len(text) > 1 and text[0] == left and text[-1] == right:
            return text[1:-1].strip()
    return text


def _words(value: Any) -> list[str]:
    """Return the blank-separated words of an argument, which may stand in brackets; quotes keep blanks together."""
    text = str(value).strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    found = re.findall(r"'([^']*)'(?!\S)|\"([^\"]*)\"(?!\S)|(\S+)", text)
    return ["".join(parts) for parts in found] or [""]


def _in_pymol(message: str) -> str:
    """Write the options in a message as PyMOL's arguments are written."""
    message = re.sub(r"(?<!\S)-o(?!\S)", "output", message)
    message = re.sub(r"--(?:no-)?([a-z][a-z-]*)", lambda match: match[1].replace("-", "_"), message)
    return message
