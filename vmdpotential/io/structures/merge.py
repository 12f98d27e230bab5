"""Merging of a coordinate file with a topology, after checking that both list the same atoms in the same order."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from vmdpotential.errors import InputError
from vmdpotential.molecule import elements
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.names import WATER_RESIDUES, in_table, unique_names
from vmdpotential.molecule.structure import Floats, Integers, Names, Structure

#: Fraction of heavy atoms whose names may differ if their elements agree.
_TOLERATED = 0.05


def merge_topology(coordinates: Structure, topology: Structure) -> Structure:
    """Return the atoms of a topology at the positions of a coordinate file.

    Names, residues, segments, charges and bonds are those of the topology; positions, cell,
    velocities, occupancies, B-factors and chains those of the coordinate file. Cell, chains, segments,
    elements and insertion codes are taken from the other file if they are missing.

    Both must list the same atoms in the same order. Atom names are compared without regard to case
    and the position of digits (1HB, HB1); residue names are not compared. Hydrogens and atoms of water
    agree if their elements do. Of the other atoms, the names of 5 % may differ if their elements agree.

    Raises
    ------
    InputError
        When the numbers of atoms differ, or the names show other atoms or another order; the
        message gives the first difference.
    """
    check_count(len(coordinates), coordinates.where, topology)
    _check_names(coordinates, topology)
    either = {}
    for name in ("chain_ids", "segment_ids", "insertion_codes", "elements"):
        ours, theirs = getattr(coordinates, name), getattr(topology, name)
        requested, other = (ours, theirs) if name == "chain_ids" else (theirs, ours)
        either[name] = requested if (requested != "").any() else other
    return replace(
        topology, positions=coordinates.positions, cell=coordinates.cell or topology.cell, hetero=coordinates.hetero,
        occupancies=coordinates.occupancies, b_factors=coordinates.b_factors, title=coordinates.title or topology.title,
        velocities=coordinates.velocities, sources=(*coordinates.sources, *topology.sources),
        radii=coordinates.radii if topology.radii is None else topology.radii, **either,
    )  # fmt: skip


def place_atoms(positions: Floats, cell: Cell | None, source: str, topology: Structure) -> Structure:
    """Return a topology's atoms at positions (N, 3), A, from a file without names.

    Raises
    ------
    InputError
        When the numbers of atoms differ.
    """
    check_count(len(positions), source, topology)
    return replace(topology, positions=positions, cell=cell or topology.cell, sources=(source, *topology.sources))


def check_count(count: int, source: str, topology: Structure) -> None:
    """Raise InputError when a coordinate file and a topology have different numbers of atoms."""
    if count != len(topology):
        raise InputError(
            f"{source} has {count} atoms, but {topology.where} has {len(topology)}",
            "give a topology with exactly these atoms",
        )


def _check_names(coordinates: Structure, topology: Structure) -> None:
    """Raise InputError when the atom names differ too much; each distinct pair of names is compared once."""
    ours, our_codes = unique_names(coordinates.atom_names)
    theirs, their_codes = unique_names(topology.atom_names)
    pairs, inverse = np.unique(our_codes * len(theirs) + their_codes, return_inverse=True)
    different = np.array(
        [_plain(str(ours[pair // len(theirs)])) != _plain(str(theirs[pair % len(theirs)])) for pair in pairs], bool
    )
    atoms = np.flatnonzero(different[inverse])
    if not len(atoms):
        return
    our_elements, their_elements = _elements(coordinates, atoms), _elements(topology, atoms)
    other = atoms[(our_elements != their_elements) & (our_elements != "") & (their_elements != "")]
    if len(other):
        _fail(coordinates, topology, int(other[0]), f"{len(other)} atoms are of another element")
    heavy = elements.guess_all(topology.atom_names, topology.residue_names) != "H"
    heavy &= ~in_table(topology.residue_names, WATER_RESIDUES)
    left: Integers = atoms[heavy[atoms]]
    if len(left) > _TOLERATED * max(1, int(heavy.sum())):
        _fail(coordinates, topology, int(left[0]), f"{len(left)} names differ")


def _plain(name: str) -> str:
    """Return a name in capitals, primes unified, leading digits last, without charge signs, cut to four letters."""
    name = name.upper().replace("*", "'").rstrip("+-")
    digits = re.match(r"\d*", name)
    front = digits[0] if digits else ""
    return (name[len(front) :] + front)[:4]


def _elements(structure: Structure, atoms: Integers) -> Names:
    """Return elements guessed from names alone, by the same rule for both files."""
    return elements.guess_all(structure.atom_names[atoms], structure.residue_names[atoms])


def _fail(coordinates: Structure, topology: Structure, atom: int, what: str) -> None:
    raise InputError(
        f"{coordinates.where} and {topology.where} do not list the same atoms: atom {atom + 1} is "
        f"{coordinates.label(atom)} in the first and {topology.label(atom)} in the second ({what})",
        "give the topology that belongs to the coordinates",
    )
