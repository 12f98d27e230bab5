"""Caps at chain breaks: acetyl before a residue, and methylamide or amide after one."""

from __future__ import annotations

import numpy as np

from vmdpotential.molecule.structure import Floats, Integers

from .bridges import C_N, C_N_CA, C_O, CA_C, CA_C_N, N_CA, O_C_N, consecutive_residues, place_atom
from .draft import Draft
from .room import ALIKE, Room

#: Distance, A, from other atoms below which the methyl group of NME has no room.
_ROOM = 2.0


def cap_breaks(draft: Draft, chains: list[str], linked: list[set[str]], new: dict[int, list[tuple[str, str, Floats]]],
               room: Room) -> tuple[list[tuple[int, int]], dict[int, tuple[str, dict[str, Floats]]]]:
    """Return the pairs of residues at chain breaks, and their caps.

    The keys of caps are for sorting: 4 n + 1 after residue n (NME, NH2), 4 n - 1 before it (ACE). `new` has the atoms
    that are added to residues, without OXT at a break.
    """
    gaps: list[tuple[int, int]] = []
    caps: dict[int, tuple[str, dict[str, Floats]]] = {}
    starts = draft.starts
    for residue, next_residue in consecutive_residues(draft, chains, linked, "C", "N"):
        here, there = ({str(draft.names[k]): draft.positions[k] for k in range(starts[n], starts[n + 1])}
                       for n in (residue, next_residue))
        if "OXT" in here:
            continue
        room.remove([place for name, _, place in new.get(residue, []) if name == "OXT"])
        new[residue] = [atom for atom in new.get(residue, []) if atom[0] != "OXT"]
        here |= {name: place for name, _, place in new[residue]}
        there |= {name: place for name, _, place in new.get(next_residue, [])}
        if not ({"CA", "C", "O"} <= here.keys() and {"N", "CA", "C"} <= there.keys()):
            continue
        gaps.append((residue, next_residue))
        nitrogen = place_atom(here["O"], here["CA"], here["C"], C_N, CA_C_N, 180.0)
        methyl = place_atom(here["CA"], here["C"], nitrogen, N_CA, C_N_CA, 180.0)
        amide = {"N": nitrogen, "C": methyl}
        acetyl, distance = _acetyl(there, room, np.array(list(amide.values())))
        if min(distance, room.nearest(methyl[None])[0, 0]) < _ROOM:  # no room for a methyl group
            del amide["C"]
            acetyl, _ = _acetyl(there, room, np.array(list(amide.values())))
        caps[4 * residue + 1] = "NME" if "C" in amide else "NH2", amide
        caps[4 * next_residue - 1] = "ACE", acetyl
        room.add([*amide.values(), *acetyl.values()])
    return gaps, caps


def _acetyl(there: dict[str, Floats], room: Room, others: Floats) -> tuple[dict[str, Floats], float]:
    """Return the atoms of ACE before a residue, at the torsion where they are farthest from others, and how far.

    The others are all in the room, and the atoms (M, 3) of the cap on the other side of the gap.
    """
    carbon = place_atom(there["C"], there["CA"], there["N"], C_N, C_N_CA, np.arange(-180.0, 180.0, 15.0))
    oxygen = place_atom(there["CA"], there["N"], carbon, C_O, O_C_N, 0.0)
    methyl = place_atom(there["CA"], there["N"], carbon, CA_C, CA_C_N, 180.0)
    trials = np.stack([oxygen, methyl, carbon], axis=1)
    # N and CA are as far at every torsion
    near = room.nearest(trials[:, :2].reshape(-1, 3), but=(there["N"], there["CA"])).reshape(-1, 2).min(1)
    distances = np.minimum(near, np.linalg.norm(trials[:, :, None] - others, axis=-1).min((1, 2)))
    best = int(np.argmax(distances > distances.max() - ALIKE))
    return {"C": carbon[best], "O": oxygen[best], "CH3": methyl[best]}, float(distances[best])


def cap_links(draft: Draft) -> Integers:
    """Return the bonds between caps and their residues."""
    starts = draft.starts
    results = []
    for n, residue in enumerate(draft.residues):
        if not residue.cap:
            continue
        other, cap_atom, other_atom = (n + 1, "C", "N") if residue.name == "ACE" else (n - 1, "N", "C")
        for a in range(starts[n], starts[n + 1]):
            for b in range(starts[other], starts[other + 1]):
                if draft.names[a] == cap_atom and draft.names[b] == other_atom:
                    results.append((a, b))
    return np.array(results, np.int64).reshape(-1, 2)
