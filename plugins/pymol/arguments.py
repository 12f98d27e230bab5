"""The arguments of PyMOL's commands, made from the declarations of the registry's."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from vmdpotential.lattice import Grid
from vmdpotential.parameters import Command, Parameter
from vmdpotential.structure import Structure

from .show import default_name, display_options


def role(parameter: Parameter) -> str:
    """Return 'selection' or 'maps' for what PyMOL holds, else an empty string."""
    if Structure in parameter.objects:
        return "selection"
    return "maps" if Grid in parameter.objects else ""


def is_topology(command: Command, parameter: Parameter) -> bool:
    """Tell the file that goes with a selection: read here, because commands take it with files only."""
    return parameter.name == "topology" and any(role(other) == "selection" for other in command.parameters)


def argument(parameter: Parameter) -> str:
    return "selection" if role(parameter) == "selection" else parameter.name


def to_file(command: Command) -> bool:
    """Tell whether the result is a file that the user names (a figure), not objects."""
    return any(parameter.name == "output" and parameter.option.viewer for parameter in command.parameters)


def offered(command: Command) -> list[Parameter]:
    """Return the parameters that PyMOL offers: what it holds first, then the others as declared."""
    offered = [
        p for p in command.parameters
        if p.option.viewer or p.required or is_topology(command, p) or (p.name == "force" and to_file(command))
    ]
    return sorted(offered, key=lambda p: not (role(p) and p.required))


def arguments(command: Command) -> dict[str, Parameter | None]:
    """Return PyMOL's arguments in their order; None stands for the name of the objects that are made."""
    first, *others = offered(command)
    arguments: dict[str, Parameter | None] = {argument(first): first}
    if not to_file(command):
        arguments["name"] = None
    return arguments | {argument(parameter): parameter for parameter in others}


def default_text(parameter: Parameter | None) -> str:
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


def help_text(name: str, command: Command) -> str:
    """Return PyMOL's kind of docstring."""
    words = {float: "number", int: "whole number", bool: "yes or no", str: "text", Path: "file"}
    entries = []
    arguments = arguments(command)
    for argument, parameter in arguments.items():
        if parameter is None:
            text, default = "text: what the new objects are called", Results.default_name(command)
        else:
            option, default = parameter.option, default_text(parameter)
            kind = {"selection": "selection of atoms", "maps": "map objects or files"}.get(
                role(parameter), ", ".join(option.allowed()) or words.get(parameter.type, "text"))
            text = f"{kind}: {option.help}" + (f", {option.unit}" if option.unit else "")
        text += f" {{default: {default}}}" if default else ""
        entries.append(
            textwrap.fill(f"{argument} = {text}", 78, initial_indent="    ", subsequent_indent="        "))
    usage = name + "".join(f" [, {argument}" if n else f" [ {argument}" for n, argument in enumerate(arguments))
    usage = textwrap.fill(usage + " " + "]" * len(arguments), 78, initial_indent="    ", subsequent_indent="        ")
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
    """Write the options in a message as PyMOL's arguments are written."""
    message = re.sub(r"(?<!\S)-o(?!\S)", "output", message)
    message = re.sub(r"--(?:no-)?([a-z][a-z-]*)", lambda match: match[1].replace("-", "_"), message)
    return message
