"""Options of the display of results in PyMOL, declared in the same way as parameters of commands."""

from __future__ import annotations

from typing import Annotated

from vmdpotential.frontend.display import surface_options
from vmdpotential.grid.planes import Plane
from vmdpotential.parameters import Command, Option, Parameter, Report


def _plane(text: str) -> Plane:
    return Plane.parse(text)


def _maps(
    isosurface: Annotated[float | None, Option(
        "level of isosurfaces outside the molecule, positive and negative", above=0)] = None,
    cut: Annotated[Plane | None, Option(
        "coloured plane through the map, such as z=12.5", unit="A", parse=_plane)] = None,
) -> Report:
    return Report([], {})


def _ions(
    labels: Annotated[bool, Option("label every ion with its energy when placed, kcal/mol")] = False,
) -> Report:
    return Report([], {})


def display_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters of the display of a command's results."""
    if command.draws == "ions":
        return Command.of(_ions).parameters
    if command.draws in ("isosurfaces", "orbital"):
        return Command.of(_maps).parameters[:1]
    shared = surface_options(command)
    return (*shared, *Command.of(_maps).parameters) if shared else ()
