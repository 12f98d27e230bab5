"""Kernels of the potential of one charge and all its periodic images at arbitrary points, in float64.

This file is run once for each set of the constants that it declares, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

from vmdpotential.engines.cpu.scalar import scalar
from vmdpotential.interactions.program import Program

#: The traced radial function.
PROGRAM: Program
#: One of vmdpotential.engines.PRECISIONS.
PRECISION: str
#: Whether pairs beyond the cutoff must be masked.
MASKED: bool
#: Whether plain loops replace vector code.
PLAIN: bool

assert PRECISION == "double"
BLOCK = 64  # number of points that are summed together over all atoms

FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}
FLAT = {**FAST, "inline": "always"}


radial = scalar(PROGRAM, np.float64)


@njit(**FLAT)
def nearest(px, py, pz, count, x, y, z, basis, inverse, shifts, dx, dy, dz, r2):
    """Write the squared distances of points to the nearest image of an atom; dx, dy and dz are scratch.

    basis (3, 3): lattice vectors as rows, inverse its inverse. shifts (S, 3): displacements to images
    that may be nearer than the rounded one.
    """
    for i in range(count):
        a, b, c = px[i] - x, py[i] - y, pz[i] - z
        u = np.rint(a * inverse[0, 0] + b * inverse[1, 0] + c * inverse[2, 0])
        v = np.rint(a * inverse[0, 1] + b * inverse[1, 1] + c * inverse[2, 1])
        w = np.rint(a * inverse[0, 2] + b * inverse[1, 2] + c * inverse[2, 2])
        a -= u * basis[0, 0] + v * basis[1, 0] + w * basis[2, 0]
        b -= u * basis[0, 1] + v * basis[1, 1] + w * basis[2, 1]
        c -= u * basis[0, 2] + v * basis[1, 2] + w * basis[2, 2]
        dx[i], dy[i], dz[i] = a, b, c
        r2[i] = a * a + b * b + c * c
    for k in range(len(shifts)):
        sx, sy, sz = shifts[k, 0], shifts[k, 1], shifts[k, 2]
        for i in range(count):
            a, b, c = dx[i] + sx, dy[i] + sy, dz[i] + sz
            r2[i] = min(r2[i], a * a + b * b + c * c)


@njit(**FLAT)
def cubic(t):
    """Return the cubic B-spline weights of the 4 nodes around a point, a fraction t above the second node."""
    s = 1 - t
    return s * s * s / 6, (4 - 3 * t * t * (2 - t)) / 6, (4 - 3 * s * s * (2 - s)) / 6, t * t * t / 6


if PLAIN:

    @njit(**FLAT)
    def weighted(smooth, at, wa, wb, wc):
        """Return the weighted sum of the 4^3 nodes from index `at` on."""
        values, plane, row = smooth.ravel(), smooth.shape[1] * smooth.shape[2], smooth.shape[2]
        total = 0.0
        for j in range(4):
            for k in range(4):
                for n in range(4):
                    total += wa[j] * wb[k] * wc[n] * values[at + j * plane + k * row + n]
        return total

else:
    from vmdpotential.engines.cpu.maps.filters import weighted


@njit(**FAST)
def add_charge(px, py, pz, x, y, z, q, basis, inverse, shifts, values, soft2, cutoff2, smooth, out, first_block,
               last_block):
    """Add the potential of one charge with all its periodic images to the points of some blocks.

    The radial function ends at a cutoff within which only the nearest image can be. The smooth part has the
    coefficients `smooth` of cubic B-splines on a mesh over the cell, for a charge at its corner; the mesh is continued
    periodically by one node before the first and two nodes after the last.
    """
    dx, dy, dz, r2 = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    ux, uy, uz, at = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK, np.int64)
    wa, wb, wc = np.empty((4, BLOCK)), np.empty((4, BLOCK)), np.empty((4, BLOCK))
    na, nb, nc = smooth.shape[0] - 3, smooth.shape[1] - 3, smooth.shape[2] - 3
    row, plane = smooth.shape[2], smooth.shape[1] * smooth.shape[2]
    for block in range(first_block, last_block):
        first = block * BLOCK
        count = min(BLOCK, len(px) - first)
        bx, by, bz = px[first : first + count], py[first : first + count], pz[first : first + count]
        sums = out[first : first + count]
        for i in range(count):
            a, b, c = bx[i] - x, by[i] - y, bz[i] - z
            u = a * inverse[0, 0] + b * inverse[1, 0] + c * inverse[2, 0]
            v = a * inverse[0, 1] + b * inverse[1, 1] + c * inverse[2, 1]
            w = a * inverse[0, 2] + b * inverse[1, 2] + c * inverse[2, 2]
            u, v, w = u - np.rint(u), v - np.rint(v), w - np.rint(w)
            a = u * basis[0, 0] + v * basis[1, 0] + w * basis[2, 0]
            b = u * basis[0, 1] + v * basis[1, 1] + w * basis[2, 1]
            c = u * basis[0, 2] + v * basis[1, 2] + w * basis[2, 2]
            dx[i], dy[i], dz[i] = a, b, c
            r2[i] = a * a + b * b + c * c
            ux[i], uy[i], uz[i] = (u + (u < 0)) * na, (v + (v < 0)) * nb, (w + (w < 0)) * nc
        for k in range(len(shifts)):
            sx, sy, sz = shifts[k, 0], shifts[k, 1], shifts[k, 2]
            for i in range(count):
                a, b, c = dx[i] + sx, dy[i] + sy, dz[i] + sz
                r2[i] = min(r2[i], a * a + b * b + c * c)
        for i in range(count):
            # a fractional coordinate may round up to 1
            ia, ib, ic = min(np.floor(ux[i]), na - 1.0), min(np.floor(uy[i]), nb - 1.0), min(np.floor(uz[i]), nc - 1.0)
            at[i] = np.int64(ia * plane + ib * row + ic)
            wa[0, i], wa[1, i], wa[2, i], wa[3, i] = cubic(ux[i] - ia)
            wb[0, i], wb[1, i], wb[2, i], wb[3, i] = cubic(uy[i] - ib)
            wc[0, i], wc[1, i], wc[2, i], wc[3, i] = cubic(uz[i] - ic)
        for i in range(count):
            s = max(r2[i], soft2)
            term = radial(s, 1 / np.sqrt(s), values)
            sums[i] += q * (term if r2[i] < cutoff2 else 0.0)
        for i in range(count):
            sums[i] += q * weighted(smooth, at[i], (wa[0, i], wa[1, i], wa[2, i], wa[3, i]),
                                    (wb[0, i], wb[1, i], wb[2, i], wb[3, i]),
                                    (wc[0, i], wc[1, i], wc[2, i], wc[3, i]))


@njit(**FAST)
def add_short_range(px, py, pz, start, centres, radius, x, y, z, q, basis, inverse, shifts, values, soft2, cutoff2, out,
                    first_bin, last_bin):
    """Add the short-range part of the potential of one charge to the points of some bins.

    Points start[b] : start[b + 1] are in bin b, within `radius` of its centre; centres is (3, B). Other parameters are
    those of :func:`add_charge`.
    """
    dx, dy, dz, r2, gap2 = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    far2 = (np.sqrt(cutoff2) + radius) ** 2
    for group in range(first_bin, last_bin, BLOCK):
        end = min(group + BLOCK, last_bin)
        nearest(centres[0, group:end], centres[1, group:end], centres[2, group:end], end - group, x, y, z,
                basis, inverse, shifts, dx, dy, dz, gap2)
        for b in range(group, end):
            if gap2[b - group] > far2:
                continue
            for first in range(start[b], start[b + 1], BLOCK):
                last = min(first + BLOCK, start[b + 1])
                count, sums = last - first, out[first:last]
                nearest(px[first:last], py[first:last], pz[first:last], count, x, y, z,
                        basis, inverse, shifts, dx, dy, dz, r2)
                for i in range(count):
                    s = max(r2[i], soft2)
                    term = radial(s, 1 / np.sqrt(s), values)
                    sums[i] += q * (term if r2[i] < cutoff2 else 0.0)


@njit(**FAST)
def smooth_value(smooth, u, v, w, q, total):
    """Add the smooth part of a charge at mesh coordinates u, v and w to a sum; return its largest absolute value.

    Both are coefficients of cubic B-splines: `smooth` (NX, NY, NZ) of a unit charge on the first node, and `total`
    (NX + 3, NY + 3, NZ + 3) of the sum, continued periodically as in :func:`add_charge`.
    """
    nx, ny, nz = smooth.shape
    iu, iv, iw = int(min(np.floor(u), nx - 1.0)), int(min(np.floor(v), ny - 1.0)), int(min(np.floor(w), nz - 1.0))
    wu, wv, ww = cubic(u - iu), cubic(v - iv), cubic(w - iw)
    plane, line, most = np.empty((ny, nz)), np.empty(2 * nz + 5), np.zeros(nz + 3)
    turn = (2 * nz - iw - 3) % nz  # rotation of a line, so that it begins with the last of the first node's 4 terms
    for a in range(nx + 3):
        p0, p1 = smooth[(a - iu + nx) % nx], smooth[(a - iu - 1 + nx) % nx]
        p2, p3 = smooth[(a - iu - 2 + nx) % nx], smooth[(a - iu - 3 + 2 * nx) % nx]
        for j in range(ny):
            for k in range(nz):
                plane[j, k] = wu[0] * p0[j, k] + wu[1] * p1[j, k] + wu[2] * p2[j, k] + wu[3] * p3[j, k]
        for b in range(ny + 3):
            r0, r1 = plane[(b - iv + ny) % ny], plane[(b - iv - 1 + ny) % ny]
            r2, r3 = plane[(b - iv - 2 + ny) % ny], plane[(b - iv - 3 + 2 * ny) % ny]
            for k in range(nz):
                line[k] = q * (wv[0] * r0[k] + wv[1] * r1[k] + wv[2] * r2[k] + wv[3] * r3[k])
            for k in range(nz + 5):
                line[k + nz] = line[k]
            row = total[a, b]
            for c in range(nz + 3):
                row[c] += (ww[3] * line[c + turn] + ww[2] * line[c + turn + 1] + ww[1] * line[c + turn + 2]
                           + ww[0] * line[c + turn + 3])
                most[c] = max(most[c], abs(row[c]))
    return most.max()


@njit(**FAST)
def smooth_at(u, v, w, smooth, out, first, last):
    """Add the sum of smooth parts that :func:`smooth_value` accumulates to `out` at mesh coordinates u, v and w."""
    na, nb, nc = smooth.shape[0] - 3, smooth.shape[1] - 3, smooth.shape[2] - 3
    row, plane = smooth.shape[2], smooth.shape[1] * smooth.shape[2]
    for i in range(first, last):
        a, b, c = min(np.floor(u[i]), na - 1.0), min(np.floor(v[i]), nb - 1.0), min(np.floor(w[i]), nc - 1.0)
        at = np.int64(a * plane + b * row + c)
        out[i] += weighted(smooth, at, cubic(u[i] - a), cubic(v[i] - b), cubic(w[i] - c))
