"""Copies of a structure by symmetry: the whole cell of a crystal, and the biological assemblies that a file lists."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError, UsageError
from vmdpotential.io.files import text as files
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Floats, Structure

log = logging.getLogger(__name__)

#: An atom that is nearer to its own copy than this, A, is on an axis, and there once.
_SAME = 0.5

#: A rotation (3, 3), a shift (3,), A, and the atoms (N,) bool that they copy.
_Copy = tuple[Floats, Floats, NDArray[np.bool_]]


def expanded(structure: Structure) -> Structure:
    """Return all that is in the cell of a crystal, by the operators of its space group; the cell is then P 1.

    Each copy is moved by whole cells, so that its centre is in the cell.

    Raises
    ------
    InputError
        For a structure without a cell, or with a topology.
    """
    import gemmi

    cell = structure.cell
    if cell is None:
        raise InputError(f"{structure.where}: has no cell to expand it to", "leave {expand} out")
    everything = np.ones(len(structure), bool)
    to_fractional = np.linalg.inv(cell.vectors)
    copies: list[_Copy] = []
    group = gemmi.find_spacegroup_by_name(cell.space_group)
    for operator in group.operations():
        matrix = np.array(operator.rot, np.float64) / operator.DEN
        shift = np.array(operator.tran, np.float64) / operator.DEN
        centre = structure.positions.mean(0) @ to_fractional @ matrix.T + shift
        shift -= np.floor(centre)
        copies.append((cell.vectors.T @ matrix @ to_fractional.T, shift @ cell.vectors, everything))
    return replace(_joined(structure, copies), cell=Cell(cell.vectors))


def assembled(structure: Structure, path: Path, name: str) -> Structure:
    """Return the biological assembly of a structure that its file lists under a name (``1``); it has no cell.

    Raises
    ------
    UsageError
        When there is no such assembly; the message lists those there are.
    InputError
        When the file lists none, or for a structure with a topology.
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
    found = next((one for one in file.assemblies if one.name == name), None)
    if found is None:
        raise UsageError("assembly", f"the file lists {', '.join(one.name for one in file.assemblies)}", value=name)
    file.setup_entities()
    copies: list[_Copy] = []
    for generator in found.generators:
        rows = _rows(structure, file, list(generator.chains), list(generator.subchains))
        for operator in generator.operators:
            copies.append((np.array(operator.transform.mat.tolist()), np.array(operator.transform.vec.tolist()), rows))
    return _joined(replace(structure, cell=None), copies)


def _rows(structure: Structure, file: Any, chains: Sequence[str], subchains: Sequence[str]) -> NDArray[np.bool_]:
    """Return the atoms (N,) bool of chains, by the authors' names, or of subchains, by those of the file."""
    if not subchains:
        return np.isin(structure.chain_ids, list(chains))
    wanted = set(subchains)
    keys = {(chain.name, residue.seqid.num, residue.seqid.icode.strip(), residue.name)
            for chain in file[0] for residue in chain if residue.subchain in wanted}
    starts = structure.residue_starts[:-1]
    found = [key in keys for key in zip(
        structure.chain_ids[starts].tolist(), structure.residue_ids[starts].tolist(),
        structure.insertion_codes[starts].tolist(), structure.residue_names[starts].tolist(), strict=True)]
    return np.repeat(np.array(found, bool), np.diff(structure.residue_starts))


def _joined(structure: Structure, copies: Sequence[_Copy]) -> Structure:
    """Return the copies as one structure; chains of the second copy on have its number (A2)."""
    if structure.topology is not None:
        raise InputError(f"{structure.where}: has a topology, which is of these atoms alone", "leave {topology} out")
    rows: list[NDArray[np.int64]] = []
    positions: list[Floats] = []
    number: list[NDArray[np.int64]] = []
    residues: list[NDArray[np.int64]] = []
    once = np.zeros(len(structure), np.int64)  # how many copies an atom has had
    for rotation, shift, chosen in copies:
        atoms = np.flatnonzero(chosen)
        places = structure.positions[atoms] @ rotation.T + shift
        fresh = np.ones(len(atoms), bool)
        for before, former in zip(rows, positions, strict=True):
            _, one, two = np.intersect1d(atoms, before, assume_unique=True, return_indices=True)
            apart = places[one] - former[two]
            if structure.cell is not None:
                apart = structure.cell.minimum_image(apart)
            fresh[one[(apart**2).sum(1) < _SAME**2]] = False
        atoms, places = atoms[fresh], places[fresh]
        rows.append(atoms)
        positions.append(places)
        number.append(once[atoms])
        residues.append(structure.residue_index[atoms] + (int(structure.residue_index.max()) + 1) * len(residues))
        once[atoms] += 1
    left = sum(int(chosen.sum()) for _, _, chosen in copies) - sum(map(len, rows))
    if left:
        log.warning("%s: %d copies of atoms on axes of symmetry are left out, as they are there once", structure.where,
                    left)
    index, copy = np.concatenate(rows), np.concatenate(number)
    if not len(index):
        raise InputError(f"{structure.where}: has no atoms of this assembly", "choose another {assembly}")
    fields: dict[str, Any] = {name: value[index] for name, value in vars(structure).items()
                              if isinstance(value, np.ndarray) and name != "residue_starts"}
    joined = np.concatenate(residues)
    fields |= {"positions": np.concatenate(positions), "velocities": None,
               "residue_index": np.cumsum(np.concatenate([[0], np.diff(joined) != 0])),
               "chain_ids": np.where(copy == 0, fields["chain_ids"],
                                     np.char.add(fields["chain_ids"], (copy + 1).astype(np.str_)))}
    return replace(structure, groups={}, whole=None, whole_rows=None, **fields)
