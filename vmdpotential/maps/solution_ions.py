"""The ions of a solution: valences from their names, concentrations and ionic strength."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vmdpotential.errors import UsageError

#: Names of ions, which end with their charge: in parentheses, as in I3(-1); or its number precedes the sign, as in Mg2+
#: (an element) and SO42- (the last digit), or follows it, as in Mg+2 and SO4-2. Without a number, as in Na+ and NO3-,
#: the charge is 1.
_NAMES = [re.compile(form, re.ASCII) for form in (
    r"[A-Za-z]\w*\((?P<sign>[+-])(?P<size>\d)\)", r"(?:[A-Z][a-z]?|[A-Za-z]\w*\d)(?P<size>\d)(?P<sign>[+-])",
    r"[A-Za-z]\w*(?P<sign>[+-])(?P<size>\d?)")]
#: Elements of anions with one charge and as many atoms as the number says (triiodide, azide), or one atom and so many
#: charges (nitride).
_AMBIGUOUS = re.compile(r"(?P<element>[A-Z][a-z]?)(?P<size>[2-9])-", re.ASCII)

#: Largest net charge of a solution that counts as neutral, relative to the sum of the concentrations.
_NEUTRAL = 1e-4


def valence(name: str) -> int | None:
    """Return the charge of an ion, e, from its name; None if it is not the name of an ion.

    Raises
    ------
    UsageError
        For a name such as I3-, which may be that of three iodine atoms with one charge.
    """
    unclear = _AMBIGUOUS.fullmatch(name)
    if unclear is not None:
        atoms, size = unclear.groups()
        raise UsageError("set", "the charge may be that of one atom, or -1 for a group of several",
                         f"write {atoms}{size}(-1), or {atoms}(-{size})", value=name)
    match = next(filter(None, (form.fullmatch(name) for form in _NAMES)), None)
    if match is None:
        return None
    return int(match["sign"] + (match["size"] or "1")) or None


def ion_concentrations(values: Mapping[str, float]) -> dict[str, float]:
    """Return the parameters whose names are those of ions, with their concentrations (M)."""
    return {name: value for name, value in values.items() if valence(name) is not None}


def ions_of(values: Mapping[str, float]) -> list[tuple[int, float]]:
    """Return the valence and concentration (M) of each kind of ion, from the parameters of a solution.

    These are the names of ions, ``salt`` (monovalent) and ``divalent`` (with monovalent anions), in M.
    """
    kinds = [(valence(name) or 0, value) for name, value in ion_concentrations(values).items()]
    salt, divalent = values.get("salt", 0.0), values.get("divalent", 0.0)
    kinds += [(1, salt), (2, divalent), (-1, salt + 2 * divalent)]
    return [(charge, sum(c for z, c in kinds if z == charge))
            for charge in dict.fromkeys(z for z, c in kinds if c > 0)]


def ionic_strength_of(ions: list[tuple[int, float]]) -> float:
    """Return the ionic strength, M."""
    return 0.5 * sum(c * z * z for z, c in ions)


def is_neutral(ions: list[tuple[int, float]]) -> bool:
    """Return whether the charges of the ions of a solution add up to 0."""
    return abs(sum(z * c for z, c in ions)) <= _NEUTRAL * sum(c for _, c in ions)
