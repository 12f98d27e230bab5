"""The open book: two faces turned apart like the pages of a book, each with its own potential and that of its partner.

The spine is the longest direction of the interface. Points that touch each other are on the same height and at the same
distance from the spine, on opposite sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential.surfaces import Surface

from .faces import ContactFace, Floats, Interface

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Width, A, of the grey surface around a face that is shown; distance between the pages and rows of a mesh.
RIM, APART = 4.0, 6.0


def cut_out(face: ContactFace) -> tuple[Surface, NDArray[np.bool_]]:
    """Return a face with a rim around it, and which vertices (V,) of the molecule's surface these are."""
    from scipy.spatial import cKDTree

    surface = face.surface
    near, _ = cKDTree(face.places).query(surface.vertices, distance_upper_bound=RIM)
    kept = np.isfinite(near)
    triangles = (np.cumsum(kept) - 1)[surface.triangles[kept[surface.triangles].all(1)]]
    return replace(surface, vertices=surface.vertices[kept], triangles=triangles, atoms=surface.atoms[kept],
                   areas=surface.areas[kept], cavities=surface.cavities[kept]), kept


def page_axes(interface: Interface) -> list[tuple[Floats, Floats, Floats]]:
    """Return the directions to the right, up and to the viewer of both pages."""
    up, _, normal = interface.axes
    return [(np.cross(up, towards), up, towards) for towards in (normal, -normal)]


def open_book(interface: Interface, names: Sequence[str], span: tuple[float, float], label: str, width: float,
              height: float | None = None) -> Figure:
    """Return the figure of both faces, coloured by their own potential above and by that of the partner below.

    Its width and height are in mm; the height is the one that it needs unless given.
    """
    from vmdpotential.figures.surfaces import SurfacePanel, compose_panels

    middle = np.mean([face.places.mean(0) for face in interface.faces], axis=0)
    pages = []
    for face, (right, up, _) in zip(interface.faces, page_axes(interface), strict=True):
        surface, kept = cut_out(face)
        pages.append((surface, kept, right, up, (surface.vertices - middle) @ np.stack([right, up], 1)))
    # pages of one height, and as wide on both sides of the spine
    reach = max(abs(pages[0][4][:, 0]).max(), abs(pages[1][4][:, 0]).max())
    heights = np.concatenate([flat[:, 1] for *_, flat in pages])
    corners = np.array([[-reach, heights.min()], [reach, heights.max()]])
    panels = []
    for own in (True, False):
        for n, (face, (surface, kept, right, up, _)) in enumerate(zip(interface.faces, pages, strict=True)):
            values = face.of_vertices(face.own if own else face.partner)[kept]
            title = f"face of {names[n]}\npotential of {names[n] if own else names[1 - n]}"
            panels.append(SurfacePanel(surface, values, right, up, title,
                                       frame=corners + np.array([middle @ right, middle @ up])))
    return compose_panels(panels, span, label, width, 2, height)


def book_mesh(interface: Interface) -> tuple[Surface, Floats]:
    """Return the open book as one mesh and its values (V,), kT/e, next to the molecules and turned to the viewer at +z.

    The faces are coloured by their own potential in the row above, and by that of the partner below.
    """
    beside = interface.structure.positions.max(0)
    pieces, values = [], []
    cuts = [cut_out(face) for face in interface.faces]
    flats = []
    middle = np.mean([face.places.mean(0) for face in interface.faces], axis=0)
    for (surface, _), axes in zip(cuts, page_axes(interface), strict=True):
        flats.append((surface.vertices - middle) @ np.stack(axes, 1))
    reach = max(abs(flat[:, 0]).max() for flat in flats)
    height = max(flat[:, 1].max() for flat in flats) - min(flat[:, 1].min() for flat in flats)
    for own in (True, False):
        for n, (face, (surface, kept), flat) in enumerate(zip(interface.faces, cuts, flats, strict=True)):
            shift = np.array([APART + reach + n * (2 * reach + APART), -(not own) * (height + APART), 0.0])
            place = np.array([beside[0], middle[1], middle[2]])
            pieces.append(replace(surface, vertices=flat + shift + place))
            values.append(face.of_vertices(face.own if own else face.partner)[kept])
    starts = np.cumsum([0, *(len(piece.vertices) for piece in pieces)])
    return replace(
        pieces[0], vertices=np.concatenate([piece.vertices for piece in pieces]),
        triangles=np.concatenate([piece.triangles + start for piece, start in zip(pieces, starts, strict=False)]),
        atoms=np.concatenate([piece.atoms for piece in pieces]),
        areas=np.concatenate([piece.areas for piece in pieces]),
        cavities=np.concatenate([piece.cavities for piece in pieces])), np.concatenate(values)
