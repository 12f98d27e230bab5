"""Options of how viewers show maps, declared like the parameters of commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from vmdpotential.figures.colours import ValueRange
from vmdpotential.frontend.declarations import in_front
from vmdpotential.grid.planes import Plane
from vmdpotential.parameters import Command, Option, Parameter
from vmdpotential.parameters.declared import fields_of

from .map_surfaces import colour_range


@dataclass(frozen=True)
class DisplayOptions:
    """Options of how viewers show a result; each shows those that are listed below."""

    surface: Annotated[bool, Option(
        "molecular surface, without solvent, coloured by the map", front=True)] = True
    draw: Annotated[str, Option(
        "how the map is drawn: as a coloured surface, as isosurfaces with a slice, or both (all)",
        choices=("surface", "isosurfaces", "all"), front=True)] = "surface"
    isovalue: Annotated[float | None, Option(
        "level of two isosurfaces, positive and negative; a round value unless given")] = None
    surface_of: Annotated[str | None, Option(
        "part of the computed atoms that gets a surface, in the field of all of them; all unless given", metavar="SEL",
        selection=True)] = None
    hide_water: Annotated[bool, Option("hide the water when the first surface is drawn", front=True)] = True
    range: Annotated[ValueRange | None, Option(
        "range of the colours, such as -5,5 or 5; unless given, 5 kT/e in water, else a round value",
        parse=colour_range, metavar="LO,HI", front=True)] = None
    isosurface: Annotated[float | None, Option(
        "level of isosurfaces outside the molecule, positive and negative", above=0)] = None
    cut: Annotated[Plane | None, Option(
        "coloured plane through the map, such as z=12.5", unit="A", parse=Plane.parse)] = None
    labels: Annotated[bool, Option("label every ion with its energy when placed, kcal/mol")] = False


_OF_SURFACES = ("surface", "surface_of", "hide_water", "range")

#: Names of the options of all viewers, of those that only PyMOL has, and of all that VMD's plugin has, by what commands
#: declare as `draws`. VMD draws no differences, and `draw` replaces `surface` there.
_SHOWN = {"surface": _OF_SURFACES, "difference": _OF_SURFACES, "live": ("range",)}
_IN_PYMOL = {"ions": ("labels",), "isosurfaces": ("isosurface",), "orbital": ("isosurface",),
             **dict.fromkeys(_SHOWN, ("isosurface", "cut"))}
_IN_VMD = {"surface": ("draw", "isovalue", *_OF_SURFACES[1:]), "live": ("isovalue", "range"), "orbital": ("isovalue",)}


def vmd_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters of how VMD's plugin shows a command's result."""
    return _options(command, _IN_VMD.get(command.draws, ()))


def pymol_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters of how PyMOL shows a command's result."""
    return (*surface_options(command), *_options(command, _IN_PYMOL.get(command.draws, ())))


def surface_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters of how a command's map is shown; a live map has no surface, which would not be updated."""
    return _options(command, _SHOWN.get(command.draws, ()))


def _options(command: Command, names: Sequence[str]) -> tuple[Parameter, ...]:
    """Return the options with some names.

    Those of surfaces and colours are folded where the command has options of its own that a dialog shows at once, which
    are more important; for the colours, the medium is none.
    """
    others = [p for p in command.parameters if not p.required and p.option.role != "medium"]
    has_medium = len(others) < sum(not p.required for p in command.parameters)
    folded: tuple[str, ...] = ()
    if any(in_front(command, p) for p in others):
        folded = _OF_SURFACES[:-1] if has_medium or command.draws != "surface" else _OF_SURFACES
    known = {p.name: p for p in fields_of(DisplayOptions)}
    return tuple(replace(known[name], option=replace(known[name].option, front=(
        known[name].option.front and name not in folded))) for name in names)
