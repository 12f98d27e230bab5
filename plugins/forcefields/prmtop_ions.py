"""Polyatomic ions as defined by a prmtop, whose terms and parameters are copied exactly into another prmtop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError, listed_words
from vmdpotential.io.files.text import buffered_stream, format_suffix
from vmdpotential.io.topologies.prmtop import AMBER_CHARGE, Sections
from vmdpotential.molecule.nonbonded import Nonbonded, lennard_jones
from vmdpotential.molecule.structure import Structure

from .ion_parameters import compare_charges, is_prmtop
from .prmtop_nonbonded import SCEE, SCNB, read_nonbonded

#: Sections of terms: atoms in each term, and indices of the counts in POINTERS. Stored are 3 times the
#: indices of atoms.
TERM_SECTIONS = {
    "BONDS_INC_HYDROGEN": (2, (2,)), "BONDS_WITHOUT_HYDROGEN": (2, (12, 3)),
    "ANGLES_INC_HYDROGEN": (3, (4,)), "ANGLES_WITHOUT_HYDROGEN": (3, (13, 5)),
    "DIHEDRALS_INC_HYDROGEN": (4, (6,)), "DIHEDRALS_WITHOUT_HYDROGEN": (4, (14, 7)),
}  # fmt: skip
#: Parameters of terms by their number of atoms: index of the count in POINTERS, and sections with their default values.
TERM_PARAMETERS: dict[int, tuple[int, dict[str, float | None]]] = {
    2: (15, {"BOND_FORCE_CONSTANT": None, "BOND_EQUIL_VALUE": None}),
    3: (16, {"ANGLE_FORCE_CONSTANT": None, "ANGLE_EQUIL_VALUE": None}),
    4: (17, {"DIHEDRAL_FORCE_CONSTANT": None, "DIHEDRAL_PERIODICITY": None, "DIHEDRAL_PHASE": None,
             "SCEE_SCALE_FACTOR": SCEE, "SCNB_SCALE_FACTOR": SCNB}),
}
#: Sections of atoms whose values are copied from the definition.
_ATOMS = ("ATOMIC_NUMBER", "MASS", "AMBER_ATOM_TYPE", "RADII", "SCREEN", "ATOM_ELEMENT")

#: Largest difference, e, from the charges of a template, because files have few digits.
_CHARGE = 1e-3

_HINT = "give a prmtop of the ion alone, as tleap writes it"


@dataclass(frozen=True, eq=False)
class IonDefinition:
    """An ion of A atoms in a prmtop.

    Parameters
    ----------
    sections : Sections
        Sections of the prmtop.
    atoms : slice
        Indices of the ion's atoms in the prmtop.
    terms : mapping of (T, n + 1) int64
        By the names of :data:`TERM_SECTIONS`: n atoms, from 0 within the ion, and the number of the parameters, from 0.
    signs : mapping of (T, n) int64
        -1 for atoms with a negative sign, which is a flag, else 1.
    nonbonded : Nonbonded
        Nonbonded parameters of the whole prmtop.
    exclusions : (E, 2) int64
        Excluded pairs of the ion's atoms, from 0, the lower first.
    """

    sections: Sections
    atoms: slice
    terms: dict[str, Integers]
    signs: dict[str, Integers]
    nonbonded: Nonbonded
    exclusions: Integers

    @property
    def types(self) -> Integers:
        """Numbers, (A,), of the atoms' Lennard-Jones types."""
        return self.nonbonded.types[self.atoms]

    @property
    def charges(self) -> Floats:
        """Charges, (A,), e."""
        return self.sections.floats("CHARGE", len(self.nonbonded.types))[self.atoms] / AMBER_CHARGE

    def of_atoms(self, name: str) -> Any:
        """Return the values (A,) of a section of atoms; None if they are not copied from the definition."""
        if name not in _ATOMS or name not in self.sections:
            return None
        count = len(self.nonbonded.types)
        if name in ("AMBER_ATOM_TYPE", "ATOM_ELEMENT"):
            return self.sections.words(name, count, blank=True)[self.atoms]
        return self.sections.floats(name, count)[self.atoms]

    def used(self, size: int) -> Integers:
        """Return the numbers, from 0, of the parameters of the terms with `size` atoms."""
        return np.unique(np.concatenate([self.terms[name][:, -1] for name,
                                         (n, _) in TERM_SECTIONS.items() if n == size]))

    def parameters(self, name: str, size: int, default: float | None) -> Any:
        """Return the values in a section of parameters that the ion's terms use."""
        if default is not None and name not in self.sections:
            return np.full(len(self.used(size)), default)
        number = self.sections.integers("POINTERS", None)[TERM_PARAMETERS[size][0]]
        return self.sections.floats(name, int(number))[self.used(size)]


def definition_of(structure: Structure, name: str, atoms: Sequence[str]) -> IonDefinition:
    """Return the definition of a polyatomic ion in the files attached to a structure, or in its own prmtop.

    Raises
    ------
    InputError
        When no prmtop among them has a residue of this name with these atoms, or its definition cannot be copied
        completely.
    """
    topology = structure.topology
    assert topology is not None
    own = topology.extra["file"]
    for path in (*topology.extra.get("ion_parameters", ()), own):
        if format_suffix(path) == ".xml":  # may be the name of a file that is installed with OpenMM
            continue
        if is_prmtop(path := buffered_stream(path)):
            result = _read(path, name, list(atoms))
            if result is not None:
                return result
    raise InputError(f"{own}: no prmtop defines the ion {name} with the atoms {listed_words(atoms, 80)}",
                     "give {parameters}: a prmtop of the ion alone, as tleap writes it; or write .pdb, for tleap")


def check_ion(structure: Structure, name: str, ion: Structure) -> None:
    """Raise InputError unless a polyatomic ion is defined with the charges of its template.

    Parameters
    ----------
    structure : Structure
        A structure that was read with a prmtop.
    name : str
        Name of the ion's residue.
    ion : Structure
        The template, with charges.
    """
    definition = definition_of(structure, name, ion.atom_names.tolist())
    compare_charges(definition.sections.path, name, ion, definition.charges.tolist(), _CHARGE)


def _read(path: Path, name: str, atoms: list[str]) -> IonDefinition | None:
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
        raise InputError(f"{path}: has CHARMM's kinds of terms, which cannot be copied", _HINT)
    terms, signs = {}, {}
    for kind, (size, places) in TERM_SECTIONS.items():
        rows = sections.integers(kind, int(pointers[places[0]]) * (size + 1)).reshape(-1, size + 1)
        within_ion = np.abs(rows[:, :size]) // 3 - first
        inside = (within_ion >= 0) & (within_ion < len(atoms))
        if (inside.any(1) & ~inside.all(1)).any():
            raise InputError(f"{path}: the residue {name} is bonded to others", _HINT)
        keep = inside.all(1)
        terms[kind] = np.column_stack([within_ion[keep], rows[keep, size] - 1])
        signs[kind] = np.where(rows[keep, :size] < 0, -1, 1)
    table = read_nonbonded(path)
    used = np.unique(table.types[first : first + len(atoms)])
    sigma, epsilon = table.sigma[used], table.epsilon[used]
    mixed = lennard_jones((sigma[:, None] + sigma) / 2, np.sqrt(epsilon[:, None] * epsilon))
    for by_rule, actual in zip(mixed, (table.c6, table.c12), strict=True):
        if not np.allclose(actual[np.ix_(used, used)], by_rule, rtol=1e-4,
                           atol=1e-12 * float(by_rule.max(initial=0.0))):
            raise InputError(f"{path}: the atoms of {name} have Lennard-Jones parameters of pairs of types (NBFIX), "
                             "which cannot be copied", _HINT)
    pairs = table.exclusions - first
    pairs = pairs[((pairs >= 0) & (pairs < len(atoms))).all(1)]
    return IonDefinition(sections, slice(first, first + len(atoms)), terms, signs, table, pairs)
