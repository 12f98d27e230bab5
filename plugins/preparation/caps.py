"""Caps of peptides that CHARMM's patches make a part of the residue next to them, as residues of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from vmdpotential.molecule.structure import Integers, Structure

#: Names of the heavy atoms of CHARMM's patches ACE, CT3 and CT2, and the residue that each is, before or after.
_PATCHES = ((("CAY", "CY", "OY"), "ACE", -1), (("NT", "CAT"), "NME", 1), (("NT",), "NHE", 1))
_BACKBONE = frozenset(("N", "CA", "C"))


def separate_caps(structure: Structure) -> tuple[Structure, Integers]:
    """Return a structure in which caps are residues of their own, and the index (N,) of each of its atoms before."""
    unchanged = np.arange(len(structure))
    marks = np.flatnonzero(np.isin(structure.atom_names, ["CY", "NT"]))
    residues = structure.residue_of
    names, numbers = structure.residue_names.astype("<U4"), structure.residue_ids.copy()
    place = 3 * residues
    for residue in np.unique(residues[marks]).tolist():
        atoms = np.arange(structure.residue_starts[residue], structure.residue_starts[residue + 1])
        heavy = atoms[~np.isin(structure.elements[atoms], ["H", "D"])]
        of = dict(zip(structure.atom_names[heavy].tolist(), heavy.tolist(), strict=True))
        if not of.keys() >= _BACKBONE:
            continue
        nearest = heavy[cKDTree(structure.positions[heavy]).query(structure.positions[atoms])[1]]
        for patch, name, shift in _PATCHES:
            if of.keys() >= set(patch):
                own = atoms[np.isin(nearest, [of.pop(atom) for atom in patch])]
                names[own], numbers[own], place[own] = name, numbers[own] + shift, 3 * residue + shift
    order = np.argsort(place, kind="stable")
    if (place == 3 * residues).all():
        return structure, unchanged
    changed = replace(structure, residue_names=names, residue_ids=numbers, residue_index=place)
    return changed.take(order), order
