"""Ions for a solvated structure: their numbers (counts, salts), sites (sites, montecarlo), and the edit (edit)."""

from vmdpotential.ions.counts import COUNT_METHODS, IonCounts, parse_list
from vmdpotential.ions.edit import NAMING_CONVENTIONS
from vmdpotential.ions.montecarlo import DEFAULT_SWEEPS
from vmdpotential.ions.options import IonOptions
from vmdpotential.ions.place import place_ions, place_replicas
from vmdpotential.ions.placement import PlacedIon, Placement
from vmdpotential.ions.salts import parse_salt
from vmdpotential.ions.sites import SITE_METHODS, SITE_TOLERANCE

__all__ = [
    "COUNT_METHODS",
    "DEFAULT_SWEEPS",
    "NAMING_CONVENTIONS",
    "SITE_METHODS",
    "SITE_TOLERANCE",
    "IonCounts",
    "IonOptions",
    "PlacedIon",
    "Placement",
    "parse_list",
    "parse_salt",
    "place_ions",
    "place_replicas",
]
