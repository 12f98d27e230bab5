"""The open book: two molecules that touch, turned apart like the pages of a book, with their faces to the reader.

The spine is the longest direction of the interface. Points that touch each other are on the same height and at the same
distance from the spine, on opposite sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.figures.surfaces import SurfacePanel, compose_panels
from vmdpotential.surfaces import Surface
from vmdpotential.surfaces.contact import join_surfaces

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Distance between the pages and rows of a mesh, A.
APART = 6.0


@dataclass(frozen=True, eq=False)
class BookPage:
    """A surface on a page.

    Parameters
    ----------
    surface : Surface
    values : (V,) float64
        Values that colour its vertices; NaN where it is grey.
    title : str
    outlined : (V,) bool, optional
        Vertices of a part whose boundary is drawn.
    patches : (V,) str, optional
        Names of the vertices' patches, as of :class:`.SurfacePanel`.
    """

    surface: Surface
    values: Floats
    title: str
    outlined: NDArray[np.bool_] | None = None
    patches: NDArray[np.str_] | None = None


@dataclass(frozen=True, eq=False)
class OpenBook:
    """Rows of two pages, the left ones of the first molecule.

    Parameters
    ----------
    rows : sequence of (BookPage, BookPage)
    axes : (3, 3) float64
        As of :func:`vmdpotential.surfaces.contact.interface_axes`.
    middle : (3,) float64, A
        A point on the spine.
    """

    rows: Sequence[tuple[BookPage, BookPage]]
    axes: Floats
    middle: Floats

    def page_axes(self) -> list[tuple[Floats, Floats, Floats]]:
        """Return the directions to the right, up and to the reader of both pages."""
        up, _, normal = self.axes
        return [(np.cross(up, towards), up, towards) for towards in (normal, -normal)]

    def _turned(self) -> tuple[list[list[Floats]], list[Floats]]:
        """Return vertices (V, 3) relative to the spine, to the right, up and to the reader, and the corners of pages.

        Pages have the same height and width, and touching points the same distance from the spine.
        """
        turned = [[(page.surface.vertices - self.middle) @ np.stack(axes, 1)
                   for page, axes in zip(row, self.page_axes(), strict=True)] for row in self.rows]
        left, right = (np.concatenate([row[n][:, :2] for row in turned]) * [sign, 1] for n, sign in ((0, 1), (1, -1)))
        (low, foot), (high, top) = (function(np.concatenate([left, right]), axis=0) for function in (np.min, np.max))
        return turned, [np.array([[low, foot], [high, top]]), np.array([[-high, foot], [-low, top]])]

    def panels(self) -> list[SurfacePanel]:
        """Return the pictures of all pages."""
        _, corners = self._turned()
        return [SurfacePanel(page.surface, page.values, right, up, page.title, page.patches,
                             frame + np.array([self.middle @ right, self.middle @ up]), page.outlined)
                for row in self.rows
                for page, (right, up, _), frame in zip(row, self.page_axes(), corners, strict=True)]

    def draw(self, span: tuple[float, float], label: str, width: float, height: float | None = None) -> Figure:
        """Return the figure of all pages on one scale of colours.

        Its width and height are in mm; the height is the one that it needs unless given.
        """
        return compose_panels(self.panels(), span, label, width, 2, height)

    def mesh(self, right_of: float) -> tuple[Surface, Floats]:
        """Return the pages as one mesh and its values (V,), turned to +z, to the right of x = `right_of`, A."""
        turned, corners = self._turned()
        wide, high = corners[0][1] - corners[0][0] + APART
        pieces = []
        for n, row in enumerate(self.rows):
            for m, page in enumerate(row):
                shift = [right_of + APART - corners[m][0, 0] + m * wide, -n * high, 0.0]
                pieces.append(replace(page.surface, vertices=turned[n][m] + shift + [0.0, *self.middle[1:]]))
        return join_surfaces(pieces), np.concatenate([page.values for row in self.rows for page in row])
