"""Assembly of the completed structure from heavy atoms, the hydrogens of the file, and added hydrogens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from vmdpotential.molecule.gasteiger import SINGLE_BOND
from vmdpotential.molecule.names import WATER_RESIDUES
from vmdpotential.molecule.structure import Integers, Structure

from . import hydrogens
from .components import PLANAR_BONDS
from .draft import TWIN_NOTE, Draft
from .states import ProtonationStates

#: Longest bond of a hydrogen in a file, A.
_BOND = 1.4


@dataclass
class Assembly:
    """A completed structure without charges.

    Parameters
    ----------
    structure : Structure
        The completed structure.
    place : (D,) int64
        Index in the structure of each heavy atom of the draft.
    holder : (N,) int64
        Index of the heavy atom that each hydrogen is bonded to; -1 for heavy atoms.
    kept : (N,) bool
        Mask of the hydrogens with positions of the file.
    residue : (N,) int64
        Index of each atom's residue in the draft.
    bonds : (B, 3) int64
        Two atoms and the order of their bond.
    formal : (N,) int64
        Formal charges, e.
    """

    structure: Structure
    place: Integers
    holder: Integers
    kept: NDArray[np.bool_]
    residue: Integers
    bonds: Integers
    formal: Integers


def on_atoms(structure: Structure, draft: Draft, hydrogen: NDArray[np.bool_]) -> dict[int, list[int]]:
    """Return the indices of a structure's hydrogens, by the index of the draft's atom that they are bonded to."""
    rows = np.flatnonzero(hydrogen)
    result: dict[int, list[int]] = {}
    if len(rows):
        distance, nearest = cKDTree(draft.positions).query(structure.positions[rows], distance_upper_bound=_BOND)
        on = np.isfinite(distance)
        for row, atom in zip(rows[on].tolist(), nearest[on].tolist(), strict=True):
            result.setdefault(atom, []).append(row)
    return result


def hydrogen_counts(draft: Draft, own: dict[int, list[int]]) -> dict[int, dict[str, int]]:
    """Return the numbers of hydrogens that the file has on heavy atoms, by residue and atom name."""
    result: dict[int, dict[str, int]] = {}
    for atom, rows in own.items():
        result.setdefault(int(draft.residue[atom]), {})[str(draft.names[atom])] = len(rows)
    return result


def assemble_structure(structure: Structure, draft: Draft, states: ProtonationStates,
                       own: dict[int, list[int]]) -> Assembly:
    """Return the completed structure, with the hydrogens of each residue after its heavy atoms.

    Hydrogens of the file (`own`, see :func:`on_atoms`) keep their positions if an atom has as many as its state needs.
    """
    placed, starts = hydrogens.places(draft, states), draft.starts
    source = np.array([residue.source for residue in draft.residues])[draft.residue]
    # the name of another atom of the residue, such as OXT of an amide's O, is replaced
    heavy_names = np.where(draft.origin >= 0, structure.atom_names[draft.origin], draft.names)
    same = np.zeros(len(draft), np.bool_)
    for k, rows in own.items():
        same[k] = len(rows) == len(placed[k])
    for residue, a, b in zip(draft.residues, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if residue.note == TWIN_NOTE and residue.component is not None:
            other = np.isin(heavy_names[a:b], residue.component.atoms)
            heavy_names[a:b] = np.where(other, draft.names[a:b], heavy_names[a:b])
        elif residue.whole:
            same[a:b] = True
            placed[a:b] = [structure.positions[own.get(k, [])] for k in range(a, b)]
    counts = np.array([len(each) for each in placed])
    names: list[str] = []
    for residue, a, b in zip(draft.residues, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if residue.whole:
            names += structure.atom_names[[row for k in range(a, b) for row in own.get(k, [])]].tolist()
        else:
            names += hydrogens.names(residue.component, tuple(draft.names[a:b].tolist()), tuple(counts[a:b].tolist()))
    # the hydrogens of a residue follow its heavy atoms
    before = np.concatenate([[0], np.cumsum(counts)])
    place = np.arange(len(draft)) + before[starts[draft.residue]]
    on = np.repeat(np.arange(len(draft)), counts)
    hydrogen = starts[draft.residue[on] + 1] + np.arange(len(on))
    total = len(place) + len(on)
    of_file = np.array([row for k in np.flatnonzero(same).tolist() for row in own.get(k, [])], np.int64)

    def joined(heavy: NDArray[Any], of_hydrogens: Any) -> NDArray[Any]:
        """Return what the atoms have, of heavy atoms (D, ...) and of hydrogens (H, ...)."""
        hydrogens_ = np.broadcast_to(of_hydrogens, (len(on), *heavy.shape[1:]))
        result = np.empty((total, *heavy.shape[1:]), np.result_type(heavy, hydrogens_))
        result[place], result[hydrogen] = heavy, hydrogens_
        return result

    of = joined(np.where(draft.origin >= 0, draft.origin, source), 0)
    of[hydrogen] = of[place[on]]
    origin, kept = of.copy(), joined(np.zeros(len(draft), np.bool_), same[on])
    positions = joined(draft.positions, np.concatenate([*placed, np.zeros((0, 3))]))
    origin[kept], positions[kept] = of_file, structure.positions[of_file]
    held = joined(np.full(len(draft), -1), place[on])
    lengths = np.diff(starts) + np.diff(before[starts])
    index = np.repeat(np.arange(len(draft.residues)), lengths)
    cap = np.array([r.name if r.cap else "" for r in draft.residues])[index]
    shift = np.where(cap == "ACE", -1, np.where(cap != "", 1, 0))
    added = np.ones(len(of), bool)
    added[place[draft.origin >= 0]] = False
    whole = Structure(
        positions=positions, atom_names=joined(heavy_names, np.array(names, np.str_)),
        elements=joined(draft.elements, "H"),
        residue_names=np.where(cap != "", cap, structure.residue_names[of]),
        residue_ids=structure.residue_ids[of] + shift, residue_index=index, chain_ids=structure.chain_ids[of],
        segment_ids=structure.segment_ids[of], insertion_codes=structure.insertion_codes[of],
        hetero=structure.hetero[of], occupancies=np.where(added, 1.0, structure.occupancies[of]),
        b_factors=structure.b_factors[of], cell=structure.cell, title=structure.title, sources=structure.sources,
        origins=origin)
    groups = {name: np.flatnonzero(np.isin(origin, rows)) for name, rows in structure.groups.items()}
    whole = replace(whole, groups=groups)
    bonds = np.concatenate([np.stack([*place[states.bonds[:, :2]].T, states.bonds[:, 2]], axis=1),
                            np.stack([place[on], hydrogen, np.full(len(on), SINGLE_BOND)], axis=1)])
    return Assembly(whole, place, held, kept, index, bonds, joined(states.charges, 0))


def free_rotors(assembly: Assembly) -> tuple[Integers, Integers]:
    """Return the added hydrogens that rotate freely: hydrogen, its atom and the next one (R, 3), and waters (W, 3)."""
    structure = assembly.structure
    on = np.flatnonzero((assembly.holder >= 0) & ~assembly.kept)
    number = np.bincount(assembly.holder[assembly.holder >= 0], minlength=len(structure))
    heavy = assembly.bonds[assembly.holder[assembly.bonds[:, 1]] < 0]
    chalcogen = np.isin(structure.elements, ["O", "S"])
    partners: dict[int, list[int]] = {}
    for a, b, _ in heavy[chalcogen[heavy[:, 0]] | chalcogen[heavy[:, 1]]].tolist():
        partners.setdefault(a, []).append(b)
        partners.setdefault(b, []).append(a)
    flat = np.zeros(len(structure), bool)
    flat[heavy[np.isin(heavy[:, 2], PLANAR_BONDS), :2]] = True
    rotors: list[tuple[int, int, int]] = []
    waters: list[tuple[int, int, int]] = []
    for row in on[chalcogen[assembly.holder[on]]].tolist():
        atom = int(assembly.holder[row])
        near = partners.get(atom, [])
        if len(near) == 1 and number[atom] == 1 and structure.elements[near[0]] != "P":
            if flat[near[0]]:  # hydroxyl groups on rings and in acids stay in the plane, where they were placed
                continue
            rotors.append((row, atom, near[0]))
        elif not near and number[atom] == 2 and (not waters or waters[-1][0] != atom):
            waters.append((atom, row, row + 1))
    water = [w for w in waters if str(structure.residue_names[w[0]]).upper() in WATER_RESIDUES]
    return np.array(rotors, np.int64).reshape(-1, 3), np.array(water, np.int64).reshape(-1, 3)
