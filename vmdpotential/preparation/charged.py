"""Charges of a structure from all sources, with missing atoms added."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential import registry
from vmdpotential.errors import BackendError, ChargeError, IncompleteError
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.molecule.selection import Selection, named_selection
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.user_charges import ResidueCharges
from vmdpotential.parameters import warn_unused

log = logging.getLogger(__name__)


def with_charges(structure: StructureLike, *atoms: Selection | None) -> tuple[Structure, list[Any]]:
    """Return a structure with charges, as commands use it, and selections of its atoms.

    A file is read. If there are no charges, they are assigned from templates; if atoms are missing, they are added,
    which is logged.

    Parameters
    ----------
    structure : Structure, path or object
    *atoms : str or array, optional
        Selections; the first one is of the atoms that need charges. Arrays refer to the atoms of the given structure.

    Raises
    ------
    InputError
        When the file cannot be read, or atoms have no charge (ChargeError).
    TaskError
        When atoms are missing and cannot be added.
    UsageError
        For other objects.
    """
    made = as_structure(structure)
    if made.charges is not None:
        return made, list(atoms)
    texts = [None if text is None else named_selection(text) for text in atoms]
    needed = [text for text in texts[:1] if text is not None]
    result, report = charge_structure(made, "auto", "auto", atoms=needed, prepare="auto")
    if report.prepared:
        log.warning("%s: %s", made.where, report.prepared)
    return result, texts


def residue_charges(paths: Sequence[Path]) -> list[ResidueCharges]:
    """Return the residue charges of some files, which a plugin reads."""
    return [residue for path in paths for residue in registry.get("parameter_reader", "residue-charges")(path)]


def charge_structure(structure: Structure, force_field: str, water: str, charges: Sequence[Path] = (),
            atoms: Sequence[Selection] = (), parameter: str = "atoms", prepare: str = "never",
            ph: float = 7.0, pka: str = "model") -> tuple[Structure, ChargeReport]:
    """Return a structure with charges and, if requested, missing atoms, and a report of the charges' sources.

    Parameters
    ----------
    structure, force_field, water
    charges : sequence of Path
        Files of residue charges, or one file of an OpenMM System, which has the charges of all atoms.
    atoms : sequence of str
        Selections of the atoms that need charges; all unless given.
    parameter : str
        Name of the parameter with these selections, for errors.
    prepare : str
        ``auto`` to add missing atoms, ``never`` to raise an error if atoms are missing.
    ph, pka
        Determine protonation states, as by the command `prepare`.

    Raises
    ------
    ChargeError
        When an atom that needs a charge has none.
    InputError
        When the periodic cell is too small for the atoms.
    TaskError
        When atoms are missing and cannot be added.
    UsageError
        For a System in addition to other files, or charges of atoms that already have some.
    """
    from vmdpotential.molecule.overlaps import check_overlaps, warn_of_duplicates

    check_overlaps(structure)
    result, report = _charged(structure, force_field, water, charges, atoms, parameter, prepare, ph, pka)
    warn_of_duplicates(result)  # what is listed twice in a residue is left out where atoms were added
    return result, report


def _charged(structure: Structure, force_field: str, water: str, charges: Sequence[Path], atoms: Sequence[Selection],
             parameter: str, prepare: str, ph: float, pka: str) -> tuple[Structure, ChargeReport]:
    from vmdpotential.molecule.charges import charges_and_report
    from vmdpotential.molecule.selection import select

    given: Sequence[ResidueCharges] = ()
    if charges:
        structure, given = registry.get("parameter_reader", "charges")(structure, charges)
    if structure.charges is not None:
        warn_unused(("force_field",), "the structure has charges of its own")
    try:
        return charges_and_report(structure, force_field, water, given)
    except ChargeError as error:
        first = error
    try:
        needed = np.zeros(len(structure), bool)
        for text in atoms:
            needed |= select(structure, text, parameter)
        if not atoms or needed.all():
            raise first
        return charges_and_report(structure, force_field, water, given, needed)
    except IncompleteError as error:
        if prepare == "never" or structure.topology is not None:
            raise
        return complete_structure(structure, error, force_field=force_field, water=water, charges=given, ph=ph, pka=pka)


def complete_structure(structure: Structure, error: IncompleteError, **options: Any) -> tuple[Structure, ChargeReport]:
    """Return a structure with missing atoms added, and a report of its charges.

    If it is a part of a whole structure, that is completed, and the same part of it returned.

    Raises
    ------
    TaskError
        When the atoms cannot be added.
    ChargeError
        The original `error`, with the names of packages to install, if they are not installed.
    """
    whole = structure.whole or structure
    try:
        prepared = registry.get("preparation", "prepare")(whole, **options)
    except BackendError as missing:
        error.hint = f"{missing.hint} to have them added; or {error.hint}"
        raise error from None
    result, report = prepared.structure, replace(prepared.charges, prepared=prepared.summary())
    if structure.whole_rows is not None and result.origins is not None:
        result = result.part(np.isin(result.origins, structure.whole_rows))
        assert result.origins is not None
        result = replace(result, origins=np.searchsorted(structure.whole_rows, result.origins))  # in the part
        report = replace(report, net_charge=result.net_charge)
    return result, report
