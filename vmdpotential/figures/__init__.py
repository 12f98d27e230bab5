"""Figures of the results of commands: slices, profiles, surfaces, energies of residues and distributions."""

import contextlib
import os
import sys


def prepare() -> None:
    """Import matplotlib even if MPLBACKEND names a backend that is not installed, such as a notebook's.

    These figures need no backend; pyplot still uses the one of the variable.
    """
    if "matplotlib" in sys.modules:
        return
    backend = os.environ.pop("MPLBACKEND", None)
    try:
        import matplotlib

        with contextlib.suppress(ValueError):
            if backend:
                matplotlib.rcParams["backend"] = backend
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
