"""Options of the display of results in PyMOL, declared in the same way as parameters of commands."""

from __future__ import annotations

from typing import Annotated

from vmdpotential.grid.planes import Plane
from vmdpotential.parameters import Command, Option, Parameter, Report

from ..viewers.display import surface_options


def _plane(text: str) -> Plane:
    return Plane.parse(text)


def _isosurfaces(
    isosurface: Annotated[float | None, Option(
        "level of isosurfaces outside the molecule, positive and negative", above=0)] = None,
) -> Report:
    return Report([], {})


def _cuts(
    cut: Annotated[Plane | None, Option(
        "coloured plane through the map, such as z=12.5", unit="A", parse=_plane)] = None,
) -> Report:
    return Report([], {})


def _ions(
    labels: Annotated[bool, Option("label every ion with its energy when placed, kcal/mol")] = False,
) -> Report:
    return Report([], {})


#: Options of how PyMOL shows a result, in addition to those of all viewers, by what commands declare as `draws`.
_SHOWN = {"ions": (_ions,), "isosurfaces": (_isosurfaces,), "orbital": (_isosurfaces,),
          "surface": (_isosurfaces, _cuts), "difference": (_isosurfaces, _cuts), "live": (_isosurfaces, _cuts)}


def display_options(command: Command) -> tuple[Parameter, ...]:
    """Return the parameters of the display of a command's results."""
    own = (p for function in _SHOWN.get(command.draws, ()) for p in Command.of(function).parameters)
    return (*surface_options(command), *own)
