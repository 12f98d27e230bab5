"""Quantities that a density counts (atoms, mass, charge, electrons, occupancy) and their units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.elements import atom_masses, fill_elements
from vmdpotential.molecule.radii import prepared_radii
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import AVOGADRO

Mask = NDArray[np.bool_]

#: Counted quantities and their units, of which the first is the default.
QUANTITY_UNITS = {
    "number": ("1/A^3", "mol/L", "relative"), "mass": ("g/cm^3", "relative"), "charge": ("e/A^3",),
    "electrons": ("e/A^3", "relative"), "occupancy": ("fraction",),
}

#: One atom, or one atomic mass unit, in 1 A^3.
_FACTORS = {"1/A^3": 1.0, "e/A^3": 1.0, "mol/L": 1e27 / AVOGADRO, "g/cm^3": 1e24 / AVOGADRO, "fraction": 1.0}


@dataclass(frozen=True, eq=False)
class CountedAtoms:
    """Atoms that a density counts, with their weights.

    Parameters
    ----------
    quantity : str
        A key of :data:`QUANTITY_UNITS`.
    unit : str
        Unit of the density.
    rows : (n,) int64
        Indices of the atoms, increasing.
    weights : (n,) float64
        Weight of each atom: 1, its mass in u, its charge in e, or its number of electrons.
    radii : (n,) float64 or None
        Radii of the atoms, A, for occupancies.
    source : str
        Origin of the weights or radii, for reports.
    """

    quantity: str
    unit: str
    rows: NDArray[np.int64]
    weights: Floats
    radii: Floats | None
    source: str

    @property
    def factor(self) -> float:
        """Factor that converts weights per A^3 to the unit; for ``relative``, to the quantity's first unit."""
        return _FACTORS[QUANTITY_UNITS[self.quantity][0] if self.unit == "relative" else self.unit]


def counted_atoms(structure: Structure, chosen: Mask, quantity: str, unit: str = "auto") -> CountedAtoms:
    """Return the weights with which a density counts the chosen atoms.

    Parameters
    ----------
    structure : Structure
    chosen : (N,) bool
        Mask of the atoms to count.
    quantity : str
        ``number`` of atoms, ``mass``, ``charge``, ``electrons`` (the atomic number minus the charge, if there are
        charges), or ``occupancy`` (1 within an atom's van der Waals radius).
    unit : str
        A unit from :data:`QUANTITY_UNITS`, or ``auto`` for the first one of the quantity.

    Raises
    ------
    UsageError
        For an unknown quantity, or a unit that the quantity does not have.
    InputError
        For atoms without the charge, mass or element that the quantity requires.
    """
    units = QUANTITY_UNITS[quantity]
    if unit not in ("auto", *units):
        raise UsageError("unit", f"the density of {quantity} has the units {', '.join(units)}", value=unit)
    rows = np.flatnonzero(chosen)
    weights, radii, source = np.ones(len(rows)), None, ""
    if quantity == "charge":
        weights = structure.known_charges[rows]
    elif quantity == "mass":
        weights, source = _nonzero(structure, atom_masses(structure), rows, "mass"), "masses"
    elif quantity == "electrons":
        weights, source = _electrons(structure, rows)
    elif quantity == "occupancy":
        all_radii, name = prepared_radii(structure, "bondi")
        radii, source = _nonzero(structure, all_radii, rows, "radius"), f"van der Waals radii: {name}"
    return CountedAtoms(quantity, units[0] if unit == "auto" else unit, rows, weights, radii, source)


def _electrons(structure: Structure, rows: NDArray[np.int64]) -> tuple[Floats, str]:
    import gemmi

    elements = fill_elements(structure).elements
    different, inverse = np.unique(elements, return_inverse=True)
    table = np.array([gemmi.Element(str(word)).atomic_number if word else 0 for word in different], float)
    numbers = _nonzero(structure, table[inverse], rows, "element")
    if structure.charges is None:
        return numbers, "atomic numbers"
    return numbers - structure.known_charges[rows], "atomic numbers less charges"


def _nonzero(structure: Structure, values: Floats, rows: NDArray[np.int64], what: str) -> Floats:
    """Return the values of the atoms `rows`, all above 0 except at sites that are no atoms (virtual sites of water).
    """
    from vmdpotential.molecule.elements import is_massless_site

    missing = rows[values[rows] <= 0]
    if len(missing):
        missing = missing[~is_massless_site(structure.atom_names[missing], structure.residue_names[missing])]
    if len(missing):
        atom = int(missing[0])
        raise InputError(f"{structure.where}: atom {atom + 1} ({structure.label(atom)}) has no {what}",
                         "use a structure that states elements, or choose other {atoms}")
    return values[rows]
