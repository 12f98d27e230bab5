"""Packages that only some tasks need, loaded when one of them is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vmdpotential.errors import BackendError


def load(module: str, what: str, extra: str, instead: str = "") -> Any:
    """Return a module of a package that need not be there.

    Parameters
    ----------
    module : str
    what : str
        What is done with it, in the plural.
    extra : str
        Of this package, which installs it.
    instead : str, optional
        What else can be done.

    Raises
    ------
    BackendError
        When it cannot be loaded.
    """
    try:
        return import_module(module)
    except ImportError as error:
        cure = f"pip install 'vmdpotential[{extra}]'"
        raise BackendError(f"{what} need the package {module.partition('.')[0]} ({error})",
                           f"{cure}, or {instead}" if instead else cure) from None
