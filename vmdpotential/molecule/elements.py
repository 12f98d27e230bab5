"""Elements from atom and residue names, van der Waals radii and masses."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vmdpotential.molecule.names import (
    ION_RESIDUES,
    LIPID_RESIDUES,
    NUCLEIC_RESIDUES,
    PROTEIN_RESIDUES,
    WATER_RESIDUES,
    in_table,
    mapped_names,
    unique_names,
)
from vmdpotential.molecule.structure import Floats, Names, Structure

#: Residues that are linked into chains.
POLYMER_RESIDUES = PROTEIN_RESIDUES | NUCLEIC_RESIDUES
#: Residues in which atom names begin with one-letter elements only (CA is a carbon, HG a hydrogen).
_ORGANIC = POLYMER_RESIDUES | WATER_RESIDUES | LIPID_RESIDUES
#: Two-letter elements that are rarely confused with names of carbon, hydrogen, nitrogen or oxygen atoms.
_TWO_LETTERS = {name.upper(): name for name in ("Cl", "Br", "Si", "Se", "Fe", "Zn", "Mg", "Mn", "Cu", "Al")}
_ONE_LETTER = {letter: letter for letter in "HCNOPSFBIK"} | {"D": "H"}
_NO_ATOM = re.compile(r"(EPW?\d?|EP\d+|LP\w*|MCH3?|MNH3?)$")
_NO_ATOM_OF_WATER = re.compile(r"(MW?\d*|OM|IW|D[A-Z]\w*)$")


def ion_element(atom_name: str, residue_name: str) -> str:
    """Return the element of a monatomic ion, or an empty string if the names are not those of an ion."""
    atom, residue = ION_RESIDUES.get(atom_name.upper()), ION_RESIDUES.get(residue_name.upper())
    if atom is None or residue is None:
        return atom.element if atom and residue_name.upper() in ("ION", "IONS") else ""
    return atom.element if atom.element == residue.element else ""


@lru_cache(maxsize=65536)
def guess(atom_name: str, residue_name: str) -> str:
    """Return the element that the names of an atom and its residue suggest.

    It is an empty string for sites without an element (M sites of water, lone pairs) and for unknown names.
    """
    element = ion_element(atom_name, residue_name)
    if element:
        return element
    name, residue = atom_name.upper().lstrip("0123456789'*\""), residue_name.upper()
    if _NO_ATOM.match(name) or (residue in WATER_RESIDUES and _NO_ATOM_OF_WATER.match(name)):
        return ""
    if residue == "MSE" and name.startswith("SE"):
        return "Se"
    if residue not in _ORGANIC and name[:2] in _TWO_LETTERS:
        return _TWO_LETTERS[name[:2]]
    return _ONE_LETTER.get(name[:1], "")


def is_massless_site(atom_names: Names, residue_names: Names) -> NDArray[np.bool_]:
    """Return a mask (N,) of the sites that are no atoms, by name: M sites of water, lone pairs."""
    anywhere = mapped_names(atom_names, lambda name: _NO_ATOM.match(name.upper()), bool)
    in_water = mapped_names(atom_names, lambda name: _NO_ATOM_OF_WATER.match(name.upper()), bool)
    return anywhere | (in_water & in_table(residue_names, WATER_RESIDUES))


def guess_all(atom_names: Names, residue_names: Names) -> Names:
    """Return the elements, (N,) str, that names suggest; see :func:`guess`."""
    atoms, atom = unique_names(atom_names)
    residues, residue = unique_names(residue_names)
    pairs, inverse = np.unique(atom * max(1, len(residues)) + residue, return_inverse=True)
    results = [guess(str(atoms[pair // len(residues)]), str(residues[pair % len(residues)])) for pair in pairs]
    return np.array(results, dtype=np.str_)[inverse]


def complete_elements(elements: Names, atom_names: Names, residue_names: Names) -> Names:
    """Return the elements (N,) of a file in usual spelling, with guesses where they are missing or do not exist."""
    import gemmi

    def spelled(word: str) -> str:
        element = gemmi.Element(word or "X")
        return element.name if element.atomic_number > 0 and element.name.upper() == word.upper() else ""

    result: Names = mapped_names(elements, spelled).astype("<U2")
    missing = np.flatnonzero(result == "")
    result[missing] = guess_all(atom_names[missing], residue_names[missing])
    return result


def fill_elements(structure: Structure) -> Structure:
    """Return a structure with guesses for missing elements."""
    missing = np.flatnonzero(structure.elements == "")
    if not len(missing):
        return structure
    guessed = guess_all(structure.atom_names[missing], structure.residue_names[missing])
    if not (guessed != "").any():
        return structure
    result = structure.elements.astype("<U2")
    result[missing] = guessed
    return replace(structure, elements=result)


def van_der_waals_radii(elements: Names) -> Floats:
    """Return van der Waals radii, (N,) A, 0 for sites without an element."""
    import gemmi

    return mapped_names(elements, lambda word: gemmi.Element(word).vdw_r if word else 0.0, float)


def covalent_radii(elements: Names) -> Floats:
    """Return covalent radii, (N,) A, 0 for sites without an element."""
    import gemmi

    return mapped_names(elements, lambda word: gemmi.Element(word).covalent_r if word else 0.0, float)


def atom_masses(structure: Structure) -> Floats:
    """Return masses, (N,) u, of the topology, or else of the elements (0 for sites without one)."""
    import gemmi

    topology = structure.topology
    if topology is not None and (topology.masses > 0).any():
        return topology.masses
    return mapped_names(fill_elements(structure).elements,
                        lambda word: gemmi.Element(word).weight if word else 0.0, float)
