"""Conversion of ChimeraX's atoms and volumes to Structure and Grid."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from chimerax.atomic import AtomsArg, concatenate
from chimerax.core.commands import AnnotationError

from vmdpotential.errors import InputError, UsageError, VmdpotentialError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.maps import open_map
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.molecule import elements
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.viewers import adapters

log = logging.getLogger("vmdpotential.chimerax")


@dataclass(frozen=True)
class Selected:
    """Atoms as they are shown.

    Parameters
    ----------
    structure : Structure
        The atoms, in the coordinate system of `place`.
    atoms : ChimeraX's Atoms
        The same atoms, in the same order.
    models : list of ChimeraX's atomic structures
        The models of the atoms.
    place : ChimeraX's Place
        Transformation from the structure's coordinates to those of the scene: the position of the first model, so that
        its periodic cell is not rotated with the model.
    """

    structure: Structure
    atoms: Any
    models: list[Any]
    place: Any


def read_atoms(atoms: Any, place: Any = None, topology: Path | None = None) -> Selected:
    """Return atoms as they are shown, in the order of their file, with the atoms of each residue together.

    Charges are those of a topology of the whole models, or else the atoms' attribute ``charge`` (set by the command
    addcharge, and in results of ``potential ionize``). The active coordinate set and the shown alternate locations are
    read. The structure refers to the whole models, as these determine the force field.

    Parameters
    ----------
    atoms : ChimeraX's Atoms
    place : ChimeraX's Place, optional
        The coordinate system, by default that of the first model; in another one, the structure has no cell.
    topology : Path, optional
        Topology of the whole models.

    Raises
    ------
    InputError
        When there are no atoms, when two models have atoms at the same place, when only some of the
        atoms have charges, when the models' periodic cells differ, or when the topology cannot be read or lists
        other atoms than the models.
    """
    if not len(atoms):
        raise InputError("no atoms are specified", "open a structure, or specify others")
    # models in the order of their numbers
    models = sorted(set(atoms.unique_structures), key=lambda model: model.id or ())
    parts, keys = [], []
    for number, model in enumerate(models):
        every = model.atoms
        residue = model.residues.indices(every.residues)
        # atoms added later, such as hydrogens, are the last ones of a model; they are moved to their residue
        first = np.full(len(model.residues), len(every))
        np.minimum.at(first, residue, np.arange(len(every)))
        order = np.argsort(first[residue], kind="stable")
        parts.append(every[order])
        keys.append(np.column_stack([np.full(len(order), number), residue[order]]))
    ordered = concatenate(parts)
    chosen = np.array(ordered.mask(atoms))
    own = models[0].scene_position
    if place is None or own.same(place):
        place, same = own, True
    else:
        same = False
    if same and len(models) == 1:
        positions = np.array(ordered.coords, np.float64)
    else:
        positions = np.array(place.inverse() * ordered.scene_coords, np.float64)
    residue = np.concatenate(keys)  # (N, 2): model, and residue in it
    adapters.check_places([f"#{model.id_string}" for model in models], residue[chosen, 0], positions[chosen])
    residues = ordered.residues
    whole = Structure(
        positions=positions,
        atom_names=np.array(ordered.names, np.str_),
        residue_names=np.array(residues.names, np.str_),
        residue_ids=np.array(residues.numbers, np.int64),
        residue_index=np.concatenate([[0], np.cumsum((np.diff(residue, axis=0) != 0).any(1))]),
        chain_ids=np.char.strip(np.array(residues.chain_ids, np.str_)),
        elements=elements.complete_elements(
            np.array(ordered.element_names, np.str_), np.array(ordered.names, np.str_),
            np.array(residues.names, np.str_)),
        insertion_codes=np.char.strip(np.array(residues.insertion_codes, np.str_)),
        hetero=np.array(residues.polymer_types) == 0,
        occupancies=np.array(ordered.occupancies, np.float64),
        b_factors=np.array(ordered.bfactors, np.float64),
        cell=_cell(models) if same else None,  # its vectors would be rotated
        sources=tuple(f"#{model.id_string} {model.name}" for model in models),
    )
    if topology is not None:
        structure = adapters.with_topology(whole, topology, chosen)
    else:
        structure = adapters.with_charges(
            whole, chosen, _charges(ordered), f"ChimeraX model {' and '.join(f'#{m.id_string}' for m in models)}",
            lambda row: ordered[row].atomspec, "assign all with addcharge, or give a {topology}")
    return Selected(structure, ordered.filter(chosen), models, place)


def rows_of(session: Any, selected: Selected, text: str) -> Any:
    """Return the indices (K,) of the atoms in an atom specification; None for other text, such as a CID (``//A``)."""
    if text.startswith("//"):  # ChimeraX would read it as chains with an attribute of that name
        return None
    try:
        result, _, rest = AtomsArg.parse(text, session)
    except AnnotationError:
        return None
    return None if rest.strip() else np.flatnonzero(selected.atoms.mask(result))


def positions_now(selected: Selected) -> Any:
    """Return the present positions (N, 3), A, of atoms as shown, in the coordinate system in which they were read."""
    atoms = selected.atoms
    if len(selected.models) == 1:
        return np.array(atoms.coords, np.float64)
    return np.array(selected.place.inverse() * atoms.scene_coords, np.float64)


def read_frames(selected: Selected) -> LoadedFrames:
    """Return the coordinate sets of the atoms' models as frames; a model with only one is in every frame.

    Raises
    ------
    InputError
        When two models have several coordinate sets, and different numbers of them.
    """
    counts = {model: model.num_coordsets for model in selected.models}
    several = {count for count in counts.values() if count > 1} or {1}
    if len(several) > 1:
        raise InputError(f"the models have {' and '.join(map(str, sorted(several)))} coordinate sets",
                         "specify atoms of one of them")
    held = []
    for number in range(several.pop()):
        positions = np.empty((len(selected.atoms), 3))
        for model in selected.models:
            rows = np.array([structure is model for structure in selected.atoms.structures])
            ids = model.coordset_ids
            own = model.coordset(int(ids[number if counts[model] > 1 else 0])).xyzs
            place = selected.place.inverse() * model.scene_position
            positions[rows] = place * own[selected.atoms.filter(rows).coord_indices]
        held.append((positions, selected.structure.cell))
    return LoadedFrames(f"the coordinate sets of {' and '.join(f'#{m.id_string}' for m in selected.models)}", held)


def _charges(atoms: Any) -> Any:
    """Return the attribute charge (N,) of atoms, NaN for those without it."""
    # only atoms with an object in Python can have the attribute
    objects = atoms.instances(instantiate=False)
    charges = [None if atom is None else getattr(atom, "charge", None) for atom in objects]
    return np.array([np.nan if charge is None else charge for charge in charges], np.float64)


def _cell(models: Sequence[Any]) -> Cell | None:
    known = {model: values for model in models if (values := _cell_parameters(model))}
    cell: Cell | None = adapters.cell_of({f"#{model.id_string}": values for model, values in known.items()})
    for model in known if cell is not None else ():
        if model.num_coordsets > 1:
            log.warning("#%s has %d coordinate sets and one cell, that of its file; {cell} sets another",
                        model.id_string, model.num_coordsets)
    return cell


def _cell_parameters(model: Any) -> tuple[list[float], str] | None:
    """Return lengths (A) and angles (degrees) of a model's cell, and its space group, from its file's metadata."""
    record = next(iter(model.metadata.get("CRYST1", [])), "")
    if record:
        words = [record[start:end] for start, end in ((6, 15), (15, 24), (24, 33), (33, 40), (40, 47), (47, 54))]
        group = record[55:66]
    else:
        from chimerax.mmcif import get_mmcif_tables_from_metadata

        table, symmetry = get_mmcif_tables_from_metadata(model, ["cell", "symmetry"])
        if table is None:
            return None
        groups = [] if symmetry is None else symmetry.fields(["space_group_name_H-M"], missing_value="")
        group = next(iter(groups), ("",))[0]
        names = ("length_a", "length_b", "length_c", "angle_alpha", "angle_beta", "angle_gamma")
        words = next(iter(table.fields(names, missing_value="?")), [])
    try:
        # mmCIF may give the uncertainty in brackets: 61.64(5)
        parameters = [float(word.partition("(")[0]) for word in words]
    except ValueError:
        return None
    return (parameters, group) if len(parameters) == 6 else None


def read_volume(volume: Any) -> Grid:
    """Return a map model as a Grid, in the model's own coordinates.

    Raises
    ------
    InputError
        When its axes are not at right angles, or rotated.
    """
    data = volume.data
    skewed = any(abs(angle - 90) > 1e-3 for angle in data.cell_angles)
    if skewed or not np.allclose(data.rotation, np.eye(3), atol=1e-5):
        raise InputError(f"map #{volume.id_string} has oblique axes; resample it first with: "
                         f"volume resample #{volume.id_string} spacing {min(data.step):.3g}")
    values = np.ascontiguousarray(data.full_matrix().transpose(2, 1, 0), dtype=np.float32)  # from z, y, x
    return Grid.from_header(Lattice(data.origin, data.step, values.shape), values, _header(volume))


def _header(volume: Any) -> Mapping[str, str]:
    """Return the header of a map made here, or else of its file: unit and provenance, which ChimeraX does not keep."""
    if hasattr(volume, "vmdpotential_header"):
        return volume.vmdpotential_header
    path = volume.data.path
    if not isinstance(path, str) or not Path(path).is_file():
        return {}
    try:
        return open_map(Path(path)).header()
    except VmdpotentialError:  # a format that only ChimeraX reads
        return {}


def common_coordinate_system(volumes: Sequence[Any]) -> Any:
    """Return the common coordinate system of maps.

    Raises
    ------
    UsageError
        When one has been moved relative to another.
    """
    first, *others = volumes
    for other in others:
        if not first.scene_position.same(other.scene_position, angle_tolerance=1e-3, shift_tolerance=1e-4):
            raise UsageError("maps", f"#{first.id_string} and #{other.id_string} are displaced relative to each other; "
                             f"resample one with: volume resample #{other.id_string} onGrid #{first.id_string}")
    return first.scene_position
