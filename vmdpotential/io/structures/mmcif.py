"""mmCIF files: read with gemmi's CIF parser in the file's atom order, written with label and auth names.

The long ``_atom_site`` loop is given to the parser in pieces, which is several times faster and needs
less memory than parsing it at once. The author's names (``auth_*``) take precedence over the ``label_*``
names. The rules for models and alternate locations are those of :mod:`vmdpotential.io.structures.pdb`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError
from vmdpotential.io.files import columns, several
from vmdpotential.io.files import text as files
from vmdpotential.io.files.numbers import parse_reals, residue_number
from vmdpotential.io.structures import StructureWriter, pdb, pdbwrite
from vmdpotential.molecule import elements, residues
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.names import in_table, mapped_names
from vmdpotential.molecule.structure import Floats, Integers, Names, Structure

if TYPE_CHECKING:
    import gemmi

log = logging.getLogger(__name__)

_PIECE = 1_000_000
_LOOP = re.compile(rb"(?:^|(?<=\s))loop_\s+(?:_atom_site\.\S+\s+)+", re.IGNORECASE)
#: Text at the start of a line that ends the rows of a loop.
_ENDS = re.compile(rb"\n[ \t]*(?:#|_|loop_|data_|save_|global_|stop_)", re.IGNORECASE)
#: Most bytes of memory for each byte and for each line of a file (measured).
_MEMORY = (6.0, 64.0)
_NUMBERS = ("Cartn_x", "Cartn_y", "Cartn_z", "occupancy", "B_iso_or_equiv")
_TEXTS = (
    "group_PDB", "type_symbol", "label_alt_id", "label_asym_id", "auth_asym_id", "label_seq_id", "auth_seq_id",
    "pdbx_PDB_ins_code", "pdbx_PDB_model_num", "vmdpotential_segment_id", "vmdpotential_selected",
)  # fmt: skip
#: Columns of which the author's or the label's version must be present, and their meanings.
_EITHER = {"atom_id": "atom name", "comp_id": "residue name", "seq_id": "residue number"}

_TAGS = (
    "group_PDB", "id", "type_symbol", "label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id",
    "label_entity_id", "label_seq_id", "pdbx_PDB_ins_code", "Cartn_x", "Cartn_y", "Cartn_z", "occupancy",
    "B_iso_or_equiv", "auth_seq_id", "auth_comp_id", "auth_asym_id", "auth_atom_id", "pdbx_PDB_model_num",
)  # fmt: skip

Columns = dict[str, NDArray[Any]]


def read_mmcif(path: Path) -> Structure:
    """Return the structure of an mmCIF file (plain, .gz or .bz2).

    Raises
    ------
    InputError
        When the file cannot be read, is not an mmCIF file, has no atoms, or lacks a column; the message
        names the column.
    """
    block, models = _models(path)
    if len(models) > 1:
        several.warn_of_several(path, "models", len(models[0]["Cartn_x"]))
    return _structure(path, block, models[0])


def read_models(path: Path) -> Iterator[Structure]:
    """Yield the models of an mmCIF file; raises the errors of :func:`read_mmcif`."""
    block, models = _models(path)
    for result in models:
        yield _structure(path, block, result)


def _models(path: Path) -> tuple[gemmi.cif.Block, list[Columns]]:
    raw = files.read_text(path, *_MEMORY)
    block, result = _in_pieces(raw) or _at_once(path, raw)
    del raw
    _check_columns(path, result)
    model = result.get("pdbx_PDB_model_num")
    if model is None or (model == model[0]).all():
        return block, [result]
    return block, [{name: values[model == number] for name, values in result.items()}
                   for number in dict.fromkeys(model.tolist())]


def _in_pieces(raw: bytes) -> tuple[gemmi.cif.Block, Columns] | None:
    """Return the block with the atoms and its columns; None if the file has to be parsed as a whole."""
    from gemmi import cif

    match = _LOOP.search(raw)
    if match is None:
        return None
    start = match.end()
    end = _ENDS.search(raw, start - 1)
    stop = end.start() + 1 if end else len(raw)
    if raw.find(b"\n;", start - 1, stop) >= 0:  # a text field may contain anything, also line ends
        return None
    after = raw.find(b"\ndata_", stop - 1)
    try:
        before = cif.read_string(raw[: match.start()])
        block = before[len(before) - 1]
        if block.find_value("_cell.length_a") is None:
            rest = cif.read_string(b"data_rest\n" + raw[stop : after if after >= 0 else len(raw)])[0]
            block = rest if rest.find_value("_cell.length_a") is not None else block
        head = b"data_atoms\n" + match.group(0)
        pieces = []
        while start < stop:
            cut = raw.find(b"\n", min(start + _PIECE, stop - 1), stop) + 1 or stop
            if raw[start:cut].strip():
                piece = cif.read_string(head + raw[start:cut])
                if len(piece) > 1 or len(list(piece[0])) > 1:  # the loop ends in the middle of a line
                    return None
                pieces.append(_columns(piece[0]))
            start = cut
        return (block, {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]})
    except (ValueError, RuntimeError, IndexError, KeyError):  # parsing the whole file gives the error and its line
        return None


def _at_once(path: Path, raw: bytes) -> tuple[gemmi.cif.Block, Columns]:
    from gemmi import cif

    try:
        document = cif.read_string(raw)
    except (ValueError, RuntimeError) as error:
        reason = re.sub(r"^\w*:(\d+)[^ ]*:", r"line \1:", " ".join(str(error).split()))
        raise InputError(f"{path}: is not a valid mmCIF file ({reason})") from None
    for block in document:
        try:
            if block.find_mmcif_category("_atom_site."):
                return block, _columns(block)
        except (ValueError, RuntimeError) as error:  # raised also for a loop of several categories
            raise InputError(f"{path}: {error}") from None
    raise InputError(f"{path}: has no _atom_site loop, so it contains no atoms")


def _columns(block: gemmi.cif.Block) -> Columns:
    """Return the columns of the atom table as arrays; '.' and '?' become blanks, or NaN in numbers."""
    result: Columns = {}
    for name in (*_TEXTS, *_NUMBERS):
        values = list(block.find_values(f"_atom_site.{name}"))
        if values:
            result[name] = _numbers(values, name) if name in _NUMBERS else _texts(values)
    for name in _EITHER:
        values = list(block.find_values(f"_atom_site.auth_{name}"))
        labels = [] if values and "?" not in values and "." not in values else (
            list(block.find_values(f"_atom_site.label_{name}")))  # fmt: skip
        if values and labels:
            author = _texts(values)
            result[name] = np.where(author == "", _texts(labels), author)
        elif values or labels:
            result[name] = _texts(values or labels)
    return result


def _numbers(values: list[str], name: str) -> Floats:
    from gemmi import cif

    try:
        if values.count(values[0]) == len(values):
            return np.full(len(values), parse_reals(values[:1])[0])
        return parse_reals(values)
    except ValueError:
        pass
    result = np.empty(len(values))
    for i, value in enumerate(values):
        result[i] = cif.as_number(value)  # NaN for '.', '?' and text; understands 1.234(5)
        if np.isnan(result[i]) and value not in (".", "?") and value.lower().strip("+-") != "nan":
            raise ValueError(f"row {i + 1} of _atom_site: {name} is '{value}', not a number")
    return result


def _texts(values: list[str]) -> Names:
    from gemmi import cif

    if values.count(values[0]) == len(values):
        return np.full(len(values), cif.as_string(values[0]))
    array = np.array(values)
    letters = array.view(np.uint32).reshape(len(array), -1)
    first = letters[:, 0]
    for i in np.flatnonzero((first == 34) | (first == 39) | (first == 59)):  # quotes, text field
        array[i] = cif.as_string(values[i])
    null = (first == 46) | (first == 63)
    if letters.shape[1] > 1:
        null &= letters[:, 1] == 0
    array[null] = ""
    return array


def _check_columns(path: Path, table: Columns) -> None:
    for name in ("Cartn_x", "Cartn_y", "Cartn_z"):
        if name not in table:
            raise InputError(f"{path}: the atom table lacks the column _atom_site.{name}")
    if len({len(column) for column in table.values()}) > 1:
        raise InputError(f"{path}: the columns of the atom table differ in length")
    for name, meaning in _EITHER.items():
        if name not in table:
            raise InputError(f"{path}: the atom table lacks the column _atom_site.label_{name} ({meaning})")


def _structure(path: Path, block: gemmi.cif.Block, table: Columns) -> Structure:
    count = len(table["Cartn_x"])
    blank = np.full(count, "")
    names, residue_names = table["atom_id"], table["comp_id"]
    occupancies = _finite(table, "occupancy", 1.0, count)
    codes = table.get("pdbx_PDB_ins_code", blank)
    segments = table.get("vmdpotential_segment_id", blank)
    both = [table[name] for name in ("auth_seq_id", "label_seq_id", "auth_asym_id", "label_asym_id") if name in table]
    keep, changed = residues.chosen_conformers(path, table.get("label_alt_id", blank), names, residue_names,
                                               occupancies, residues.changes(codes, segments, *both))
    positions = np.stack([table[f"Cartn_{axis}"] for axis in "xyz"], axis=1)[keep]
    first = residues.starts(changed, residue_names[keep], names[keep], positions=positions)
    chains = table.get("auth_asym_id", table.get("label_asym_id", blank))
    types = table.get("type_symbol", blank)[keep]
    structure = Structure(
        positions=positions,
        atom_names=names[keep], residue_names=residue_names[keep],
        residue_ids=_integers(path, table["seq_id"])[keep],
        residue_index=residues.index(first, len(changed)), chain_ids=chains[keep], segment_ids=segments[keep],
        elements=elements.complete_elements(types, names[keep], residue_names[keep]), insertion_codes=codes[keep],
        hetero=table.get("group_PDB", blank)[keep] == "HETATM",
        occupancies=occupancies[keep], b_factors=_finite(table, "B_iso_or_equiv", 0.0, count)[keep],
        cell=_cell(path, block), title=_value(block, "_struct.title"), sources=(str(path),),
    )  # fmt: skip
    selected = table.get("vmdpotential_selected")  # 1 or 0: written by viewers that send all atoms and a selection
    return structure if selected is None else structure.part(selected[keep] == "1")


def _finite(table: Columns, name: str, default: float, count: int) -> Floats:
    values = table.get(name)
    return np.full(count, default) if values is None else np.where(np.isfinite(values), values, default)


def _integers(path: Path, texts: Names) -> Integers:
    def number(word: str) -> int:
        try:
            return residue_number(word) if word else 0
        except ValueError:
            raise InputError(
                f"{path}: the residue number '{word[:30]}' in _atom_site is not a whole number of 32 bits") from None

    return mapped_names(texts, number, np.int64)


def _value(block: gemmi.cif.Block, tag: str) -> str:
    from gemmi import cif

    value = block.find_value(tag)
    return " ".join(cif.as_string(value).split()) if value is not None and not cif.is_null(value) else ""


def _cell(path: Path, block: gemmi.cif.Block) -> Cell | None:
    from gemmi import cif

    lengths = [_value(block, f"_cell.length_{name}") for name in "abc"]
    if not all(lengths):
        return None
    angles = [_value(block, f"_cell.angle_{name}") or "90" for name in ("alpha", "beta", "gamma")]
    group = _value(block, "_symmetry.space_group_name_H-M") or _value(block, "_space_group.name_H-M_alt")
    return pdb.cell_of([cif.as_number(word) for word in lengths + angles], str(path), group)


def write_mmcif(structure: Structure, path: Path) -> None:
    """Write an mmCIF file with cell, label and author names.

    Coordinates are written with the fewest decimals, 3 to 6, that give them to 1e-9 A, or with 6.
    Segment names are in an additional column, ``_atom_site.vmdpotential_segment_id``.
    """
    files.write_bytes(path, _records(structure, Path(path)))


def _records(s: Structure, path: Path) -> Iterator[bytes]:
    from gemmi import cif

    name = re.sub(r"[^A-Za-z0-9_.-]", "_", path.name.split(".", 1)[0])
    yield f"data_{name or 'structure'}\n#\n_entry.id {cif.quote(name or 'structure')}\n".encode()
    if s.title:
        yield f"_struct.title {cif.quote(' '.join(s.title.split()))}\n".encode()
    if s.cell is not None:
        pdbwrite.warn_rotated(s.cell)
        for tag, value in zip(("length_a", "length_b", "length_c", "angle_alpha", "angle_beta", "angle_gamma"),
                              s.cell.parameters, strict=True):  # fmt: skip
            yield f"_cell.{tag} {value:.9g}\n".encode()
        yield f"_symmetry.space_group_name_H-M {cif.quote(s.cell.space_group)}\n".encode()
    with_segments = bool((s.segment_ids != "").any())
    tags = [*_TAGS, *["vmdpotential_segment_id"] * with_segments]
    yield b"#\nloop_\n" + b"".join(f"_atom_site.{tag}\n".encode() for tag in tags)
    yield from _rows(s, with_segments)
    yield b"#\n"


def _rows(s: Structure, with_segments: bool) -> Iterator[bytes]:
    """Yield the lines of the atom table: every column is text of fixed width, followed by a blank."""
    count = len(s)
    first = s.residue_starts[:-1]
    numbers = pdbwrite.written_numbers(s)
    # most readers group atoms by these numbers, so they must not recur in a chain
    unique, changed = residues.unique_numbers(s.chain_ids[first], s.insertion_codes[first], numbers[first])
    if changed:
        log.warning("residue numbers recur in a chain; in the mmCIF file the later residues get new numbers")
        numbers = np.repeat(unique, np.diff(s.residue_starts))
    linked = np.repeat(in_table(s.residue_names[first], elements.POLYMER_RESIDUES), np.diff(s.residue_starts))
    atom, residue, chain = _quoted(s.atom_names), _quoted(s.residue_names), _quoted(s.chain_ids)
    label_chain = np.where(chain == ".", _quoted(s.segment_ids), chain)
    parts: list[Names | Integers | str | tuple[Any, ...]] = [
        np.where(s.hetero, "HETATM", "ATOM"), np.arange(1, count + 1), _quoted(s.elements, "?"), atom, ".", residue,
        label_chain, ".", np.where(linked, numbers.astype("<U11"), "."), _quoted(s.insertion_codes, "?"),
        *[(s.positions[:, k], columns.decimals_needed(s.positions[:, k], 3, 6)) for k in range(3)],
        (s.occupancies, columns.decimals_needed(s.occupancies, 2, 6)),
        (s.b_factors, columns.decimals_needed(s.b_factors, 2, 6)), numbers, residue, chain, atom, "1",
    ]  # fmt: skip
    if with_segments:
        parts.append(_quoted(s.segment_ids))
    yield from columns.table_lines(parts, count)


def _quoted(names: Names, blank: str = ".") -> Names:
    """Return names as CIF values, quoted if necessary."""
    from gemmi import cif

    return mapped_names(names, lambda word: cif.quote(word) if word else blank)


WRITER = StructureWriter(write_mmcif)
