"""Symmetry copies of a structure: the whole unit cell of a crystal, and the biological assemblies listed in a file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError, UsageError, shorten_text
from vmdpotential.io.files import text as files
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Floats, Integers, Structure

log = logging.getLogger(__name__)

#: An atom closer to its own copy than this distance, A, is on a symmetry axis, and only one copy is kept.
_SAME = 0.5

#: Operators of assemblies are rotations within this, written with few digits, and translations below this, A.
_NOT_TURNED, _FARTHEST = 0.01, 1e6


@dataclass(frozen=True)
class SymmetryCopies:
    """Symmetry copies of atoms of a structure.

    Parameters
    ----------
    rows : tuple of (m,) int64
        Indices of the atoms of each copy.
    rotations : (n, 3, 3) float64
        Rotation of each copy; for a crystal, of fractional coordinates.
    shifts : (n, 3) float64
        Translation of each copy, A; for a crystal, in fractional coordinates.
    cell : Cell or None
        Cell of the crystal, used for frames without one; None for an assembly.
    """

    rows: tuple[Integers, ...]
    rotations: Floats
    shifts: Floats
    cell: Cell | None

    def identity(self) -> tuple[object, ...]:
        """Return the values that determine the copies."""
        return self.rows, self.rotations, self.shifts, self.cell

    def of_positions(self, positions: Floats, cell: Cell | None) -> list[Floats]:
        """Return the positions of each copy, (m, 3) A, for positions (N, 3) of the structure's atoms in a cell."""
        vectors = np.eye(3) if self.cell is None else (cell or self.cell).vectors
        fractional = np.asarray(positions, np.float64) @ np.linalg.inv(vectors)
        return [(fractional[rows] @ rotation.T + shift) @ vectors
                for rows, rotation, shift in zip(self.rows, self.rotations, self.shifts, strict=True)]

    def __call__(self, positions: Floats, cell: Cell | None) -> tuple[Floats, Cell | None]:
        """Return positions (M, 3), A, and cell of all copies for the positions and the cell of a frame."""
        copies = np.concatenate(self.of_positions(positions, cell))
        return copies, None if self.cell is None else Cell((cell or self.cell).vectors)

    def without_duplicates(self, structure: Structure) -> SymmetryCopies:
        """Return the copies without duplicates of atoms on symmetry axes; a warning gives their number."""
        rows: list[Integers] = []
        positions: list[Floats] = []
        for atoms, copied in zip(self.rows, self.of_positions(structure.positions, structure.cell), strict=True):
            keep = np.ones(len(atoms), bool)
            for former_atoms, former in zip(rows, positions, strict=True):
                _, shared, shared_before = np.intersect1d(
                    atoms, former_atoms, assume_unique=True, return_indices=True)
                with np.errstate(over="ignore", invalid="ignore"):  # atoms may be anywhere
                    distance = copied[shared] - former[shared_before]
                    if self.cell is not None:
                        distance = self.cell.minimum_image(distance)
                    keep[shared[(distance**2).sum(1) < _SAME**2]] = False
            rows.append(atoms[keep])
            positions.append(copied[keep])
        duplicates = sum(map(len, self.rows)) - sum(map(len, rows))
        if duplicates:
            log.warning("%s: %d duplicate copies of atoms on symmetry axes are left out", structure.where, duplicates)
        return replace(self, rows=tuple(rows))

    def of_structure(self, structure: Structure) -> Structure:
        """Return the copies as one structure; from the second copy on, its number follows the chain's name (A2).

        Raises
        ------
        InputError
            When the structure has a topology, or no atoms of this assembly.
        """
        if structure.topology is not None:
            raise InputError(f"{structure.where}: has a topology, which does not describe the symmetry copies",
                             "leave {topology} out")
        index = np.concatenate(self.rows)
        if not len(index):
            raise InputError(f"{structure.where}: has no atoms of this assembly", "choose another {assembly}")
        copies_so_far = np.zeros(len(structure), np.int64)  # of each atom
        copy_numbers: list[Integers] = []
        residues: list[Integers] = []
        for atoms in self.rows:
            copy_numbers.append(copies_so_far[atoms])
            residues.append(structure.residue_index[atoms] + (int(structure.residue_index.max()) + 1) * len(residues))
            copies_so_far[atoms] += 1
        copy, joined = np.concatenate(copy_numbers), np.concatenate(residues)
        fields: dict[str, Any] = {name: value[index] for name, value in vars(structure).items()
                                  if isinstance(value, np.ndarray) and name != "residue_starts"}
        positions, cell = self(structure.positions, structure.cell)
        fields |= {"positions": positions, "cell": cell, "velocities": None,
                   "residue_index": np.cumsum(np.concatenate([[0], np.diff(joined) != 0])),
                   "chain_ids": np.where(copy == 0, fields["chain_ids"],
                                         np.char.add(fields["chain_ids"], (copy + 1).astype(np.str_)))}
        return replace(structure, groups={}, whole=None, whole_rows=None, listed_bonds=None, **fields)


def crystal(structure: Structure) -> SymmetryCopies:
    """Return the copies that fill the unit cell of a crystal structure, by the operators of its space group.

    Each copy is translated by whole cells so that its centre is in the cell. The space group of the result is P 1.

    Raises
    ------
    InputError
        When the structure has no cell.
    """
    import gemmi

    cell = structure.cell
    if cell is None:
        raise InputError(f"{structure.where}: has no cell to expand it to", "leave {expand} out")
    centre = structure.positions.mean(0) @ np.linalg.inv(cell.vectors)
    operators = list(gemmi.find_spacegroup_by_name(cell.space_group).operations())
    rotations = np.array([operator.rot for operator in operators], np.float64) / gemmi.Op.DEN
    shifts = np.array([operator.tran for operator in operators], np.float64) / gemmi.Op.DEN
    shifts -= np.floor(rotations @ centre + shifts)
    everything = np.arange(len(structure))
    return SymmetryCopies((everything,) * len(operators), rotations, shifts, cell).without_duplicates(structure)


def assembly(structure: Structure, path: Path, name: str) -> SymmetryCopies:
    """Return the copies that make up a biological assembly, which the structure's file lists by its name (``1``).

    Raises
    ------
    UsageError
        When the file lists other assemblies but not this one; the message lists them.
    InputError
        When the file lists no assemblies, or none of this one's operators, or cannot be read.
    """
    import gemmi

    with files.reading_file(path):
        data = files.read_text(files.buffered_stream(path), 8, 200).decode("latin-1")
        try:
            if data.lstrip().startswith(("data_", "#", "loop_")) or files.format_suffix(path) in (".cif", ".mmcif"):
                file = gemmi.make_structure_from_block(gemmi.cif.read_string(data).sole_block())
            else:
                file = gemmi.read_pdb_string(data)
        except (RuntimeError, ValueError) as error:
            reason = shorten_text(str(error).splitlines()[0], 120)
            raise InputError(f"{path}: its assemblies cannot be read ({reason})") from None
    if not (len(file) and len(file.assemblies)):
        raise InputError(f"{path}: lists no assemblies", "leave {assembly} out")
    match = next((listed for listed in file.assemblies if listed.name == name), None)
    if match is None:
        names = ", ".join(listed.name for listed in file.assemblies)
        raise UsageError("assembly", f"{path.name} lists {shorten_text(names, 100)}", value=name)
    file.setup_entities()
    rows: list[Integers] = []
    operators: list[Any] = []
    for generator in match.generators:
        atoms = np.flatnonzero(_rows(structure, file, list(generator.chains), list(generator.subchains)))
        operators += [operator.transform for operator in generator.operators]
        rows += [atoms] * len(generator.operators)
    rotations = np.array([operator.mat.tolist() for operator in operators]).reshape(-1, 3, 3)
    shifts = np.array([operator.vec.tolist() for operator in operators]).reshape(-1, 3)
    lengths_kept = np.clip(rotations, -2, 2) @ np.clip(rotations, -2, 2).transpose(0, 2, 1)
    if not (len(operators) and np.allclose(lengths_kept, np.eye(3), atol=_NOT_TURNED)
            and (abs(shifts) < _FARTHEST).all()):
        raise InputError(f"{path}: the operators of assembly {shorten_text(name, 20)} are missing, or are no rotations "
                         "and translations", "choose another {assembly}, or copy the file again")
    return SymmetryCopies(tuple(rows), rotations, shifts, None).without_duplicates(structure)


def _rows(structure: Structure, file: Any, chains: Sequence[str], subchains: Sequence[str]) -> NDArray[np.bool_]:
    """Return a mask (N,) of the atoms of chains, by the authors' names, or of subchains if some are given."""
    if not subchains:
        return np.isin(structure.chain_ids, list(chains))
    chosen = set(subchains)
    keys = {(chain.name, residue.seqid.num, residue.seqid.icode.strip(), residue.name)
            for chain in file[0] for residue in chain if residue.subchain in chosen}
    starts = structure.residue_starts[:-1]
    copied = [key in keys for key in zip(
        structure.chain_ids[starts].tolist(), structure.residue_ids[starts].tolist(),
        structure.insertion_codes[starts].tolist(), structure.residue_names[starts].tolist(), strict=True)]
    return np.repeat(np.array(copied, bool), np.diff(structure.residue_starts))
