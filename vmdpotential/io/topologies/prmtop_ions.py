"""Ions of several atoms as a prmtop defines them: what another prmtop takes over, term by term and digit by digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential.errors import InputError, listed
from vmdpotential.io.files.recognise import PRMTOP
from vmdpotential.io.files.text import first_bytes, held, suffix
from vmdpotential.io.topologies.prmtop import AMBER_CHARGE, Sections
from vmdpotential.io.topologies.prmtop_nonbonded import SCEE, SCNB, read_nonbonded
from vmdpotential.molecule.nonbonded import Nonbonded, lennard_jones
from vmdpotential.molecule.structure import Floats, Integers, Structure

#: Terms: atoms in each, and their numbers' places in POINTERS; atoms are stored as 3 times their index.
TERMS = {
    "BONDS_INC_HYDROGEN": (2, (2,)), "BONDS_WITHOUT_HYDROGEN": (2, (12, 3)),
    "ANGLES_INC_HYDROGEN": (3, (4,)), "ANGLES_WITHOUT_HYDROGEN": (3, (13, 5)),
    "DIHEDRALS_INC_HYDROGEN": (4, (6,)), "DIHEDRALS_WITHOUT_HYDROGEN": (4, (14, 7)),
}  # fmt: skip
#: Their parameters by how many atoms they have: the number's place in POINTERS, and sections with what is the default.
PARAMETERS: dict[int, tuple[int, dict[str, float | None]]] = {
    2: (15, {"BOND_FORCE_CONSTANT": None, "BOND_EQUIL_VALUE": None}),
    3: (16, {"ANGLE_FORCE_CONSTANT": None, "ANGLE_EQUIL_VALUE": None}),
    4: (17, {"DIHEDRAL_FORCE_CONSTANT": None, "DIHEDRAL_PERIODICITY": None, "DIHEDRAL_PHASE": None,
             "SCEE_SCALE_FACTOR": SCEE, "SCNB_SCALE_FACTOR": SCNB}),
}
#: What of an atom is the definition's.
_ATOMS = ("ATOMIC_NUMBER", "MASS", "AMBER_ATOM_TYPE", "RADII", "SCREEN", "ATOM_ELEMENT")

#: e, by which charges of a template may be other ones: files have few digits.
_CHARGE = 1e-3

_CURE = "give a prmtop of the ion alone, as tleap writes it"


@dataclass(frozen=True, eq=False)
class Defined:
    """An ion of A atoms in a prmtop.

    Parameters
    ----------
    sections : Sections
    atoms : slice
        Where it is there.
    terms : mapping of (T, n + 1) int64
        By the names of :data:`TERMS`: n atoms, from 0 in the ion, and the number of the parameters, from 0.
    signs : mapping of (T, n) int64
        -1 where the sign of an atom says something.
    nonbonded : Nonbonded
        Of the whole prmtop.
    exclusions : (E, 2) int64
        Pairs of its atoms, from 0, the lower first.
    """

    sections: Sections
    atoms: slice
    terms: dict[str, Integers]
    signs: dict[str, Integers]
    nonbonded: Nonbonded
    exclusions: Integers

    @property
    def types(self) -> Integers:
        """(A,) numbers of its atoms' Lennard-Jones."""
        return self.nonbonded.types[self.atoms]

    @property
    def charges(self) -> Floats:
        """(A,) e"""
        return self.sections.floats("CHARGE", len(self.nonbonded.types))[self.atoms] / AMBER_CHARGE

    def of_atoms(self, name: str) -> Any:
        """Return the values (A,) of a section of atoms, None where they are not the definition's."""
        if name not in _ATOMS or name not in self.sections:
            return None
        count = len(self.nonbonded.types)
        if name in ("AMBER_ATOM_TYPE", "ATOM_ELEMENT"):
            return self.sections.words(name, count, blank=True)[self.atoms]
        return self.sections.floats(name, count)[self.atoms]

    def used(self, size: int) -> Integers:
        """Return the numbers, from 0, of the parameters that terms of so many atoms have."""
        return np.unique(np.concatenate([self.terms[name][:, -1] for name, (n, _) in TERMS.items() if n == size]))

    def parameters(self, name: str, size: int, default: float | None) -> Any:
        """Return the values of a section of parameters that are used."""
        if default is not None and name not in self.sections:
            return np.full(len(self.used(size)), default)
        number = self.sections.integers("POINTERS", None)[PARAMETERS[size][0]]
        return self.sections.floats(name, int(number))[self.used(size)]


def definition_of(structure: Structure, name: str, atoms: Sequence[str]) -> Defined:
    """Return how an ion of several atoms is defined by the files attached to a structure, or by its own prmtop.

    Raises
    ------
    InputError
        When no prmtop among them has a residue that is called so and has these atoms, or for one that cannot be taken
        over whole.
    """
    topology = structure.topology
    assert topology is not None
    own = topology.extra["file"]
    for path in (*topology.extra.get("ion_parameters", ()), own):
        if suffix(path) == ".xml":  # which OpenMM may have itself
            continue
        if suffix(path) in PRMTOP or first_bytes(held(path), 20).startswith((b"%VERSION", b"%FLAG")):
            result = _read(held(path), name, list(atoms))
            if result is not None:
                return result
    raise InputError(f"{own}: no prmtop defines the ion {name} with the atoms {listed(atoms, 80)}",
                     "give {parameters}: a prmtop of the ion alone, as tleap writes it; or write .pdb, for tleap")


def check_ion(structure: Structure, name: str, ion: Structure) -> None:
    """Raise InputError unless an ion of a template is defined, with the charges that it has there.

    Parameters
    ----------
    structure : Structure
        Which was read with a prmtop.
    name : str
        What the ion's residue is called.
    ion : Structure
        With charges.
    """
    atoms = ion.atom_names.tolist()
    present = definition_of(structure, name, atoms)
    for atom, charge, stated in zip(atoms, present.charges.tolist(), ion.known_charges.tolist(), strict=True):
        if abs(charge - stated) > _CHARGE:
            raise InputError(f"{present.sections.path}: the charge of {name} {atom} is {charge:g} e, and {stated:g} e "
                             "in the template", "take the charges of the prmtop")


def _read(path: Path, name: str, atoms: list[str]) -> Defined | None:
    sections = Sections(path)
    pointers = sections.integers("POINTERS", None)
    count, residues = int(pointers[0]), int(pointers[11])
    labels, names = sections.words("RESIDUE_LABEL", residues), sections.words("ATOM_NAME", count)
    starts = sections.integers("RESIDUE_POINTER", residues) - 1
    ends = np.append(starts[1:], count)
    first = next((int(start) for start, end in zip(starts[labels == name], ends[labels == name], strict=True)
                  if names[start:end].tolist() == atoms), None)
    if first is None:
        return None
    if any(section.startswith(("CHARMM_", "CMAP_", "CTITLE")) for section in sections.by_name):
        raise InputError(f"{path}: has terms of CHARMM's kind, which are not taken over", _CURE)
    terms, signs = {}, {}
    for kind, (size, places) in TERMS.items():
        rows = sections.integers(kind, int(pointers[places[0]]) * (size + 1)).reshape(-1, size + 1)
        there = np.abs(rows[:, :size]) // 3 - first
        inside = (there >= 0) & (there < len(atoms))
        if (inside.any(1) & ~inside.all(1)).any():
            raise InputError(f"{path}: the residue {name} is bound to others", _CURE)
        keep = inside.all(1)
        terms[kind] = np.column_stack([there[keep], rows[keep, size] - 1])
        signs[kind] = np.where(rows[keep, :size] < 0, -1, 1)
    table = read_nonbonded(path)
    used = np.unique(table.types[first : first + len(atoms)])
    sigma, epsilon = table.sigma[used], table.epsilon[used]
    mixed = lennard_jones((sigma[:, None] + sigma) / 2, np.sqrt(epsilon[:, None] * epsilon))
    for chosen, result in zip(mixed, (table.c6, table.c12), strict=True):
        if not np.allclose(result[np.ix_(used, used)], chosen, rtol=1e-4, atol=1e-12 * float(chosen.max(initial=0.0))):
            raise InputError(f"{path}: the atoms of {name} have Lennard-Jones parameters of pairs of types (NBFIX), "
                             "which are not taken over", _CURE)
    pairs = table.exclusions - first
    pairs = pairs[((pairs >= 0) & (pairs < len(atoms))).all(1)]
    return Defined(sections, slice(first, first + len(atoms)), terms, signs, table, pairs)
