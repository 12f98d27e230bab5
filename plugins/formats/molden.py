"""Atoms of Molden files."""

from __future__ import annotations

from pathlib import Path

from vmdpotential.errors import InputError
from vmdpotential.io.files import text as files
from vmdpotential.io.files.numbers import parse_real, parse_whole
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import BOHR

from .nuclei import from_nuclei


def read_molden(path: Path) -> Structure:
    """Read the section of atoms of a Molden file: element, number, atomic number and position, in bohr or angstrom.

    Raises
    ------
    InputError
        When the file has no such section, or a line of it is damaged.
    """
    numbers, positions = [], []
    unit = 0.0
    with files.opened(path) as stream:
        for n, line in enumerate(stream, 1):
            words = line.decode("utf-8", "replace").split()
            if words and words[0].startswith("["):
                if unit:
                    break
                if words[0].lower().startswith("[atoms]"):
                    unit = 1.0 if "angs" in " ".join(words).lower() else BOHR
            elif unit and words:
                try:
                    numbers.append(parse_whole(words[2]))
                    positions.append([unit * parse_real(words[column]) for column in (3, 4, 5)])
                except (ValueError, IndexError):
                    raise InputError(f"{path}: line {n}: an atom needs an element, two whole numbers and a position"
                                     ) from None
    if not numbers:
        raise InputError(f"{path}: has no atoms", "give a Molden file with a section [Atoms]")
    return from_nuclei(numbers, positions, str(path))
