"""GROMACS topologies (.top): reading, and writing again with other numbers of molecules.

The written text is that of the file that was read, with its ``[ molecules ]`` changed and, if necessary, an
``#include`` of the force field's ions added.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from vmdpotential.arrays import Integers
from vmdpotential.errors import InputError, UsageError, listed_words
from vmdpotential.io.files.hidden import final_folder
from vmdpotential.io.files.text import BufferedStream, buffered_stream, read_text, write_bytes
from vmdpotential.io.structures import StructureWriter
from vmdpotential.molecule.names import ION_RESIDUES, Ion
from vmdpotential.molecule.structure import Structure

from . import gromacs_folder, mdanalysis_topologies
from .ion_parameters import compare_charges

_SECTION = re.compile(r"\[\s*(\S+)\s*\]")
_ENTRY = re.compile(r"(\s*\S+\s+)([0-9]+)\b")
_INCLUDE = re.compile(r"""(\s*#\s*include\s+["'<])([^"'>]+)(["'>].*)""")

#: Largest difference, e, between the charge of an ion's atom and that in its template, from rounding.
_CHARGE = 0.002


@dataclass(eq=False)
class Molecule:
    """A ``[ moleculetype ]``: its name, properties of its atoms, and the five atoms, from 1, of each cross-term."""

    name: str
    numbers: list[str] = field(default_factory=list)
    residues: list[str] = field(default_factory=list)
    atoms: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    charges: list[str] = field(default_factory=list)
    masses: list[str] = field(default_factory=list)
    cross_terms: list[list[int]] = field(default_factory=list)

    @property
    def ion(self) -> Ion | None:
        """The monatomic ion that this molecule is, with its full charge; None for other molecules."""
        if len(self.atoms) != 1:
            return None
        for name in (self.name, self.residues[0], self.atoms[0]):
            ion = ION_RESIDUES.get(name.upper())
            if ion is not None and abs(_number(self.charges[0], ion.charge) - ion.charge) < 1e-3:
                return ion
        return None


class _Entry(NamedTuple):
    """An entry of ``[ molecules ]``: a molecule, its number of copies, and the line, from 0, in the .top itself."""

    molecule: Molecule
    number: int
    line: int


@dataclass
class GromacsTopology:
    """The molecules of a .top.

    Parameters
    ----------
    path : Path
        The file.
    type_charges : dict
        Charges of atom types by name.
    molecules : dict
        Molecule types by name, including those of :attr:`include`.
    entries : list
        The entries of ``[ molecules ]``.
    include : str
        Name by which the .top could include its force field's ions, such as ``amber99sb.ff/ions.itp``; empty if it
        already includes them, or the force field has no such file.
    included : set of str
        Names of the molecule types in :attr:`include`.
    unfit : InputError or None
        The reason why the .top cannot be written with other numbers of molecules.
    """

    path: Path
    type_charges: dict[str, str] = field(default_factory=dict)
    molecules: dict[str, Molecule] = field(default_factory=dict)
    entries: list[_Entry] = field(default_factory=list)
    include: str = ""
    included: set[str] = field(default_factory=set)
    unfit: InputError | None = None

    @classmethod
    def read(cls, path: Path) -> GromacsTopology:
        """Read a .top; raises InputError when it is invalid."""
        result = cls(path)
        result._add(path)
        if result.include:
            known = set(result.molecules)
            ions = gromacs_folder.find_include(result.include, path)
            assert ions is not None
            result._add(ions)
            result.included = set(result.molecules) - known
        return result

    def _add(self, path: Path) -> None:
        section, defaults, has_ions = "", None, False
        molecule = None
        for line in gromacs_folder.read_lines(path):
            match = _SECTION.fullmatch(line.text)
            has_ions |= line.path.name == "ions.itp"
            if match:
                section = match[1]
                if section == "defaults":
                    defaults = line.path
                elif section == "intermolecular_interactions":
                    self.unfit = self.unfit or InputError(
                        f"{line.path}: line {line.number}: lists atoms by their numbers in the system, which change",
                        "leave that section out, and add it afterwards")
                continue
            words = line.text.split()
            where = f"{line.path}: line {line.number}"
            if section == "moleculetype":
                molecule = self.molecules.setdefault(words[0], Molecule(words[0]))
            elif section == "atomtypes" and len(words) > 5:
                kind = next((k for k in range(len(words) - 1, 1, -1) if words[k] in ("A", "S", "V", "D")), 0)
                self.type_charges[words[0]] = words[kind - 1] if kind else ""  # it precedes the particle type
            elif section == "atoms" and molecule is not None:
                if len(words) < 5:
                    raise InputError(f"{where}: is not an atom of a molecule type: '{line.text[:60]}'")
                charge, mass = (*words[6:8], "", "")[:2]
                for values, word in zip((molecule.types, molecule.numbers, molecule.residues, molecule.atoms,
                                         molecule.charges, molecule.masses), (*words[1:5], charge, mass), strict=True):
                    values.append(word)
            elif section == "cmap" and molecule is not None:
                if len(words) < 5 or not all(word.isdecimal() for word in words[:5]):
                    raise InputError(f"{where}: is not a cross-term: '{line.text[:60]}'")
                molecule.cross_terms.append([int(word) for word in words[:5]])
            elif section == "molecules":
                self.entries.append(self._entry(words, line, where))
        if defaults is not None and not has_ions:
            self.include = _ions_of(defaults, path)

    def _entry(self, words: Sequence[str], line: gromacs_folder.Line, where: str) -> _Entry:
        if len(words) != 2 or not words[1].isdecimal():
            raise InputError(f"{where}: is not a molecule and its number: '{line.text[:60]}'")
        # like grompp, ignore case if no name matches exactly
        molecule = self.molecules.get(words[0]) or next(
            (entry for name, entry in self.molecules.items() if name.lower() == words[0].lower()), None)
        if molecule is None:
            raise InputError(f"{where}: the molecule {words[0]} is not defined")
        if line.path != self.path:
            self.unfit = InputError(f"{where}: lists molecules in a file that {self.path} includes", "list them there")
        return _Entry(molecule, int(words[1]), line.number - 1)

    @property
    def cross_terms(self) -> Integers:
        """All cross-terms, (M, 8): the two dihedrals of the five atoms of each, from 0."""
        result, start = [np.zeros((0, 5), np.int64)], 0
        for entry in self.entries:
            size = len(entry.molecule.atoms)
            if entry.molecule.cross_terms:
                first = start + size * np.arange(entry.number)[:, None, None]
                result.append((first + np.array(entry.molecule.cross_terms) - 1).reshape(-1, 5))
            start += size * entry.number
        return np.concatenate(result)[:, [0, 1, 2, 3, 1, 2, 3, 4]]

    @property
    def ions(self) -> dict[Ion, Molecule]:
        """Monatomic ions and their molecule types; of several types of an ion, the one that the system contains."""
        first = [entry.molecule for entry in self.entries]
        ordered = sorted(self.molecules.values(), key=lambda molecule: molecule not in first)
        return {ion: molecule for molecule in reversed(ordered) if (ion := molecule.ion) is not None}


def _number(word: str, default: float) -> float:
    try:
        return float(word)
    except ValueError:
        return default


def _ions_of(defaults: Path, path: Path) -> str:
    """Return the name by which a topology at `path` could include its force field's ions, "" if there are none."""
    for line in _text(path).split("\n"):
        result = _INCLUDE.match(line)
        if result and gromacs_folder.find_include(result[2], path) == defaults:
            name = str(PurePosixPath(result[2]).with_name("ions.itp"))
            return name if gromacs_folder.find_include(name, path) else ""
    return ""


def _text(path: Path) -> str:
    return read_text(path).decode("utf-8", "surrogateescape")


def read_top(path: str | Path) -> Structure:
    """Read a GROMACS topology (.top, .itp) with MDAnalysis; positions are zero.

    Raises
    ------
    InputError
        When the file, or a file that it includes, cannot be read.
    BackendError
        When MDAnalysis is not installed.
    """
    path = buffered_stream(path)
    structure = mdanalysis_topologies.read_topology(path)
    if structure.topology is None or not re.search(r"^\s*\[\s*molecules\s*\]", _text(path), re.MULTILINE):
        return structure
    top = GromacsTopology.read(path)
    ions = {
        ion: (molecule.residues[0], molecule.atoms[0], molecule.types[0], _number(molecule.masses[0], 0.0))
        for ion, molecule in top.ions.items()
    }
    extra = {**structure.topology.extra, "file": path, "rows": np.arange(len(structure)), "ions": ions}
    cross_terms = top.cross_terms  # MDAnalysis does not read them
    if not (cross_terms < len(structure)).all():
        raise InputError(f"{path}: its cross-terms list atoms that do not exist")
    return replace(structure, topology=replace(
        structure.topology, source="top", extra=extra, cross_terms=cross_terms))


def write_top(structure: Structure, path: Path) -> None:
    """Write the .top that a structure was read with, for the molecules that it has now.

    In ``[ molecules ]``, the numbers are reduced by the molecules that were removed, and added molecules are appended
    as the molecule types with the same atoms. Everything else is kept, except that an ``#include`` of a file next to
    the .top is adapted if the new file is in another folder.

    Raises
    ------
    InputError
        When parts of molecules are missing, or the topology has no molecule type for an added molecule.
    """
    topology = structure.topology
    assert topology is not None
    source: Path = topology.extra["file"]
    top = GromacsTopology.read(source)
    if top.unfit is not None:
        raise top.unfit
    rows: Integers = topology.extra["rows"]
    lines = _text(source).rstrip("\n").split("\n")
    remaining = _remaining(top, rows)
    added = _added(top, structure, len(rows))
    for entry, count in sorted(zip(top.entries, remaining, strict=True), key=lambda pair: -pair[0].line):
        if count == entry.number:
            continue
        line = lines[entry.line]
        match = _ENTRY.match(line)
        if match is None or int(match[2]) != entry.number:
            raise InputError(f"{source}: line {entry.line + 1}: the number of molecules is a macro", "write it out")
        lines[entry.line:entry.line + 1] = [f"{match[1]}{count}{line[match.end():]}"] if count else []
    if any(name in top.included for name, _ in added):
        system = next((i for i, line in enumerate(lines)
                       if (result := _SECTION.match(line.strip())) and result[1] == "system"), None)
        if system is None:
            raise InputError(f"{source}: does not include the ions {top.include}, and has no [ system ] before which "
                             "it could", "include them")
        lines[system:system] = ["; ions", f'#include "{top.include}"', ""]
    folder = final_folder(path.resolve())
    if not isinstance(source, BufferedStream) and folder != source.resolve().parent:
        lines = [_moved(line, source, folder) for line in lines]
    lines += [f"{name:<15s} {number:5d}" for name, number in added]
    write_bytes(path, [("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")])


def check_ion(structure: Structure, name: str, ion: Structure) -> None:
    """Raise InputError unless a structure's .top defines an ion of several atoms with the given charges.

    Bonded parameters are never invented: the ion's molecule type has to be in the .top or in a file that it includes.

    Parameters
    ----------
    structure : Structure
        A structure that was read with a .top.
    name : str
        Name of the ion's residue.
    ion : Structure
        The ion's atoms, with charges.
    """
    assert structure.topology is not None
    top = GromacsTopology.read(structure.topology.extra["file"])
    atoms = ion.atom_names.tolist()
    described = [name] * len(ion) + atoms
    match = next((entry for entry in top.molecules.values() if entry.residues + entry.atoms == described), None)
    if match is None:
        raise InputError(
            f"{top.path}: neither it nor what it includes has a molecule type with the residue {name} and the atoms "
            f"{listed_words(atoms, 80)}",
            "include a file of the ion in it (.itp, of the same force field), or write no .top")
    stated = [_number(word, charge) for word, charge in zip(match.charges, ion.known_charges.tolist(), strict=True)]
    compare_charges(top.path, name, ion, stated, _CHARGE, f" in the molecule type {match.name}")


def _remaining(top: GromacsTopology, rows: Integers) -> list[int]:
    """Return the number of molecules of each entry whose atoms are still present."""
    counts = [entry.number for entry in top.entries]
    sizes = np.repeat([len(entry.molecule.atoms) for entry in top.entries], counts)
    present = np.zeros(int(sizes.sum()), bool)
    if len(rows) and rows[-1] >= len(present):
        raise InputError(f"{top.path}: has changed since it was read")
    present[rows] = True
    molecule = np.repeat(np.arange(len(sizes)), sizes)
    number = np.bincount(molecule[present], minlength=len(sizes))
    if ((number > 0) & (number < sizes)).any():
        raise InputError(f"{top.path}: parts of its molecules are missing, so no .top can be written")
    return [int(part.sum()) for part in np.split(number > 0, np.cumsum(counts)[:-1])]


def _added(top: GromacsTopology, structure: Structure, first: int) -> list[tuple[str, int]]:
    """Return names and numbers of the molecules of the atoms from `first` on, where each residue is a molecule."""
    known = {(*molecule.residues, *molecule.atoms): molecule.name
             for molecule in (*reversed(top.molecules.values()), *reversed([entry.molecule for entry in top.entries]))}
    result: list[tuple[str, int]] = []
    starts = structure.residue_starts
    starts = starts[np.searchsorted(starts, first):]
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        names = (*structure.residue_names[start:stop].tolist(), *structure.atom_names[start:stop].tolist())
        if names not in known:
            available = listed_words([molecule.name for molecule in top.ions.values()], 120)
            atoms = ", ".join(names[stop - start:])
            text = (f"neither it nor its force field's ions.itp has a molecule type with residue {names[0]}, atom "
                    f"{atoms}")
            if available:
                raise InputError(f"{top.path}: {text}; it has these ions: {available}",
                                 "use one of them, with {naming auto}, or include a file that defines it")
            raise InputError(f"{top.path}: {text}, nor any other ion", "include a file that defines the ions")
        name = known[names]
        if result and result[-1][0] == name:
            result[-1] = (name, result[-1][1] + 1)
        else:
            result.append((name, 1))
    return result


def _moved(line: str, source: Path, folder: Path) -> str:
    """Return a line with the path in an ``#include`` of a file next to `source` adapted to another folder."""
    match = _INCLUDE.match(line)
    if match is None or os.path.isabs(match[2]) or not (target := source.resolve().parent / match[2]).is_file():
        return line
    to_stream = folder == Path(tempfile.gettempdir()).resolve()  # output to a stream is first written to this folder
    return f"{match[1]}{target if to_stream else os.path.relpath(target, folder)}{match[3]}"


def check(structure: Structure, path: Path) -> None:
    """Raise UsageError for a structure that was read without a .top."""
    if structure.topology is None or structure.topology.source != "top":
        raise UsageError("", f"{path}: a .top is written from the input's .top, which has the force field",
                         "give it as {topology}, or write .gro or .pdb")


def check_ions(structure: Structure, templates: Mapping[str, Structure]) -> None:
    """Raise InputError for polyatomic ions that the .top does not define in the same way."""
    for name, ion in templates.items():
        check_ion(structure, name, ion)


WRITER = StructureWriter(write_top, check, check_ions)
