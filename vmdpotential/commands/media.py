"""Media of a viewer's picture: words that each set several parameters of a map, and the default one."""

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

#: Medium of the first picture, in every viewer.
DEFAULT = "water"

HELP = ("medium around the charges: water (Poisson-Boltzmann, 0.15 M of salt), screened (Debye-Hueckel, 0.15 M), "
        "vacuum, or explicit (all atoms, with their water)")

#: Rules that replace a medium if the user sets certain options, in this order: (medium, its replacement, options).
_RULES = (
    ("water", "vacuum", ("interaction", "smear")),
    ("water", "screened", ("method", "cutoff", "algorithm", "boundary=periodic")),
    ("screened", "vacuum", ("interaction", "set", "smear")),
)

#: Values of the option atoms that select water.
_WITH_WATER = ("all", "water")


def has_medium(command: Command) -> bool:
    """Return whether viewers offer a medium for a command: whether it computes a map of selected atoms."""
    names = {parameter.name for parameter in command.parameters}
    return {"atoms", "screened", "spacing"} <= names


def in_medium(command: Command, medium: str, given: Mapping[str, Any], only_water: bool = False) -> dict[str, Any]:
    """Return the values of a command's parameters, with those that a medium implies.

    Parameters
    ----------
    command : Command
    medium : str
        One of :data:`MEDIA`.
    given : mapping
        Values that the user has set, by the names of parameters.
    only_water : bool
        Whether all selected atoms are water, so that there is no solute.
    """
    if not has_medium(command):
        return dict(given)
    continuum = given.get("method") in _continua()
    for word, replacement, options in _RULES:
        if medium == word and any(map(partial(_is_given, given), options)) and not continuum:
            medium = replacement
    if only_water or str(given.get("atoms", "")).lower() in _WITH_WATER:
        medium = "explicit"
    return {**MEDIA[medium], **given}


def picture(structure: Structure, medium: str, **values: Any) -> Grid:
    """Return the map of a structure in a medium, with the defaults of the command ``map`` and the given values.

    Raises
    ------
    VmdpotentialError
        The errors of the command.
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
    """Return whether an option is given, or for a text ``name=value``, whether it is given with this value."""
    name, _, value = text.partition("=")
    return name in given and value in ("", str(given[name]))


def _continua() -> list[str]:
    """Return the methods that compute a continuum around the charges."""
    results = []
    for name in registry.available("method"):
        with contextlib.suppress(VmdpotentialError):  # a plugin's method that cannot be loaded
            if registry.get("method", name).quantities:
                results.append(name)
    return results
