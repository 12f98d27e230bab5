"""Slices and profiles of maps, drawn into Axes of the caller.

:mod:`vmdpotential.figures.page` arranges them in figures; the functions here create only artists inside the Axes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.errors import UsageError, one_line
from vmdpotential.figures.atoms import draw_atoms
from vmdpotential.figures.colours import COLOUR_STOPS, check_range, colour_range
from vmdpotential.figures.contours import contour_levels, draw_contours, without_flats
from vmdpotential.grid.lattice import Grid, Provenance
from vmdpotential.grid.means import mean_over_planes
from vmdpotential.grid.planes import Plane, smooth_values_on, values_on
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.molecule.selection import is_ion, is_water
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import POTENTIAL_UNITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage

#: How the interior of a molecular surface is drawn on a slice, the default first.
INTERIOR_STYLES = ("shown", "outlined", "masked")

#: Colours of a masked interior and of the outline of the molecular surface, and the spacing of the lattice on which
#: that is found, A.
INTERIOR, OUTLINE, _DEPTH_SPACING = "#d8d8d8", "#5a5a5a", 0.5

#: Colours of curves (blue, vermilion, green, black ...), which colour-blind readers can distinguish (Okabe, Ito 2008).
CURVE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#e69f00")


def quantity_label(grid: Grid, *others: Grid) -> str:
    """Return a label for maps: quantity, state and medium if they share them, unit and, for units with kT, temperature.
    """
    text, unit = _short(grid.provenance.quantity) or "value", unit_label(grid)
    shared = [getattr(grid.provenance, name) for name in ("state", "medium")
              if all(getattr(other.provenance, name) == getattr(grid.provenance, name) for other in others)]
    text = ", ".join(filter(None, (text[0].upper() + text[1:], *map(_short, shared))))
    if not unit:
        return text
    if grid.temperature is not None and unit.startswith("kT"):
        return f"{text} ({unit}, T = {grid.temperature:g} K)"
    return f"{text} ({unit})"


def bar_label(grid: Grid) -> str:
    """Return the label of a colour bar: the unit alone of a potential, which it names; else quantity and unit."""
    alone = grid.unit in POTENTIAL_UNITS and grid.provenance.quantity == Provenance().quantity
    return unit_label(grid) if alone else short_label(grid)


def short_label(grid: Grid) -> str:
    """Return the label of an axis: quantity and unit, without the medium and the temperature."""
    text, unit = _short(grid.provenance.quantity) or "value", unit_label(grid)
    return f"{text[0].upper()}{text[1:]}" + f" ({unit})" * bool(unit)


def unit_label(grid: Grid) -> str:
    """Return the unit of a map as figures write it, such as Å⁻³ᐟ² for ``A^-3/2``."""
    unit = _short(grid.unit).replace("^-3/2", "⁻³ᐟ²").replace("^3", "³")
    return re.sub(r"\bA(?=[³⁻]|$)", "Å", unit)


def _short(text: str) -> str:
    """Return a name from a file in one line of at most 80 letters."""
    text = one_line(" ".join(text.split()))
    return text if len(text) <= 80 else f"{text[:77]}..."


def drawable_text(text: str) -> str:
    """Return text with dollar signs and undecodable bytes escaped, and fractional exponents raised, for matplotlib.

    Matplotlib reads text between dollar signs as mathematics, and refuses it if it is not; file names may contain any
    bytes.
    """
    return text.encode("utf-8", "replace").decode().replace("$", r"\$").replace("⁻³ᐟ²", "$^{-3/2}$")


def diverging_colours(value_range: tuple[float, float], cmap: str | Colormap | None = None) -> Colormap:
    """Return the part of a diverging colour map that puts its centre at 0 of a range.

    Colours are equally strong at equal distances from 0 on both sides, for any range.
    """
    import matplotlib
    from matplotlib.colors import LinearSegmentedColormap

    if cmap is None:
        cmap = LinearSegmentedColormap.from_list("potential", COLOUR_STOPS, 256)
    diverging = matplotlib.colormaps[cmap] if isinstance(cmap, str) else cmap
    low, high = value_range
    largest = max(abs(low), abs(high))
    part = diverging(np.linspace(0.5 + low / (2 * largest), 0.5 + high / (2 * largest), 256))
    return LinearSegmentedColormap.from_list(f"{diverging.name} about 0", part, 256)


def bar_ticks(value_range: tuple[float, float], few: bool = False) -> Floats | None:
    """Return ticks of a colour bar that include both ends of a range from -x to x, or from or to 0.

    None for other ranges, and for limits of more than two digits.
    """
    low, high = value_range
    largest = max(-low, high)
    if float(f"{largest:.2g}") != largest or not (low == -high or 0 in value_range):
        return None
    return np.linspace(low, high, 3 if few else 5 if low < 0 < high else 6)


@dataclass(frozen=True, eq=False)
class AtomsOnSlice:
    """What is drawn of a structure on a slice.

    Parameters
    ----------
    structure : Structure
    slab : float, A
        Thickness of the layer of atoms.
    waters : bool
        Whether to draw waters too.
    interior : str
        How the interior of the solute's molecular surface is drawn, one of :data:`INTERIOR_STYLES`.
    """

    structure: Structure
    slab: float = 3.0
    waters: bool = False
    interior: str = "shown"

    @cached_property
    def _depths(self) -> Grid:
        from vmdpotential.surfaces import depth_map

        solute = ~is_water(self.structure) & ~is_ion(self.structure)
        if not solute.any():
            raise UsageError("interior", f"{self.structure.where} has nothing but water and ions", "leave it out")
        return depth_map(self.structure, solute, _DEPTH_SPACING)

    def depths_on(self, grid: Grid, plane: Plane, shape: tuple[int, ...], extent: Sequence[float]) -> Floats:
        """Return the depths inside the molecular surface, A, at a picture's points; negative outside.

        In a periodic map, those of the periodic images of the structure count as well.
        """
        (rows, columns), (left, right, bottom, top) = shape, extent
        points = plane.positions(*np.meshgrid(np.linspace(left, right, columns), np.linspace(bottom, top, rows)))
        points = points.reshape(-1, 3)
        vectors, cell = np.zeros((1, 3)), self.structure.cell
        if grid.provenance.boundary == "periodic" and cell is not None:
            vectors = np.array(list(product((0, -1, 1), repeat=3))) @ cell.vectors
        depths = np.full(len(points), -np.inf)
        for vector in vectors:
            np.maximum(depths, self._depths.sample(points + vector, -np.inf), out=depths)
        return depths.reshape(rows, columns)

    def shown_values(self, grid: Grid, plane: Plane) -> Floats:
        """Return the values on a plane that the picture shows, NaN elsewhere."""
        values, extent = values_on(grid, plane)
        if self.interior == "masked":
            values = np.where(self.depths_on(grid, plane, values.shape, extent) > 0, np.nan, values)
        return values


def draw_slice(
    ax: Axes, grid: Grid, plane: Plane | str, *, value_range: tuple[float, float] | None = None, contours: int = 0,
    cmap: str | Colormap | None = None, structure: StructureLike | None = None, slab: float = 3.0,
    waters: bool = False, interior: str = "shown",
) -> AxesImage:
    """Draw the values of a map on a plane.

    Parameters
    ----------
    ax : Axes
        Axes to draw into.
    grid : Grid
        The map.
    plane : Plane or str
        Plane of the slice, such as ``z=25``.
    value_range : (low, high), in the map's unit
        Range of the colours; :func:`vmdpotential.figures.colours.colour_range` of this slice unless given.
    contours : int
        Approximate number of contour levels, at round values; negative ones are dashed. 0 draws none. Closed lines
        smaller than 6 % of the picture, as around every atom in the plane, are left out.
    cmap : str or Colormap
        Diverging colour map, whose centre represents 0.
    structure : Structure or path, optional
        Structure whose atoms within `slab` / 2 of the plane are drawn on top.
    slab : float, A
        Thickness of the layer of atoms.
    waters : bool
        Whether to draw waters too.
    interior : {"shown", "outlined", "masked"}
        How the interior of the molecular surface of the structure's solute is drawn.

    Returns
    -------
    AxesImage
        Image, from which a colour bar can be made.

    Raises
    ------
    UsageError
        If the plane misses the map, the range does not increase, or the interior is that of no structure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> grid = vp.potential_map(structure, atoms="protein", spacing=3.0)
    >>> image = vp.draw_slice(Figure().add_subplot(), grid, vp.Plane.parse("z=25"), contours=6)
    >>> image.get_clim()[1] > 0
    True
    """
    plane = Plane.parse(plane) if isinstance(plane, str) else plane
    return slice_image(ax, grid, plane, value_range, contours, cmap, atoms_on_slice(structure, slab, waters, interior))


def atoms_on_slice(structure: StructureLike | None = None, slab: float = 3.0, waters: bool = False,
                   interior: str = INTERIOR_STYLES[0]) -> AtomsOnSlice | None:
    """Return what :func:`draw_slice` draws of a structure, or None without one."""
    check_interior(interior, structure is not None)
    return None if structure is None else AtomsOnSlice(as_structure(structure), slab, waters, interior)


def check_interior(interior: str, structure: bool) -> None:
    """Raise UsageError for an unknown way to draw the interior, or one without a structure."""
    if interior not in INTERIOR_STYLES:
        raise UsageError("interior", "is unknown", f"choose one of {', '.join(INTERIOR_STYLES)}", value=interior)
    if interior != INTERIOR_STYLES[0] and not structure:
        raise UsageError("interior", "the structure is needed", "give {structure} too", value=interior)


def slice_image(ax: Axes, grid: Grid, plane: Plane, value_range: tuple[float, float] | None = None, contours: int = 0,
                cmap: str | Colormap | None = None, atoms: AtomsOnSlice | None = None) -> AxesImage:
    """Draw a slice as :func:`draw_slice` does, with what is drawn of a structure in one object, for several planes."""
    values, (left, right, bottom, top) = smooth_values_on(grid, plane)
    if value_range is None:
        shown = values_on(grid, plane)[0] if atoms is None else atoms.shown_values(grid, plane)
        value_range = colour_range([grid], [shown])
    check_range(value_range)
    rows, columns = values.shape
    # pixels are centred on their points, so the image reaches half a pixel beyond them
    half_x = (right - left) / (columns - 1) / 2 if columns > 1 else float(grid.lattice.spacing.min()) / 2
    half_y = (top - bottom) / (rows - 1) / 2 if rows > 1 else float(grid.lattice.spacing.min()) / 2
    image = ax.imshow(
        np.ma.masked_invalid(values), origin="lower", interpolation="bilinear",
        extent=(left - half_x, right + half_x, bottom - half_y, top + half_y),
        cmap=diverging_colours(value_range, cmap), vmin=value_range[0], vmax=value_range[1], zorder=0,
    )
    ax.set_xlim(left - (half_x if columns == 1 else 0), right + (half_x if columns == 1 else 0))
    ax.set_ylim(bottom - (half_y if rows == 1 else 0), top + (half_y if rows == 1 else 0))
    ax.set_aspect("equal")
    ax.set_xlabel(plane.axis_label(plane.right))
    ax.set_ylabel(plane.axis_label(plane.up))
    points = np.zeros((0, 2))
    s, t = np.linspace(left, right, columns), np.linspace(bottom, top, rows)
    if atoms is not None:
        periodic = grid if grid.provenance.boundary == "periodic" else None
        if atoms.slab:
            points = draw_atoms(ax, atoms.structure, plane, atoms.slab, atoms.waters, periodic)
        if atoms.interior != INTERIOR_STYLES[0] and rows > 1 and columns > 1:
            depths = atoms.depths_on(grid, plane, values.shape, (left, right, bottom, top))
            if (depths > 0).any():
                _draw_interior(ax, s, t, depths, atoms.interior == "masked")
            if atoms.interior == "masked":
                values = np.where(depths > 0, np.nan, values)
                image.set_data(np.ma.masked_invalid(values))  # so that its colour bar is that of what is seen
    if contours and rows > 1 and columns > 1:
        draw_contours(ax, s, t, without_flats(values, value_range), contour_levels(value_range, contours), points)
    return image


def _draw_interior(ax: Axes, s: Floats, t: Floats, depths: Floats, masked: bool) -> None:
    finite = np.maximum(depths, -1e3)
    if masked:
        ax.contourf(s, t, finite, levels=[0, np.inf], colors=[INTERIOR], zorder=0.5)
    ax.contour(s, t, finite, levels=[0], colors=[OUTLINE], linewidths=1.2, linestyles="solid", zorder=1.5)


def draw_profile(
    ax: Axes, grids: Sequence[Grid], axis: int, names: Sequence[str] = (),
    value_range: tuple[float, float] | None = None, upright: bool = False, short: bool = False,
) -> None:
    """Draw the plane-averaged curves of one or more maps along x, y or z (axis 0, 1 or 2).

    Parameters
    ----------
    ax : Axes
    grids : sequence of Grid
    axis : int
    names : sequence of str
        Names of the maps for the legend, if there are several.
    value_range : (low, high), optional
        Limits of the mean.
    upright : bool
        Whether the coordinate is on the vertical axis, as next to a slice, and the mean on the horizontal one.
    short : bool
        Whether to label the mean only with its unit, because a colour bar in the same figure states the quantity.

    Raises
    ------
    UsageError
        If planes across the axis are not periodic in a map's cell.
    """
    from matplotlib.ticker import MaxNLocator

    styles = ("solid", "dashed", "dashdot", "dotted")
    for n, grid in enumerate(grids):
        coordinates, mean = mean_over_planes(grid, axis)
        x, y = (mean, coordinates) if upright else (coordinates, mean)
        ax.plot(x, y, color=CURVE_COLOURS[n % 7], linestyle=styles[n % 4], linewidth=0.8,
                marker="o" if len(coordinates) == 1 else None, markersize=2,
                label=drawable_text(names[n]) if n < len(names) else None)
    (ax.axvline if upright else ax.axhline)(0, color="#808080", linewidth=0.4, zorder=0)
    low = min(float(grid.lattice.origin[axis]) for grid in grids)
    high = max(float(grid.lattice.last[axis]) for grid in grids)
    if low < high:
        (ax.set_ylim if upright else ax.set_xlim)(low, high)
    if value_range is not None:
        (ax.set_xlim if upright else ax.set_ylim)(value_range)
    text = short_label(grids[0])
    mean_label = f"Mean {text[0].lower()}{text[1:]}"
    if upright:
        ax.xaxis.set_major_locator(MaxNLocator(nbins=3, steps=[1, 2, 5, 10]))
    if short:
        mean_label = f"Mean ({unit_label(grids[0])})" if grids[0].unit else "Mean"
    labels = f"{'xyz'[axis]} (Å)", drawable_text(mean_label)
    ax.set(xlabel=labels[upright], ylabel=labels[not upright])
    if len(grids) > 1 and names:
        ax.legend(frameon=False)
