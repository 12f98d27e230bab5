"""Areas of surfaces by counted points: of spheres, and of what a probe leaves between them.

An accessible surface is made of parts of spheres, whose area is the share of evenly spread points on each that are in
no other (A. Shrake, J. A. Rupley, J. Mol. Biol. 79 (1973) 351). A molecular surface has three kinds of patches
(M. L. Connolly, J. Appl. Crystallogr. 16 (1983) 548): the same parts, on the atoms; parts of tori, where the probe
touches two atoms; and triangles on the probe, where it touches three. The points of the last two that a probe elsewhere
reaches are left out.
"""

from __future__ import annotations

import numpy as np

from vmdpotential.surfaces.near import Floats, Integers, Near
from vmdpotential.surfaces.spheres import CELL, Spheres

#: Points on a sphere around an atom, and on a probe.
POINTS, ON_PROBE = 1000, 300

#: A, of pieces of edges and of the arcs across them.
PIECE = 0.12

#: A, that a point may be nearer to the centre of another probe, as ends of edges are found by halving.
SLACK = 2e-3


def spiral(count: int) -> Floats:
    """Return unit vectors (count, 3), evenly spread by the golden angle."""
    height = 1 - (2 * np.arange(count) + 1) / count
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(count)
    across = np.sqrt(1 - height**2)
    return np.stack([across * np.cos(angle), across * np.sin(angle), height], 1)


def areas(union: Spheres, probe: float, molecular: bool) -> tuple[Integers, Floats, Floats]:
    """Return sphere (P,), place (P, 3), A, and area (P,), A^2, of points all over a surface."""
    sphere, points, area = _accessible(union)
    if not molecular or probe == 0:
        return sphere, points, area
    radii = union.radii - probe
    share = radii[sphere] / union.radii[sphere]
    contact = union.centres[sphere] + (points - union.centres[sphere]) * share[:, None]
    more = [_between_two(union, probe), _between_three(union, probe)]
    places, sizes = (np.concatenate(parts) for parts in zip(*more, strict=True))
    _, deepest = union.near.find(places)
    kept = union.distances(places, deepest, probe - SLACK) >= probe - SLACK
    _, owner = Near(union.centres[union.outer], radii[union.outer], CELL).find(places[kept])
    return (np.concatenate([sphere, union.outer[owner]]), np.concatenate([contact, places[kept]]),
            np.concatenate([area * share**2, sizes[kept]]))


def _accessible(union: Spheres) -> tuple[Integers, Floats, Floats]:
    directions = spiral(POINTS)
    row, direction = np.nonzero(union.free(directions))
    sphere = union.outer[row]
    radius = union.radii[sphere]
    points = union.centres[sphere] + directions[direction] * radius[:, None]
    return sphere, points, 4 * np.pi / POINTS * radius**2


def _between_two(union: Spheres, probe: float) -> tuple[Floats, Floats]:
    """Return points of the tori along which a probe rolls between two atoms, and their areas."""
    edges = union.edges
    arc, angle, turn = edges.pieces(PIECE)
    centre = edges.at(arc, angle)
    inwards = edges.middle[arc] - centre
    inwards /= np.maximum(edges.radius[arc], 1e-9)[:, None]
    along = np.cross(edges.u, edges.v)[arc]
    # angles on the probe, from the inward direction, at which it touches the two
    touched = [np.arctan2(np.einsum("ij,ij->i", to, along), np.einsum("ij,ij->i", to, inwards))
               for to in (union.centres[edges.spheres[arc, n]] - centre for n in (0, 1))]
    low, high = np.minimum(*touched), np.maximum(*touched)
    count = np.maximum(1, np.ceil(probe * (high - low) / PIECE)).astype(int)
    piece = np.repeat(np.arange(len(arc)), count)
    step = ((high - low) / count)[piece]
    phi = low[piece] + (np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count) + 0.5) * step
    points = centre[piece] + probe * (np.cos(phi)[:, None] * inwards[piece] + np.sin(phi)[:, None] * along[piece])
    # a torus that cuts itself has parts beyond its axis, which another place of the probe reaches
    to_axis = np.maximum(edges.radius[arc][piece] - probe * np.cos(phi), 0)
    return points, probe * step * to_axis * turn[piece]


def _between_three(union: Spheres, probe: float) -> tuple[Floats, Floats]:
    """Return points of the triangles of probes that touch three atoms, and their areas."""
    edges = union.edges
    open_ = np.flatnonzero(edges.ends[:, 0] >= 0)
    arc, third = np.concatenate([open_, open_]), edges.ends[open_].T.ravel()
    end = np.concatenate([edges.first[open_], edges.last[open_]])
    triples = np.sort(np.concatenate([edges.spheres[arc], third[:, None]], 1), axis=1)
    centre = edges.at(arc, end)
    to = union.centres[triples] - centre[:, None]
    side = np.linalg.det(to)
    proper = (triples[:, 0] != triples[:, 1]) & (triples[:, 1] != triples[:, 2]) & (np.abs(side) > 1e-6)
    # each is the end of three edges, and the same three atoms are touched from both sides
    _, once = np.unique(np.concatenate([triples, np.sign(side)[:, None]], 1)[proper], axis=0, return_index=True)
    kept = np.flatnonzero(proper)[once]
    directions = spiral(ON_PROBE)
    # a direction between those of the three atoms is a sum of theirs, none taken away
    parts = np.einsum("tij,pj->tpi", np.linalg.inv(to[kept].transpose(0, 2, 1)), directions)
    probe_of, direction = np.nonzero((parts >= 0).all(2))
    points = centre[kept][probe_of] + probe * directions[direction]
    return points, np.full(len(points), 4 * np.pi * probe**2 / ON_PROBE)
