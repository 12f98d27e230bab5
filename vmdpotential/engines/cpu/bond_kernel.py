"""The kernel of AutoGrid's hydrogen bonds, whose energies depend on angles at the receptor's atoms.

For each atom, the angular factor of the well is computed for a row of nodes, and then the energy of each probe, so that
loops over the row have no branches and become vector code.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

#: Kinds of atoms, as in engines/bonds.py.
DONOR, ONE_PAIR, TWO_PAIRS = range(3)

#: Cosine of 110 degrees, the angle beyond which an oxygen accepts no hydrogen bond.
BEHIND = np.float32(-0.34202)

#: Distance that divides vectors to atoms nearer than it, so that no direction divides by zero, A.
LEAST = np.float32(1e-6)

FAST = {"contract", "nsz", "reassoc"}

#: Nodes of a row that are computed together.
WIDTH = 16

#: Constants of type float32: a literal would convert the float32 terms to float64.
F = np.float32
ZERO, ONE, FIVE, SIX, PERCENT, FAR = F(0), F(1), F(5), F(6), F(0.01), F(1e30)

#: Constants of the angular factor of an oxygen or sulfur, in front of it and behind it; the least square of a cosine.
FRONT, SINE, SCALE, CUBED, EDGE = F(0.9), F(0.2), F(562.25), F(0.116978), F(1e-12)


#: Coefficients of the polynomial of arccos and of the series of the sine.
A0, A1, A2, A3 = F(1.5707963050), F(-0.2145988016), F(0.0889789874), F(-0.0501743046)
A4, A5, A6, A7 = F(0.0308918810), F(-0.0170881256), F(0.0066700901), F(-0.0012624911)
S1, S2, S3, S4, S5, S6 = F(-1 / 6), F(1 / 120), F(-1 / 5040), F(1 / 362880), F(-1 / 39916800), F(1 / 6227020800)
PI, TWO_THIRDS = F(math.pi), F(2 / 3)


@njit(inline="always")
def place(begin, w):
    """Return begin + w as an index that cannot count from the end, so that a loop over w becomes vector code."""
    return np.uint64(begin) + np.uint64(w)


@njit(error_model="numpy", nogil=True, fastmath=FAST)
def single_bond(dx, dy, z, ux, uy, rise, squared, r, front, part):
    """Fill distances, cosines with the direction of a hydrogen or nitrogen, and the angular factor of the well."""
    flat, square = dx * ux + dy * uy, dx * dx + dy * dy
    for w in range(WIDTH):
        r[w] = math.sqrt(square + z[w] * z[w])
        cosine = (flat + z[w] * rise) / max(r[w], LEAST)
        front[w] = cosine
        c = max(cosine, ZERO)
        c *= c
        part[w] = c if squared else c * c


@njit(error_model="numpy", nogil=True, fastmath=FAST)
def lone_pairs(dx, dy, z, ux, uy, rise, axis_x, axis_y, up, r, part):
    """Fill distances and the angular factor of the well of an oxygen or sulfur with two lone pairs.

    The axis is the normal of the plane of the lone pairs.
    """
    flat, square, out = dx * ux + dy * uy, dx * dx + dy * dy, dx * axis_x + dy * axis_y
    for w in range(WIDTH):
        r[w] = math.sqrt(square + z[w] * z[w])
        inverse = ONE / max(r[w], LEAST)
        cosine, normal = (flat + z[w] * rise) * inverse, (out + z[w] * up) * inverse
        lift = math.sqrt(max(ONE - normal * normal, EDGE))  # the cosine of the angle with the plane
        along = cosine / lift
        # the sine of twice the angle with the direction
        front = FRONT + SINE * along * math.sqrt(max(ONE - along * along, ZERO))
        left = CUBED - cosine * cosine
        behind = SCALE * left * left * left if cosine >= BEHIND else ZERO
        part[w] = lift * (front if cosine >= ZERO else behind)


@njit(error_model="numpy", nogil=True, fastmath=FAST)
def facing_factor(a, ux, uy, uz, front, closest, others, begin, ramp):
    """Fill sin^2(2 t / 3), the factor of a hydrogen that faces a probe to which another hydrogen is nearer.

    t is the angle of the directions of both hydrogens. arccos is the root of 1 - c times a polynomial (M. Abramowitz,
    I. A. Stegun, 1964, 4.4.46), sin its series.
    """
    for w in range(WIDTH):
        k = place(begin, w)
        c = ux * others[0, k] + uy * others[1, k] + uz * others[2, k]
        c = min(max(c, -ONE), ONE)
        u = abs(c)
        angle = math.sqrt(ONE - u) * (A0 + u * (A1 + u * (A2 + u * (A3 + u * (A4 + u * (A5 + u * (A6 + u * A7)))))))
        angle = TWO_THIRDS * (angle if c >= ZERO else PI - angle)
        t = angle * angle
        sine = angle * (ONE + t * (S1 + t * (S2 + t * (S3 + t * (S4 + t * (S5 + t * S6))))))
        ramp[w] = sine * sine if front[w] > ZERO and closest[k] != a else ONE


@njit(error_model="numpy", nogil=True, fastmath=FAST)
def well(r, part, distance, depth, smooth, most, energy):
    """Fill the energies of a probe: 5 (R/x)^12 - 6 (R/x)^10, times the angular factor unless it is repulsive."""
    for w in range(WIDTH):
        ratio = distance / (r[w] + min(max(distance - r[w], -smooth), smooth))
        two = ratio * ratio
        value = depth * min(two * two * two * two * two * (FIVE * two - SIX), most)
        high = min(max(value * PERCENT, ZERO), ONE)
        energy[w] = value * (part[w] + (ONE - part[w]) * high)


@njit(error_model="numpy", nogil=True, fastmath=FAST)
def run(positions, kinds, directions, normals, powers, types, distances, depths, extremes, smooth, cap, cutoff, origin,
        spacing, out, first_plane, last_plane):
    """Write planes of constant x of the energies of probes; parameters as in engines/bonds.py."""
    count, nz = len(distances), out.shape[3]
    padded = (nz + WIDTH - 1) // WIDTH * WIDTH
    low, high, total = np.empty((count, padded), F), np.empty((count, padded), F), np.empty((count, padded))
    nearest, closest, others = np.empty(padded, F), np.empty(padded, np.int64), np.empty((3, padded), F)
    z, r, front, part, energy, ramp = np.ones((6, WIDTH), F)
    steps = np.arange(padded) * spacing[2]
    near, ranges = np.empty(len(positions), np.int64), np.empty((len(positions), 2), np.int64)
    donors, reach, smoothing = len(kinds) > 0 and kinds[0] == DONOR, F(cutoff), F(smooth)
    along, axes, repelled = directions.astype(F), normals.astype(F), F(distances.max() + smooth)
    for i in range(first_plane, last_plane):
        x = origin[0] + i * spacing[0]
        for j in range(out.shape[2]):
            y = origin[1] + j * spacing[1]
            total[:], low[:], high[:], nearest[:], closest[:] = 0.0, FAR, -FAR, FAR, -1
            seen = 0
            for a in range(len(positions)):
                left = cutoff * cutoff - (x - positions[a, 0]) ** 2 - (y - positions[a, 1]) ** 2
                if left <= 0:
                    continue
                half, middle = math.sqrt(left), positions[a, 2] - origin[2]
                first = max(0.0, math.ceil((middle - half) / spacing[2]))
                end = min(float(nz), math.floor((middle + half) / spacing[2]) + 1)
                if first < end:
                    near[seen], ranges[seen, 0], ranges[seen, 1] = a, int(first) // WIDTH * WIDTH, int(end)
                    seen += 1
            for n in range(seen if donors else 0):
                a = near[n]
                dx, dy, middle = F(x - positions[a, 0]), F(y - positions[a, 1]), positions[a, 2] - origin[2]
                square = dx * dx + dy * dy
                for begin in range(ranges[n, 0], ranges[n, 1], WIDTH):
                    for w in range(WIDTH):
                        k = place(begin, w)
                        dz = F(steps[k] - middle)
                        r2 = square + dz * dz
                        closer = r2 < nearest[k]
                        nearest[k] = r2 if closer else nearest[k]
                        closest[k] = a if closer else closest[k]
            for k in range(padded if donors and seen else 0):
                for d in range(3):
                    others[d, k] = along[max(closest[k], 0), d]
            for n in range(seen):
                a = near[n]
                dx, dy, middle = F(x - positions[a, 0]), F(y - positions[a, 1]), positions[a, 2] - origin[2]
                ux, uy, uz = along[a, 0], along[a, 1], along[a, 2]
                for begin in range(ranges[n, 0], ranges[n, 1], WIDTH):
                    for w in range(WIDTH):
                        z[w] = F(steps[place(begin, w)] - middle)
                    if kinds[a] == TWO_PAIRS:
                        lone_pairs(dx, dy, z, ux, uy, uz, axes[a, 0], axes[a, 1], axes[a, 2], r, part)
                    else:
                        single_bond(dx, dy, z, ux, uy, uz, powers[a] == 2, r, front, part)
                    left = ZERO
                    for w in range(WIDTH):
                        left += part[w] + (ONE if r[w] < repelled else ZERO)
                    if left == ZERO:  # all nodes are behind the atom and out of its repulsion
                        energy[:] = ZERO
                    elif donors:
                        facing_factor(a, ux, uy, uz, front, closest, others, begin, ramp)
                    for p in range(count):
                        distance, depth = distances[p, types[a]], depths[p, types[a]]
                        if left > ZERO:
                            well(r, part, F(distance), F(depth), smoothing, F(cap / depth), energy)
                        elif not extremes[p]:
                            continue
                        if extremes[p]:
                            for w in range(WIDTH):
                                at = place(begin, w)
                                low[p, at] = min(low[p, at], energy[w] if r[w] <= reach else FAR)
                                high[p, at] = max(high[p, at], energy[w] if r[w] <= reach else -FAR)
                        else:
                            for w in range(WIDTH):
                                total[p, place(begin, w)] += ramp[w] * energy[w] if r[w] <= reach else ZERO
            for p in range(count):
                for k in range(nz):
                    both = low[p, k] + high[p, k] if low[p, k] <= high[p, k] else 0.0
                    out[p, i, j, k] = both if extremes[p] else total[p, k]
