"""The potential of charges in a slab, and in the solutions on both sides of it, without a molecule.

The slab has no ions. By Hankel's transform along the slab (A. Sommerfeld, Ann. Phys. 333 (1909) 665), the potential of
a unit charge at the height z' is the integral of J0(k rho) k g(k, z, z') over k. With r the reflection at a face, g has
in the slab, of the permittivity e and the thickness 2 d, the closed form of the image charges in both faces,

    g = (exp(-k |z - z'|) + r (exp(-k (2 d - z - z')) + exp(-k (2 d + z + z'))) / D + r^2 (...) / D) / (e k)

and D = 1 - r^2 exp(-4 k d). In a solution it decays from the face as exp(-s z), s^2 = k^2 + kappa^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from vmdpotential.kernels.launch import KernelFile, launch_kernel

from .faces import CubicInterpolation
from .molecule import Continuum, Floats

KERNELS = KernelFile(Path(__file__).with_name("layers.cu"))

#: Width of the smooth cut through the integral over k, 1/A. Charges 10 A away have their potential to 1e-6 with it.
CUT, CUT_POWER = 2.5, 8

#: Scale of the distances along the slab at which the potential is tabulated, A, and the steps in its logarithm.
NEAR, STEP = 8.0, 0.03

#: Distance between the heights at which the potential at many points is tabulated, A.
BETWEEN = 1.5

#: Number of which tabulated heights and distances are a multiple, so that a table serves lattices that differ little.
NODES_TOGETHER = 16

#: Places along the slab at which the potential is found at a time, and by a thread at a time.
POINTS_AT_ONCE, PLACES_PER_TASK = 500, 50


@dataclass(frozen=True)
class Slab:
    """A slab in a solution.

    Parameters
    ----------
    low, high : float, A
        Heights of its faces.
    permittivity, solution : float
        Of the slab, and of the solution around it.
    kappa : float, 1/A
        Inverse Debye length of the solution.
    """

    low: float
    high: float
    permittivity: float
    solution: float
    kappa: float

    def transformed(self, k: Floats, heights: Floats, height: float) -> Floats:
        """Return k g (K, Z), 1/A: Hankel's transform of the potential of a unit charge at a height, in k."""
        half, middle = 0.5 * (self.high - self.low), 0.5 * (self.high + self.low)
        z, other = heights - middle, height - middle
        k, s = k[:, None], np.sqrt(k * k + self.kappa**2)[:, None]
        a, b = np.clip(z, -half, half), min(max(other, -half), half)
        away, beyond = abs(z) - abs(a), abs(other) - abs(b)
        r = (self.permittivity * k - self.solution * s) / (self.permittivity * k + self.solution * s)
        images = (r * (np.exp(-k * (2 * half - a - b)) + np.exp(-k * (2 * half + a + b)))
                  + r * r * (np.exp(-k * (4 * half - a + b)) + np.exp(-k * (4 * half + a - b))))
        within = (np.exp(-k * abs(a - b)) + images / (1 - r * r * np.exp(-4 * k * half))) / self.permittivity
        result: Floats = within * np.exp(-s * (away + beyond))
        alike = (away > 0) & (beyond > 0) & (z * other > 0)  # on one side of the slab
        result += np.where(alike, k / (self.solution * s) * (np.exp(-s * abs(z - other))
                                                             - np.exp(-s * (away + beyond))), 0)
        return result


def slab_of(c: Continuum) -> Slab:
    """Return the slab of a continuum with a membrane."""
    assert c.membrane is not None
    return Slab(c.membrane.low, c.membrane.high, c.membrane.permittivity, c.outside, c.kappa)


def potential(slab: Slab, points: Floats, positions: Floats, charges: Floats, apart: float) -> Floats:
    """Return the potential (P,), e/A, at points (P, 3) that are 10 A or more from the charges (N,) at positions (N, 3).

    Nearer to a charge it is that of a smeared one. Charges are distributed to nodes `apart` A apart, by cubic
    polynomials.
    """
    result = np.zeros(len(points))
    if not len(points) or not charges.any():
        return result
    levels, columns, sums = _distributed(slab, positions, charges, apart)
    where, row = np.unique(points[:, 0] + 1j * points[:, 1], return_inverse=True)
    places = np.stack([where.real, where.imag], 1)
    low, high = points.min(0), points.max(0)
    heights = _heights(slab, float(low[2]), float(high[2]), BETWEEN, NODES_TOGETHER)
    farthest = float(np.linalg.norm(np.maximum(abs(columns.min(0) - high[:2]), abs(columns.max(0) - low[:2]))))
    between = CubicInterpolation(heights, points[:, 2], (slab.low, slab.high))
    nodes = between.first[:, None] + np.arange(4)
    used = (NODES_TOGETHER * np.unique(nodes // NODES_TOGETHER)[:, None] + np.arange(NODES_TOGETHER)).ravel()
    used = used[used < len(heights)]
    heights, nodes = heights[used], np.searchsorted(used, nodes)
    table = _table(slab, levels.tolist(), tuple(heights.tolist()),
                   NODES_TOGETHER * (1 + int(np.log1p(farthest / NEAR) / STEP + 4) // NODES_TOGETHER))
    order = np.argsort(row, kind="stable")
    ends = np.searchsorted(row[order], np.arange(0, len(places) + POINTS_AT_ONCE, POINTS_AT_ONCE))
    for start, first, last in zip(range(0, len(places), POINTS_AT_ONCE), ends[:-1], ends[1:], strict=True):
        chosen, part = order[first:last], places[start : start + POINTS_AT_ONCE]
        spread = np.zeros((len(part), *table.shape[1:]))
        launch_kernel(KERNELS["add_by_distance"], len(part), "slab", PLACES_PER_TASK, points=part, columns=columns,
                      charges=sums, out=spread, column_count=len(columns), levels=len(levels), count=table.shape[1],
                      near=NEAR, step=STEP)
        known = spread.reshape(len(part), -1) @ table.reshape(len(heights), -1).T
        result[chosen] = (known[row[chosen, None] - start, nodes[chosen]] * between.weights[chosen]).sum(1)
    return result


def _table(slab: Slab, levels: Sequence[float], heights: tuple[float, ...], count: int) -> Floats:
    """Return the potential (Z, count, L), e/A, at heights and tabulated distances from unit charges at levels."""
    return np.stack([_table_of_level(slab, level, heights, count) for level in levels], -1)


@lru_cache(maxsize=256)
def _table_of_level(slab: Slab, level: float, heights: tuple[float, ...], count: int) -> Floats:
    """Return the potential (Z, count), e/A; solutions that differ in a charge have most levels in common."""
    k, waves = _waves(count)
    result: Floats = (waves @ slab.transformed(k, np.array(heights), level)).T
    return result


@lru_cache(maxsize=4)
def _waves(count: int) -> tuple[Floats, Floats]:
    """Return k (K,), 1/A, and the weighted Bessel functions (count, K) of the tabulated distances."""
    from scipy.special import j0

    rho = NEAR * np.expm1(STEP * np.arange(count))
    k, weights = _quadrature(float(rho[-1]))
    return k, j0(rho[:, None] * k) * weights


def _quadrature(farthest: float) -> tuple[Floats, Floats]:
    """Return nodes k and weights for integrals of J0(k rho) up to a distance rho; small k need the smallest steps."""
    width, last = min(5.0 / farthest, 0.1), 1.45 * CUT
    panels = np.concatenate([[0.0], width * 2.0 ** np.arange(-24, 0), np.arange(width, last + width, width)])
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = 0.5 * np.diff(panels)[:, None]
    k = (panels[:-1, None] + half * (nodes + 1)).ravel()
    return k, (half * weights).ravel() * np.exp(-((k / CUT) ** CUT_POWER))


def _heights(slab: Slab, low: float, high: float, apart: float, together: int = 1) -> Floats:
    """Return heights around a range, about `apart` apart, which include the faces of the slab.

    On each side of it their number is a multiple of `together`.
    """
    inner = max(4, int(np.ceil((slab.high - slab.low) / apart)) + 1)
    outer = (max(4, int(np.ceil(length / apart)) + 1) for length in (slab.low - low, high - slab.high))
    lower, upper = (together * -(-count // together) for count in outer)
    below, above = np.arange(lower, 0, -1), np.arange(1, upper + 1)
    return np.concatenate([slab.low - apart * below, np.linspace(slab.low, slab.high, inner),
                           slab.high + apart * above])


def _distributed(slab: Slab, positions: Floats, charges: Floats, apart: float) -> tuple[Floats, Floats, Floats]:
    """Return heights (L,), columns (C, 2) along the slab, and charges (C, L) there with the same potential."""
    low, high = positions.min(0), positions.max(0)
    axes = [*(evenly(low[d], high[d], apart) for d in range(2)), _heights(slab, float(low[2]), float(high[2]), apart)]
    sums = distributed(positions, charges, axes, (slab.low, slab.high)).reshape(-1, len(axes[2]))
    columns, levels = sums.any(1), sums.any(0)
    grid = np.stack(np.meshgrid(axes[0], axes[1], indexing="ij"), -1).reshape(-1, 2)
    return axes[2][levels], grid[columns], np.ascontiguousarray(sums[np.ix_(columns, levels)])


def evenly(low: float, high: float, apart: float) -> Floats:
    """Return nodes on an axis, one or more beyond each end of a range."""
    nodes: Floats = np.arange(-1.0, max(3, int((high - low) / apart) + 3))
    return low + apart * nodes


def distributed(positions: Floats, charges: Floats, axes: Sequence[Floats], kinks: tuple[float, ...] = ()) -> Floats:
    """Return the charges (N,) distributed to the nodes (nx, ny, nz) of three axes by cubic polynomials.

    This preserves their sum and their moments to the third order, along z on each side of a kink.
    """
    x, y, z = (CubicInterpolation(axis, positions[:, d], kinks if d == 2 else ()) for d, axis in enumerate(axes))
    shape = (len(axes[0]), len(axes[1]), len(axes[2]))
    sums = np.zeros(int(np.prod(shape)))
    for i, j, k in np.ndindex(4, 4, 4):
        place = np.ravel_multi_index((x.first + i, y.first + j, z.first + k), shape)
        sums += np.bincount(place, charges * x.weights[:, i] * y.weights[:, j] * z.weights[:, k], len(sums))
    return sums.reshape(shape)
