"""Tools that are made from the declarations of commands: their names, descriptions and JSON schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vmdpotential import registry
from vmdpotential.errors import UsageError, VmdpotentialError
from vmdpotential.frontend.declarations import as_text
from vmdpotential.parameters import Command, Parameter

#: JSON's types of a parameter's values; all others are written as in a shell.
_TYPES = {bool: "boolean", int: "integer", float: "number"}

#: Largest number of bytes of a value of text, and of items of a list.
MOST_TEXT, MOST_ITEMS = 10_000, 1000


def available_commands() -> Iterator[Command]:
    """Yield the commands that a program can run with nobody present, in the registry's order."""
    for name in registry.available("command"):
        try:
            command: Command = registry.get("command", name)
        except VmdpotentialError:  # of another package, and broken; `plugins` lists it
            continue
        if command.unattended:
            yield command


def tool_of_command(command: Command) -> dict[str, Any]:
    """Return a tool: ``name``, ``title``, ``description``, ``inputSchema`` and ``annotations``, ready for JSON."""
    parameters = offered_parameters(command)
    writes = [p.name for p in parameters if p.option.written]
    files = f" Files that it writes: {', '.join(writes)}." if writes else ""
    return {
        "name": command.name,
        "title": command.summary,
        "description": f"{command.description}\n\nNames of files are relative to the root folder.{files}",
        "inputSchema": {
            "type": "object",
            "properties": {p.name: schema_of_parameter(p) for p in parameters},
            "required": [p.name for p in parameters if p.required],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": not writes, "idempotentHint": True, "openWorldHint": False,
                        "destructiveHint": any(p.option.role == "overwriting" for p in parameters)},
    }


def offered_parameters(command: Command) -> list[Parameter]:
    """Return the parameters of a command that agents set: all but those that connect to other machines."""
    return [p for p in command.parameters if p.option.role != "address"]


def schema_of_parameter(parameter: Parameter) -> dict[str, Any]:
    """Return the JSON schema of a parameter's value."""
    option = parameter.option
    kind = "string" if option.parse else _TYPES.get(parameter.type, "string")
    one: dict[str, Any] = {"type": kind}
    if kind in ("integer", "number"):
        limits = {"exclusiveMinimum": option.above, "minimum": option.low, "maximum": option.high}
        one |= {name: limit for name, limit in limits.items() if limit is not None}
    if kind == "string":
        one["maxLength"] = MOST_TEXT
    if option.allowed():
        one["enum"] = list(option.allowed())
    result = {"type": "array", "items": one, "maxItems": MOST_ITEMS} if parameter.several else one
    unit = f", in {option.unit}" if option.unit else ""
    default = "" if parameter.required else as_text(parameter.default)
    return result | {"description": f"{option.help}{unit}" + (f" (default {default})" if default else "")}


def checked_values(command: Command, values: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return the values of a call as the command takes them; every file of them is within a folder.

    Raises
    ------
    UsageError
        For an unknown parameter, an invalid value, or a file outside of the folder.
    """
    known = {parameter.name: parameter for parameter in offered_parameters(command)}
    result: dict[str, Any] = {}
    for name, value in values.items():
        parameter = known.get(name)
        if parameter is None:
            raise UsageError(name, f"{command.name} has no such parameter", f"it has {', '.join(known)}")
        if value is None:
            continue
        items = value if isinstance(value, list) else [value]
        if isinstance(value, list) and not parameter.several:
            raise UsageError(name, "one value is needed, not a list")
        for item in items:
            if not isinstance(item, (str, int, float, bool)) or (isinstance(item, str) and len(item) > MOST_TEXT):
                raise UsageError(name, "text, a number, true or false is needed")
        # text as in a shell, so that numbers in words are taken and anything else is refused in one way
        plain = [item if isinstance(item, bool) and parameter.type is bool else str(item) for item in items]
        converted = parameter.convert(plain if parameter.several else plain[0])
        for path in _paths(converted):
            if not (parameter.option.bundled and path.name == str(path)):
                require_within(path, root, name)
        result[name] = converted
    return result


def _paths(value: Any) -> Iterator[Path]:
    """Yield the files in a converted value, which may be in lists and mappings."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, Mapping):
        yield from _paths(tuple(value.values()))
    elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        for item in value:
            yield from _paths(item)


def require_within(path: Path, root: Path, name: str) -> None:
    """Raise an error unless a file, with its links followed, is in a folder.

    Raises
    ------
    UsageError
    """
    try:
        inside = (root / path).resolve().is_relative_to(root)
    except (OSError, ValueError, RuntimeError):  # a name that no file can have
        inside = False
    if not inside or str(path) == "-" or "\0" in str(path):
        raise UsageError(name, "is outside of the root folder", "give a name relative to it", value=str(path)[:200])
