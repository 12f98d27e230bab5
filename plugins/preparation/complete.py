"""Addition of missing heavy atoms, with ideal coordinates of the dictionary, and of caps at chain breaks.

For each missing fragment, the ideal coordinates are superposed on the atom that it is bonded to and the known atoms
near that (W. Kabsch, Acta Cryst. A32, 1976, 922). A fragment that can rotate about its bond gets the torsion at which
it is farthest from other atoms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vmdpotential.molecule.gasteiger import AROMATIC_DOUBLE, AROMATIC_TRIPLE, DOUBLE_BOND, SINGLE_BOND, TRIPLE_BOND
from vmdpotential.molecule.structure import Floats

from .bridges import C_N_CA, CA_C, N_CA, N_CA_C, consecutive_residues, find_bridges, place_atom, place_between
from .chain_breaks import cap_breaks, cap_links
from .components import AMINO_ACIDS, Component, find_component
from .draft import Draft, Residue
from .orient import random_rotations
from .room import ALIKE, Room

#: Trial rotations of a fragment about its bond, degrees.
_TURNS = np.arange(0.0, 360.0, 15.0)
#: Number of trial orientations of a polyatomic ion.
_ORIENTATIONS = 60
#: Numbers of bonds that atoms make, each order counted.
_VALENCES = {"C": 4, "P": 5, "S": 6}
#: Distance, A, from other atoms below which a side chain is turned twice.
_NEAR = 2.6


@dataclass
class Completion:
    """Numbers of missing atoms, by residue, that could not be added, and pairs of residues next to a chain break.

    Those of proteins (`gaps`) are capped, those of nucleic acids (`breaks`) are not.
    """

    failed: dict[int, int] = field(default_factory=dict)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    breaks: list[tuple[int, int]] = field(default_factory=list)


def complete_draft(draft: Draft, chains: list[str], numbers: list[int]) -> tuple[Draft, Completion]:
    """Return the draft with missing atoms and caps added, and a report on what is still missing.

    Parameters
    ----------
    draft : Draft
        Heavy atoms of the structure.
    chains : list of str
        Chain of each residue.
    numbers : list of int
        Number of each residue.
    """
    done = Completion()
    bridges = find_bridges(draft, chains, numbers)
    if bridges.new or bridges.links:
        draft = _merged(draft, bridges.new, {})
        at = {(residue, name): n for n, (residue, name) in enumerate(
            zip(draft.residue.tolist(), draft.names.tolist(), strict=True))}
        draft.links = np.concatenate([draft.links, np.array(
            [(at[a], at[b]) for a, b in bridges.links], np.int64).reshape(-1, 2)])
    linked = draft.linked()
    starts = draft.starts
    room = Room(draft.positions)
    beyond = {(int(draft.residue[a]), str(draft.names[a])): draft.positions[b]
              for pair in draft.links.tolist() for a, b in (pair, pair[::-1])}
    new: dict[int, list[tuple[str, str, Floats]]] = {}
    kinds: dict[tuple[Component, tuple[str, ...], frozenset[str]], list[int]] = {}
    for n, residue in enumerate(draft.residues):
        result = residue.component
        if result is None:
            continue
        names = tuple(draft.names[starts[n] : starts[n + 1]].tolist())
        key = result, names, frozenset(linked[n])
        if key not in kinds:
            kinds[key] = _missing(result, names, linked[n])
        if not kinds[key]:
            continue
        positions = {name: draft.positions[starts[n] + k] for k, name in enumerate(names)}
        for name in linked[n]:  # a neighbour is where the atom would be that its bond replaces
            row = result.row.get(name, -1)
            ends = [result.atoms[k] for k in result.neighbours[row] if result.leaving[k]] if row >= 0 else []
            # which oxygen of a phosphate is the one that O3' replaces is arbitrary in the dictionary
            if len(ends) == 1 and (name not in result.phosphate or set(result.phosphate) <= {*names, *ends}):
                positions.setdefault(ends[0], beyond[n, name])
        backbone = {}
        if result.is_amino_acid and "N" in linked[n] and "N" in positions and n and "C" not in positions:
            backbone = _backbone(dict(zip(draft.names[starts[n - 1] : starts[n]].tolist(),
                                          draft.positions[starts[n - 1] : starts[n]], strict=True)), positions, room)
        placed = _place(result, positions | backbone, [k for k in kinds[key] if result.atoms[k] not in backbone], room)
        if placed is None:
            done.failed[n] = len(kinds[key])
            continue
        new[n] = [(name, "C", place) for name, place in backbone.items()]
        new[n] += [(result.atoms[k], result.elements[k], place) for k, place in placed.items()]
        room.add([place for _, _, place in new[n]])
    done.gaps, caps = cap_breaks(draft, chains, linked, new, room)
    for n, m in consecutive_residues(draft, chains, linked, "O3'", "P"):
        there = set(draft.names[starts[m] : starts[m + 1]].tolist())
        # a strand begins without a phosphate, or with OP3
        if numbers[m] - numbers[n] > 1 or ("P" in there and "OP3" not in there):
            done.breaks.append((n, m))
            draft.residues[m].after_gap = True
    return _merged(draft, new, caps), done


def _backbone(before: dict[str, Floats], here: dict[str, Floats], room: Room) -> dict[str, Floats]:
    """Return C, and CA if missing, of a residue without C, at the torsion where C is farthest from other atoms."""
    if not {"CA", "C"} <= before.keys():
        return {}
    nitrogen = here["N"]
    alpha = here.get("CA", place_atom(before["CA"], before["C"], nitrogen, N_CA, C_N_CA, 180.0))
    trials = place_atom(before["C"], nitrogen, alpha, CA_C, N_CA_C, _TURNS)
    distances = room.nearest(trials, but=(nitrogen, alpha))  # which are as far at every torsion
    carbon = trials[int(np.argmax(distances > distances.max() - ALIKE))]
    return {"C": carbon} if "CA" in here else {"CA": alpha, "C": carbon}


def _missing(component: Component, names: tuple[str, ...], linked: set[str]) -> list[int]:
    """Return the indices of a component's atoms that a residue lacks, except those that bonds to others replace."""
    present = set(names)
    result = []
    for row, name in enumerate(component.atoms):
        if name in present or not np.isfinite(component.positions[row]).all():
            continue
        holders = {component.atoms[k] for k in component.neighbours[row]}
        if component.leaving[row] and holders & linked:
            continue
        # a nucleotide at the end of a chain has a phosphate only if the file has a part of it
        if name in component.phosphate and not present.intersection(component.phosphate) and (
                "O3'" in linked or component.leaving[[component.row[end] for end in component.phosphate]].any()):
            continue
        result.append(row)
    return [row for row in result if not _replaced(component, row, present, result, linked)]


def _replaced(component: Component, row: int, present: set[str], missing: list[int], linked: set[str]) -> bool:
    """Return whether a bond to another residue replaces a missing atom, as its neighbour has no valence left for it.

    It is at the end of a single bond: a hydroxyl group of an acid that is bonded as an amide by its side chain.
    """
    bonds = component.bonds[(component.bonds[:, :2] == row).any(1)]
    if len(bonds) != 1 or bonds[0, 2] != SINGLE_BOND or component.elements[row] == "C":
        return False
    holder = int(bonds[0, :2].sum()) - row
    name = component.atoms[holder]
    if name not in linked:
        return False
    count = 1 + len(component.hydrogens.get(name, ()))
    for a, b, order in component.bonds.tolist():
        other = {a: b, b: a}[holder] if holder in (a, b) else -1
        if other >= 0 and (component.atoms[other] in present or other in missing):
            count += 2 if order in (DOUBLE_BOND, AROMATIC_DOUBLE) else 3 if order in (TRIPLE_BOND,
                                                                                      AROMATIC_TRIPLE) else 1
    return count > _VALENCES.get(component.elements[holder], count)


def _place(component: Component, positions: dict[str, Floats], missing: list[int],
           room: Room) -> dict[int, Floats] | None:
    """Return positions of missing atoms by their indices in the component, None if too few atoms are known."""
    known = {component.row[name]: place for name, place in positions.items()}
    placed: dict[int, Floats] = {}
    remaining = set(missing)
    while remaining:
        row = next((k for k in sorted(remaining) if len(set(component.neighbours[k]) & known.keys()) > 1), None)
        if row is not None:  # between atoms that are known
            known[row] = placed[row] = _inside(component, row, known)
            remaining.discard(row)
            continue
        anchors = [k for k in sorted(known) if any(j in remaining for j in component.neighbours[k])]
        if not anchors:
            return None
        anchor = next((k for k in anchors if len(_frame(component, k, known)) > 2), anchors[0])
        # the fragment consists of all missing atoms that are connected to the anchor
        fragment: list[int] = []
        queue = [j for j in component.neighbours[anchor] if j in remaining]
        while queue:
            row = queue.pop(0)
            if row not in fragment:
                fragment.append(row)
                queue += [j for j in component.neighbours[row] if j in remaining]
        holders = [k for k in component.neighbours[anchor] if k in known]
        if len(holders) > 1 and not any(k in known and k != anchor for row in fragment for k in
                                        component.neighbours[row]):
            fragment = [row for row in fragment if row in component.neighbours[anchor]]  # the rest can rotate about it
        frame = _frame(component, anchor, known)
        if len(frame) < 3:
            if len(known) > 1 or len(component.neighbours[anchor]) + 1 < len(component.atoms):
                return None
            # only the centre of a polyatomic ion, such as sulfate, is known: any orientation is possible
            places = _clear(component.positions[fragment] - component.positions[anchor], known[anchor], room)
            return dict(zip(fragment, places, strict=True))
        rotation, shift = _superposition(component.positions[frame], np.array([known[k] for k in frame]))
        places = component.positions[fragment] @ rotation.T + shift
        places += known[anchor] - (component.positions[anchor] @ rotation.T + shift)
        if (len(holders) == 1 and len(fragment) > 1) or (len(holders) == 1 and len(component.neighbours[anchor]) == 2):
            places = _turned(places, known[holders[0]], known[anchor], room)
            one = sum(row in component.neighbours[anchor] for row in fragment) == 1  # not the branches of ILE
            if component.name in AMINO_ACIDS and one and len(fragment) > 2 and room.nearest(places[1:]).min() < _NEAR:
                places = _twice_turned(places, known[holders[0]], known[anchor], room)
        for row, place in zip(fragment, places, strict=True):
            known[row] = placed[row] = place
            remaining.discard(row)
    return placed


def _inside(component: Component, row: int, known: dict[int, Floats]) -> Floats:
    """Return the position of an atom that is bonded to two or more known atoms, by ideal distances to those near."""
    apart = np.linalg.norm(component.positions - component.positions[row], axis=1)
    bonded = [k for k in component.neighbours[row] if k in known]
    near = {j: float(apart[j]) for k in component.neighbours[row] for j in (k, *component.neighbours[k]) if j != row}
    first, second = ((known[k], float(apart[k])) for k in bonded[:2])
    return place_between(known, near, first, second)


def _frame(component: Component, anchor: int, known: dict[int, Floats]) -> list[int]:
    """Return up to five known atoms for a superposition (it needs three): the anchor and the nearest by bonds."""
    frame: list[int] = []
    queue, seen = [anchor], {anchor}
    while queue and len(frame) < 5:
        row = queue.pop(0)
        if row in known:
            frame.append(row)
        for j in component.neighbours[row]:
            if j not in seen and j in known:
                seen.add(j)
                queue.append(j)
    if len(frame) <= 3:
        return frame
    near = [anchor, *(k for k in frame[1:] if k in component.neighbours[anchor])]
    return near if len(near) > 2 else frame[:3]  # beyond a rotatable bond, ideal coordinates do not apply


def _superposition(start: Floats, goal: Floats) -> tuple[Floats, Floats]:
    """Return the rotation (3, 3) and the shift (3,) of the best superposition of points `start` on `goal`."""
    a, b = start.mean(0), goal.mean(0)
    u, _, v = np.linalg.svd((start - a).T @ (goal - b))
    sign = np.diag([1.0, 1.0, np.sign(np.linalg.det(v.T @ u.T)) or 1.0])
    rotation = v.T @ sign @ u.T
    return np.asarray(rotation), np.asarray(b - rotation @ a)


def _turned(places: Floats, begin: Floats, end: Floats, room: Room) -> Floats:
    """Return positions rotated about a bond to where they are farthest from other atoms."""
    trials = _all_turns(places, begin, end)
    return np.asarray(trials[_first_best([_clearance(trial, room) for trial in trials])])


def _twice_turned(places: Floats, begin: Floats, end: Floats, room: Room) -> Floats:
    """Return positions of a side chain rotated about a bond, and those after its first atom about the next one, too."""
    trials = _all_turns(places, begin, end)
    rest = np.array([_all_turns(trial[1:], end, trial[0]) for trial in trials])
    distances = room.nearest(rest.reshape(-1, 3)).reshape(*rest.shape[:2], -1).min(2)
    first, second = divmod(_first_best(distances.ravel().tolist()), len(_TURNS))
    return np.concatenate([trials[first][:1], rest[first, second]])


def _first_best(scores: list[float]) -> int:
    """Return the index of the largest score, the first one of those that differ by rounding."""
    best = 0
    for n, score in enumerate(scores):
        if score > scores[best] + 1e-6:
            best = n
    return best


def _clear(arms: Floats, centre: Floats, room: Room) -> Floats:
    """Return positions around a centre in the orientation where they are farthest from other atoms."""
    trials = random_rotations(_ORIENTATIONS) @ arms.T
    return np.asarray(max((trial.T + centre for trial in trials), key=lambda trial: _clearance(trial, room)))


def _clearance(trial: Floats, room: Room) -> float:
    """Return a score of the distances to other atoms; the nearest ones include those that a fragment is bonded to."""
    distances = room.nearest(trial, 4)
    return float(np.minimum(distances[:, -1], 4.0).sum() + 4 * distances[:, 0].min())


def _all_turns(places: Floats, begin: Floats, end: Floats) -> Floats:
    """Return positions (M, 3) turned about the bond from `begin` to `end` by all turns, by Rodrigues' formula."""
    axis = (end - begin) / np.linalg.norm(end - begin)
    cos, sin = (part[:, None, None] for part in (np.cos(np.radians(_TURNS)), np.sin(np.radians(_TURNS))))
    arms = places - end
    return np.asarray(arms * cos + np.cross(axis, arms) * sin + np.outer(arms @ axis, axis) * (1 - cos) + end)


def _merged(draft: Draft, new: dict[int, list[tuple[str, str, Floats]]],
            caps: dict[int, tuple[str, dict[str, Floats]]]) -> Draft:
    """Return the draft with new atoms at the end of their residues, and with caps between residues."""
    count, starts = len(draft.residues), draft.starts
    blocks = sorted([*((4 * n, n) for n in range(count)), *((key, -1) for key in caps)], key=lambda item: item[0])
    names: list[str] = []
    elements: list[str] = []
    positions: list[Floats] = []
    lengths: list[int] = []
    origin: list[int] = []
    residues: list[Residue] = []
    place = np.zeros(len(draft), np.int64)
    for key, n in blocks:
        before = len(names)
        if n >= 0:
            place[starts[n] : starts[n + 1]] = np.arange(before, before + starts[n + 1] - starts[n])
            part = slice(starts[n], starts[n + 1])
            names += draft.names[part].tolist()
            elements += draft.elements[part].tolist()
            positions += list(draft.positions[part])
            origin += draft.origin[part].tolist()
            added = new.get(n, [])
            residue = draft.residues[n]
            residue.added += [name for name, _, _ in added]
        else:
            name, atoms = caps[key]
            added = [(atom, atom[0], place) for atom, place in atoms.items()]
            next_to = draft.residues[(key + 1) // 4 if name == "ACE" else key // 4]
            residue = Residue(name, find_component(name), next_to.source, list(atoms), cap=True)
        names += [name for name, _, _ in added]
        elements += [element for _, element, _ in added]
        positions += [place for _, _, place in added]
        origin += [-1] * len(added)
        residues.append(residue)
        lengths.append(len(names) - before)
    result = Draft(np.array(names, "<U8"), np.array(elements, "<U2"), np.array(positions).reshape(-1, 3),
                   np.repeat(np.arange(len(residues)), lengths), np.array(origin, np.int64), residues)
    result.links = np.concatenate([place[draft.links], cap_links(result)])
    return result
