"""Errors for a missing or incompatible package vmdpotential, or one that it needs, in ChimeraX's Python."""

from __future__ import annotations

from typing import Any

from chimerax.core.commands import CmdDesc, WholeRestOfLine
from chimerax.core.commands import register as _register
from chimerax.core.errors import UserError

_REMEDY = "'vmdpotential install chimerax' in a shell prints how to install it"


def describe(error: ImportError) -> str:
    """Return one line that names the missing package and the command that installs it."""
    package = (error.name or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package and package != "vmdpotential":
        return f"ChimeraX's Python has no package '{package}', which vmdpotential needs; type: pip install {package}"
    if isinstance(error, ModuleNotFoundError) and error.name == "vmdpotential":
        return f"ChimeraX's Python has no package 'vmdpotential'; {_REMEDY}"
    return f"the package 'vmdpotential' is incompatible with this bundle ({error}); {_REMEDY}"


def register(name: str, synopsis: str, error: ImportError, logger: Any) -> None:
    """Add a command that accepts any arguments and raises a UserError with the message for an error."""
    message = describe(error)

    def refuse(session: Any, arguments: str = "") -> None:
        raise UserError(f"{name}: {message}")

    description = CmdDesc(optional=[("arguments", WholeRestOfLine)], synopsis=synopsis)
    _register(name, description, refuse, logger=logger)
