"""Water models: which one a residue's name, sites and geometry mean, and its charges. None is guessed.

A name says how many sites its model has (OPC has four), so a water that lacks one is refused. Names that
programs give to any water (HOH, SOL, WAT) say nothing: with three sites they are TIP3P, with four the model
whose massless site is where the file has it, else TIP4P; the report says which was taken, and why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vmdpotential.molecule.structure import Integers, Structure
from vmdpotential.molecule.templates import Miss


class WaterModel(NamedTuple):
    """Charges (e) of oxygen, hydrogen and massless site; distance (A) of that site from the oxygen; 0 without one."""

    oxygen: float
    hydrogen: float
    site: float = 0.0
    distance: float = 0.0

    @property
    def sites(self) -> int:
        """How many sites it has."""
        return 4 if self.distance else 3


#: By the name that a user gives.
MODELS = {
    # Jorgensen 1983; Berendsen 1981, 1987; Izadi 2016
    "tip3p": WaterModel(-0.834, 0.417),
    "spc": WaterModel(-0.82, 0.41),
    "spce": WaterModel(-0.8476, 0.4238),
    "opc3": WaterModel(-0.89517, 0.447585),
    # Jorgensen 1983; Horn 2004; Abascal 2005; Wang 2014; Izadi 2014
    "tip4p": WaterModel(0.0, 0.52, -1.04, 0.15),
    "tip4pew": WaterModel(0.0, 0.52422, -1.04844, 0.125),
    "tip4p2005": WaterModel(0.0, 0.5564, -1.1128, 0.1546),
    "tip4pfb": WaterModel(0.0, 0.52587, -1.05174, 0.10527),
    "opc": WaterModel(0.0, 0.679142, -1.358284, 0.1594),
}
#: How papers write them.
LABELS = {
    "tip3p": "TIP3P", "spc": "SPC", "spce": "SPC/E", "opc3": "OPC3", "tip4p": "TIP4P", "tip4pew": "TIP4P-Ew",
    "tip4p2005": "TIP4P/2005", "tip4pfb": "TIP4P-FB", "opc": "OPC",
}
#: What may be asked for.
CHOICES = ("auto", *MODELS)

#: The models that a residue's name may mean; other names of waters may mean any.
_NAMED = {name: models.split() for models, names in {
    "tip3p": "TIP3 TP3 T3P TP3M TIP3P TIPS TIPS3P", "spc": "SPC", "spce": "SPCE SPC/E SPE", "opc3": "OPC3 OP3",
    "opc": "OPC", "tip4pew": "T4E TIP4EW TP4E T4EW", "tip4p tip4pew tip4p2005 tip4pfb": "TIP4 TP4 T4P TIP4P",
}.items() for name in names.split()}
_REFUSED = {
    **dict.fromkeys(["TIP5", "TP5", "T5P", "T5PE", "TIP5P"], "five sites"),
    **dict.fromkeys(["SWM", "SWM4", "SWM6", "SWM4P"], "Drude particles"),
    "TIP2": "two sites",
}
#: Names of sites without mass.
MASSLESS = frozenset(
    ["MW4", "EPW", "OM", "LP1W", "LP2W", *(stem + n for stem in ("M", "MW", "EP", "LP", "L") for n in ("", "1", "2"))]
)


class Water(NamedTuple):
    """The model of a kind of water: its name, its charges (e) in the order of the sites, and how it was found."""

    model: str
    charges: tuple[float, ...]
    told_by: str


def roles(atom_names: Sequence[str]) -> list[str]:
    """Return what each site of a water is: O, H or M (a massless site); else its name's first letter."""
    return ["M" if name in MASSLESS else name.lstrip("0123456789")[:1] for name in atom_names]


def site_distance(structure: Structure, starts: Integers, atom_names: Sequence[str]) -> float | None:
    """Return the mean distance, A, of the massless site from the oxygen; None where they are no 4-site waters.

    Parameters
    ----------
    structure : Structure
    starts : (W,) int64
        First atoms of waters of one kind.
    atom_names : sequence of str
        Of one of them.
    """
    kinds = roles(atom_names)
    if sorted(kinds) != ["H", "H", "M", "O"]:
        return None
    apart = structure.positions[starts + kinds.index("M")] - structure.positions[starts + kinds.index("O")]
    if structure.cell is not None:
        apart = structure.cell.minimum_image(apart)
    return float(np.sqrt((apart**2).sum(1)).mean())


def find_water(
    residue_name: str, atom_names: Sequence[str], count: int = 1, distance: float | None = None, model: str = "auto"
) -> Water | Miss:
    """Return the model that a water's name, sites and geometry mean, or the one asked for.

    Parameters
    ----------
    residue_name : str
    atom_names : sequence of str
    count : int
        How many waters the distance is the mean of.
    distance : float, optional
        Of the massless site from the oxygen, A.
    model : str
        One of :data:`CHOICES`.
    """
    kinds, name = roles(atom_names), residue_name.upper()
    if name in _REFUSED or len(kinds) > 4:
        return Miss((), (), f"{residue_name} waters have {_REFUSED.get(name, 'more than four sites')}")
    extra = tuple(atom for atom, kind in zip(atom_names, kinds, strict=True) if kind not in ("O", "H", "M"))
    lacking = ("O",) * (1 - kinds.count("O")) + ("H",) * (2 - kinds.count("H"))
    if extra or lacking or kinds.count("O") > 1 or kinds.count("H") > 2:
        return Miss(extra or (() if lacking else tuple(atom_names)), lacking)
    if model != "auto":
        told_by = "as asked"
        if MODELS[model].sites != len(kinds):
            return Miss((), (), f"{residue_name} waters have {len(kinds)} sites, and {LABELS[model]} has "
                                f"{MODELS[model].sites}")
    else:
        candidates = _NAMED.get(name, [])
        if candidates and MODELS[candidates[0]].sites != len(kinds):
            massless = "lack their massless site" if len(kinds) == 3 else "have a massless site"
            return Miss((), (), f"{residue_name} waters {massless}, and {LABELS[candidates[0]]} has "
                                f"{MODELS[candidates[0]].sites} sites")
        model, told_by = _choose(candidates, len(kinds), count, distance)
        if not model:
            return Miss((), (), f"{residue_name} waters have their massless site {distance:.4f} A from the oxygen, "
                                f"and {LABELS[candidates[0]]} has it at {MODELS[candidates[0]].distance:g} A")
    chosen = MODELS[model]
    charge = {"O": chosen.oxygen, "H": chosen.hydrogen, "M": chosen.site}
    return Water(model, tuple(charge[kind] for kind in kinds), told_by)


def _choose(named: Sequence[str], sites: int, count: int, distance: float | None) -> tuple[str, str]:
    """Return the model, and how it was found; an empty name where name and geometry contradict each other."""
    possible = named or [name for name, model in MODELS.items() if model.sites == sites]
    if sites == 4 and distance is not None:
        # coordinates rounded to 0.01 A leave 0.003 A of scatter; a mean that fits no model is of flexible waters
        apart = {name: abs(model.distance - distance) for name, model in MODELS.items() if model.sites == 4}
        nearest = min(apart, key=lambda name: apart[name])
        if apart[nearest] < 0.0003 + 0.003 / math.sqrt(count):
            if nearest in possible:
                return nearest, "by its name" if len(named) == 1 else "by the place of its massless site"
            if min(apart[name] for name in possible) > 0.002 + 0.009 / math.sqrt(count):  # not by rounding alone
                return "", ""
    return possible[0], "by its name" if len(named) == 1 else "by default"
