"""Sets of atomic radii, for methods that need the volume of a molecule.

``bondi``: van der Waals radii (A. Bondi, J. Phys. Chem. 68, 1964, 441). ``mbondi2``: the same, but 1.3 A for hydrogens
on nitrogen (A. Onufriev, D. Bashford, D. A. Case, Proteins 55, 2004, 383), as Amber's ``set default PBradii mbondi2``.
``parse``: united radii of aliphatic carbons with their hydrogens, for amino acids (D. Sitkoff, K. A. Sharp, B. Honig,
J. Phys. Chem. 98, 1994, 1978) and nucleotides (C. L. Tang, E. Alexov, A. M. Pyle, B. Honig, J. Mol. Biol. 366, 2007,
1475).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError, Message, UsageError, listed_words
from vmdpotential.molecule.atomnames import AMINO_ACIDS, NUCLEOTIDE_NAMES, family
from vmdpotential.molecule.close import close_pairs
from vmdpotential.molecule.elements import fill_elements
from vmdpotential.molecule.names import WATER_RESIDUES, in_table, mapped_names
from vmdpotential.molecule.structure import LARGEST_COORDINATE, Floats, Structure

log = logging.getLogger(__name__)

#: Names of the sets.
RADII_SETS = ("bondi", "mbondi2", "parse")

#: Values of the option `radii`.
RADII_CHOICES = ("auto", *RADII_SETS)

#: Largest distance, A, of lone pairs and virtual sites, which have no element, from their atom.
_VIRTUAL = 1.0

#: Bondi's radii by element, A.
BONDI = {
    "H": 1.20, "He": 1.40, "Li": 1.82, "C": 1.70, "N": 1.55, "O": 1.52, "F": 1.47, "Ne": 1.54, "Na": 2.27, "Mg": 1.73,
    "Si": 2.10, "P": 1.80, "S": 1.80, "Cl": 1.75, "Ar": 1.88, "K": 2.75, "Ni": 1.63, "Cu": 1.40, "Zn": 1.39,
    "Ga": 1.87, "As": 1.85, "Se": 1.90, "Br": 1.85, "Kr": 2.02, "Pd": 1.63, "Ag": 1.72, "Cd": 1.58, "In": 1.93,
    "Sn": 2.17, "Te": 2.06, "I": 1.98, "Xe": 2.16, "Pt": 1.75, "Au": 1.66, "Hg": 1.55, "Tl": 1.96, "Pb": 2.02,
    "U": 1.86,
}

#: Radii of PARSE for amino acids and water, A.
PARSE = {"H": 1.0, "C": 1.7, "N": 1.5, "O": 1.4, "S": 1.85}
#: Radii of PARSE for aliphatic carbons, ammonium nitrogens and the hydrogens on them, A.
_SATURATED = {"C": 2.0, "N": 2.0, "H": 0.0}
#: Radii of PARSE for nucleotides, A.
PARSE_NUCLEIC = {"H": 1.1, "C": 1.7, "N": 1.5, "O": 1.4, "P": 1.9}

#: Radius of hydrogens on nitrogen in mbondi2, and the longest bond to them, A.
ON_NITROGEN, BOND = 1.30, 1.25
#: Longest bonds with sulfur, and between other heavy atoms, A.
_BONDED, _HEAVY = 2.2, 1.75
#: Amino acids, caps of protein chains and waters, by the names of their families.
_COVERED = {*AMINO_ACIDS, "ACE", "NME", "NMA", "NH2", *WATER_RESIDUES}


def atomic_radii(structure: Structure, chosen: NDArray[np.bool_], name: str = "auto") -> tuple[Floats, str]:
    """Return the radii of the chosen atoms, (n,) A, and their origin, for reports.

    Parameters
    ----------
    structure : Structure
    chosen : (N,) bool
        Mask of the atoms.
    name : str
        One of :data:`RADII_SETS`, or ``auto`` for the structure's own radii, and if it lacks some, those of mbondi2.

    Raises
    ------
    InputError
        When the set has no radius for an element, or an atom has no element.
    UsageError
        For an unknown set.
    """
    where = structure.where
    if name == "auto":
        own = structure.radii
        without = None if own is None else chosen & ~((own >= 0) & (own <= LARGEST_COORDINATE))
        if own is None or without is None or without.any():
            if without is not None:
                log.warning(Message("%s: %d atoms have no radius, or an implausible one, such as %s: radii of all "
                                    "atoms are those of mbondi2; {radii} names another set"), where, int(without.sum()),
                            structure.label(int(np.flatnonzero(without)[0])))
            return _mbondi2(structure, chosen)
        # radii of a completed structure are those of a set, which the report on its preparation names
        return own[chosen], "of the file" if structure.origins is None else "of the prepared structure"
    if name not in RADII_SETS:
        raise UsageError("radii", f"choose one of {', '.join(RADII_CHOICES)}", value=name)
    elements = fill_elements(structure).elements
    radii = _parse(structure, elements) if name == "parse" else _by_element(elements, BONDI)
    missing = np.flatnonzero(np.isnan(radii) & chosen)
    if len(missing):
        atom = int(missing[0])
        raise InputError(f"{where}: atom {atom + 1} ({structure.label(atom)}): {name} has no radius for "
                         f"{elements[atom] or 'an atom without an element'}",
                         "give a PQR file that has one, or leave the atom out by {atoms}")
    if name == "mbondi2":
        _set_on_nitrogen(structure, elements, radii)
    return radii[chosen], name


def _mbondi2(structure: Structure, chosen: NDArray[np.bool_]) -> tuple[Floats, str]:
    """Return the radii (n,) of the chosen atoms by mbondi2, A, 0 for lone pairs and virtual sites; and their origin."""
    part = structure.take(chosen)
    radii, source = prepared_radii(part)
    known = fill_elements(part).elements != ""
    bare = np.flatnonzero(~known)
    if len(bare):
        pairs, _ = close_pairs(part.positions, _VIRTUAL, part.cell)
        near = np.zeros(len(part), bool)
        near[pairs[known[pairs[:, ::-1]]]] = True
        if not near[bare].all():
            atom = int(bare[np.argmin(near[bare])])
            raise InputError(f"{structure.where}: {part.label(atom)} has no element, so it has no radius",
                             "give a PQR file that has one, leave it out by {atoms}, or choose another {medium}")
    return radii, source


def prepared_radii(structure: Structure, name: str = "mbondi2") -> tuple[Floats, str]:
    """Return the radii of all atoms, (N,) A, and their origin, for reports.

    Elements without a radius in the set (iron, calcium ...) get gemmi's van der Waals radii, which the origin mentions.

    Raises
    ------
    UsageError
        For an unknown set.
    """
    import gemmi

    elements = fill_elements(structure).elements
    source = name
    if name == "parse":
        radii = _parse(structure, elements)
        others = np.isnan(radii)
        if others.any():
            radii[others], other_source = prepared_radii(structure.take(others))
            residues = sorted(set(structure.residue_names[others].tolist()))
            source += f", {other_source} for {listed_words(residues, 80)}"
        return radii, source
    missing = sorted(set(np.unique(elements).tolist()) - BONDI.keys() - {""})
    radii = np.zeros(len(structure))
    known = ~np.isin(elements, [*missing, ""])
    radii[known] = atomic_radii(structure, known, name)[0]
    for element in missing:
        radii[elements == element] = gemmi.Element(element).vdw_r
    if missing:
        source += f", van der Waals radii of gemmi for {', '.join(missing)}"
    return radii, source


def _by_element(elements: NDArray[np.str_], table: Mapping[str, float]) -> Floats:
    return mapped_names(elements, lambda word: table.get(word, np.nan), float)


def _parse(structure: Structure, elements: NDArray[np.str_]) -> Floats:
    """Return radii (N,) of the set PARSE, A; NaN for atoms in residues that it does not cover."""
    amino = mapped_names(structure.residue_names, lambda word: family(word) in _COVERED, bool)
    nucleic = mapped_names(structure.residue_names, lambda word: family(word) in NUCLEOTIDE_NAMES, bool)
    radii = np.full(len(elements), np.nan)
    radii[amino] = _by_element(elements[amino], PARSE)
    radii[nucleic] = _by_element(elements[nucleic], PARSE_NUCLEIC)
    pairs = _pairs_at_bonds(structure, elements)
    saturated = (np.bincount(pairs.ravel(), minlength=len(elements)) == 4) & np.isin(elements, ["C", "N"]) & amino
    chosen = saturated.copy()
    for first, second in (pairs.T, pairs.T[::-1]):
        chosen[first[saturated[second] & (elements[first] == "H")]] = True
    radii[chosen] = _by_element(elements[chosen], _SATURATED)
    return radii


def bonded_pairs(structure: Structure, elements: NDArray[np.str_]) -> NDArray[np.int64]:
    """Return the bonds (B, 2) of the topology, or the pairs of atoms at the distance of a bond if it has none."""
    if structure.topology is not None and len(structure.topology.bonds):
        return structure.topology.bonds
    return _pairs_at_bonds(structure, elements)


def _pairs_at_bonds(structure: Structure, elements: NDArray[np.str_]) -> NDArray[np.int64]:
    """Return the pairs of atoms (B, 2) at the distance of a bond."""
    pairs, lengths = close_pairs(structure.positions, _BONDED, structure.cell)
    kinds = elements[pairs]
    hydrogens = (kinds == "H").sum(1)
    longest = np.select([hydrogens == 1, hydrogens == 2, (kinds == "S").any(1)], [BOND, 0.0, _BONDED], _HEAVY)
    return pairs[lengths < longest]


def _set_on_nitrogen(structure: Structure, elements: NDArray[np.str_], radii: Floats) -> None:
    """Set the radii of hydrogens on nitrogen, or on its nearest image, to those of mbondi2."""
    # most hydrogens are those of water, and far from any nitrogen
    rows = np.flatnonzero((elements == "N") | ((elements == "H") & ~in_table(structure.residue_names, WATER_RESIDUES)))
    pairs, _ = close_pairs(structure.positions[rows], BOND, structure.cell)
    pairs = rows[pairs]
    pairs = pairs[(elements[pairs] == "H").sum(1) == 1]
    radii[pairs[elements[pairs] == "H"]] = ON_NITROGEN
