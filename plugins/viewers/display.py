"""Options of how viewers show maps, declared like the parameters of commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated

from vmdpotential.figures.colours import ValueRange
from vmdpotential.frontend.declarations import in_front
from vmdpotential.parameters import Command, Option, Parameter, Report

from .map_surfaces import colour_range


def _surface(
    surface: Annotated[bool, Option(
        "molecular surface, without solvent, coloured by the map", front=True)] = True,
) -> Report:
    return Report([], {})


def _atoms(
    surface_of: Annotated[str | None, Option(
        "part of the computed atoms that gets a surface, in the field of all of them; all unless given", metavar="SEL",
        selection=True)] = None,
    hide_water: Annotated[bool, Option(
        "hide the water when the first surface is drawn", front=True)] = True,
) -> Report:
    return Report([], {})


def _colours(
    range: Annotated[ValueRange | None, Option(
        "range of the colours, such as -5,5 or 5; unless given, 5 kT/e in water, else a round value",
        parse=colour_range, metavar="LO,HI", front=True)] = None,
) -> Report:
    return Report([], {})


def _drawing(
    draw: Annotated[str, Option(
        "how the map is drawn: as a coloured surface, as isosurfaces with a slice, or both (all)",
        choices=("surface", "isosurfaces", "all"), front=True)] = "surface",
) -> Report:
    return Report([], {})


def _isosurfaces(
    isovalue: Annotated[float | None, Option(
        "level of two isosurfaces, positive and negative; a round value unless given")] = None,
) -> Report:
    return Report([], {})


#: Options of how viewers show a map, and those that VMD's plugin has of its own or shares, by what commands declare as
#: `draws`. VMD draws no differences, and `draw` replaces `surface` there.
_SHOWN = {"surface": (_surface, _atoms, _colours), "difference": (_surface, _atoms, _colours), "live": (_colours,)}
_IN_VMD = {"surface": (_drawing, _isosurfaces, _atoms, _colours), "live": (_isosurfaces, _colours),
           "orbital": (_isosurfaces,)}


def vmd_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters of how VMD's plugin shows a command's result."""
    return _options(command, _IN_VMD.get(command.draws, ()))


def surface_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters of how a command's map is shown; a live map has no surface, which would not be updated."""
    return _options(command, _SHOWN.get(command.draws, ()))


def _options(command: Command, functions: Sequence[Callable[..., Report]]) -> tuple[Parameter, ...]:
    """Return the parameters that functions declare.

    Those of surfaces and colours are folded where the command has options of its own that a dialog shows at once, which
    are more important; for the colours, the medium is none.
    """
    others = [p for p in command.parameters if not p.required and p.option.role != "medium"]
    has_medium = len(others) < sum(not p.required for p in command.parameters)
    folded: tuple[Callable[..., Report], ...] = ()
    if any(in_front(command, p) for p in others):
        folded = (_surface, _atoms) if has_medium or command.draws != "surface" else (_surface, _atoms, _colours)
    return tuple(
        replace(p, option=replace(p.option, front=p.option.front and function not in folded))
        for function in functions for p in Command.of(function).parameters)
