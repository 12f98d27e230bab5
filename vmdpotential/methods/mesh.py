"""The mesh of a particle mesh sum: where its nodes are, and the factors between its Fourier transforms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.cell import Cell
from vmdpotential.interactions import Bound
from vmdpotential.lattice import Lattice
from vmdpotential.methods.splitting import Splitting, euler_sum, optimal

Floats = NDArray[np.float64]

#: Nodes over which distances turn at half the length of an open boundary's transform.
GUARD = 4


@dataclass(frozen=True, eq=False)
class Mesh:
    """Nodes at ``origin + (i, j, k) @ steps``, and what a mesh sum does with them.

    Parameters
    ----------
    origin : (3,) float64, A
    steps : (3, 3) float64, A
        Vectors between neighbouring nodes, as rows.
    shape : (3,) int
        Nodes; in an open boundary they cover atoms and lattice and half a spline around them.
    order : int
        Of the B-splines, even.
    splitting : Splitting
    reach : (3,) int or None
        In an open boundary, the most nodes along each axis between a charge and where its potential
        is wanted: the mesh is padded with zeros for the Fourier transform, so that none of them wraps
        around. None where the nodes fill a periodic cell.
    """

    origin: Floats
    steps: Floats
    shape: tuple[int, int, int]
    order: int
    splitting: Splitting
    reach: tuple[int, int, int] | None = None

    @property
    def periodic(self) -> bool:
        """Whether the nodes fill a periodic cell."""
        return self.reach is None

    @property
    def transform_shape(self) -> tuple[int, int, int]:
        """Points of the Fourier transform along each axis, even in an open boundary."""
        if self.reach is None:
            return self.shape
        a, b, c = (2 * _fast(max(m + GUARD, n // 2 + 1)) for m, n in zip(self.reach, self.shape, strict=True))
        return a, b, c

    @cached_property
    def cell(self) -> Cell | None:
        """The periodic cell that the mesh fills."""
        return Cell(self.steps * np.array(self.shape)[:, None]) if self.periodic else None

    @property
    def short(self) -> Bound:
        """The pair interaction within the split radius."""
        return self.splitting.short()

    def coordinates(self, positions: ArrayLike) -> Floats:
        """Return positions (..., 3), A, in mesh steps from the origin; periodic ones within the cell."""
        place: Floats = (np.asarray(positions, np.float64) - self.origin) @ np.linalg.inv(self.steps)
        return place % np.array(self.shape) if self.periodic else place

    def influence(self) -> NDArray[np.float32]:
        """Return the factors between the transforms of charges and smooth potential.

        Returns
        -------
        (NX, NY, NZ / 2 + 1) float32 for a cell with slanted vectors, else (NX / 2 + 1, NY / 2 + 1,
        NZ / 2 + 1): the rest follows by symmetry. In 1/A, with the 1/(NX NY NZ) of the inverse
        transform. The factor that makes spreading and interpolation by B-splines best is
        ``(sinc^p / euler_sum)^2`` along each axis (:func:`vmdpotential.methods.splitting.mesh_loss`).
        """
        counts = self.transform_shape
        slanted = self.periodic and np.count_nonzero(self.steps - np.diag(np.diagonal(self.steps))) > 0
        whole = [slanted and d < 2 for d in range(3)]
        phases = [2 * np.pi * (np.fft.fftfreq(n) if full else np.arange(n // 2 + 1) / n)
                  for n, full in zip(counts, whole, strict=True)]
        correction = [(np.sinc(k / (2 * np.pi)) ** self.order / euler_sum(self.order, k)) ** 2 for k in phases]
        result = self._periodic_kernel(phases) if self.periodic else self._open_kernel(counts)
        for d, factor in enumerate(correction):
            result *= np.expand_dims(factor, [axis for axis in range(3) if axis != d])
        result /= np.prod(counts)
        return result.astype(np.float32)

    def _periodic_kernel(self, phases: list[Floats]) -> Floats:
        """Return 4 pi / k^2 psi^(k a) over the volume of a mesh cell; 0 at k = 0, a neutralising background."""
        reciprocal = np.linalg.inv(self.steps)  # columns: k = reciprocal @ phase
        k2: Floats = np.zeros([len(k) for k in phases])
        for row in reciprocal:  # one component of k at a time
            parts = [np.expand_dims(row[d] * phases[d], [axis for axis in range(3) if axis != d]) for d in range(3)]
            k2 += (parts[0] + parts[1] + parts[2]) ** 2
        k = np.sqrt(k2, out=k2)
        # psi^ from a table: Bessel functions for every node would take longer than the transforms
        table = np.linspace(0, float(k.max()), 16384)
        with np.errstate(divide="ignore"):
            kernel: Floats = np.interp(k, table, self.splitting.window(table)) / (k * k)
        kernel *= 4 * np.pi / abs(np.linalg.det(self.steps))
        kernel[0, 0, 0] = 0.0
        return kernel

    def _open_kernel(self, counts: tuple[int, int, int]) -> Floats:
        """Return the transform of the smooth part sampled at all distances between nodes."""
        from scipy.fft import dctn

        assert self.reach is not None
        squares = [(_turned(n // 2, m) * self.steps[d, d]) ** 2
                   for d, (n, m) in enumerate(zip(counts, self.reach, strict=True))]
        r2 = squares[0][:, None, None] + squares[1][:, None] + squares[2]
        near = r2 < self.splitting.radius**2
        inside = self.splitting.long(np.sqrt(r2[near]))
        r2[0, 0, 0] = 1.0
        kernel = 1 / np.sqrt(r2)
        kernel[near] = inside
        # a sequence that is even has a cosine transform for its Fourier transform
        result: Floats = dctn(kernel, type=1, overwrite_x=True, workers=-1)
        return result


def _fast(n: int) -> int:
    from scipy.fft import next_fast_len

    return int(next_fast_len(n, real=True))


def _turned(half: int, reach: int) -> Floats:
    """Return 0, 1 ... half, of which those beyond `reach` level off.

    Sampled on a circle, a distance has a kink at half the way around, whose high waves the correction
    for the splines would amplify. No pair of nodes is that far apart, so the way may turn smoothly,
    with the slope falling from 1 to 0 as cos^2.
    """
    m = np.arange(half + 1.0)
    t = (m - reach) / (half - reach)
    return np.where(m <= reach, m, reach + (half - reach) * (t / 2 + np.sin(np.pi * t) / (2 * np.pi)))


def over_cell(cell: Cell, spacing: float, order: int, ratio: float) -> Mesh:
    """Return the mesh of a periodic cell.

    Parameters
    ----------
    cell : Cell
    spacing : float, A
        At most, along each vector of the cell.
    order : int
    ratio : float
        The split radius over the mesh spacing.
    """
    length = np.linalg.norm(cell.vectors, axis=1)
    a, b, c = (max(_fast(int(np.ceil(x / spacing - 1e-9))), 2 * order) for x in length)
    steps = cell.vectors / np.array([[a], [b], [c]])
    splitting, _ = optimal(ratio * spacing, float(np.linalg.norm(steps, axis=1).max()), order)
    return Mesh(np.zeros(3), steps, (a, b, c), order, splitting)


def around(lattice: Lattice, positions: Floats, spacing: float, order: int, ratio: float) -> Mesh:
    """Return the mesh of an open boundary, around lattice and atoms; parameters as in :func:`over_cell`."""
    margin = order // 2
    low = np.minimum(lattice.origin, positions.min(0)) - margin * spacing
    high = np.maximum(lattice.last, positions.max(0)) + margin * spacing
    nx, ny, nz = (int(n) + 1 for n in np.ceil((high - low) / spacing))
    farthest = np.maximum(lattice.last - positions.min(0), positions.max(0) - lattice.origin)
    a, b, c = (int(n) + 2 * margin for n in np.ceil(np.maximum(farthest, 0) / spacing))
    splitting, _ = optimal(ratio * spacing, spacing, order)
    return Mesh(low, np.diag(np.full(3, spacing)), (nx, ny, nz), order, splitting, (a, b, c))
