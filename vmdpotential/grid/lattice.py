"""A map with its unit and provenance (Grid); its points are a Lattice, of :mod:`vmdpotential.grid.targets`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import extras
from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, check_unmasked
from vmdpotential.grid.provenance import Provenance as Provenance
from vmdpotential.grid.provenance import cell_vectors
from vmdpotential.grid.solvation import Solvation
from vmdpotential.grid.targets import Lattice as Lattice
from vmdpotential.grid.targets import Points as Points
from vmdpotential.grid.targets import coordinate_bounds as coordinate_bounds
from vmdpotential.molecule.cell import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vmdpotential.grid.planes import Plane


#: Modules that draw slices; they are above this one, and named by their paths, as in the registry.
_SLICES, _PAGES = "vmdpotential.figures.slices", "vmdpotential.figures.page"


@dataclass(frozen=True, eq=False)
class Grid:
    """A scalar map.

    Parameters
    ----------
    lattice : Lattice
        The points.
    values : (nx, ny, nz) float32, in `unit`
        The value at each point.
    unit : str
        Unit of the values; empty if a file did not state one.
    temperature : float or None
        Temperature, K, that defines kT.
    dielectric : float or None
        Relative permittivity of the medium.
    provenance : Provenance
        Origin of the values.
    field : (3,) Grid or None
        The electric field along x, y and z, V/A, if it was requested.
    solvation : Solvation or None
        The solvation energy, if the method computes it (``pb``).

    Examples
    --------
    >>> import numpy as np
    >>> grid = vp.Grid(vp.Lattice((0, 0, 0), 1.0, (2, 2, 2)), np.arange(8).reshape(2, 2, 2), unit="V")
    >>> grid([[0.5, 0.5, 0.5]]).tolist()
    [3.5]
    >>> (2 * grid - grid).values.max()
    np.float32(7.0)
    """

    lattice: Lattice
    values: NDArray[np.float32]
    unit: str = ""
    temperature: float | None = None
    dielectric: float | None = None
    provenance: Provenance = dataclass_field(default_factory=Provenance)
    field: tuple[Grid, Grid, Grid] | None = None
    solvation: Solvation | None = None

    def __post_init__(self) -> None:
        check_unmasked(self.values, "values of a map")
        values = np.ascontiguousarray(self.values, dtype=np.float32)
        if values.shape != self.lattice.shape:
            raise InputError(f"the values of a map have the shape {values.shape}, its lattice {self.lattice.shape}")
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        origin = self.provenance
        details = ", ".join(filter(None, (origin.medium, origin.method, origin.boundary)))
        return (f"{type(self).__name__}({origin.quantity or 'values'}, {self._span()}{details and f', {details}'}; "
                f"{repr(self.lattice).removeprefix('Lattice(')}")

    def _span(self) -> str:
        low, high = (float(f.reduce(self.values, axis=None)) for f in (np.fmin, np.fmax))  # NaN only if all are
        return f"{low:.4g} to {high:.4g} {self.unit}".rstrip()

    def _repr_png_(self) -> bytes:
        """Return the picture that notebooks show."""
        import vmdpotential

        picture: bytes = vmdpotential.thumbnail(self)
        return picture

    def header(self) -> dict[str, str]:
        """Return the metadata that files store with the values, as ``{name: text}`` without empty entries."""
        items: dict[str, Any] = {
            "unit": self.unit, "temperature": self.temperature, "dielectric": self.dielectric,
        }
        items["spacing"] = " ".join(f"{h:.9g}" for h in self.lattice.spacing)
        for entry in fields(self.provenance):
            value = getattr(self.provenance, entry.name)
            if entry.name == "cell" and value is not None:
                value = " ".join(f"{x:.9g}" for x in value)
            # joined by '|', which is rare in file names, unlike blanks
            items[entry.name] = "|".join(value) if isinstance(value, tuple) else value
        return {key: f"{value:.9g}" if isinstance(value, float) else str(value)
                for key, value in items.items() if value not in (None, "", ())}

    @classmethod
    def from_header(cls, lattice: Lattice, values: NDArray[Any], header: Mapping[Any, Any]) -> Grid:
        """Return a Grid from the entries that :meth:`header` wrote; unknown entries are ignored."""
        header = {str(name): str(value) for name, value in header.items()}
        def number(key: str) -> float | None:
            try:
                return float(header[key])
            except (KeyError, ValueError):
                return None

        known: dict[str, Any] = {}
        for entry in fields(Provenance):
            if entry.name in ("cutoff", "tolerance", "inefficiency") or entry.name.startswith("error"):
                known[entry.name] = number(entry.name)
            elif entry.name == "inputs":
                known["inputs"] = tuple(filter(None, header.get("inputs", "").split("|")))
            elif entry.name == "cell":
                known["cell"] = cell_vectors(header.get("cell", ""))
            elif entry.name in header:
                known[entry.name] = header[entry.name]
        return cls(lattice, values, header.get("unit", ""), number("temperature"), number("dielectric"),
                   Provenance(**known))

    def __call__(self, points: ArrayLike) -> Floats:
        """Return :meth:`sample` at points (..., 3), A; NaN outside."""
        return self.sample(points)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype) if copy else np.asarray(self.values, dtype)

    def __add__(self, other: Grid | float) -> Grid:
        """Return the sum with a number or with a map, whose unit is converted and whose lattice may differ."""
        return self._combined(other, 1)

    def __sub__(self, other: Grid | float) -> Grid:
        """Return the map minus a number or another map, which is converted as in :meth:`__add__`."""
        return self._combined(other, -1)

    def __radd__(self, other: float) -> Grid:
        return self._combined(other, 1)

    def __rsub__(self, other: float) -> Grid:
        return -self + other

    def __neg__(self) -> Grid:
        return self.with_values(-self.values)

    def __mul__(self, factor: float) -> Grid:
        """Return the map with all values times a number."""
        if not isinstance(factor, Real):
            return NotImplemented
        return self.with_values(self.values * np.float32(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Grid:
        return self * (1 / float(divisor))

    def _combined(self, other: Grid | float, sign: int) -> Grid:
        if isinstance(other, Grid):
            from vmdpotential.grid.combine import combine_maps

            return combine_maps(self, other, sign)
        if not isinstance(other, Real):
            return NotImplemented  # type: ignore[no-any-return]
        return self.with_values(self.values + np.float32(sign * other))

    def plot(self, ax: Axes | None = None, plane: Plane | str | None = None, **style: Any) -> Axes:
        """Draw the values on a plane.

        Parameters
        ----------
        ax : Axes, optional
            Axes of matplotlib to draw into; unless given, those of a new figure for print with a colour bar and a key
            of the elements, which is their ``figure``.
        plane : Plane or str, optional
            Plane of the slice, such as ``z=25``; unless given, the one across z through the middle of the map.
        **style
            Further parameters of :func:`vmdpotential.draw_slice`, such as `contours` and `structure`; for a new figure,
            also `width` and `height`, mm, and `label` of :func:`vmdpotential.figures.page.compose_slices`.

        Raises
        ------
        UsageError
            If the plane misses the map.
        """
        from vmdpotential.grid.planes import middle_plane

        plane = middle_plane(self.lattice) if plane is None else plane
        if ax is None:
            axes: Axes = import_module(_PAGES).axes_of_slice(self, plane, **style)
            return axes
        import_module(_SLICES).draw_slice(ax, self, plane, **style)
        return ax

    def to_griddata(self) -> Any:
        """Return the map as a ``gridData.Grid`` (GridDataFormats) with the metadata of :meth:`header`."""
        package = extras.load_optional("gridData", "grids of GridDataFormats", "traj")
        return package.Grid(self.values, origin=self.lattice.origin, delta=self.lattice.spacing, metadata=self.header())

    @classmethod
    def from_griddata(cls, grid: Any) -> Grid:
        """Return the map of a ``gridData.Grid``; raises InputError unless its axes lie along x, y and z."""
        delta = np.asarray(grid.delta, np.float64)
        if delta.ndim == 2:
            if np.abs(delta - np.diag(np.diagonal(delta))).max() > 1e-6:
                raise InputError("the axes of the gridData.Grid do not lie along x, y and z", "resample it")
            delta = np.diagonal(delta)
        values = np.asarray(grid.grid)
        return cls.from_header(Lattice(grid.origin, delta, values.shape), values, grid.metadata or {})

    def to_xarray(self) -> Any:
        """Return an ``xarray.DataArray`` with coordinates x, y and z, A, and the attributes of :meth:`header`."""
        package = extras.load_optional("xarray", "objects of xarray", "large", "use numpy.asarray")
        axes = dict(zip("xyz", self.lattice.axes(), strict=True))
        return package.DataArray(self.values, axes, tuple("xyz"), self.provenance.quantity or None, self.header())

    @classmethod
    def from_xarray(cls, array: Any) -> Grid:
        """Return the map of an ``xarray.DataArray``; raises InputError unless its coordinates are evenly spaced, A."""
        array = array.transpose("x", "y", "z")
        axes = [np.asarray(array[axis], np.float64) for axis in "xyz"]
        spacing = np.array([(axis[-1] - axis[0]) / (len(axis) - 1) if len(axis) > 1 else 1.0 for axis in axes])
        for axis, step in zip(axes, spacing, strict=True):
            if step <= 0 or np.abs(np.diff(axis) - step).max(initial=0) > 1e-3 * step:
                raise InputError("the coordinates of the xarray object are not evenly spaced and increasing",
                                 "interpolate its values")
        return cls.from_header(Lattice(np.array([axis[0] for axis in axes]), spacing, array.shape), array.values,
                               array.attrs)

    def with_values(self, values: NDArray[Any]) -> Grid:
        """Return a map in memory with other values, without the field and the solvation energy of this one."""
        return self._of(self.lattice, values)

    def _of(self, lattice: Lattice, values: NDArray[Any]) -> Grid:
        return Grid(lattice, values, self.unit, self.temperature, self.dielectric, self.provenance)

    def window(self, low: ArrayLike, high: ArrayLike, step: int = 1) -> Grid:
        """Return every `step`-th node along each axis from indices `low` (3,) up to but excluding `high` (3,)."""
        part = tuple(slice(int(a), int(b), step) for a, b in zip(np.asarray(low), np.asarray(high), strict=True))
        lattice = self.lattice.window(low, high).every(step)
        return self._of(lattice, self.values[part])

    def covering(self, positions: Floats, margin: float = 0.0) -> Grid:
        """Return a periodic map with nodes of its images around it, so that it covers positions (N, 3) and a margin, A.

        It is the same map if it covers them already, is not periodic, or has only a part of the cell.
        """
        lattice, vectors = self.lattice, self.provenance.cell
        if self.provenance.boundary != "periodic" or vectors is None or not len(positions):
            return self
        low, high = coordinate_bounds(positions)
        first = np.floor((low - margin - lattice.origin) / lattice.spacing + 1e-6)
        stop = np.ceil((high + margin - lattice.origin) / lattice.spacing - 1e-6) + 1
        first, stop = np.minimum(first, 0).astype(int), np.maximum(stop, lattice.shape).astype(int)
        if not first.any() and (stop == lattice.shape).all():
            return self
        cell, wider = Cell(np.array(vectors)), lattice.window(first, stop)
        axes = [np.arange(a, b) for a, b in zip(first, stop, strict=True)]
        if lattice.wraps(cell):
            nodes = np.ix_(*(axis % n for axis, n in zip(axes, lattice.shape, strict=True)))
            return self._of(wider, self.values[nodes])
        source = self._of(lattice, self.values)
        values = np.empty(wider.shape, np.float32)
        centre, inverse = (lattice.origin + lattice.last) / 2, np.linalg.inv(cell.vectors)
        for plane, i in zip(values, axes[0], strict=True):  # plane by plane, to save memory
            points = lattice.points(np.stack(np.meshgrid([i], *axes[1:], indexing="ij"), -1)[0])
            outside = ((points < lattice.origin - 1e-6) | (points > lattice.last + 1e-6)).any(-1)
            points[outside] -= np.rint((points[outside] - centre) @ inverse) @ cell.vectors
            plane[...] = source.sample(points)
        return self._of(wider, values) if np.isfinite(values).all() else self

    def slabs(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the index of the first plane and the values (nx, ny, n) of slabs along z; a map in memory is one slab.
        """
        yield 0, self.values

    def display_limit(self) -> float:
        """Return a limit for isosurfaces and colours, see :func:`round_limit`."""
        return round_limit(self.values[:: max(1, self.values.shape[0] // 64)])

    def sample(self, points: ArrayLike, outside: float = np.nan) -> Floats:
        """Return the trilinear interpolation at points.

        Parameters
        ----------
        points : (..., 3) float64, A
        outside : float
            Value for points outside the lattice.

        Returns
        -------
        (...,) float64, in the map's unit
        """
        check_unmasked(points, "points")
        points = np.asarray(points, np.float64)
        shape = np.array(self.lattice.shape)
        u = (points - self.lattice.origin) / self.lattice.spacing
        # a point on the last node is inside in spite of rounding
        inside = ((u > -1e-6) & (u < shape - 1 + 1e-6)).all(-1)
        u = np.clip(u, 0, shape - 1)
        low = np.minimum(u.astype(np.int64), np.maximum(shape - 2, 0))
        t, strides = u - low, np.array([shape[1] * shape[2], shape[2], 1])
        steps, flat = np.where(shape > 1, strides, 0), self.values.reshape(-1)

        def between(axis: int, nodes: NDArray[np.int64]) -> Floats:
            """Return values interpolated from those at nodes and further along this axis and the following ones."""
            if axis == 3:
                return flat.take(nodes).astype(np.float64)
            first, last = between(axis + 1, nodes), between(axis + 1, nodes + steps[axis])
            result: Floats = first + t[..., axis] * (last - first)
            return result

        return np.where(inside, between(0, low @ strides), outside)


def round_limit(values: ArrayLike) -> float:
    """Return the round number, 1, 2 or 5 times a power of ten, that the magnitudes of about a tenth of values exceed.
    """
    magnitude = float(np.quantile(np.abs(values), 0.9))
    if not magnitude > 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(magnitude))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= magnitude * (1 - 1e-6)))
