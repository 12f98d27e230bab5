"""Structures as objects of PyMOL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from chempy import Atom
from chempy.models import Indexed
from numpy.typing import NDArray

from vmdpotential.io import write_structure
from vmdpotential.molecule.structure import Structure

from .convert import Selected

#: Name of residues that fill the cavities of a surface.
FILLER = "FIL"


def load_ions(cmd: Any, name: str, structure: Structure, atoms: Any, energies: Sequence[float]) -> None:
    """Make an object of atoms (indices) of a structure, without bonds, with energies in place of B factors."""
    model = Indexed()
    model.atom = [_atom(structure, int(row)) for row in atoms]
    for atom, energy in zip(model.atom, energies, strict=True):
        atom.b = energy
    cmd.load_model(model, name, zoom=0)


def load_whole(cmd: Any, name: str, structure: Structure) -> None:
    """Make an object of a structure; PyMOL finds the bonds."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "structure.cif"
        write_structure(structure, path)
        cmd.load(str(path), name, zoom=0)
    if structure.charges is not None:
        cmd.alter(f"%{name}", "partial_charge = charges[rank]", space={"charges": structure.charges.tolist()})


def add_fillers(cmd: Any, name: str, centres: NDArray[np.float64], radii: NDArray[np.float64]) -> None:
    """Add atoms (K,) named :data:`FILLER` to an object, which fill the closed cavities of its surface.

    Their radii, A, may be negative: a surface depends on their sum with the radius of its probe.
    """
    model = Indexed()
    for place, radius in zip(centres.tolist(), radii.tolist(), strict=True):
        atom = Atom()
        atom.coord, atom.vdw, atom.resn, atom.symbol, atom.hetatm = place, radius, FILLER, "X", 1
        atom.name, atom.resi = "X", str(len(model.atom) + 1)
        model.atom.append(atom)
    if model.atom:
        loaded = cmd.get_unused_name("_potential")
        cmd.load_model(model, loaded, zoom=0)
        cmd.copy_to(name, loaded, rename="", zoom=0)
        cmd.delete(loaded)


def load_structure(cmd: Any, name: str, structure: Structure, source: Selected, kept: Any) -> None:
    """Make an object of the kept atoms of a selection, with their bonds, and of the added atoms.

    Parameters
    ----------
    name : str
        Name of the object.
    structure : Structure
        The kept atoms, then the added ones.
    source : Selected
        The selection from which the kept atoms were read.
    kept : (K,) int64
        Indices of the kept atoms in the source's structure.
    """
    rows = source.order[kept]
    atoms_read: list[Any] = []
    bonds: list[Any] = []
    for part, state in source.parts():
        read = cmd.get_model(part, state)
        for bond in read.bond:
            bond.index = [len(atoms_read) + index for index in bond.index]
        bonds += read.bond
        atoms_read += read.atom
    model = Indexed()
    model.atom = [atoms_read[row] for row in rows]
    model.atom += [_atom(structure, row) for row in range(len(kept), len(structure))]
    for atom, value in zip(model.atom, structure.b_factors.tolist(), strict=True):
        atom.b = value
    if structure.charges is not None:
        for atom, charge in zip(model.atom, structure.charges.tolist(), strict=True):
            atom.partial_charge = charge
    new = {row: position for position, row in enumerate(rows.tolist())}
    for bond in bonds:
        if bond.index[0] in new and bond.index[1] in new:
            bond.index = [new[bond.index[0]], new[bond.index[1]]]
            model.bond.append(bond)
    cmd.load_model(model, name, zoom=0)
    if structure.cell is not None:
        cmd.set_symmetry(name, *structure.cell.parameters, structure.cell.space_group)


def nuclei_text(structure: Structure) -> str:
    """Return atoms in PDB format, from which PyMOL makes an object with bonds."""
    lines = []
    for row, (x, y, z) in enumerate(structure.positions.tolist()):
        name, element = structure.atom_names[row][:4], structure.elements[row]
        lines.append(f"HETATM{row % 99999 + 1:5d} {name:<4s} MOL A   1    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00"
                     f"{element:>12s}")
    return "\n".join([*lines, "END", ""])


def _atom(structure: Structure, row: int) -> Atom:
    charge = float(structure.charges[row]) if structure.charges is not None else 0.0
    atom = Atom()
    atom.coord = structure.positions[row].tolist()
    atom.name = str(structure.atom_names[row])
    atom.resn = str(structure.residue_names[row])
    atom.resi = str(structure.residue_ids[row])
    atom.resi_number = int(structure.residue_ids[row])
    atom.chain = str(structure.chain_ids[row])
    atom.segi = str(structure.segment_ids[row])
    atom.symbol = str(structure.elements[row])
    atom.partial_charge = charge
    atom.formal_charge = round(charge)
    atom.hetatm = 1
    return atom
