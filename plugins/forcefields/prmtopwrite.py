"""Writing of Amber topologies (prmtop), based on the prmtop that was read.

Its sections are kept. From those that list atoms, residues, molecules or terms, removed ones are deleted, and the added
ions are appended. Format: ambermd.org/FileFormats.php.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Integers
from vmdpotential.errors import InputError, UsageError
from vmdpotential.io.files import columns
from vmdpotential.io.files.text import read_text, write_bytes
from vmdpotential.io.structures import StructureWriter
from vmdpotential.io.topologies.prmtop import AMBER_CHARGE, CHAMBER_CHARGE, Sections
from vmdpotential.molecule.names import ION_RESIDUES, Ion
from vmdpotential.molecule.nonbonded import lennard_jones
from vmdpotential.molecule.selection import is_ion
from vmdpotential.molecule.structure import Structure

from .ion_parameters import PARAMETERS_HINT, lennard_jones_of
from .prmtop_ions import TERM_PARAMETERS, TERM_SECTIONS, IonDefinition, check_ion, definition_of
from .prmtop_nonbonded import listed_exclusions, read_nonbonded

#: Sections with a value for each atom, and the value for an ion of a kind that is not in the prmtop; None if it depends
#: on the ion.
_ATOMS: dict[str, Any] = {
    "ATOM_NAME": None, "CHARGE": None, "ATOM_TYPE_INDEX": None, "ATOMIC_NUMBER": None, "MASS": None,
    "AMBER_ATOM_TYPE": None, "TREE_CHAIN_CLASSIFICATION": "BLA", "JOIN_ARRAY": 0, "IROTAT": 0, "RADII": 1.5,
    "SCREEN": 0.8, "ATOM_BFACTOR": 0.0, "ATOM_OCCUPANCY": 1.0, "ATOM_NUMBER": 0, "ATOM_ELEMENT": None,
}  # fmt: skip
#: Sections whose values for an added ion are its own, and not copied from an ion of the same kind.
_OWN = ("ATOM_NAME", "CHARGE", "ATOM_NUMBER", "ATOM_BFACTOR", "ATOM_OCCUPANCY")
_RESIDUES = ("RESIDUE_LABEL", "RESIDUE_NUMBER", "RESIDUE_CHAINID", "RESIDUE_ICODE")

#: Sections of terms with atoms numbered from 1: atoms in each term, and the section whose first number is their count.
_COUNTED = {
    "CHARMM_UREY_BRADLEY": (2, "CHARMM_UREY_BRADLEY_COUNT"), "CHARMM_IMPROPERS": (4, "CHARMM_NUM_IMPROPERS"),
    "CHARMM_CMAP_INDEX": (5, "CHARMM_CMAP_COUNT"), "CMAP_INDEX": (5, "CMAP_COUNT"),
}  # fmt: skip
#: Sections that do not depend on the atoms.
_KEPT = re.compile(
    r"C?TITLE|(BOND|ANGLE|DIHEDRAL)_(FORCE_CONSTANT|EQUIL_VALUE|PERIODICITY|PHASE)|SC(EE|NB)_SCALE_FACTOR|SOLTY|HBCUT"
    r"|HBOND_[AB]COEF|RADIUS_SET|IPOL|FORCE_FIELD_TYPE|CHARMM_UREY_BRADLEY_(FORCE_CONSTANT|EQUIL_VALUE)"
    r"|CHARMM_NUM_IMPR_TYPES|CHARMM_IMPROPER_(FORCE_CONSTANT|PHASE)|(CHARMM_)?CMAP_(RESOLUTION|PARAMETER_\d+)"
    r"|LENNARD_JONES_[CD]COEF")
_COEFFICIENTS = re.compile(r"LENNARD_JONES_(14_)?([AB])COEF")

_HINT = "write .pdb, for tleap"

Fields = NDArray[np.bytes_]


class _Format(NamedTuple):
    """Format of a section's values: number on a line, kind (text A, integer I, real), width and decimals."""

    per_line: int
    kind: str
    width: int
    decimals: int

    @classmethod
    def of(cls, sections: Sections, name: str) -> _Format:
        per_line, width = sections.layout(name)
        match = re.search(r"([a-zA-Z])[0-9]+(?:\.([0-9]+))?", sections.by_name[name].format)
        assert match is not None
        return cls(per_line, match[1].upper(), width, int(match[2] or 0))

    def fields(self, values: Any) -> Fields:
        """Return values as fields."""
        if self.kind == "A":
            texts = [str(value).ljust(self.width) for value in values]
        elif self.kind == "I":
            letters = columns.integers(np.asarray(values, np.int64), self.width)
            return np.ascontiguousarray(letters).view(f"S{self.width}").reshape(-1)
        else:
            texts = [f"{value:{self.width}.{self.decimals}{self.kind}}" for value in np.asarray(values).tolist()]
        wide = [text for text in texts if len(text) > self.width]
        if wide:
            raise InputError(f"'{wide[0].strip()}' does not fit the {self.width} columns of a prmtop's field")
        return np.array(texts, dtype=f"S{self.width}")

    def body(self, fields: Fields) -> bytes:
        """Return fields as lines; without fields, one empty line."""
        return columns.lines(np.frombuffer(fields.tobytes(), np.uint8).reshape(len(fields), self.width), self.per_line)


def write_prmtop(structure: Structure, path: Path) -> None:
    """Write the prmtop that a structure was read with, for the atoms that it has now.

    Added ions have the type of ions of the same kind in the prmtop. If there are none, their Lennard-Jones parameters
    are from the files in ``ion_parameters`` of the topology's `extra`, by the Lorentz-Berthelot rules.
    All terms of polyatomic ions are copied from a prmtop among these files, or from the one that was read.

    Raises
    ------
    InputError
        When parts of residues are missing, other atoms than ions were added, or an ion has no parameters.
    """
    write_bytes(path, _Edit(structure).parts())


class _Edit:
    """A prmtop with the changes that are made to its sections."""

    def __init__(self, structure: Structure) -> None:
        topology = structure.topology
        assert topology is not None
        self.structure = structure
        self.path: Path = topology.extra["file"]
        self.rows: Integers = topology.extra["rows"]
        self.sections = Sections(self.path)
        self.pointers = self.sections.integers("POINTERS", None).copy()
        self.old, kept = int(self.pointers[0]), len(self.rows)
        self.count = len(structure)
        self.added = slice(kept, self.count)
        starts = self.sections.integers("RESIDUE_POINTER", int(self.pointers[11])) - 1
        sizes = np.diff(starts, append=self.old)
        remaining = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[self.rows], minlength=len(sizes))
        if ((remaining > 0) & (remaining < sizes)).any():
            raise InputError(f"{self.path}: parts of its residues are missing, so no prmtop can be written")
        self.first = starts
        self.residues = np.flatnonzero(remaining)
        self.sizes = np.concatenate([sizes[self.residues], np.diff(structure.residue_starts)[len(self.residues):]])
        if len(self.sizes) != structure.residue_count:
            raise InputError(f"{self.path}: parts of its residues are missing, so no prmtop can be written")
        self.polyatomic = self._polyatomic()
        self.new = np.full(self.old + 1, -1)  # new index of each old atom, -1 if it was removed; the last means "none"
        self.new[self.rows] = np.arange(kept)
        self.changed: dict[str, bytes] = {}
        self.like = self._alike(sizes)
        self._refuse()
        self._edit_atoms()
        self._edit_terms()
        self._edit_molecules()
        self._put("POINTERS", self.pointers)

    def _polyatomic(self) -> list[tuple[int, str, IonDefinition]]:
        """Return the first atom, the name and the definition of each added polyatomic ion."""
        s, result = self.structure, list[tuple[int, str, IonDefinition]]()
        defined: dict[str, IonDefinition] = {}
        for start, size in zip(s.residue_starts[len(self.residues):-1].tolist(),
                               self.sizes[len(self.residues):].tolist(), strict=True):
            name = str(s.residue_names[start])
            if size == 1 and name.upper() in ION_RESIDUES:
                continue
            if name not in defined:
                defined[name] = definition_of(s, name, s.atom_names[start:start + size].tolist())
            result.append((start, name, defined[name]))
        return result

    def parts(self) -> Iterator[bytes]:
        """Yield the parts of the file."""
        for part in re.split(rb"(?m)^(?=%FLAG)", read_text(self.path)):
            match = re.match(rb"%FLAG\s+(\S+)[^\n]*\n(?:%[^\n]*\n)*", part)
            body = self.changed.get(match[1].decode("latin-1")) if match else None
            yield part if match is None or body is None else match[0] + body

    def _alike(self, sizes: Integers) -> Integers:
        """Return for each added atom an atom of the prmtop that is the same monatomic ion, or -1."""
        labels = self.sections.words("RESIDUE_LABEL", len(sizes))
        present: dict[Ion, int] = {}
        for residue in np.flatnonzero(sizes == 1).tolist():
            ion = ION_RESIDUES.get(str(labels[residue]).upper())
            if ion is not None:
                present.setdefault(ion, int(self.first[residue]))
        ions = [ION_RESIDUES.get(str(name).upper()) for name in self.structure.residue_names[self.added]]
        return np.array([-1 if ion is None else present.get(ion, -1) for ion in ions], np.int64)

    def _refuse(self) -> None:
        """Raise InputError for content that would be lost or wrong in the new file."""
        known = {*_ATOMS, *_RESIDUES, *TERM_SECTIONS, *_COUNTED, *(count for _, count in _COUNTED.values()), "POINTERS",
                 "RESIDUE_POINTER", "NUMBER_EXCLUDED_ATOMS", "EXCLUDED_ATOMS_LIST", "NONBONDED_PARM_INDEX",
                 "SOLVENT_POINTERS", "ATOMS_PER_MOLECULE", "BOX_DIMENSIONS"}
        for name, section in self.sections.by_name.items():
            if name not in known and not _KEPT.fullmatch(name) and not _COEFFICIENTS.fullmatch(name):
                raise InputError(f"{self.path}: its section {name} (line {section.line}) is not understood and would "
                                 "be lost", _HINT)
        if len(self.pointers) > 29 and self.pointers[29]:
            raise InputError(f"{self.path}: has a water cap, which is not supported", _HINT)

    def _fields(self, name: str, count: int) -> Fields:
        fields = self.sections.fields(name, count)
        if _Format.of(self.sections, name).kind != "A" and len(b" ".join(fields.tolist()).split()) != count:
            line = self.sections.by_name[name].line
            raise InputError(f"{self.path}: section {name} (line {line}) is not in the columns of its format",
                             "write it again")
        return fields

    def _put(self, name: str, values: Any, before: Fields | None = None) -> None:
        """Set the content of a section to the fields `before`, followed by values."""
        form = _Format.of(self.sections, name)
        fields = form.fields(values)
        self.changed[name] = form.body(fields if before is None else np.concatenate([before, fields]))

    def _edit_atoms(self) -> None:
        import gemmi

        s, topology = self.structure, self.structure.topology
        assert topology is not None
        unit = CHAMBER_CHARGE if "CTITLE" in self.sections else AMBER_CHARGE
        values = {
            "ATOM_NAME": s.atom_names[self.added], "CHARGE": s.known_charges[self.added] * unit,
            "ATOMIC_NUMBER": [gemmi.Element(str(symbol)).atomic_number for symbol in s.elements[self.added]],
            "MASS": topology.masses[self.added], "AMBER_ATOM_TYPE": topology.types[self.added],
            "ATOM_ELEMENT": s.elements[self.added], "ATOM_TYPE_INDEX": self._types(),
        }
        for name, default in _ATOMS.items():
            if name not in self.sections:
                continue
            form, fields = _Format.of(self.sections, name), self._fields(name, self.old)
            new = form.fields(values.get(name, np.full(len(self.like), default)))
            for start, _, definition in self.polyatomic:
                defined = definition.of_atoms(name)
                if defined is not None:
                    new[start - self.added.start:][:len(defined)] = form.fields(defined)
            if name not in _OWN:
                alike = self.like >= 0
                new[alike] = fields[self.like[alike]]
            self.changed[name] = form.body(np.concatenate([fields[self.rows], new]))
        first = s.residue_starts[len(self.residues):-1]
        chains = np.where(s.chain_ids == "", "*", s.chain_ids)[first]
        of_residues: list[Any] = [s.residue_names[first], s.residue_ids[first], chains, np.full(len(first), "")]
        for name, new_values in zip(_RESIDUES, of_residues, strict=True):
            if name in self.sections:
                self._put(name, new_values, self._fields(name, len(self.first))[self.residues])
        self._put("RESIDUE_POINTER", np.cumsum(self.sizes) - self.sizes + 1)
        self.pointers[0], self.pointers[11], self.pointers[28] = self.count, len(self.sizes), self.sizes.max()
        if len(self.pointers) > 30 and self.pointers[30]:  # extra points
            self.pointers[30] = (topology.masses == 0).sum()

    def _types(self) -> Integers:
        """Return the types of the added atoms, from 1, and extend the tables by types that the prmtop lacks."""
        kinds = int(self.pointers[1])
        of_ions: Integers = self.sections.integers("ATOM_TYPE_INDEX", self.old)[self.like]
        keys: list[Ion | str | None] = [ION_RESIDUES.get(str(name).upper())
                                        for name in self.structure.residue_names[self.added]]
        values: dict[str, tuple[float, float]] = {}
        for start, name, definition in self.polyatomic:
            for position, kind in enumerate(definition.types.tolist(), start - self.added.start):
                keys[position] = key = f"{name} {kind}"
                values[key] = float(definition.nonbonded.sigma[kind]), float(definition.nonbonded.epsilon[kind])
        missing = list(dict.fromkeys(key for key, row in zip(keys, self.like, strict=True) if row < 0))
        if not missing:
            return of_ions
        if any(f"LENNARD_JONES_{letter}COEF" in self.sections for letter in "CD"):
            raise InputError(f"{self.path}: has 12-6-4 terms, but none for the added ions", _HINT)
        single = [key for key in missing if isinstance(key, Ion)]
        sigma, epsilon = lennard_jones_of(self.structure, single) if single else (np.zeros(0), np.zeros(0))
        missing = [*single, *values]
        sigma, epsilon = (np.concatenate([of, [pair[n] for pair in values.values()]])
                          for n, of in enumerate((sigma, epsilon)))
        table = read_nonbonded(self.path)
        sigma, epsilon = np.concatenate([table.sigma, sigma]), np.concatenate([table.epsilon, epsilon])
        number = kinds + len(missing)
        index = np.zeros((number, number), np.int64)
        index[:kinds, :kinds] = self.sections.integers("NONBONDED_PARM_INDEX", kinds**2).reshape(kinds, kinds)
        rows, others = np.tril_indices(number)
        new = rows >= kinds
        rows, others = rows[new], others[new]
        index[rows, others] = index[others, rows] = rows * (rows + 1) // 2 + others + 1
        self._put("NONBONDED_PARM_INDEX", index.reshape(-1))
        c6, c12 = lennard_jones((sigma[rows] + sigma[others]) / 2, np.sqrt(epsilon[rows] * epsilon[others]))
        for name in self.sections.by_name:
            match = _COEFFICIENTS.fullmatch(name)
            if match:
                self._put(name, c12 if match[2] == "A" else c6, self._fields(name, kinds * (kinds + 1) // 2))
        self.pointers[1] = number
        number_of = {key: kinds + 1 + n for n, key in enumerate(missing)}
        return np.array([number_of.get(key, row) for key, row in zip(keys, of_ions, strict=True)], np.int64)

    def _add_parameters(self) -> dict[tuple[str, int], dict[int, int]]:
        """Add the bonded parameters of polyatomic ions.

        Returns, by name of the ion and number of atoms in a term, their new numbers, from 1, for their numbers in the
        definition, from 0.
        """
        new_numbers: dict[tuple[str, int], dict[int, int]] = {}
        definitions = {name: definition for _, name, definition in self.polyatomic}
        for size, (place, sections) in TERM_PARAMETERS.items():
            old = count = int(self.pointers[place])
            for name, definition in definitions.items():
                used = definition.used(size).tolist()
                new_numbers[name, size] = {kind: count + 1 + n for n, kind in enumerate(used)}
                count += len(used)
            if count == old:
                continue
            self.pointers[place] = count
            for section, default in sections.items():
                values = np.concatenate([definition.parameters(section, size, default)
                                         for definition in definitions.values()])
                if section in self.sections:
                    self._put(section, values, self._fields(section, old))
                elif default is None or (values != default).any():
                    raise InputError(f"{self.path}: has no section {section}, which an ion needs", _HINT)
        return new_numbers

    def _edit_terms(self) -> None:
        new_numbers = self._add_parameters()
        for name, (size, places) in TERM_SECTIONS.items():
            terms = self.sections.integers(name, int(self.pointers[places[0]]) * (size + 1)).reshape(-1, size + 1)
            atoms = self.new[np.abs(terms[:, :size]) // 3]
            keep = (atoms >= 0).all(1)
            atoms, signs = atoms[keep], np.where(terms[keep, :size] < 0, -1, 1)
            if size == 4:  # negative third or fourth atoms mean that there is no 1-4 pair, or that it is an improper
                backwards = (atoms[:, 2:] == 0).any(1)  # 0 cannot have a sign
                atoms[backwards] = atoms[backwards, ::-1]
            rows = [np.column_stack([3 * atoms * signs, terms[keep, size]])]
            for start, ion, definition in self.polyatomic:
                defined = definition.terms[name]
                kinds = np.array([new_numbers[ion, size][kind] for kind in defined[:, size].tolist()], np.int64)
                rows.append(np.column_stack([3 * (start + defined[:, :size]) * definition.signs[name], kinds]))
            self._put(name, np.concatenate(rows).reshape(-1))
            self.pointers[list(places)] = sum(map(len, rows))
        for name, (size, count) in _COUNTED.items():
            if name in self.sections:
                counts = self.sections.integers(count, None).copy()
                terms = self.sections.integers(name, int(counts[0]) * (size + 1)).reshape(-1, size + 1)
                atoms = self._renumbered(name, terms[:, :size])
                keep = (atoms >= 0).all(1)
                self._put(name, np.column_stack([atoms + 1, terms[:, size]])[keep].reshape(-1))
                counts[0] = keep.sum()
                self._put(count, counts)
        owners, partners = self.new[listed_exclusions(self.sections, self.old, int(self.pointers[10]))].T
        keep = (owners >= 0) & (partners >= 0)
        pairs = np.concatenate([np.column_stack([owners[keep], partners[keep]]),
                                *(start + definition.exclusions for start, _, definition in self.polyatomic)])
        owners, partners = pairs[:, 0], pairs[:, 1] + 1
        # the list of an atom without exclusions is a single 0
        alone = np.flatnonzero(np.bincount(owners, minlength=self.count) == 0)
        owners, partners = np.append(owners, alone), np.append(partners, np.zeros_like(alone))
        self._put("NUMBER_EXCLUDED_ATOMS", np.bincount(owners, minlength=self.count))
        self._put("EXCLUDED_ATOMS_LIST", partners[np.argsort(owners, kind="stable")])
        self.pointers[10] = len(partners)

    def _renumbered(self, name: str, numbers: Integers) -> Integers:
        """Return the new indices, from 0, of atoms that a section lists by numbers from 1; -1 for removed atoms."""
        if numbers.size and not (numbers.min() >= 0 and numbers.max() <= self.old):
            line = self.sections.by_name[name].line
            raise InputError(f"{self.path}: section {name} (line {line}) lists atoms other than 1 to {self.old}")
        return self.new[numbers - 1]  # the number 0, which means none, gives the last element

    def _edit_molecules(self) -> None:
        if "SOLVENT_POINTERS" in self.sections:
            last, number, first_solvent = self.sections.integers("SOLVENT_POINTERS", 3).tolist()
            atoms = self.sections.integers("ATOMS_PER_MOLECULE", number)
            if (atoms < 0).any() or atoms.sum() != self.old:
                raise InputError(f"{self.path}: section ATOMS_PER_MOLECULE does not divide the {self.old} atoms")
            sizes = np.bincount(np.repeat(np.arange(number), atoms)[self.rows], minlength=number)
            ions = self.sizes[len(self.residues):]
            self._put("ATOMS_PER_MOLECULE", np.append(sizes[sizes > 0], ions))
            self._put("SOLVENT_POINTERS", [
                (self.residues < last).sum(), (sizes > 0).sum() + len(ions),
                (sizes[:first_solvent - 1] > 0).sum() + 1])
        cell = self.structure.cell
        if "BOX_DIMENSIONS" in self.sections and cell is not None:
            a, b, c, _, beta, _ = cell.parameters
            self._put("BOX_DIMENSIONS", [beta, a, b, c])


def check(structure: Structure, path: Path) -> None:
    """Raise UsageError for a structure that was read without a prmtop."""
    if structure.topology is None or structure.topology.source != "prmtop":
        raise UsageError(
            "", f"{path}: a prmtop cannot be written without the input's, which has the bonded terms and the "
            "Lennard-Jones parameters", "give it as {topology}, or write .psf or .pdb")


def check_ions(structure: Structure, templates: Mapping[str, Structure]) -> None:
    """Raise InputError if there are no parameters of ions, or if a polyatomic one is defined differently or nowhere."""
    assert structure.topology is not None
    if not structure.topology.extra.get("ion_parameters") and not is_ion(structure).any():
        raise InputError(f"{structure.sources[-1]}: has no ions, so it lacks their Lennard-Jones parameters",
                         PARAMETERS_HINT)
    for name, ion in templates.items():
        check_ion(structure, name, ion)


WRITER = StructureWriter(write_prmtop, check, check_ions)
