"""The points of a map (Lattice), and a map with its unit and provenance (Grid)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, UsageError, check_unmasked
from vmdpotential.grid.solvation import Solvation
from vmdpotential.molecule.cell import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vmdpotential.grid.planes import Plane


#: Largest distance, in spacings, between nodes that are the same.
SAME_NODE = 1e-6

#: Limits of the lattice spacing, A: values beyond them come from damaged files, and nodes would differ by less than
#: rounding.
FINEST, COARSEST = 1e-6, 1e6

#: Modules that draw slices; they are above this one, and named by their paths, as in the registry.
_SLICES, _PAGES = "vmdpotential.figures.slices", "vmdpotential.figures.page"


def _check_spacing(spacing: float, padding: float = 0.0) -> None:
    if not 0 < spacing < np.inf:
        raise UsageError("spacing", "must be a distance in A, above 0", value=f"{spacing:g}")
    if not 0 <= padding < np.inf:
        raise UsageError("padding", "must be a distance in A, at least 0", value=f"{padding:g}")


def _counts(numbers: Floats) -> tuple[int, int, int]:
    """Return the numbers of nodes (3,) as integers; refuse those of distant atoms or huge cells, which overflow."""
    if not (numbers < 2**31).all():
        raise UsageError(
            "spacing", f"a lattice of {' x '.join(f'{n:.3g}' for n in numbers)} points cannot be made",
            "use a larger {spacing}, or correct coordinates or cell lengths that are far too large",
        )
    nx, ny, nz = (int(n) for n in numbers)
    return nx, ny, nz



def coordinate_bounds(positions: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest coordinates of positions (N, 3)."""
    if 0 < len(positions) < 500:
        return positions.min(0), positions.max(0)
    # numpy reduces long rows much faster than rows of three numbers: 64 positions make a row
    count = len(positions) // 64 * 64
    rows, rest = np.ascontiguousarray(positions[:count]).reshape(-1, 192), positions[count:]
    low = np.concatenate([rows.min(0, initial=np.inf).reshape(-1, 3), rest])
    high = np.concatenate([rows.max(0, initial=-np.inf).reshape(-1, 3), rest])
    return low.min(0), high.max(0)


@dataclass(frozen=True)
class Box:
    """Box with edges along x, y and z: two opposite corners, (3,) float, A."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]

    @classmethod
    def around(cls, positions: Floats) -> Box:
        """Return the box around positions (N, 3), or an empty box at the origin if there are none."""
        if not len(positions):
            return cls((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        (a, b, c), (d, e, f) = (corner.tolist() for corner in coordinate_bounds(positions))
        return cls((a, b, c), (d, e, f))

    def holds(self, positions: Floats) -> bool:
        """Return whether all positions (N, 3) are inside, up to rounding."""
        other = Box.around(positions)
        return not len(positions) or bool((np.array(other.low) >= np.array(self.low) - 1e-6).all()
                                          and (np.array(other.high) <= np.array(self.high) + 1e-6).all())


@dataclass(frozen=True, eq=False)
class Lattice:
    """Regular points: node [i, j, k] is at ``origin + spacing * (i, j, k)``.

    Parameters
    ----------
    origin : (3,) float64, A
        Position of node [0, 0, 0] (a node, not a cell corner).
    spacing : float or (3,) float64, A
        Distance between nodes along x, y, z.
    shape : (3,) int
        Nodes along x, y, z.

    Examples
    --------
    >>> vp.Lattice((0, 0, 0), 0.5, (41, 41, 61)).last.tolist()
    [20.0, 20.0, 30.0]
    """

    origin: Floats
    spacing: Floats
    shape: tuple[int, int, int]

    #: Kind of a sum's target, and type of the values there.
    kind: ClassVar[str] = "grid"
    dtype: ClassVar[type[np.floating[Any]]] = np.float32

    def __post_init__(self) -> None:
        origin, spacing = np.zeros(3), np.zeros(3)
        origin += np.asarray(self.origin, np.float64)  # 0 for -0
        spacing += np.asarray(self.spacing, np.float64)
        shape = tuple(int(n) for n in self.shape)
        if len(shape) != 3 or min(shape) < 1:
            raise UsageError("shape", f"a lattice of {' x '.join(map(str, shape))} points is empty")
        if not all(map(math.isfinite, origin.tolist())):
            raise UsageError("origin", "must be three finite coordinates in A", value=str(origin.tolist()))
        if not all(FINEST <= h <= COARSEST for h in spacing.tolist()):
            raise UsageError("spacing", f"must be distances of {FINEST:g} to {COARSEST:g} A",
                             value=str(spacing.tolist()))
        origin.setflags(write=False)
        spacing.setflags(write=False)
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "spacing", spacing)
        object.__setattr__(self, "shape", shape)

    @classmethod
    def around(cls, positions: ArrayLike, spacing: float, padding: float = 0.0) -> Lattice:
        """Return the lattice that covers positions (N, 3) and `padding` A on every side.

        Nodes are at whole multiples of the spacing, so that maps of different frames or selections
        share their points, and formats that store the origin in units of the spacing can represent it.
        """
        _check_spacing(spacing, padding)
        positions = np.asarray(positions, np.float64)
        if not len(positions):
            raise InputError("there are no atoms to put a lattice around")
        low, high = coordinate_bounds(positions)
        low, high = low - padding, high + padding
        first = np.floor(low / spacing + 1e-9)
        shape = _counts(np.ceil(high / spacing - 1e-9) - first + 1)
        return cls(first * spacing, np.full(3, spacing), shape)

    @classmethod
    def over_cell(cls, cell: Cell, spacing: float, origin: ArrayLike = (0.0, 0.0, 0.0)) -> Lattice:
        """Return the lattice of a periodic cell.

        An orthogonal cell is divided evenly, with at most `spacing` A between nodes and no node twice;
        nodes are at whole multiples of the spacing, the first within half of it from `origin`. A
        triclinic cell gets its axis-aligned bounding box.
        """
        _check_spacing(spacing)
        origin = np.asarray(origin, np.float64)
        if cell.orthogonal:
            length = np.diagonal(cell.vectors)
            shape = _counts(np.maximum(1, np.ceil(np.abs(length) / spacing - 1e-6)))
            steps = np.abs(length) / shape
            low = origin + np.minimum(length, 0)  # a vector may point to negative coordinates
            return cls(np.rint(low / steps) * steps, steps, shape)
        corners = np.array([[n >> 2 & 1, n >> 1 & 1, n & 1] for n in range(8)], float) @ cell.vectors
        return cls.around(corners + origin, spacing)

    def __repr__(self) -> str:
        spacing, *others = dict.fromkeys(f"{h:.4g}" for h in self.spacing)
        step = " x ".join(f"{h:.4g}" for h in self.spacing) if others else spacing
        origin = " ".join(f"{x:.4g}" for x in self.origin)
        return f"Lattice({' x '.join(map(str, self.shape))} points, {step} A apart, from {origin} A)"

    @property
    def size(self) -> int:
        """Number of nodes."""
        nx, ny, nz = self.shape
        return nx * ny * nz

    def same_nodes(self, other: Lattice) -> bool:
        """Return whether another lattice has exactly the same nodes."""
        return self.shape == other.shape and np.array_equal(self.origin, other.origin) and np.array_equal(
            self.spacing, other.spacing)

    def part_of(self, other: Lattice) -> tuple[slice, slice, slice] | None:
        """Return the part of the nodes that is another lattice of the same spacing; None if that has other nodes."""
        place = (other.origin - self.origin) / self.spacing
        first = np.rint(place).astype(np.int64)
        if (np.abs(place - first).max() > SAME_NODE or (first < 0).any()
                or (first + other.shape > self.shape).any() or not np.array_equal(self.spacing, other.spacing)):
            return None
        x, y, z = (slice(a, a + n) for a, n in zip(first.tolist(), other.shape, strict=True))
        return x, y, z

    @property
    def last(self) -> Floats:
        """(3,) position of the last node, A."""
        last: Floats = self.origin + self.spacing * (np.array(self.shape) - 1)
        return last

    @property
    def box(self) -> Box:
        """Box around the nodes."""
        return Box.around(np.array([self.origin, self.last]))

    def axes(self) -> tuple[Floats, Floats, Floats]:
        """Return the x, y and z coordinates of the nodes, A."""
        x, y, z = (self.origin[d] + self.spacing[d] * np.arange(self.shape[d]) for d in range(3))
        return x, y, z

    def points(self, indices: ArrayLike | None = None) -> Floats:
        """Return positions (M, 3), A, of nodes with indices (M, 3), or of all nodes in C order."""
        if indices is None:
            indices = np.indices(self.shape).reshape(3, -1).T
        return self.origin + self.spacing * np.asarray(indices, np.float64)

    def slab(self, start: int, stop: int, axis: int = 0) -> Lattice:
        """Return the nodes with ``start <= i < stop`` along x (the slowest axis in memory), or along y or z."""
        low, high = [0, 0, 0], list(self.shape)
        low[axis], high[axis] = start, stop
        return self.window(low, high)

    def window(self, low: ArrayLike, high: ArrayLike) -> Lattice:
        """Return the nodes from indices `low` (3,) up to but excluding `high` (3,)."""
        low, high = np.asarray(low), np.asarray(high)
        nx, ny, nz = (int(n) for n in high - low)
        return Lattice(self.origin + self.spacing * low, self.spacing, (nx, ny, nz))

    def wraps(self, cell: Cell | None) -> bool:
        """Return whether the nodes cover a whole rectangular cell, so that the last ones are next to the first."""
        return cell is not None and cell.orthogonal and bool(np.allclose(
            self.spacing * self.shape, np.abs(np.diagonal(cell.vectors)), rtol=1e-4))

    def stretched(self, factors: Floats) -> Lattice:
        """Return the lattice with its coordinates multiplied by factors (3,) along x, y and z."""
        return Lattice(self.origin * factors, self.spacing * factors, self.shape)

    def every(self, step: int) -> Lattice:
        """Return the lattice of every `step`-th node along each axis, from the first."""
        nx, ny, nz = (-(-n // step) for n in self.shape)
        return Lattice(self.origin, self.spacing * step, (nx, ny, nz))


@dataclass(frozen=True, eq=False)
class Points:
    """Arbitrary points, at which values are computed.

    Parameters
    ----------
    positions : (P, 3) float64, A
    """

    positions: Floats

    #: Kind of a sum's target, and type of the values there.
    kind: ClassVar[str] = "points"
    dtype: ClassVar[type[np.floating[Any]]] = np.float64

    @property
    def shape(self) -> tuple[int]:
        """Number of points, (1,)."""
        return (len(self.positions),)

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.positions)

    @cached_property
    def box(self) -> Box:
        """Box around them."""
        return Box.around(self.positions)

    def points(self, indices: ArrayLike | None = None) -> Floats:
        """Return positions (M, 3), A, of points with indices (M,) or (M, 1), or of all."""
        return self.positions if indices is None else self.positions[np.ravel(indices)]


@dataclass(frozen=True)
class Provenance:
    """Origin of a map's values, which every file of the map contains.

    Empty strings and None mean "not known".

    Parameters
    ----------
    quantity : str
        Name of the mapped quantity.
    derived : str
        How the values follow from maps of the quantity, if they are not its values or their mean: ``difference`` of two
        maps, or ``deviation`` or ``error`` of the mean over frames. Such values have colours of their own.
    method, interaction : str
        Method of summation, and interaction between a charge and a point.
    medium : str
        Medium between the charges, for legends and axes: "vacuum, no screening", "screened, 0.15 M, dielectric
        78.5".
    medium_kind : str
        Its kind, by which colours and surfaces are chosen: ``water`` (a continuum), ``screened``, ``explicit`` or
        ``vacuum``; empty if it is not known, or of several media.
    boundary : str
        ``open`` or ``periodic``.
    cell : tuple of nine float, A
        The vectors a, b and c of a periodic map.
    cutoff : float, A
        Distance beyond which charges are ignored.
    tolerance, error : float
        Rms errors over the potential's rms: the largest one allowed, and the one measured against the exact sum.
    error_away : float
        Error at the points farther than 2 A from every charge.
    error_field, error_field_away : float
        The same errors of the electric field, if it was computed with the map.
    precision, engine : str
        Floating-point precision and compute engine.
    atoms : str
        Selection of the atoms that contribute charges.
    molecule : str
        Number of these atoms and their centre, A: "3128 atoms around 10.12 8.03 -4.40".
    state : str
        Which of several states of the same atoms the map is of, such as ``pH 4`` or ``frame 20, 40 ps``.
    frames : str
        Frames over which the map is a mean.
    inefficiency : float
        Statistical inefficiency of these frames.
    zero : str
        Reference of the potential, at which it is zero.
    inputs : tuple of str
        Names of the input files.
    program : str
        Name and version of the program.

    Examples
    --------
    >>> grid = vp.potential_map(vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz"), spacing=4.0,
    ...                         medium="explicit")
    >>> grid.provenance.boundary
    'periodic'
    """

    quantity: str = "electrostatic potential"
    derived: str = ""
    method: str = ""
    interaction: str = ""
    medium: str = ""
    medium_kind: str = ""
    boundary: str = ""
    cell: tuple[float, ...] | None = None
    cutoff: float | None = None
    tolerance: float | None = None
    error: float | None = None
    error_away: float | None = None
    error_field: float | None = None
    error_field_away: float | None = None
    precision: str = ""
    engine: str = ""
    atoms: str = ""
    molecule: str = ""
    state: str = ""
    frames: str = ""
    inefficiency: float | None = None
    zero: str = ""
    inputs: tuple[str, ...] = ()
    program: str = ""

    @property
    def continuum(self) -> bool:
        """Whether the map is that of a molecule in a continuum, the medium water."""
        return self.medium_kind == "water"


def _cell_vectors(text: str) -> tuple[float, ...] | None:
    """Return the nine components of the cell vectors in a header; None if they are missing or span no volume."""
    try:
        vectors = np.array([float(x) for x in text.split()])
        Cell(vectors)
    except ValueError:
        return None
    return tuple(vectors.tolist())


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
    provenance: Provenance = Provenance()
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
    def from_header(cls, lattice: Lattice, values: NDArray[Any], header: Mapping[str, str]) -> Grid:
        """Return a Grid from the entries that :meth:`header` wrote; unknown entries are ignored."""
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
                known["cell"] = _cell_vectors(header.get("cell", ""))
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
        from vmdpotential.grid import conversions

        return conversions.to_griddata(self)

    @classmethod
    def from_griddata(cls, grid: Any) -> Grid:
        """Return the map of a ``gridData.Grid`` whose axes lie along x, y and z."""
        from vmdpotential.grid import conversions

        return conversions.from_griddata(grid)

    def to_xarray(self) -> Any:
        """Return an ``xarray.DataArray`` with coordinates x, y and z, A, and the attributes of :meth:`header`."""
        from vmdpotential.grid import conversions

        return conversions.to_xarray(self)

    @classmethod
    def from_xarray(cls, array: Any) -> Grid:
        """Return the map of an ``xarray.DataArray`` with evenly spaced coordinates x, y and z, A."""
        from vmdpotential.grid import conversions

        return conversions.from_xarray(array)

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
