"""Options that several commands have, one declaration for all, and the structure that they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vmdpotential.errors import UsageError
from vmdpotential.io.cellfile import parse_cell, with_cell
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.templates import FORCE_FIELDS
from vmdpotential.molecule.water import CHOICES
from vmdpotential.parameters import Option

ForceField = Annotated[str, Option(
    "templates for charges that no topology gives; auto decides by the names of the whole structure",
    choices=("auto", *FORCE_FIELDS))]
Water = Annotated[str, Option(
    "model of waters that no topology gives charges; auto by their name and sites", choices=CHOICES)]
CellOption = Annotated[Cell | None, Option(
    "periodic cell instead of the file's: lengths, or these and angles, or an XSC file", unit="A, degrees",
    metavar="A,B,C[,AL,BE,GA]|XSC", parse=parse_cell)]
Workers = Annotated[int, Option(
    "processes that compute blocks of frames, by Dask; 0 computes in this one", viewer=False, low=0, high=4096)]
Scheduler = Annotated[str, Option(
    "address of a Dask scheduler whose workers compute blocks of frames", viewer=False, metavar="ADDRESS")]


def read(structure: Path | Structure, topology: Path | None, cell: Cell | None) -> Structure:
    """Return the structure of a file, or one that a viewer gave, with the cell that a user gave.

    Raises
    ------
    UsageError
        For a topology beside a viewer's structure.
    InputError
        When a file cannot be read.
    """
    from vmdpotential.io import read_structure

    if not isinstance(structure, Structure):
        structure = read_structure(structure, topology=topology)
    elif topology is not None:
        raise UsageError("topology", "is for structures read from a file")
    return with_cell(structure, cell)
