"""Areas of accessible and molecular surfaces, integrated by points.

An accessible surface consists of parts of spheres; their area follows from the fraction of evenly distributed points on
each sphere that are inside no other (A. Shrake, J. A. Rupley, J. Mol. Biol. 79 (1973) 351). A molecular surface has
three kinds of patches (M. L. Connolly, J. Appl. Crystallogr. 16 (1983) 548): the corresponding parts of the atoms'
spheres; parts of tori, where the probe touches two atoms; and spherical triangles on the probe, where it touches three.
Points of the last two kinds count only if no other position of the probe covers them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, launch_kernel
from vmdpotential.surfaces.region import PointCubes, Surface

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
    starts, others = union.neighbours
    parts, owners = first[union.order], np.repeat(np.arange(len(union.order)), np.diff(starts))
    rows = np.unique(owners[parts[owners] != parts[others]])
    counts = np.zeros(len(rows), np.int64)
    launch_kernel(KERNELS["count_lost_points"], len(rows), "surface", MIN_SHARE, directions=spiral(POINTS),
                  centres=union.centres, radii=union.radii, first=starts, others=others, parts=parts, rows=rows,
                  counts=counts, checked=POINTS)
    result = np.zeros(len(radii))
    result[union.order[rows]] = 4 * np.pi / POINTS * counts * union.radii[rows] ** 2
    return result


def areas(union: Surface, molecular: bool) -> tuple[Floats, Floats]:
    """Return the area (N,), A^2, of each sphere's part of a surface, and a point (N, 3), A, of each part.

    The surface is the molecular one, or else the accessible one.
    """
    probe, centres, radii = union.probe, union.centres, union.radii
    touched = np.zeros(len(radii), np.bool_)
    touched[union.arcs[:, 12:14].astype(np.int64)] = True
    first, others = union.neighbours  # found with the arcs
    spheres = {"centres": centres, "radii": radii, "first": first, "others": others}
    counts, points = np.zeros(len(touched), np.int64), np.zeros((len(touched), 3))
    launch_kernel(KERNELS["count_free_points"], len(touched), "surface", MIN_SHARE, **spheres,
                  directions=_columns(spiral(POINTS)), touched=touched, counts=counts, points=points, checked=POINTS)
    molecular = molecular and probe > 0
    result = 4 * np.pi / POINTS * counts * (radii - probe * molecular) ** 2
    if not (molecular and len(union.arcs)):
        return result, points
    parts = _parts_of_arcs(union.arcs)
    cubes = PointCubes(parts[:, 13:16], PART + 2 * probe)
    places, triples = _touching_three(union)
    parts = parts[cubes.order]
    middles = np.zeros((len(parts) + ONCE, 5))
    middles[:-ONCE] = parts[:, 13:18] - [*cubes.low, 0.0, 0.0]
    patches = spheres | {
        "parts": parts, "middles": _columns(middles), "row": len(middles), "starts": cubes.starts, "low": cubes.low,
        "side": cubes.side, "counts": cubes.counts, "arcs": union.arcs, "places": places, "triples": triples,
        "directions": _columns(spiral(ON_PROBE)), "checked": ON_PROBE, "piece": PIECE, "probe": probe,
        "least": probe - SLACK, "spheres": len(radii)}
    most = max(1, min(4 * threads.count(), PART_BYTES // (PART_BYTES_PER_ATOM * len(radii))))
    for name, count in (("add_strips", len(union.arcs)), ("add_corners", len(places))):
        grain = max(MIN_SHARE, -(-count // most))
        area = np.zeros((-(-count // grain), len(radii)))
        of_pieces = np.full((*area.shape, 3), np.nan)
        launch_kernel(KERNELS[name], count, "surface", grain, **patches, area=area, points=of_pieces, grain=grain)
        result += area.sum(0)
        for piece in of_pieces:  # the last one of each part, whatever the number of threads
            points = np.where(np.isnan(piece), points, piece)
    return result, points


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


def _touching_three(union: Surface) -> tuple[Floats, Integers]:
    """Return the centres (P, 3), A, of probes that touch three atoms, and these atoms (P, 3)."""
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
    # each centre is the end of three arcs; three atoms can have two probes, on opposite sides
    _, once = np.unique(np.concatenate([triple, np.sign(side)[:, None]], 1)[proper], axis=0, return_index=True)
    kept = np.flatnonzero(proper)[once]
    return place[kept], triple[kept]
