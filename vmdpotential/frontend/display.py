"""Options of how viewers show maps, declared like the parameters of commands."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from vmdpotential.figures.colours import ValueRange
from vmdpotential.frontend.adapters import colour_range
from vmdpotential.frontend.declarations import in_front
from vmdpotential.parameters import Command, Option, Parameter, Report

#: Options of the molecular surface that is coloured by a map.
_SURFACE = ("surface", "surface_of", "hide_water")

#: Options of how viewers show a map, and those that VMD's plugin has of its own, by what commands declare as `draws`.
_SHOWN = {"surface": (*_SURFACE, "range"), "difference": (*_SURFACE, "range"), "live": ("range",)}
_IN_VMD = {"surface": ("draw", "isovalue"), "live": ("isovalue",), "orbital": ("isovalue",)}


def _maps(
    surface: Annotated[bool, Option(
        "molecular surface, without solvent, coloured by the map", front=True)] = True,
    surface_of: Annotated[str | None, Option(
        "part of the computed atoms that gets a surface, in the field of all of them; all unless given", metavar="SEL",
        selection=True)] = None,
    hide_water: Annotated[bool, Option(
        "hide the water when the first surface is drawn", front=True)] = True,
    range: Annotated[ValueRange | None, Option(
        "range of the colours, such as -5,5 or 5; unless given, 5 kT/e in water, else a round value",
        parse=colour_range, metavar="LO,HI", front=True)] = None,
) -> Report:
    return Report([], {})


def _in_vmd(
    draw: Annotated[str, Option(
        "how the map is drawn: as a coloured surface, as isosurfaces with a slice, or both (all)",
        choices=("surface", "isosurfaces", "all"), front=True)] = "surface",
    isovalue: Annotated[float | None, Option(
        "level of two isosurfaces, positive and negative; a round value unless given")] = None,
) -> Report:
    return Report([], {})


def vmd_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters of how VMD's plugin shows a command's result, where `draw` replaces `surface`.

    VMD draws no differences.
    """
    shared = [p for p in surface_options(command) if p.name != "surface"] if command.draws in _IN_VMD else []
    own = [p for p in Command.of(_in_vmd).parameters if p.name in _IN_VMD.get(command.draws, ())]
    return (*own, *shared)


def surface_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters of how a command's map is shown; a live map has no surface, which would not be updated.

    They are folded where the command has options of its own that a dialog shows at once, which are more important.
    """
    shown = [p for p in Command.of(_maps).parameters if p.name in _SHOWN.get(command.draws, ())]
    named = [p.name for p in command.parameters]
    if not any(in_front(command, p) for p in command.parameters if not p.required and p.name != "medium"):
        return tuple(shown)
    folded = (*_SURFACE, "range") if command.draws == "surface" and "medium" not in named else _SURFACE
    return tuple(replace(p, option=replace(p.option, front=False)) if p.name in folded else p for p in shown)
