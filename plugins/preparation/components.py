"""Components (atoms, bonds, formal charges and coordinates of residues) of the Chemical Component Dictionary.

The dictionary (J. D. Westbrook et al., Bioinformatics 31, 2015, 1274; CC0) is the copy in the package biotite.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from vmdpotential import cache as disk
from vmdpotential.extras import load_optional
from vmdpotential.molecule.atomnames import common_names, family
from vmdpotential.molecule.gasteiger import (
    AROMATIC_DOUBLE,
    AROMATIC_SINGLE,
    AROMATIC_TRIPLE,
    DOUBLE_BOND,
    SINGLE_BOND,
    TRIPLE_BOND,
)
from vmdpotential.molecule.structure import Floats, Integers
from vmdpotential.molecule.templates import table_bytes
from vmdpotential.molecule.user_charges import MoleculeOfFile

_ORDERS = {("SING", "N"): SINGLE_BOND, ("DOUB", "N"): DOUBLE_BOND, ("TRIP", "N"): TRIPLE_BOND,
           ("SING", "Y"): AROMATIC_SINGLE,
           ("DOUB", "Y"): AROMATIC_DOUBLE, ("TRIP", "Y"): AROMATIC_TRIPLE}
#: Orders of bonds with planar groups at both ends.
PLANAR_BONDS = (DOUBLE_BOND, TRIPLE_BOND, AROMATIC_SINGLE, AROMATIC_DOUBLE, AROMATIC_TRIPLE)

AMINO_ACIDS = frozenset((
    "ALA", "ARG", "ASN", "ASP", "CYS", "GLN", "GLU", "GLY", "HIS", "ILE", "LEU", "LYS", "MET", "PHE", "PRO", "SER",
    "THR", "TRP", "TYR", "VAL"))
_BASES = {"ADE": "A", "CYT": "C", "GUA": "G", "THY": "T", "URA": "U"}
NUCLEOTIDE_NAMES = frozenset(("A", "C", "G", "U", "DA", "DC", "DG", "DT", "DU", "T"))
#: Caps of peptides in the dictionary, by the family of their names in programs.
CAPS = {"ACE": "ACE", "NME": "NME", "NHE": "NH2"}
#: Residues of DNA by the names that they share with those of RNA.
DEOXY_NAMES = {"A": "DA", "C": "DC", "G": "DG", "U": "DU", "I": "DI"}


@dataclass(frozen=True, eq=False)
class Component:
    """A residue of the dictionary, or of a user's file; its arrays are over heavy atoms.

    Parameters
    ----------
    name : str
        Name of the residue.
    atoms, elements : tuple of str
        Names of the heavy atoms, and their elements in usual spelling.
    charges : (n,) int64
        Formal charges, e.
    positions : (n, 3) float64, A
        Ideal coordinates, or those of a model if the dictionary has no ideal ones; NaN if it has neither.
    bonds : (m, 3) int64
        Indices of two atoms and the order of their bond.
    leaving : (n,) bool
        Whether a bond of the atom's neighbour to another residue replaces the atom (OXT, O1 of a sugar).
    hydrogens : dict of str to tuple of str
        Names of the hydrogens on each heavy atom.
    others : dict of str to str
        Present names of heavy atoms by their former names.
    stated : bool
        Whether it is from a user's file, so that its formal charges are those of the intended protonation state.
    """

    name: str
    atoms: tuple[str, ...]
    elements: tuple[str, ...]
    charges: Integers
    positions: Floats
    bonds: Integers
    leaving: Any
    hydrogens: dict[str, tuple[str, ...]]
    others: dict[str, str]
    stated: bool = False

    @classmethod
    def from_molecule(cls, name: str, molecule: MoleculeOfFile) -> Component:
        """Return the component of a molecule in a user's file, which has hydrogens."""
        heavy = [n for n, element in enumerate(molecule.elements) if element not in ("H", "D")]
        row = {n: k for k, n in enumerate(heavy)}
        hydrogens: dict[str, tuple[str, ...]] = {}
        bonds = []
        for a, b, order in molecule.bonds:
            if a in row and b in row:
                bonds.append((row[a], row[b], order))
            elif a in row or b in row:
                holder, held = (a, b) if a in row else (b, a)
                atom = molecule.names[holder]
                hydrogens[atom] = (*hydrogens.get(atom, ()), molecule.names[held])
        return cls(name, tuple(molecule.names[n] for n in heavy), tuple(molecule.elements[n] for n in heavy),
                   np.array([molecule.formal[n] for n in heavy], np.int64), np.full((len(heavy), 3), np.nan),
                   np.array(bonds, np.int64).reshape(-1, 3), np.zeros(len(heavy), bool), hydrogens, {}, True)

    @classmethod
    def from_json(cls, line: str) -> Component:
        """Return the component in a line of the table."""
        entry = json.loads(line)
        return cls(
            entry["name"], tuple(entry["atoms"]), tuple(entry["elements"]), np.array(entry["charges"], np.int64),
            np.array(entry["positions"], np.float64).reshape(-1, 3), np.array(entry["bonds"], np.int64).reshape(-1, 3),
            np.array(entry["leaving"], bool), {atom: tuple(names) for atom, names in entry["hydrogens"].items()},
            entry["others"])

    def to_json(self) -> str:
        """Return the line of the table for a component."""
        return json.dumps({
            "name": self.name, "atoms": self.atoms, "elements": self.elements, "charges": self.charges.tolist(),
            "positions": np.round(self.positions, 3).tolist(), "bonds": self.bonds.tolist(),
            "leaving": np.asarray(self.leaving, int).tolist(), "hydrogens": self.hydrogens, "others": self.others})

    @cached_property
    def row(self) -> dict[str, int]:
        """Indices of the atoms by name."""
        return {name: n for n, name in enumerate(self.atoms)}

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """Indices of the atoms bonded to each atom."""
        results: list[list[int]] = [[] for _ in self.atoms]
        for a, b, _ in self.bonds.tolist():
            results[a].append(b)
            results[b].append(a)
        return results

    @cached_property
    def is_amino_acid(self) -> bool:
        """Whether it has the backbone of an amino acid."""
        return {"N", "CA", "C", "O"} <= set(self.atoms)

    @cached_property
    def is_nucleotide(self) -> bool:
        """Whether it has the backbone of a nucleotide."""
        return {"C1'", "C4'", "O5'", "C5'", "C3'", "O3'"} <= set(self.atoms)

    @cached_property
    def phosphate(self) -> tuple[str, ...]:
        """Names of the phosphorus on O5' of a nucleotide and of the oxygens that end there; empty if there is none."""
        if not self.is_nucleotide:
            return ()
        phosphorus = [k for k in self.neighbours[self.row["O5'"]] if self.elements[k] == "P"]
        ends = [j for k in phosphorus for j in self.neighbours[k] if len(self.neighbours[j]) == 1]
        return tuple(self.atoms[k] for k in (*phosphorus, *ends))


@cache
def find_component(name: str) -> Component | None:
    """Return a component of the dictionary, None if there is none with this name.

    Frequent components are in a table of this package, and others are cached on disk, as reading the dictionary takes
    seconds.

    Raises
    ------
    BackendError
        When biotite is not installed.
    """
    line = _table().get(name)
    if line is not None:
        return Component.from_json(line)
    version = load_optional("biotite", "hydrogens and bonds", "prepare").__version__
    entry = hashlib.sha256(f"{version} {name}".encode()).hexdigest()
    kept = disk.read(entry, "components")
    if kept is not None:
        return Component.from_json(kept.decode("ascii"))
    result = from_dictionary(name)
    if result is not None:
        disk.write(entry, result.to_json().encode("ascii"), "components")
    return result


@cache
def _table() -> dict[str, str]:
    """Return the lines of the table of frequent components by their names."""
    text = gzip.decompress(table_bytes("components.jsonl.gz", "table of components")).decode("ascii")
    return {line[10 : line.index('"', 10)]: line for line in text.splitlines()}


def from_dictionary(name: str) -> Component | None:
    """Return a component of biotite's copy of the dictionary; see :func:`find_component`."""
    ccd = load_optional("biotite.structure.info.ccd", "hydrogens and bonds", "prepare")

    def column(key: str, kind: Any = str, category: str = "chem_comp_atom") -> list[Any]:
        return np.asarray(ccd.get_from_ccd(category, name, key).as_array(kind)).tolist()  # type: ignore[no-any-return]

    if ccd.get_from_ccd("chem_comp_atom", name, "atom_id") is None:
        return None
    names, symbols = column("atom_id"), [symbol.capitalize() for symbol in column("type_symbol")]
    charges = column("charge", np.int64)
    leaving = [flag == "Y" for flag in column("pdbx_leaving_atom_flag")]
    heavy = [n for n, symbol in enumerate(symbols) if symbol not in ("H", "D")]
    row = {names[n]: k for k, n in enumerate(heavy)}
    hydrogens: dict[str, list[str]] = {}
    bonds: list[tuple[int, int, int]] = []
    if ccd.get_from_ccd("chem_comp_bond", name, "atom_id_1") is not None:
        for a, b, order, aromatic in zip(*(column(key, category="chem_comp_bond") for key in (
                "atom_id_1", "atom_id_2", "value_order", "pdbx_aromatic_flag")), strict=True):
            if a in row and b in row:
                bonds.append((row[a], row[b], _ORDERS.get((order, aromatic), SINGLE_BOND)))
            elif a in row or b in row:
                hydrogens.setdefault(a if a in row else b, []).append(b if a in row else a)
    others = {old: new for old, new in zip(column("alt_atom_id"), names, strict=True)
              if new in row and old not in row and old}
    return Component(
        name, tuple(names[n] for n in heavy), tuple(symbols[n] for n in heavy),
        np.array([charges[n] for n in heavy], np.int64), _positions(ccd, name)[heavy],
        np.array(bonds, np.int64).reshape(-1, 3), np.array([leaving[n] for n in heavy], bool),
        {atom: tuple(result) for atom, result in hydrogens.items()}, others)


def _positions(ccd: Any, name: str) -> Floats:
    """Return the ideal coordinates (n, 3) of a component, or those of its model where they are not complete."""
    for keys in ([f"pdbx_model_Cartn_{x}_ideal" for x in "xyz"], [f"model_Cartn_{x}" for x in "xyz"]):
        columns = [ccd.get_from_ccd("chem_comp_atom", name, key) for key in keys]
        result = np.stack([np.asarray(column.as_array(np.float64, masked_value=np.nan)) for column in columns], axis=1)
        if np.isfinite(result).all():
            break
    return result.astype(np.float64)


def identify_component(residue_name: str, atom_names: Collection[str]) -> Component | None:
    """Return the component that a residue's name and heavy atoms indicate, None if no component has these atoms.

    Names of variants in programs (HSE, CYX, ASH, ADE) indicate the parent residue. If the dictionary has another
    component with such a name (HIP), it is returned only if the parent does not have the atoms. Before 2007, and in
    programs, A, C, G, U and I are residues of DNA as well: those with all atoms of a sugar but O2'.
    """
    upper = residue_name.upper()
    parent = family(upper)
    names = [upper]
    if upper == "UNK":  # a residue of unknown type is modelled as alanine or glycine
        names = ["ALA" if "CB" in atom_names else "GLY", upper]
    elif parent in AMINO_ACIDS:
        names = [parent, upper]
    elif parent in CAPS:  # the dictionary has another component NHE, and none with some names of NME
        names = [CAPS[parent], upper]
    elif upper in DEOXY_NAMES and without_hydroxyl(atom_names):
        names = [DEOXY_NAMES[upper], upper]
    elif parent in _BASES and upper not in NUCLEOTIDE_NAMES:
        base, ribose = _BASES[parent], "O2'" in atom_names or "O2*" in atom_names
        names = [base if ribose and base != "T" else f"D{base}", upper]
    for name in dict.fromkeys(names):
        result = find_component(name)
        if result is not None and dictionary_names(result, tuple(atom_names)) is not None:
            return result
    return None


def without_hydroxyl(atom_names: Collection[str]) -> bool:
    """Return whether the atoms are those of a sugar of DNA: all but O2'."""
    names = {name.replace("*", "'") for name in atom_names}
    return {"C1'", "C2'", "C3'", "C4'", "O4'"} <= names and "O2'" not in names


@cache
def dictionary_names(component: Component, atom_names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the dictionary's names for the heavy atoms of a residue, None if an atom has an unknown name."""
    common = common_names(atom_names, family(component.name))
    result = []
    for n, name in enumerate(atom_names):
        known_as = common[n] if common else ""
        if component.name == "NME":  # the dictionary calls its carbon C
            known_as = known_as.replace("CH3", "C")
        choices = (name, component.others.get(name, ""), known_as, name.replace("*", "'"))
        known = next((choice for choice in choices if choice in component.row), None)
        if known is None:
            return None
        result.append(known)
    for n, name in enumerate(result):  # an amide's oxygen is O, even if the file calls it OXT
        row = component.row[name]
        if component.leaving[row] and len(component.neighbours[row]) == 1:
            twins = [component.atoms[j] for j in component.neighbours[component.neighbours[row][0]]
                     if component.elements[j] == component.elements[row] and len(component.neighbours[j]) == 1
                     and not component.leaving[j] and component.atoms[j] not in result]
            result[n] = twins[0] if twins else name
    return tuple(result) if len(set(result)) == len(result) else None
