"""Kinds and defaults of parameters, as help and dialogs show them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vmdpotential.parameters import Command, Parameter

_KINDS = {bool: "boolean", int: "integer", float: "number", Path: "file"}


def takes_data(command: Command) -> bool:
    """Return whether a command takes a structure, a map or a file instead of these in a viewer."""
    return any(parameter_kind(parameter) in ("structure", "map", "data") and parameter.option.viewer
               for parameter in command.parameters)


def in_front(command: Command, parameter: Parameter) -> bool:
    """Return whether a dialog shows a parameter at once: if it is required or declared so, or if none is declared so.
    """
    any_in_front = any(other.option.front for other in command.parameters)
    return parameter.required or parameter.option.front or not any_in_front


def parameter_kind(parameter: Parameter) -> str:
    """Return the kind of a parameter for viewers: ``structure``, ``map``, ``trajectory``, ``selection``, ..."""
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
