"""Lennard-Jones parameters of ions that a topology lacks, from force-field files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, listed_words
from vmdpotential.io.files.recognise import PRMTOP_SUFFIXES
from vmdpotential.io.files.text import buffered_stream, first_bytes, format_suffix, read_text
from vmdpotential.io.topologies.prmtop import read_prmtop
from vmdpotential.molecule.names import ION_RESIDUES, Ion
from vmdpotential.molecule.structure import Structure

from . import CHARMM_SUFFIXES, charmm, openmm

#: Sigma divided by Rmin/2.
_SIGMA = 2 ** (5 / 6)
#: Where parameters of ions may come from.
PARAMETERS_HINT = ("give {parameters}: Amber's file for the water model (frcmod.ionsjc_tip3p), OpenMM's "
                   "(amber14/tip3p.xml), or a prmtop with these ions")
#: Start of the section of Lennard-Jones parameters in Amber's files (frcmod; parm10.dat).
_NONBONDED = re.compile(r"NONB|MOD4\s+RE")
#: Characters of a line that are matched, because the pattern takes time quadratic in the length of a number.
_LONGEST = 400
#: A line of that section: type, Rmin/2, epsilon, and a comment.
_LINE = re.compile(r"\s*(\S+)\s+([0-9]+\.?[0-9]*(?:[eEdD][-+]?[0-9]+)?)\s+([0-9]+\.?[0-9]*(?:[eEdD][-+]?[0-9]+)?)\b")


def lennard_jones_of(structure: Structure, ions: Sequence[Ion]) -> tuple[Floats, Floats]:
    """Return sigma, A, and epsilon, kcal/mol, of monatomic ions of a structure, from the files attached to it.

    Raises
    ------
    InputError
        When a file cannot be read, or ions are in none of the files; the message lists them.
    BackendError
        When a file is OpenMM's or CHARMM's, and OpenMM or ParmEd is not installed.
    """
    topology = structure.topology
    assert topology is not None
    single = np.flatnonzero(np.bincount(structure.residue_index)[structure.residue_index] == 1)
    atom_of = {ION_RESIDUES.get(name.upper()): atom
               for atom, name in zip(single.tolist(), structure.residue_names[single].tolist(), strict=True)}
    result: dict[Ion, tuple[float, float]] = {}
    files: Sequence[Path] = topology.extra.get("ion_parameters", ())
    for path in files:
        missing_ions = sorted((ion for ion in ions if ion not in result), key=lambda ion: atom_of[ion])
        if not missing_ions:
            break
        rows, suffix = [atom_of[ion] for ion in missing_ions], format_suffix(path)
        types = [str(topology.types[row]) for row in rows]
        if suffix == ".xml" or suffix in CHARMM_SUFFIXES:
            by_program = openmm.ion_parameters if suffix == ".xml" else charmm.ion_parameters
            parameters = by_program(path, structure.take(np.array(rows)), types)
        elif is_prmtop(path := buffered_stream(path)):
            parameters = _of_prmtop(path, missing_ions, types)
        else:
            parameters = _of_amber(path)
        result |= {ion: parameters[kind] for ion, kind in zip(missing_ions, types, strict=True) if kind in parameters}
    missing = [str(topology.types[atom_of[ion]]) for ion in ions if ion not in result]
    if missing:
        where = listed_words(map(str, files), 80) if files else topology.extra["file"]
        raise InputError(
            f"{where}: no Lennard-Jones parameters for the ions {listed_words(missing, 80)}", PARAMETERS_HINT)
    values = np.array([result[ion] for ion in ions])
    if not np.isfinite(values).all():
        raise InputError(f"{listed_words(map(str, files), 80)}: Lennard-Jones parameters of ions are not numbers",
                         "correct the file")
    return values[:, 0], values[:, 1]


def is_prmtop(path: Path) -> bool:
    """Return whether a file is a prmtop, by its suffix or its first bytes."""
    return format_suffix(path) in PRMTOP_SUFFIXES or first_bytes(path, 20).startswith((b"%VERSION", b"%FLAG"))


def compare_charges(path: Path, name: str, ion: Structure, charges: Sequence[float], tolerance: float,
                    place: str = "") -> None:
    """Raise InputError if charges, e, of a polyatomic ion in a place of a topology differ from its template's."""
    for atom, charge, stated in zip(ion.atom_names.tolist(), charges, ion.known_charges.tolist(), strict=True):
        if abs(charge - stated) > tolerance:
            raise InputError(f"{path}: the charge of {name} {atom} is {charge:g} e{place}, and {stated:g} e in the "
                             "template", "take the charges of the topology")


def _of_prmtop(path: Path, ions: Sequence[Ion], types: Sequence[str]) -> dict[str, tuple[float, float]]:
    other = read_prmtop(path)
    assert other.topology is not None
    assert other.topology.nonbonded is not None
    table = other.topology.nonbonded()
    sizes = np.diff(other.residue_starts)
    type_of = {ION_RESIDUES.get(str(other.residue_names[atom]).upper()): int(table.types[atom])
               for atom in other.residue_starts[:-1][sizes == 1].tolist()}
    return {kind: (float(table.sigma[type_of[ion]]), float(table.epsilon[type_of[ion]]))
            for ion, kind in zip(ions, types, strict=True) if ion in type_of}


def _of_amber(path: Path) -> dict[str, tuple[float, float]]:
    """Return the parameters of all types in a frcmod or a parm.dat."""
    result = {}
    inside = False
    for line in read_text(path).decode("latin-1").split("\n"):
        if _NONBONDED.match(line):
            inside = True
        elif not line.strip() or line.startswith("END"):
            inside = False
        elif inside and (match := _LINE.match(line[:_LONGEST])):
            half, epsilon = (float(text.upper().replace("D", "E")) for text in match.groups()[1:])
            if not max(half, epsilon) < np.inf:
                raise InputError(f"{path}: the Lennard-Jones parameters of {match[1][:20]} are not numbers")
            result[match[1]] = half * _SIGMA, epsilon
    if not result:
        raise InputError(f"{path}: contains no Lennard-Jones parameters in Amber's format (a section NONB)",
                         "give a frcmod, a force field of OpenMM (.xml), or a prmtop that has the ions")
    return result
