"""Kernels of the edges that a molecule's surface cuts, and of what flows into their ends.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}


@njit(**PLAIN_CODE)
def count_cut(distances, numbers, first_plane, last_plane):
    """Write to `numbers` (nx ny,) how many edges from the nodes of each row the surface cuts."""
    nx, ny, nz = distances.shape
    for i in range(first_plane, last_plane):
        for j in range(ny):
            count = 0
            here = distances[i, j]
            next_plane, next_row = distances[min(i + 1, nx - 1), j], distances[i, min(j + 1, ny - 1)]
            for k in range(nz):
                inside = here[k] < 0
                count += (inside != (next_plane[k] < 0)) + (inside != (next_row[k] < 0))
            for k in range(nz - 1):
                count += (here[k] < 0) != (here[k + 1] < 0)
            numbers[i * ny + j] = count


@njit(**PLAIN_CODE)
def cut(distances, x, y, z, own, phi, begins, inner, outer, shares, conductances, inside, line, first_plane,
        last_plane):
    """Write the edges from the nodes of some planes that the surface cuts.

    Those of row j of plane i begin at begins[i ny + j].

    Parameters
    ----------
    distances : (nx, ny, nz)
        To the surface, negative inside.
    x, y, z : (nx, ny, nz)
        Conductances.
    own : (3,)
        Conductances along the axes inside.
    phi : (nx + 2, ny + 2, nz + 2)
        The potential of the charges, with one more node on each side.
    begins, inner, outer, shares, conductances, inside, line, first_plane, last_plane
        The result, which :class:`~vmdpotential.continuum.jump.CutEdges` describes, and the range of planes.
    """
    nx, ny, nz = distances.shape
    for i in range(first_plane, last_plane):
        for j in range(ny):
            n = begins[i * ny + j]
            if n == begins[i * ny + j + 1]:
                continue
            here = distances[i, j]
            next_plane, next_row = distances[min(i + 1, nx - 1), j], distances[i, min(j + 1, ny - 1)]
            for k in range(nz):
                a = here[k]
                others = next_plane[k], next_row[k], here[min(k + 1, nz - 1)]
                if (a < 0) == (others[0] < 0) and (a < 0) == (others[1] < 0) and (a < 0) == (others[2] < 0):
                    continue
                for axis in range(3):
                    b = others[axis]
                    if (a < 0) == (b < 0):
                        continue
                    u, v, w = axis == 0, axis == 1, axis == 2
                    low, high = (i * ny + j) * nz + k, ((i + u) * ny + j + v) * nz + k + w
                    inner[n], outer[n] = (low, high) if a < 0 else (high, low)
                    shares[n] = np.float64(abs(a if a < 0 else b)) / np.float64(abs(a) + abs(b))
                    conductances[n] = x[i, j, k] if axis == 0 else (y[i, j, k] if axis == 1 else z[i, j, k])
                    inside[n] = own[axis]
                    for m in range(4):
                        step = m if a < 0 else 3 - m  # from the node before the edge in space
                        line[n, m] = phi[i + 1 + (step - 1) * u, j + 1 + (step - 1) * v, k + 1 + (step - 1) * w]
                    n += 1


@njit(**PLAIN_CODE)
def flows(shares, conductances, inside, known, into_inner, into_outer, first, last):
    """Write what flows into the inner and the outer end of some edges.

    Parameters
    ----------
    shares, conductances, inside : (E,)
        Of :class:`~vmdpotential.continuum.jump.CutEdges`.
    known : (4, E)
        Value, slope, bend and flow of phi_c.
    into_inner, into_outer, first, last
        The result (E,), and the range of edges.
    """
    for n in range(first, last):
        t, e, eps, slope = shares[n], conductances[n], inside[n], known[1, n]
        # e times this is what flows less where the potential is a straight line on both sides of the surface, but for
        # the charges' own; outside that bends by the ratio of the permittivities
        jump = e * (known[0, n] - t * slope + 0.5 * (eps / e - t) * (1 - t) * known[2, n]) + eps * slope
        into_inner[n], into_outer[n] = -jump, jump - eps * known[3, n]


@njit(**PLAIN_CODE)
def outer_charges(positions, charges, origin, spacing, distances, first, last):
    """Return the nodes in whose cells charges outside are, as places in a flat array, and these charges.

    `positions` (N, 3) and `charges` (N,) count from index `first` up to but excluding `last`.
    """
    nx, ny, nz = distances.shape
    places, chosen, count = np.empty(last - first, np.int64), np.empty(last - first), 0
    for n in range(first, last):
        if charges[n] == 0:
            continue
        i = int(np.rint((positions[n, 0] - origin[0]) / spacing[0]))
        j = int(np.rint((positions[n, 1] - origin[1]) / spacing[1]))
        k = int(np.rint((positions[n, 2] - origin[2]) / spacing[2]))
        if 0 <= i < nx and 0 <= j < ny and 0 <= k < nz and distances[i, j, k] >= 0:
            places[count] = (i * ny + j) * nz + k
            chosen[count] = charges[n]
            count += 1
    return places[:count].copy(), chosen[:count].copy()


@njit(**PLAIN_CODE)
def sums(lists, shape, first_plane, last_plane):
    """Return the nodes of some planes with flows, each once and increasing, and the sums of the flows into them.

    Nodes on the faces of the lattice are left out. Each of `lists` is an array of nodes, as places in a flat array, and
    one of flows into them.
    """
    nx, ny, nz = shape
    plane, begin, count = ny * nz, first_plane * ny * nz, (last_plane - first_plane) * ny * nz
    ends = np.zeros(last_plane - first_plane + 1, np.int64)  # of the flows into each plane, which are summed in turn
    for m in range(len(lists)):
        nodes, _ = lists[m]
        for n in range(len(nodes)):
            place = nodes[n] - begin
            if 0 <= place < count:
                ends[place // plane + 1] += 1
    for i in range(len(ends) - 1):
        ends[i + 1] += ends[i]
    places, values, total = np.empty(ends[-1], np.int64), np.empty(ends[-1]), np.zeros(plane)
    for m in range(len(lists) - 1, -1, -1):
        nodes, flows = lists[m]
        for n in range(len(nodes) - 1, -1, -1):
            place = nodes[n] - begin
            if 0 <= place < count:
                i = place // plane
                ends[i + 1] -= 1
                places[ends[i + 1]], values[ends[i + 1]] = place - i * plane, flows[n]
    result, parts, filled, start = np.empty(len(places), np.int64), np.empty(len(places)), 0, 0
    for i in range(first_plane, last_plane):
        stop = ends[i - first_plane + 2] if i + 1 < last_plane else len(places)
        for n in range(start, stop):
            total[places[n]] += values[n]
        for j in range(1, ny - 1 if start < stop and 0 < i < nx - 1 else 1):
            for k in range(j * nz + 1, j * nz + nz - 1):
                if total[k] != 0:
                    result[filled], parts[filled] = i * plane + k, total[k]
                    filled += 1
        for n in range(start, stop):
            total[places[n]] = 0
        start = stop
    return result[:filled].copy(), parts[:filled].copy()
