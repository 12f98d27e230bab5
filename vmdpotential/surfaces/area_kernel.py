"""Kernels for areas of surfaces: sums over points of patches that no other position of the probe covers.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}

#: Reduction of a sphere's radius in tests whether points are inside, A, so that points on it are outside.
ON = 1e-5

#: Largest number of spheres, and of parts of arcs, around a patch.
MOST = 4096

#: Number of points of a patch that are computed at once, by vector instructions.
LANES = 8


@njit(**PLAIN_CODE)
def free(directions, touched, centres, radii, first, others, counts, points, begin, end):
    """Count the points of spheres in `directions` (D, 3) that are in no other sphere; one of them becomes points[n].

    Sphere n intersects others[first[n]:first[n + 1]]. A sphere without arcs, for which `touched` is false, is entirely
    free or entirely covered, so that one point is enough.
    """
    for s in range(begin, end):
        around = others[first[s]:first[s + 1]]
        hit, checked = 0, len(directions) if touched[s] else 1
        for d in range(checked):
            x = centres[s, 0] + directions[d, 0] * radii[s]
            y = centres[s, 1] + directions[d, 1] * radii[s]
            z = centres[s, 2] + directions[d, 2] * radii[s]
            inside = False
            for n in range(len(around)):
                # first the sphere that covers the preceding point, as it is likely to cover this one
                at = hit if n == 0 else (n - 1 if n <= hit else n)
                other = around[at]
                e, f, g = x - centres[other, 0], y - centres[other, 1], z - centres[other, 2]
                reach = radii[other] - ON
                if e * e + f * f + g * g < reach * reach:
                    inside, hit = True, at
                    break
            if not inside:
                counts[s] += 1
                points[s, 0], points[s, 1], points[s, 2] = x, y, z
        if not touched[s]:
            counts[s] *= len(directions)


@njit(**PLAIN_CODE)
def cut(arcs, longest, out):
    """Divide arcs into equal parts of at most the length `longest`; return their number, even if `out` is too short.

    A row of `out` (P, 18) has the circle's centre, unit vectors towards the part's middle and along the tangent there,
    the circle's radius, the cosine of half the part's angle, this cosine and the sine times the radius, the part's
    middle, half of the longest distance in the part, and the index of its arc.
    """
    result = 0
    for a in range(len(arcs)):
        arc = arcs[a]
        count = max(1, math.ceil(arc[9] * (arc[11] - arc[10]) / longest))
        half = 0.5 * (arc[11] - arc[10]) / count
        for n in range(count):
            if result < len(out):
                angle, row = arc[10] + (2 * n + 1) * half, out[result]
                for d in range(3):
                    row[d] = arc[d]
                    row[3 + d] = math.cos(angle) * arc[3 + d] + math.sin(angle) * arc[6 + d]
                    row[6 + d] = math.cos(angle) * arc[6 + d] - math.sin(angle) * arc[3 + d]
                    row[13 + d] = row[d] + arc[9] * row[3 + d]
                row[9], row[10], row[11], row[12] = (arc[9], math.cos(half), arc[9] * math.cos(half),
                                                     arc[9] * math.sin(half))
                row[16], row[17] = 2 * arc[9] * math.sin(0.5 * min(half, math.pi)), a
            result += 1
    return result


@njit(**PLAIN_CODE)
def spheres_around(x, y, z, reach, sphere, skipped, centres, radii, first, others, out, count):
    """Append to `out` the neighbours of a sphere whose surfaces are within `reach` of a point; return the new count.

    The first `skipped` entries of `out` are not repeated.
    """
    for n in range(first[sphere], first[sphere + 1]):
        o = others[n]
        e, f, g, far = x - centres[o, 0], y - centres[o, 1], z - centres[o, 2], radii[o] + reach
        if far > 0 and e * e + f * f + g * g < far * far and count < MOST:
            new = True
            for m in range(skipped):
                new &= out[m] != o
            if new:
                out[count] = o
                count += 1
    return count


@njit(**PLAIN_CODE)
def parts_around(x, y, z, reach, left_out, parts, starts, low, side, counts, out):
    """Write the parts of arcs (:func:`cut`), sorted by cubes, within `reach` of a point to `out`; return their number.

    The cubes' `side` is at least `reach` plus half of the longest distance in a part. The arc `left_out` is excluded.
    """
    result = 0
    a, b, c = math.floor((x - low[0]) / side), math.floor((y - low[1]) / side), math.floor((z - low[2]) / side)
    k_begin, k_end = max(0, c - 1), min(counts[2], c + 2)
    if k_begin >= k_end:
        return 0
    for i in range(max(0, a - 1), min(counts[0], a + 2)):
        for j in range(max(0, b - 1), min(counts[1], b + 2)):
            row = (i * counts[1] + j) * counts[2]
            for n in range(starts[row + k_begin], starts[row + k_end]):
                e, f, g, far = x - parts[n, 13], y - parts[n, 14], z - parts[n, 15], parts[n, 16] + reach
                if e * e + f * f + g * g < far * far and parts[n, 17] != left_out and result < MOST:
                    out[result] = n
                    result += 1
    return result


@njit(**PLAIN_CODE)
def covered(x, y, z, sphere, centres, radii, first, others):
    """Return whether the radial projection of a point in a sphere onto that sphere is inside another one."""
    e, f, g = x - centres[sphere, 0], y - centres[sphere, 1], z - centres[sphere, 2]
    scale = radii[sphere] / max(1e-9, math.sqrt(e * e + f * f + g * g))
    x, y, z = centres[sphere, 0] + scale * e, centres[sphere, 1] + scale * f, centres[sphere, 2] + scale * g
    for n in range(first[sphere], first[sphere + 1]):
        o = others[n]
        reach = radii[o] - ON
        if (x - centres[o, 0]) ** 2 + (y - centres[o, 1]) ** 2 + (z - centres[o, 2]) ** 2 < reach * reach:
            return True
    return False


@njit(**PLAIN_CODE)
def deepen(points, count, place, radius, sphere, depth, owner):
    """Update the depths of points (3, M), and the spheres in which they are deepest, by one more sphere.

    As in :func:`approach`, `count` is a multiple of :data:`LANES`, and there is no branch, so that LLVM vectorizes it.
    """
    x, y, z = points
    u, v, w = place[0], place[1], place[2]
    for n in range(count):
        here = radius - math.sqrt((x[n] - u) ** 2 + (y[n] - v) ** 2 + (z[n] - w) ** 2)
        deeper = here > depth[n]
        depth[n], owner[n] = here if deeper else depth[n], sphere if deeper else owner[n]


@njit(**PLAIN_CODE)
def approach(points, count, part, nearest):
    """Update the squares of the smallest distances of points (3, M) by those to a part of an arc (:func:`cut`)."""
    x, y, z = points
    u, v, w, i, j, k, o, p, q = part[0], part[1], part[2], part[3], part[4], part[5], part[6], part[7], part[8]
    radius, cosine, end_a, end_b = part[9], part[10], part[11], part[12]
    for n in range(count):
        e, f, g = x[n] - u, y[n] - v, z[n] - w
        a, b = e * i + f * j + g * k, abs(e * o + f * p + g * q)
        across = math.sqrt(a * a + b * b)
        to_circle = (across - radius) * (across - radius)
        to_end = (a - end_a) * (a - end_a) + (b - end_b) * (b - end_b)
        square = e * e + f * f + g * g - a * a - b * b + (to_circle if a >= across * cosine else to_end)
        nearest[n] = square if square < nearest[n] else nearest[n]


@njit(**PLAIN_CODE)
def add(places, sizes, count, around, many, sure, least, spheres, parts, near, arcs_near, area, points):
    """Add the areas `sizes` of points `places` (3, M) on a patch to those of the spheres in which they are deepest.

    Points with another probe's centre at a distance below `least` are left out. `around` and `near` are the spheres and
    the parts of arcs next to the patch; :func:`covered` is known to be true for the first `sure` spheres.
    """
    centres, radii, first, others = spheres
    whole = -(-count // LANES) * LANES
    places[:, count:whole] = 0
    depth, owner, nearest = np.full(whole, -1e9), np.zeros(whole, np.int64), np.full(whole, 1e9)
    for m in range(many):
        deepen(places, whole, centres[around[m]], radii[around[m]], around[m], depth, owner)
    for m in range(arcs_near):
        approach(places, whole, parts[near[m]], nearest)
    for n in range(count):
        s = owner[n]
        if depth[n] < least:
            known = False
            for m in range(sure):
                known |= around[m] == s
            if nearest[n] < least * least or not (known or covered(places[0, n], places[1, n], places[2, n], s, centres,
                                                                   radii, first, others)):
                continue
        area[s] += sizes[n]
        points[s, 0], points[s, 1], points[s, 2] = places[0, n], places[1, n], places[2, n]


@njit(**PLAIN_CODE)
def strips(arcs, piece, probe, least, centres, radii, first, others, parts, starts, low, side, counts, area, points,
           first_arc, last_arc):
    """Add the areas of tori, on which the probe touches two atoms, to those of spheres (N,), for a range of arcs.

    Points at distances of about `piece` are counted, except those with another probe's centre at a distance below
    `least`; one of the points of each sphere is written to points (N, 3).
    """
    near, around = np.empty(MOST, np.int64), np.empty(MOST, np.int64)
    inwards, along = np.empty(3), np.empty(3)
    most = math.ceil(math.pi * probe / piece) + LANES
    places, sizes = np.empty((3, most)), np.empty(most)
    for a in range(first_arc, last_arc):
        arc = arcs[a]
        one, other, radius = np.int64(arc[12]), np.int64(arc[13]), arc[9]
        for d in range(3):
            along[d] = arc[3 + (d + 1) % 3] * arc[6 + (d + 2) % 3] - arc[3 + (d + 2) % 3] * arc[6 + (d + 1) % 3]
        # angles on the probe, from the inward direction, at which it touches the two atoms; and the atoms' positions
        # along the axis of the torus
        to_one, to_other = 0.0, 0.0
        for d in range(3):
            to_one += (centres[one, d] - arc[d]) * along[d]
            to_other += (centres[other, d] - arc[d]) * along[d]
        begin, end = math.atan2(to_one, radius), math.atan2(to_other, radius)
        begin, end = min(begin, end), max(begin, end)
        count = max(1, math.ceil(probe * (end - begin) / piece))
        step, lowest = (end - begin) / count, 1e9
        for n in range(count):
            phi = begin + (n + 0.5) * step
            off, up = radius - probe * math.cos(phi), probe * math.sin(phi)
            lowest = min(lowest, max(radii[one] - math.sqrt(off * off + (up - to_one) ** 2),
                                     radii[other] - math.sqrt(off * off + (up - to_other) ** 2)))
        middle, half = 0.5 * (begin + end), 0.5 * (end - begin)
        reach, chord = probe * math.sin(half), probe * math.cos(half)
        turns = max(1, math.ceil(radius * (arc[11] - arc[10]) / piece))
        turn = (arc[11] - arc[10]) / turns
        around[0], around[1] = one, other
        for t in range(turns):
            theta = arc[10] + (t + 0.5) * turn
            for d in range(3):
                inwards[d] = -(math.cos(theta) * arc[3 + d] + math.sin(theta) * arc[6 + d])
            x, y, z = [arc[d] + (chord * math.cos(middle) - radius) * inwards[d] + chord * math.sin(middle) * along[d]
                       for d in range(3)]
            many = spheres_around(x, y, z, reach - lowest, one, 2, centres, radii, first, others, around, 2)
            arcs_near = parts_around(x, y, z, reach + least, a, parts, starts, low, side, counts, near)
            used = 0
            for n in range(count):
                phi = begin + (n + 0.5) * step
                # a torus that intersects itself has parts beyond its axis, which another position of the probe covers
                to_axis = radius - probe * math.cos(phi)
                if to_axis > 0:
                    for d in range(3):
                        places[d, used] = arc[d] - to_axis * inwards[d] + probe * math.sin(phi) * along[d]
                    sizes[used] = probe * step * to_axis * turn
                    used += 1
            # `covered` is true for both atoms, by the other one
            add(places, sizes, used, around, many, 2, least, (centres, radii, first, others), parts, near, arcs_near,
                area, points)


@njit(**PLAIN_CODE)
def corners(centre, triples, directions, probe, least, centres, radii, first, others, parts, starts, low, side,
            counts, area, points, first_place, last_place):
    """Add the areas of spherical triangles on probes that touch three atoms, by points in `directions` (D, 3).

    The other arguments are those of :func:`strips`.
    """
    near, around = np.empty(MOST, np.int64), np.empty(MOST, np.int64)
    to, normals = np.empty((3, 3)), np.empty((3, 3))
    places = np.empty((3, len(directions) + LANES))
    sizes = np.full(len(directions), 4 * math.pi * probe * probe / len(directions))
    for p in range(first_place, last_place):
        for n in range(3):
            around[n] = triples[p, n]
            for d in range(3):
                to[n, d] = centres[around[n], d] - centre[p, d]
        for n in range(3):
            v, w = to[(n + 1) % 3], to[(n + 2) % 3]
            for d in range(3):
                normals[n, d] = v[(d + 1) % 3] * w[(d + 2) % 3] - v[(d + 2) % 3] * w[(d + 1) % 3]
        sign = 1.0 if to[0, 0] * normals[0, 0] + to[0, 1] * normals[0, 1] + to[0, 2] * normals[0, 2] > 0 else -1.0
        used = 0
        for k in range(len(directions)):
            # a direction in the triangle is a sum of the three atoms' directions with positive factors
            between = True
            for n in range(3):
                between &= sign * (directions[k, 0] * normals[n, 0] + directions[k, 1] * normals[n, 1]
                                   + directions[k, 2] * normals[n, 2]) >= 0
            if between:
                for d in range(3):
                    places[d, used] = centre[p, d] + probe * directions[k, d]
                used += 1
        x, y, z = centre[p]
        many = spheres_around(x, y, z, probe, around[0], 3, centres, radii, first, others, around, 3)
        arcs_near = parts_around(x, y, z, probe + least, -1, parts, starts, low, side, counts, near)
        add(places, sizes, used, around, many, 0, least, (centres, radii, first, others), parts, near, arcs_near, area,
            points)
