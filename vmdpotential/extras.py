"""Optional packages, which are imported when a task needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vmdpotential.errors import BackendError


def load(module: str, what: str, extra: str, instead: str = "") -> Any:
    """Return a module of an optional package.

    Parameters
    ----------
    module : str
    what : str
        Subject of the error message, in the plural, e.g. "H5MD files".
    extra : str
        Extra of this package that installs the optional package.
    instead : str, optional
        Alternative to the installation, for the error's hint.

    Raises
    ------
    BackendError
        When the module cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        hint = f"pip install 'vmdpotential[{extra}]'"
        raise BackendError(f"{what} need the package {module.partition('.')[0]} ({error})",
                           f"{hint}, or {instead}" if instead else hint) from None
