"""The registry's commands as plain data, for viewers that run the program instead of importing it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vmdpotential import registry
from vmdpotential.parameters import Command, Parameter

_KINDS = {bool: "boolean", int: "integer", float: "number", Path: "file"}


def command_declarations() -> dict[str, Any]:
    """Return every command that takes a structure or a map, ready for JSON.

    Returns
    -------
    dict
        ``{"version": ..., "commands": {name: {"summary", "description", "options", "display", "draws",
        "makes"}}, "broken": {name:
        reason}, "colours": equidistant colours of maps}``. Options, and those of the display in VMD, have ``name``,
        ``kind`` (``structure``, ``map``, ``trajectory``, ``data`` (a file instead of these), ``selection``, ``file``,
        ``boolean``, ``integer``, ``number`` or ``text``), ``several``, ``required``, ``positional``, ``viewer``,
        ``shell``, ``front`` (whether a dialog shows it at once), ``aliases``, ``suffix`` (of the file that it writes),
        ``default`` (as text, empty for none), ``help``, ``unit``, ``choices``, ``words``, which are allowed instead of
        a selection, ``bundled``, whether a file may also be named that comes with a package, and ``role``, what the
        option is to a viewer (``assembly``, ``expansion``, ``topology``, ``frames`` ...; empty for none).
    """
    from vmdpotential import __version__
    from vmdpotential.figures import colours  # needs numpy, which help texts do without

    commands, broken = {}, dict(registry.broken())
    for name in registry.available("command"):
        try:
            command: Command = registry.get("command", name)
            result = declare(command)
        except Exception as error:  # a plugin's command may raise anything on import, and must not affect the others
            broken[name] = f"{type(error).__name__}: {error}"
            continue
        if takes_data(command):
            commands[name] = result
    return {"version": __version__, "commands": commands, "broken": broken, "colours": colours.stops()}


def takes_data(command: Command) -> bool:
    """Return whether a command takes a structure, a map or a file instead of these in a viewer."""
    return any(parameter_kind(parameter) in ("structure", "map", "data") and parameter.option.viewer
               for parameter in command.parameters)


def declare(command: Command) -> dict[str, Any]:
    """Return the declaration of one command, see :func:`command_declarations`."""
    from vmdpotential.frontend.display import vmd_options  # needs numpy as well

    return {
        "summary": command.summary,
        "description": command.description,
        "draws": command.draws,
        "makes": command.makes,
        "options": [_declare_option(parameter) | {"front": in_front(command, parameter)}
                    for parameter in command.parameters],
        "display": [_declare_option(parameter) | {"front": parameter.option.front}
                    for parameter in vmd_options(command)],
    }


def in_front(command: Command, parameter: Parameter) -> bool:
    """Return whether a dialog shows a parameter at once: if it is required or declared so, or if none is declared so.
    """
    any_in_front = any(other.option.front for other in command.parameters)
    return parameter.required or parameter.option.front or not any_in_front


def _declare_option(parameter: Parameter) -> dict[str, Any]:
    option = parameter.option
    return {
        "name": parameter.name, "kind": parameter_kind(parameter), "several": parameter.several,
        "required": parameter.required, "positional": option.positional, "viewer": option.viewer,
        "shell": option.shell, "aliases": list(option.aliases), "suffix": option.suffix,
        "default": "" if parameter.required else as_text(parameter.default), "help": option.help, "unit": option.unit,
        "choices": list(option.shown()), "words": list(option.words), "bundled": option.bundled,
        "role": option.role or "",
    }


def parameter_kind(parameter: Parameter) -> str:
    """Return the kind of a parameter for viewers, one of those listed in :func:`command_declarations`."""
    from vmdpotential.grid.lattice import Grid
    from vmdpotential.io.trajectories.frames import Frames
    from vmdpotential.molecule.structure import Structure

    if Structure in parameter.objects:
        return "structure"
    if Grid in parameter.objects:
        return "map"
    if Frames in parameter.objects:
        return "trajectory"
    if parameter.option.data is not None:
        return "data"
    if parameter.option.selection:
        return "selection"
    return "text" if parameter.option.parse else _KINDS.get(parameter.type, "text")


def as_text(value: Any) -> str:
    """Return a default value as text, in the form in which a user would type it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, (tuple, list)):
        return " ".join(map(str, value))
    return str(value)
