"""Completion of a structure by missing atoms, hydrogens, charges and radii.

The heavy atoms become a draft (``draft.py``), to which missing ones are added (``complete.py``). Formal charges
(``states.py``) determine the hydrogens, which are placed (``hydrogens.py``) and, if they rotate freely, oriented
(``orient.py``). Charges are those of force-field templates, or else Gasteiger's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.errors import InputError, TaskError, UsageError, listed_words
from vmdpotential.molecule import elements
from vmdpotential.molecule.charges import charges_and_report
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.molecule.membranes import marked_planes
from vmdpotential.molecule.names import DUMMY_RESIDUES, ION_RESIDUES, WATER_RESIDUES, in_table, unique_names
from vmdpotential.molecule.radii import prepared_radii
from vmdpotential.molecule.structure import Floats, Integers, Structure
from vmdpotential.molecule.templates import FORCE_FIELDS
from vmdpotential.molecule.user_charges import ResidueCharges
from vmdpotential.molecule.whole import whole_molecules

from . import states
from .approximate import approximate_charges
from .assemble import Assembly, assemble_structure, free_rotors, hydrogen_counts, on_atoms
from .caps import separate_caps
from .complete import complete_draft
from .components import Component
from .draft import METAL_ELEMENTS, Draft, all_bonds, draft_of
from .orient import orient_hydrogens
from .report import PreparedStructure, Row
from .room import check_room

__all__ = ["PreparedStructure", "Row", "prepare_structure"]

#: Returns pKa values by residue index and group (``MODEL_PKA`` in states.py), for a structure, its draft and the user's
#: charges of residues. Groups without a value have that of their model compound.
PkaSource = Callable[[Structure, Draft, Sequence[ResidueCharges]], Mapping[tuple[int, str], float]]

_HINT = ("give a file of each with its hydrogens (SDF, MOL2) by {charges}, or leave them out when the structure "
         "is prepared ({leave_out})")


#: Distance, A, below which two heavy atoms are of two conformers of a residue.
_CONFORMERS = 0.9
#: Distance, A, below which two heavy atoms have the same position.
_SAME = 0.1
#: Largest coordinate, A; larger ones are errors, with which squares of distances are inaccurate.
_FARTHEST = 1e6

def prepare_structure(
    structure: StructureLike, *, ph: float = 7.0, pka: str | PkaSource = "model", force_field: str = "auto",
    water: str = "auto", charges: Sequence[ResidueCharges] = (), leave_out: Collection[str] = (),
    radii: str = "mbondi2",
) -> PreparedStructure:
    """Return the structure with missing atoms, charges and radii added, and a report.

    Parameters
    ----------
    structure : Structure or path
        A structure without charges from a topology. Its hydrogens keep their positions on atoms that have as many as
        their protonation state needs.
    ph : float
        The pH, which determines protonation states.
    pka : str or callable
        Origin of pKa values, by its registered name: ``model`` for those of model compounds, ``propka`` for those of
        PROPKA in this structure, ``pb`` for those of the Poisson-Boltzmann equation; or such a function.
    force_field, water : str
        See :func:`~vmdpotential.molecule.charges.assign_charges`.
    charges : sequence of ResidueCharges
        Charges of residues that have priority over templates.
    leave_out : collection of str
        Names of residues to leave out, or names with numbers (ALA617).
    radii : str
        Set of radii.

    Returns
    -------
    PreparedStructure
        The structure, and a row for each residue.

    Raises
    ------
    TaskError
        When residues cannot be completed or have no charges; the message lists them.
    InputError
        For a structure with a topology, or without heavy atoms.
    UsageError
        When no residue has a name in `leave_out`.
    BackendError
        When a package that this needs, such as biotite or hydride, is not installed.

    Examples
    --------
    >>> from .prepare import prepare_structure
    >>> prepared = prepare_structure(vp.read_structure("data/1hvr.pdb.gz"))
    >>> round(prepared.structure.net_charge)
    4
    """
    structure = as_structure(structure)
    if structure.topology is not None and structure.charges is None:  # bonds alone, of an object or CONECT records
        structure = replace(structure, topology=None)
    if structure.topology is not None:
        raise InputError(f"{structure.where}: has a topology, which defines its atoms", "leave {topology} out")
    split, order = separate_caps(elements.fill_elements(structure))
    # bonds are found by distances, which are not those of the file where its periodic cell splits molecules
    structure = whole_molecules(split)
    left_out = _named(structure, leave_out)
    chosen = np.isin(np.arange(len(structure)), np.concatenate([[], *left_out.values()]))
    dummy = np.isin(structure.residue_names, list(DUMMY_RESIDUES)) & ~chosen
    dropped = chosen | dummy
    hydrogen = np.isin(structure.elements, ["H", "D"])
    solvent = in_table(structure.residue_names, WATER_RESIDUES)  # massless sites of waters have no element
    unknown = (structure.elements == "") & ~solvent & ~dropped
    twice = _listed_twice(structure) & ~hydrogen & ~dropped & ~unknown
    heavy = ~hydrogen & ~dropped & ~unknown & ~twice
    _check_conformers(structure, twice, heavy)
    if not heavy.any():
        raise InputError(f"{structure.where}: contains no atom but hydrogens and atoms of unknown elements",
                         "correct the names of atoms and their elements, or give {topology} or {charges}")
    _check_places(structure, heavy)
    stated = {name.upper(): Component.from_molecule(charge.residue, charge.molecule)
              for charge in charges if charge.molecule is not None for name in (charge.short, charge.residue) if name}
    charged = {name.upper(): item.charges.keys() for item in charges for name in (item.short, item.residue) if name}
    draft = draft_of(structure, heavy, stated, FORCE_FIELDS if force_field == "auto" else (force_field,), charged)
    _check_known(structure, draft, {item.residue.upper() for item in charges})
    chains = [f"{structure.chain_ids[r.source]}/{structure.segment_ids[r.source]}" for r in draft.residues]
    before = draft
    draft, done = complete_draft(draft, chains, [int(structure.residue_ids[r.source]) for r in draft.residues])
    if done.failed:
        failed = [f"{_label(structure, before, n)} ({missing} missing)" for n, missing in done.failed.items()]
        raise TaskError(f"{structure.where}: {len(failed)} residue{'s' * (len(failed) > 1)} cannot be completed, as "
                        f"too few of their atoms are known: {listed_words(failed, 100)}",
                        "complete them with another program, or remove them by {leave_out}")
    gaps, breaks = ([f"{_label(structure, before, a)} to {_label(structure, before, b)}" for a, b in pairs]
                    for pairs in (done.gaps, done.breaks))
    bonds = all_bonds(draft)
    check_room(draft, bonds)
    own = on_atoms(structure, draft, hydrogen & ~dropped)
    source: PkaSource = registry.get("pka", pka) if isinstance(pka, str) else pka
    values = source(structure, draft, charges)
    result = states.assign(draft, bonds, ph, values, hydrogen_counts(draft, own))
    assembly = assemble_structure(structure, draft, result, own)
    approximated = np.zeros(len(assembly.structure), bool)

    def otherwise(atoms: NDArray[np.bool_], others: Floats) -> Floats:
        approximated[atoms] = True
        return _approximate(assembly, atoms, others)

    user_charges = _as_named(charges, draft, assembly)
    whole, report = charges_and_report(assembly.structure, force_field, water, user_charges,
                                       stated=_stated(draft, result), otherwise=otherwise,
                                       written=structure.take(~dropped))
    whole = replace(whole, positions=orient_hydrogens(whole.positions, whole.known_charges, *free_rotors(assembly)))
    values_of_radii, radii_source = prepared_radii(whole, radii)
    assert whole.origins is not None
    whole = replace(
        whole, positions=_as_split(whole, structure, split), radii=values_of_radii, origins=order[whole.origins],
        planes=marked_planes(structure.positions[dummy]),
        charge_source="templates and Gasteiger's method" if report.approximate else f"{report.source} templates")
    rows = _rows(whole, draft, assembly, result, approximated,
                 {entry.residue.upper(): entry.source for entry in user_charges} | {"": report.source})
    attached = sum(map(len, own.values()))
    left = {"hydrogens not bonded to any atom": int((hydrogen & ~dropped).sum()) - attached,
            "hydrogens that do not fit the protonation states": attached - int(assembly.kept.sum()),
            _which("atoms that their residues list twice", structure, twice): int(twice.sum()),
            _which("atoms without an element", structure, unknown): int(unknown.sum()),
            **{f"atoms of {name}": len(rows) for name, rows in left_out.items()},
            f"atoms that mark a membrane ({_membrane(structure.positions[dummy])})": int(dummy.sum())}
    return PreparedStructure(whole, report, rows, gaps, breaks, ph, pka if isinstance(pka, str) else "given",
                             radii_source,
                             {name: n for name, n in left.items() if n})


def _as_split(completed: Structure, structure: Structure, split: Structure) -> Floats:
    """Return the positions of a completed structure, with atoms in the images in which the file has them."""
    if structure is split or completed.origins is None:
        return completed.positions
    before, after = structure.positions[completed.origins], split.positions[completed.origins]
    return np.where(completed.positions == before, after, completed.positions + (after - before))


def _membrane(marks: Floats) -> str:
    """Return the parameters of the membrane between two layers of marks (M, 3), A, as the option `set` takes them."""
    low, high = (marks[:, 2].min(), marks[:, 2].max()) if len(marks) else (0.0, 0.0)
    return f"set membrane={high - low:.1f},membrane_centre={(low + high) / 2 + 0.0:.1f} for it"


def _named(structure: Structure, names: Collection[str]) -> dict[str, Integers]:
    """Return the atom indices of residues in all chains, by the names (ALA) or names with numbers (ALA617)."""
    if not names:
        return {}
    numbered = np.char.add(np.char.add(structure.residue_names, structure.residue_ids.astype(np.str_)),
                           structure.insertion_codes)
    result = {name: np.flatnonzero((structure.residue_names == name) | (numbered == name)) for name in names}
    none = [name for name, rows in result.items() if not len(rows)]
    if none:
        hetero = structure.residue_names[structure.hetero].tolist() if len(structure) else []
        others = sorted(set(hetero) - WATER_RESIDUES)
        raise UsageError("leave_out", "no residue has this name"
                         + (f"; residues outside of polymers are {listed_words(others, 200)}" if others else ""),
                         value=", ".join(none))
    return result


def _check_places(structure: Structure, heavy: NDArray[np.bool_]) -> None:
    """Raise TaskError for heavy atoms at the same position (their bond has no direction), or far away."""
    from scipy.spatial import cKDTree

    rows = np.flatnonzero(heavy)
    far = rows[(np.abs(structure.positions[rows]) > _FARTHEST).any(1)]
    if len(far):
        raise TaskError(f"{structure.where}: {structure.label(int(far[0]))} is more than {_FARTHEST:g} A away from the "
                        "origin", "correct its coordinates")
    pairs = cKDTree(structure.positions[rows]).query_pairs(_SAME, output_type="ndarray")
    if len(pairs):
        names = [f"{structure.label(int(rows[a]))} and {structure.label(int(rows[b]))}" for a, b in pairs]
        raise TaskError(f"{structure.where}: atoms have the same position: {listed_words(names, 120)}",
                        "remove one of each pair")


def _listed_twice(structure: Structure) -> NDArray[np.bool_]:
    """Return a mask (N,) of the atoms with the name of an earlier atom of their residue."""
    _, number = unique_names(structure.atom_names)
    _, first = np.unique(structure.residue_of * (int(number.max(initial=0)) + 1) + number, return_index=True)
    result = np.ones(len(structure), bool)
    result[first] = False
    return result


def _check_conformers(structure: Structure, twice: NDArray[np.bool_], heavy: NDArray[np.bool_]) -> None:
    """Raise TaskError for residues that list most atoms twice, and not in the same place: these are several residues.

    Parameters
    ----------
    twice : (N,) bool
        Mask of the atoms that a residue has listed before.
    heavy : (N,) bool
        Mask of the other heavy atoms.
    """
    of_atoms = structure.residue_of
    merged = []
    for residue in np.unique(of_atoms[twice]).tolist():
        own = of_atoms == residue
        first, again = structure.positions[own & heavy], structure.positions[own & twice]
        if 2 * len(again) >= len(first) and np.linalg.norm(first[:, None] - again, axis=2).min() > _CONFORMERS:
            merged.append(structure.label(int(np.flatnonzero(own)[0])).partition(":")[0])
    if merged:
        raise TaskError(f"{structure.where}: residues have several atoms of one name in different places: "
                        f"{listed_words(merged, 120)}",
                        "give neighbouring residues different numbers, and the atoms of a "
                        "residue different names")


def _which(what: str, structure: Structure, atoms: NDArray[np.bool_]) -> str:
    """Return a description of atoms with a list of them."""
    return f"{what} ({listed_words([structure.label(row) for row in np.flatnonzero(atoms).tolist()], 60)})"


def _label(structure: Structure, draft: Draft, residue: int) -> str:
    """Return the name, number and chain of a residue, for messages."""
    row = draft.residues[residue].source
    return (f"{structure.residue_names[row]}{structure.residue_ids[row]}{structure.insertion_codes[row]} "
            f"{structure.chain_ids[row] or structure.segment_ids[row]}").rstrip()


def _check_known(structure: Structure, draft: Draft, charged: set[str]) -> None:
    """Raise TaskError for residues without a component, a template, or charges of the user (names in `charged`)."""
    unknown: dict[str, int] = {}
    starts = draft.starts
    for n, residue in enumerate(draft.residues):
        name = residue.name.upper()
        if residue.component is not None or residue.whole or name in WATER_RESIDUES or name in charged:
            continue
        rows = draft.origin[starts[n] : starts[n + 1]]
        if len(rows) == 1 and (name in ION_RESIDUES or draft.elements[starts[n]] in METAL_ELEMENTS):
            continue
        members = listed_words(draft.names[starts[n]:starts[n + 1]], 40)
        label = residue.name or f"one without a name, with the atoms {members}"
        unknown[label] = unknown.get(label, 0) + 1
    if unknown:
        raise TaskError(
            f"{structure.where}: no template for residues that the Chemical Component Dictionary lacks or has with "
            "other atoms: "
            + listed_words([f"{name} ({count})" for name, count in unknown.items()], 40), _HINT)


def _as_named(charges: Sequence[ResidueCharges], draft: Draft, assembly: Assembly) -> list[ResidueCharges]:
    """Return the user's charges with the structure's names of residues and atoms, if a file has bonds to match them."""
    result = []
    for charge in charges:
        n = next((n for n, residue in enumerate(draft.residues) if residue.component is not None
                  and residue.component.stated and residue.component.name == charge.residue), None)
        if n is not None:
            part = np.flatnonzero(draft.residue == n)
            theirs = dict(zip(assembly.place[part].tolist(), draft.names[part].tolist(), strict=True))
            rows = np.flatnonzero(assembly.residue == n).tolist()
            ours = assembly.structure.atom_names[rows].tolist()
            # hydrogens have been named as in the user's file
            names = [theirs.get(row, name) for row, name in zip(rows, ours, strict=True)]
            if set(names) == charge.charges.keys():
                charge = replace(charge, residue=draft.residues[n].name, charges={
                    name: charge.charges[other] for name, other in zip(ours, names, strict=True)})
        result.append(charge)
    return result


def _stated(draft: Draft, result: states.ProtonationStates) -> Floats:
    """Return the charges (R,), e, of the residues' protonation states; NaN for waters, ions and residues kept whole."""
    total = np.bincount(draft.residue, result.charges, len(draft.residues))
    return np.where([r.component is None or len(r.component.atoms) == 1 for r in draft.residues], np.nan, total)


def _approximate(assembly: Assembly, atoms: NDArray[np.bool_], others: Floats) -> Floats:
    """Return approximate charges (N,), e, or raise TaskError for atoms without any."""
    charges = approximate_charges(assembly, atoms, others)
    # of a residue without any bond, Gasteiger's method would leave all charges 0
    bonds = np.bincount(assembly.residue[assembly.bonds[:, 0]], minlength=int(assembly.residue.max()) + 1)
    loose = (bonds == 0) & (np.bincount(assembly.residue) > 1)
    bad = np.flatnonzero(atoms & (~np.isfinite(charges) | loose[assembly.residue]))
    if len(bad):
        names = [assembly.structure.label(int(atom)) for atom in bad]
        raise TaskError(f"{assembly.structure.where}: no charges, not even approximate ones, are available for "
                        f"{len(bad)} atom{'s' * (len(bad) > 1)}: {listed_words(names, 80)}", _HINT)
    return charges


def _rows(whole: Structure, draft: Draft, assembly: Assembly, states_: states.ProtonationStates,
          approximated: NDArray[np.bool_],
          sources: Mapping[str, str]) -> list[Row]:
    """Return the rows of the table; `sources` has the origin of charges by residue name, and by "" for other names."""
    starts = whole.residue_starts
    net = np.add.reduceat(whole.known_charges, starts[:-1])
    placed = np.add.reduceat((assembly.holder >= 0) & ~assembly.kept, starts[:-1], dtype=np.int64)
    kept = np.add.reduceat(assembly.kept, starts[:-1], dtype=np.int64)
    rows = []
    for n, residue in enumerate(draft.residues):
        row = int(starts[n])
        rows.append(Row(
            str(whole.chain_ids[row] or whole.segment_ids[row]), str(whole.residue_names[row]),
            f"{whole.residue_ids[row]}{whole.insertion_codes[row]}", states_.names.get(n, ""),
            states_.pka.get((n, residue.component.name if residue.component is not None else "")),
            round(float(net[n]), 4) + 0.0, "Gasteiger (approximate)" if approximated[row]
            else sources.get(str(whole.residue_names[row]).upper(), sources[""]),
            tuple(residue.added), int(placed[n]), int(kept[n]),
            (approximated[row] and states.oxidized(residue.component))
            or "; ".join(filter(None, (residue.note, states_.notes.get(n))))))
    return rows
