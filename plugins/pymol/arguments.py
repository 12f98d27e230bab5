"""Arguments of PyMOL's commands and fields of the dialog, from the declarations of the registry's commands."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vmdpotential.errors import Spelling, plain_spelling
from vmdpotential.frontend import messages
from vmdpotential.parameters import Command, Parameter
from vmdpotential.parameters import by_own_names as parameters_by_own_names

from ..viewers.adapters import default_text, describe_parameter, object_role, offered_parameters, to_file
from ..viewers.display import pymol_options

#: Prefix of the commands' names.
PREFIX = "potential_"

#: Names of arguments that every command has, in addition to its own parameters.
_TAKEN = ("selection", "name", "quiet", "_self")


def pymol_name(command: Command) -> str:
    """Return the name of a command in PyMOL."""
    return PREFIX + re.sub(r"\W", "_", command.name)


def argument_name(parameter: Parameter) -> str:
    """Return the name of a parameter in PyMOL, with an underscore if Python or PyMOL reserves the name."""
    if object_role(parameter) == "structure":
        return "selection"
    name = parameter.name
    return name + "_" * (keyword.iskeyword(name) or name in _TAKEN)


def displayed(command: Command) -> tuple[Parameter, ...]:
    """Return the options of the display in PyMOL, without those that are parameters of the command."""
    taken = {parameter.name for parameter in command.parameters}
    return () if to_file(command) else tuple(p for p in pymol_options(command) if p.name not in taken)


def arguments(command: Command) -> dict[str, Parameter | None]:
    """Return the parameters of PyMOL's arguments in their order; None for the name of the new objects."""
    first, *others = offered_parameters(command)
    result: dict[str, Parameter | None] = {argument_name(first): first}
    if not to_file(command):
        result["name"] = None
    return result | {argument_name(parameter): parameter for parameter in (*others, *displayed(command))}


def by_own_names(command: Command, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return typed arguments with aliases replaced by the arguments' names.

    Raises
    ------
    UsageError
        For an argument that was typed by its name and an alias.
    """
    parameters = [replace(parameter, name=name, argument="") for name, parameter in arguments(command).items()
                  if parameter is not None]
    return parameters_by_own_names(parameters, inputs)


def help_text(command: Command) -> str:
    """Return the help of a command in PyMOL's format."""
    kinds = {float: "number", int: "whole number", bool: "yes or no", str: "text", Path: "file"}
    name, entries, result = pymol_name(command), [], arguments(command)
    for argument, parameter in result.items():
        kind, default = "text", command.makes
        if parameter is not None:
            default = default_text(parameter)
            kind = {"structure": "selection of atoms", "map": "map objects or files"}.get(
                object_role(parameter), ", ".join(parameter.option.shown()) or kinds.get(parameter.type, "text"))
        text = f"{argument} = {kind}: {describe_parameter(parameter)}" + (f" {{default: {default}}}" if default else "")
        entries.append(textwrap.fill(text, 78, initial_indent="    ", subsequent_indent="        "))
    usage = name + "".join(f" [, {argument}" if n else f" [ {argument}" for n, argument in enumerate(result))
    usage = textwrap.fill(usage + " " + "]" * len(result), 78, initial_indent="    ", subsequent_indent="        ")
    description = textwrap.indent(command.description, "    ")
    return "\n".join(["DESCRIPTION", "", description, "", "USAGE", "", usage, "", "ARGUMENTS", "",
                      "\n\n".join(entries), ""])


def unquoted(value: Any) -> str:
    """Return an argument without the quotes or brackets that protect its commas."""
    text = "" if value is None else str(value).strip()
    for left, right in ("''", '""', "[]"):
        if len(text) > 1 and text[0] == left and text[-1] == right:
            return text[1:-1].strip()
    return text


def is_empty(value: Any) -> bool:
    """Return whether an argument is an empty pair of quotes or brackets."""
    return isinstance(value, str) and value.strip() != "" and unquoted(value) == ""


def words(value: Any) -> list[str]:
    """Return the blank-separated words of an argument, which may be in brackets; quotes keep blanks together."""
    text = str(value).strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    match = re.findall(r"'([^']*)'(?!\S)|\"([^\"]*)\"(?!\S)|(\S+)", text)
    return ["".join(parts) for parts in match] or [""]


def spelling(command: Command) -> Spelling:
    """Return the function that spells a command's parameters as PyMOL's arguments."""
    names = {parameter.name for parameter in command.parameters}

    def spell_of_command(name: str, value: str = "") -> str:
        other = messages.owner(name, names)
        return spell(name, value) + (f" of {pymol_name(other)}" if other is not None else "")

    return spell_of_command


def spell(name: str, value: str = "") -> str:
    """Return a parameter and its value in the spelling of PyMOL's arguments."""
    return plain_spelling("selection" if name == "structure" else name, value)
