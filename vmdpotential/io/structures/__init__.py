"""Readers and writers of structures: names of atoms and their positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vmdpotential.errors import ChargeError, UsageError
from vmdpotential.io.files import columns
from vmdpotential.molecule.structure import Names, Structure


def _no_check(structure: Structure, value: object) -> None:
    """Accept every structure."""


class StructureWriter(NamedTuple):
    """Functions that write a format, which are registered as kind ``structure_writer`` by its suffixes.

    Parameters
    ----------
    write : callable
        Writes a structure to a path, compressed if that ends in ``.gz``.
    check : callable
        Raises the errors that writing a structure to a path would raise, before any work is done.
    check_ions : callable
        Raises an error for a structure to which ions shall be added, with the templates of polyatomic ones by their
        names, if the format could not hold them.
    """

    write: Callable[[Structure, Path], None]
    check: Callable[[Structure, Path], None] = _no_check
    check_ions: Callable[[Structure, Mapping[str, Structure]], None] = _no_check


def require_charges(structure: Structure, path: Path) -> None:
    """Raise ChargeError for a structure without charges, which the format of a file needs."""
    if structure.charges is None:
        raise ChargeError(f"{path}: needs charges, and the structure has none",
                          "give a file that has them as {topology}, or write .pdb, .cif or .gro")


def check_names(path: Path, what: str, names: Names, width: int, format: str, hint: str) -> None:
    """Raise UsageError if a name of atoms is longer than its columns in a format."""
    if columns.longest(names) > width:
        name = names[int(np.argmax(np.char.str_len(names) > width))]
        raise UsageError("", f"{path}: the {what} '{name}' is too long for {format}", hint)


def check_positions(structure: Structure, path: Path, low: float, high: float, format: str, hint: str) -> None:
    """Raise UsageError if a coordinate does not fit the columns of a format."""
    wide = ~((structure.positions > low) & (structure.positions < high)).all(1)
    if wide.any():
        atom = int(np.argmax(wide))
        position = " ".join(f"{x:.3f}" for x in structure.positions[atom])
        raise UsageError("", f"{path}: atom {atom + 1} ({structure.label(atom)}) at {position} does not fit the "
                         f"columns of {format}", hint)
