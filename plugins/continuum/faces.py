"""Interpolation by cubic polynomials between nodes along an axis, and on the faces of a lattice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential.engines import Engine
from vmdpotential.kernels.launch import KernelFile, call_kernel

from .molecule import Floats

KERNELS = KernelFile(Path(__file__).with_name("exchange.cu"))

#: Number of points or nodes of faces that a thread takes at a time.
POINTS_PER_TASK = 10_000

#: Largest distance, A or spacings, of a node from a kink for which it is on both sides.
ON_KINK = 1e-6

#: The two faces across each axis: the axis, and the index along it.
LATTICE_FACES: tuple[tuple[int, int], ...] = tuple((axis, end) for axis in range(3) for end in (0, -1))


#: Nodes along an axis: the position of the first one and their spacing, A, and their number.
Axis = tuple[float, float, int]


class CubicInterpolation:
    """The cubic polynomial along an axis through the four nodes around each point.

    Parameters
    ----------
    nodes : (N,) float64
        Increasing.
    points : (P,) float64
    kinks : tuple of float
        Where the slope jumps. No node beyond a kink is used for a point, if there are four others.
    """

    def __init__(self, nodes: Floats, points: Floats, kinks: tuple[float, ...] = ()) -> None:
        low, high = np.zeros(len(points), np.int64), np.full(len(points), len(nodes) - 4)
        if kinks:
            ends, side = np.array([-np.inf, *kinks, np.inf]), np.searchsorted(kinks, points)
            begin = np.searchsorted(nodes, ends[side] - ON_KINK)
            end = np.searchsorted(nodes, ends[side + 1] + ON_KINK) - 4
            low, high = np.where(end >= begin, begin, low), np.where(end >= begin, end, high)
        #: (P,) the first of the nodes around each point, and (P, 4) their weights.
        self.first = np.clip(np.searchsorted(nodes, points, "right") - 2, low, high)
        known = nodes[self.first[:, None] + np.arange(4)]
        parts = [np.prod([(points - known[:, i]) / (known[:, j] - known[:, i]) for i in range(4) if i != j], 0)
                 for j in range(4)]
        self.weights: Floats = np.stack(parts, 1)
        self.count = len(nodes)

    def of(self, values: Floats) -> Floats:
        """Return the values (P, M) at the points of functions that have `values` (N, M) at the nodes."""
        result = np.empty((len(self.first), values.shape[1]))
        call_kernel(KERNELS["sum_four_rows"], 0, len(self.first), values=np.ascontiguousarray(values, np.float64),
             weights=np.ascontiguousarray(self.weights), first=self.first, out=result, columns=values.shape[1])
        return result


def interpolation_between(coarse: Axis, fine: Axis, kinks: tuple[float, ...]) -> CubicInterpolation:
    """Return the interpolation from the nodes along an axis of a lattice to those of another one, kept for frames."""
    (start, h, count), (first, step, finer) = coarse, fine
    return _interpolation(count, round((first - start) / h, 9), round(step / h, 9), finer,
                          tuple((kink - start) / h for kink in kinks))


@lru_cache(maxsize=96)
def _interpolation(count: int, first: float, step: float, finer: int, kinks: tuple[float, ...]) -> CubicInterpolation:
    """Return the interpolation from the nodes 0, 1 ... along an axis to others from `first` on, `step` apart."""
    return CubicInterpolation(np.arange(float(count)), first + step * np.arange(float(finer)), kinks)


@lru_cache(maxsize=96)
def _thinned_axis(count: int, step: int) -> tuple[Floats, CubicInterpolation]:
    """Return every `step`-th of so many nodes and the last one, and the interpolation from these to all."""
    every = np.arange(float(count))
    chosen = np.unique(np.append(every[::step], every[-1]))
    return chosen, CubicInterpolation(chosen, every)


@lru_cache(maxsize=24)
def thinned_faces(shape: tuple[int, ...], steps: tuple[int, ...]) -> tuple[Floats, tuple[CubicInterpolation, ...]]:
    """Return nodes (P, 3) of the faces of a lattice, each `steps` apart, and the interpolations from these to all."""
    chosen, axes = zip(*map(_thinned_axis, shape, steps), strict=True)
    grids = [np.stack(np.meshgrid(*(chosen[d][[end]] if d == axis else chosen[d] for d in range(3)), indexing="ij"),
                      -1).reshape(-1, 3) for axis, end in LATTICE_FACES]
    return np.concatenate(grids), axes


def interpolate_faces(engine: Engine, values: Any, axes: Sequence[CubicInterpolation]) -> Any:
    """Return values at the nodes of the faces of a lattice, one face after the other, from those at other nodes."""
    finer = tuple(len(axis.first) for axis in axes)
    count = sum(2 * math.prod(finer) // n for n in finer)
    result = engine.empty(count, np.float64)
    engine.launch(KERNELS["interpolate_faces"], count, "surface", POINTS_PER_TASK, planes=values, out=result,
                  first=np.concatenate([axis.first for axis in axes]),
                  weights=np.concatenate([axis.weights for axis in axes]), coarse_shape=[axis.count for axis in axes],
                  shape=finer)
    return result
