"""The open book of two faces, each with its own potential and that of its partner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential.figures.book import BookPage, OpenBook
from vmdpotential.surfaces import Surface

from .faces import ContactFace, Interface

#: Width, A, of the grey surface around a face that is shown.
RIM = 4.0


def cut_out(face: ContactFace) -> tuple[Surface, NDArray[np.bool_]]:
    """Return a face with a rim around it, and which vertices (V,) of the molecule's surface these are."""
    from scipy.spatial import cKDTree

    surface = face.surface
    near, _ = cKDTree(face.places).query(surface.vertices, distance_upper_bound=RIM)
    kept = np.isfinite(near)
    triangles = (np.cumsum(kept) - 1)[surface.triangles[kept[surface.triangles].all(1)]]
    return replace(surface, vertices=surface.vertices[kept], triangles=triangles, atoms=surface.atoms[kept],
                   areas=surface.areas[kept], cavities=surface.cavities[kept]), kept


def book_of_faces(interface: Interface, names: Sequence[str]) -> OpenBook:
    """Return the open book of both faces, coloured by their own potential above and by that of the partner below."""
    cuts = [cut_out(face) for face in interface.faces]

    def page(n: int, own: bool) -> BookPage:
        face, (surface, kept) = interface.faces[n], cuts[n]
        return BookPage(surface, face.of_vertices(face.own if own else face.partner)[kept],
                        f"face of {names[n]}\npotential of {names[n] if own else names[1 - n]}")

    return OpenBook([(page(0, own), page(1, own)) for own in (True, False)], interface.axes,
                    np.mean([face.places.mean(0) for face in interface.faces], axis=0))
