"""The heavy atoms of a structure, residue by residue with their components, and the bonds between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from vmdpotential.molecule.charges import DISULFIDE
from vmdpotential.molecule.gasteiger import SINGLE
from vmdpotential.molecule.names import IONS, WATERS
from vmdpotential.molecule.structure import Floats, Integers, Names, Structure
from vmdpotential.preparation.components import AMINO_ACIDS, NUCLEOTIDES, Component, component, meant, renamed
from vmdpotential.preparation.matching import SHORTEST, TOLERANCE, matched

#: Elements of metals that coordinate more than they bind.
METALS = frozenset((
    "Li", "Na", "K", "Rb", "Cs", "Be", "Mg", "Ca", "Sr", "Ba", "Al", "Ga", "In", "Tl", "Sn", "Pb", "Bi",
    "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Y", "Zr", "Nb", "Mo", "Tc", "Ru", "Rh",
    "Pd", "Ag", "Cd", "La", "Ce", "Pr", "Nd", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu",
    "Hf", "Ta", "W", "Re", "Os", "Ir", "Pt", "Au", "Hg", "Th", "U"))
#: Note of residues that were recognised by their bonds.
RENAMED = "atoms have other names than in the Chemical Component Dictionary, and were recognised by their bonds"
#: Bonds between standard residues; others of their atoms that are near are a clash.
_STANDARD = {("C", "N"), ("O3'", "P"), ("SG", "SG"), ("CG", "NZ"), ("CD", "NZ")}


@dataclass
class Residue:
    """A residue while it is completed.

    Parameters
    ----------
    name : str
    component : Component or None
        None of waters, single atoms and what the dictionary does not have.
    source : int
        Row of the structure whose chain and number it has.
    added : list of str
        Heavy atoms that were added.
    note : str
        What a report says of it.
    """

    name: str
    component: Component | None
    source: int
    added: list[str] = field(default_factory=list)
    note: str = ""


@dataclass
class Draft:
    """Heavy atoms in the order of the structure.

    Parameters
    ----------
    names, elements : (N,) str
        The names of the dictionary, where it has the residue.
    positions : (N, 3) float64, A
    residue : (N,) int64
        Row of `residues`.
    origin : (N,) int64
        Row of the structure; -1 of an atom that was added.
    residues : list of Residue
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
        """(R + 1,) first atom of every residue, and the number of atoms."""
        return np.searchsorted(self.residue, np.arange(len(self.residues) + 1))

    def linked(self) -> list[set[str]]:
        """Return for each residue the names of its atoms that are bonded to other residues."""
        results: list[set[str]] = [set() for _ in self.residues]
        for atom in self.links.reshape(-1).tolist():
            results[self.residue[atom]].add(str(self.names[atom]))
        return results


def draft_of(structure: Structure, heavy: NDArray[np.bool_], stated: Mapping[str, Component] = MappingProxyType({})
             ) -> Draft:
    """Return the heavy atoms of a structure with their components and the bonds between residues.

    `stated` components of the user's, by the names of residues in capitals, count before those of the dictionary.
    """
    rows = np.flatnonzero(heavy)
    of_atoms = structure.residue_of
    residue, order = np.unique(of_atoms[rows], return_inverse=True)
    starts = np.searchsorted(order, np.arange(len(residue) + 1))
    names = structure.atom_names[rows].astype("<U8")
    residues = []
    known: dict[tuple[str, tuple[str, ...]], tuple[Component | None, tuple[str, ...], str]] = {}
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        part = rows[start:stop]
        name, atoms = str(structure.residue_names[part[0]]), tuple(names[start:stop].tolist())
        if (name, atoms) not in known:
            known[name, atoms] = _known(name, atoms, structure.elements[part].tolist(), structure.positions[part],
                                        stated.get(name.upper()))
        result, names[start:stop], note = known[name, atoms]
        residues.append(Residue(name, result, int(part[0]), note=note))
    draft = Draft(names, structure.elements[rows], structure.positions[rows], order.astype(np.int64), rows, residues)
    draft.links = find_links(draft)
    return draft


def _known(name: str, atoms: tuple[str, ...], elements: list[str],
           positions: Floats, stated: Component | None) -> tuple[Component | None, tuple[str, ...], str]:
    """Return the component of a residue, by its bonds where names differ, its names of the atoms, and a note."""
    if name.upper() in WATERS or (len(atoms) == 1 and name.upper() in IONS):
        return None, atoms, ""
    if stated is not None and len(atoms) == len(stated.atoms):
        names = renamed(stated, atoms) or matched(stated, elements, positions)
        if names is not None:
            return stated, names, ""
    result, note = meant(name, atoms), ""
    names = renamed(result, atoms) if result is not None else None
    if result is None and (result := component(name.upper())) is not None:
        names, note = matched(result, elements, positions), RENAMED
    if result is None or names is None or (len(result.atoms) == 1 and result.elements[0] in METALS):
        return None, atoms, ""
    return result, names, note


def find_links(draft: Draft) -> Integers:
    """Return the bonds (L, 2) between residues, by distance: peptides, nucleotides, disulfides, sugars, ligands.

    Between standard residues only bonds that polymers have are looked for, so that a clash is no bond.
    """
    import gemmi
    from scipy.spatial import cKDTree

    bonding = np.array([r.component is not None for r in draft.residues], bool)[draft.residue]
    bonding &= ~np.isin(draft.elements, list(METALS))
    rows = np.flatnonzero(bonding)
    if not len(rows):
        return np.zeros((0, 2), np.int64)
    pairs = rows[cKDTree(draft.positions[rows]).query_pairs(DISULFIDE, output_type="ndarray")]
    pairs = pairs[draft.residue[pairs[:, 0]] != draft.residue[pairs[:, 1]]]
    radii = {element: gemmi.Element(element).covalent_r for element in np.unique(draft.elements).tolist() if element}
    taken: set[tuple[int, int]] = set()
    lengths = np.linalg.norm(draft.positions[pairs[:, 0]] - draft.positions[pairs[:, 1]], axis=1)
    standard = [r.component is not None and r.component.name in AMINO_ACIDS | NUCLEOTIDES for r in draft.residues]
    results = []
    for k in np.argsort(lengths, kind="stable").tolist():
        a, b = sorted(pairs[k].tolist())
        first, second = str(draft.names[a]), str(draft.names[b])
        longest = sum(radii[str(draft.elements[n])] for n in (a, b)) + TOLERANCE
        sulphurs = first == second == "SG"
        if lengths[k] > (DISULFIDE if sulphurs else longest) or lengths[k] < SHORTEST:
            continue
        both = standard[draft.residue[a]] and standard[draft.residue[b]]
        if both and not {(first, second), (second, first)} & _STANDARD:
            continue
        # an atom of a polymer's bond has one such bond
        single = [(a, 0), (b, 0)] if both else []
        if any(key in taken for key in single):
            continue
        taken.update(single)
        results.append((a, b))
    return np.array(sorted(results), np.int64).reshape(-1, 2)


def all_bonds(draft: Draft) -> Integers:
    """Return the bonds (B, 3) of the heavy atoms, within residues by the dictionary, and between them; with orders."""
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
    links = np.concatenate([draft.links, np.full((len(draft.links), 1), SINGLE)], axis=1)
    return np.concatenate([*results, links]).astype(np.int64)
