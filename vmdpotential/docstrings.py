"""Docstrings with the sections of numpydoc, generated from the declarations of parameters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from keyword import iskeyword
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vmdpotential.parameters import Parameter

_NAMES = {"Path": "str or Path", "Structure": "Structure or an object that becomes one"}


def name_of(parameter: Parameter) -> str:
    """Return the name of a parameter in Python, e.g. ``from_`` for ``from``."""
    return f"{parameter.name}_" if iskeyword(parameter.name) else parameter.name


def parameter_entries(parameters: Iterable[Parameter], choices: bool = True) -> str:
    """Return the section ``Parameters``, without its title: types, units, defaults and descriptions.

    Without `choices`, allowed values that depend on the loaded plugins are not listed.
    """
    return "\n".join(f"{name_of(p)} : {_type(p, choices)}\n{_described(p)}" for p in parameters)


def _type(parameter: Parameter, choices: bool) -> str:
    option = parameter.option
    kinds = [_NAMES.get(kind.__name__, kind.__name__) for kind in (parameter.type, *parameter.objects)
             if hasattr(kind, "__name__")] or ["object"]
    if option.selection:
        kinds = ["str", "array"]
    if (choices or not callable(option.choices)) and (allowed := option.shown()):
        kinds = ["{" + ", ".join(f'"{choice}"' for choice in allowed) + "}"]
    text = " or ".join(kinds) + (", several" if parameter.several else "") + (f", {option.unit}" if option.unit else "")
    if parameter.required:
        return text
    return f"{text}, optional" if parameter.default in (None, (), "") else f"{text}, default {parameter.default}"


def _described(parameter: Parameter) -> str:
    text = parameter.option.help
    end = "" if text.endswith("...") and not parameter.option.aliases else "."
    if parameter.option.aliases:
        text += f"; also as {' or '.join(parameter.option.aliases)}"
    first = text[0] if text[1:2].isupper() else text[0].upper()  # not for "pH"
    return textwrap.fill(f"{first}{text[1:]}{end}", 110, initial_indent="    ", subsequent_indent="    ")


def with_entries(docstring: str, parameters: Iterable[Parameter]) -> str:
    """Return a docstring with its entry ``**keywords`` replaced by entries of the parameters it does not describe."""
    lines = docstring.splitlines()
    places = [n for n, line in enumerate(lines) if line.strip() == "**keywords"]
    if not places:
        return docstring
    (place,) = places
    known = {name for line in lines if " : " in line for name in line.partition(" : ")[0].strip().split(", ")}
    indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
    end = place + 1
    while end < len(lines) and lines[end].strip() and lines[end].startswith(f"{indent} "):
        end += 1
    section = textwrap.indent(parameter_entries((p for p in parameters if name_of(p) not in known), choices=False),
                              indent)
    return "\n".join([*lines[:place], *([section] if section else []), *lines[end:]])
