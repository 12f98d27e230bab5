"""Kernels of a molecule's region: signed distances of nodes to its surface, and what edges and nodes get from them.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}

#: Intervals of a circle that other spheres can bury, at most.
MOST = 512

#: Radians of an arc that share a box of nodes.
PIECE = 0.5


@njit(**PLAIN_CODE)
def stamp(centres, radii, reach, origin, spacing, depth, deepest, first_plane, last_plane):
    """Raise the depth (nx, ny, nz) in some planes to that in the sphere that is the deepest there, and note which.

    Nodes that are farther than `reach` outside of every sphere keep their value.
    """
    _, ny, nz = depth.shape
    squares = np.empty(nz, np.float32)
    for n in range(len(radii)):
        radius, far = np.float32(radii[n]), radii[n] + reach
        begin = max(first_plane, math.ceil((centres[n, 0] - far - origin[0]) / spacing[0]))
        end = min(last_plane, math.floor((centres[n, 0] + far - origin[0]) / spacing[0]) + 1)
        j_begin = max(0, math.ceil((centres[n, 1] - far - origin[1]) / spacing[1]))
        j_end = min(ny, math.floor((centres[n, 1] + far - origin[1]) / spacing[1]) + 1)
        k_begin = max(0, math.ceil((centres[n, 2] - far - origin[2]) / spacing[2]))
        k_end = min(nz, math.floor((centres[n, 2] + far - origin[2]) / spacing[2]) + 1)
        for k in range(k_begin, k_end):
            squares[k] = (k * spacing[2] + origin[2] - centres[n, 2]) ** 2
        for i in range(begin, end):
            x = i * spacing[0] + origin[0] - centres[n, 0]
            for j in range(j_begin, j_end):
                y = j * spacing[1] + origin[1] - centres[n, 1]
                square = np.float32(x * x + y * y)
                for k in range(k_begin, k_end):
                    here = radius - np.sqrt(square + squares[k])
                    if here > depth[i, j, k]:
                        depth[i, j, k] = here
                        deepest[i, j, k] = n


@njit(**PLAIN_CODE)
def neighbours(centres, radii, order, starts, low, side, counts, first, out, distances, fill, first_sphere,
               last_sphere):
    """Count, or with `fill` write, the spheres that meet each of some spheres, the nearest first.

    Spheres `order` are sorted into cubes of `side` from `low`, cube c holding those from starts[c] on; `first` (N,) is
    where each sphere's neighbours begin in `out` and `distances`.
    """
    nx, ny, nz = counts
    for a in range(first_sphere, last_sphere):
        result = 0
        begin = first[a] if fill else 0
        x, y, z = [int((centres[a, d] - low[d]) / side) for d in range(3)]
        for i in range(max(0, x - 1), min(nx, x + 2)):
            for j in range(max(0, y - 1), min(ny, y + 2)):
                for k in range(max(0, z - 1), min(nz, z + 2)):
                    cube = (i * ny + j) * nz + k
                    for m in range(starts[cube], starts[cube + 1]):
                        b = order[m]
                        square = 0.0
                        for d in range(3):
                            square += (centres[a, d] - centres[b, d]) ** 2
                        if b == a or square >= (radii[a] + radii[b]) ** 2:
                            continue
                        if fill:  # sorted as it comes
                            place = begin + result
                            while place > begin and distances[place - 1] > square:
                                distances[place], out[place] = distances[place - 1], out[place - 1]
                                place -= 1
                            distances[place], out[place] = square, b
                        result += 1
        if not fill:
            first[a + 1] = result


@njit(**PLAIN_CODE)
def project(centres, radii, first, others, origin, spacing, probe, reach, depth, deepest, first_plane, last_plane):
    """Replace depths in accessible spheres by signed distances to the molecular surface, negative inside.

    The way out of the deepest sphere is the shortest where it ends outside of all others. Where it does not, a node
    counts as `reach` inside, until :func:`roll` finds a probe that touches more than one atom.
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
def buried(x, y, z, squares, along, t, radius):
    """Return whether a circle around t `along` is inside one of spheres at (x, y, z), of radii of such squares.

    Without a branch, so that LLVM makes vectors of it.
    """
    inside = 0
    for c in range(len(x)):
        gx, gy, gz = t * along[0] - x[c], t * along[1] - y[c], t * along[2] - z[c]
        square = gx * gx + gy * gy + gz * gz
        off = gx * along[0] + gy * along[1] + gz * along[2]
        left = squares[c] - square - radius * radius
        inside |= (left > 2e-12 * radius) & (left * left >= 4 * radius * radius * (square - off * off))
    return inside != 0


@njit(**PLAIN_CODE)
def turns(x, y):
    """Return a number from 0 to 4 that grows with the angle of (x, y) and needs no trigonometry."""
    part = y / (abs(x) + abs(y))
    if x < 0:
        return 2 - part
    return part if part >= 0 else 4 + part


@njit(**PLAIN_CODE)
def radians(turn):
    """Return the angle of which :func:`turns` makes a number."""
    if turn >= 4:
        return 2 * math.pi
    quarter = math.floor(turn)
    part = turn - quarter
    return 0.5 * math.pi * quarter + math.atan2(part, 1 - part)


@njit(**PLAIN_CODE)
def arcs(centres, radii, first, others, first_atom, last_atom, out):
    """Write the arcs of circles between two spheres that are outside of all others; return how many there are.

    Of the circles of some atoms with those of larger numbers. A row of `out` (A, 12) is the circle's centre, two unit
    vectors in its plane, its radius and two angles; where there are more arcs than rows, those beyond are only counted.
    """
    result = 0
    begins, ends = np.empty(MOST), np.empty(MOST)
    u, v, middle, along = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    most = 0
    for a in range(first_atom, last_atom):
        most = max(most, first[a + 1] - first[a])
    near_x, near_y, near_z, near_squares = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    for a in range(first_atom, last_atom):
        count = first[a + 1] - first[a]
        for m in range(count):
            c = others[first[a] + m]
            near_x[m], near_y[m], near_z[m] = (centres[c, 0] - centres[a, 0], centres[c, 1] - centres[a, 1],
                                               centres[c, 2] - centres[a, 2])
            near_squares[m] = radii[c] ** 2
        for m in range(count):
            b = others[first[a] + m]
            if b < a:
                continue
            along[0], along[1], along[2] = near_x[m], near_y[m], near_z[m]
            square = along[0] ** 2 + along[1] ** 2 + along[2] ** 2
            apart = math.sqrt(square)
            if apart < 1e-6 or apart <= abs(radii[a] - radii[b]):
                continue
            t = (square + radii[a] ** 2 - radii[b] ** 2) / (2 * apart)
            radius = radii[a] ** 2 - t * t
            if radius <= 1e-12:
                continue
            radius = math.sqrt(radius)
            for d in range(3):
                along[d] /= apart
            own = near_squares[m]
            near_squares[m] = -1  # the circle is on it
            whole = buried(near_x[:count], near_y[:count], near_z[:count], near_squares[:count], along, t, radius)
            near_squares[m] = own
            if whole:  # as most circles are
                continue
            least = 0
            for d in range(3):
                middle[d] = centres[a, d] + t * along[d]
                if abs(along[d]) < abs(along[least]):
                    least = d
            length = math.sqrt(1 - along[least] ** 2)
            for d in range(3):
                u[d] = ((1.0 if d == least else 0.0) - along[least] * along[d]) / length
            v[0] = along[1] * u[2] - along[2] * u[1]
            v[1] = along[2] * u[0] - along[0] * u[2]
            v[2] = along[0] * u[1] - along[1] * u[0]
            cuts = 0
            for c in range(count):
                gx, gy, gz = t * along[0] - near_x[c], t * along[1] - near_y[c], t * along[2] - near_z[c]
                x, y = gx * u[0] + gy * u[1] + gz * u[2], gx * v[0] + gy * v[1] + gz * v[2]
                square = gx * gx + gy * gy + gz * gz
                level = (near_squares[c] - square - radius * radius) / (2 * radius)
                rest = x * x + y * y - level * level
                if rest <= 0 or c == m or cuts >= MOST - 2:  # the circle does not cut the sphere
                    continue
                rest = math.sqrt(rest)
                begin = turns(x * level - y * rest, y * level + x * rest)
                end = turns(x * level + y * rest, y * level - x * rest)
                begins[cuts], ends[cuts] = begin, end
                if end < begin:
                    begins[cuts], ends[cuts] = 0.0, end
                    cuts += 1
                    begins[cuts], ends[cuts] = begin, 4.0
                cuts += 1
            angle = 0.0
            while angle < 4 - 1e-9:
                until, next_cut = angle, 4.0
                for cut in range(cuts):
                    if begins[cut] <= angle:
                        until = max(until, ends[cut])
                    else:
                        next_cut = min(next_cut, begins[cut])
                if until == angle:  # no sphere buries what follows
                    until = next_cut
                    if until > angle + 1e-9:
                        if result < len(out):
                            for d in range(3):
                                out[result, d], out[result, 3 + d], out[result, 6 + d] = middle[d], u[d], v[d]
                            out[result, 9], out[result, 10], out[result, 11] = radius, radians(angle), radians(until)
                        result += 1
                angle = until
    return result


@njit(**PLAIN_CODE)
def roll(rolled, probe, reach, origin, spacing, distances, first_plane, last_plane):
    """Raise signed distances in some planes to those of probes whose centres are on arcs (:func:`arcs`)."""
    _, ny, nz = distances.shape
    far = probe + reach
    ends = np.empty((2, 3))
    for n in range(len(rolled)):
        arc = rolled[n]
        radius = arc[9]
        pieces = max(1, math.ceil((arc[11] - arc[10]) / PIECE))
        half = 0.5 * (arc[11] - arc[10]) / pieces
        bulge = radius * (1 - math.cos(half))
        cosine = math.cos(half)
        for piece in range(pieces):
            angle = arc[10] + (2 * piece + 1) * half
            for e in range(2):
                t = angle + (2 * e - 1) * half
                for d in range(3):
                    ends[e, d] = arc[d] + radius * (math.cos(t) * arc[3 + d] + math.sin(t) * arc[6 + d])
            begin = max(first_plane, math.ceil((min(ends[0, 0], ends[1, 0]) - bulge - far - origin[0]) / spacing[0]))
            end = min(last_plane, math.floor((max(ends[0, 0], ends[1, 0]) + bulge + far - origin[0]) / spacing[0]) + 1)
            j_begin = max(0, math.ceil((min(ends[0, 1], ends[1, 1]) - bulge - far - origin[1]) / spacing[1]))
            j_end = min(ny, math.floor((max(ends[0, 1], ends[1, 1]) + bulge + far - origin[1]) / spacing[1]) + 1)
            k_begin = max(0, math.ceil((min(ends[0, 2], ends[1, 2]) - bulge - far - origin[2]) / spacing[2]))
            k_end = min(nz, math.floor((max(ends[0, 2], ends[1, 2]) + bulge + far - origin[2]) / spacing[2]) + 1)
            to_x, to_y = math.cos(angle), math.sin(angle)
            for i in range(begin, end):
                x = i * spacing[0] + origin[0]
                for j in range(j_begin, j_end):
                    y = j * spacing[1] + origin[1]
                    for k in range(k_begin, k_end):
                        nearest = np.float32(probe) - distances[i, j, k]
                        if nearest <= 0:
                            continue
                        z = k * spacing[2] + origin[2]
                        q0, q1, q2 = x - arc[0], y - arc[1], z - arc[2]
                        a = q0 * arc[3] + q1 * arc[4] + q2 * arc[5]
                        b = q0 * arc[6] + q1 * arc[7] + q2 * arc[8]
                        across = math.sqrt(a * a + b * b)
                        if a * to_x + b * to_y >= across * cosine:
                            square = q0 * q0 + q1 * q1 + q2 * q2 + radius * (radius - 2 * across)
                        else:  # nearest to an end of the piece
                            square = min((x - ends[0, 0]) ** 2 + (y - ends[0, 1]) ** 2 + (z - ends[0, 2]) ** 2,
                                         (x - ends[1, 0]) ** 2 + (y - ends[1, 1]) ** 2 + (z - ends[1, 2]) ** 2)
                        if square < nearest * nearest:
                            distances[i, j, k] = np.float32(probe - math.sqrt(max(0.0, square)))


@njit(**PLAIN_CODE)
def edges(distances, inside, outside, weights, x, y, z, first_plane, last_plane):
    """Write the conductances of the edges from each node along x, y and z in some planes.

    The two parts of an edge that the surface cuts are in series; `outside` (nz,) is the permittivity of the solvent's
    side at each height, and of edges between nodes there the mean of both ends in series.
    """
    nx, ny, nz = distances.shape
    for i in range(first_plane, last_plane):
        for j in range(ny):
            for k in range(nz):
                here, own = distances[i, j, k], outside[k]
                for axis in range(3):
                    a, b, c = i + (axis == 0), j + (axis == 1), k + (axis == 2)
                    if a == nx or b == ny or c == nz:
                        value = 0.0
                    else:
                        there, other = distances[a, b, c], outside[c]
                        if here < 0 and there < 0:
                            value = inside
                        elif here >= 0 and there >= 0:
                            value = 2 / (1 / own + 1 / other)
                        else:
                            part = abs(here if here < 0 else there) / (abs(here) + abs(there))
                            value = 1 / (part / inside + (1 - part) / (own if here >= 0 else other))
                    if axis == 0:
                        x[i, j, k] = weights[0] * value
                    elif axis == 1:
                        y[i, j, k] = weights[1] * value
                    else:
                        z[i, j, k] = weights[2] * value


@njit(**PLAIN_CODE)
def refine(coarse, charged, coarse_within, first, ratio, within, out, first_plane, last_plane):
    """Write a coarse solution, interpolated trilinearly, to some planes of a finer lattice.

    Node 0 of that is node `first` of the coarse one. The solution is the potential outside, and that without `charged`
    inside; it is interpolated between nodes on the same side of the surface, where there are any.
    """
    _, ny, nz = out.shape
    scale = np.float32(1 / ratio)
    unit = np.float32(1)
    for i in range(first_plane, last_plane):
        a = first[0] + i // ratio
        ta = np.float32(i % ratio) * scale
        for j in range(ny):
            b = first[1] + j // ratio
            tb = np.float32(j % ratio) * scale
            for k in range(nz):
                c = first[2] + k // ratio
                tc = np.float32(k % ratio) * scale
                total, weight, other = np.float32(0), np.float32(0), np.float32(0)
                inside = within[i, j, k]
                for da in range(2):
                    wa = ta if da else unit - ta
                    for db in range(2):
                        wb = tb if db else unit - tb
                        for dc in range(2):
                            share = wa * wb * (tc if dc else unit - tc)
                            if share == 0:
                                continue
                            value = coarse[a + da, b + db, c + dc]
                            if coarse_within[a + da, b + db, c + dc] == inside:
                                total += share * value
                                weight += share
                            elif weight == 0:
                                own = charged[a + da, b + db, c + dc]
                                other += share * (value - own if inside else value + own)
                out[i, j, k] = total / weight if weight > 0 else other
