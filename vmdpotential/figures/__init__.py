"""Figures of slices and profiles."""

import contextlib
import os
import sys


def prepare() -> None:
    """Import matplotlib, which an MPLBACKEND that is not installed, such as a notebook's, would keep from starting.

    Figures here need no backend; who uses pyplot next to them has the one of the variable, as ever.
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
