"""Options that several commands have: one declaration for all."""

from __future__ import annotations

from typing import Annotated

from vmdpotential.io.cellfile import parse_cell
from vmdpotential.molecule.cell import Cell
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
