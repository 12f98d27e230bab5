"""Copies of a structure by symmetry: the whole cell of a crystal, and the biological assemblies that a file lists."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError, UsageError
from vmdpotential.io.files import text as files
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Floats, Integers, Structure

log = logging.getLogger(__name__)

#: An atom that is nearer to its own copy than this, A, is on an axis, and there once.
_SAME = 0.5


@dataclass(frozen=True)
class Copies:
    """Copies of atoms of a structure by symmetry.

    Parameters
    ----------
    rows : tuple of (m,) int64
        Which atoms each copy has.
    rotations : (n, 3, 3) float64
    shifts : (n, 3) float64
        In A; of a crystal, rotations and shifts are of fractional coordinates.
    cell : Cell or None
        Of the crystal, where frames have none; None of an assembly.
    """

    rows: tuple[Integers, ...]
    rotations: Floats
    shifts: Floats
    cell: Cell | None

    def identity(self) -> tuple[object, ...]:
        """Return what determines the copies."""
        return self.rows, self.rotations, self.shifts, self.cell

    def of_positions(self, positions: Floats, cell: Cell | None) -> list[Floats]:
        """Return the positions of each copy, (m, 3) in A, for those (N, 3) of the structure's atoms in a cell."""
        vectors = np.eye(3) if self.cell is None else (cell or self.cell).vectors
        places = np.asarray(positions, np.float64) @ np.linalg.inv(vectors)
        return [(places[rows] @ rotation.T + shift) @ vectors
                for rows, rotation, shift in zip(self.rows, self.rotations, self.shifts, strict=True)]

    def __call__(self, positions: Floats, cell: Cell | None) -> tuple[Floats, Cell | None]:
        """Return the positions (M, 3), A, and the cell of the copies for those of a frame."""
        made = np.concatenate(self.of_positions(positions, cell))
        return made, None if self.cell is None else Cell((cell or self.cell).vectors)

    def once(self, structure: Structure) -> Copies:
        """Return the copies in which an atom on an axis of symmetry is there once; a warning says how many are."""
        rows: list[Integers] = []
        positions: list[Floats] = []
        for atoms, places in zip(self.rows, self.of_positions(structure.positions, structure.cell), strict=True):
            fresh = np.ones(len(atoms), bool)
            for before, former in zip(rows, positions, strict=True):
                _, shared, shared_before = np.intersect1d(atoms, before, assume_unique=True, return_indices=True)
                apart = places[shared] - former[shared_before]
                if self.cell is not None:
                    apart = self.cell.minimum_image(apart)
                fresh[shared[(apart**2).sum(1) < _SAME**2]] = False
            rows.append(atoms[fresh])
            positions.append(places[fresh])
        left = sum(map(len, self.rows)) - sum(map(len, rows))
        if left:
            log.warning("%s: %d copies of atoms on axes of symmetry are left out, as they are there once",
                        structure.where, left)
        return replace(self, rows=tuple(rows))

    def of_structure(self, structure: Structure) -> Structure:
        """Return the copies as one structure; chains of the second copy on have its number (A2).

        Raises
        ------
        InputError
            For a structure with a topology, or without atoms of this assembly.
        """
        if structure.topology is not None:
            raise InputError(f"{structure.where}: has a topology, which is of these atoms alone",
                             "leave {topology} out")
        index = np.concatenate(self.rows)
        if not len(index):
            raise InputError(f"{structure.where}: has no atoms of this assembly", "choose another {assembly}")
        before = np.zeros(len(structure), np.int64)  # how many copies an atom has had
        number: list[Integers] = []
        residues: list[Integers] = []
        for atoms in self.rows:
            number.append(before[atoms])
            residues.append(structure.residue_index[atoms] + (int(structure.residue_index.max()) + 1) * len(residues))
            before[atoms] += 1
        copy, joined = np.concatenate(number), np.concatenate(residues)
        fields: dict[str, Any] = {name: value[index] for name, value in vars(structure).items()
                                  if isinstance(value, np.ndarray) and name != "residue_starts"}
        positions, cell = self(structure.positions, structure.cell)
        fields |= {"positions": positions, "cell": cell, "velocities": None,
                   "residue_index": np.cumsum(np.concatenate([[0], np.diff(joined) != 0])),
                   "chain_ids": np.where(copy == 0, fields["chain_ids"],
                                         np.char.add(fields["chain_ids"], (copy + 1).astype(np.str_)))}
        return replace(structure, groups={}, whole=None, whole_rows=None, **fields)


def crystal(structure: Structure) -> Copies:
    """Return the copies of a structure that fill the cell of its crystal, by the operators of its space group.

    Each copy is moved by whole cells, so that its centre is in the cell, which is P 1 then.

    Raises
    ------
    InputError
        For a structure without a cell.
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
    return Copies((everything,) * len(operators), rotations, shifts, cell).once(structure)


def assembly(structure: Structure, path: Path, name: str) -> Copies:
    """Return what makes the biological assembly of a structure that its file lists under a name (``1``).

    Raises
    ------
    UsageError
        When there is no such assembly; the message lists those there are.
    InputError
        When the file lists none.
    """
    import gemmi

    with files.reading(path):
        data = files.read_text(files.held(path), 8, 200).decode("latin-1")
        try:
            if data.lstrip().startswith(("data_", "#", "loop_")) or files.suffix(path) in (".cif", ".mmcif"):
                file = gemmi.make_structure_from_block(gemmi.cif.read_string(data).sole_block())
            else:
                file = gemmi.read_pdb_string(data)
        except (RuntimeError, ValueError) as error:
            raise InputError(f"{path}: its assemblies cannot be read ({str(error).splitlines()[0][:120]})") from None
    if not len(file.assemblies):
        raise InputError(f"{path}: lists no assemblies", "leave {assembly} out")
    match = next((listed for listed in file.assemblies if listed.name == name), None)
    if match is None:
        raise UsageError("assembly",
                         f"the file lists {', '.join(listed.name for listed in file.assemblies)}", value=name)
    file.setup_entities()
    rows: list[Integers] = []
    operators: list[Any] = []
    for generator in match.generators:
        atoms = np.flatnonzero(_rows(structure, file, list(generator.chains), list(generator.subchains)))
        operators += [operator.transform for operator in generator.operators]
        rows += [atoms] * len(generator.operators)
    return Copies(tuple(rows), np.array([operator.mat.tolist() for operator in operators]).reshape(-1, 3, 3),
                  np.array([operator.vec.tolist() for operator in operators]).reshape(-1, 3), None).once(
                      structure)


def _rows(structure: Structure, file: Any, chains: Sequence[str], subchains: Sequence[str]) -> NDArray[np.bool_]:
    """Return the atoms (N,) bool of chains, by the authors' names, or of subchains, by those of the file."""
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
