"""Areas of accessible and molecular surfaces, integrated by points.

An accessible surface consists of parts of spheres; their area follows from the fraction of evenly distributed points on
each sphere that are inside no other (A. Shrake, J. A. Rupley, J. Mol. Biol. 79 (1973) 351). A molecular surface has
three kinds of patches (M. L. Connolly, J. Appl. Crystallogr. 16 (1983) 548): the corresponding parts of the atoms'
spheres; parts of tori, where the probe touches two atoms; and spherical triangles on the probe, where it touches three.
Points of the last two kinds count only if no other position of the probe covers them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats, Integers
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, launch_kernel
from vmdpotential.surfaces.near import NearestSphere
from vmdpotential.surfaces.region import PointCubes, Surface

KERNELS = KernelFile(Path(__file__).with_name("areas.cu"))

#: Number of points on an atom's sphere, and on a probe, multiples of the number that areas.cu compares at once.
POINTS, ON_PROBE, ONCE = 1024, 320, 64

#: Distance between points of tori, and length of the parts into which arcs are divided for searches, A.
PIECE, PART = 0.12, 0.6

#: Tolerance of the distance between a point and the centre of another probe, A.
SLACK = 2e-3

#: Smallest number of spheres, arcs or probes in a thread's share.
MIN_SHARE = 200

#: Memory for the areas and points of atoms that parts of the strips and corners keep apart, and its size per atom.
PART_BYTES, PART_BYTES_PER_ATOM = 128_000_000, 32


def spiral(count: int) -> Floats:
    """Return unit vectors (count, 3), evenly spread by the golden angle."""
    height = 1 - (2 * np.arange(count) + 1) / count
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(count)
    across = np.sqrt(1 - height**2)
    return np.stack([across * np.cos(angle), across * np.sin(angle), height], 1)


def lost_areas(positions: Floats, radii: Floats, probe: float, first: NDArray[np.bool_]) -> Floats:
    """Return the accessible area (N,), A^2, that each atom of two molecules loses because the other one covers it.

    The points are those of :func:`areas`, on the spheres that intersect one of the other molecule.
    """
    union = Surface(positions, radii, probe)
    fractions, _ = _count_points(union, POINTS, parts=first[union.order])
    return union.of_atoms(4 * np.pi * fractions * union.radii**2)


def areas(union: Surface, molecular: bool, closed: tuple[Floats, Floats] | None = None) -> tuple[Floats, Floats]:
    """Return the area (N,), A^2, of each atom's part of a surface, and a point (N, 3), A, of each part.

    The surface is the molecular one, or else the accessible one. With balls `closed`, centres (K, 3) and radii (K,),
    it is that where the centre of the probe is in one of them.
    """
    probe, arcs = union.probe, union.arcs
    molecular = molecular and probe > 0
    if closed is None:
        touched = np.zeros(len(union.radii), np.bool_)
        touched[arcs[:, 12:14].astype(np.int64)] = True
        # a sphere that no other one intersects is entirely free or entirely covered
        parts = [_count_points(union, checked, np.flatnonzero(touched == known))
                 for checked, known in ((POINTS, True), (ONCE, False))]
        fractions, points = (a + b for a, b in zip(*parts, strict=True))
        count = len(arcs)
    else:
        around = Surface(union.centres, union.radii - probe, probe, closed)
        fractions, points = map(around.of_atoms, _count_points(around, POINTS, parts=around.order >= len(union.radii)))
        middle = 0.5 * (arcs[:, 10:11] + arcs[:, 11:12])
        places = arcs[:, :3] + arcs[:, 9:10] * (np.cos(middle) * arcs[:, 3:6] + np.sin(middle) * arcs[:, 6:9])
        inside = NearestSphere(*closed).find(places, 0.0)[1] >= 0
        arcs, count = np.concatenate([arcs[inside], arcs[~inside]]), int(inside.sum())
    result = 4 * np.pi * fractions * (union.radii - probe * molecular) ** 2
    if molecular and count:
        for area, place in _add_probes(union, arcs, count):
            result += area
            points = np.where(np.isnan(place), points, place)
    return union.of_atoms(result), union.of_atoms(points)


def _count_points(union: Surface, checked: int, rows: Integers | None = None,
                  parts: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
    """Return the fractions (M,) of spheres that no other one covers, and a point (M, 3), A, there; 0 of other `rows`.

    With the `parts` (M,) of which of two molecules spheres are, of those that the other molecule covers.
    """
    first, others = union.neighbours
    if rows is None:
        assert parts is not None
        owners = np.repeat(np.arange(len(union.radii)), np.diff(first))
        rows = np.unique(owners[parts[owners] != parts[others]])
    counts, places = np.zeros(len(rows), np.int64), np.zeros((len(rows), 3))
    launch_kernel(KERNELS["count_points"], len(rows), "surface", MIN_SHARE, directions=_columns(spiral(checked)),
                  centres=union.centres, radii=union.radii, first=first, others=others, parts=parts, rows=rows,
                  counts=counts, points=places, checked=checked)
    fractions, points = np.zeros(len(union.radii)), np.zeros((len(union.radii), 3))
    fractions[rows], points[rows] = counts / checked, places
    return fractions, points


def _add_probes(union: Surface, arcs: Floats, count: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield areas (M,), A^2, of spheres on probes at the first arcs, and points (M, 3), A, there, NaN for none."""
    probe, spheres = union.probe, len(union.radii)
    parts = _parts_of_arcs(arcs)
    cubes = PointCubes(parts[:, 13:16], PART + 2 * probe)
    places, triples = _touching_three(union.centres, arcs[:count])
    parts = parts[cubes.order]
    middles = np.zeros((len(parts) + ONCE, 5))
    middles[:-ONCE] = parts[:, 13:18] - [*cubes.low, 0.0, 0.0]
    first, others = union.neighbours
    patches = {
        "centres": union.centres, "radii": union.radii, "first": first, "others": others, "parts": parts,
        "middles": _columns(middles), "row": len(middles), "starts": cubes.starts, "low": cubes.low,
        "side": cubes.side, "counts": cubes.counts, "arcs": arcs, "places": places, "triples": triples,
        "directions": _columns(spiral(ON_PROBE)), "checked": ON_PROBE, "piece": PIECE, "probe": probe,
        "least": probe - SLACK, "spheres": spheres}
    most = max(1, min(4 * threads.count(), PART_BYTES // (PART_BYTES_PER_ATOM * spheres)))
    for name, number in (("add_strips", count), ("add_corners", len(places))):
        grain = max(MIN_SHARE, -(-number // most))
        area = np.zeros((-(-number // grain), spheres))
        points = np.full((*area.shape, 3), np.nan)
        launch_kernel(KERNELS[name], number, "surface", grain, **patches, area=area, points=points, grain=grain)
        yield from zip(area, points, strict=True)  # the points of the last part, whatever the number of threads


def _columns(rows: Floats) -> NDArray[np.float32]:
    """Return the columns of an array as rows of float32, for vectors."""
    return np.ascontiguousarray(rows.T, np.float32)


def _parts_of_arcs(arcs: Floats) -> Floats:
    """Return equal parts (P, 18) of arcs, of at most the length PART; areas.cu describes the columns."""
    counts = np.maximum(1, np.ceil(arcs[:, 9] * (arcs[:, 11] - arcs[:, 10]) / PART)).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    parts = np.empty((starts[-1], 18))
    launch_kernel(KERNELS["cut_arcs"], len(arcs), "surface", MIN_SHARE, arcs=arcs, starts=starts, parts=parts)
    return parts


def _touching_three(centres: Floats, arcs: Floats) -> tuple[Floats, Integers]:
    """Return the centres (P, 3), A, of probes that touch three atoms, at the ends of arcs, and these atoms (P, 3)."""
    ends = np.concatenate([arcs[:, [10, 14]], arcs[:, [11, 15]]])
    chosen = ends[:, 1] >= 0
    arc, (angle, third) = np.concatenate([arcs, arcs])[chosen], ends[chosen].T
    place = arc[:, :3] + arc[:, 9:10] * (np.cos(angle[:, None]) * arc[:, 3:6] + np.sin(angle[:, None]) * arc[:, 6:9])
    triple = np.sort(np.column_stack([arc[:, 12:14], third]), axis=1).astype(np.int64)
    a, b, c = np.moveaxis(centres[triple] - place[:, None], 1, 0)
    side = (a * np.cross(b, c)).sum(1)
    proper = (np.diff(triple, axis=1) > 0).all(1) & (np.abs(side) > 1e-6)
    # each centre is the end of three arcs; three atoms can have two probes, on opposite sides
    keys = np.column_stack([triple, side > 0])[proper]
    order = np.lexsort(keys.T)
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(keys[order], axis=0) != 0).any(1)
    kept = np.flatnonzero(proper)[order[new]]
    return place[kept], triple[kept]
