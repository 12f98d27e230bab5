"""Kernels of the flow along a molecule's surface next to the nodes of the lattice.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}

#: Number of coefficients of a fitted polynomial: a constant, the gradient, and the harmonic second degree.
TERMS = 9


@njit(**PLAIN_CODE)
def near_surface(within, margin, near, first_plane, last_plane):
    """Write which nodes of some planes have inner and outer nodes among their 26 neighbours and themselves.

    Nodes within `margin` of the faces of the lattice are left out.
    """
    nx, ny, nz = within.shape
    counts = np.empty(nz, np.uint8)
    for i in range(max(first_plane, margin), min(last_plane, nx - margin)):
        for j in range(margin, ny - margin):
            counts[:] = 0
            for a in range(i - 1, i + 2):
                for b in range(j - 1, j + 2):
                    line = within[a, b]
                    for k in range(nz):
                        counts[k] += line[k]
            for k in range(margin, nz - margin):
                inner = counts[k - 1] + counts[k] + counts[k + 1]
                near[i, j, k] = 0 < inner < 27


@njit(**PLAIN_CODE)
def fit(nodes, within, values, offsets, nearer, basis, products, stiffness, few, enough, out, first, last):
    """Fit polynomials of degree 2 to the values at the outer nodes among the 27 nodes around some outer nodes.

    Outer nodes behind a wall are not used: those that no path of outer nodes connects with the node in the middle.

    Parameters
    ----------
    nodes : (M,) int64
        Nodes as indices of flat arrays.
    within, values : flat
        Which nodes are inside, and the values.
    offsets : (27,) int64
        Of the nodes around a node, in flat arrays, nearer ones first.
    nearer : (27, 3) int64
        The rows of the neighbours of each that are nearer to the middle.
    basis : (27, TERMS) float64
        The basis polynomials at these.
    products : (27, TERMS * TERMS) float64
        Their products with each other.
    stiffness : (TERMS,) float64
        Regularisation of each coefficient.
    few, enough : int
        Numbers of used nodes up to which coefficients are 0, and from which on they are not reduced.
    out : (M, TERMS) float64
        The coefficients.
    first, last : int
        The range of nodes.
    """
    sums, right, used = np.empty(TERMS * TERMS), np.empty(TERMS), np.empty(27, np.bool_)
    matrix = sums.reshape(TERMS, TERMS)
    for m in range(first, last):
        node = nodes[m]
        middle = np.float64(values[node])
        sums[:] = 0.0
        right[:] = 0.0
        count = 0
        for n in range(27):
            other = node + offsets[n]
            used[n] = not within[other] and (n == 0 or used[nearer[n, 0]] or used[nearer[n, 1]] or used[nearer[n, 2]])
            if not used[n]:
                continue
            count += 1
            change = values[other] - middle
            for i in range(TERMS):
                right[i] += change * basis[n, i]
            for i in range(TERMS * TERMS):
                sums[i] += products[n, i]
        for i in range(TERMS):  # Cholesky
            matrix[i, i] += stiffness[i]
            for k in range(i):
                matrix[i, i] -= matrix[i, k] * matrix[i, k]
            inverse = 1 / math.sqrt(matrix[i, i])
            for j in range(i + 1, TERMS):
                for k in range(i):
                    matrix[j, i] -= matrix[j, k] * matrix[i, k]
                matrix[j, i] *= inverse
            matrix[i, i] = inverse
            for k in range(i):
                right[i] -= matrix[i, k] * right[k]
            right[i] *= inverse
        for i in range(TERMS - 1, -1, -1):
            for k in range(i + 1, TERMS):
                right[i] -= matrix[k, i] * right[k]
            right[i] *= matrix[i, i]
            out[m, i] = right[i] * min(1.0, max(0.0, (count - few) / (enough - few)))


@njit(**PLAIN_CODE)
def slope(coefficients, unit, x, y, z, gradient):
    """Add the gradient of a polynomial of :func:`fit` at (x, y, z) from its node, in A; `unit` A are its length."""
    x, y, z = x / unit, y / unit, z / unit
    a, b, c, d, e = coefficients[4:]  # of x y, y z, z x, x^2 - y^2, 2 z^2 - x^2 - y^2
    gradient[0] += (coefficients[1] + a * y + c * z + 2 * (d - e) * x) / unit
    gradient[1] += (coefficients[2] + a * x + b * z - 2 * (d + e) * y) / unit
    gradient[2] += (coefficients[3] + b * y + c * x + 4 * e * z) / unit


@njit(**PLAIN_CODE)
def outer_fraction(height, u, v):
    """Return the fraction of a rectangle where height + u s + v t > 0, with s and t from -1/2 to 1/2."""
    a, b = max(abs(u), abs(v), 1e-9), min(abs(u), abs(v))
    if 2 * abs(height) >= a + b:
        return 1.0 if height > 0 else 0.0
    b = max(b, 1e-9)
    area = 0.0
    for sign, corner in ((1, a + b), (-1, a - b), (-1, b - a), (1, -a - b)):
        area += sign * max(0.0, height + 0.5 * corner) ** 2
    return min(1.0, max(0.0, area / (2 * a * b)))


@njit(**PLAIN_CODE)
def owner(node, within, normal, strides):
    """Return the node if it is outside, or its outer neighbour in the direction of the normal there, or -1.

    All faces of an inner node's cell have the same owner, as what flows into the cell's part outside flows out again.
    """
    if not within[node]:
        return node
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
    for step in (x, y, z, x + y, x + z, y + z, x + y + z):
        if not within[node + step]:
            return node + step
    return -1


@njit(**PLAIN_CODE)
def flows(nodes, rows, coefficients, within, distances, strides, spacing, unit, weights, inside, outside, x, y, z,
          ends, out, first, last):
    """Write the flows that edges between nodes next to the surface lack; return their number.

    Parameters
    ----------
    nodes : (N,) int64
        The nodes next to the surface.
    rows : flat int32
        Of each outer node next to the surface, the row of its polynomial in `coefficients`; -1 elsewhere.
    coefficients : (M, TERMS) float64
    within, distances, x, y, z : flat
        Which nodes are inside, distances to the surface, and conductances of the edges from each node.
    strides, spacing, weights : (3,)
        Steps between nodes along the axes, A between them, and conductances of an edge of the permittivity 1.
    unit : float, A
        Length of the polynomials.
    inside, outside : float, (nz,) float64
        Permittivities of the molecule, and around it at each height.
    ends, out : (E, 2), (E,)
        The node that a flow enters and the one that it leaves, and the flow.
    first, last : int
        The range of `nodes`.
    """
    result, heights = 0, strides[1]
    normal, gradient, middle, shift = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    here, there = np.empty(3), np.empty(3)
    for n in range(first, last):
        p = nodes[n]
        for axis in range(3):
            q = p + strides[axis]
            u, v = (axis + 1) % 3, (axis + 2) % 3
            distance = 0.5 * (np.float64(distances[p]) + distances[q])
            if 4 * distance * distance >= spacing[u] ** 2 + spacing[v] ** 2:  # the surface does not meet the face
                continue
            length = 0.0
            for d in range(3):
                s = strides[d]
                here[d] = (np.float64(distances[p + s]) - distances[p - s]) / spacing[d]
                there[d] = (np.float64(distances[q + s]) - distances[q - s]) / spacing[d]
                normal[d] = here[d] + there[d]
                length += normal[d] ** 2
            length = max(math.sqrt(length), 1e-9)
            for d in range(3):
                normal[d] /= length
            free = outer_fraction(distance, normal[u] * spacing[u], normal[v] * spacing[v])
            lacks = free - (not within[p] and not within[q])
            cut = within[p] != within[q]
            if lacks == 0 and not cut:
                continue
            a, b = owner(p, within, here, strides), owner(q, within, there, strides)
            if a < 0 or b < 0 or rows[a] < 0 or rows[b] < 0:
                continue
            i, j = rows[a], rows[b]
            k = p % heights
            around = outside[k] if axis < 2 else 0.5 * (outside[k] + outside[k + 1])
            for d in range(3):  # from p to the point of the surface next to the face
                middle[d] = (0.5 * spacing[d] if d == axis else 0.0) - distance * normal[d]
            if a != b and lacks != 0:
                gradient[:] = 0.0
                for row, node in ((i, a), (j, b)):
                    steps(node - p, strides, spacing, shift)
                    slope(coefficients[row], unit, middle[0] - shift[0], middle[1] - shift[1], middle[2] - shift[2],
                          gradient)
                across = gradient[0] * normal[0] + gradient[1] * normal[1] + gradient[2] * normal[2]
                along = 0.5 * (gradient[axis] - across * normal[axis])
                ends[result, 0], ends[result, 1] = a, b
                out[result] = weights[axis] * (around - inside) * spacing[axis] * lacks * along
                result += 1
            if cut:
                inner, end, row = (p, q, j) if within[p] else (q, p, i)
                share = abs(distances[end]) / (abs(distances[p]) + abs(distances[q]))  # of the edge, outside
                for d in range(3):  # from the outer node to the surface
                    shift[d] = 0.0
                shift[axis] = (-share if end == q else share) * spacing[axis]
                gradient[:] = 0.0
                slope(coefficients[row], unit, shift[0], shift[1], shift[2], gradient)
                across = gradient[0] * normal[0] + gradient[1] * normal[1] + gradient[2] * normal[2]
                along = gradient[axis] - across * normal[axis]
                conductance = x[p] if axis == 0 else (y[p] if axis == 1 else z[p])
                ends[result, 0], ends[result, 1] = inner, end
                out[result] = conductance * (1 - inside / around) * shift[axis] * along
                result += 1
    return result


@njit(**PLAIN_CODE)
def steps(offset, strides, spacing, shift):
    """Write the vector, A, of an offset in flat arrays to a node at most two steps away along each axis."""
    for d in range(3):
        count = math.floor(offset / strides[d] + 0.5) if d < 2 else offset
        offset -= count * strides[d]
        shift[d] = count * spacing[d]
