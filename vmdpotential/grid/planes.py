"""Planes through a map, and the map's values on them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Grid, Lattice

_AXES = "xyz"
# for each axis of the normal, the axes that point right and up in the picture
_IN_PLANE = {0: (1, 2), 1: (0, 2), 2: (0, 1)}


def _number(x: float) -> str:
    text = f"{x:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text.replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True, eq=False)
class Plane:
    """Plane, with the directions that point right and up in its picture.

    Parameters
    ----------
    point : (3,) float64, A
        A point of the plane.
    normal, right, up : (3,) float64
        Unit vectors, each perpendicular to the others.
    label : str
        Description for titles, such as ``z = 12.5 Å``.

    Examples
    --------
    >>> vp.Plane.parse("z=25").label
    'z = 25 Å'
    """

    point: Floats
    normal: Floats
    right: Floats
    up: Floats
    label: str

    @classmethod
    def across(cls, axis: int, position: float) -> Plane:
        """Return the plane perpendicular to x, y or z (axis 0, 1 or 2) at a position in A."""
        unit = np.eye(3)
        right, up = _IN_PLANE[axis]
        return cls(unit[axis] * position, unit[axis], unit[right], unit[up],
                   f"{_AXES[axis]} = {_number(position)} Å")

    @classmethod
    def parse(cls, text: str) -> Plane:
        """Return the plane that a text such as ``z=12.5`` specifies.

        Raises
        ------
        UsageError
            If the text is not one of x, y and z, an equals sign and a number.
        """
        match = re.fullmatch(r"\s*([xyz])\s*=\s*(\S+?)\s*(Å|A)?\s*", text, re.IGNORECASE)
        try:
            if match and np.isfinite(position := float(match.group(2))):
                return cls.across(_AXES.index(match.group(1).lower()), position)
        except ValueError:
            pass
        raise UsageError("plane", "write an axis and a position in A, such as z=12.5", value=text)

    @classmethod
    def through(cls, point: ArrayLike, normal: ArrayLike) -> Plane:
        """Return the plane through a point (A) with a normal of any length.

        In the picture, z points upwards as far as the plane allows, or y if the normal is along z.

        Raises
        ------
        UsageError
            If the normal has no length.
        """
        point, normal = np.array(point, np.float64), np.array(normal, np.float64)
        length = np.linalg.norm(normal)
        if point.shape != (3,) or normal.shape != (3,) or not (np.isfinite(length) and length > 0):
            raise UsageError("normal", "three numbers, not all 0, are needed",
                             value=",".join(f"{x:g}" for x in np.ravel(normal)))
        unit = normal / length
        along = np.flatnonzero(np.abs(unit) > 1 - 1e-9)
        if len(along):
            return cls.across(int(along[0]), float(point[along[0]]))
        up = np.array([0.0, 0.0, 1.0]) - unit * unit[2]
        up /= np.linalg.norm(up)
        # the normal points to the viewer, as z does in a picture of the xy plane
        right = np.cross(up, unit)
        smallest = np.abs(normal[np.abs(normal) > 1e-9 * length]).min()
        multiples = normal / smallest  # 1, 1, 0 reads better than 0.5, 0.5, 0
        displayed = multiples if np.abs(multiples).max() < 10 else unit
        label = f"normal ({', '.join(_number(float(x)) for x in displayed)})"
        return cls(point, unit, right, up, label)

    @property
    def axis(self) -> int | None:
        """Index of the axis parallel to the normal; None for an oblique plane."""
        along = np.flatnonzero(np.abs(self.normal) > 1 - 1e-9)
        return int(along[0]) if len(along) else None

    def axis_label(self, direction: NDArray[np.float64]) -> str:
        """Return the label of the picture's axis along a direction, `right` or `up`."""
        along = np.flatnonzero(np.abs(direction) > 1 - 1e-9)
        if len(along) and direction[along[0]] > 0:
            return f"{_AXES[along[0]]} (Å)"
        return f"along ({', '.join(_number(float(x)) for x in direction)}) (Å)"

    def coordinates(self, positions: ArrayLike) -> Floats:
        """Return the coordinates (..., 3) of positions along `right`, `up` and `normal`, in A.

        For directions along x, y or z they are the map's coordinates, for others distances from `point`.
        """
        relative = np.asarray(positions, np.float64) - self.point
        base = [self.point @ d if np.max(d) > 1 - 1e-9 else 0.0 for d in (self.right, self.up)]
        basis = np.stack([self.right, self.up, self.normal], axis=1)
        return np.asarray(relative @ basis + np.array([*base, 0.0]))

    def positions(self, right: ArrayLike, up: ArrayLike) -> Floats:
        """Return the positions (..., 3), A, of coordinates in the picture."""
        zero = self.coordinates(self.point)
        s, t = np.asarray(right, np.float64) - zero[0], np.asarray(up, np.float64) - zero[1]
        return np.asarray(self.point + s[..., None] * self.right + t[..., None] * self.up)


def middle_plane(lattice: Lattice, axis: int = 2) -> Plane:
    """Return the plane through the nodes next to the middle of a lattice."""
    return Plane.across(axis, float(lattice.axes()[axis][lattice.shape[axis] // 2]))


def plane_outline(lattice: Lattice, plane: Plane) -> Floats:
    """Return the picture coordinates (M, 2) of the points where the plane cuts the edges of the lattice's box.

    Raises
    ------
    UsageError
        If the plane misses the lattice.
    """
    low, high = lattice.origin, lattice.last
    corners = np.array([[(low, high)[n >> d & 1][d] for d in range(3)] for n in range(8)])
    height = (corners - plane.point) @ plane.normal
    rounding = 1e-6 * float(lattice.spacing.min())
    height[np.abs(height) < rounding] = 0.0
    points = [corners[n] for n in range(8) if height[n] == 0]
    for n in range(8):
        for d in range(3):
            m = n | 1 << d
            if m != n and height[n] * height[m] < 0:
                t = height[n] / (height[n] - height[m])
                points.append(corners[n] + t * (corners[m] - corners[n]))
    if not points:
        axis = plane.axis
        if axis is None:
            where = f"{plane.label} through {' '.join(f'{x:g}' for x in plane.point)}"
            raise UsageError("point", f"the plane with {where} A misses the map, which covers {_box(lattice)}")
        raise UsageError(
            "plane", f"misses the map, which covers {_AXES[axis]} from {low[axis]:g} to {high[axis]:g} A",
            value=f"{_AXES[axis]}={plane.point[axis]:g}")
    return plane.coordinates(np.array(points))[:, :2]


def _box(lattice: Lattice) -> str:
    return ", ".join(f"{_AXES[d]} {lattice.origin[d]:g} to {lattice.last[d]:g}" for d in range(3)) + " A"


def values_on(
    grid: Grid, plane: Plane, refine: int = 1
) -> tuple[Floats, tuple[float, float, float, float]]:
    """Return the values on a plane, by trilinear interpolation.

    Parameters
    ----------
    grid : Grid
    plane : Plane
    refine : int
        Points per lattice spacing along the picture's axes; with 1 an axis plane through nodes gives
        the values of the map itself.

    Returns
    -------
    values : (rows, columns) float64, in the map's unit
        Row 0 is the lowest; NaN outside the map.
    extent : (left, right, bottom, top), A
        Coordinates of the outermost points.

    Raises
    ------
    UsageError
        If the plane misses the map.
    """
    edge = plane_outline(grid.lattice, plane)
    low, high = edge.min(0), edge.max(0)
    steps = [_step(grid.lattice, direction) / refine for direction in (plane.right, plane.up)]
    counts = [int(np.floor((high[d] - low[d]) / steps[d] + 1e-6)) + 1 for d in range(2)]
    s, t = (low[d] + steps[d] * np.arange(counts[d]) for d in range(2))
    values = grid.sample(plane.positions(*np.meshgrid(s, t)))
    return values, (float(s[0]), float(s[-1]), float(t[0]), float(t[-1]))


def _step(lattice: Lattice, direction: Floats) -> float:
    along = np.abs(direction) > 1 - 1e-9
    return float(lattice.spacing[along][0] if along.any() else lattice.spacing.min())


def smooth_values_on(
    grid: Grid, plane: Plane, refine: int = 4
) -> tuple[Floats, tuple[float, float, float, float]]:
    """Return the values on a plane, interpolated smoothly for a picture.

    The values V of :func:`values_on` are interpolated by a monotone cubic (PCHIP), along one axis and then along
    the other, as asinh(V / s) with s a third of the 98th percentile of the magnitudes. The cubic has no overshoot
    and keeps the values at nodes; the asinh makes the peaks at atoms round.

    Parameters and results are those of :func:`values_on`, with `refine` steps to a lattice spacing.
    """
    coarse = 1 if plane.axis is not None else 2  # an oblique plane passes the nodes at varying distances
    values, (left, right, bottom, top) = values_on(grid, plane, coarse)
    rows, columns = values.shape
    factor = max(1, min(refine // coarse, 2400 // max(rows, columns)))  # at most the resolution of print
    s = np.linspace(left, right, (columns - 1) * factor + 1)
    t = np.linspace(bottom, top, (rows - 1) * factor + 1)
    missing = ~np.isfinite(values)
    if missing.any():
        # extrapolate with the values of the nearest points of the map, so that its edge is smooth too
        positions = plane.positions(*np.meshgrid(s[::factor], t[::factor]))[missing]
        values[missing] = grid.sample(np.clip(positions, grid.lattice.origin, grid.lattice.last))
    unknown = ~np.isfinite(values)  # such as in a difference of maps, where only one has values
    scale = float(np.quantile(np.abs(values[~unknown]), 0.98)) / 3 if not unknown.all() else 0.0
    scale = scale or 1.0
    values[unknown] = 0
    result = np.arcsinh(values / scale)
    for axis, count in enumerate((rows, columns)):
        if count > 1:
            result = np.moveaxis(_monotone_cubic(np.moveaxis(result, axis, 0), factor), 0, axis)
    result = np.sinh(result) * scale
    if missing.any():  # never for planes across an axis
        u = (plane.positions(*np.meshgrid(s, t)) - grid.lattice.origin) / grid.lattice.spacing
        outside = ((u < -1e-6) | (u > np.array(grid.lattice.shape) - 1 + 1e-6)).any(-1)
        result[outside] = np.nan
    if unknown.any():  # nor are values between these points and their neighbours known
        for axis in range(2):
            fine = np.arange(result.shape[axis])
            unknown = np.take(unknown, fine // factor, axis) | np.take(unknown, -(-fine // factor), axis)
        result[unknown] = np.nan
    return result, (left, right, bottom, top)


def _monotone_cubic(values: Floats, factor: int) -> Floats:
    """Return values (n, m), n > 1, interpolated along rows with `factor` steps from one row to the next.

    PCHIP (F. N. Fritsch, J. Butland, SIAM J. Sci. Stat. Comput. 5 (1984) 300) for rows at equal distances, with the
    same end slopes as `scipy.interpolate`, whose import takes longer than drawing a picture.
    """
    rise = np.diff(values, axis=0)
    slope = np.empty_like(values)
    before, after = rise[:-1], rise[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope[1:-1] = np.where(before * after > 0, 2 * before * after / (before + after), 0.0)
    for end, near, next_ in ((0, rise[0], rise[min(1, len(rise) - 1)]), (-1, rise[-1], rise[max(-2, -len(rise))])):
        outer = (3 * near - next_) / 2
        steep = (near * next_ < 0) & (np.abs(outer) > 3 * np.abs(near))
        slope[end] = np.where(outer * near <= 0, 0.0, np.where(steep, 3 * near, outer))
    result = np.empty(((len(rise)) * factor + 1, *values.shape[1:]))
    for n in range(factor):
        t = n / factor
        result[n:-1:factor] = (values[:-1] + (t * t * (3 - 2 * t)) * rise + (t * (1 - t) ** 2) * slope[:-1]
                               - (t * t * (1 - t)) * slope[1:])
    result[-1] = values[-1]
    return result
