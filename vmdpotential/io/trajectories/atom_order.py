"""Whether models in structure files list the atoms in the order of the structure, as they are taken by their order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from vmdpotential.errors import InputError
from vmdpotential.io.files.text import buffered_stream, format_suffix, opened, reading_file
from vmdpotential.io.structures.mmcif import read_models
from vmdpotential.molecule.structure import Structure

#: An atom's name, residue name, chain and residue number, as in the file.
_Label = tuple[str, str, str, str]


def check_order(path: Path, structure: Structure) -> None:
    """Raise InputError for a file of models that lists a structure's atoms in another order, or other atoms.

    Only PDB, mmCIF and GRO files name the atoms of every frame; others are not read.
    """
    if format_suffix(path) in _READERS:
        with reading_file(path):
            _compare(path, _READERS[format_suffix(path)](buffered_stream(path)), structure)


def _compare(path: Path, models: Iterator[list[_Label]], structure: Structure) -> None:
    first: list[_Label] | None = None
    for number, labels in enumerate(models):
        if len(labels) != len(structure):
            return  # the error is that of reading this frame
        if first is None:
            first = labels
            ours = list(zip(structure.atom_names.tolist(), map(str, structure.residue_ids.tolist()), strict=True))
            theirs = [(name, residue) for name, _, _, residue in labels]
            # another program may name the same atoms differently, but has the same names only for the same atoms
            if theirs != ours and sorted(theirs) == sorted(ours):
                at = next(n for n, (a, b) in enumerate(zip(theirs, ours, strict=True)) if a != b)
                raise InputError(f"{path}: lists the atoms of {structure.where} in another order: atom {at + 1} is "
                                 f"{_text(labels[at])}, and there {structure.label(at)}", _REMEDY)
        elif labels != first:
            renumbered = [label[:2] for label in labels] == [label[:2] for label in first]
            if not renumbered or sorted(labels) == sorted(first):
                at = next(n for n, (a, b) in enumerate(zip(labels, first, strict=True)) if a != b)
                raise InputError(f"{path}: model {number} (counted from 0) lists its atoms in another order than the "
                                 f"first: atom {at + 1} is {_text(labels[at])}, and there {_text(first[at])}", _REMEDY)


_REMEDY = "write all models with the atoms in one order"


def _text(label: _Label) -> str:
    return f"{label[1]}{label[3]}:{label[0]}"


def _pdb(path: Path) -> Iterator[list[_Label]]:
    labels: list[_Label] = []
    with opened(path) as file:
        for line in file:
            if line.startswith((b"ATOM", b"HETATM")):
                text = line[:27].decode("latin-1")
                labels.append((text[12:16].strip(), text[17:20].strip(), text[20:22].strip(), text[22:27].strip()))
            elif line.startswith((b"END", b"MODEL ")) and labels:
                yield labels
                labels = []
    if labels:
        yield labels


def _gro(path: Path) -> Iterator[list[_Label]]:
    with opened(path) as file:
        while file.readline() and (count := file.readline().strip()).isdigit():
            lines = [line.decode("latin-1") for line in itertools.islice(file, int(count))]
            yield [(line[10:15].strip(), line[5:10].strip(), "", line[:5].strip()) for line in lines]
            file.readline()


def _mmcif(path: Path) -> Iterator[list[_Label]]:
    for model in read_models(path):
        yield list(zip(model.atom_names.tolist(), model.residue_names.tolist(), model.chain_ids.tolist(),
                       map(str, model.residue_ids.tolist()), strict=True))


_READERS: dict[str, Callable[[Path], Iterator[list[_Label]]]] = {
    **dict.fromkeys((".pdb", ".ent"), _pdb), ".gro": _gro, **dict.fromkeys((".cif", ".mmcif", ".pdbx"), _mmcif)}
