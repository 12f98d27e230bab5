"""Radii of atoms for methods that need the space which a molecule takes: sets that a user names, never a guess.

``bondi``: van der Waals radii (A. Bondi, J. Phys. Chem. 68, 1964, 441). ``mbondi2``: these, and 1.3 A for hydrogens on
nitrogen (A. Onufriev, D. Bashford, D. A. Case, Proteins 55, 2004, 383), as Amber's ``set default PBradii mbondi2``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.elements import fill
from vmdpotential.molecule.names import unique_names
from vmdpotential.molecule.structure import Floats, Structure

#: Sets by their names.
SETS = ("bondi", "mbondi2")
_SETS = f"name a set, {' or '.join(f'{{radii {one}}}' for one in SETS)}"

#: A; elements that are not here have no radius in Bondi's table.
BONDI = {
    "H": 1.20, "He": 1.40, "Li": 1.82, "C": 1.70, "N": 1.55, "O": 1.52, "F": 1.47, "Ne": 1.54, "Na": 2.27, "Mg": 1.73,
    "Si": 2.10, "P": 1.80, "S": 1.80, "Cl": 1.75, "Ar": 1.88, "K": 2.75, "Ni": 1.63, "Cu": 1.40, "Zn": 1.39,
    "Ga": 1.87, "As": 1.85, "Se": 1.90, "Br": 1.85, "Kr": 2.02, "Pd": 1.63, "Ag": 1.72, "Cd": 1.58, "In": 1.93,
    "Sn": 2.17, "Te": 2.06, "I": 1.98, "Xe": 2.16, "Pt": 1.75, "Au": 1.66, "Hg": 1.55, "Tl": 1.96, "Pb": 2.02,
    "U": 1.86,
}

#: A, of hydrogens on nitrogen in mbondi2, and how far they are from it at most.
ON_NITROGEN, BOND = 1.30, 1.25


def atomic_radii(structure: Structure, chosen: NDArray[np.bool_], name: str = "auto") -> tuple[Floats, str]:
    """Return radii of some atoms, (n,) A, and where they are from.

    Parameters
    ----------
    structure : Structure
    chosen : (N,) bool
    name : str
        A set, or ``auto`` for the structure's own.

    Raises
    ------
    InputError
        When the structure has none, or the set has none for an element.
    UsageError
        For an unknown set.
    """
    where = structure.where
    if name == "auto":
        if structure.radii is None:
            raise InputError(f"{where}: has no radii of atoms",
                             f"{_SETS}, or give a PQR file")
        bad = np.flatnonzero(~((structure.radii >= 0) & (structure.radii < np.inf)) & chosen)
        if len(bad):
            atom = int(bad[0])
            raise InputError(f"{where}: atom {atom + 1} ({structure.label(atom)}) has no radius", _SETS)
        return structure.radii[chosen], "of the file"
    if name not in SETS:
        raise UsageError("radii", f"choose one of auto, {', '.join(SETS)}", value=name)
    elements = fill(structure).elements
    different, inverse = unique_names(elements)
    radii = np.array([BONDI.get(str(word), np.nan) for word in different], np.float64)[inverse]
    missing = np.flatnonzero(np.isnan(radii) & chosen)
    if len(missing):
        atom = int(missing[0])
        raise InputError(f"{where}: atom {atom + 1} ({structure.label(atom)}) is of {elements[atom] or 'no element'}, "
                         f"which {name} has no radius for", "give a PQR file that has one, or leave it out by {atoms}")
    if name == "mbondi2":
        _on_nitrogen(structure.positions, elements, radii)
    return radii[chosen], name


def prepared_radii(structure: Structure, name: str = "mbondi2") -> tuple[Floats, str]:
    """Return radii of all atoms, (N,) A, and where they are from.

    Of elements that the set does not have (iron, calcium ...), gemmi's van der Waals radii are taken, and named.

    Raises
    ------
    UsageError
        For an unknown set.
    """
    import gemmi

    elements = fill(structure).elements
    missing = sorted(set(np.unique(elements).tolist()) - BONDI.keys() - {""})
    radii, source = np.zeros(len(structure)), name
    known = ~np.isin(elements, [*missing, ""])
    radii[known] = atomic_radii(structure, known, name)[0]
    for element in missing:
        radii[elements == element] = gemmi.Element(element).vdw_r
    if missing:
        source += f", van der Waals radii of gemmi for {', '.join(missing)}"
    return radii, source


def _on_nitrogen(positions: Floats, elements: NDArray[np.str_], radii: Floats) -> None:
    from scipy.spatial import cKDTree

    nitrogen, hydrogen = np.flatnonzero(elements == "N"), np.flatnonzero(elements == "H")
    if len(nitrogen) and len(hydrogen):
        distance, _ = cKDTree(positions[nitrogen]).query(positions[hydrogen], distance_upper_bound=BOND)
        radii[hydrogen[np.isfinite(distance)]] = ON_NITROGEN
