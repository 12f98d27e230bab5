"""Topologies of GROMACS (.top): read as a topology, and written again with other numbers of molecules.

What is written is the text of the file that was read: only its ``[ molecules ]`` change, and an ``#include`` of the
force field's ions is added where it needs one.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from vmdpotential.errors import InputError, listed
from vmdpotential.io import mdanalysis
from vmdpotential.io.files.hidden import final_folder
from vmdpotential.io.files.text import Held, held, read_text, write_bytes
from vmdpotential.io.topologies import gromacs_folder
from vmdpotential.molecule.names import IONS, Ion
from vmdpotential.molecule.structure import Integers, Structure

_SECTION = re.compile(r"\[\s*(\S+)\s*\]")
_ENTRY = re.compile(r"(\s*\S+\s+)([0-9]+)\b")
_INCLUDE = re.compile(r"""(\s*#\s*include\s+["'<])([^"'>]+)(["'>].*)""")

#: By how much charges of an ion may differ from its template's, e: what rounding leaves.
_CHARGE = 0.002


@dataclass(eq=False)
class Molecule:
    """A ``[ moleculetype ]``: its name, what it says of each atom, and the five atoms, from 1, of each cross-term."""

    name: str
    residues: list[str] = field(default_factory=list)
    atoms: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    charges: list[str] = field(default_factory=list)
    masses: list[str] = field(default_factory=list)
    cross_terms: list[list[int]] = field(default_factory=list)

    @property
    def ion(self) -> Ion | None:
        """Which monatomic ion it is, if it is one, with its full charge."""
        if len(self.atoms) != 1:
            return None
        for name in (self.name, self.residues[0], self.atoms[0]):
            ion = IONS.get(name.upper())
            if ion is not None and abs(_number(self.charges[0], ion.charge) - ion.charge) < 1e-3:
                return ion
        return None


class _Entry(NamedTuple):
    """A line of ``[ molecules ]``: a molecule, how many, and its line, from 0, in the file itself."""

    molecule: Molecule
    number: int
    line: int


@dataclass
class Top:
    """What a .top says of molecules.

    Parameters
    ----------
    path : Path
    molecules : dict
        Its molecule types by name, those of :attr:`include` too.
    entries : list
        Its ``[ molecules ]``.
    include : str
        The force field's ions, where it does not include them: as it would, ``amber99sb.ff/ions.itp``.
    included : set of str
        Names of the molecule types that are there.
    unfit : InputError or None
        Why it cannot be written with other numbers of molecules.
    """

    path: Path
    molecules: dict[str, Molecule] = field(default_factory=dict)
    entries: list[_Entry] = field(default_factory=list)
    include: str = ""
    included: set[str] = field(default_factory=set)
    unfit: InputError | None = None

    @classmethod
    def read(cls, path: Path) -> Top:
        """Read it; raises InputError where it does not say what it must."""
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
        section, defaults, ions_there = "", None, False
        molecule = None
        for line in gromacs_folder.read_lines(path):
            match = _SECTION.fullmatch(line.text)
            ions_there |= line.path.name == "ions.itp"
            if match:
                section = match[1]
                if section == "defaults":
                    defaults = line.path
                elif section == "intermolecular_interactions":
                    self.unfit = self.unfit or InputError(
                        f"{line.path}: line {line.number}: names atoms by their numbers in the system, which change",
                        "leave that section out, and add it afterwards")
                continue
            words = line.text.split()
            where = f"{line.path}: line {line.number}"
            if section == "moleculetype":
                molecule = self.molecules.setdefault(words[0], Molecule(words[0]))
            elif section == "atoms" and molecule is not None:
                if len(words) < 5:
                    raise InputError(f"{where}: is no atom of a molecule type: '{line.text[:60]}'")
                charge, mass = (*words[6:8], "", "")[:2]
                for values, word in ((molecule.residues, words[3]), (molecule.atoms, words[4]),
                                     (molecule.types, words[1]), (molecule.charges, charge), (molecule.masses, mass)):
                    values.append(word)
            elif section == "cmap" and molecule is not None:
                if len(words) < 5 or not all(word.isdecimal() for word in words[:5]):
                    raise InputError(f"{where}: is no cross-term: '{line.text[:60]}'")
                molecule.cross_terms.append([int(word) for word in words[:5]])
            elif section == "molecules":
                self.entries.append(self._entry(words, line, where))
        if defaults is not None and not ions_there:
            self.include = _ions_of(defaults, path)

    def _entry(self, words: Sequence[str], line: gromacs_folder.Line, where: str) -> _Entry:
        if len(words) != 2 or not words[1].isdecimal():
            raise InputError(f"{where}: is no molecule and its number: '{line.text[:60]}'")
        # as grompp: upper and lower case are the same where nothing else fits
        molecule = self.molecules.get(words[0]) or next(
            (entry for name, entry in self.molecules.items() if name.lower() == words[0].lower()), None)
        if molecule is None:
            raise InputError(f"{where}: the molecule {words[0]} is not defined")
        if line.path != self.path:
            self.unfit = InputError(f"{where}: lists molecules in a file that {self.path} includes", "list them there")
        return _Entry(molecule, int(words[1]), line.number - 1)

    @property
    def cross_terms(self) -> Integers:
        """All cross-terms, (M, 8): their five atoms, from 0, make two dihedrals."""
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
        """Its monatomic ions; of two that are the same, the one that the system has."""
        first = [entry.molecule for entry in self.entries]
        ordered = sorted(self.molecules.values(), key=lambda molecule: molecule not in first)
        return {ion: molecule for molecule in reversed(ordered) if (ion := molecule.ion) is not None}


def _number(word: str, default: float) -> float:
    try:
        return float(word)
    except ValueError:
        return default


def _ions_of(defaults: Path, path: Path) -> str:
    """Return how a topology at `path` would include the ions of the force field that it includes, "" where none."""
    for line in _text(path).split("\n"):
        result = _INCLUDE.match(line)
        if result and gromacs_folder.find_include(result[2], path) == defaults:
            name = str(PurePosixPath(result[2]).with_name("ions.itp"))
            return name if gromacs_folder.find_include(name, path) else ""
    return ""


def _text(path: Path) -> str:
    return read_text(path).decode("utf-8", "surrogateescape")


def read_top(path: str | Path) -> Structure:
    """Read a topology of GROMACS (.top, .itp), by MDAnalysis; positions are zero.

    Raises
    ------
    InputError
        When the file, or one that it includes, cannot be read.
    BackendError
        When MDAnalysis is not installed.
    """
    path = held(path)
    structure = mdanalysis.read_topology(path)
    if structure.topology is None or not re.search(r"^\s*\[\s*molecules\s*\]", _text(path), re.MULTILINE):
        return structure
    top = Top.read(path)
    ions = {
        ion: (molecule.residues[0], molecule.atoms[0], molecule.types[0], _number(molecule.masses[0], 0.0))
        for ion, molecule in top.ions.items()
    }
    extra = {**structure.topology.extra, "file": path, "rows": np.arange(len(structure)), "ions": ions}
    cross_terms = top.cross_terms  # which MDAnalysis does not read
    if not (cross_terms < len(structure)).all():
        raise InputError(f"{path}: its cross-terms name atoms that are not there")
    return replace(structure, topology=replace(
        structure.topology, source="top", extra=extra, cross_terms=cross_terms))


def write_top(structure: Structure, path: Path) -> None:
    """Write the .top that a structure was read with, for the molecules that it has now.

    Numbers of ``[ molecules ]`` fall by what was taken out, and what was added is at their end, as the molecule
    types of the same atoms. All else stays as it is; an ``#include`` of a file next to the .top is changed where this
    one is written to another folder.

    Raises
    ------
    InputError
        When parts of molecules are missing, or the topology has no molecule type for what was added.
    """
    topology = structure.topology
    assert topology is not None
    source: Path = topology.extra["file"]
    top = Top.read(source)
    if top.unfit is not None:
        raise top.unfit
    rows: Integers = topology.extra["rows"]
    lines = _text(source).rstrip("\n").split("\n")
    left = _left(top, rows)
    added = _added(top, structure, len(rows))
    for entry, count in sorted(zip(top.entries, left, strict=True), key=lambda pair: -pair[0].line):
        if count == entry.number:
            continue
        line = lines[entry.line]
        match = _ENTRY.match(line)
        if match is None or int(match[2]) != entry.number:
            raise InputError(f"{source}: line {entry.line + 1}: the number of molecules is a macro", "write it out")
        lines[entry.line:entry.line + 1] = [f"{match[1]}{count}{line[match.end():]}"] if count else []
    if any(name in top.included for name, _ in added):
        at = [i for i, line in enumerate(lines) if (result := _SECTION.match(line.strip())) and result[1] == "system"]
        if not at:
            raise InputError(f"{source}: does not include the ions {top.include}, and has no [ system ] before which "
                             "it could", "include them")
        lines[at[0]:at[0]] = ["; ions", f'#include "{top.include}"', ""]
    folder = final_folder(path.resolve())
    if not isinstance(source, Held) and folder != source.resolve().parent:
        lines = [_moved(line, source, folder) for line in lines]
    lines += [f"{name:<15s} {number:5d}" for name, number in added]
    write_bytes(path, [("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")])


def check_ion(structure: Structure, name: str, ion: Structure) -> None:
    """Raise InputError unless the .top that a structure was read with defines an ion of several atoms as it is given.

    Bonded parameters are never made up: the molecule type of the ion has to be in the .top, or in what it includes.

    Parameters
    ----------
    structure : Structure
    name : str
        What the ion's residue is called.
    ion : Structure
        With charges.
    """
    assert structure.topology is not None
    top = Top.read(structure.topology.extra["file"])
    atoms = ion.atom_names.tolist()
    described = [name] * len(ion) + atoms
    match = next((entry for entry in top.molecules.values() if entry.residues + entry.atoms == described), None)
    if match is None:
        raise InputError(
            f"{top.path}: neither it nor what it includes has a molecule type with the residue {name} and the atoms "
            f"{listed(atoms, 80)}",
            "include the file of the ion there (.itp, of the same force field), or write no .top")
    for atom, word, charge in zip(atoms, match.charges, ion.known_charges.tolist(), strict=True):
        if abs(_number(word, charge) - charge) > _CHARGE:
            raise InputError(f"{top.path}: the charge of {name} {atom} is {_number(word, charge):g} e in the molecule "
                             f"type {match.name}, and {charge:g} e in the template", "take the charges of the .top")


def _left(top: Top, rows: Integers) -> list[int]:
    """Return how many molecules of each entry still have their atoms."""
    counts = [entry.number for entry in top.entries]
    sizes = np.repeat([len(entry.molecule.atoms) for entry in top.entries], counts)
    there = np.zeros(int(sizes.sum()), bool)
    if len(rows) and rows[-1] >= len(there):
        raise InputError(f"{top.path}: has changed since it was read")
    there[rows] = True
    molecule = np.repeat(np.arange(len(sizes)), sizes)
    number = np.bincount(molecule[there], minlength=len(sizes))
    if ((number > 0) & (number < sizes)).any():
        raise InputError(f"{top.path}: parts of its molecules are missing, so no .top can be written")
    return [int(part.sum()) for part in np.split(number > 0, np.cumsum(counts)[:-1])]


def _added(top: Top, structure: Structure, first: int) -> list[tuple[str, int]]:
    """Return molecules and their numbers for the atoms from `first` on, each residue a molecule."""
    known = {(*molecule.residues, *molecule.atoms): molecule.name
             for molecule in (*reversed(top.molecules.values()), *reversed([entry.molecule for entry in top.entries]))}
    result: list[tuple[str, int]] = []
    starts = structure.residue_starts
    starts = starts[np.searchsorted(starts, first):]
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        names = (*structure.residue_names[start:stop].tolist(), *structure.atom_names[start:stop].tolist())
        if names not in known:
            there = listed([molecule.name for molecule in top.ions.values()], 120)
            atoms = ", ".join(names[stop - start:])
            text = (f"neither it nor its force field's ions.itp has a molecule type with residue {names[0]}, atom "
                    f"{atoms}")
            if there:
                raise InputError(f"{top.path}: {text}; it has these ions: {there}",
                                 "use one of them, with {naming auto}, or include a file that defines it")
            raise InputError(f"{top.path}: {text}, nor any other ion", "include a file that defines the ions")
        name = known[names]
        if result and result[-1][0] == name:
            result[-1] = (name, result[-1][1] + 1)
        else:
            result.append((name, 1))
    return result


def _moved(line: str, source: Path, folder: Path) -> str:
    """Return a line whose ``#include`` of a file next to `source` is found from another folder too."""
    match = _INCLUDE.match(line)
    if match is None or os.path.isabs(match[2]) or not (place := source.resolve().parent / match[2]).is_file():
        return line
    standard = folder == Path(tempfile.gettempdir()).resolve()  # where what goes to a stream is written first
    return f"{match[1]}{place if standard else os.path.relpath(place, folder)}{match[3]}"
