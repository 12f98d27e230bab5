"""Sums of a smooth kernel over periodic images.

The kernel is the smooth part L(r) of a split 1/r: 1/r from a radius a on, finite at 0. Its images are summed exactly,
whatever their number: L(r) - erf(alpha r)/r is negligible beyond a, so that only near images count, and the rest is
Ewald's reciprocal sum with a conducting boundary and a neutralising background (P. P. Ewald, Ann.
Phys. 369 (1921) 253).
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


def all_images(smooth: Kernel, radius: float, points: Floats, counts: tuple[int, int, int], steps: Floats) -> Floats:
    """Return the sum of the smooth part over all images at the offsets between nodes.

    Parameters
    ----------
    smooth : callable
        Smooth part (1/A) as a function of distances (A), 1/r beyond `radius`.
    radius : float, A
        Radius of the split.
    points : (NX, NY, NZ, 3) float64, A
        Offsets of 0 to n - 1 nodes along each axis, in this order, or their images.
    counts : (3,) int
        Number of nodes in a period along each axis.
    steps : (3, 3) float64, A
        Vectors between neighbouring nodes, as rows.
    """
    vectors, alpha = steps * np.array(counts)[:, None], REACH / radius

    def difference(r: Floats) -> Floats:
        inside = r < radius
        near = np.maximum(r[inside], 1e-9 * radius)
        result = np.zeros(r.shape)
        # few numbers, for which importing scipy.special would take longer
        result[inside] = smooth(near) - np.array([math.erf(x) for x in (alpha * near).tolist()]) / near
        return result

    # of two opposite waves one, as their sum is twice its real part
    most = (2 * alpha * REACH * np.linalg.norm(vectors, axis=1) / (2 * np.pi)).astype(int)
    waves = [np.arange(0 if axis == 0 else -m, m + 1) for axis, m in enumerate(most)]
    grids = np.meshgrid(*waves, indexing="ij", sparse=True)
    reciprocal = 2 * np.pi * np.linalg.inv(vectors)  # columns
    k2 = sum(sum(c * n for c, n in zip(row, grids, strict=True)) ** 2 for row in reciprocal)
    zero, volume = (0, *most[1:]), abs(np.linalg.det(vectors))
    k2[zero] = 1.0
    factors = 4 * np.pi / volume * np.exp(k2 * (-0.25 / alpha**2)) / k2
    factors[zero] = -np.pi / (alpha**2 * volume)
    factors[1:] *= 2  # of opposite waves, one is there
    for axis, (wave, n) in enumerate(zip(waves, counts, strict=True)):  # those that differ by full periods are equal
        rows = np.moveaxis(factors, axis, 0)
        folded = np.zeros((n, *rows.shape[1:]))
        np.add.at(folded, wave % n, rows)
        factors = np.moveaxis(folded, 0, axis)
    result: Floats = near_images(difference, radius, points, vectors) + np.fft.ifftn(factors, norm="forward").real
    return result
