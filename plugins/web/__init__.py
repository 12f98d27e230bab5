"""One self-contained HTML page with a structure, isosurfaces, a slice and ions, for browsers and notebooks."""

from __future__ import annotations

from .page import Page, view_page

__all__ = ["Page", "view_page"]
