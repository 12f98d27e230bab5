"""Kernels for the region of a molecule: signed distances of nodes to its surface, and conductances of the edges.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}

#: Whether plain loops replace vector code.
PLAIN: bool

#: Largest number of parts of a circle that are outside of other spheres.
MAX_PARTS = 512

#: Number of ranges of distance by which the neighbours of a sphere are sorted.
BINS = 32

#: Longest piece of an arc, in radians, that is processed with one box of nodes.
PIECE = 0.5

if PLAIN:
    LANES = 1

    @njit(**PLAIN_CODE)
    def deepen(depth, deepest, at, squares, k, square, radius, sphere):
        """Raise the depth of a node to its depth in a sphere, and record the sphere if that is deeper."""
        here = radius - np.sqrt(square + squares[k])
        if here > depth[at]:
            depth[at], deepest[at] = here, sphere

    @njit(**PLAIN_CODE)
    def approach(distances, at, places, k, row, piece):
        """Raise the signed distance of a node to its depth in a probe on a piece of an arc."""
        z = places[k]
        a, b = row[0] + z * piece[0], row[1] + z * piece[1]
        across = np.sqrt(a * a + b * b)
        if a * piece[3] + b * piece[4] >= across * piece[5]:
            square = row[2] + z * z + piece[2] * (piece[2] - 2 * across)
        else:  # nearest to an end of the piece
            square = min(row[3] + (z - piece[6]) ** 2, row[4] + (z - piece[7]) ** 2)
        distances[at] = max(distances[at], piece[8] - np.sqrt(max(np.float32(0), square)))
else:
    from vmdpotential.continuum.region_vectors import LANES, approach, deepen


@njit(**PLAIN_CODE)
def sort(points, low, side, counts, starts, order, cubes):
    """Sort points by their cubes, row by row, for :class:`vmdpotential.continuum.region.Cubes`, which has the results.

    The corner of the first cube is at `low`; `starts`, whose length is the number of cubes and one, is 0 at first.
    """
    numbers, ends = np.empty(len(points), np.int64), np.zeros(len(starts), np.int64)
    for n in range(len(points)):
        i, j, k = (math.floor((points[n, 0] - low[0]) / side), math.floor((points[n, 1] - low[1]) / side),
                   math.floor((points[n, 2] - low[2]) / side))
        numbers[n] = (i * counts[1] + j) * counts[2] + k
        starts[numbers[n] + 1] += 1
    for cube in range(len(starts) - 1):
        starts[cube + 1] += starts[cube]
        ends[cube] = starts[cube]
    for n in range(len(points)):
        place, row = ends[numbers[n]], numbers[n] // counts[2]
        ends[numbers[n]] += 1
        order[place] = n
        cubes[place, 0], cubes[place, 1], cubes[place, 2] = row // counts[1], row % counts[1], numbers[n] % counts[2]


@njit(**PLAIN_CODE)
def stamp(centres, radii, reach, origin, spacing, depth, deepest, first_plane, last_plane):
    """Write the depth of the nodes (nx, ny, nz) of some planes in the sphere where they are deepest, and that sphere.

    Nodes that are more than `reach` outside of every sphere have a depth of -`reach`, and no sphere.
    """
    _, ny, nz = depth.shape
    depth[first_plane:last_plane] = np.float32(-reach)
    flat, flat_deepest, squares = depth.reshape(-1), deepest.reshape(-1), np.empty(nz, np.float32)
    for n in range(len(radii)):
        radius, far = np.float32(radii[n]), radii[n] + reach
        begin = max(first_plane, math.ceil((centres[n, 0] - far - origin[0]) / spacing[0]))
        end = min(last_plane, math.floor((centres[n, 0] + far - origin[0]) / spacing[0]) + 1)
        if begin >= end:
            continue
        j_begin = max(0, math.ceil((centres[n, 1] - far - origin[1]) / spacing[1]))
        j_end = min(ny, math.floor((centres[n, 1] + far - origin[1]) / spacing[1]) + 1)
        middle = (centres[n, 2] - origin[2]) / spacing[2]
        for k in range(max(0, math.floor(middle - far / spacing[2]) - LANES),
                       min(nz, math.ceil(middle + far / spacing[2]) + LANES)):
            squares[k] = (k * spacing[2] + origin[2] - centres[n, 2]) ** 2
        for i in range(begin, end):
            x = i * spacing[0] + origin[0] - centres[n, 0]
            for j in range(j_begin, j_end):
                y = j * spacing[1] + origin[1] - centres[n, 1]
                left = far * far - x * x - y * y
                if left < 0:
                    continue
                square, half = np.float32(x * x + y * y), math.sqrt(left) / spacing[2]
                k, k_end = max(0, math.ceil(middle - half)), min(nz, math.floor(middle + half) + 1)
                while k < k_end:
                    k = min(k, nz - LANES)
                    deepen(flat, flat_deepest, (i * ny + j) * nz + k, squares, k, square, radius, n)
                    k += LANES


@njit(**PLAIN_CODE)
def shares(depth, slope, offset, out, first_plane, last_plane):
    """Write the fractions of the cells of nodes in some planes that ions can reach, linear in the depth there."""
    _, ny, nz = depth.shape
    for i in range(first_plane, last_plane):
        for j in range(ny):
            for k in range(nz):
                out[i, j, k] = min(np.float32(1), max(np.float32(0), depth[i, j, k] * slope + offset))


@njit(**PLAIN_CODE)
def neighbours(centres, radii, largest, starts, longest, cubes, counts, numbers, first_sphere, last_sphere, out):
    """Write the spheres that intersect each sphere of a range, nearer ones first; return their total number.

    They are sorted by :data:`BINS` ranges of the square of their distance.

    Spheres are sorted by their `cubes` (N, 3), whose side is the largest diameter; those of cube c begin at starts[c].
    `largest` is the largest radius, and `longest` the number of spheres in the fullest cube. The number for each sphere
    is written to `numbers` (N,). Neighbours that do not fit into `out` are only counted.
    """
    _, ny, nz = counts
    result = 0
    # of the spheres of three cubes, which are consecutive: squares of distances, and these less those of contact
    squares, near = np.empty(3 * longest), np.empty(3 * longest)
    chosen, bins = np.empty(27 * longest, np.int32), np.empty(27 * longest, np.int64)
    ends = np.empty(BINS + 1, np.int64)
    for a in range(first_sphere, last_sphere):
        x, y, z, radius = centres[a, 0], centres[a, 1], centres[a, 2], radii[a]
        scale, number = BINS / (radius + largest) ** 2, 0
        low, high = max(0, cubes[a, 2] - 1), min(nz, cubes[a, 2] + 2)
        ends[:] = 0
        for i in range(max(0, cubes[a, 0] - 1), min(counts[0], cubes[a, 0] + 2)):
            for j in range(max(0, cubes[a, 1] - 1), min(ny, cubes[a, 1] + 2)):
                row = (i * ny + j) * nz
                start, count = starts[row + low], starts[row + high] - starts[row + low]
                for n in range(count):
                    u, v, w = centres[start + n, 0] - x, centres[start + n, 1] - y, centres[start + n, 2] - z
                    reach = radius + radii[start + n]
                    squares[n] = u * u + v * v + w * w
                    near[n] = squares[n] - reach * reach
                for n in range(count):
                    if near[n] < 0 and start + n != a:
                        chosen[number], bins[number] = start + n, min(np.int64(scale * squares[n]), BINS - 1)
                        ends[bins[number] + 1] += 1
                        number += 1
        numbers[a] = number
        if result + number <= len(out):
            for n in range(BINS):
                ends[n + 1] += ends[n]
            for n in range(number):
                out[result + ends[bins[n]]] = chosen[n]
                ends[bins[n]] += 1
        result += number
    return result


@njit(**PLAIN_CODE)
def project(centres, radii, first, others, origin, spacing, probe, reach, depth, deepest, first_plane, last_plane):
    """Replace depths in accessible spheres by signed distances to the molecular surface, negative inside.

    The nearest point outside of the deepest sphere is the nearest accessible point if no other sphere contains it. If
    one does, the distance is set to -`reach`, until :func:`roll` finds a probe that touches more than one atom.
    """
    _, ny, nz = depth.shape
    p = np.float32(probe)
    for i in range(first_plane, last_plane):
        for j in range(ny):
            for k in range(nz):
                d = depth[i, j, k]
                if d <= 0 or d >= probe + reach:
                    depth[i, j, k] = p - d
                    continue
                n = deepest[i, j, k]
                x = i * spacing[0] + origin[0] - centres[n, 0]
                y = j * spacing[1] + origin[1] - centres[n, 1]
                z = k * spacing[2] + origin[2] - centres[n, 2]
                scale = radii[n] / max(1e-9, math.sqrt(x * x + y * y + z * z))
                x, y, z = (centres[n, 0] + scale * x, centres[n, 1] + scale * y, centres[n, 2] + scale * z)
                free = True
                for m in range(first[n], first[n + 1]):
                    o = others[m]
                    square = (x - centres[o, 0]) ** 2 + (y - centres[o, 1]) ** 2 + (z - centres[o, 2]) ** 2
                    if square < radii[o] * radii[o] - 1e-9:
                        free = False
                        break
                depth[i, j, k] = p - d if free else np.float32(-reach)


@njit(**PLAIN_CODE)
def turns(x, y):
    """Return a number from 0 to 4 that increases with the angle of (x, y), without trigonometric functions."""
    part = y / (abs(x) + abs(y))
    if x < 0:
        return 2 - part
    return part if part >= 0 else 4 + part


@njit(**PLAIN_CODE)
def radians(turn):
    """Return the angle that belongs to a number from :func:`turns`."""
    if turn >= 4:
        return 2 * math.pi
    quarter = math.floor(turn)
    part = turn - quarter
    return 0.5 * math.pi * quarter + math.atan2(part, 1 - part)


@njit(**PLAIN_CODE)
def without(parts, count, begin, end, sphere):
    """Remove the range from begin to end, which a sphere buries, from the free parts of a circle; return their number.

    A row of `parts` holds the begin and the end of a part, and the spheres that bury the circle before and after it
    (-1 for none).
    """
    kept = 0
    cut = -1.0  # begin of the second part, if one part is split into two
    for n in range(count):
        low, high, before, after = parts[n, 0], parts[n, 1], parts[n, 2], parts[n, 3]
        around = begin > end  # the buried range includes the angle 0
        if not around and low < begin and end < high:
            cut, until, last = end, high, after
            high, after = begin, sphere
        elif not around and low < begin:
            if begin < high:
                high, after = begin, sphere
        elif not around:
            if low < end:
                low, before = end, sphere
        else:
            if low < end:
                low, before = end, sphere
            if begin < high:
                high, after = begin, sphere
        if high > low + 1e-9:
            parts[kept, 0], parts[kept, 1], parts[kept, 2], parts[kept, 3] = low, high, before, after
            kept += 1
    if cut >= 0 and until > cut + 1e-9 and kept < MAX_PARTS:
        parts[kept, 0], parts[kept, 1], parts[kept, 2], parts[kept, 3] = cut, until, sphere, last
        kept += 1
    return kept


@njit(**PLAIN_CODE)
def arcs(centres, radii, first, others, first_atom, last_atom, out):
    """Write the arcs, outside of all other spheres, of the circles where two spheres intersect; return their number.

    The first sphere of each pair is in the given range, and the second has a larger index. A row of `out` (A, 16) holds
    the circle's centre, two unit vectors in its plane, its radius, the two angles of the arc, the two spheres, and the
    spheres at which the arc begins and ends (-1 for none). Arcs that do not fit into `out` are only counted.
    """
    result = 0
    parts = np.empty((MAX_PARTS, 4))
    u, v, along = np.empty(3), np.empty(3), np.empty(3)
    most = 0
    for a in range(first_atom, last_atom):
        most = max(most, first[a + 1] - first[a])
    # of each neighbour: its vector from the sphere, the square of that, and a constant of its radius
    x, y, z, squares, powers = np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    levels, rests = np.empty(most), np.empty(most)
    for a in range(first_atom, last_atom):
        count = first[a + 1] - first[a]
        for m in range(count):
            c = others[first[a] + m]
            x[m], y[m] = centres[c, 0] - centres[a, 0], centres[c, 1] - centres[a, 1]
            z[m] = centres[c, 2] - centres[a, 2]
            squares[m] = x[m] * x[m] + y[m] * y[m] + z[m] * z[m]
            powers[m] = radii[c] ** 2 - radii[a] ** 2 - squares[m]
        for m in range(count):
            b = others[first[a] + m]
            if b < a:
                continue
            apart = math.sqrt(squares[m])
            if apart < 1e-6 or apart <= abs(radii[a] - radii[b]):
                continue
            t = (squares[m] + radii[a] ** 2 - radii[b] ** 2) / (2 * apart)
            radius = radii[a] ** 2 - t * t
            if radius <= 1e-12:
                continue
            radius = math.sqrt(radius)
            axis_x, axis_y, axis_z = x[m] / apart, y[m] / apart, z[m] / apart
            # Sphere c buries what is beyond a line across the circle's plane. The distance of that line from the
            # centre, the level, and whether it cuts the circle depend only on the height of c along the axis.
            inverse, burying = 0.5 / radius, 0
            for n in range(count):
                height = axis_x * x[n] + axis_y * y[n] + axis_z * z[n]
                level = inverse * (powers[n] + 2 * t * height)
                rest = squares[n] - height * height - level * level
                levels[n], rests[n] = level, rest
                burying += (rest <= 0) & (level > 1e-12) & (n != m)  # all of the circle
            if burying:
                continue
            along[0], along[1], along[2] = axis_x, axis_y, axis_z
            least = 0
            for d in range(3):
                if abs(along[d]) < abs(along[least]):
                    least = d
            length = math.sqrt(1 - along[least] ** 2)
            for d in range(3):
                u[d] = ((1.0 if d == least else 0.0) - along[least] * along[d]) / length
            v[0] = along[1] * u[2] - along[2] * u[1]
            v[1] = along[2] * u[0] - along[0] * u[2]
            v[2] = along[0] * u[1] - along[1] * u[0]
            parts[0, 0], parts[0, 1], parts[0, 2], parts[0, 3], left = 0.0, 4.0, -1, -1, 1
            for c in range(count):  # nearest first, because few spheres bury most circles
                if rests[c] <= 0 or c == m:  # the sphere's surface does not cut the circle, or the circle is on it
                    continue
                level, rest = levels[c], math.sqrt(rests[c])
                to_x, to_y = -(x[c] * u[0] + y[c] * u[1] + z[c] * u[2]), -(x[c] * v[0] + y[c] * v[1] + z[c] * v[2])
                left = without(parts, left, turns(to_x * level - to_y * rest, to_y * level + to_x * rest),
                               turns(to_x * level + to_y * rest, to_y * level - to_x * rest), others[first[a] + c])
                if left == 0:
                    break
            for part in range(left):
                if result < len(out):
                    for d in range(3):
                        out[result, d] = centres[a, d] + t * along[d]
                        out[result, 3 + d], out[result, 6 + d] = u[d], v[d]
                    out[result, 9] = radius
                    out[result, 10], out[result, 11] = radians(parts[part, 0]), radians(parts[part, 1])
                    out[result, 12], out[result, 13] = a, b
                    out[result, 14], out[result, 15] = parts[part, 2], parts[part, 3]
                result += 1
    return result


@njit(**PLAIN_CODE)
def roll(rolled, probe, reach, origin, spacing, distances, first_plane, last_plane):
    """Raise signed distances in some planes to the depths of nodes in probes with centres on arcs (:func:`arcs`)."""
    _, ny, nz = distances.shape
    flat, places = distances.reshape(-1), np.empty(nz, np.float32)
    ends, middle = np.empty((2, 3)), np.empty(3)
    row, numbers = np.empty(5, np.float32), np.empty(9, np.float32)
    for n in range(len(rolled)):
        arc = rolled[n]
        widest = arc[9] + probe + reach
        if (arc[0] + widest - origin[0]) / spacing[0] < first_plane or (
                arc[0] - widest - origin[0]) / spacing[0] >= last_plane:
            continue
        pieces = max(1, math.ceil((arc[11] - arc[10]) / PIECE))
        half = 0.5 * (arc[11] - arc[10]) / pieces
        far = probe + reach + 2 * arc[9] * math.sin(0.5 * half)  # from the middle of a piece
        for piece in range(pieces):
            angle = arc[10] + (2 * piece + 1) * half
            to_x, to_y = math.cos(angle), math.sin(angle)
            for d in range(3):
                middle[d] = arc[d] + arc[9] * (to_x * arc[3 + d] + to_y * arc[6 + d])
            for e in range(2):
                t = angle + (2 * e - 1) * half
                for d in range(3):
                    ends[e, d] = arc[9] * (math.cos(t) * arc[3 + d] + math.sin(t) * arc[6 + d])
            numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] = arc[5], arc[8], arc[9], to_x, to_y
            numbers[5], numbers[6], numbers[7], numbers[8] = math.cos(half), ends[0, 2], ends[1, 2], probe
            begin = max(first_plane, math.ceil((middle[0] - far - origin[0]) / spacing[0]))
            end = min(last_plane, math.floor((middle[0] + far - origin[0]) / spacing[0]) + 1)
            j_begin = max(0, math.ceil((middle[1] - far - origin[1]) / spacing[1]))
            j_end = min(ny, math.floor((middle[1] + far - origin[1]) / spacing[1]) + 1)
            centre = (middle[2] - origin[2]) / spacing[2]
            for k in range(max(0, math.floor(centre - far / spacing[2]) - LANES),
                           min(nz, math.ceil(centre + far / spacing[2]) + LANES)):
                places[k] = k * spacing[2] + origin[2] - arc[2]
            for i in range(begin, end):
                off = i * spacing[0] + origin[0] - middle[0]
                left = far * far - off * off
                x = i * spacing[0] + origin[0] - arc[0]
                for j in range(j_begin, j_end):
                    off = j * spacing[1] + origin[1] - middle[1]
                    if left < off * off:
                        continue
                    y, reached = j * spacing[1] + origin[1] - arc[1], math.sqrt(left - off * off) / spacing[2]
                    row[0], row[1], row[2] = x * arc[3] + y * arc[4], x * arc[6] + y * arc[7], x * x + y * y
                    row[3] = (x - ends[0, 0]) ** 2 + (y - ends[0, 1]) ** 2
                    row[4] = (x - ends[1, 0]) ** 2 + (y - ends[1, 1]) ** 2
                    k, k_end = max(0, math.ceil(centre - reached)), min(nz, math.floor(centre + reached) + 1)
                    while k < k_end:
                        k = min(k, nz - LANES)
                        approach(flat, (i * ny + j) * nz + k, places, k, row, numbers)
                        k += LANES


@njit(**PLAIN_CODE)
def conductance(here, there, inside, own, other, between):
    """Return the permittivity of an edge, whose parts on both sides of the surface are in series.

    Its nodes are at the distances `here` and `there` from the surface. The permittivity of the solvent is `own` at the
    first node and `other` at the second, and `between` for an edge that is all in the solvent.
    """
    part = abs(here if here < 0 else there) / max(np.float32(1e-30), abs(here) + abs(there))
    outer = own if here >= 0 else other
    cut = inside * outer / (part * outer + (1 - part) * inside)
    return cut if (here < 0) != (there < 0) else (inside if here < 0 else between)


@njit(**PLAIN_CODE)
def edges(distances, inside, outside, weights, x, y, z, first_plane, last_plane):
    """Write the conductances of the edges from each node along x, y and z in some planes.

    The two parts of an edge that the surface cuts are in series. `outside` (nz,) is the permittivity of the solvent at
    each height; two halves in series give that of an edge along z in the solvent.
    """
    nx, ny, nz = distances.shape
    between = 2 / (1 / outside[:-1] + 1 / outside[1:])
    for i in range(first_plane, last_plane):
        for j in range(ny):
            here = distances[i, j]
            if i + 1 < nx:
                there, row = distances[i + 1, j], x[i, j]
                for k in range(nz):
                    row[k] = weights[0] * conductance(here[k], there[k], inside, outside[k], outside[k], outside[k])
            else:
                x[i, j] = 0
            if j + 1 < ny:
                there, row = distances[i, j + 1], y[i, j]
                for k in range(nz):
                    row[k] = weights[1] * conductance(here[k], there[k], inside, outside[k], outside[k], outside[k])
            else:
                y[i, j] = 0
            row = z[i, j]
            for k in range(nz - 1):
                row[k] = weights[2] * conductance(here[k], here[k + 1], inside, outside[k], outside[k + 1], between[k])
            row[nz - 1] = 0


@njit(**PLAIN_CODE)
def sides(distances, within, first_plane, last_plane):
    """Write which nodes of some planes are inside."""
    _, ny, nz = distances.shape
    for i in range(first_plane, last_plane):
        for j in range(ny):
            for k in range(nz):
                within[i, j, k] = distances[i, j, k] < 0


@njit(**PLAIN_CODE)
def ions(shares, within, factors, first_plane, last_plane):
    """Multiply the shares of cells that ions can reach by a factor for each height (nz,), and by 0 inside."""
    _, ny, nz = shares.shape
    for i in range(first_plane, last_plane):
        for j in range(ny):
            for k in range(nz):
                shares[i, j, k] = np.float32(0) if within[i, j, k] else shares[i, j, k] * factors[k]
