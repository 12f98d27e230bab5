"""How viewers show maps: what can be chosen, declared as the commands declare their parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from vmdpotential.commands import media
from vmdpotential.figures.colours import Range
from vmdpotential.frontend.adapters import colour_range
from vmdpotential.parameters import Command, Option, Parameter, Report

#: Options of the surface of a map.
_SURFACE = ("surface", "hide_water")

#: Commands that make no map.
_WITHOUT = ("orbital", "ionize", "slice", "view", "profile", "field", "energy", "forces", "rdf", "surface")


def _maps(
    medium: Annotated[str, Option(media.HELP, choices=tuple(media.MEDIA), front=True)] = media.DEFAULT,
    surface: Annotated[bool, Option(
        "molecular surface, without solvent, coloured by the map", front=True)] = True,
    hide_water: Annotated[bool, Option(
        "hide the water when the first surface is drawn", front=True)] = True,
    range: Annotated[Range | None, Option(
        "range of the colours, such as -5,5 or 5; unless given 5 kT/e in water, otherwise round values",
        parse=colour_range, metavar="LO,HI", front=True)] = None,
) -> Report:
    return Report([], {})


def surface_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters that say how a command's map is shown; of a live map no surface, which would not follow."""
    if command.name in _WITHOUT:
        return ()
    left_out = {"live": _SURFACE}.get(command.name, ())
    shown = [p for p in Command.of(_maps).parameters
             if p.name not in left_out and (p.name != "medium" or media.has_medium(command))]
    if command.name == "map":
        return tuple(shown)
    # the others have more of their own that everybody sets
    folded = _SURFACE if media.has_medium(command) or command.name == "compare" else (*_SURFACE, "range")
    return tuple(replace(p, option=replace(p.option, front=False)) if p.name in folded else p for p in shown)
