"""Water models: their charges, and their recognition by a residue's name, sites and geometry.

The name of a model implies its number of sites (OPC has four), and a water with another number is an error. Names for
waters of any model (HOH, SOL, WAT) imply nothing: with three sites they are taken for TIP3P, with four for the model
with the same distance of the massless site from the oxygen, or else for TIP4P. The report contains the model and the
evidence for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vmdpotential.molecule.structure import Integers, Structure
from vmdpotential.molecule.templates import TemplateMiss


class WaterModel(NamedTuple):
    """Charges (e) of oxygen, hydrogen and massless site; distance (A) of that site from the oxygen; 0 without one."""

    oxygen: float
    hydrogen: float
    site: float = 0.0
    distance: float = 0.0

    @property
    def sites(self) -> int:
        """Number of sites."""
        return 4 if self.distance else 3


#: Models by the values of the option `water`.
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
#: Names of the models as in the literature.
WATER_LABELS = {
    "tip3p": "TIP3P", "spc": "SPC", "spce": "SPC/E", "opc3": "OPC3", "tip4p": "TIP4P", "tip4pew": "TIP4P-Ew",
    "tip4p2005": "TIP4P/2005", "tip4pfb": "TIP4P-FB", "opc": "OPC",
}
#: Values of the option `water`.
WATER_CHOICES = ("auto", *MODELS)

#: Possible models by residue name; other names of waters may be of any model.
_NAMED = {name: models.split() for models, names in {
    "tip3p": "TIP3 TP3 T3P TP3M TIP3P TIPS TIPS3P", "spc": "SPC", "spce": "SPCE SPC/E SPE", "opc3": "OPC3 OP3",
    "opc": "OPC", "tip4pew": "T4E TIP4EW TP4E T4EW", "tip4p tip4pew tip4p2005 tip4pfb": "TIP4 TP4 T4P TIP4P",
}.items() for name in names.split()}
_REFUSED = {
    **dict.fromkeys(["TIP5", "TP5", "T5P", "T5PE", "TIP5P"], "five sites"),
    **dict.fromkeys(["SWM", "SWM4", "SWM6", "SWM4P"], "Drude particles"),
    "TIP2": "two sites",
}
#: Names of massless sites.
MASSLESS_SITES = frozenset(
    ["MW4", "EPW", "OM", "LP1W", "LP2W", *(stem + n for stem in ("M", "MW", "EP", "LP", "L") for n in ("", "1", "2"))]
)


class IdentifiedWater(NamedTuple):
    """The model of a kind of water: its name, its charges (e) in the order of the sites, and the evidence for it."""

    model: str
    charges: tuple[float, ...]
    evidence: str


def roles(atom_names: Sequence[str]) -> list[str]:
    """Return the role of each site of a water: O, H or M (a massless site), or another first letter of its name."""
    return ["M" if name in MASSLESS_SITES else name.lstrip("0123456789")[:1] for name in atom_names]


def site_distance(structure: Structure, starts: Integers, atom_names: Sequence[str]) -> float | None:
    """Return the mean distance, A, of massless sites from oxygens; None unless the waters have four sites.

    Parameters
    ----------
    structure : Structure
    starts : (W,) int64
        First atoms of waters of one kind.
    atom_names : sequence of str
        Atom names of one of them.
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
) -> IdentifiedWater | TemplateMiss:
    """Return the model that a water's name, sites and geometry indicate, or the requested one.

    Parameters
    ----------
    residue_name : str
    atom_names : sequence of str
    count : int
        Number of waters over which the distance is averaged.
    distance : float, optional
        Distance of the massless site from the oxygen, A.
    model : str
        One of :data:`WATER_CHOICES`.

    Returns
    -------
    IdentifiedWater or Miss
        The model, or the differences in sites or a reason if none fits.
    """
    kinds, name = roles(atom_names), residue_name.upper()
    if name in _REFUSED or len(kinds) > 4:
        return TemplateMiss((), (), f"{residue_name} waters have {_REFUSED.get(name, 'more than four sites')}")
    extra = tuple(atom for atom, kind in zip(atom_names, kinds, strict=True) if kind not in ("O", "H", "M"))
    lacking = ("O",) * (1 - kinds.count("O")) + ("H",) * (2 - kinds.count("H"))
    if extra or lacking or kinds.count("O") > 1 or kinds.count("H") > 2:
        return TemplateMiss(extra or (() if lacking else tuple(atom_names)), lacking)
    if model != "auto":
        evidence = "as asked"
        if MODELS[model].sites != len(kinds):
            return TemplateMiss((), (), f"{residue_name} waters have {len(kinds)} sites, and {WATER_LABELS[model]} has "
                                f"{MODELS[model].sites}")
    else:
        candidates = _NAMED.get(name, [])
        if candidates and MODELS[candidates[0]].sites != len(kinds):
            massless = "lack their massless site" if len(kinds) == 3 else "have a massless site"
            return TemplateMiss((), (), f"{residue_name} waters {massless}, and {WATER_LABELS[candidates[0]]} has "
                                f"{MODELS[candidates[0]].sites} sites")
        model, evidence = _choose(candidates, len(kinds), count, distance)
        if not model:
            return TemplateMiss((), (),
                                f"{residue_name} waters have their massless site {distance:.4f} A from the oxygen, "
                                f"and {WATER_LABELS[candidates[0]]} has it at {MODELS[candidates[0]].distance:g} A")
    chosen = MODELS[model]
    charge = {"O": chosen.oxygen, "H": chosen.hydrogen, "M": chosen.site}
    return IdentifiedWater(model, tuple(charge[kind] for kind in kinds), evidence)


def _choose(named: Sequence[str], sites: int, count: int, distance: float | None) -> tuple[str, str]:
    """Return the model and the evidence for it; empty strings if name and geometry contradict each other."""
    possible = named or [name for name, model in MODELS.items() if model.sites == sites]
    if sites == 4 and distance is not None:
        # rounding of coordinates to 0.01 A scatters distances by 0.003 A; flexible waters may fit no model
        apart = {name: abs(model.distance - distance) for name, model in MODELS.items() if model.sites == 4}
        nearest = min(apart, key=lambda name: apart[name])
        if apart[nearest] < 0.0003 + 0.003 / math.sqrt(count):
            if nearest in possible:
                return nearest, "by its name" if len(named) == 1 else "by the place of its massless site"
            if min(apart[name] for name in possible) > 0.002 + 0.009 / math.sqrt(count):  # not by rounding alone
                return "", ""
    return possible[0], "by its name" if len(named) == 1 else "by default"
