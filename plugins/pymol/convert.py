"""PyMOL's selections and map objects as Structure and Grid, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from chempy import Atom
from chempy.brick import Brick
from chempy.models import Indexed

from vmdpotential.errors import InputError, UsageError
from vmdpotential.frontend import adapters
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.columns import factor
from vmdpotential.molecule import elements, residues
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

#: What is asked of PyMOL for every atom; the names are PyMOL's.
_PROPERTIES = ("model", "index", "rank", "name", "alt", "resn", "resv", "resi", "chain", "segi", "elem", "type",
               "partial_charge", "q", "b")


@dataclass(frozen=True)
class Selected:
    """The atoms of a selection.

    Parameters
    ----------
    structure : Structure
    atoms : list of (str, int)
        The object that holds each atom, and its `index` there.
    order : (N,) int64
        Which atom of the selection, as PyMOL counts through it, each atom of the structure is.
    selection : str
    state : int
    count : int
        Atoms of the selection; more than in the structure where there are alternate locations.
    """

    structure: Structure
    atoms: list[tuple[str, int]]
    order: Any
    selection: str
    state: int
    count: int


def read_selection(cmd: Any, selection: str, state: int = -1) -> Selected:
    """Return the atoms of a selection in the order of the file they came from.

    PyMOL sorts the atoms of an object by residue and name; `rank` remembers the file's order, which a
    topology needs. Charges are taken from `partial_charge` when any is set (a PQR or MOL2 file). Of
    alternate locations one is kept, as from a file.

    Parameters
    ----------
    cmd : PyMOL's cmd module or instance
    selection : str
    state : int
        -1 for the current state.

    Raises
    ------
    InputError
        When there are no atoms, when two objects have atoms at the same place, when some of the objects
        have partial charges and others have none, or when their periodic cells differ.
    """
    rows: list[tuple[Any, ...]] = []
    cmd.iterate_state(state, selection, f"add_row(({','.join(_PROPERTIES)}))", space={"add_row": rows.append})
    if not rows:
        raise InputError(f"selection '{selection}' has no atoms in this state", "load a structure or select others")
    columns = dict(zip(_PROPERTIES, map(np.array, zip(*rows, strict=True)), strict=True))
    # coordinates as they are seen: those of iterate_state lack the matrix of a moved object
    columns["position"] = np.asarray(cmd.get_coords(selection, state), np.float64)
    names, number = np.unique(columns["model"], return_inverse=True)
    adapters.check_places([f"object {name}" for name in names], number, columns["position"])
    columns["copy"] = _copies(columns)
    order = _file_order(columns)
    columns = {name: column[order] for name, column in columns.items()}

    numbered = _changes(columns, "model", "segi", "chain", "resi", "copy")
    kept = residues.alternates(columns["alt"], columns["name"], columns["q"], numbered)
    order, columns = order[kept], {name: column[kept] for name, column in columns.items()}
    changed = _changes(columns, "model", "segi", "chain", "resi", "copy", "resn")
    first = residues.starts(changed, columns["resn"], factor(columns["name"])[1].astype(np.uint64))
    objects = list(dict.fromkeys(columns["model"].tolist()))
    structure = Structure(
        positions=columns["position"],
        atom_names=columns["name"],
        residue_names=columns["resn"],
        residue_ids=columns["resv"],
        residue_index=residues.index(first, len(kept[kept])),
        chain_ids=columns["chain"],
        segment_ids=columns["segi"],
        elements=elements.complete(np.char.capitalize(columns["elem"]), columns["name"], columns["resn"]),
        insertion_codes=np.array([text.lstrip("-0123456789") for text in columns["resi"]]),
        charges=_charges(columns["model"], columns["partial_charge"].astype(float)),
        hetero=columns["type"] == "HETATM",
        occupancies=columns["q"],
        b_factors=columns["b"],
        cell=_cell(cmd, objects, state),
        sources=tuple(objects),
    )
    atoms = list(zip(columns["model"].tolist(), columns["index"].tolist(), strict=True))
    return Selected(structure, atoms, order, selection, state, len(rows))


def read_with_topology(cmd: Any, selection: str, topology: Path, state: int = -1) -> Selected:
    """Return the atoms of a selection with the charges and bonds of a topology of the whole objects.

    Raises
    ------
    InputError
        When the topology cannot be read, or lists other atoms than the objects that the selection is of.
    """
    whole = read_selection(cmd, f"byobject ({selection})", state)
    wanted: set[tuple[str, int]] = set()
    cmd.iterate_state(state, selection, "add_row((model, index))", space={"add_row": wanted.add})
    chosen = np.array([atom in wanted for atom in whole.atoms])
    if not chosen.any():
        raise InputError(f"selection '{selection}' has no atoms in this state", "load a structure or select others")
    atoms = [atom for atom in whole.atoms if atom in wanted]
    structure = adapters.with_topology(whole.structure, topology, chosen)
    return Selected(structure, atoms, whole.order[chosen], whole.selection, state, whole.count)


def _changes(columns: Mapping[str, Any], *names: str) -> Any:
    """Return (N,) bool, where any of the columns differs from the atom before."""
    changed = np.any([columns[name][1:] != columns[name][:-1] for name in names], axis=0)
    return np.concatenate([[True], changed])


def _copies(columns: Mapping[str, Any]) -> Any:
    """Return (N,) how often an atom of the same residue, name and alternate location came before it.

    0 unless a residue number stands for several residues, as in a large box of water.
    """
    seen: dict[tuple[Any, ...], int] = {}
    copies = []
    for key in zip(*(columns[name].tolist() for name in ("model", "segi", "chain", "resi", "resn", "name", "alt")),
                   strict=True):
        copies.append(seen.get(key, 0))
        seen[key] = copies[-1] + 1
    return np.array(copies)


def _file_order(columns: Mapping[str, Any]) -> Any:
    """Return the order by rank within each object.

    Ranks repeat in an object merged from others; then PyMOL's order stands, but with the copies of a
    residue number, whose atoms PyMOL mixes, one after the other.
    """
    order = []
    for model in dict.fromkeys(columns["model"].tolist()):
        rows = np.flatnonzero(columns["model"] == model)
        ranks, copies = columns["rank"][rows], columns["copy"][rows]
        if len(np.unique(ranks)) == len(rows):
            order.append(rows[np.argsort(ranks)])
            columns["copy"][rows] = 0
        else:
            part = {name: columns[name][rows] for name in ("segi", "chain", "resi", "resn")}
            order.append(rows[np.lexsort((copies, np.cumsum(_changes(part, *part))))])
    return np.concatenate(order)


def _charges(models: Any, partial: Any) -> Any:
    return adapters.charges_of(
        partial, np.isin(models, models[partial != 0]), lambda row: f"those of object {models[row]}",
        "select atoms of one kind, or set all charges to 0 with: alter all, partial_charge=0")


def _cell(cmd: Any, objects: list[str], state: int) -> Cell | None:
    """Return the cell of the objects that have one; they must agree."""
    found = {}
    for name in objects:
        symmetry = cmd.get_symmetry(name, state)
        if symmetry and list(symmetry[:3]) != [1, 1, 1]:  # a cell of 1 A is how files say that there is none
            found[f"object {name}"] = [float(x) for x in symmetry[:6]], str(symmetry[6])
    return adapters.cell_of(found)


def load_grid(cmd: Any, name: str, grid: Grid) -> None:
    """Make a map object; its values are those of the grid, bit by bit."""
    if min(grid.lattice.shape) < 2:
        raise UsageError("spacing", "PyMOL shows maps of at least 2 points along each axis", "use a smaller one")
    lattice = grid.lattice
    cmd.load_brick(Brick.from_numpy(grid.values, lattice.spacing.tolist(), lattice.origin.tolist()), name)


def read_grid(cmd: Any, name: str, header: Mapping[str, str]) -> Grid:
    """Return a map object as a Grid.

    Parameters
    ----------
    name : str
    header : mapping
        What PyMOL does not keep: unit, temperature and so on, as :meth:`Grid.header` gives them.

    Raises
    ------
    InputError
        When the object's axes are not at right angles.
    """
    symmetry = cmd.get_symmetry(name)
    if symmetry and any(abs(angle - 90) > 1e-3 for angle in symmetry[3:6]):
        raise InputError(f"map '{name}' has oblique axes", "only maps with right angles can be cut")
    values = np.asarray(cmd.get_volume_field(name), np.float32)
    low, high = np.array(cmd.get_extent(name), np.float64)
    lattice = Lattice(low, (high - low) / np.maximum(np.array(values.shape) - 1, 1), values.shape)
    return Grid.from_header(lattice, values, header)


def load_ions(cmd: Any, name: str, structure: Structure, atoms: Any, energies: Sequence[float]) -> None:
    """Make an object of some atoms (indices) of a structure that have no bonds, with their energies as b."""
    model = Indexed()
    model.atom = [_atom(structure, int(row)) for row in atoms]
    for atom, energy in zip(model.atom, energies, strict=True):
        atom.b = energy
    cmd.load_model(model, name, zoom=0)


def load_structure(cmd: Any, name: str, structure: Structure, source: Selected, kept: Any) -> None:
    """Make an object of what was kept of a selection, with its bonds, and of what was added to it.

    Parameters
    ----------
    name : str
    structure : Structure
        The kept atoms, then those added.
    source : Selected
        What the selection was read as.
    kept : (K,) int64
        Rows of the source's structure.
    """
    read = cmd.get_model(source.selection, source.state)
    rows = source.order[kept]
    model = Indexed()
    model.atom = [read.atom[row] for row in rows]
    model.atom += [_atom(structure, row) for row in range(len(kept), len(structure))]
    if structure.charges is not None:
        for atom, charge in zip(model.atom, structure.charges.tolist(), strict=True):
            atom.partial_charge = charge
    new = {row: position for position, row in enumerate(rows.tolist())}
    for bond in read.bond:
        if bond.index[0] in new and bond.index[1] in new:
            bond.index = [new[bond.index[0]], new[bond.index[1]]]
            model.bond.append(bond)
    cmd.load_model(model, name, zoom=0)
    if structure.cell is not None:
        cmd.set_symmetry(name, *structure.cell.parameters, structure.cell.space_group)


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
