"""Hydrogens: their places by hydride's fragments of known molecules, their names by the dictionary's.

P. Kunzmann, J. M. Anter, K. Hamacher, J. Cheminform. 14, 2022, 7.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

from vmdpotential.extras import load
from vmdpotential.molecule.names import WATERS
from vmdpotential.molecule.structure import Floats
from vmdpotential.prepare.components import Component
from vmdpotential.prepare.draft import Draft
from vmdpotential.prepare.rigid import place_rigid
from vmdpotential.prepare.states import States

#: Length of the bond of a water, A, and its angle, degrees, those of TIP3P (W. L. Jorgensen et al., 1983).
WATER_BOND, WATER_ANGLE = 0.9572, 104.52


def atom_array(names: Any, elements: Any, positions: Floats, charges: Any, residues: Any, bonds: Any) -> Any:
    """Return biotite's array of atoms with bonds."""
    structure = load("biotite.structure", "hydrogens and bonds", "prepare")
    array = structure.AtomArray(len(names))
    array.coord = positions.astype(np.float32)
    array.atom_name, array.element = names, np.char.upper(elements)
    array.res_id = residues
    array.add_annotation("charge", int)
    array.charge = charges
    array.bonds = structure.BondList(len(names), bonds.astype(np.uint32))
    return array


def places(draft: Draft, states: States) -> list[Floats]:
    """Return the places (k, 3) of the hydrogens of every heavy atom, A; of waters too."""
    hydride = load("hydride", "hydrogens", "prepare")
    array = atom_array(draft.names, draft.elements, draft.positions, states.charges, draft.residue, states.bonds)
    # those alone that have hydrogens in the dictionary, or would by their charge: it is slow
    names, starts = draft.names.tolist(), draft.starts.tolist()
    mask = states.charges > 0
    for residue, start, stop in zip(draft.residues, starts[:-1], starts[1:], strict=True):
        if residue.component is not None:
            held = _holders(residue.component, tuple(names[start:stop]))
            mask[start:stop] |= [name in held for name in names[start:stop]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an atom whose surroundings are in no fragment has none
        found = hydride.FragmentLibrary.standard_library().calculate_hydrogen_coord(array, mask)
    result = [np.asarray(place, np.float64) for place in found]
    place_rigid(draft, states.bonds, result)
    half = np.radians(WATER_ANGLE) / 2
    water = WATER_BOND * np.array([[np.sin(half), np.cos(half), 0], [-np.sin(half), np.cos(half), 0]])
    for n, residue in enumerate(draft.residues):
        if residue.name.upper() in WATERS:
            oxygens = [k for k in range(starts[n], starts[n + 1]) if draft.elements[k] == "O"]
            if oxygens:
                result[oxygens[0]] = draft.positions[oxygens[0]] + water
    return result


@cache
def _holders(component: Component, present: tuple[str, ...]) -> frozenset[str]:
    """Return the atoms of a residue that may have hydrogens: in the dictionary, or where a neighbour is not there."""
    ends = {name for name, near in zip(component.atoms, component.neighbours, strict=True)
            if any(component.atoms[k] not in present for k in near) and not name.startswith("C")}
    return frozenset(component.hydrogens) | ends


def names(component: Component | None, atom: str, count: int, taken: set[str]) -> list[str]:
    """Return names of the hydrogens on an atom: the dictionary's, then others that no atom of the residue has."""
    known = list(component.hydrogens.get(atom, ())) if component is not None else ["H1", "H2"]
    if component is not None and component.is_amino_acid and atom == "N" and count > 1:
        known = ["H1", "H2", "H3"] if count == 3 else ["H2", "H3"]
    if atom in ("O5'", "O3'"):
        known = [f"H{atom}"]
    if component is not None and component.name == "NME" and atom == "N":
        known = ["H"]
    result: list[str] = []
    stem, number = f"H{atom[1:]}"[:3], 1
    for name in known:
        if len(result) < count and name not in taken:
            result.append(name)
            taken.add(name)
    while len(result) < count:
        name = f"{stem}{number}"
        number += 1
        if name not in taken:
            result.append(name)
            taken.add(name)
    return result
