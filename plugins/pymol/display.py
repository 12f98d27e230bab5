"""How PyMOL shows results: what can be chosen, declared as the commands declare their parameters."""

from __future__ import annotations

from typing import Annotated

from vmdpotential.commands.slice import Range
from vmdpotential.frontend.adapters import colour_range
from vmdpotential.grid.planes import Plane
from vmdpotential.parameters import Command, Option, Parameter, Report

#: Commands that make no map.
_WITHOUT = ("profile", "field", "energy", "forces", "rdf", "surface")


def _plane(text: str) -> Plane:
    return Plane.parse(text)


def _maps(
    surface: Annotated[bool, Option(
        "molecular surface, without solvent, coloured by the map", front=True)] = True,
    range: Annotated[Range | None, Option(
        "of the colours, such as -5,5 or 5; round values unless given", parse=colour_range,
        metavar="LO,HI", front=True)] = None,
    isosurface: Annotated[float | None, Option(
        "level of two isosurfaces, positive and negative", above=0,
        front=True)] = None,
    cut: Annotated[Plane | None, Option(
        "coloured plane through the map, such as z=12.5", unit="A", parse=_plane,
        front=True)] = None,
) -> Report:
    return Report([], {})


def _ions(
    labels: Annotated[bool, Option("write its energy when placed beside every ion, kcal/mol", front=True)] = True,
) -> Report:
    return Report([], {})


_MAPS, _IONS = Command.of(_maps).parameters, Command.of(_ions).parameters


def display_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters that say how the result of a command is shown."""
    if command.name in _WITHOUT:
        return ()
    if command.name == "live":  # a copy's surface would not follow
        return tuple(parameter for parameter in _MAPS if parameter.name != "surface")
    return _IONS if command.name == "ionize" else _MAPS
