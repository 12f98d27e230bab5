"""The open book of two faces, each with its own potential and that of its partner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vmdpotential.figures.book import BookPage, OpenBook

from .faces import Interface


def book_of_faces(interface: Interface, names: Sequence[str]) -> OpenBook:
    """Return the open book of both faces, coloured by their own potential above and by that of the partner below."""
    def page(n: int, own: bool) -> BookPage:
        face = interface.faces[n]
        return BookPage(face.surface, face.of_vertices(face.own if own else face.partner),
                        f"face of {names[n]}\npotential of {names[n] if own else names[1 - n]}", face.buried)

    return OpenBook([(page(0, own), page(1, own)) for own in (True, False)], interface.axes,
                    np.mean([face.places.mean(0) for face in interface.faces], axis=0))
