"""Readers and writers of structures: names of atoms and their positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from vmdpotential.errors import ChargeError
from vmdpotential.molecule.structure import Structure


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
