"""Whether models in structure files list the atoms in the order of the structure, as they are taken by their order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from vmdpotential.errors import InputError
from vmdpotential.io.files.text import buffered_stream, format_suffix, opened, reading_file
from vmdpotential.io.structures import mmcif, pdb
from vmdpotential.molecule.structure import Structure

#: An atom's name, residue name, chain and residue number.
_Label = tuple[str, str, str, str]
_REMEDY = "write all models with the atoms in one order"


def check_order(path: Path, structure: Structure) -> None:
    """Raise InputError for a file of models that lists a structure's atoms in another order, or other atoms.

    Only PDB, mmCIF and GRO files name the atoms of every frame; others are not read.
    """
    if format_suffix(path) in _READERS:
        with reading_file(path):
            _compare(path, _READERS[format_suffix(path)](buffered_stream(path)), structure)


def _compare(path: Path, models: Iterator[list[_Label]], structure: Structure) -> None:
    first, ours = _labels(structure), [label[::3] for label in _labels(structure)]
    for number, labels in enumerate(models):
        if len(labels) != len(structure):
            return  # the error is that of reading this frame
        theirs = [label[::3] for label in labels]
        # another program may name the same atoms differently, but has the same names only for the same atoms
        if not number and theirs != ours and sorted(theirs) == sorted(ours):
            _refuse(f"{path}: lists the atoms of {structure.where} in another order", labels, first, 3)
        renumbered = [label[:2] for label in labels] == [label[:2] for label in first]
        if number and labels != first and (not renumbered or sorted(labels) == sorted(first)):
            _refuse(f"{path}: model {number} (counted from 0) lists its atoms in another order than the first",
                    labels, first)
        first = first if number else labels


def _refuse(what: str, labels: list[_Label], others: list[_Label], step: int = 1) -> None:
    """Raise the error, which names the first atom of which every `step`-th part of the label differs."""
    at, (atom, other) = next((n, pair) for n, pair in enumerate(zip(labels, others, strict=True), 1)
                             if pair[0][::step] != pair[1][::step])
    raise InputError(f"{what}: atom {at} is {atom[1]}{atom[3]}:{atom[0]}, and there {other[1]}{other[3]}:{other[0]}",
                     _REMEDY)


def _labels(model: Structure) -> list[_Label]:
    return list(zip(model.atom_names.tolist(), model.residue_names.tolist(), model.chain_ids.tolist(),
                    map(str, model.residue_ids.tolist()), strict=True))


def _gro(path: Path) -> Iterator[list[_Label]]:
    with opened(path) as file:
        while file.readline() and (count := file.readline().strip()).isdigit():
            lines = [line.decode("latin-1") for line in itertools.islice(file, int(count))]
            yield [(line[10:15].strip(), line[5:10].strip(), "", line[:5].strip()) for line in lines]
            file.readline()


def _pdb(path: Path) -> Iterator[list[_Label]]:
    return map(_labels, pdb.read_models(path))


def _mmcif(path: Path) -> Iterator[list[_Label]]:
    return map(_labels, mmcif.read_models(path))


_READERS: dict[str, Callable[[Path], Iterator[list[_Label]]]] = {
    **dict.fromkeys((".pdb", ".ent"), _pdb), ".gro": _gro, **dict.fromkeys((".cif", ".mmcif", ".pdbx"), _mmcif)}
