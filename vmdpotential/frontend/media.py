"""What surrounds the charges in a viewer's map: words that set several parameters, and which one is the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmdpotential.figures.colours import STOPS
from vmdpotential.parameters import Command

#: Values of parameters by the word that stands for them; those that a user sets take precedence.
MEDIA: dict[str, dict[str, Any]] = {
    "water": {"atoms": "solute", "screened": 0.15},
    "vacuum": {"atoms": "solute"},
    "explicit": {"atoms": "all"},
}

#: The medium of the first picture, in every viewer.
DEFAULT = "water"

HELP = ("what surrounds the charges: water (of the solute, with 0.15 M of salt), vacuum (of the solute) or explicit "
        "(all atoms count)")

#: Parameters that choose another potential than a screened one, and what atoms are when water is among them.
_OTHERS = ("interaction", "set", "smear", "screened")
_WITH_WATER = ("all", "water")


def has_medium(command: Command) -> bool:
    """Return whether viewers offer a medium for a command: one that makes a map of chosen atoms."""
    names = {parameter.name for parameter in command.parameters}
    return {"atoms", "screened", "spacing"} <= names


def in_medium(command: Command, medium: str, given: Mapping[str, Any], only_water: bool = False) -> dict[str, Any]:
    """Return values of a command's parameters with those that a medium stands for.

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
    values = {**MEDIA["explicit" if only_water else medium], **given}
    unscreened = any(name in given for name in _OTHERS) or str(values["atoms"]).lower() in _WITH_WATER
    return {name: value for name, value in values.items() if name in given or name != "screened" or not unscreened}


def declaration() -> dict[str, Any]:
    """Return the media, and the lowest, middle and highest colour, as plain data for viewers that run the program."""
    return {"default": DEFAULT, "help": HELP, "others": list(_OTHERS), "with_water": list(_WITH_WATER),
            "colours": [[channel / 255 for channel in bytes.fromhex(STOPS[n][1:])] for n in (0, 3, 6)],
            "words": {word: {name: str(value) for name, value in values.items()} for word, values in MEDIA.items()}}
