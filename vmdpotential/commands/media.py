"""What surrounds the charges of a picture: words that set several parameters, and which one is the default."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from vmdpotential import registry
from vmdpotential.errors import VmdpotentialError
from vmdpotential.parameters import Command

if TYPE_CHECKING:  # the shell's help needs neither numpy nor structures
    from vmdpotential.grid.lattice import Grid
    from vmdpotential.molecule.structure import Structure

#: Values of parameters for each medium; those that a user sets take precedence.
MEDIA: dict[str, dict[str, Any]] = {
    "water": {"atoms": "solute", "method": "pb", "radii": "auto+mbondi2"},
    "screened": {"atoms": "solute", "screened": 0.15},
    "vacuum": {"atoms": "solute"},
    "explicit": {"atoms": "all"},
}

#: The medium of the first picture, in every viewer.
DEFAULT = "water"

HELP = ("medium around the charges: water (Poisson-Boltzmann, 0.15 M of salt), screened (Debye-Hueckel, 0.15 M), "
        "vacuum, or explicit (all atoms, with their water)")

#: Options, or values of these, that mean another medium, in this order: whose, which one, and by which options.
_RULES = (
    ("water", "vacuum", ("interaction", "smear")),
    ("water", "screened", ("method", "cutoff", "algorithm", "boundary=periodic")),
    ("screened", "vacuum", ("interaction", "set", "smear")),
)

#: What atoms are when water is among them.
_WITH_WATER = ("all", "water")


def has_medium(command: Command) -> bool:
    """Return whether viewers offer a medium for a command: one that makes a map of chosen atoms."""
    names = {parameter.name for parameter in command.parameters}
    return {"atoms", "screened", "spacing"} <= names


def in_medium(command: Command, medium: str, given: Mapping[str, Any], only_water: bool = False) -> dict[str, Any]:
    """Return values of a command's parameters with those that a medium implies.

    Parameters
    ----------
    command : Command
    medium : str
        One of :data:`MEDIA`.
    given : mapping
        What the user has set, by the names of parameters.
    only_water : bool
        Whether water is all that the user has selected, which has no solute.
    """
    if not has_medium(command):
        return dict(given)
    continuum = given.get("method") in _continua()
    for word, other, options in _RULES:
        if medium == word and any(map(partial(_is_given, given), options)) and not continuum:
            medium = other
    if only_water or str(given.get("atoms", "")).lower() in _WITH_WATER:
        medium = "explicit"
    return {**MEDIA[medium], **given}


def picture(structure: Structure, medium: str, **values: Any) -> Grid:
    """Return the map of a structure in a medium, with the defaults of the command ``map`` and other values.

    Raises
    ------
    VmdpotentialError
        Those of the command.
    """
    from vmdpotential.molecule.selection import is_water

    map_: Command = registry.get("command", "map")
    chosen = in_medium(map_, medium, {}, bool(is_water(structure).all()))
    grid: Grid = map_(structure=structure, **chosen, **values).objects["grid"]
    return grid


def declaration() -> dict[str, Any]:
    """Return the media, and the lowest, middle and highest colour, as plain data for viewers that run the program."""
    from vmdpotential.figures.colours import STOPS

    rules = [{"medium": word, "instead": other, "options": list(options)} for word, other, options in _RULES]
    return {"default": DEFAULT, "help": HELP, "rules": rules, "continua": _continua(), "with_water": list(_WITH_WATER),
            "colours": [[channel / 255 for channel in bytes.fromhex(STOPS[n][1:])] for n in (0, 3, 6)],
            "words": {word: {name: str(value) for name, value in values.items()} for word, values in MEDIA.items()}}


def _is_given(given: Mapping[str, Any], text: str) -> bool:
    """Return whether an option is among those that were given, with a value where the text has one."""
    name, _, value = text.partition("=")
    return name in given and value in ("", str(given[name]))


def _continua() -> list[str]:
    """Return the methods that solve for the solution around the charges."""
    results = []
    for name in registry.available("method"):
        with contextlib.suppress(VmdpotentialError):  # of another package, and broken
            if registry.get("method", name).quantities:
                results.append(name)
    return results
