"""Lennard-Jones parameters of ions that a topology lacks, from files of force fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from vmdpotential.errors import InputError, listed
from vmdpotential.io.files.recognise import PRMTOP
from vmdpotential.io.files.text import first_bytes, held, read_text, suffix
from vmdpotential.io.topologies import charmm, openmm
from vmdpotential.io.topologies.prmtop import read_prmtop
from vmdpotential.molecule.names import IONS, Ion
from vmdpotential.molecule.selection import is_ion
from vmdpotential.molecule.structure import Floats, Structure

#: Rmin / 2 in sigma.
_SIGMA = 2 ** (5 / 6)
_CURE = ("give {parameters}: Amber's file for the water model (frcmod.ionsjc_tip3p), OpenMM's (amber14/tip3p.xml), or "
         "a prmtop with these ions")
#: What begins the Lennard-Jones parameters of Amber's files (frcmod; parm10.dat), and one of their lines.
_NONBONDED = re.compile(r"NONB|MOD4\s+RE")
#: What follows on a line is a comment; the pattern takes the square of the length of a number.
_LONGEST = 400
_LINE = re.compile(r"\s*(\S+)\s+([0-9]+\.?[0-9]*(?:[eEdD][-+]?[0-9]+)?)\s+([0-9]+\.?[0-9]*(?:[eEdD][-+]?[0-9]+)?)\b")


def attached(structure: Structure, files: Sequence[Path], outputs: Sequence[Path] = ()) -> Structure:
    """Return a structure whose writers find parameters of ions in `files`.

    Raises
    ------
    InputError
        When `outputs` name a prmtop, there are no files, and the structure has no ions whose parameters could be used.
    """
    topology = structure.topology
    if not files and any(suffix(path) in PRMTOP for path in outputs) and not is_ion(structure).any():
        raise InputError(f"{structure.sources[-1]}: has no ions, so it lacks their Lennard-Jones parameters", _CURE)
    if topology is None or not files:
        return structure
    return replace(structure, topology=replace(topology, extra={**topology.extra, "ion_parameters": tuple(files)}))


def lennard_jones_of(structure: Structure, ions: Sequence[Ion]) -> tuple[Floats, Floats]:
    """Return sigma, A, and epsilon, kcal/mol, of monatomic ions of a structure, by the files attached to it.

    Raises
    ------
    InputError
        When a file cannot be read, or an ion is in none; all of them are listed.
    BackendError
        When a file is OpenMM's or CHARMM's, and OpenMM or ParmEd is not installed.
    """
    topology = structure.topology
    assert topology is not None
    single = np.flatnonzero(np.bincount(structure.residue_index)[structure.residue_index] == 1)
    atom_of = {IONS.get(name.upper()): atom
               for atom, name in zip(single.tolist(), structure.residue_names[single].tolist(), strict=True)}
    result: dict[Ion, tuple[float, float]] = {}
    files: Sequence[Path] = topology.extra.get("ion_parameters", ())
    for path in files:
        lacking = [ion for ion in ions if ion not in result]
        types = [str(topology.types[atom_of[ion]]) for ion in lacking]
        if not lacking:
            break
        if suffix(path) == ".xml":
            alone = structure.take(np.sort([atom_of[ion] for ion in lacking]))
            table = openmm.nonbonded(alone, [path])
            for name, row in zip(alone.residue_names.tolist(), table.types.tolist(), strict=True):
                result[IONS[name.upper()]] = float(table.sigma[row]), float(table.epsilon[row])
            continue
        path = held(path)
        if suffix(path) in charmm.SUFFIXES:
            parameters = charmm.lennard_jones(path, types)
        elif suffix(path) in PRMTOP or first_bytes(path, 20).startswith((b"%VERSION", b"%FLAG")):
            parameters = _of_prmtop(path, lacking, types)
        else:
            parameters = _of_amber(path)
        result |= {ion: parameters[kind] for ion, kind in zip(lacking, types, strict=True) if kind in parameters}
    missing = [str(topology.types[atom_of[ion]]) for ion in ions if ion not in result]
    if missing:
        where = listed(map(str, files), 80) if files else topology.extra["file"]
        raise InputError(
            f"{where}: no Lennard-Jones parameters of the ions {listed(missing, 80)}", _CURE)
    values = np.array([result[ion] for ion in ions])
    if not np.isfinite(values).all():
        raise InputError(f"{listed(map(str, files), 80)}: Lennard-Jones parameters of ions are no numbers",
                         "correct the file")
    return values[:, 0], values[:, 1]


def _of_prmtop(path: Path, ions: Sequence[Ion], types: Sequence[str]) -> dict[str, tuple[float, float]]:
    other = read_prmtop(path)
    assert other.topology is not None
    assert other.topology.nonbonded is not None
    table = other.topology.nonbonded()
    sizes = np.diff(other.residue_starts)
    there = {IONS.get(str(other.residue_names[atom]).upper()): int(table.types[atom])
             for atom in other.residue_starts[:-1][sizes == 1].tolist()}
    return {kind: (float(table.sigma[there[ion]]), float(table.epsilon[there[ion]]))
            for ion, kind in zip(ions, types, strict=True) if ion in there}


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
                raise InputError(f"{path}: the Lennard-Jones parameters of {match[1][:20]} are no numbers")
            result[match[1]] = half * _SIGMA, epsilon
    if not result:
        raise InputError(f"{path}: holds no Lennard-Jones parameters of Amber's kind (a section NONB)",
                         "give a frcmod, a force field of OpenMM (.xml), or a prmtop that has the ions")
    return result
