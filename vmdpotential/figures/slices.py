"""Slices and profiles of maps, drawn into Axes that the caller made.

``figures`` arranges them on a page; here nothing is created but the artists inside one Axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError, one_line
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane, smooth_values_on, values_on
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage

Floats = NDArray[np.float64]
Range = tuple[float, float]

#: Negative red, positive blue, as electrostatic potentials are drawn; safe for colour-blind readers.
COLOURS = "RdBu"

#: Fraction of the values that the colours tell apart when no range is given.
SHOWN = 0.98

#: A, by which a cell's corners may miss a plane: what is left of angles that a file rounds.
_LEVEL = 0.05
#: Planes of corners in the height of a cell's longest vector, at most; a truncated octahedron has three.
_MOST_PARTS = 6

_ELEMENT_COLOURS = {
    "C": "#808080", "N": "#3050f8", "O": "#e8271a", "S": "#d9b600", "P": "#f08000", "H": "#ffffff",
    "F": "#70c040", "CL": "#1fb01f", "BR": "#a62929", "I": "#940094", "NA": "#8a3ffc", "K": "#8f40d4",
    "MG": "#3f9f00", "CA": "#2f8f2f", "ZN": "#6f7fb0", "FE": "#c85a20",
}  # fmt: skip
_OTHER_COLOUR = "#c850a0"
_IONS_DRAWN_LARGER = frozenset(("NA", "K", "CL", "MG", "CA", "ZN", "LI", "RB", "CS", "BR", "I"))

#: Blue, vermilion, green, black ... : told apart by everybody (Okabe and Ito 2008).
SHADES = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#e69f00")


def quantity_label(grid: Grid, *others: Grid) -> str:
    """Return what maps show, in which medium where it is one, with unit and, where the unit holds kT, temperature."""
    text, unit = _short(grid.provenance.quantity) or "value", _short(grid.unit)
    one = all(other.provenance.medium == grid.provenance.medium for other in others)
    text = ", ".join(filter(None, (text[0].upper() + text[1:], _short(grid.provenance.medium) if one else "")))
    if not unit:
        return text
    if grid.temperature is not None and unit.startswith("kT"):
        return f"{text} ({unit}, T = {grid.temperature:g} K)"
    return f"{text} ({unit})"


def _short(text: str) -> str:
    """Return what a file calls something as a label can show it."""
    text = one_line(" ".join(text.split()))
    return text if len(text) <= 80 else f"{text[:77]}..."


def drawable(text: str) -> str:
    """Return text as matplotlib draws it: between two dollar signs it would read mathematics, and refuse what is none.

    Names of files may hold any bytes.
    """
    return text.encode("utf-8", "replace").decode().replace("$", r"\$")


def robust_range(slices: Iterable[Floats], fraction: float = SHOWN) -> Range:
    """Return a symmetric range of round limits that holds a fraction of the values.

    Atoms in the plane make spikes that would leave everything else pale, so the limits do not
    follow the extremes.

    Parameters
    ----------
    slices : iterable of arrays
        NaN stands for "outside the map".
    fraction : float
    """
    values = np.abs(np.concatenate([s[np.isfinite(s)] for s in slices]))
    limit = float(np.quantile(values, fraction)) if len(values) else 0.0
    if limit == 0:
        limit = float(values.max(initial=0.0)) or 1.0
    power = 10.0 ** np.floor(np.log10(limit))
    for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10):
        if limit <= step * power * (1 + 1e-9):
            break
    return -float(step * power), float(step * power)


def colours(value_range: Range, cmap: str | Colormap | None = None) -> Colormap:
    """Return the part of a diverging colour map that a range needs, so that its middle stands for 0.

    Equal distances from 0 have equal strength of colour on both sides, whatever the range.
    """
    import matplotlib
    from matplotlib.colors import LinearSegmentedColormap

    whole = matplotlib.colormaps[cmap or COLOURS] if cmap is None or isinstance(cmap, str) else cmap
    low, high = value_range
    largest = max(abs(low), abs(high))
    part = whole(np.linspace(0.5 + low / (2 * largest), 0.5 + high / (2 * largest), 256))
    return LinearSegmentedColormap.from_list(f"{whole.name} about 0", part, 256)


def levels(value_range: Range, number: int) -> Floats:
    """Return round contour levels inside a range, about `number` of them."""
    from matplotlib.ticker import MaxNLocator

    low, high = value_range
    ticks = MaxNLocator(nbins=number + 1, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    margin = 1e-9 * (high - low)
    return np.array([x for x in ticks if low + margin < x < high - margin])


def check_range(value_range: Range) -> None:
    """Raise UsageError when a range does not increase."""
    low, high = value_range
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise UsageError("range", "the first value must be below the second", value=f"{low:g},{high:g}")


def draw_slice(
    ax: Axes, grid: Grid, plane: Plane, *, value_range: Range | None = None, contours: int = 0,
    cmap: str | Colormap | None = None, structure: Structure | None = None, slab: float = 3.0,
    waters: bool = False,
) -> AxesImage:
    """Draw the values of a map on a plane.

    Parameters
    ----------
    ax : Axes
    grid : Grid
    plane : Plane
    value_range : (low, high), in the map's unit
        What the colours span; :func:`robust_range` of this slice unless given.
    contours : int
        About how many contour lines, at round values; negative ones are dashed. 0 draws none.
    cmap : str or Colormap
        A diverging colour map whose middle is 0.
    structure : Structure, optional
        Atoms to draw on top, those within `slab` / 2 of the plane.
    slab : float, A
    waters : bool
        Whether waters are drawn too.

    Returns
    -------
    AxesImage
        For a colour bar.

    Raises
    ------
    UsageError
        When the plane lies outside the map, or the range does not increase.
    """
    values, (left, right, bottom, top) = smooth_values_on(grid, plane)
    if value_range is None:
        value_range = robust_range([values_on(grid, plane)[0]])
    check_range(value_range)
    rows, columns = values.shape
    # pixels are centred on their points, so the image reaches half a pixel beyond them
    half_x = (right - left) / (columns - 1) / 2 if columns > 1 else float(grid.lattice.spacing.min()) / 2
    half_y = (top - bottom) / (rows - 1) / 2 if rows > 1 else float(grid.lattice.spacing.min()) / 2
    image = ax.imshow(
        np.ma.masked_invalid(values), origin="lower", interpolation="bilinear",
        extent=(left - half_x, right + half_x, bottom - half_y, top + half_y),
        cmap=colours(value_range, cmap), vmin=value_range[0], vmax=value_range[1], zorder=0,
    )
    ax.set_xlim(left - (half_x if columns == 1 else 0), right + (half_x if columns == 1 else 0))
    ax.set_ylim(bottom - (half_y if rows == 1 else 0), top + (half_y if rows == 1 else 0))
    ax.set_aspect("equal")
    ax.set_xlabel(plane.axis_label(plane.right))
    ax.set_ylabel(plane.axis_label(plane.up))
    points = np.zeros((0, 2))
    if structure is not None:
        periodic = grid if grid.provenance.boundary == "periodic" else None
        points = draw_atoms(ax, structure, plane, slab, waters, periodic)
    if contours and rows > 1 and columns > 1:
        s, t = np.linspace(left, right, columns), np.linspace(bottom, top, rows)
        _draw_contours(ax, s, t, _without_flats(values, value_range), levels(value_range, contours), points)
    return image


def _without_flats(values: Floats, value_range: Range) -> Floats:
    """Return values with NaN where nothing rises above a thousandth of the colours' span.

    Beyond a cutoff the potential is 0 throughout, and a line of 0 there would only show rounding.
    """
    from scipy.ndimage import maximum_filter

    around = maximum_filter(np.nan_to_num(np.abs(values)), size=9)
    return np.where(around <= 1e-3 * (value_range[1] - value_range[0]), np.nan, values)


def _draw_contours(ax: Axes, s: Floats, t: Floats, values: Floats, at: Floats, atoms: Floats) -> None:
    if not len(at):
        return
    lines = ax.contour(
        s, t, np.ma.masked_invalid(values), levels=at, colors="#202020", zorder=1,
        linewidths=[0.8 if level == 0 else 0.4 for level in at],
        linestyles=["dashed" if level < 0 else "solid" for level in at],
    )
    pieces = [np.asarray(piece) for path in lines.get_paths() for piece in path.to_polygons(closed_only=False)]
    places = _label_places(pieces, s, t, atoms)
    if places:
        ax.clabel(
            lines, fontsize=5.5, inline_spacing=3, manual=places,
            fmt=lambda x: f"{x:g}".replace("-", "\N{MINUS SIGN}"))


def _label_places(pieces: Sequence[Floats], s: Floats, t: Floats, atoms: Floats) -> list[tuple[float, float]]:
    """Return a place for a label on each long line, clear of atoms, of other labels and of the frame."""
    size = max(s[-1] - s[0], t[-1] - t[0])
    taken = atoms
    places = []
    for piece in sorted(pieces, key=_length, reverse=True):
        if _length(piece) < 0.3 * size:
            break
        x, y = piece[:: max(1, len(piece) // 100)].T
        # not on steep stretches, where a 6 upside down is a 9
        steep = np.abs(np.gradient(y)) > 1.5 * np.abs(np.gradient(x)) if len(x) > 1 else np.array([True])
        frame = np.minimum(np.minimum(x - s[0], s[-1] - x), np.minimum(y - t[0], t[-1] - y))
        clear = np.where(steep, 0, np.minimum(frame, 0.08 * size))
        if len(taken):
            nearest = np.hypot(x[:, None] - taken[:, 0], y[:, None] - taken[:, 1]).min(1)
            clear = np.minimum(clear, nearest)
        best = int(np.argmax(clear))
        if clear[best] > 0.04 * size:
            places.append((float(x[best]), float(y[best])))
            taken = np.concatenate([taken, [places[-1]]])
    return places


def _length(line: Floats) -> float:
    return float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())


def draw_atoms(
    ax: Axes, structure: Structure, plane: Plane, slab: float = 3.0, waters: bool = False, periodic: Grid | None = None
) -> Floats:
    """Draw the heavy atoms near a plane, and the bonds between them, over what the Axes shows.

    Parameters
    ----------
    ax : Axes
        With limits set.
    structure : Structure
    plane : Plane
    slab : float, A
        Atoms within half of it on either side are drawn.
    waters : bool
    periodic : Grid, optional
        A periodic map; the images of the atoms that lie in it are drawn.

    Returns
    -------
    (M, 2) float64
        Where on the picture atoms were drawn.
    """
    from matplotlib.collections import EllipseCollection, LineCollection

    from vmdpotential.molecule import elements as chemistry
    from vmdpotential.molecule.names import WATERS, named

    elements = np.char.upper(
        chemistry.complete(structure.elements, structure.atom_names, structure.residue_names))
    wanted = ~np.isin(elements, ["H", "D"])
    if not waters:
        wanted &= ~named(structure.residue_names, WATERS)
    index = np.flatnonzero(wanted)
    positions = structure.positions[index]
    if periodic is not None and structure.cell is not None:
        low, high = periodic.lattice.origin, periodic.lattice.last
        positions, where = structure.cell.images_in_box(positions, low, high)
        index = index[where]
    s, t, height = plane.coordinates(positions).T
    (left, right), (bottom, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    near = (np.abs(height) <= slab / 2) & (s >= left) & (s <= right) & (t >= bottom) & (t <= top)
    if not near.any():
        return np.zeros((0, 2))
    index, positions = index[near], positions[near]
    points, elements, height = np.stack([s[near], t[near]], 1), elements[index], height[near]
    bonds = _bonds(positions, chemistry.radii(elements))
    # half of each bond in the colour of its atom's outline would clutter; one grey serves
    ax.add_collection(
        LineCollection(list(points[bonds]), colors="#303030", linewidths=0.6, capstyle="round", zorder=2),
        autolim=False)
    order = np.argsort(height, kind="stable")
    size = np.where(np.isin(elements, list(_IONS_DRAWN_LARGER)), 2.2, 1.1)[order]
    face = [_ELEMENT_COLOURS.get(str(e), _OTHER_COLOUR) for e in elements[order]]
    atoms = EllipseCollection(
        size, size, np.zeros(len(order)), units="xy", offsets=points[order], offset_transform=ax.transData,
        facecolors=face, edgecolors="#202020", linewidths=0.25, zorder=3,
    )
    ax.add_collection(atoms, autolim=False)
    return points


def _bonds(positions: Floats, radius: Floats) -> NDArray[np.int64]:
    """Return pairs (M, 2) of atoms closer than a bond between heavy atoms is long."""
    from scipy.spatial import cKDTree

    pairs = cKDTree(positions).query_pairs(2.2, output_type="ndarray")
    length = np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1)
    bonded = length < np.where((radius[pairs] > 1.75).any(1), 2.2, 1.7)
    return np.asarray(pairs[bonded], np.int64)


def profile(grid: Grid, axis: int) -> tuple[Floats, Floats]:
    """Return coordinates (n,) in A along an axis and the mean (n,) of the map over the planes across it.

    Where the map knows its cell, and that is slanted or turned, the mean is over a period of the plane.

    Raises
    ------
    UsageError
        When planes across the axis have no period in the cell.
    """
    where, cell = grid.lattice.axes()[axis], grid.provenance.cell
    periodic = None if cell is None else Cell(np.array(cell))
    if periodic is None or periodic.orthogonal:
        mean, others = np.zeros(len(where)), tuple(d for d in range(3) if d != axis)
        for start, values in grid.slabs():
            part = slice(start, start + values.shape[2]) if axis == 2 else slice(None)
            mean[part] += values.sum(axis=others, dtype=np.float64)
        return where, mean * len(where) / grid.lattice.size
    step = _repeat(periodic, axis)
    if step is None:
        name = "xyz"[axis]
        possible = [f"{{profile {other}}}" for d, other in enumerate("xyz") if _repeat(periodic, d) is not None]
        cure = " or ".join(possible) or "a map of the structure turned, with two vectors of its cell across an axis"
        raise UsageError("profile", f"planes across {name} have no period in the map's slanted cell, so that each has "
                         "the mean of the whole map", f"use {cure}", value=name)
    return where, _mean_over_periods(grid, periodic, axis, step)


def _repeat(cell: Cell, axis: int) -> float | None:
    """Return the distance, A, between planes of cell corners across an axis, None where the corners fill it densely.

    Only where the heights of a, b and c are small multiples of one length do two combinations of
    the three lie in the plane.
    """
    heights = cell.vectors[:, axis]
    for parts in range(1, _MOST_PARTS + 1):
        step = float(np.abs(heights).max()) / parts
        if (np.abs(heights - np.rint(heights / step) * step) < _LEVEL).all():
            return step
    return None


def _mean_over_periods(grid: Grid, cell: Cell, axis: int, step: float) -> Floats:
    """Return the mean (n,) over the planes across an axis, which repeat every `step` A, all parts of a period alike.

    A part of a plane may have images in the same and in others of the planes that repeat it. A node counts with
    its share of the weights of all its images in the map's box. Weights fall evenly from the middle of the box to
    0 one step beyond its edges: where they jumped, the error would be of first order in the spacing.
    """
    lattice, x = grid.lattice, grid.lattice.axes()[axis]
    size = lattice.last - lattice.origin + 2 * lattice.spacing
    shifts = cell.images_in_box(np.zeros((1, 3)), -size, size)[0]
    climb = np.rint(shifts[:, axis] / step)

    def weight(d: int, moved: Floats) -> Floats:
        node = np.arange(lattice.shape[d]) + moved[:, None] / lattice.spacing[d]
        weights: Floats = np.maximum(np.minimum(node + 1, lattice.shape[d] - node), 0)
        return weights

    p, q = (d for d in range(3) if d != axis)
    over_plane = "xyz,n{}{}->n{}".format(*("xyz"[d] for d in (p, q, axis)))
    own = weight(p, np.zeros(1)).T * weight(q, np.zeros(1))
    below, above = (np.floor(height / step + 1e-6) for height in (x - x[0], x[-1] - x))
    mean = np.empty(len(x))
    for count in np.unique(below + above + 1):  # of planes in the box; it differs by one at most
        shares = []
        for plane in range(int(count)):
            inside = (plane + climb >= 0) & (plane + climb < count)
            shares.append(own / (weight(p, shifts[inside, p]).T @ weight(q, shifts[inside, q])))
        weights = np.stack(shares)
        sums = np.zeros((len(weights), len(x)))
        for start, values in grid.slabs():
            part = slice(start, start + values.shape[2])
            if axis == 2:
                sums[:, part] = np.einsum(over_plane, values, weights)
            else:
                sums += np.einsum(over_plane, values, weights[:, :, part])
        chosen = below + above + 1 == count
        lowest = x[chosen] - below[chosen] * step
        of_planes = [np.interp(lowest + n * step, x, row) for n, row in enumerate(sums)]
        mean[chosen] = np.sum(of_planes, axis=0) / np.sum(shares)
    return mean


def draw_profile(
    ax: Axes, grids: Sequence[Grid], axis: int, names: Sequence[str] = (), value_range: Range | None = None
) -> None:
    """Draw the plane-averaged curves of one or more maps along x, y or z (axis 0, 1 or 2).

    Parameters
    ----------
    ax : Axes
    grids : sequence of Grid
    axis : int
    names : sequence of str
        For a legend, where there are several maps.
    value_range : (low, high), optional
        Limits of the vertical axis.

    Raises
    ------
    UsageError
        When planes across the axis have no period in a map's cell.
    """
    styles = ("solid", "dashed", "dashdot", "dotted")
    for n, grid in enumerate(grids):
        where, mean = profile(grid, axis)
        ax.plot(where, mean, color=SHADES[n % 7], linestyle=styles[n % 4], linewidth=0.8,
                marker="o" if len(where) == 1 else None, markersize=2,
                label=drawable(names[n]) if n < len(names) else None)
    ax.axhline(0, color="#808080", linewidth=0.4, zorder=0)
    low = min(float(grid.lattice.origin[axis]) for grid in grids)
    high = max(float(grid.lattice.last[axis]) for grid in grids)
    if low < high:
        ax.set_xlim(low, high)
    if value_range is not None:
        ax.set_ylim(value_range)
    ax.set_xlabel(f"{'xyz'[axis]} (Å)")
    text = quantity_label(*grids)
    ax.set_ylabel(drawable(f"Mean {text[0].lower()}{text[1:]}"))
    if len(grids) > 1 and names:
        ax.legend(frameon=False)
