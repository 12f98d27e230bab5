"""Addition of hydrogens, with positions by hydride's fragments of known molecules, and names of the dictionary.

P. Kunzmann, J. M. Anter, K. Hamacher, J. Cheminform. 14, 2022, 7.
"""

from __future__ import annotations

import itertools
import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.extras import load_optional
from vmdpotential.molecule.names import WATER_RESIDUES
from vmdpotential.molecule.structure import Floats, Integers

from .components import Component
from .draft import Draft
from .rigid import place_rigid
from .states import ProtonationStates

#: Bond length, A, and angle, degrees, of TIP3P water (W. L. Jorgensen et al., J. Chem. Phys. 79, 1983, 926).
WATER_BOND, WATER_ANGLE = 0.9572, 104.52


def atom_array(names: Any, elements: Any, positions: Floats, charges: Any, residues: Any, bonds: Any) -> Any:
    """Return an AtomArray of biotite with formal charges and bonds."""
    structure = load_optional("biotite.structure", "hydrogens and bonds", "prepare")
    array = structure.AtomArray(len(names))
    array.coord = positions.astype(np.float32)
    array.atom_name, array.element = names, np.char.upper(elements)
    array.res_id = residues
    array.add_annotation("charge", int)
    array.charge = charges
    array.bonds = structure.BondList(len(names), bonds.astype(np.uint32))
    return array


def places(draft: Draft, states: ProtonationStates) -> list[Floats]:
    """Return the positions (k, 3), A, of the hydrogens of every heavy atom, including waters."""
    hydride = load_optional("hydride", "hydrogens", "prepare")
    array = atom_array(draft.names, draft.elements, draft.positions, states.charges, draft.residue, states.bonds)
    # hydride is called only for atoms with hydrogens in the dictionary or by their charge, if bonds alone do not
    # determine the positions of these
    names, starts = draft.names.tolist(), draft.starts.tolist()
    mask = states.charges > 0
    known = np.zeros(len(draft), np.int64)
    usual = np.full(len(draft), -1, np.int64)
    for residue, start, stop in zip(draft.residues, starts[:-1], starts[1:], strict=True):
        if residue.component is not None:
            key = residue.component, tuple(names[start:stop])
            holders, charges = _holders(*key)
            mask[start:stop] |= holders | (states.charges[start:stop] > charges)
            known[start:stop], usual[start:stop] = _counts(*key)
    number = np.bincount(states.bonds[:, :2].ravel(), minlength=len(draft))
    placed = place_rigid(draft, states.bonds, np.where((states.charges == 0) & (number == usual), known, 0))
    mask[list(placed)] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of atoms that match no fragment, which get no hydrogens
        positions = hydride.FragmentLibrary.standard_library().calculate_hydrogen_coord(array, mask)
    result = [np.asarray(place, np.float64) for place in positions]
    placed |= place_rigid(draft, states.bonds, np.array([len(place) for place in result], np.int64))
    for row, place in placed.items():
        result[row] = place
    half = np.radians(WATER_ANGLE) / 2
    water = WATER_BOND * np.array([[np.sin(half), np.cos(half), 0], [-np.sin(half), np.cos(half), 0]])
    for n, residue in enumerate(draft.residues):
        if residue.name.upper() in WATER_RESIDUES:
            oxygens = [k for k in range(starts[n], starts[n + 1]) if draft.elements[k] == "O"]
            if oxygens:
                result[oxygens[0]] = draft.positions[oxygens[0]] + water
    return result


@cache
def _holders(component: Component, present: tuple[str, ...]) -> tuple[NDArray[np.bool_], Integers]:
    """Return a mask (n,) of a residue's atoms that may have hydrogens, and their formal charges (n,) by the dictionary.

    These are atoms with hydrogens in the dictionary, and atoms except carbon with a neighbour that is missing.
    """
    ends = {name for name, near in zip(component.atoms, component.neighbours, strict=True)
            if any(component.atoms[k] not in present for k in near) and not name.startswith("C")}
    return (np.array([name in component.hydrogens or name in ends for name in present], bool),
            component.charges[[component.row[name] for name in present]])


@cache
def _counts(component: Component, present: tuple[str, ...]) -> tuple[Integers, Integers]:
    """Return numbers of hydrogens (n,) on a residue's atoms, and the numbers of heavy neighbours (n,) they are for.

    They are those of carbons and of a peptide's nitrogen in their neutral forms, and 0 for other atoms, whose hydrogens
    depend on the protonation state.
    """
    counts, near = np.zeros((2, len(present)), np.int64)
    for k, name in enumerate(present):
        row = component.row[name]
        neighbours = len(component.neighbours[row])
        if component.elements[row] == "C":
            counts[k], near[k] = len(component.hydrogens.get(name, ())), neighbours
        elif component.is_amino_acid and name == "N" and neighbours == 1 and name in component.hydrogens:
            counts[k], near[k] = 1, 2
    return counts, near


@cache
def names(component: Component | None, atoms: tuple[str, ...], counts: tuple[int, ...]) -> tuple[str, ...]:
    """Return names of the hydrogens of a residue's atoms, atom by atom, for their numbers.

    They are the dictionary's, then others that are unique in the residue.
    """
    result: list[str] = []
    for atom, count in zip(atoms, counts, strict=True):
        known = list(component.hydrogens.get(atom, ())) if component is not None else ["H1", "H2"]
        if component is not None and component.is_amino_acid and atom == "N" and count > 1:
            known = ["H1", "H2", "H3"] if count == 3 else ["H2", "H3"]
        if atom in ("O5'", "O3'"):
            known = [f"H{atom}"]
        if component is not None and component.name == "NME" and atom == "N":
            known = ["H"]
        others = (f"{f'H{atom[1:]}'[:3]}{number}" for number in itertools.count(1))
        free = (name for name in itertools.chain(known, others) if name not in result)
        for _ in range(count):
            result.append(next(free))
    return tuple(result)
