"""Reading of charges of single residues (ligands): MOL2, SDF, GROMACS topologies, OpenMM force fields, tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from vmdpotential.errors import InputError, UsageError, one_line
from vmdpotential.io.files.numbers import parse_real
from vmdpotential.io.files.text import buffered_stream, format_suffix, read_text, reading_file
from vmdpotential.molecule.structure import LARGEST_CHARGE, Structure
from vmdpotential.molecule.user_charges import MoleculeOfFile, ResidueCharges

from . import openmm_system
from .gromacs_top import GromacsTopology
from .molecules import of_bonds, order_of, read_sdf, valence_charges

#: A residue's key in its file (such as its number), its name, an atom's name and charge, and the location for messages.
_Row = tuple[object, str, str, float, str]
#: An atom of a MOL2: key of its residue, name of the residue, name, element and charge, and the location for messages.
_Atom = tuple[object, str, str, str, float, str]
#: Molecules with their hydrogens, by the key of their residue.
Molecules = dict[object, MoleculeOfFile]

#: Remark on charges that are computed because the file has none.
_COMPUTED = " (approximate charges by Gasteiger's method)"


def read_charges(structure: Structure, paths: Sequence[Path]) -> tuple[Structure, list[ResidueCharges]]:
    """Return the residue charges in some files; a System of OpenMM gives the structure its charges instead.

    Raises
    ------
    InputError
        As :func:`read_residue_charges` and :func:`openmm_system.with_charges`.
    UsageError
        For a System in addition to other files, or charges of atoms that already have some.
    """
    system = next((path for path in paths if openmm_system.is_system(path)), None)
    if system is None:
        return structure, [residue for path in paths for residue in read_residue_charges(path)]
    if len(paths) > 1:
        raise UsageError("charges", "a file with the charges of all atoms cannot be combined with other files",
                         "give this one alone", value=str(system))
    return openmm_system.with_charges(structure, system), []


def read_residue_charges(path: str | Path) -> list[ResidueCharges]:
    """Return the residues in a file, with the charges of all their atoms.

    Parameters
    ----------
    path : str or Path
        ``.mol2`` or ``.sdf``, whose missing charges are computed by Gasteiger's method; ``.itp`` or ``.top`` of
        GROMACS; ``.xml``, an OpenMM force field; otherwise a table with lines ``residue,atom,charge``, separated by
        commas or blanks.

    Raises
    ------
    InputError
        When the file cannot be read, has no charges, or two atoms of a residue have the same name.
    """
    path = buffered_stream(path)
    molecules: Molecules = {}
    with_bonds = _WITH_BONDS.get(format_suffix(path))
    residues: dict[object, tuple[str, dict[str, float]]] = {}
    computed: set[object] = set()
    with reading_file(path):
        for key, residue, atom, charge, where in (
                with_bonds(path, molecules) if with_bonds else _READERS.get(format_suffix(path), _table)(path)):
            charges = residues.setdefault(key, (residue, {}))[1]
            if atom in charges:
                raise InputError(f"{where}: residue {residue} has two atoms named {atom}",
                                 "name its atoms differently, as the structure does")
            if not abs(charge) < LARGEST_CHARGE:  # also rejects NaN
                raise InputError(f"{where}: the charge of {residue} {atom} is not a possible charge")
            charges[atom] = charge
            if where.endswith(_COMPUTED):
                computed.add(key)
        if not residues:
            raise InputError(f"{path}: has no charges", "give a MOL2, ITP, OpenMM XML, or lines residue,atom,charge")
    # a file may contain many copies of a molecule
    distinct = {(name, tuple(charges.items())): ResidueCharges(
        name, charges, path.name + _COMPUTED * (key in computed), _short(name, key), molecules.get(key))
                 for key, (name, charges) in residues.items()}
    return list(distinct.values())


def _short(name: str, key: object) -> str:
    """Return the name of a MOL2's residue without its number."""
    return name.removesuffix(key[1]) if isinstance(key, tuple) and name.endswith(key[1]) else ""


def _lines(path: Path) -> Iterator[tuple[str, list[str], str]]:
    for number, line in enumerate(read_text(path, 20, 200).decode("utf-8", "replace").split("\n"), 1):
        yield line, line.split(), f"{path}: line {number}"


def _number(word: str, where: str) -> float:
    try:
        return parse_real(word)
    except ValueError:
        raise InputError(f"{where}: '{one_line(word)}' is not a charge") from None


def _table(path: Path) -> Iterator[_Row]:
    first = True
    for line, _, where in _lines(path):
        words = line.split("#")[0].replace(",", " ").split()
        if not words:
            continue
        if len(words) != 3:
            raise InputError(f"{where}: a residue, an atom and its charge are needed")
        header, first = first and words[2].lower().startswith(("charge", "q")), False
        if not header:
            yield words[0], words[0], words[1], _number(words[2], where), where


def _mol2(path: Path, molecules: Molecules) -> Iterator[_Row]:
    section, molecule, seen, bare = "", 0, 0, False
    atoms: list[_Atom] = []
    bonds: list[tuple[int, int, int]] = []
    for line, words, where in _lines(path):
        if line.startswith("@<TRIPOS>"):
            section, seen = line[9:].strip(), 0
            if section == "MOLECULE":
                yield from _finished(atoms, bonds, bare, f"{path}: line {molecule}", molecules)
                atoms, bonds, bare = [], [], False
                molecule += 1
        elif section == "MOLECULE":
            seen += 1
            if seen == 4 and line.strip() == "NO_CHARGES":
                bare = True
        elif section == "ATOM" and words and not line.startswith("#"):
            if len(words) < (8 if bare else 9):
                raise InputError(f"{where}: an atom without a residue and a charge")
            atoms.append(((molecule, words[6]), words[7], words[1], words[5].partition(".")[0].capitalize(),
                          0.0 if bare else _number(words[8], where), where))
        elif section == "BOND" and len(words) >= 4:
            try:
                bonds.append((int(words[1]) - 1, int(words[2]) - 1, order_of(words[3], where)))
                if not all(0 <= k < len(atoms) for k in bonds[-1][:2]):
                    raise InputError(f"{where}: a bond of atoms that do not exist")
            except ValueError:
                raise InputError(f"{where}: is not a bond") from None
    yield from _finished(atoms, bonds, bare, str(path), molecules)


def _finished(atoms: list[_Atom], bonds: list[tuple[int, int, int]], bare: bool, where: str,
              molecules: Molecules) -> Iterator[_Row]:
    """Yield the atoms of a molecule in a MOL2, with charges by Gasteiger's method if the file has none (`bare`)."""
    if not atoms:
        return
    keys, _, names, elements, *_ = zip(*atoms, strict=True)
    if bare and "H" not in elements:
        raise InputError(f"{where}: states no charges, and has no hydrogens to compute them with",
                         "add hydrogens, or charges")
    built = MoleculeOfFile(names, elements, tuple(valence_charges(elements, bonds)), tuple(bonds))
    if "H" in elements and len(set(keys)) == 1:
        molecules[keys[0]] = built
    computed = of_bonds(built, where) if bare else []
    for n, (key, residue, name, _, charge, line) in enumerate(atoms):
        yield (key, residue, name, computed[n][1], where + _COMPUTED) if bare else (key, residue, name, charge, line)


def _sdf(path: Path, molecules: Molecules) -> Iterator[_Row]:
    lines = read_text(path, 20, 200).decode("utf-8", "replace").splitlines()
    for number, (residue, molecule) in enumerate(read_sdf(lines, str(path))):
        if "H" in molecule.elements:
            molecules[number] = molecule
        for name, charge in of_bonds(molecule, str(path)):
            yield number, residue, name, charge, str(path) + _COMPUTED


def _gromacs(path: Path) -> Iterator[_Row]:
    top = GromacsTopology.read(path)
    for molecule in top.molecules.values():
        where = f"{path}: molecule type {molecule.name}"
        for number, residue, atom, kind, charge in zip(molecule.numbers, molecule.residues, molecule.atoms,
                                                       molecule.types, molecule.charges, strict=True):
            stated = charge or top.type_charges.get(kind, "")
            if not stated:
                raise InputError(f"{where}: neither the atom {atom} nor its type {kind} has a charge")
            yield f"{molecule.name} {number}", residue, atom, _number(stated, where), where


def _openmm(path: Path) -> Iterator[_Row]:
    try:
        root = ElementTree.fromstring(read_text(path, 30))
    except ElementTree.ParseError as error:
        raise InputError(f"{path}: is not XML ({error})") from None
    if root.tag != "ForceField":
        raise InputError(f"{path}: is not a force field of OpenMM: it begins with <{root.tag}>",
                         "give one with <Residues> and their charges, or a <System> of all atoms")
    of_types = {atom.get("type") or atom.get("class"): atom.get("charge")
                for atom in root.iterfind("NonbondedForce/Atom")}
    classes = {kind.get("name"): kind.get("class") for kind in root.iterfind("AtomTypes/Type")}
    for number, residue in enumerate(root.iterfind("Residues/Residue")):
        name = residue.get("name", "")
        for atom in residue.iterfind("Atom"):
            kind, where = atom.get("type"), f"{path}: residue {name}"
            charge = atom.get("charge") or of_types.get(kind) or of_types.get(classes.get(kind))
            if charge is None:
                raise InputError(f"{where}: the atom {atom.get('name')} has no charge",
                                 "give the file that has <NonbondedForce> too")
            yield number, name, atom.get("name", ""), _number(charge, where), where


_READERS: dict[str, Callable[[Path], Iterator[_Row]]] = {".itp": _gromacs, ".top": _gromacs, ".xml": _openmm}
_WITH_BONDS: dict[str, Callable[[Path, Molecules], Iterator[_Row]]] = {".mol2": _mol2, ".sdf": _sdf, ".mol": _sdf}
