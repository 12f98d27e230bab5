"""Kernels that spread charges to a mesh and interpolate from it, by one of two bases.

``bspline``
    B-splines of even order p, which use p nodes along each axis (U. Essmann et al., J. Chem. Phys.
    103 (1995) 8577, eq. 4.1).
``node_weights``
    Linear blends of two polynomials of degree p - 2, each through the p - 1 nodes nearest to one of the two nodes
    around a point: they use p nodes, have a continuous slope, and reproduce the values at the nodes
    (D. J. Hardy, J. E. Stone, K. Schulten, Parallel Comput. 35 (2009) 164, for p = 4).

If the axes of lattice and mesh are parallel, interpolation is done axis by axis with a table of nodes and
weights for every plane of the lattice.

This file is run once for each set of the constants that it declares, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

#: Number of nodes along each axis that a charge is spread to, or a point is interpolated from.
ORDER: int
#: Basis functions: bspline or nodal.
BASIS: str
#: One of vmdpotential.engines.PRECISIONS.
PRECISION: str
#: Whether plain loops replace vector code.
PLAIN: bool

REAL = np.float32 if PRECISION == "single" else np.float64

FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}

CHUNK = 512  # number of values of a row that are interpolated together and stay in the first-level cache


# normalisation of the nodal basis: one over the product of differences between a node and the other inner nodes
SCALE = np.array([1.0 / math.prod(j - i for i in range(1, ORDER - 1) if i != j) for j in range(ORDER)])


@njit(**FAST)
def bspline(t, w):
    """Write the weights of the ORDER nodes around a point, a fraction t above the node below it."""
    w[0] = 1 - t
    w[1] = t
    for k in range(3, ORDER + 1):
        d = 1.0 / (k - 1)
        w[k - 1] = d * t * w[k - 2]
        for j in range(1, k - 1):
            w[k - 1 - j] = d * ((t + j) * w[k - 2 - j] + (k - j - t) * w[k - 1 - j])
        w[0] = d * (1 - t) * w[0]


@njit(**FAST)
def node_weights(t, w):
    """Write the weights of the ORDER nodes around a point, a fraction t above the node below it."""
    place = t + (ORDER // 2 - 1)
    for j in range(ORDER):
        value = SCALE[j]
        for i in range(1, ORDER - 1):
            if i != j:
                value *= place - i
        if j == 0:
            value *= 1 - t
        elif j == ORDER - 1:
            value *= t
        else:
            value *= (1 - t) * place / j + t * (ORDER - 1 - place) / (ORDER - 1 - j)
        w[j] = value


@njit(**FAST)
def bspline_slope(t, w, below):
    """Write the derivatives of the weights with respect to t; `below` (ORDER,) is scratch."""
    below[0] = 1 - t
    below[1] = t
    for k in range(3, ORDER):
        d = 1.0 / (k - 1)
        below[k - 1] = d * t * below[k - 2]
        for j in range(1, k - 1):
            below[k - 1 - j] = d * ((t + j) * below[k - 2 - j] + (k - j - t) * below[k - 1 - j])
        below[0] = d * (1 - t) * below[0]
    below[ORDER - 1] = 0.0
    w[0] = -below[0]
    for k in range(1, ORDER):
        w[k] = below[k - 1] - below[k]


@njit(**FAST)
def nodal_slope(t, w, below):
    """Write the derivatives of the weights with respect to t, by the product rule; `below` is not used."""
    place = t + (ORDER // 2 - 1)
    for j in range(ORDER):
        value, derivative = SCALE[j], 0.0
        for i in range(1, ORDER - 1):
            if i != j:
                value, derivative = value * (place - i), derivative * (place - i) + value
        blend, change = t, 1.0
        if j == 0:
            blend, change = 1 - t, -1.0
        elif j < ORDER - 1:
            left, right = 1.0 / j, 1.0 / (ORDER - 1 - j)
            blend = (1 - t) * place * left + t * (ORDER - 1 - place) * right
            change = (1 - t - place) * left + (ORDER - 1 - place - t) * right
        w[j] = derivative * blend + value * change


spline, slope = (bspline, bspline_slope) if BASIS == "bspline" else (node_weights, nodal_slope)


@njit(**FAST)
def weights_at(t, derivative, w, below):
    """Write the weights of the ORDER nodes around a point, or their derivatives."""
    if derivative:
        slope(t, w, below)
    else:
        spline(t, w)


@njit(**FAST)
def table(places, shape, nodes, weights):
    """Write nodes (P, ORDER), wrapped into the mesh, and weights (P, ORDER) for mesh coordinates along one axis."""
    w = np.empty(ORDER)
    for i in range(len(places)):
        base = math.floor(places[i])
        spline(places[i] - base, w)
        for k in range(ORDER):
            nodes[i, k] = (int(base) + k - (ORDER // 2 - 1)) % shape
            weights[i, k] = w[k]


@njit(**FAST)
def table_of_slopes(places, weights):
    """Write the derivatives of the weights of :func:`table`."""
    w = np.empty(ORDER)
    below = np.empty(ORDER)
    for i in range(len(places)):
        slope(places[i] - math.floor(places[i]), w, below)
        for k in range(ORDER):
            weights[i, k] = w[k]


if PLAIN:

    @njit(**FAST)
    def add_plane(nodes, first, lines, row, weight, weights):
        """Add a row of ORDER values times `weight` and `weights[j]` to the nodes from `first` + `lines[j]` on."""
        for j in range(ORDER):
            for k in range(ORDER):
                nodes[first + lines[j] + k] += weight * weights[j] * row[k]
else:
    from vmdpotential.engines.cpu.maps.filters import plane_adder

    add_plane = plane_adder(ORDER, 64)


@njit(**FAST)
def wrapped(node, count):
    """Return a node wrapped into the period; without a division if it is inside, as a division costs as much as a row.
    """
    return node if 0 <= node < count else node % count


@njit(**FAST)
def place(positions, origin, inverse, periodic, shape, places, block, blocks, first_atom, last_atom):
    """Write coordinates in mesh steps (N, 3), wrapped along periodic axes, and each atom's block of planes.

    With `blocks` 0 no blocks are written.
    """
    for n in range(first_atom, last_atom):
        x, y, z = positions[n, 0] - origin[0], positions[n, 1] - origin[1], positions[n, 2] - origin[2]
        for d in range(3):
            at = x * inverse[0, d] + y * inverse[1, d] + z * inverse[2, d]
            if periodic[d]:
                at -= shape[d] * math.floor(at / shape[d])
            places[n, d] = at
        if blocks > 0:
            block[n] = min(int(places[n, 0]), shape[0] - 1) * blocks // shape[0]


@njit(**FAST)
def sort(block, blocks):
    """Return the first position of each block (blocks + 1,) in the returned order of atoms (N,), a stable sort."""
    start = np.zeros(blocks + 1, np.int64)
    for n in range(len(block)):
        start[block[n] + 1] += 1
    for n in range(blocks):
        start[n + 1] += start[n]
    filled = start[:-1].copy()
    order = np.empty(len(block), np.int64)
    for n in range(len(block)):
        order[filled[block[n]]] = n
        filled[block[n]] += 1
    return start, order


@njit(**FAST)
def spread(places, charges, order, start, mesh, step, first_block, last_block):
    """Add the charges of every `step`-th block of planes to the mesh, which is float64 in every precision.

    Rounding of the charges to float32 would cause an error that is large compared with the potential far from charges.

    Atoms order[start[b] : start[b + 1]] are in block b. Blocks are at least ORDER planes thick, so that every second
    one can be spread at the same time.
    """
    nx, ny, nz = mesh.shape
    flat = mesh.ravel()
    wx, wy, wz = np.empty(ORDER), np.empty(ORDER), np.empty(ORDER)
    row = np.empty(ORDER)
    planes, lines = np.empty(ORDER, np.int64), np.empty(ORDER, np.int64)
    for block in range(first_block, last_block):
        for n in range(start[block * step], start[block * step + 1]):
            atom = order[n]
            x, y, z = places[atom, 0], places[atom, 1], places[atom, 2]
            bx, by, bz = math.floor(x), math.floor(y), math.floor(z)
            spline(x - bx, wx)
            spline(y - by, wy)
            spline(z - bz, wz)
            ix, iy, iz = int(bx) - (ORDER // 2 - 1), int(by) - (ORDER // 2 - 1), int(bz) - (ORDER // 2 - 1)
            for k in range(ORDER):
                row[k] = wz[k] * charges[atom]
                planes[k] = wrapped(ix + k, nx) * ny * nz
                lines[k] = wrapped(iy + k, ny) * nz
            if iz >= 0 and iz + ORDER <= nz:
                for i in range(ORDER):
                    add_plane(flat, planes[i] + iz, lines, row, wx[i], wy)
                continue
            for i in range(ORDER):
                for j in range(ORDER):
                    weight = wx[i] * wy[j]
                    for k in range(ORDER):
                        flat[planes[i] + lines[j] + wrapped(iz + k, nz)] += weight * row[k]


@njit(**FAST)
def along_rows(source, nodes, weights, out, first_row, last_row):
    """Interpolate along z: out[r, k] from source[r, :], rows first_row <= r < last_row."""
    for r in range(first_row, last_row):
        row = source[r]
        for k in range(out.shape[1]):
            total = REAL(0)
            for j in range(weights.shape[1]):
                total += weights[k, j] * row[nodes[k, j]]
            out[r, k] = total


@njit(**FAST)
def across_rows(source, nodes, weights, out, first_task, last_task):
    """Interpolate along the middle axis: out[a, k, c] from source[a, :, c]; a task is a chunk of c for one a."""
    chunks = (out.shape[2] + CHUNK - 1) // CHUNK
    total = np.empty(CHUNK, REAL)
    for task in range(first_task, last_task):
        a, first = task // chunks, task % chunks * CHUNK
        count = min(CHUNK, out.shape[2] - first)
        for k in range(out.shape[1]):
            for c in range(count):  # assigning slices would compile for seconds, because of the check of shapes
                total[c] = REAL(0)
            for j in range(0, weights.shape[1], 2):
                w0, w1 = weights[k, j], weights[k, j + 1]
                row0 = source[a, nodes[k, j], first : first + count]
                row1 = source[a, nodes[k, j + 1], first : first + count]
                for c in range(count):
                    total[c] += w0 * row0[c] + w1 * row1[c]
            for c in range(count):
                out[a, k, first + c] = total[c]


@njit(**FAST)
def slanted_b(source, start, step_y, step_z, derivative, out, first_row, last_row):
    """Interpolate along b of a slanted cell: out[a, j, k] at start + j step_y + k step_z in source[a, :, k]."""
    nb = source.shape[1]
    w, below = np.empty(ORDER), np.empty(ORDER)
    for a in range(first_row, last_row):
        for j in range(out.shape[1]):
            for k in range(out.shape[2]):
                place = start + j * step_y + k * step_z
                base = math.floor(place)
                weights_at(place - base, derivative, w, below)
                first = (int(base) - (ORDER // 2 - 1)) % nb
                total = REAL(0)
                for n in range(ORDER):
                    node = first + n
                    total += REAL(w[n]) * source[a, node - nb if node >= nb else node, k]
                out[a, j, k] = total


@njit(**FAST)
def slanted_a(source, start, step_x, step_y, step_z, derivative, out, first_plane, last_plane):
    """Interpolate along a of a slanted cell: out[i, j, k] from source[:, j, k]."""
    na = source.shape[0]
    w, below = np.empty(ORDER), np.empty(ORDER)
    for i in range(first_plane, last_plane):
        for j in range(out.shape[1]):
            for k in range(out.shape[2]):
                place = start + i * step_x + j * step_y + k * step_z
                base = math.floor(place)
                weights_at(place - base, derivative, w, below)
                first = (int(base) - (ORDER // 2 - 1)) % na
                total = REAL(0)
                for n in range(ORDER):
                    node = first + n
                    total += REAL(w[n]) * source[node - na if node >= na else node, j, k]
                out[i, j, k] = total


@njit(**FAST)
def gather(mesh, places, out, first_point, last_point):
    """Interpolate at points (P, 3) in mesh coordinates, out (P,) float64."""
    gather_along(mesh, places, -1, out, first_point, last_point)


@njit(**FAST)
def gather_along(mesh, places, along, out, first_point, last_point):
    """Interpolate at points (P, 3) in mesh coordinates, or the derivative by the coordinate of axis `along` if >= 0."""
    nx, ny, nz = mesh.shape
    wx, wy, wz, below = np.empty(ORDER), np.empty(ORDER), np.empty(ORDER), np.empty(ORDER)
    for n in range(first_point, last_point):
        x, y, z = places[n, 0], places[n, 1], places[n, 2]
        bx, by, bz = math.floor(x), math.floor(y), math.floor(z)
        weights_at(x - bx, along == 0, wx, below)
        weights_at(y - by, along == 1, wy, below)
        weights_at(z - bz, along == 2, wz, below)
        ix, iy, iz = int(bx) - (ORDER // 2 - 1), int(by) - (ORDER // 2 - 1), int(bz) - (ORDER // 2 - 1)
        total = 0.0
        for i in range(ORDER):
            for j in range(ORDER):
                line = mesh[(ix + i) % nx, (iy + j) % ny]
                part = 0.0
                for k in range(ORDER):
                    part += wz[k] * line[(iz + k) % nz]
                total += wx[i] * wy[j] * part
        out[n] = total


@njit(**FAST)
def multiply(spectrum, influence, first_y, count_y):
    """Multiply a part of a spectrum, (NX, y, NZ / 2 + 1) from y = first_y of count_y on, by the influence, in place.

    An influence that is even along x and y contains only their first halves.
    """
    nx = spectrum.shape[0]
    for i in range(nx):
        x = i if i < influence.shape[0] else nx - i
        for j in range(spectrum.shape[1]):
            y = first_y + j
            line, factor = spectrum[i, j], influence[x, y if y < influence.shape[1] else count_y - y]
            for k in range(spectrum.shape[2]):
                line[k] = line[k] * factor[k]
