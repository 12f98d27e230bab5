"""Areas of surfaces by counted points: of spheres, and of what a probe leaves between them.

An accessible surface is made of parts of spheres, whose area is the share of evenly spread points on each that are in
no other (A. Shrake, J. A. Rupley, J. Mol. Biol. 79 (1973) 351). A molecular surface has three kinds of patches
(M. L. Connolly, J. Appl. Crystallogr. 16 (1983) 548): the same parts, on the atoms; parts of tori, where the probe
touches two atoms; and triangles on the probe, where it touches three. The points of the last two that a probe elsewhere
reaches are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.continuum.region import Cubes, Surface

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Points on a sphere around an atom, and on a probe.
POINTS, ON_PROBE = 1000, 300

#: A, between points of tori, and length of the parts of arcs that are looked for around a point.
PIECE, PART = 0.12, 0.6

#: A, that a point may be nearer to the centre of another probe.
SLACK = 2e-3

#: Spheres, arcs or probes that a thread takes at a time, at least.
TOGETHER = 200


def spiral(count: int) -> Floats:
    """Return unit vectors (count, 3), evenly spread by the golden angle."""
    height = 1 - (2 * np.arange(count) + 1) / count
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(count)
    across = np.sqrt(1 - height**2)
    return np.stack([across * np.cos(angle), across * np.sin(angle), height], 1)


def areas(union: Surface, molecular: bool) -> tuple[Floats, Floats]:
    """Return the area (N,), A^2, of the part of a surface that belongs to each sphere, and a point (N, 3), A, of it.

    Of the molecular surface, or of the spheres outside of which the probe's centre can be.
    """
    kernels, probe = build.load("area_kernel"), union.probe
    spheres = (union.centres, union.radii, *union.neighbours)
    touched = np.zeros(len(union.radii), np.bool_)
    touched[union.arcs[:, 12:14].astype(np.int64)] = True
    counts, points = np.zeros(len(touched), np.int64), np.zeros((len(touched), 3))
    threads.run(partial(kernels.free, spiral(POINTS), touched, *spheres, counts, points), len(touched), "surface",
                TOGETHER)
    molecular = molecular and probe > 0
    result = 4 * np.pi / POINTS * counts * (union.radii - probe * molecular) ** 2
    if not (molecular and len(union.arcs)):
        return result, points
    parts = np.empty((kernels.cut(union.arcs, PART, np.empty((0, 18))), 18))
    kernels.cut(union.arcs, PART, parts)
    cubes = Cubes(parts[:, 13:16], PART + 2 * probe)
    least = probe - SLACK
    around = (*spheres, parts[cubes.order], cubes.starts, cubes.low, cubes.side, cubes.counts)
    places, triples = _touching_three(union)
    for patches, count in ((partial(kernels.strips, union.arcs, PIECE, probe, least, *around), len(union.arcs)),
                             (partial(kernels.corners, places, triples, spiral(ON_PROBE), probe, least, *around),
                              len(places))):
        result += _summed(patches, count, points)
    return result, points


def _summed(kernel: Callable[..., None], count: int, points: Floats) -> Floats:
    """Return the areas (N,) that a kernel adds up for all of so many patches, on all threads; points are written."""
    sums = {}

    def add(first: int, last: int) -> None:
        sums[first] = np.zeros(len(points))
        kernel(sums[first], points, first, last)

    threads.run(add, count, "surface", max(TOGETHER, -(-count // (4 * threads.count()))))
    return np.sum([sums[first] for first in sorted(sums)], 0) if sums else np.zeros(len(points))


def _touching_three(union: Surface) -> tuple[Floats, Integers]:
    """Return where the probe touches three atoms (P, 3), A, and which (P, 3)."""
    arcs = union.arcs
    ends = [(angle, arcs[:, 14 + n]) for n, angle in enumerate((arcs[:, 10], arcs[:, 11]))]
    places, triples = [], []
    for angle, third in ends:
        chosen = third >= 0
        arc, around = arcs[chosen], angle[chosen, None]
        places.append(arc[:, :3] + arc[:, 9:10] * (np.cos(around) * arc[:, 3:6] + np.sin(around) * arc[:, 6:9]))
        triples.append(np.sort(np.concatenate([arc[:, 12:14], third[chosen, None]], 1), axis=1).astype(np.int64))
    place, triple = np.concatenate(places), np.concatenate(triples)
    side = np.linalg.det(union.centres[triple] - place[:, None])
    proper = (np.diff(triple, axis=1) > 0).all(1) & (np.abs(side) > 1e-6)
    # each is the end of three arcs, and the same three atoms are touched from both sides
    _, once = np.unique(np.concatenate([triple, np.sign(side)[:, None]], 1)[proper], axis=0, return_index=True)
    kept = np.flatnonzero(proper)[once]
    return place[kept], triple[kept]
