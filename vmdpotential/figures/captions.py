"""Captions: what a figure shows, in sentences for its legend in a paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vmdpotential.figures.contours import contour_levels
from vmdpotential.figures.slices import INTERIOR_STYLES, quantity_label, unit_label

if TYPE_CHECKING:
    from vmdpotential.figures.page import Page, Panel
    from vmdpotential.figures.slices import AtomsOnSlice
    from vmdpotential.grid.lattice import Grid


def minus_signs(text: str) -> str:
    """Return text with hyphens in front of numbers as minus signs."""
    return "".join("−" if a == "-" and b.isdigit() and before in " (" else a
                   for before, a, b in zip(" " + text, text, text[1:] + " ", strict=False))


def frames_sentence(names: Sequence[str]) -> str:
    """Return the sentence about the frames of a movie, which are maps."""
    return f" Frames: {', '.join(names)}."


def colours_of(span: Sequence[float], grid: Grid, panel: str = "") -> str:
    """Return the sentence about the colours of a figure, or of a panel, such as "(a)", and those like it."""
    return f"Colours{' ' * bool(panel)}{panel}: {span[0]:g} to {span[1]:g} {unit_label(grid)}".rstrip() + "."


def slices_caption(page: Page, panels: Sequence[Panel], grids: Sequence[Grid], contours: int,
                   drawn: AtomsOnSlice | None, profile: str | None) -> str:
    """Return the caption of a figure of slices.

    Parameters
    ----------
    page : Page
    panels : sequence of Panel
    grids : sequence of Grid
        All maps of the figure.
    contours : int
        Approximate number of contours that was requested.
    drawn : AtomsOnSlice or None
        What is drawn of a structure.
    profile : str or None
        Axis of the profile, if there is one.
    """
    sentences = [f"{quantity_label(*grids)}."]
    shown = []
    for n, panel in enumerate(panels):
        medium = panel.grid.provenance.medium if len({grid.provenance.medium for grid in grids}) > 1 else ""
        where = ", ".join(filter(None, (panel.name, medium, panel.plane.label)))
        shown.append(f"({page.axes[n].get_label()}) {where}" if len(page.axes) > 1 else f"Plane {where}")
    if profile:
        mean = f"mean over planes along {profile}"
        shown.append(f"({page.axes[-1].get_label()}) {mean}" if panels else f"M{mean[1:]}")
    sentences.append("; ".join(shown) + ".")
    for span in dict.fromkeys(page.ranges):
        of = "" if len(set(page.ranges)) == 1 else f"({page.axes[page.ranges.index(span)].get_label()})"
        sentences.append(colours_of(span, grids[0], of))
        if contours and len(levels := contour_levels(span, contours)):
            sentences.append(f"Contours{' ' * bool(of)}{of}: {', '.join(f'{level:g}' for level in levels)} "
                             f"{unit_label(grids[0])}".rstrip() + "; those of negative values are dashed.")
    if drawn is not None and panels:
        if drawn.slab:
            sentences.append(f"Atoms are those within {drawn.slab / 2:g} Å of the plane.")
        if drawn.interior != INTERIOR_STYLES[0]:
            sentences.append("Grey line: molecular surface (probe 1.4 Å)"
                             + "; its interior is grey." * (drawn.interior == "masked")
                             + "." * (drawn.interior != "masked"))
    return minus_signs(" ".join(sentences))


def surface_caption(head: str, outwards: float, grid: Grid, span: Sequence[float], views: Sequence[str],
                    threshold: float | None, between: Sequence[str] = (), own: bool = False) -> str:
    """Return the caption of a figure of a surface.

    Parameters
    ----------
    head : str
        Kind of surface, atoms and probe.
    outwards : float, A
        Distance from the surface at which the map was read.
    grid : Grid
    span : (low, high)
        Range of the colours.
    views : sequence of str
        Titles of the panels, unless two molecules are turned apart.
    threshold : float or None
        Least magnitude of what is coloured, if only patches are.
    between : sequence of str
        Names of two molecules that are turned apart, if they are.
    own : bool
        Whether the map of each of them is that of its own charges.
    """
    of = "the map of its own charges, without the other molecule" if own and between else "its map"
    sentences = [f"{head[0].upper()}{head[1:]}, {'each ' * bool(between)}coloured by {of}: {quantity_label(grid)}, "
                 + (f"read {outwards:g} Å outside of it." if outwards else "read on it."), colours_of(span, grid)]
    if threshold is not None:
        sentences.append(f"Grey: between -{threshold:g} and {threshold:g} {unit_label(grid)}".rstrip() + ".")
    sentences.append(f"{between[0]} (left) and {between[1]} (right) are turned apart like the pages of a book; lines "
                     "surround the faces that they hide from each other." if between else f"Seen {', '.join(views)}.")
    return minus_signs(" ".join(sentences))
