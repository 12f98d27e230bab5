"""Figures of surfaces that are coloured by a map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.figures import layout, prepare
from vmdpotential.figures.atoms import draw_atoms
from vmdpotential.figures.colours import rgb_of
from vmdpotential.figures.directions import ViewAxes, view_along
from vmdpotential.figures.relief import SurfaceRelief
from vmdpotential.figures.sizes import JOURNAL_WIDTHS
from vmdpotential.figures.slices import bar_ticks, diverging_colours, drawable_text
from vmdpotential.figures.style import figure_style
from vmdpotential.grid.planes import Plane
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import Surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colour of the edges of a surface, and their widths in front of nothing and of other parts, points.
EDGE, EDGE_WIDTHS = "#303030", (0.6, 0.35)

#: Width of the line around an outlined part, points.
OUTLINE_WIDTH = 0.9

#: Brightness of a face seen at right angles, and of one seen from its edge.
LIGHT, SHADE = 1.0, 0.7

#: Lengths (A) of the scale bar: the longest one not above half the panel's width is used, or the first.
BARS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)

#: Names of patches in pictures: the least connected area of a patch that the viewer sees, A^2, the greatest number of
#: names in a picture, and half the width of a name relative to the picture's longer side.
MIN_SEEN, MAX_NAMED, NAME_ROOM = 15.0, 10, 0.05

_MM = 1 / 25.4


def vertex_colours(values: Floats, value_range: tuple[float, float]) -> Floats:
    """Return red, green, blue and opacity (V, 4), 0 to 1, of values (V,); grey for values that are not finite."""
    rgb = rgb_of(values, value_range) / 255
    return np.concatenate([rgb, np.ones((len(rgb), 1))], axis=1)


@dataclass(frozen=True, eq=False)
class SurfacePanel:
    """A surface in a picture, without perspective.

    Parameters
    ----------
    surface : Surface
    values : (V,) float64
        Values at the vertices.
    right, up : (3,) float64
        Directions to the right and up in the picture, at right angles.
    title : str
    patches : (V,) str, optional
        Names of the vertices' patches, empty for vertices in none. The largest areas that the viewer sees are named.
    frame : (2, 2) float64, A, optional
        Lowest and highest coordinates along both directions; those of the surface unless given.
    outlined : (V,) bool, optional
        Vertices of a part whose boundary is drawn.
    structure : Structure, optional
        Molecule whose heavy atoms and bonds are drawn on top, as of isosurfaces around them.
    """

    surface: Surface
    values: Floats
    right: Floats
    up: Floats
    title: str = ""
    patches: NDArray[np.str_] | None = None
    frame: Floats | None = None
    outlined: NDArray[np.bool_] | None = None
    structure: Structure | None = None

    @classmethod
    def of_view(cls, surface: Surface, values: Floats, view: str | ViewAxes,
                patches: NDArray[np.str_] | None = None) -> SurfacePanel:
        """Return the panel of a view, or of a direction by :func:`vmdpotential.figures.directions.view_along`."""
        axes = view_along(view, surface) if isinstance(view, str) else view
        return cls(surface, values, axes.right, axes.up, axes.title, patches)

    @cached_property
    def limits(self) -> Floats:
        """Lowest and highest coordinates (2, 2) along both directions, A."""
        if self.frame is not None:
            return self.frame
        flat = self.surface.vertices @ np.stack([self.right, self.up], 1)
        return np.array([flat.min(0), flat.max(0)])

    @property
    def extent(self) -> tuple[float, float]:
        """Width and height, A."""
        width, height = (self.limits[1] - self.limits[0]).tolist()
        return width, height


def draw_panel(ax: Axes, panel: SurfacePanel, value_range: tuple[float, float]) -> Axes:
    """Draw a surface coloured by its values into Axes; hollows are darker, and edges have lines."""
    from matplotlib.collections import LineCollection, TriMesh
    from matplotlib.tri import Triangulation

    surface, towards = panel.surface, np.cross(panel.right, panel.up)
    corners = surface.vertices[surface.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    facing = np.flatnonzero(normals @ towards > 0)
    facing = facing[np.argsort(corners.mean(1)[facing] @ towards, kind="stable")]  # triangles in front are drawn last
    shaded = vertex_colours(panel.values, value_range)
    axes = np.stack([panel.right, panel.up, towards], 1)
    middle = panel.limits.mean(0)
    relief = SurfaceRelief(surface.vertices @ axes - [*middle, 0], surface.normals @ axes, surface.triangles)
    light = np.clip(relief.normals[:, 2], 0, 1)
    shaded[:, :3] *= ((SHADE + (LIGHT - SHADE) * light) * relief.light())[:, None]
    flat = Triangulation(relief.places[:, 0], relief.places[:, 1], surface.triangles[facing])
    ax.add_collection(TriMesh(flat, facecolors=shaded, rasterized=True))
    edges, outer = relief.edges()
    widths = np.where(outer, *EDGE_WIDTHS)
    ax.add_collection(LineCollection(list(edges), colors=EDGE, linewidths=widths, capstyle="round", rasterized=True,
                                     clip_on=False), autolim=False)
    if panel.outlined is not None:
        ax.add_collection(LineCollection(list(relief.boundary(panel.outlined)), colors="black",
                                         linewidths=OUTLINE_WIDTH, capstyle="round"), autolim=False)
    if panel.patches is not None:
        names, parts = np.unique(panel.patches, return_inverse=True)
        room = NAME_ROOM * max(panel.extent)
        for n, place in relief.places_of_parts(np.where(names[parts] == "", -1, parts), MIN_SEEN, room)[:MAX_NAMED]:
            ax.annotate(names[n].replace("-", "−"), place.tolist(), ha="center", va="center", fontweight="bold",
                        bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.7})
    across, up_ = panel.extent
    ax.set(xlim=(-across / 2, across / 2), ylim=(-up_ / 2, up_ / 2), aspect="equal")
    if panel.structure is not None:
        centre = np.array([*middle, 0]) @ axes.T
        draw_atoms(ax, replace(panel.structure, positions=panel.structure.positions - centre),
                   Plane(np.zeros(3), towards, panel.right, panel.up, ""), np.inf, waters=True)
    ax.set_axis_off()
    ax.set_title(panel.title)
    return ax


def draw_view(ax: Axes, surface: Surface, values: Floats, view: str | ViewAxes, value_range: tuple[float, float],
              patches: NDArray[np.str_] | None = None) -> Axes:
    """Draw a surface coloured by values (V,) into Axes, as seen from a direction, without perspective.

    Names of patches are those of :class:`SurfacePanel`.
    """
    return draw_panel(ax, SurfacePanel.of_view(surface, values, view, patches), value_range)


def figure(surface: Surface, values: Floats, views: Sequence[str | ViewAxes], value_range: tuple[float, float],
           label: str, width: float = JOURNAL_WIDTHS["single"], patches: NDArray[np.str_] | None = None,
           height: float | None = None, structure: Structure | None = None) -> Figure:
    """Return a figure of a surface with a panel for each view, without perspective.

    Parameters
    ----------
    surface : Surface
    values : (V,) float64
        Values at the vertices.
    views : sequence of str or ViewAxes
        Directions to the viewer, such as ``-z``, ``1,1,0`` or ``short``, the shortest principal axis.
    value_range : (low, high)
        Range of the colours.
    label : str
        Label of the values.
    width : float, mm
    patches : (V,) str, optional
        Names of the vertices' patches, as of :class:`SurfacePanel`.
    height : float, mm, optional
        The one that the panels need unless given.
    structure : Structure, optional
        Molecule that is drawn on top, as of :class:`SurfacePanel`.

    Raises
    ------
    UsageError
        If the height is too low.
    """
    panels = [replace(SurfacePanel.of_view(surface, values, view, patches), structure=structure) for view in views]
    return compose_panels(panels, value_range, label, width, height=height)


def compose_panels(panels: Sequence[SurfacePanel], value_range: tuple[float, float], label: str,
                   width: float = JOURNAL_WIDTHS["single"], count: int | None = None,
                   height: float | None = None) -> Figure:
    """Return a figure of panels on one scale, with a scale bar and a bar of the colours.

    `count` is the number of columns; the one that fits best unless given.
    """
    prepare()
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.transforms import ScaledTranslation

    extents = [panel.extent for panel in panels]
    with figure_style():
        drawn = Figure(figsize=(width * _MM, width * _MM))
        axes = [drawn.add_axes((0, 0, 1, 1), label=str(n)) for n in range(len(panels))]
        for ax, panel in zip(axes, panels, strict=True):
            draw_panel(ax, panel, value_range)
        count = count or layout.columns(extents, width, height)
        low = (len(panels) - 1) // count * count  # first picture of the last row
        across, up = extents[low]
        bar = max((length for length in BARS if length <= across / 2), default=BARS[0])
        below = axes[low].transData + ScaledTranslation(0, -6 / 72, drawn.dpi_scale_trans)
        axes[low].plot((-across / 2, bar - across / 2), (-up / 2, -up / 2), color="black", linewidth=1.2,
                       transform=below, clip_on=False)
        axes[low].annotate(f"{bar:g} Å", (bar - across / 2, -up / 2), (3, 0), xycoords=below,
                           textcoords="offset points", va="center")
        colour_bar = drawn.colorbar(
            ScalarMappable(Normalize(*value_range), diverging_colours(value_range)),
            cax=drawn.add_axes((0.1, 0.1, 0.5, 0.05)),
            orientation="horizontal", label=drawable_text(label), ticks=bar_ticks(value_range), format="{x:g}")
        layout.arrange(drawn, axes, extents, count, colour_bar.ax, below=True, height=height)
    return drawn


def turntable(surface: Surface, values: Floats, views: Sequence[str | ViewAxes], count: int,
              patches: NDArray[np.str_] | None = None) -> Iterator[list[SurfacePanel]]:
    """Yield the panels of each of `count` pictures in which the surface turns once about the direction that is up."""
    panels = [SurfacePanel.of_view(surface, values, view, patches) for view in views]
    frames = []
    for panel in panels:  # of one size in all pictures
        across = surface.vertices @ np.stack([panel.right, np.cross(panel.right, panel.up)], 1)
        middle = (across.min(0) + across.max(0)) / 2
        frames.append((middle, float(np.linalg.norm(across - middle, axis=1).max())))
    for angle in np.arange(count) * 2 * np.pi / count:
        turned = []
        for panel, (middle, reach) in zip(panels, frames, strict=True):
            right = np.cos(angle) * panel.right - np.sin(angle) * np.cross(panel.right, panel.up)
            place = float(middle @ (np.cos(angle), -np.sin(angle)))
            frame = np.array([[place - reach, panel.limits[0][1]], [place + reach, panel.limits[1][1]]])
            turned.append(replace(panel, right=right, frame=frame, title=""))  # which names the first direction
        yield turned
