"""Edit of the structure: waters are removed, and ions appended with names in the input's convention."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.names import ION_RESIDUES, Ion
from vmdpotential.molecule.selection import is_ion, is_oxygen, is_water
from vmdpotential.molecule.structure import ListedBonds, Structure

#: Naming conventions of ions; ``auto`` is the convention of the input.
NAMING_CONVENTIONS = ("auto", "charmm", "amber", "gromacs")

# Standard atomic weights, u (IUPAC 2021, abridged)
_WEIGHTS = """
    Li 6.94 F 18.998 Na 22.990 Mg 24.305 Al 26.982 Cl 35.45 K 39.098 Ca 40.078 Cr 51.996 Mn 54.938 Fe 55.845
    Co 58.933 Ni 58.693 Cu 63.546 Zn 65.38 Br 79.904 Rb 85.468 Sr 87.62 Y 88.906 Pd 106.42 Ag 107.87 Cd 112.41
    In 114.82 I 126.90 Cs 132.91 Ba 137.33 La 138.91 Ce 140.12 Pr 140.91 Sm 150.36 Eu 151.96 Gd 157.25 Tb 158.93
    Ho 164.93 Er 167.26 Yb 173.05 Lu 174.97 Pt 195.08 Hg 200.59 Tl 204.38 Pb 207.2
"""
_MASSES = {element: float(mass) for element, mass in re.findall(r"([A-Z][a-z]?) ([0-9.]+)", _WEIGHTS)}

#: Names of residue and atom in Amber's atomic_ions.lib, which tleap reads, if they are not those of the PDB below.
_AMBER = {"SOD": "Na+", "POT": "K+", "CLA": "Cl-", "YT3": "Y", "ER3": "Er"}
#: Names in the PDB, which GROMACS and Amber use too, if CHARMM's name differs.
_COMPONENTS = {
    "LIT": "LI", "SOD": "NA", "POT": "K", "RUB": "RB", "CES": "CS", "CLA": "CL", "CAL": "CA", "BAR": "BA",
    "ZN2": "ZN", "CD2": "CD",
}  # fmt: skip


class IonNames(NamedTuple):
    """Names and properties with which an atom of an ion is written; most ions have one atom."""

    residue: str
    atom: str
    type: str
    element: str
    mass: float
    charge: float


class AddedIon(NamedTuple):
    """Placed ion: residue of the water that it replaced, atoms, their positions (A, 3) in A and bonds (B, 2)."""

    water: int
    atoms: Sequence[IonNames]
    positions: Floats
    bonds: Integers


def find_ion(name: str, parameter: str) -> Ion:
    """Return the ion for a name that any of the known programs uses.

    Raises
    ------
    UsageError
        For an unknown name.
    """
    ion = ION_RESIDUES.get(name.strip().upper())
    if ion is None:
        known = ", ".join(dict.fromkeys(known.element for known in ION_RESIDUES.values()))
        raise UsageError(parameter, "is not a known ion", f"choose one of {known}, in any program's name such as SOD, "
                         "NA or Na+", value=name)
    return ion


def convention_of(structure: Structure) -> str:
    """Return the naming convention of a structure, from its topology or else from the name of its waters."""
    topology = structure.topology
    if topology is not None and topology.source in ("psf", "prmtop"):
        return "charmm" if topology.source == "psf" or topology.extra.get("chamber") else "amber"
    waters = structure.residue_names[is_water(structure)]
    first = str(waters[0]).upper() if len(waters) else ""
    if first.startswith("TIP"):
        return "charmm"
    return "amber" if first == "WAT" else "gromacs"


def name_ion(structure: Structure, name: str, parameter: str, convention: str = "auto") -> IonNames:
    """Return the names with which an ion is written into a structure.

    With ``auto`` these are the names of an ion of the same kind in the structure, or else those of the structure's
    convention.

    Parameters
    ----------
    structure : Structure
    name : str
        Name of the ion in any program (``K``, ``K+``, ``POT``).
    parameter : str
        Name of the parameter, for messages.
    convention : str
        One of :data:`NAMING_CONVENTIONS`.

    Raises
    ------
    UsageError
        If the ion or the convention is unknown.
    """
    ion = find_ion(name, parameter)
    mass = _MASSES[ion.element]
    if convention == "auto":
        signed = charmm = False
        defined = {} if structure.topology is None else structure.topology.extra.get("ions", {})
        if ion in defined:  # by the topology
            residue, atom_name, kind, defined_mass = defined[ion]
            return IonNames(residue, atom_name, kind, ion.element, defined_mass or mass, ion.charge)
        for atom in np.flatnonzero(is_ion(structure)).tolist():
            residue = str(structure.residue_names[atom])
            other = ION_RESIDUES[residue.upper()]
            if other == ion:
                return _existing_names(structure, atom, ion, mass)
            charmm |= residue in _COMPONENTS
            signed |= residue in (f"{other.element.upper()}+", f"{other.element.upper()}-")
        convention = "charmm" if charmm else convention_of(structure)
        if signed and convention == "gromacs" and abs(ion.charge) == 1:  # its older force fields: NA+, CL-
            symbol = ion.element.upper()
            return IonNames(f"{symbol}{'+-'[ion.charge < 0]}", symbol, symbol, ion.element, mass, ion.charge)
    if convention == "charmm":
        kind = "CAD" if ion.residue == "CD2" else ion.atom
        return IonNames(ion.residue, ion.atom, kind, ion.element, mass, ion.charge)
    residue = _COMPONENTS.get(ion.residue, ion.residue)
    atom_name, kind = ion.element.upper(), residue
    if convention == "amber":
        residue = _AMBER.get(ion.residue, residue)
        atom_name = _AMBER.get(ion.residue, atom_name if ion.residue in _COMPONENTS else ion.atom)
        size = "" if abs(ion.charge) == 1 else str(abs(ion.charge))
        kind = f"{ion.element}{size}{'+' if ion.charge > 0 else '-'}"
    return IonNames(residue, atom_name, kind, ion.element, mass, ion.charge)


def _existing_names(structure: Structure, atom: int, ion: Ion, mass: float) -> IonNames:
    """Return the names of an ion in the structure, given by its atom."""
    residue, name = str(structure.residue_names[atom]), str(structure.atom_names[atom])
    kind = name
    if structure.topology is not None:
        kind = str(structure.topology.types[atom]) or name
        mass = float(structure.topology.masses[atom]) or mass
    return IonNames(residue, name, kind, ion.element, mass, ion.charge)


def water_sites(structure: Structure) -> tuple[Integers, Integers]:
    """Return the waters' residues and their oxygens.

    Returns
    -------
    residues : (W,) int64
        Rows of `structure.residue_starts`.
    oxygens : (W,) int64
        Oxygen atom of each.

    Raises
    ------
    InputError
        If there are no waters, or several share a residue.
    """
    where = structure.where
    oxygen = np.flatnonzero(is_water(structure) & is_oxygen(structure))
    if not len(oxygen):
        raise InputError(f"{where}: has no waters that ions could replace",
                         "solvate the structure first, for example by VMD's solvate, gmx solvate or tleap")
    starts = structure.residue_starts
    residue = np.searchsorted(starts, oxygen, side="right") - 1
    shared = np.flatnonzero(np.diff(residue) == 0)
    if len(shared):
        atom = int(oxygen[shared[0] + 1])
        raise InputError(
            f"{where}: atom {atom + 1} ({structure.label(atom)}) is a second oxygen in one water residue",
            "give every water a residue number of its own"
        )
    return residue.astype(np.int64), oxygen.astype(np.int64)


def check_neutral(structure: Structure, residues: Integers) -> None:
    """Raise InputError if a water among the residues is not neutral, because removing it would change the net charge.
    """
    sums = np.add.reduceat(structure.known_charges, structure.residue_starts[:-1])[residues]
    charged = np.flatnonzero(np.abs(sums) > 0.01)
    if len(charged):
        where = structure.where
        atom = int(structure.residue_starts[residues[charged[0]]])
        raise InputError(
            f"{where}: {len(charged)} waters are not neutral, the first is {structure.label(atom)} with "
            f"{sums[charged[0]]:+.3f} e", "check the charges and that no hydrogens are missing"
        )


def replace_waters(structure: Structure, residues: Integers, ions: Sequence[AddedIon]) -> Structure:
    """Return the structure without some waters and with ions appended.

    All atoms of the waters are removed, with their bonded terms. The ions are residues 1, 2, ... of a new segment
    and a new chain (segment ION, or ION2 ... if that exists). A topology gets the ions' bonds, and all angles and
    dihedrals along these bonds.

    Parameters
    ----------
    structure : Structure
        Structure with charges.
    residues : (K,) int64
        Residues of the waters, as rows of `structure.residue_starts`.
    ions : sequence of AddedIon
    """
    drop = np.zeros(structure.residue_count, bool)
    drop[residues] = True
    kept = replace(structure.take(~drop[structure.residue_of]), whole=None, whole_rows=None)
    if not ions:
        return kept
    atoms = [atom for ion in ions for atom in ion.atoms]
    count, sizes = len(atoms), [len(ion.atoms) for ion in ions]
    first = int(kept.residue_index[-1]) + 1 if len(kept) else 0
    numbers = np.repeat(np.arange(len(ions)), sizes)
    appended: dict[str, Any] = {
        "positions": np.concatenate([ion.positions for ion in ions]),
        "atom_names": [atom.atom for atom in atoms],
        "residue_names": [atom.residue for atom in atoms],
        "residue_ids": numbers + 1,
        "residue_index": numbers + first,
        "chain_ids": np.full(count, _free_chain(kept)),
        "segment_ids": np.full(count, _free_segment(kept)),
        "elements": [atom.element for atom in atoms],
        "insertion_codes": np.full(count, ""),
        "charges": [float(atom.charge) for atom in atoms],
        "hetero": np.ones(count, bool),
        "occupancies": np.ones(count),
        "b_factors": np.zeros(count),
    }
    if structure.velocities is not None:  # those of the waters' oxygens, which have similar masses
        first_atoms = structure.residue_starts[[ion.water for ion in ions]]
        appended["velocities"] = np.repeat(structure.velocities[first_atoms], sizes, axis=0)
    if structure.radii is not None:  # unknown for ions
        appended["radii"] = np.full(count, np.nan)
    arrays: dict[str, Any] = {
        field.name: np.concatenate([getattr(kept, field.name), np.asarray(appended[field.name])])
        for field in fields(kept) if field.name in appended
    }
    topology = kept.topology
    if topology is not None:
        starts = len(kept) + np.cumsum([0, *sizes])
        terms = {name: [getattr(topology, name)] for name in ("bonds", "angles", "dihedrals")}
        for ion, start in zip(ions, starts.tolist(), strict=False):
            if len(ion.bonds):
                for name, term in zip(terms, (ion.bonds, *bonded_terms(ion.bonds, len(ion.atoms))), strict=True):
                    terms[name].append(term + start)
        topology = replace(
            topology,
            types=np.concatenate([topology.types, [atom.type for atom in atoms]]),
            masses=np.concatenate([topology.masses, [atom.mass for atom in atoms]]),
            nonbonded=None,  # the structure's file has no parameters of the ions
            **dict[str, Any]({name: np.concatenate(result) for name, result in terms.items()}),
        )
    bonds = kept.listed_bonds
    if bonds is not None:
        starts = len(kept) + np.cumsum([0, *sizes])
        bonds = ListedBonds(np.concatenate([bonds.pairs, *(
            ion.bonds.reshape(-1, 2) + start for ion, start in zip(ions, starts.tolist(), strict=False))]))
    return replace(kept, topology=topology, listed_bonds=bonds, **arrays)


def bonded_terms(bonds: Integers, count: int) -> tuple[Integers, Integers]:
    """Return all angles (M, 3) and dihedrals (M, 4) along bonds (B, 2) of `count` atoms, as CHARMM generates them."""
    bonded: list[list[int]] = [[] for _ in range(count)]
    for i, j in bonds.tolist():
        bonded[i].append(j)
        bonded[j].append(i)
    angles = [(i, j, k) for j in range(count) for i in bonded[j] for k in bonded[j] if i < k]
    dihedrals = [(i, j, k, m) for j in range(count) for k in bonded[j] if j < k
                 for i in bonded[j] if i != k for m in bonded[k] if m not in (i, j)]
    return np.array(angles, np.int64).reshape(-1, 3), np.array(dihedrals, np.int64).reshape(-1, 4)


def _free_segment(structure: Structure) -> str:
    taken = set(np.unique(structure.segment_ids).tolist())
    names = ["ION", *(f"ION{n}" for n in range(2, 10)), *(f"I{n:03d}" for n in range(10, 1000))]
    return next(name for name in names if name not in taken)


def _free_chain(structure: Structure) -> str:
    taken = set(np.unique(structure.chain_ids).tolist())
    letters = "I" + string.ascii_uppercase + string.ascii_lowercase + string.digits
    names = [*letters, *(a + b for a in string.ascii_uppercase for b in string.ascii_uppercase)]
    return next((name for name in names if name not in taken), "I")
