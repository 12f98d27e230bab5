"""How viewers show maps: what can be chosen, declared as the commands declare their parameters."""

from __future__ import annotations

from typing import Annotated

from vmdpotential.commands.slice import Range
from vmdpotential.frontend.adapters import colour_range
from vmdpotential.parameters import Command, Option, Parameter, Report

#: Commands that make no map.
_WITHOUT = ("ionize", "slice", "view", "profile", "field", "energy", "forces", "rdf", "surface")


def _maps(
    surface: Annotated[bool, Option(
        "molecular surface, without solvent, coloured by the map", front=True)] = True,
    range: Annotated[Range | None, Option(
        "of the colours, such as -5,5 or 5; round values unless given", parse=colour_range, metavar="LO,HI",
        front=True)] = None,
) -> Report:
    return Report([], {})


def surface_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters that say how a command's map is shown; of a live map no surface, which would not follow."""
    if command.name in _WITHOUT:
        return ()
    return tuple(p for p in Command.of(_maps).parameters if command.name != "live" or p.name != "surface")
