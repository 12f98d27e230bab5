"""Options of how viewers show maps, declared like the parameters of commands."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from vmdpotential.figures.colours import Range
from vmdpotential.frontend.adapters import colour_range
from vmdpotential.parameters import Command, Option, Parameter, Report

#: Options of the molecular surface that is coloured by a map.
_SURFACE = ("surface", "hide_water")

#: Commands without these options, because they make no potential map.
_WITHOUT = ("orbital", "density", "probe", "ionize", "slice", "view", "profile", "field", "energy", "forces", "rdf",
            "surface")

#: Commands whose maps are shown by isosurfaces.
BY_LEVELS = ("orbital", "density", "probe")


def _maps(
    surface: Annotated[bool, Option(
        "molecular surface, without solvent, coloured by the map", front=True)] = True,
    hide_water: Annotated[bool, Option(
        "hide the water when the first surface is drawn", front=True)] = True,
    range: Annotated[Range | None, Option(
        "range of the colours, such as -5,5 or 5; unless given, 5 kT/e in water, else a round value",
        parse=colour_range, metavar="LO,HI", front=True)] = None,
) -> Report:
    return Report([], {})


def surface_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters of how a command's map is shown; a live map has no surface, which would not be updated."""
    if command.name in _WITHOUT:
        return ()
    left_out = {"live": _SURFACE}.get(command.name, ())
    shown = [p for p in Command.of(_maps).parameters if p.name not in left_out]
    if command.name == "map":
        return tuple(shown)
    # the other commands have more important options of their own
    potentials = command.name == "compare" or any(p.name == "medium" for p in command.parameters)
    folded = _SURFACE if potentials else (*_SURFACE, "range")
    return tuple(replace(p, option=replace(p.option, front=False)) if p.name in folded else p for p in shown)
