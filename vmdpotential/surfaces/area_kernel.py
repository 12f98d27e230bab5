"""Kernels of surfaces' areas: points of patches that no probe elsewhere reaches, counted for the spheres next to them.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}

#: A, by which a sphere is smaller when it covers points: those on it are outside.
ON = 1e-5

#: Spheres, and parts of arcs, around a point at most.
MOST = 4096


@njit(**PLAIN_CODE)
def free(directions, touched, centres, radii, first, others, counts, points, begin, end):
    """Count the points of some spheres, in these directions (D, 3), that are in no other; one becomes points[n].

    Sphere n meets others[first[n]:first[n + 1]]. Where none of a sphere's arcs is left, as `touched` says, one point
    stands for all of them.
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
                # the one that covers the point before is likely to cover this one
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
    """Cut arcs into equal parts of at most a length; return how many there are, also where `out` has no room for them.

    A row of `out` (P, 18) is the circle's centre, unit vectors towards the part's middle and along it there, the
    circle's radius, the cosine of half the part's angle, that and its sine times the radius, the part's middle, half
    the longest distance in it, and its arc.
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
    """Add to `out` the spheres nearer to a point than their radii and `reach`, of those that meet a sphere."""
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
    """Write the parts of arcs (:func:`cut`), sorted by cubes, with points nearer than `reach`; return how many.

    `side` is at least that and half of the longest distance in a part; none of the arc `left_out` counts.
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
def barred(x, y, z, sphere, centres, radii, first, others):
    """Return whether the way out of a sphere, from a point in it, ends in another one."""
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
def reached(x, y, z, least, parts, near, count):
    """Return whether a point of some parts of arcs is nearer than `least`."""
    for n in range(count):
        row = parts[near[n]]
        e, f, g = x - row[0], y - row[1], z - row[2]
        a = e * row[3] + f * row[4] + g * row[5]
        b = abs(e * row[6] + f * row[7] + g * row[8])
        across = math.sqrt(a * a + b * b)
        above = e * e + f * f + g * g - across * across
        square = above + ((across - row[9]) ** 2 if a >= across * row[10] else (a - row[11]) ** 2 + (b - row[12]) ** 2)
        if square < least * least:
            return True
    return False


@njit(**PLAIN_CODE)
def strips(arcs, piece, probe, least, centres, radii, first, others, parts, starts, low, side, counts, area, points,
           first_arc, last_arc):
    """Add the area of the tori along which a probe rolls between two atoms, for some arcs, to those of spheres (N,).

    By points about `piece` apart, those left out that a probe elsewhere is nearer to than `least`; a counted one of
    each sphere is written to points (N, 3).
    """
    near, around = np.empty(MOST, np.int64), np.empty(MOST, np.int64)
    inwards, along = np.empty(3), np.empty(3)
    for a in range(first_arc, last_arc):
        arc = arcs[a]
        one, other, radius = np.int64(arc[12]), np.int64(arc[13]), arc[9]
        for d in range(3):
            along[d] = arc[3 + (d + 1) % 3] * arc[6 + (d + 2) % 3] - arc[3 + (d + 2) % 3] * arc[6 + (d + 1) % 3]
        # angles on the probe, from the inward direction, at which it touches the two; and how far along they are
        to_one, to_other = 0.0, 0.0
        for d in range(3):
            to_one += (centres[one, d] - arc[d]) * along[d]
            to_other += (centres[other, d] - arc[d]) * along[d]
        begin, end = math.atan2(to_one, radius), math.atan2(to_other, radius)
        begin, end = min(begin, end), max(begin, end)
        count = max(1, math.ceil(probe * (end - begin) / piece))
        step = (end - begin) / count
        # each point's depth in the two, and the least of them
        lowest = 1e9
        depths, owners = np.empty(count), np.empty(count, np.int64)
        for n in range(count):
            phi = begin + (n + 0.5) * step
            off, up = radius - probe * math.cos(phi), probe * math.sin(phi)
            in_one = radii[one] - math.sqrt(off * off + (up - to_one) ** 2)
            in_other = radii[other] - math.sqrt(off * off + (up - to_other) ** 2)
            depths[n], owners[n] = max(in_one, in_other), one if in_one >= in_other else other
            lowest = min(lowest, depths[n])
        middle, reach = 0.5 * (begin + end), probe * math.sin(0.5 * (end - begin))
        inner, upper = probe * math.cos(0.5 * (end - begin)) * math.cos(middle), probe * math.cos(
            0.5 * (end - begin)) * math.sin(middle)
        turns = max(1, math.ceil(radius * (arc[11] - arc[10]) / piece))
        turn = (arc[11] - arc[10]) / turns
        for t in range(turns):
            theta = arc[10] + (t + 0.5) * turn
            for d in range(3):
                inwards[d] = -(math.cos(theta) * arc[3 + d] + math.sin(theta) * arc[6 + d])
            x, y, z = [arc[d] + (inner - radius) * inwards[d] + upper * along[d] for d in range(3)]
            around[0], around[1] = one, other
            many = spheres_around(x, y, z, reach - lowest, one, 2, centres, radii, first, others, around, 2)
            arcs_near = parts_around(x, y, z, reach + least, a, parts, starts, low, side, counts, near)
            for n in range(count):
                phi = begin + (n + 0.5) * step
                # a torus that cuts itself has parts beyond its axis, which another place of the probe reaches
                to_axis = radius - probe * math.cos(phi)
                if to_axis <= 0:
                    continue
                x, y, z = [arc[d] - to_axis * inwards[d] + probe * math.sin(phi) * along[d] for d in range(3)]
                depth, owner, of_two = depths[n], owners[n], True
                for m in range(2, many):
                    s = around[m]
                    here = radii[s] - math.sqrt((x - centres[s, 0]) ** 2 + (y - centres[s, 1]) ** 2
                                                + (z - centres[s, 2]) ** 2)
                    if here > depth:
                        depth, owner, of_two = here, s, False
                # the way out of each of the two is barred by the other one
                if depth < least and (not (of_two or barred(x, y, z, owner, centres, radii, first, others))
                                      or reached(x, y, z, least, parts, near, arcs_near)):
                    continue
                area[owner] += probe * step * to_axis * turn
                points[owner, 0], points[owner, 1], points[owner, 2] = x, y, z


@njit(**PLAIN_CODE)
def corners(places, triples, directions, probe, least, centres, radii, first, others, parts, starts, low, side,
            counts, area, points, first_place, last_place):
    """Add the area of triangles of probes that touch three atoms at some places, likewise; by points in directions."""
    near, around = np.empty(MOST, np.int64), np.empty(MOST, np.int64)
    to, normals = np.empty((3, 3)), np.empty((3, 3))
    for p in range(first_place, last_place):
        for n in range(3):
            around[n] = triples[p, n]
            for d in range(3):
                to[n, d] = centres[around[n], d] - places[p, d]
        for n in range(3):
            v, w = to[(n + 1) % 3], to[(n + 2) % 3]
            for d in range(3):
                normals[n, d] = v[(d + 1) % 3] * w[(d + 2) % 3] - v[(d + 2) % 3] * w[(d + 1) % 3]
        side_of = 1.0 if to[0, 0] * normals[0, 0] + to[0, 1] * normals[0, 1] + to[0, 2] * normals[0, 2] > 0 else -1.0
        many = spheres_around(places[p, 0], places[p, 1], places[p, 2], probe, around[0], 3, centres, radii, first,
                              others, around, 3)
        arcs_near = parts_around(places[p, 0], places[p, 1], places[p, 2], probe + least, -1, parts, starts, low, side,
                                 counts, near)
        for k in range(len(directions)):
            # a direction between those of the three atoms is a sum of theirs, none taken away
            between = True
            for n in range(3):
                between &= side_of * (directions[k, 0] * normals[n, 0] + directions[k, 1] * normals[n, 1]
                                      + directions[k, 2] * normals[n, 2]) >= 0
            if not between:
                continue
            x, y, z = [places[p, d] + probe * directions[k, d] for d in range(3)]
            depth, owner = -1e9, -1
            for m in range(many):
                s = around[m]
                here = radii[s] - math.sqrt((x - centres[s, 0]) ** 2 + (y - centres[s, 1]) ** 2
                                            + (z - centres[s, 2]) ** 2)
                if here > depth:
                    depth, owner = here, s
            if depth < least and (not barred(x, y, z, owner, centres, radii, first, others)
                                  or reached(x, y, z, least, parts, near, arcs_near)):
                continue
            area[owner] += 4 * math.pi * probe * probe / len(directions)
            points[owner, 0], points[owner, 1], points[owner, 2] = x, y, z
