"""The mesh of a particle mesh sum: its nodes, and the factors by which Fourier transforms are multiplied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError
from vmdpotential.grid.targets import Box, Lattice
from vmdpotential.interactions import Bound
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.coulomb import PER_RADIUS, CoulombSplitting, euler_sum, optimal_splitting
from vmdpotential.splitting.gaussian import GaussianSplitting
from vmdpotential.splitting.screened import ScreenedSplitting
from vmdpotential.splitting.shifted import SmoothCutoff

SmoothSplitting = CoulombSplitting | ScreenedSplitting | SmoothCutoff | GaussianSplitting

#: Returns the splitting, and its error (1/A), for a split radius (A), a mesh spacing (A) and an order of splines.
SplittingChoice = Callable[[float, float, int], tuple[SmoothSplitting, float]]

#: Nodes over which distances level off at half the length of the transform in an open boundary, for point charges and
#: for Gaussian charges. A kink there is negligible next to the potential of points, but that of Gaussians is weaker.
GUARD, GAUSSIAN_GUARD = 6, 10

#: Greatest number of entries of a table of the smooth part's transform, 64 MB.
_MOST_ENTRIES = 2**23


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh with nodes at ``origin + (i, j, k) @ steps``, and the quantities of a mesh sum that depend on it.

    Parameters
    ----------
    origin : (3,) float64, A
    steps : (3, 3) float64, A
        Vectors between neighbouring nodes, as rows.
    shape : (3,) int
        Number of nodes; in an open boundary they cover atoms and lattice with half a spline around them.
    order : int
        Order of the B-splines, even.
    splitting : CoulombSplitting, ScreenedSplitting, SmoothCutoff or GaussianSplitting
    reach : (3,) int or None
        In an open boundary, the greatest distance, in nodes along each axis, between a charge and a lattice
        point: the mesh is padded with zeros for the Fourier transform, so that no image acts on a lattice
        point. None if the nodes fill a periodic cell.
    box : Box or None
        In an open boundary, the box that contains the charges.
    """

    origin: Floats
    steps: Floats
    shape: tuple[int, int, int]
    order: int
    splitting: SmoothSplitting
    reach: tuple[int, int, int] | None = None
    box: Box | None = None

    @property
    def periodic(self) -> bool:
        """Whether the nodes fill a periodic cell."""
        return self.reach is None

    @property
    def transform_shape(self) -> tuple[int, int, int]:
        """Points of the Fourier transform along each axis, even in an open boundary."""
        if self.reach is None:
            return self.shape
        if self.compact:
            # no image acts on a node if the smooth part ends within the padding
            end = np.ceil(self.splitting.end / np.diagonal(self.steps)).astype(int)
            halves = [(n + int(m) + 1) // 2 for n, m in zip(self.shape, end, strict=True)]
        else:
            guard = GAUSSIAN_GUARD if self.short is None else GUARD
            halves = [max(m + guard, n // 2 + 1) for m, n in zip(self.reach, self.shape, strict=True)]
        a, b, c = (2 * fast_length(half) for half in halves)
        return a, b, c

    @property
    def end(self) -> float:
        """Distance from which the smooth part is zero, A; may be infinite."""
        return self.splitting.end

    @property
    def compact(self) -> bool:
        """Whether the smooth part ends at some distance."""
        return self.end < np.inf

    @property
    def slanted(self) -> bool:
        """Whether the steps are not along x, y and z."""
        return bool(np.count_nonzero(self.steps - np.diag(np.diagonal(self.steps))))

    @cached_property
    def cell(self) -> Cell | None:
        """The periodic cell that the mesh fills."""
        return Cell(self.steps * np.array(self.shape)[:, None]) if self.periodic else None

    @cached_property
    def short(self) -> Bound | None:
        """The pair interaction within the split radius; None if there is no short-range part."""
        return self.splitting.short()

    @property
    def self_potential(self) -> float:
        """The smooth potential of a unit charge at its own position, 1/A."""
        return float(self.splitting.long(0.0))

    def in_cell(self, cell: Cell) -> Mesh:
        """Return the mesh with the same number of nodes in another periodic cell."""
        vectors = cell.vectors
        origin = self.origin @ np.linalg.inv(self.steps) / np.array(self.shape) @ vectors
        return replace(self, origin=origin, steps=vectors / np.array(self.shape)[:, None])

    def coordinates(self, positions: ArrayLike) -> Floats:
        """Return positions (..., 3), A, in mesh steps from the origin; periodic ones within the cell."""
        place: Floats = (np.asarray(positions, np.float64) - self.origin) @ np.linalg.inv(self.steps)
        return place % np.array(self.shape) if self.periodic else place

    def influence(self) -> NDArray[np.float32]:
        """Return the influence function: the ratio of the transforms of the smooth potential and the charges.

        Returns
        -------
        (NX, NY, NZ / 2 + 1) float32 for a cell with slanted vectors, else (NX / 2 + 1, NY / 2 + 1,
        NZ / 2 + 1): the rest follows by symmetry. In 1/A, with the 1/(NX NY NZ) of the inverse
        transform. The factor that makes spreading and interpolation by B-splines best is
        ``(sinc^p / euler_sum)^2`` along each axis (:func:`vmdpotential.splitting.coulomb.mesh_loss`).
        """
        counts = self.transform_shape
        whole = [self.slanted and d < 2 for d in range(3)]
        phases = [2 * np.pi / n * np.fft.ifftshift(np.arange(n) - n // 2.0) if full
                  else 2 * np.pi / n * np.arange(n // 2 + 1.0) for n, full in zip(counts, whole, strict=True)]
        correction = [spline_correction(self.order, k) for k in phases]
        # in an open boundary, the analytic transform is right if the smooth part ends within the mesh
        known = self.periodic or self.compact
        result = self._transformed_kernel(phases) if known else self._sampled_kernel(counts)
        for d, factor in enumerate(correction):
            result *= np.expand_dims(factor, [axis for axis in range(3) if axis != d])
        result /= np.prod(counts)
        return result.astype(np.float32)

    def _transformed_kernel(self, phases: list[Floats]) -> Floats:
        """Return 4 pi / (k^2 + kappa^2) psi^(k a) over the volume of a mesh cell; at k = 0, the integral of L."""
        reciprocal = np.linalg.inv(self.steps)  # columns: k = reciprocal @ phase
        # psi^ is interpolated linearly in a table, as Bessel functions for every node would take longer than
        # the transforms
        highest = float(np.linalg.norm(np.abs(reciprocal) @ [np.abs(phase).max() for phase in phases]))
        scale, count = self.window_size(highest)
        table = 4 * np.pi * self.window_table(scale, count)
        slope = np.append(np.diff(table), 0.0)
        kernel, kappa2 = np.empty([len(phase) for phase in phases]), self.splitting.kappa**2
        with np.errstate(divide="ignore", invalid="ignore"):
            for phase, plane in zip(phases[0], kernel, strict=True):  # a plane fits into the cache
                k2 = sum((row[0] * phase + row[1] * phases[1][:, None] + row[2] * phases[2]) ** 2 for row in reciprocal)
                place = np.sqrt(k2) * scale
                entry = place.astype(np.intp)
                plane[:] = (table[entry] + slope[entry] * (place - entry)) / (k2 + kappa2)
        kernel[0, 0, 0] = self.splitting.integral
        if self.slanted:
            # at the Nyquist frequency, waves of either sign are the same on the mesh but not in the factors: left out
            for d, n in enumerate(self.shape):
                if n % 2 == 0:
                    kernel[tuple(n // 2 if axis == d else slice(None) for axis in range(3))] = 0.0
        kernel /= abs(np.linalg.det(self.steps))
        return kernel

    def window_size(self, highest: float) -> tuple[float, int]:
        """Return the size of the table of the smooth part's transform: entries per wave number of 1/A, and in all.

        The transform of a potential that ends oscillates, and needs a finer table. `highest` is the greatest wave
        number (1/A) that is looked up.

        Raises
        ------
        InputError
            For a periodic cell so flat that its waves need more entries than memory should hold.
        """
        scale = PER_RADIUS * self.splitting.radius
        if self.compact:
            scale = max(scale, 60 * self.splitting.end)
        if highest * scale > _MOST_ENTRIES:
            raise InputError(f"the periodic cell is too flat for a mesh: its nodes are {np.pi / highest:.2g} A apart",
                             "correct it, or give the {cell}")
        return scale, int(highest * scale) + 3  # two for the last interval, one for rounding

    def window_table(self, scale: float, count: int) -> Floats:
        """Return the smooth part's transform over 4 pi / (k^2 + kappa^2) at k = n / scale."""
        return self.splitting.window_table(scale, count)

    @property
    def squared_distances(self) -> list[Floats]:
        """Squared distances (A^2) between nodes along each axis of an open boundary, up to half the transform."""
        assert self.reach is not None
        return [(_turned(n // 2, m) * self.steps[d, d]) ** 2
                for d, (n, m) in enumerate(zip(self.transform_shape, self.reach, strict=True))]

    def _sampled_kernel(self, counts: tuple[int, int, int]) -> Floats:
        """Return the transform of the smooth part sampled at all distances between nodes."""
        from scipy.fft import dctn

        squares = self.squared_distances
        r2 = squares[0][:, None, None] + squares[1][:, None] + squares[2]
        near = r2 < self.splitting.radius**2
        inside = self.splitting.long(np.sqrt(r2[near]))
        r2[0, 0, 0] = 1.0
        kernel = 1 / np.sqrt(r2)
        if self.splitting.kappa:
            kernel *= np.exp(-self.splitting.kappa * np.sqrt(r2))
        kernel[near] = inside
        # the Fourier transform of an even sequence is a cosine transform
        return dctn(kernel, type=1, overwrite_x=True, workers=-1)


def spline_correction(order: int, phase: Floats) -> Floats:
    """Return the factor that minimises the error of spreading and interpolation by B-splines, along one axis.

    ``(sinc^p / euler_sum)^2`` for phases per node (:func:`vmdpotential.splitting.coulomb.mesh_loss`).
    """
    return (np.sinc(phase / (2 * np.pi)) ** order / euler_sum(order, phase)) ** 2


def fast_length(n: int) -> int:
    """Return the least number >= n with no prime factors except 2, 3 and 5, for which transforms are fast."""
    while True:
        rest = n
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return n
        n += 1


def _turned(half: int, reach: int) -> Floats:
    """Return the distances 0, 1 ... half, those beyond `reach` bent so that their slope falls to 0 at the end.

    In a periodic transform, a distance has a kink at half its length, whose high frequencies the correction for
    the splines would amplify. No pair of nodes is that far apart, so that the distances may level off
    there, by a polynomial with three continuous derivatives.
    """
    m = np.arange(half + 1.0)
    t = np.maximum(m - reach, 0) / (half - reach)
    return np.minimum(m, reach) + (half - reach) * t * (1 - t**4 * (7 + t * (-14 + t * (10 - 2.5 * t))))


def over_cell(cell: Cell, spacing: float, order: int, ratio: float, split: SplittingChoice = optimal_splitting) -> Mesh:
    """Return the mesh of a periodic cell.

    Parameters
    ----------
    cell : Cell
    spacing : float, A
        Greatest spacing of the nodes, along each vector of the cell.
    order : int
        Order of the B-splines.
    ratio : float
        The split radius divided by the mesh spacing.
    split : callable
        Returns the splitting and its error.
    """
    length = np.linalg.norm(cell.vectors, axis=1)
    a, b, c = (max(fast_length(int(np.ceil(x / spacing - 1e-9))), 2 * order) for x in length)
    steps = cell.vectors / np.array([[a], [b], [c]])
    splitting, _ = split(ratio * spacing, float(np.linalg.norm(steps, axis=1).max()), order)
    return Mesh(np.zeros(3), steps, (a, b, c), order, splitting)


def mesh_around(lattice: Lattice, box: Box, spacing: float, order: int, ratio: float,
                split: SplittingChoice = optimal_splitting) -> Mesh:
    """Return the mesh of an open boundary, around lattice and box of charges; parameters as in :func:`over_cell`."""
    margin = order // 2
    nearest, farthest = np.array(box.low), np.array(box.high)
    low = np.minimum(lattice.origin, nearest) - margin * spacing
    high = np.maximum(lattice.last, farthest) + margin * spacing
    nx, ny, nz = (int(n) + 1 for n in np.ceil((high - low) / spacing))
    reach = np.maximum(np.maximum(lattice.last - nearest, farthest - lattice.origin), 0)
    a, b, c = (int(n) + 2 * margin for n in np.ceil(reach / spacing))
    splitting, _ = split(ratio * spacing, spacing, order)
    return Mesh(low, np.diag(np.full(3, spacing)), (nx, ny, nz), order, splitting, (a, b, c), box)
