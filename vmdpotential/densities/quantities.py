"""What a density counts: atoms, mass, charge, electrons, or whether a place is occupied; and its units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.elements import fill, masses
from vmdpotential.molecule.radii import prepared_radii
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import AVOGADRO

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: What is counted, and the units of it; the first is that which is used unless another is given.
UNITS = {
    "number": ("1/A^3", "mol/L", "relative"), "mass": ("g/cm^3", "relative"), "charge": ("e/A^3",),
    "electrons": ("e/A^3", "relative"), "occupancy": ("fraction",),
}

#: One atom, or one atomic mass unit, in 1 A^3.
_FACTORS = {"1/A^3": 1.0, "e/A^3": 1.0, "mol/L": 1e27 / AVOGADRO, "g/cm^3": 1e24 / AVOGADRO, "fraction": 1.0}


@dataclass(frozen=True, eq=False)
class Counted:
    """What is counted of some atoms.

    Parameters
    ----------
    quantity : str
        Of :data:`UNITS`.
    unit : str
    rows : (n,) int64
        The atoms, increasing.
    weights : (n,) float64
        What each one counts: 1, its mass in u, its charge in e, or its electrons.
    radii : (n,) float64 or None
        A, of occupancies.
    source : str
        Where the weights are from, for reports.
    """

    quantity: str
    unit: str
    rows: NDArray[np.int64]
    weights: Floats
    radii: Floats | None
    source: str

    @property
    def factor(self) -> float:
        """What a sum of weights over a volume in A^3 is multiplied by; before relative densities are divided."""
        return _FACTORS[UNITS[self.quantity][0] if self.unit == "relative" else self.unit]


def count(structure: Structure, chosen: Mask, quantity: str, unit: str = "auto") -> Counted:
    """Return what is counted of the chosen atoms.

    Parameters
    ----------
    structure : Structure
    chosen : (N,) bool
    quantity : str
        ``number`` of atoms, ``mass``, ``charge``, ``electrons`` (the atomic number less the charge, where there are
        charges), or ``occupancy`` (1 within an atom's van der Waals radius).
    unit : str
        Of :data:`UNITS`, or ``auto``.

    Raises
    ------
    UsageError
        For a quantity or unit that does not exist, or a unit of another quantity.
    InputError
        For atoms without a charge, a mass or an element where those are counted.
    """
    if quantity not in UNITS:
        raise UsageError("of", f"choose one of {', '.join(UNITS)}", value=quantity)
    units = UNITS[quantity]
    if unit not in ("auto", *units):
        raise UsageError("unit", f"the density of {quantity} has the units {', '.join(units)}", value=unit)
    rows = np.flatnonzero(chosen)
    weights, radii, source = np.ones(len(rows)), None, ""
    if quantity == "charge":
        weights = structure.known_charges[rows]
    elif quantity == "mass":
        weights, source = _nonzero(structure, masses(structure), rows, "mass"), "masses"
    elif quantity == "electrons":
        weights, source = _electrons(structure, rows)
    elif quantity == "occupancy":
        result, name = prepared_radii(structure, "bondi")
        radii, source = _nonzero(structure, result, rows, "radius"), f"van der Waals radii: {name}"
    return Counted(quantity, units[0] if unit == "auto" else unit, rows, weights, radii, source)


def _electrons(structure: Structure, rows: NDArray[np.int64]) -> tuple[Floats, str]:
    import gemmi

    elements = fill(structure).elements
    different, inverse = np.unique(elements, return_inverse=True)
    table = np.array([gemmi.Element(str(word)).atomic_number if word else 0 for word in different], float)
    numbers = _nonzero(structure, table[inverse], rows, "element")
    if structure.charges is None:
        return numbers, "atomic numbers"
    return numbers - structure.known_charges[rows], "atomic numbers less charges"


def _nonzero(structure: Structure, values: Floats, rows: NDArray[np.int64], what: str) -> Floats:
    """Return the values of some atoms; sites that are no atoms (virtual sites of water) may have none."""
    from vmdpotential.molecule.elements import sites

    missing = rows[values[rows] <= 0]
    if len(missing):
        missing = missing[~sites(structure.atom_names[missing], structure.residue_names[missing])]
    if len(missing):
        atom = int(missing[0])
        raise InputError(f"{structure.where}: atom {atom + 1} ({structure.label(atom)}) has no {what}",
                         "give a structure that states elements, or choose other {atoms}")
    result: Floats = values[rows]
    return result
