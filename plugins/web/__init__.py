"""One self-contained HTML page with a structure, isosurfaces, a slice and ions, for browsers and notebooks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .page import Page, view_page

__all__ = ["Page", "view_page"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.page"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register() -> None:
    """Register the command ``view``; called through the entry point in setup.cfg."""
    from vmdpotential import registry

    registry.register("task", "view", f"{__name__}.command:command")
