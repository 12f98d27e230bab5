"""The unit of lengths of a trajectory: that which its file or format states, or else the one that a user gives."""

from __future__ import annotations

from pathlib import Path

from vmdpotential.errors import InputError, UsageError
from vmdpotential.units import BOHR

#: Units that a user can give, in A.
LENGTH_UNITS = {"angstrom": 1.0, "nm": 10.0, "bohr": BOHR}

#: Further names that files and MDAnalysis give to units, in A.
_STATED = {**LENGTH_UNITS, "a": 1.0, "angstroms": 1.0, "nanometer": 10.0, "nanometers": 10.0, "pm": 1e-2, "fm": 1e-5}


def length_in_angstrom(path: Path, stated: str | None, given: str | None) -> float:
    """Return the unit of lengths of a file, A.

    Parameters
    ----------
    path : Path
    stated : str or None
        Name of the unit in the file, or of its format; empty or None if neither states one.
    given : str or None
        Unit that the user gives.

    Raises
    ------
    UsageError
        When the file states another unit than the user, or the user's is unknown.
    InputError
        When nobody states the unit, or it is unknown.
    """
    if given is not None and given not in LENGTH_UNITS:
        raise UsageError("length_unit", "there is no such unit", f"known ones are {', '.join(LENGTH_UNITS)}",
                         value=str(given))
    if not stated and given is None:
        raise InputError(f"{path}: does not state the unit of its positions",
                         "give {length_unit}, with the file as {trajectory}")
    unit = _STATED.get((stated or str(given)).lower())
    if unit is None:
        raise InputError(f"{path}: its unit {str(stated)[:20]!r} is not one of {', '.join(LENGTH_UNITS)}",
                         "write it again in units of angstrom and picosecond")
    if given is not None and unit != LENGTH_UNITS[given]:
        raise UsageError("length_unit", f"{path} is in another unit, {stated}",
                         "leave out {length_unit}, which is for files that state none", value=given)
    return unit
