"""The functions that ``vmdpotential`` exports, whose errors name parameters of the function that was called.

Errors are raised by code that serves the commands, too, and name a command's parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from vmdpotential.errors import VmdpotentialError, plain_spelling

#: Names that parameters of commands have in functions.
_ALSO = {"set": "parameters", "parameters": "files", "ion_template": "templates", "between": "second",
         "range": "value_range"}

#: Functions and classes with parameters that others need to have been given.
_OWNERS = {"topology": "read_structure", "cell": "Structure", "charges": "prepare", "leave_out": "prepare",
           "force_field": "assign_charges", "water": "assign_charges", "parameters": "nonbonded"}


@dataclass(frozen=True)
class OfFunction:
    """Spelling of parameters in the errors of a function with these parameters."""

    parameters: frozenset[str]

    def __call__(self, name: str, value: str = "") -> str:
        """Return a parameter as the function names it, or with the name of the function that has it."""
        if _ALSO.get(name) in self.parameters and name not in self.parameters:
            name = _ALSO[name]
        spelled = plain_spelling(name, value)
        if self.parameters.isdisjoint((name, f"{name}_")) and name in _OWNERS:
            return f"{spelled} of {_OWNERS[name]}"
        return spelled


def naming_its_parameters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose errors name its own parameters."""
    spelling = OfFunction(frozenset(inspect.signature(function).parameters))

    @wraps(function)
    def called(*given: Any, **keywords: Any) -> Any:
        try:
            return function(*given, **keywords)
        except VmdpotentialError as error:
            error.spelling = spelling
            raise

    called.__module__ = "vmdpotential"  # where pickle finds it
    return called
