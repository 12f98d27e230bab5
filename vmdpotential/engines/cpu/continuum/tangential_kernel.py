"""Kernels of the flow along a molecule's surface next to the nodes of the lattice.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}

#: Number of nodes whose polynomials are fitted together, so that LLVM vectorizes loops over them.
LANES = 64


@njit(**PLAIN_CODE)
def near_surface(within, distances, margin, reach, first_plane, last_plane):
    """Return the nodes of some planes that have inner and outer nodes among their 26 neighbours and themselves.

    Also returned are those of them that are outside, within `reach` of the surface. Nodes within `margin` of the faces
    of the lattice are left out.
    """
    nx, ny, nz = within.shape
    counts = np.empty(nz, np.uint8)
    size = max(0, last_plane - first_plane) * ny * nz
    nodes, outer, count, outer_count = np.empty(size, np.int64), np.empty(size, np.int64), 0, 0
    for i in range(max(first_plane, margin), min(last_plane, nx - margin)):
        for j in range(margin, ny - margin):
            counts[:] = 0
            for a in range(i - 1, i + 2):
                for b in range(j - 1, j + 2):
                    for k in range(nz):
                        counts[k] += np.uint8(within[a, b, k])
            inner = 0
            for k in range(nz):
                inner += counts[k]
            if inner == 0 or inner == 9 * nz:
                continue
            for k in range(margin, nz - margin):
                inner = counts[k - 1] + counts[k] + counts[k + 1]
                if 0 < inner < 27:
                    place = (i * ny + j) * nz + k
                    nodes[count] = place
                    count += 1
                    if not within[i, j, k] and distances[i, j, k] < reach:
                        outer[outer_count] = place
                        outer_count += 1
    return nodes[:count].copy(), outer[:outer_count].copy()


@njit(**PLAIN_CODE)
def add_moments(values):
    """Replace values (27, LANES) at (x, y, z), each -1, 0 or 1, by their sums times x^p y^q z^r, with powers up to 2.
    """
    for step in (1, 3, 9):
        for n in range(27):
            if n // step % 3:
                continue
            for m in range(LANES):
                a, b, c = values[n, m], values[n + step, m], values[n + 2 * step, m]
                values[n, m] = a + b + c
                values[n + step, m] = c - a
                values[n + 2 * step, m] = c + a


@njit(**PLAIN_CODE)
def fit(nodes, within, values, strides, order, nearer, terms, factors, product_terms, product_factors, stiffness,
        scales, few, enough, rows, out, first, last):
    """Fit polynomials of degree 2 to the values at the outer nodes among the 27 nodes around some outer nodes.

    Outer nodes behind a wall are not used: those that no path of outer nodes connects with the node in the middle.

    Parameters
    ----------
    nodes : (M,) int64
        Nodes as indices of flat arrays.
    within, values : flat
        Which nodes are inside, and the values.
    strides : (3,)
        Steps between nodes along the axes.
    order, nearer, terms, factors, product_terms, product_factors
        What the functions of tangential.py return.
    stiffness : (TERMS,) float32
        Regularisation of each coefficient.
    scales : (TERMS,) float32
        Factors of the coefficients in the result.
    few, enough : int
        Numbers of used nodes up to which coefficients are 0, and from which on they are not reduced.
    rows : flat int32
        Set to the index of each node in `nodes`, plus one.
    out : (M, TERMS - 1) float32
        The coefficients, but for the constant.
    first, last : int
        The range of nodes.
    """
    size = len(stiffness)
    used, changes = np.empty((27, LANES), np.float32), np.empty((27, LANES), np.float32)
    matrix, right = np.empty((size * size, LANES), np.float32), np.empty((size, LANES), np.float32)
    inverse, ratio = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for begin in range(first, last, LANES):
        for m in range(LANES):
            n = min(begin + m, last - 1)
            node = nodes[n]
            rows[node] = n + 1
            for i in range(3):
                for j in range(3):
                    row = node + (i - 1) * strides[0] + (j - 1) * strides[1] - 1
                    for k in range(3):
                        used[9 * i + 3 * j + k, m] = np.float32(0) if within[row + k] else np.float32(1)
                        changes[9 * i + 3 * j + k, m] = values[row + k] - values[node]
        for p in range(1, 27):
            n = order[p]
            a, b, c = nearer[n, 0], nearer[n, 1], nearer[n, 2]
            for m in range(LANES):
                used[n, m] *= max(used[a, m], max(used[b, m], used[c, m]))
        for n in range(27):
            for m in range(LANES):
                changes[n, m] *= used[n, m]
        add_moments(used)
        add_moments(changes)
        matrix[:] = 0
        right[:] = 0
        for p in range(len(terms)):
            i, n, factor = terms[p, 0], terms[p, 1], factors[p]
            for m in range(LANES):
                right[i, m] += factor * changes[n, m]
        for p in range(len(product_terms)):
            i, n, factor = product_terms[p, 0], product_terms[p, 1], product_factors[p]
            for m in range(LANES):
                matrix[i, m] += factor * used[n, m]
        for i in range(size):  # elimination, for the upper triangle of a symmetric matrix
            for m in range(LANES):
                matrix[i * size + i, m] += stiffness[i]
        for i in range(size):
            for m in range(LANES):
                inverse[m] = np.float32(1) / matrix[i * size + i, m]
            for j in range(i + 1, size):
                for m in range(LANES):
                    ratio[m] = matrix[i * size + j, m] * inverse[m]
                for k in range(j, size):
                    for m in range(LANES):
                        matrix[j * size + k, m] -= ratio[m] * matrix[i * size + k, m]
                for m in range(LANES):
                    right[j, m] -= ratio[m] * right[i, m]
        for i in range(size - 1, -1, -1):
            for k in range(i + 1, size):
                for m in range(LANES):
                    right[i, m] -= matrix[i * size + k, m] * right[k, m]
            for m in range(LANES):
                right[i, m] /= matrix[i * size + i, m]
        for m in range(min(LANES, last - begin)):
            weight = np.float32(min(1.0, max(0.0, (used[0, m] - few) / (enough - few))))
            for i in range(1, size):
                out[begin + m, i - 1] = right[i, m] * weight * scales[i]


@njit(**PLAIN_CODE)
def slope(coefficients, row, x, y, z, gradient):
    """Add the gradient of a polynomial of :func:`fit` at (x, y, z) from its node, A."""
    # of x y, y z, z x, x^2 - y^2, 2 z^2 - x^2 - y^2
    a, b, c = coefficients[row, 3], coefficients[row, 4], coefficients[row, 5]
    d, e = coefficients[row, 6], coefficients[row, 7]
    gradient[0] += coefficients[row, 0] + a * y + c * z + 2 * (d - e) * x
    gradient[1] += coefficients[row, 1] + a * x + b * z - 2 * (d + e) * y
    gradient[2] += coefficients[row, 2] + b * y + c * x + 4 * e * z


@njit(**PLAIN_CODE)
def outer_fraction(height, u, v):
    """Return the fraction of a rectangle where height + u s + v t > 0, with s and t from -1/2 to 1/2."""
    a, b = max(abs(u), abs(v), 1e-9), min(abs(u), abs(v))
    if 2 * abs(height) >= a + b:
        return 1.0 if height > 0 else 0.0
    b = max(b, 1e-9)
    far, near = 0.5 * (a + b), 0.5 * (a - b)
    c, d, e, f = height + far, height + near, height - near, height - far  # at the corners
    area = max(0.0, c) ** 2 - max(0.0, d) ** 2 - max(0.0, e) ** 2 + max(0.0, f) ** 2
    return min(1.0, max(0.0, area / (2 * a * b)))


@njit(**PLAIN_CODE)
def owner(node, rows, within, normal, strides):
    """Return one plus the row of the polynomial of a node's owner, at most 0 without one.

    The owner is the node if it is outside, else its outer neighbour in the direction of the normal there. All faces of
    an inner node's cell have the same owner, as what flows into the cell's part outside flows out again; its row is
    kept in `rows`.
    """
    if rows[node] != 0 or not within[node]:
        return rows[node]
    x = strides[0] if normal[0] > 0 else -strides[0]
    y = strides[1] if normal[1] > 0 else -strides[1]
    z = strides[2] if normal[2] > 0 else -strides[2]
    a, b, c = abs(normal[0]), abs(normal[1]), abs(normal[2])
    # steps along the axes by the size of the normal's components
    if a < b:
        a, b, x, y = b, a, y, x
    if a < c:
        a, c, x, z = c, a, z, x
    if b < c:
        b, c, y, z = c, b, z, y
    row = -1
    for step in (x, y, z, x + y, x + z, y + z, x + y + z):
        if not within[node + step]:
            row = rows[node + step]
            break
    rows[node] = row if row > 0 else -1
    return rows[node]


@njit(**PLAIN_CODE)
def rise(distances, node, strides, inverses, out):
    """Write the differences of the distances across a node, per spacing."""
    for d in range(3):
        out[d] = (np.float64(distances[node + strides[d]]) - distances[node - strides[d]]) * inverses[d]


@njit(**PLAIN_CODE)
def flows(nodes, outer, rows, coefficients, within, distances, strides, spacing, weights, inside, outside, first, last):
    """Return the flows (E,) that edges between nodes next to the surface lack.

    Also returned, before them, are the nodes (E,) that they enter and the nodes (E,) that they leave.

    Parameters
    ----------
    nodes, outer : (N,), (M,) int64
        The nodes next to the surface, and those that have polynomials.
    rows : flat int32
        Of each node in `outer`, one plus its row in `coefficients`; 0 elsewhere, where :func:`owner` writes.
    coefficients : (M, TERMS - 1) float32
    within, distances : flat
        Which nodes are inside, and distances to the surface.
    strides, spacing, weights : (3,)
        Steps between nodes along the axes, A between them, and conductances of an edge of the permittivity 1.
    inside, outside : float, (nz,) float64
        Permittivities of the molecule, and around it at each height.
    first, last : int
        The range of `nodes`.
    """
    size = 6 * (last - first)
    into, out_of, out = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    result, heights, inverses = 0, strides[1], 1 / spacing
    normal, gradient, middle, shift = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    here, there = np.empty(3), np.empty(3)
    for n in range(first, last):
        p, known = nodes[n], False
        k = p % heights
        for axis in range(3):
            q = p + strides[axis]
            u, v = (axis + 1) % 3, (axis + 2) % 3
            distance = 0.5 * (np.float64(distances[p]) + distances[q])
            if 4 * distance * distance >= spacing[u] ** 2 + spacing[v] ** 2:  # the surface does not meet the face
                continue
            if not known:
                rise(distances, p, strides, inverses, here)
                known = True
            rise(distances, q, strides, inverses, there)
            length = 0.0
            for d in range(3):
                normal[d] = here[d] + there[d]
                length += normal[d] ** 2
            length = 1 / max(math.sqrt(length), 1e-9)
            for d in range(3):
                normal[d] *= length
            free = outer_fraction(distance, normal[u] * spacing[u], normal[v] * spacing[v])
            lacks = free - (not within[p] and not within[q])
            cut = within[p] != within[q]
            if lacks == 0 and not cut:
                continue
            i, j = owner(p, rows, within, here, strides) - 1, owner(q, rows, within, there, strides) - 1
            if i < 0 or j < 0:
                continue
            around = outside[k] if axis < 2 else 0.5 * (outside[k] + outside[k + 1])
            if i != j and lacks != 0:
                a, b = outer[i], outer[j]
                for d in range(3):  # from p to the point of the surface next to the face
                    middle[d] = (0.5 * spacing[d] if d == axis else 0.0) - distance * normal[d]
                gradient[:] = 0.0
                steps(a - p, strides, spacing, shift)
                slope(coefficients, i, middle[0] - shift[0], middle[1] - shift[1], middle[2] - shift[2], gradient)
                steps(b - p, strides, spacing, shift)
                slope(coefficients, j, middle[0] - shift[0], middle[1] - shift[1], middle[2] - shift[2], gradient)
                across = gradient[0] * normal[0] + gradient[1] * normal[1] + gradient[2] * normal[2]
                along = 0.5 * (gradient[axis] - across * normal[axis])
                into[result], out_of[result] = a, b
                out[result] = weights[axis] * (around - inside) * spacing[axis] * lacks * along
                result += 1
            if cut:
                inner, end, row = (p, q, j) if within[p] else (q, p, i)
                share = abs(distances[end]) / (abs(distances[p]) + abs(distances[q]))  # of the edge, outside
                for d in range(3):  # from the outer node to the surface
                    shift[d] = 0.0
                shift[axis] = (-share if end == q else share) * spacing[axis]
                gradient[:] = 0.0
                slope(coefficients, row, shift[0], shift[1], shift[2], gradient)
                across = gradient[0] * normal[0] + gradient[1] * normal[1] + gradient[2] * normal[2]
                along = gradient[axis] - across * normal[axis]
                own = outside[k + 1 if end == q and axis == 2 else k]
                conductance = weights[axis] * inside * own / ((1 - share) * own + share * inside)
                into[result], out_of[result] = inner, end
                out[result] = conductance * (1 - inside / around) * shift[axis] * along
                result += 1
    return into[:result].copy(), out_of[:result].copy(), out[:result].copy()


@njit(**PLAIN_CODE)
def steps(offset, strides, spacing, shift):
    """Write the vector, A, of an offset in flat arrays to a node at most two steps away along each axis."""
    for d in range(3):
        step = strides[d]
        half = step // 2 if d < 2 else 0
        count = (offset > half) + (offset > half + step) - (offset < -half) - (offset < -half - step)
        offset -= count * step
        shift[d] = count * spacing[d]
