"""Residues of one structure that correspond to those of another, by their sequences."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np

from vmdpotential.arrays import Integers
from vmdpotential.molecule.atomnames import family
from vmdpotential.molecule.structure import Structure


def corresponding_residues(first: Structure, second: Structure) -> Integers:
    """Return the residue of the second structure for each one (R,) of the first, and -1 where there is none.

    Chains follow each other in the same order. The longest common part of both sequences is found first, then that to
    its left and to its right, and so on (J. W. Ratcliff, D. Metzener, Dr. Dobb's Journal, July 1988); between these,
    residues correspond one by one in parts of equal length, as in a mutant.
    """
    (ours, rows), (theirs, places) = _sequence(first), _sequence(second)
    result = np.full(first.residue_count, -1)
    for what, a, end, b, other_end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if what == "equal" or (what == "replace" and end - a == other_end - b):
            for n in range(end - a):
                if ours[a + n] and theirs[b + n]:
                    result[rows[a + n]] = places[b + n]
    return result


def _sequence(structure: Structure) -> tuple[list[str], list[int]]:
    """Return the names of residues, with an empty one between chains, and their numbers."""
    names: list[str] = []
    rows: list[int] = []
    firsts = structure.residue_starts[:-1].tolist()
    for n, atom in enumerate(firsts):
        if n and any(values[atom] != values[firsts[n - 1]] for values in (structure.chain_ids, structure.segment_ids)):
            names.append("")
            rows.append(-1)
        names.append(family(str(structure.residue_names[atom])))
        rows.append(n)
    return names, rows
