"""The arguments of PyMOL's commands and the fields of the dialog, made from the declarations of the registry's."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pymol import colorprinting

from vmdpotential import registry
from vmdpotential.grid.lattice import Grid
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Parameter

from .display import default_name, display_options

#: Put before the name of each command.
PREFIX = "potential_"


def viewer_commands() -> Iterator[Command]:
    """Yield every registered command that takes atoms or maps; one that cannot be loaded is named and left out."""
    for name in registry.available("command"):
        try:
            command: Command = registry.get("command", name)
        except Exception as error:  # whatever a foreign module raises on import
            colorprinting.warning(f" vmdpotential: the command '{name}' is left out: {error}")
            continue
        if any(role(parameter) for parameter in command.parameters):
            yield command


def pymol_name(command: Command) -> str:
    """Return what a command is called in PyMOL."""
    return PREFIX + re.sub(r"\W", "_", command.name)


def role(parameter: Parameter | None) -> str:
    """Return 'selection' or 'maps' for what PyMOL holds, else an empty string."""
    if parameter is None:
        return ""
    if Structure in parameter.objects:
        return "selection"
    return "maps" if Grid in parameter.objects else ""


def is_topology(command: Command, parameter: Parameter) -> bool:
    """Tell the file that goes with a selection: read here, because commands take it with files only."""
    return parameter.name == "topology" and any(role(other) == "selection" for other in command.parameters)


def argument_name(parameter: Parameter) -> str:
    """Return what a parameter is called in PyMOL."""
    return "selection" if role(parameter) == "selection" else parameter.name


def to_file(command: Command) -> bool:
    """Tell whether the result is a file that the user names (a figure), not objects."""
    return any(parameter.name == "output" and parameter.option.viewer for parameter in command.parameters)


def offered(command: Command) -> list[Parameter]:
    """Return the parameters that PyMOL offers: what it holds first, then the others as declared."""
    chosen = [
        p for p in command.parameters
        if p.option.viewer or p.required or is_topology(command, p) or (p.name == "force" and to_file(command))
    ]
    return sorted(chosen, key=lambda p: not (role(p) and p.required))


def displayed(command: Command) -> tuple[Parameter, ...]:
    """Return the options of how PyMOL shows the result, without those that the command has itself."""
    taken = {parameter.name for parameter in command.parameters}
    return () if to_file(command) else tuple(p for p in display_options(command) if p.name not in taken)


def arguments(command: Command) -> dict[str, Parameter | None]:
    """Return PyMOL's arguments in their order; None stands for the name of the objects that are made."""
    first, *others = offered(command)
    found: dict[str, Parameter | None] = {argument_name(first): first}
    if not to_file(command):
        found["name"] = None
    return found | {argument_name(parameter): parameter for parameter in (*others, *displayed(command))}


def default_text(parameter: Parameter | None) -> str:
    """Return the default of an argument as it would be typed, empty for none."""
    if parameter is None:
        return ""
    if parameter.required:
        return "all" if role(parameter) == "selection" else ""
    if isinstance(parameter.default, bool):
        return "yes" if parameter.default else "no"
    if parameter.default is None:
        return ""
    if isinstance(parameter.default, (tuple, list)):
        return " ".join(map(str, parameter.default))
    return str(parameter.default)


def describe(parameter: Parameter | None) -> str:
    """Return the help of an argument, one line."""
    if parameter is None:
        return "what the new objects are called"
    return parameter.option.help + (f", {parameter.option.unit}" if parameter.option.unit else "")


def help_text(command: Command) -> str:
    """Return PyMOL's kind of docstring."""
    kinds = {float: "number", int: "whole number", bool: "yes or no", str: "text", Path: "file"}
    name, entries, found = pymol_name(command), [], arguments(command)
    for argument, parameter in found.items():
        kind, default = "text", default_name(command)
        if parameter is not None:
            default = default_text(parameter)
            kind = {"selection": "selection of atoms", "maps": "map objects or files"}.get(
                role(parameter), ", ".join(parameter.option.allowed()) or kinds.get(parameter.type, "text"))
        text = f"{argument} = {kind}: {describe(parameter)}" + (f" {{default: {default}}}" if default else "")
        entries.append(textwrap.fill(text, 78, initial_indent="    ", subsequent_indent="        "))
    usage = name + "".join(f" [, {argument}" if n else f" [ {argument}" for n, argument in enumerate(found))
    usage = textwrap.fill(usage + " " + "]" * len(found), 78, initial_indent="    ", subsequent_indent="        ")
    description = textwrap.indent(command.description, "    ")
    return "\n".join(["DESCRIPTION", "", description, "", "USAGE", "", usage, "", "ARGUMENTS", "",
                      "\n\n".join(entries), ""])


def unquoted(value: Any) -> str:
    """Return an argument without the quotes or brackets that keep its commas together."""
    text = "" if value is None else str(value).strip()
    for left, right in ("''", '""', "[]"):
        if len(text) > 1 and text[0] == left and text[-1] == right:
            return text[1:-1].strip()
    return text


def words(value: Any) -> list[str]:
    """Return the blank-separated words of an argument, which may stand in brackets; quotes keep blanks together."""
    text = str(value).strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    found = re.findall(r"'([^']*)'(?!\S)|\"([^\"]*)\"(?!\S)|(\S+)", text)
    return ["".join(parts) for parts in found] or [""]


def in_pymol(message: str) -> str:
    """Write the options in a message as PyMOL's arguments are written, in one line."""
    message = re.sub(r"(?<!\S)-o(?!\S)", "output", " ".join(message.split()))
    return re.sub(r"--(?:no-)?([a-z][a-z-]*)", lambda match: match[1].replace("-", "_"), message)
