"""Conversion of PyMOL's selections and states to Structure and frames."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pymol import CmdException

from vmdpotential.errors import BackendError, InputError
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.molecule import elements, residues
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.names import unique_names
from vmdpotential.molecule.structure import Structure

from ..viewers import adapters

log = logging.getLogger("vmdpotential.pymol")

#: Properties that are read for every atom, by PyMOL's names.
_PROPERTIES = ("model", "index", "rank", "name", "alt", "resn", "resv", "resi", "chain", "segi", "elem", "type",
               "partial_charge", "q", "b")


@dataclass(frozen=True)
class Selected:
    """The atoms of a selection.

    Parameters
    ----------
    structure : Structure
        The atoms, in the order of their file.
    atoms : list of (str, int)
        The object of each atom, and the atom's `index` in it.
    order : (N,) int64
        Position of each atom of the structure in PyMOL's order of the selection.
    selection : str
        The selection in PyMOL's language.
    states : dict
        State of each object that was read.
    count : int
        Number of atoms of the selection; more than in the structure if there are alternate locations.
    """

    structure: Structure
    atoms: list[tuple[str, int]]
    order: Any
    selection: str
    states: dict[str, int]
    count: int

    def parts(self) -> list[tuple[str, int]]:
        """Return a selection and a state for the selected part of each object, in the order of the atoms."""
        return _parts(self.states, self.selection)


def shown_states(cmd: Any, selection: str) -> dict[str, int]:
    """Return the state that PyMOL shows of each object of a selection, without objects that it does not show.

    An object with one state is shown in every frame, unless the setting static_singletons is off.
    """
    try:
        names = cmd.get_object_list(f"({selection})") or []
    except CmdException:  # its own message has several lines
        raise InputError(f"selection '{selection}' is not in PyMOL's language of selections") from None
    states = {}
    for name in names:
        state, count = _shown_state(cmd, name)
        if state <= count:
            states[name] = state
        else:
            log.warning("object %s has no state %d and is left out", name, state)
    return states


def _shown_state(cmd: Any, name: str) -> tuple[int, int]:
    """Return the state that PyMOL shows of an object, and its number of states."""
    count = cmd.count_states(f"%{name}")
    static = count < 2 and cmd.get_setting_boolean("static_singletons")
    return 1 if static else cmd.get_setting_int("state", name), count


def _parts(states: Mapping[str, int], selection: str) -> list[tuple[str, int]]:
    return [(f"%{name} and ({selection})", state) for name, state in states.items()]


def read_selection(cmd: Any, selection: str, topology: Path | None = None, without: Sequence[str] = ()) -> Selected:
    """Return the atoms of a selection as they are shown, in the order of their file.

    PyMOL sorts the atoms of an object by residue and name; the property `rank` has the file's order, which is needed
    for a topology. Charges are those of a topology of the whole objects, or else PyMOL's `partial_charge` if an object
    has some (from a PQR or MOL2 file). One of alternate locations is kept, as in files. The structure refers to the
    whole objects, as these determine the force field.

    Parameters
    ----------
    cmd : PyMOL's cmd module or instance
    selection : str
        The selection in PyMOL's language.
    topology : Path, optional
        Topology of the whole objects.
    without : sequence of str
        Names of objects, which need not exist, whose atoms are left out, as they only display a result.

    Raises
    ------
    InputError
        When there are no atoms, when two objects have atoms at the same place, when some of the atoms have
        partial charges and others have none, when the objects' periodic cells differ, or when the topology cannot be
        read or lists other atoms than the objects.
    """
    states = shown_states(cmd, selection)
    chosen = selection
    if without:
        chosen = f"({selection}) and not ({' or '.join(f'?{name}' for name in without)})"
        states = {name: state for name, state in states.items() if name not in without}
    results: list[tuple[str, int]] = []
    for part, state in _parts(states, chosen):
        cmd.iterate_state(state, part, "add_row((model, index))", space={"add_row": results.append})
    places = {atom: place for place, atom in enumerate(results)}
    if not places:
        raise InputError(f"selection '{selection}' has no atoms in this state", "load a structure or select others")
    whole, atoms = _read_objects(cmd, states, places)
    order = np.array([places.get(atom, -1) for atom in atoms])
    taken = order >= 0
    model = np.array([name for name, _ in atoms])
    names, number = np.unique(model[taken], return_inverse=True)
    adapters.check_places([f"object {name}" for name in names], number, whole.positions[taken])
    if topology is not None:
        structure = adapters.with_topology(whole, topology, taken)
    else:
        assert whole.charges is not None
        charges = _charges(model, whole.residue_starts, whole.charges)
        structure = adapters.with_charges(
            replace(whole, charges=None), taken, charges, f"PyMOL object {' and '.join(names)}",
            lambda row: f"{whole.label(row)} of object {model[row]}",
            "select atoms of one kind, or set all charges to 0 with: alter all, partial_charge=0")
    kept = [atom for atom in atoms if atom in places]
    return Selected(structure, kept, order[taken], chosen, states, len(places))


def rows_of(cmd: Any, source: Selected, text: str) -> Any:
    """Return the indices (K,) of the atoms of a structure that are in another selection, in the states that were read.

    None if `text` is not in PyMOL's language.
    """
    rows = {atom: row for row, atom in enumerate(source.atoms)}
    result: set[tuple[str, int]] = set()
    name = cmd.get_unused_name("_potential")
    try:
        for part, state in source.parts():
            # a named selection, because it can be evaluated in a state, on which distances depend
            cmd.select(name, f"({part}) and ({text})", enable=0, quiet=1, state=state)
            result.update(cmd.index(name))
    except CmdException:
        return None
    finally:
        cmd.delete(name)
    return np.array(sorted(rows[atom] for atom in result if atom in rows), np.int64)


def positions_now(cmd: Any, source: Selected) -> Any:
    """Return the positions (M, 3), A, of a selection's atoms as they are shown, in PyMOL's order.

    None while an object does not have the shown state, or has other atoms.
    """
    parts = [cmd.get_coords(part, _shown_state(cmd, name)[0])
             for name, (part, _) in zip(source.states, source.parts(), strict=True)
             if name in cmd.get_names("objects")]
    if len(parts) < len(source.states) or any(part is None for part in parts):
        return None
    positions = np.concatenate(parts)
    return positions if len(positions) == source.count else None


def read_frames(cmd: Any, source: Selected) -> LoadedFrames:
    """Return the states of a selection's objects as frames; an object with a single state is in every frame.

    Raises
    ------
    InputError
        When an object has no atoms, or other atoms, in a state.
    """
    counts = {name: cmd.count_states(f"%{name}") for name in source.states}
    held = []
    for state in range(1, max(counts.values()) + 1):
        states = {name: state if count > 1 else 1 for name, count in counts.items()}
        results = [cmd.get_coords(part, states[name]) for name, (part, _) in zip(states, source.parts(), strict=True)]
        if any(part is None for part in results) or sum(map(len, results)) != source.count:
            raise InputError(f"state {state} has different atoms from the state shown",
                             "choose objects with the same atoms in all states")
        held.append((np.concatenate(results)[source.order], _cell(cmd, states)))
    return LoadedFrames(f"the states of {' and '.join(counts)}", held)


def symmetries(cmd: Any, source: Selected) -> list[Any]:
    """Return PyMOL's symmetry of each object of a selection in the state that is shown."""
    return [cmd.get_symmetry(name, _shown_state(cmd, name)[0]) for name in source.states]


def cell_now(cmd: Any, source: Selected) -> Cell | None:
    """Return the periodic cell of a selection in the states that are shown."""
    return _cell(cmd, {name: _shown_state(cmd, name)[0] for name in source.states})


def _read_objects(
    cmd: Any, states: Mapping[str, int], selected: Collection[tuple[str, int]]
) -> tuple[Structure, list[tuple[str, int]]]:
    """Return all atoms of objects, with `partial_charge` as charges, and the object and index of each.

    Among alternate locations, one with selected atoms is preferred.
    """
    rows: list[tuple[Any, ...]] = []
    positions = []
    for part, state in _parts(states, "all"):
        cmd.iterate_state(state, part, f"add_row(({','.join(_PROPERTIES)}))", space={"add_row": rows.append})
        # coordinates as shown: those of iterate_state do not include the matrix of a moved object
        try:
            positions.append(np.asarray(cmd.get_coords(part, state), np.float64))
        except (SystemError, ImportError):  # of PyMOL's compiled part, which also prints why
            raise BackendError(f"this PyMOL was compiled for another version of NumPy than {np.__version__}, and "
                               "cannot give coordinates", f"{sys.executable} -m pip install 'numpy<2'") from None
    columns = dict(zip(_PROPERTIES, map(np.array, zip(*rows, strict=True)), strict=True))
    columns["position"] = np.concatenate(positions)
    columns["copy"] = _copies(columns)
    columns["selected"] = np.array([row[:2] in selected for row in rows])
    order = _file_order(columns)
    columns = {name: column[order] for name, column in columns.items()}

    numbered = _changes(columns, "model", "segi", "chain", "resi", "copy")
    kept = residues.alternates(columns["alt"], columns["name"], _weights(columns, numbered), numbered)
    columns = {name: column[kept] for name, column in columns.items()}
    changed = _changes(columns, "model", "segi", "chain", "resi", "copy", "resn")
    first = residues.starts(changed, columns["resn"], unique_names(columns["name"])[1].astype(np.uint64))
    objects = list(dict.fromkeys(columns["model"].tolist()))
    structure = Structure(
        positions=columns["position"],
        atom_names=columns["name"],
        residue_names=columns["resn"],
        residue_ids=columns["resv"],
        residue_index=residues.index(first, len(kept[kept])),
        chain_ids=columns["chain"],
        segment_ids=columns["segi"],
        elements=elements.complete_elements(np.char.capitalize(columns["elem"]), columns["name"], columns["resn"]),
        insertion_codes=np.array([text.lstrip("-0123456789") for text in columns["resi"]]),
        charges=columns["partial_charge"].astype(float),
        hetero=columns["type"] == "HETATM",
        occupancies=columns["q"],
        b_factors=columns["b"],
        cell=_cell(cmd, {name: states[name] for name in objects}),
        sources=tuple(objects),
    )
    return structure, list(zip(columns["model"].tolist(), columns["index"].tolist(), strict=True))


def _weights(columns: Mapping[str, Any], numbered: Any) -> Any:
    """Return occupancies (N,), larger than all others in alternate locations of a residue with selected atoms."""
    location = unique_names(np.char.add(np.cumsum(numbered).astype(str), columns["alt"]))[1]
    atoms, selected = np.bincount(location), np.bincount(location, columns["selected"]) > 0
    return columns["q"] + (1e6 * selected / atoms)[location]


def _changes(columns: Mapping[str, Any], *names: str) -> Any:
    """Return a mask (N,) of the atoms that differ from the preceding one in any of the columns."""
    changed = np.any([columns[name][1:] != columns[name][:-1] for name in names], axis=0)
    return np.concatenate([[True], changed])


def _copies(columns: Mapping[str, Any]) -> Any:
    """Return the number (N,) of preceding atoms with the same residue, name and alternate location.

    It is 0 unless several residues have the same number, as in a large box of water.
    """
    seen: dict[tuple[Any, ...], int] = {}
    copies = []
    for key in zip(*(columns[name].tolist() for name in ("model", "segi", "chain", "resi", "resn", "name", "alt")),
                   strict=True):
        copies.append(seen.get(key, 0))
        seen[key] = copies[-1] + 1
    return np.array(copies)


def _file_order(columns: Mapping[str, Any]) -> Any:
    """Return the order (N,) of the atoms by rank within each object.

    Ranks repeat in an object merged from others. Then PyMOL's order is kept, except that residues with the same number,
    whose atoms PyMOL mixes, are separated.
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


def _charges(model: Any, starts: Any, partial: Any) -> Any:
    """Return partial charges (N,), e, and NaN for missing ones, which are 0 in PyMOL.

    Residues in which all charges are 0 count as residues without charges if they are the majority of an object's
    residues; otherwise the zeros are kept.
    """
    charges = np.array(partial)
    charged = np.logical_or.reduceat(partial != 0, starts[:-1])
    owner = model[starts[:-1]]
    for name in dict.fromkeys(owner.tolist()):
        ours = owner == name
        without = ours & ~charged
        if 2 * without.sum() > ours.sum():
            charges[np.repeat(without, np.diff(starts))] = np.nan
        elif without.any():
            log.warning("object %s: the partial charges of %d of %d residues are 0, and are taken as they are", name,
                        without.sum(), ours.sum())
    return charges


def _cell(cmd: Any, states: Mapping[str, int]) -> Cell | None:
    """Return the common cell of the objects that have one."""
    result = {}
    for name, state in states.items():
        if symmetry := cmd.get_symmetry(name, state):
            result[f"object {name}"] = [float(x) for x in symmetry[:6]], str(symmetry[6])
    return adapters.cell_of(result)
