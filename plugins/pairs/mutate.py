"""Mutants whose side chains end earlier: alanine or glycine in place of a longer side chain, in any frame.

The atoms next to the last carbon that stays, CB of alanine or CA of glycine, become its hydrogens in the same
directions, at the length of a bond; what is beyond them is left out. Nothing else moves, as in alanine scanning
(I. Massova, P. A. Kollman, J. Am. Chem. Soc. 121 (1999) 8133).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import ChargeError, InputError, UsageError, listed_words
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport, charges_and_report
from vmdpotential.molecule.elements import fill_elements
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.molecule.radii import bonded_pairs
from vmdpotential.molecule.structure import Floats, Integers, Structure
from vmdpotential.molecule.whole import WholeComplex

#: The last carbon of the side chains that residues may be mutated to, and the backbone's atoms next to it.
LAST_CARBONS = {"ALA": ("CB", {"CA"}), "GLY": ("CA", {"N", "C"})}

#: Length of the bonds of the new hydrogens, A.
CARBON_HYDROGEN = 1.09

#: Longest bond of a side chain to another residue, A.
LONGEST_LINK = 2.2

#: Mass of a hydrogen, Da.
HYDROGEN_MASS = 1.008

#: Names of the hydrogens of the last carbons, where the structure has no residue of this kind.
HYDROGENS = {"ALA": ("HB1", "HB2", "HB3"), "GLY": ("HA2", "HA3")}


@dataclass(frozen=True, eq=False)
class Mutant:
    """A structure with one residue mutated, and its positions for those of the original one.

    Parameters
    ----------
    name : str
        Such as ``A/LYS35ALA``.
    structure : Structure
        With charges.
    rows : (M,) int64
        The original atom of each atom.
    hydrogens : (H,) int64
        The mutant's atoms that have become hydrogens, at another distance from their carbon.
    carbon : int
        The original index of that carbon.
    changed, like : (K,) int64
        Atoms of the mutated residue, and the original atoms of another residue of its kind with the same names; `like`
        is empty if there is no such residue.
    together : WholeComplex, optional
        Makes the molecules of positions whole that a periodic cell splits.
    """

    name: str
    structure: Structure
    rows: Integers
    hydrogens: Integers
    carbon: int
    changed: Integers
    like: Integers
    together: WholeComplex | None = None

    def identity(self) -> tuple[object, ...]:
        """Return the values that determine the positions, for fingerprints of inputs."""
        return self.name, self.rows, self.hydrogens, self.carbon

    def __call__(self, positions: Floats, cell: Cell | None = None) -> Floats:
        """Return positions (M, 3), A, for those (N, 3) of the original structure."""
        if self.together is not None:
            positions = self.together(positions, cell)
        result: Floats = positions[self.rows]
        bonds = result[self.hydrogens] - positions[self.carbon]
        lengths = np.maximum(np.linalg.norm(bonds, axis=1, keepdims=True), 1e-9)
        result[self.hydrogens] = positions[self.carbon] + CARBON_HYDROGEN / lengths * bonds
        return result

    def terms(self, terms: Nonbonded) -> Nonbonded:
        """Return the Lennard-Jones parameters from those of the original structure.

        Raises
        ------
        InputError
            When it has no residue from which to take them.
        """
        if not len(self.like):
            kind = self.structure.residue_names[self.changed[0]]
            raise InputError(f"{self.structure.where}: no {kind} within a chain has the Lennard-Jones parameters of "
                             f"{self.name}", f"use a structure with at least one {kind}, or one without Lennard-Jones "
                             "parameters, such as a PQR file")
        types = terms.types[self.rows]
        types[self.changed] = terms.types[self.like]
        return replace(terms.take(self.rows), types=types)


def mutate_residue(structure: Structure, text: str, report: ChargeReport, parameter: str = "mutate") -> Mutant:
    """Return a mutant of a structure with charges.

    Its charges, types and radii are those of a residue of its kind in the structure, with the same names of atoms, or
    else the charges of the templates that the structure's are from.

    Parameters
    ----------
    structure : Structure
    text : str
        The residue and its new kind, CHAIN/NUMBER/NAME: ``A/35/ALA``, or ``35/ALA`` where one residue has the number.
    report : ChargeReport
        Origin of the structure's charges.
    parameter : str
        For errors.

    Raises
    ------
    UsageError
        For a text of another form, a residue that does not exist, or one that cannot be mutated in this way.
    InputError
        When there are no charges for the mutated residue.
    """
    found = re.fullmatch(r"(?:([^/]*)/)?(-?\d+[A-Za-z]?)/([A-Za-z]+)", text.strip())
    if found is None:
        raise UsageError(parameter, "name the chain, the number of a residue and its new kind, such as A/35/ALA",
                         value=text)
    chain, number, kind = found[1] or "", found[2], found[3].upper()
    if kind not in LAST_CARBONS:
        raise UsageError(parameter, f"residues can be mutated to {' or '.join(LAST_CARBONS)}, whose side chains are "
                         "parts of the others", value=text)
    rows = _residue(structure, chain, number, text, parameter)
    root, backbone = LAST_CARBONS[kind]
    names = structure.atom_names[rows]
    before = str(structure.residue_names[rows[0]])
    label = f"{chain}/{before}{number}{kind}".lstrip("/")
    if before == kind or root not in names:
        raise UsageError(parameter, f"{before} {number} is not a longer residue than {kind}", value=text)
    part = fill_elements(structure.take(rows))
    bonds = bonded_pairs(part, part.elements)
    bonds = np.concatenate([bonds, bonds[:, ::-1]])
    carbon = int(np.flatnonzero(names == root)[0])
    around = np.sort(bonds[bonds[:, 0] == carbon, 1])
    ends = around[~np.isin(names[around], list(backbone))]
    beyond = _beyond(bonds, carbon, ends, len(rows))
    if (before == "PRO" or len(ends) != len(HYDROGENS[kind]) or np.isin(names[beyond], ["N", "CA", "C", "O"]).any()
            or not (part.elements[ends] == "H").any()):
        raise UsageError(parameter, f"the side chain of {before} {number} does not end in {len(HYDROGENS[kind])} "
                         f"separate atoms of {root}", value=text)
    linked = _linked(structure, rows[np.isin(np.arange(len(rows)), ends) | beyond], rows)
    if linked is not None:
        raise UsageError(parameter, f"the side chain of {before} {number} is bonded to {structure.label(linked)}",
                         "choose another residue", value=text)
    kept = np.flatnonzero(~beyond)
    others = kept[~np.isin(kept, ends)]
    donor, hydrogens = _donor(structure, kind, set(names[others].tolist()), len(ends), rows)
    new_names = names.copy().astype("<U8")
    new_names[ends] = hydrogens
    all_rows = np.delete(np.arange(len(structure)), rows[beyond])
    changed = np.searchsorted(all_rows, rows[kept])
    like = np.array([donor[name] for name in new_names[kept].tolist()] if donor else [], np.int64)
    new = all_rows.searchsorted(rows[ends[part.elements[ends] != "H"]])
    mutated = _renamed(structure.take(all_rows), changed, kind, new_names[kept], new)
    mutated = _with_parameters(structure, mutated, changed, like, new, all_rows.searchsorted(
        rows[ends[part.elements[ends] == "H"]][0]), report, label)
    result = Mutant(label, mutated, all_rows, new, int(rows[carbon]), changed, like)
    return replace(result, structure=replace(mutated, positions=result(structure.positions)))


def _residue(structure: Structure, chain: str, number: str, text: str, parameter: str) -> Integers:
    """Return the atoms of the residue with a number, in a chain or segment if one is given."""
    numbers = np.char.add(structure.residue_ids.astype(np.str_), structure.insertion_codes)
    rows = np.flatnonzero(numbers == number)
    if chain:
        rows = rows[(structure.chain_ids[rows] == chain) | (structure.segment_ids[rows] == chain)]
    residues = np.unique(structure.residue_index[rows])
    if len(residues) != 1:
        where = sorted(set(structure.chain_ids[rows].tolist()) | set(structure.segment_ids[rows].tolist()) - {""})
        raise UsageError(parameter, "there is no such residue" if not len(residues) else
                         f"{len(residues)} residues have this number: add one of the chains {listed_words(where, 60)}",
                         value=text)
    return rows


def _beyond(bonds: Integers, carbon: int, ends: Integers, count: int) -> NDArray[np.bool_]:
    """Return which of the residue's atoms are beyond the ends of the shortened side chain."""
    reached = np.zeros(count, bool)
    seen, new = {carbon, *ends.tolist()}, set(ends.tolist())
    while new:
        found = set(bonds[np.isin(bonds[:, 0], list(new)), 1].tolist()) - seen
        reached[list(found)] = True
        seen, new = seen | found, found
    return reached


def _linked(structure: Structure, side: Integers, own: Integers) -> int | None:
    """Return an atom of another residue to which heavy atoms of a side chain are bonded, or None."""
    elements = fill_elements(structure).elements
    heavy = np.delete(np.arange(len(structure)), own)
    heavy = heavy[elements[heavy] != "H"]
    for atom in side[elements[side] != "H"].tolist():
        apart = np.linalg.norm(structure.positions[heavy] - structure.positions[atom], axis=1)
        if len(apart) and apart.min() < LONGEST_LINK:
            return int(heavy[apart.argmin()])
    return None


def _donor(structure: Structure, kind: str, names: set[str], count: int, own: Integers
           ) -> tuple[dict[str, int], list[str]]:
    """Return the atoms of a residue of a kind by their names, and the names of the hydrogens that it has in addition.

    There are no atoms if no residue of the structure has the names and this number of hydrogens.
    """
    candidates = np.flatnonzero(structure.residue_names == kind)
    for residue in np.unique(structure.residue_index[candidates]).tolist():
        rows = candidates[structure.residue_index[candidates] == residue]
        found = dict(zip(structure.atom_names[rows].tolist(), rows.tolist(), strict=True))
        more = sorted(found.keys() - names)
        if names <= found.keys() and len(more) == count and not np.isin(rows, own).any():
            return found, more
    return {}, list(HYDROGENS[kind])


def _renamed(structure: Structure, changed: Integers, kind: str, names: NDArray[np.str_], new: Integers) -> Structure:
    """Return a structure with the names of a residue and its atoms changed, and new hydrogens."""
    residues, atoms, elements = (values.astype("<U8") for values in (
        structure.residue_names, structure.atom_names, fill_elements(structure).elements))
    residues[changed], atoms[changed], elements[new] = kind, names, "H"
    return replace(structure, residue_names=residues, atom_names=atoms, elements=elements)


def _with_parameters(structure: Structure, mutated: Structure, changed: Integers, like: Integers, new: Integers,
                     hydrogen: int, report: ChargeReport, label: str) -> Structure:
    """Return a mutant with charges, radii and types; `hydrogen` is another one of the same carbon."""
    charges, radii, topology = mutated.known_charges.copy(), mutated.radii, mutated.topology
    if len(like):
        charges[changed] = structure.known_charges[like]
    else:
        charges[changed] = _template_charges(mutated, changed, report, label)[changed]
    if radii is not None:
        radii = radii.copy()
        radii[new] = radii[hydrogen]
    if topology is not None:
        types, masses = topology.types.copy(), topology.masses.copy()
        if len(types):
            types[new] = types[hydrogen]
        if len(masses):
            masses[new] = HYDROGEN_MASS
        topology = replace(topology, types=types, masses=masses, nonbonded=None)
    return replace(mutated, charges=charges, radii=radii, topology=topology)


def _template_charges(mutated: Structure, changed: Integers, report: ChargeReport, label: str) -> Floats:
    needed = np.zeros(len(mutated), bool)
    needed[changed] = True
    kind = mutated.residue_names[changed[0]]
    lacking = InputError(f"{mutated.where}: no {kind} within a chain has the charges of {label}",
                         f"use a structure with at least one {kind}, or without charges of its own")
    if not report.templates:
        raise lacking
    try:
        bare = replace(mutated, charges=None, topology=None)
        return charges_and_report(bare, report.source, needed=needed)[0].known_charges
    except ChargeError:
        raise lacking from None
