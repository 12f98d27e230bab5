"""The heavy atoms of a structure with the components of their residues, and the bonds between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError, listed_words
from vmdpotential.molecule.charges import DISULFIDE_LENGTH
from vmdpotential.molecule.gasteiger import DOUBLE_BOND, SINGLE_BOND
from vmdpotential.molecule.names import ION_RESIDUES, WATER_RESIDUES
from vmdpotential.molecule.structure import Floats, Integers, Names, Structure
from vmdpotential.molecule.templates import FORCE_FIELDS, TemplateMatch, template_library

from .components import (
    AMINO_ACIDS,
    DEOXY_NAMES,
    NUCLEOTIDE_NAMES,
    Component,
    dictionary_names,
    find_component,
    identify_component,
)
from .matching import BOND_TOLERANCE, SHORTEST_BOND, match_names

#: Metals; bonds to them are coordinative and are not searched.
METAL_ELEMENTS = frozenset((
    "Li", "Na", "K", "Rb", "Cs", "Be", "Mg", "Ca", "Sr", "Ba", "Al", "Ga", "In", "Tl", "Sn", "Pb", "Bi",
    "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Y", "Zr", "Nb", "Mo", "Tc", "Ru", "Rh",
    "Pd", "Ag", "Cd", "La", "Ce", "Pr", "Nd", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu",
    "Hf", "Ta", "W", "Re", "Os", "Ir", "Pt", "Au", "Hg", "Th", "U"))
#: Longest distance, A, of a bond by which a residue has lost an atom; without a bond, atoms are farther apart.
_OPEN = 2.4
#: Notes on residues that were recognised by their atoms, or by their bonds.
DEOXYRIBOSE = "named as residues of RNA, and taken as DNA, as they have no O2'"
PHOSPHATE = "only the phosphate is in the file, and the rest was not built"
UNUSUAL_NOTE = "bonded to another residue, at a distance in the file that no bond has"
TWIN_NOTE = "an oxygen has the name of one that is only at an end, and is taken as the one that is missing"
RENAMED = "atoms have other names than in the Chemical Component Dictionary, and were recognised by their bonds"
#: Distance, A, within which two atoms that are not bonded to each other or to a third one cannot be.
CLOSE = 1.9
#: Notes on residues without room for what was added to them.
CROWDED_NOTE = f"added atoms are within {CLOSE} A of others that they are not bonded to"
OVERBONDED_NOTE = "an added atom or one next to it has more bonds than its element allows"
#: Possible bonds between standard residues; other close atoms of these are a clash. Side chains make disulfides, amides
#: of lysine, thioethers of tyrosine and thioesters of glutamine.
_STANDARD = {("C", "N"), ("O3'", "P"), ("SG", "SG"), ("CG", "NZ"), ("CD", "NZ"), ("CE1", "SG"), ("CE2", "SG"),
             ("CD", "SG")}


@dataclass
class Residue:
    """A residue during completion.

    Parameters
    ----------
    name : str
        Name of the residue in the structure.
    component : Component or None
        Component of the dictionary; None for waters, ions and unknown residues.
    source : int
        Index of an atom of the structure with the chain and residue number of this residue.
    added : list of str
        Names of added heavy atoms.
    note : str
        Note for the report.
    whole : bool
        Whether a force field has a template of the residue as it is in the file, while the dictionary does not have it:
        nothing is added to it, and its hydrogens are kept.
    cap : bool
        Whether all of it was added, as a cap at a chain break.
    after_gap : bool
        Whether it is a nucleotide after a chain break, whose phosphate has the charge that it has within a chain.
    """

    name: str
    component: Component | None
    source: int
    added: list[str] = field(default_factory=list)
    note: str = ""
    whole: bool = False
    cap: bool = False
    after_gap: bool = False


@dataclass
class Draft:
    """Heavy atoms in the order of the structure, during completion.

    Parameters
    ----------
    names, elements : (N,) str
        Names of the atoms (the dictionary's, if it has the residue), and their elements.
    positions : (N, 3) float64, A
        Positions of the atoms.
    residue : (N,) int64
        Index of each atom's residue in `residues`.
    origin : (N,) int64
        Index of each atom in the structure; -1 for added atoms.
    residues : list of Residue
        The residues.
    links : (L, 2) int64
        Bonds between residues.
    """

    names: Names
    elements: Names
    positions: Floats
    residue: Integers
    origin: Integers
    residues: list[Residue]
    links: Integers = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def starts(self) -> Integers:
        """(R + 1,) indices of the first atom of every residue, then N."""
        return np.searchsorted(self.residue, np.arange(len(self.residues) + 1))

    def linked(self) -> list[set[str]]:
        """Return the names of the atoms of each residue that are bonded to other residues."""
        results: list[set[str]] = [set() for _ in self.residues]
        for atom in self.links.reshape(-1).tolist():
            results[self.residue[atom]].add(str(self.names[atom]))
        return results


def draft_of(structure: Structure, heavy: NDArray[np.bool_], stated: Mapping[str, Component] = MappingProxyType({}),
             force_fields: Sequence[str] = FORCE_FIELDS,
             charged: Mapping[str, Collection[str]] = MappingProxyType({})) -> Draft:
    """Return the heavy atoms of a structure with their components and the bonds between residues.

    Components of a user's files, `stated` by upper-case residue name, have priority over those of the dictionary. Those
    whose name no residue has are compared by their bonds with all residues but amino acids and nucleotides. Residues
    that are in neither are kept whole if one of the force fields has a template of all their atoms, or the user's files
    have charges of exactly these: `charged` has names of atoms by upper-case residue name.
    """
    rows = np.flatnonzero(heavy)
    of_atoms = structure.residue_of
    residue, order = np.unique(of_atoms[rows], return_inverse=True)
    starts = np.searchsorted(order, np.arange(len(residue) + 1))
    names = structure.atom_names[rows].astype("<U8")
    residues: list[Residue] = []
    present = {name.upper() for name in np.unique(structure.residue_names[rows]).tolist()}
    used = {item.name for name, item in stated.items() if name in present}
    others = list({item.name: item for item in stated.values() if item.name not in used}.values())
    known: dict[tuple[str, tuple[str, ...]], tuple[Component | None, tuple[str, ...], str]] = {}
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        part = rows[start:stop]
        name, atoms = str(structure.residue_names[part[0]]), tuple(names[start:stop].tolist())
        if (name, atoms) not in known:
            known[name, atoms] = _known(name, atoms, structure.elements[part].tolist(), structure.positions[part],
                                        stated.get(name.upper()), others)
        result, names[start:stop], note = known[name, atoms]
        whole = result is None and stop > start + 1 and _is_complete(
            structure, int(residue[len(residues)]), name, force_fields, charged.get(name.upper(), ()))
        residues.append(Residue(name, result, int(part[0]), note=note, whole=whole))
        names[start:stop] = _lone_phosphate(residues[-1], tuple(names[start:stop].tolist()))
    draft = Draft(names, structure.elements[rows], structure.positions[rows], order.astype(np.int64), rows, residues)
    draft.links = find_links(draft)
    return draft


def _known(name: str, atoms: tuple[str, ...], elements: list[str], positions: Floats, stated: Component | None,
           others: list[Component]) -> tuple[Component | None, tuple[str, ...], str]:
    """Return the component of a residue, its names for the atoms, and a note if the atoms were matched by bonds.

    A user's file has the component `stated` by this name, and `others` by names that no residue has.
    """
    if name.upper() in WATER_RESIDUES or (len(atoms) == 1 and name.upper() in ION_RESIDUES):
        return None, atoms, ""
    if stated is not None and len(atoms) == len(stated.atoms):
        names = dictionary_names(stated, atoms) or match_names(stated, elements, positions)
        if names is not None:
            return stated, names, ""
    result, note = identify_component(name, atoms), ""
    if others and (result is None or result.name not in AMINO_ACIDS | NUCLEOTIDE_NAMES):
        fitting = [(item, names) for item in others if len(atoms) == len(item.atoms)
                   and (names := match_names(item, elements, positions)) is not None]
        if len(fitting) > 1:
            raise UsageError("charges", f"the residue {name} has the bonds of several molecules: "
                             + listed_words([item.name for item, _ in fitting], 80),
                             f"name one of them {name} in its file")
        if fitting:
            return *fitting[0], f"recognised by its bonds as {fitting[0][0].name}"
    names = dictionary_names(result, atoms) if result is not None else None
    if result is None and (result := find_component(name.upper())) is not None:
        names, note = match_names(result, elements, positions), RENAMED
    elif result is not None and names is not None and any(
            old in result.row and old != new for old, new in zip(atoms, names, strict=True)):
        note = TWIN_NOTE
    elif result is not None and DEOXY_NAMES.get(name.upper()) == result.name:
        note = DEOXYRIBOSE
    if result is None or names is None or (len(result.atoms) == 1 and result.elements[0] in METAL_ELEMENTS):
        return None, atoms, ""
    return result, names, note


def _lone_phosphate(residue: Residue, names: tuple[str, ...]) -> tuple[str, ...]:
    """Make a nucleotide of which the file has the phosphate alone a phosphate; return the names of its atoms."""
    chem, ion = residue.component, find_component("PO4")
    if chem is None or ion is None or not chem.is_nucleotide or not {"P"} <= set(names) <= {"P", "OP1", "OP2", "OP3",
                                                                                         "O5'"}:
        return names
    oxygens = iter(ion.atoms[1:])
    residue.component = replace(ion, leaving=np.array([atom == ion.atoms[-1] for atom in ion.atoms]))
    residue.note = PHOSPHATE
    return tuple("P" if name == "P" else next(oxygens) for name in names)


def _is_complete(structure: Structure, residue: int, name: str, force_fields: Sequence[str],
                 charged: Collection[str]) -> bool:
    """Return whether a residue has the atoms of a force field's template, or those `charged` by the user."""
    atoms = slice(structure.residue_starts[residue], structure.residue_starts[residue + 1])
    names = structure.atom_names[atoms].tolist()
    return name.upper() not in WATER_RESIDUES and (set(charged) == set(names) or any(
        isinstance(template_library(force).match(name, names), TemplateMatch) for force in force_fields))


def find_links(draft: Draft) -> Integers:
    """Return the bonds (L, 2) between residues, by distance: peptides, nucleotides, disulfides, sugars, ligands.

    Between standard residues, only the types of bonds that polymers have are accepted, so that a clash is no bond.
    """
    import gemmi
    from scipy.spatial import cKDTree

    bonding = np.array([r.component is not None or r.whole for r in draft.residues], bool)[draft.residue]
    bonding &= ~np.isin(draft.elements, list(METAL_ELEMENTS))
    rows = np.flatnonzero(bonding)
    if not len(rows):
        return np.zeros((0, 2), np.int64)
    pairs = rows[cKDTree(draft.positions[rows]).query_pairs(DISULFIDE_LENGTH, output_type="ndarray")]
    pairs = pairs[draft.residue[pairs[:, 0]] != draft.residue[pairs[:, 1]]]
    first, second = np.sort(pairs, axis=1).T
    lengths = np.linalg.norm(draft.positions[first] - draft.positions[second], axis=1)
    elements, element = np.unique(draft.elements, return_inverse=True)
    radii = np.array([gemmi.Element(name).covalent_r if name else 0.0 for name in elements.tolist()])[element]
    sulphurs = (draft.names[first] == "SG") & (draft.names[second] == "SG")
    usual = lengths <= np.where(sulphurs, DISULFIDE_LENGTH, radii[first] + radii[second] + BOND_TOLERANCE)
    standard = np.array([r.component is not None and r.component.name in AMINO_ACIDS | NUCLEOTIDE_NAMES
                         for r in draft.residues])[draft.residue]
    both = standard[first] & standard[second]
    open_, able = _open_ends(draft)
    unusual = ~both & (lengths <= _OPEN) & (open_[first] & able[second] | open_[second] & able[first])
    possible = np.flatnonzero((lengths >= SHORTEST_BOND) & (usual | unusual))
    taken: set[int] = set()
    ends: set[int] = set()
    results = []
    for k in possible[np.argsort(lengths[possible], kind="stable")].tolist():
        a, b = int(first[k]), int(second[k])
        if not usual[k] and {a, b} & ends:
            continue
        if not usual[k]:
            draft.residues[int(draft.residue[b if open_[b] else a])].note = UNUSUAL_NOTE
        names = str(draft.names[a]), str(draft.names[b])
        # an atom has at most one bond to another standard residue
        if both[k] and (not {names, names[::-1]} & _STANDARD or {a, b} & taken):
            continue
        if both[k]:
            taken |= {a, b}
        ends |= {a, b}
        results.append((a, b))
    return np.array(sorted(results), np.int64).reshape(-1, 2)


def _open_ends(draft: Draft) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks (N,) of atoms that lack one which a bond replaces (C1 of a sugar without O1), and of their partners.

    Partners are nitrogens, sulphurs and oxygens without a double bond.
    """
    open_, double = np.zeros((2, len(draft)), bool)
    known = np.zeros(len(draft), bool)
    kinds: dict[tuple[Component, tuple[str, ...]], tuple[list[bool], list[bool]]] = {}
    for residue, start, stop in zip(draft.residues, draft.starts[:-1].tolist(), draft.starts[1:].tolist(), strict=True):
        chem = residue.component
        if chem is None:
            continue
        key = chem, tuple(draft.names[start:stop].tolist())
        if key not in kinds:
            ends = set(chem.bonds[chem.bonds[:, 2] == DOUBLE_BOND, :2].ravel().tolist())
            rows = [chem.row[name] for name in key[1]]
            kinds[key] = ([any(chem.leaving[j] and chem.atoms[j] not in key[1] for j in chem.neighbours[row])
                           for row in rows], [row in ends for row in rows])
        open_[start:stop], double[start:stop] = kinds[key]
        known[start:stop] = True
    oxygen = draft.elements == "O"
    return open_, known & (oxygen & ~double | np.isin(draft.elements, ["N", "S"]))


def _imine(draft: Draft, carbon: int, nitrogen: int) -> bool:
    """Return whether a nitrogen replaces the oxygen of an aldehyde, as in a Schiff base of lysine."""
    residue = int(draft.residue[carbon])
    chem = draft.residues[residue].component
    if chem is None or draft.elements[carbon] != "C" or draft.names[nitrogen] != "NZ":
        return False
    names = draft.names[draft.residue == residue].tolist()
    row = chem.row[str(draft.names[carbon])]
    return any(order == DOUBLE_BOND and row in (a, b) and chem.elements[a + b - row] == "O"
               and chem.atoms[a + b - row] not in names for a, b, order in chem.bonds.tolist())


def all_bonds(draft: Draft) -> Integers:
    """Return the bonds (B, 3) of heavy atoms, within residues (by the dictionary) and between them, with orders."""
    starts = draft.starts
    results: list[Integers] = []
    kinds: dict[tuple[str, tuple[str, ...]], Integers] = {}
    for residue, start, stop in zip(draft.residues, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        chem = residue.component
        if chem is None:
            continue
        key = chem.name, tuple(draft.names[start:stop].tolist())
        if key not in kinds:
            place = {name: n for n, name in enumerate(key[1])}
            kinds[key] = np.array([
                (place[chem.atoms[a]], place[chem.atoms[b]], order)
                for a, b, order in chem.bonds.tolist()
                if chem.atoms[a] in place and chem.atoms[b] in place], np.int64).reshape(-1, 3)
        results.append(kinds[key] + np.array([start, start, 0]))
    order = [DOUBLE_BOND if _imine(draft, a, b) or _imine(draft, b, a) else SINGLE_BOND for a,
             b in draft.links.tolist()]
    links = np.concatenate([draft.links, np.array(order, np.int64).reshape(-1, 1)], axis=1)
    return np.concatenate([*results, links]).astype(np.int64)
