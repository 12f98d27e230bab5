"""Copies of a model of ChimeraX, with ions in place of waters, or coloured by values of its atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential.errors import UsageError
from vmdpotential.figures.colours import sign_colour

from .convert import Selected

if TYPE_CHECKING:
    from vmdpotential.molecule.structure import Structure
    from vmdpotential.plugins.ions.placement import Placement


def show_ions(session: Any, placement: Placement, name: str, selected: Selected) -> tuple[Any, str]:
    """Make a copy of the model with the ions, and without the replaced waters and atoms that were not selected."""
    source = _one_model(selected)
    structure = placement.structure
    kept = placement.kept_atoms
    new = source.copy(name)
    new.position = source.scene_position  # the source may be a submodel of a moved model
    keep = np.zeros(source.num_atoms, bool)
    rows = source.atoms.indices(selected.atoms)[kept]
    keep[rows] = True
    atoms = new.atoms  # in the same order as the source's
    if selected.structure.charges is not None:  # charges of templates are assigned again when they are needed
        set_charges(session, [atoms[row] for row in rows.tolist()], structure.known_charges[: len(kept)])
    _add_ions(session, new, structure, len(kept), selected)
    atoms.filter(~keep).delete()
    session.models.add([new])
    ions = len(placement.ions)
    line = (f"model #{new.id_string} {name}: {len(kept)} atoms kept, {ions} ions as spheres, positive blue, negative "
            "red; ")
    if len(selected.atoms) == source.num_atoms:  # the new model replaces it
        source.display = False
        return new, f"{line}#{source.id_string} is hidden (show #{source.id_string} models)"
    return new, f"{line}#{source.id_string} is unchanged"


def show_values(session: Any, structure: Structure, name: str, selected: Selected) -> tuple[Any, str]:
    """Make a copy of the model, coloured by values, which replace its B factors."""
    source = _one_model(selected)
    new = source.copy(name)
    new.position = source.scene_position
    values = np.zeros(source.num_atoms, np.float32)
    values[source.atoms.indices(selected.atoms)] = structure.b_factors
    new.atoms.bfactors = values  # the copy has the same order of atoms
    session.models.add([new])
    limit = float(np.abs(values).max()) or 1.0
    part = np.clip(values / limit, -1, 1)
    colours = np.full((len(values), 4), 255, np.uint8)  # blue, white, red
    colours[:, 0] = 255 * (1 + np.minimum(part, 0))
    colours[:, 1] = 255 * (1 - np.abs(part))
    colours[:, 2] = 255 * (1 - np.maximum(part, 0))
    new.atoms.colors = colours
    first = np.unique(new.atoms.residues.pointers, return_index=True)[1]
    new.atoms[first].residues.ribbon_colors = colours[first]
    return new, (f"model #{new.id_string} {name}: a copy with the values as B factors, coloured from {-limit:.4g} "
                 f"(blue) to {limit:.4g} (red); #{source.id_string} is unchanged")


def _one_model(selected: Selected) -> Any:
    """Return the model of the atoms, which must be only one."""
    if len(selected.models) > 1:
        numbers = ",".join(f"#{model.id_string}" for model in selected.models)
        raise UsageError("structure", "the atoms are of several models", f"join them first with: combine {numbers}")
    return selected.models[0]


def _add_ions(session: Any, model: Any, structure: Any, first: int, selected: Selected) -> None:
    """Add the ions, the atoms of a structure from `first` on, to a model."""
    from chimerax.atomic import Element

    # the structure has the model's own coordinates, as there is only one model
    added = []
    index = structure.residue_index
    for row in range(first, len(structure)):
        if row == first or index[row] != index[row - 1]:
            residue = model.new_residue(str(structure.residue_names[row]), str(structure.chain_ids[row]) or " ",
                                        int(structure.residue_ids[row]))
            charge = structure.known_charges[index == index[row]].sum()
        atom = model.new_atom(str(structure.atom_names[row]), Element.get_element(str(structure.elements[row])))
        residue.add_atom(atom)
        atom.coord = structure.positions[row]
        atom.draw_mode = atom.SPHERE_STYLE
        atom.color = (*bytes.fromhex(sign_colour(charge)[1:]), 255)
        added.append(atom)
    if selected.structure.charges is not None:
        set_charges(session, added, structure.known_charges[first:])


def set_charges(session: Any, atoms: list[Any], charges: Any) -> None:
    """Set the same attribute as the command addcharge, so that later commands find the charges."""
    from chimerax.atomic import Atom

    Atom.register_attr(session, "charge", "vmdpotential", attr_type=float)
    for atom, charge in zip(atoms, charges.tolist(), strict=True):
        atom.charge = charge
