"""Sums of a smooth kernel over periodic images, along none, one, two or three axes.

The kernel is the smooth part L(r) of a split 1/r: 1/r from a radius a on, finite at 0. Its images are
summed exactly, whatever their number:

* three axes: L(r) - erf(alpha r)/r is negligible beyond a, so that only near images count; the rest is Ewald's
  reciprocal sum with a conducting boundary and a neutralising background (P. P. Ewald, Ann. Phys. 369, 253, 1921);
* two axes: the same with the reciprocal sum of a slab (D. E. Parry, Surf. Sci. 49, 433, 1975);
* one axis: the near images, and a Taylor expansion of the far ones, whose sums are Hurwitz zeta functions.

With one or two periodic axes, a constant that would be infinite for a charged system is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats

Kernel = Callable[[Floats], Floats]

#: Value of alpha * a and k / (2 alpha) beyond which Gaussians are negligible: erfc(5.5) = 7e-15.
REACH = 5.5


def near_images(kernel: Kernel, reach: float, points: Floats, vectors: Floats) -> Floats:
    """Return the sum of a kernel over the images of each point within a distance of the origin.

    Parameters
    ----------
    kernel : callable
        Function of distances (A), 0 beyond `reach`.
    reach : float, A
        The distance.
    points : (..., 3) float64, A
        Points.
    vectors : (v, 3) float64, A
        Periods, as rows; without any, only the points themselves count.
    """
    if not len(vectors):
        return kernel(np.linalg.norm(points, axis=-1))
    shape, points = points.shape[:-1], points.reshape(-1, 3)
    same: NDArray[np.intp] | slice = slice(None)
    if (np.count_nonzero(vectors, axis=1) == 1).all():  # periods along x, y or z: mirror images have the same sum
        points, same = np.unique(np.abs(points), axis=0, return_inverse=True)
        same = same.ravel()
    total = np.zeros(len(points))
    middle = (points.min(0) + points.max(0)) / 2
    farthest = reach + float(np.linalg.norm(points - middle, axis=1).max())
    inverse = np.linalg.pinv(vectors)
    centre, width = -middle @ inverse, farthest * np.linalg.norm(inverse, axis=0)
    ranges = [np.arange(np.ceil(c - w), np.floor(c + w) + 1) for c, w in zip(centre, width, strict=True)]
    shifts = np.stack(np.meshgrid(*ranges, indexing="ij"), -1).reshape(-1, len(vectors)) @ vectors
    for shift in shifts[np.linalg.norm(shifts + middle, axis=1) <= farthest]:
        total += kernel(np.linalg.norm(points + shift, axis=1))
    return total[same].reshape(shape)


def all_images(smooth: Kernel, radius: float, points: Floats, lengths: tuple[int | None, ...],
               steps: Floats) -> Floats:
    """Return the sum of the smooth part over all images at the offsets between nodes.

    Parameters
    ----------
    smooth : callable
        Smooth part (1/A) as a function of distances (A), 1/r beyond `radius`.
    radius : float, A
        Radius of the split.
    points : (NX, NY, NZ, 3) float64, A
        Offsets; along a periodic axis those of 0 to n - 1 nodes, in this order, or their images.
    lengths : (3,) int or None
        Number of nodes in a period; None along an open axis.
    steps : (3, 3) float64, A
        Vectors between neighbouring nodes, as rows; oblique ones only if all axes are periodic.
    """
    periodic = [axis for axis in range(3) if lengths[axis] is not None]
    counts = np.array([lengths[axis] or 1 for axis in periodic])
    vectors = steps[periodic] * counts[:, None]
    if not periodic:
        return smooth(np.linalg.norm(points, axis=-1))
    if len(periodic) == 1:
        return _wire(smooth, radius, points, vectors)

    alpha = REACH / radius

    def difference(r: Floats) -> Floats:
        inside = r < radius
        near = np.maximum(r[inside], 1e-9 * radius)
        result = np.zeros(r.shape)
        # few numbers, for which importing scipy.special would take longer
        result[inside] = smooth(near) - np.array([math.erf(x) for x in (alpha * near).tolist()]) / near
        return result

    result = near_images(difference, radius, points, vectors)
    # of two opposite waves one, as their sum is twice its real part
    most = (2 * alpha * REACH * np.linalg.norm(vectors, axis=1) / (2 * np.pi)).astype(int)
    waves = [np.arange(0 if axis == 0 else -m, m + 1) for axis, m in enumerate(most)]
    grids = np.meshgrid(*waves, indexing="ij", sparse=True)
    reciprocal = 2 * np.pi * np.linalg.pinv(vectors)  # columns
    k2 = sum(sum(c * n for c, n in zip(row, grids, strict=True)) ** 2 for row in reciprocal)
    zero = (0, *most[1:])
    if len(periodic) == 3:
        volume = abs(np.linalg.det(vectors))
        k2[zero] = 1.0
        factors = 4 * np.pi / volume * np.exp(k2 * (-0.25 / alpha**2)) / k2
        factors[zero] = -np.pi / (alpha**2 * volume)
        return result + _at_nodes(factors[..., None], waves, counts)[..., 0]
    (axis,) = set(range(3)) - set(periodic)
    z = np.moveaxis(points[..., axis], axis, 2)[0, 0]
    area = float(np.prod(np.linalg.norm(vectors, axis=1)))
    return result + np.moveaxis(_at_nodes(_slab(np.sqrt(k2), zero, z, alpha) / area, waves, counts), 2, axis)


def _slab(k: Floats, zero: tuple[int, ...], z: Floats, alpha: float) -> Floats:
    """Return the Fourier coefficients of the smooth part at wave numbers k and heights z, times the area (Parry)."""
    from scipy.special import erf, erfc

    result: Floats = np.zeros((*k.shape, len(z)))
    k = k[..., None].copy()
    k[zero] = 1.0
    for side in (z, -z):
        result += np.exp(np.minimum(k * side, 700.0)) * erfc(k / (2 * alpha) + alpha * side)
    result *= np.pi / k
    result[zero] = -2 * np.sqrt(np.pi) * (np.exp(-((alpha * z) ** 2)) / alpha + np.sqrt(np.pi) * z * erf(alpha * z))
    return result


def _at_nodes(factors: Floats, waves: list[NDArray[np.int64]], counts: NDArray[np.int64]) -> Floats:
    """Return the sum of waves at nodes, where waves that differ by full periods per node are equal."""
    factors[1:] *= 2  # of opposite waves, one is there
    for axis, (wave, n) in enumerate(zip(waves, counts.tolist(), strict=True)):
        rows = np.moveaxis(factors, axis, 0)
        folded = np.zeros((n, *rows.shape[1:]))
        np.add.at(folded, wave % n, rows)
        factors = np.moveaxis(folded, 0, axis)
    axes = tuple(range(len(counts)))
    values: Floats = np.fft.ifftn(factors, axes=axes, norm="forward").real
    return values


def _wire(smooth: Kernel, radius: float, points: Floats, vectors: Floats) -> Floats:
    """Return the sum over images along one axis.

    The images n and -n, for n > N with N period > 2 r, add up to ``2/(n L) sum_l (r/(n L))^2l P_2l(cos)``; the
    term l = 0 is the constant that is left out.
    """
    from scipy.special import zeta

    period = float(np.linalg.norm(vectors))
    r2 = (points**2).sum(-1)
    z = points @ vectors[0] / period
    near = int(np.ceil(max(2 * float(np.sqrt(r2.max())), radius + float(abs(z).max())) / period))
    total = np.zeros(r2.shape)
    for n in range(-near, near + 1):
        total += smooth(np.sqrt(np.maximum(r2 + 2 * n * z * period + (n * period) ** 2, 0)))
    # solid harmonics r^l P_l(cos), by recurrence, with the distance of the nearest far image as the unit
    unit = (near + 1) * period
    z, r2 = z / unit, r2 / unit**2
    before, now = np.ones_like(z), z
    for degree in range(2, 41):
        before, now = now, ((2 * degree - 1) * z * now - (degree - 1) * r2 * before) / degree
        if degree % 2 == 0:
            # zeta(s, N + 1) (N + 1)^s: the sum over n of (unit / (n L))^s
            total += 2 / unit * float(zeta(degree + 1, near + 1)) * float(near + 1) ** (degree + 1) * now
    return total
