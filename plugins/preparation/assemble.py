"""Assembly of the completed structure from heavy atoms, the hydrogens of the file, and added hydrogens."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    placed = hydrogens.places(draft, states)
    names: list[str] = []
    kinds: list[str] = []
    positions: list[list[float]] = []
    origin: list[int] = []
    sources: list[int] = []
    holder: list[int] = []
    kept: list[bool] = []
    place = np.zeros(len(draft), np.int64)
    lengths = []
    # lists, whose single elements are read ten times as fast as those of arrays
    starts, rows, drafted = draft.starts.tolist(), draft.origin.tolist(), draft.names.tolist()
    elements, heavy_positions, read = draft.elements.tolist(), draft.positions.tolist(), structure.atom_names.tolist()
    for n, residue in enumerate(draft.residues):
        part, before = range(starts[n], starts[n + 1]), len(names)
        for k in part:
            row = rows[k]
            place[k] = len(names)
            # the name of another atom of the residue, such as OXT of an amide's O, is replaced
            as_read = row >= 0 and not (residue.note == TWIN_NOTE and residue.component is not None
                                        and read[row] in residue.component.row)
            names.append(read[row] if as_read else drafted[k])
            kinds.append(elements[k])
            positions.append(heavy_positions[k])
            origin.append(row if row >= 0 else residue.source)
            sources.append(row if row >= 0 else residue.source)
        heavy = len(names) - before
        holder += [-1] * heavy
        kept += [False] * heavy
        taken: set[str] = set()
        for k in part:
            new, old = placed[k].tolist(), own.get(k, [])
            same = 0 < len(new) == len(old) or residue.whole
            found = [read[row] for row in old] if residue.whole else hydrogens.names(
                residue.component, drafted[k], len(new), taken)
            for j, name in enumerate(found):
                names.append(name)
                kinds.append("H")
                positions.append(structure.positions[old[j]].tolist() if same else new[j])
                origin.append(old[j] if same else origin[place[k]])
                sources.append(sources[place[k]])
                holder.append(int(place[k]))
                kept.append(same)
        lengths.append(len(names) - before)
    of = np.array(sources, np.int64)
    index = np.repeat(np.arange(len(draft.residues)), lengths)
    cap = np.array([r.name if r.cap else "" for r in draft.residues])[index]
    shift = np.where(cap == "ACE", -1, np.where(cap != "", 1, 0))
    added = np.ones(len(of), bool)
    added[place[draft.origin >= 0]] = False
    whole = Structure(
        positions=np.array(positions), atom_names=np.array(names), elements=np.array(kinds),
        residue_names=np.where(cap != "", cap, structure.residue_names[of]),
        residue_ids=structure.residue_ids[of] + shift, residue_index=index, chain_ids=structure.chain_ids[of],
        segment_ids=structure.segment_ids[of], insertion_codes=structure.insertion_codes[of],
        hetero=structure.hetero[of], occupancies=np.where(added, 1.0, structure.occupancies[of]),
        b_factors=structure.b_factors[of], cell=structure.cell, title=structure.title, sources=structure.sources,
        origins=np.array(origin, np.int64))
    groups = {name: np.flatnonzero(np.isin(np.array(origin), rows)) for name, rows in structure.groups.items()}
    whole = replace(whole, groups=groups)
    held = np.array(holder, np.int64)
    on = np.flatnonzero(held >= 0)
    bonds = np.concatenate([np.stack([*place[states.bonds[:, :2]].T, states.bonds[:, 2]], axis=1),
                            np.stack([held[on], on, np.full(len(on), SINGLE_BOND)], axis=1)])
    formal = np.zeros(len(names), np.int64)
    formal[place] = states.charges
    return Assembly(whole, place, held, np.array(kept, bool), index, bonds, formal)


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
