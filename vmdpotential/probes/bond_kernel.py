"""The kernel of AutoGrid's hydrogen bonds, whose energies depend on angles at the receptor's atoms.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

#: Kinds of atoms of the receptor: hydrogens, nitrogens with a lone pair, and oxygens or sulfurs with two.
DONOR, ONE_PAIR, TWO_PAIRS = range(3)

#: Cosine of 110 degrees, behind which an oxygen accepts no hydrogen bond.
BEHIND = -0.34202

#: Nearer than this, A, a direction is that of an atom at this distance.
LEAST = 1e-6


@njit(error_model="numpy", nogil=True)
def factor(kind, power, cosine, out_of_plane, in_plane):
    """Return the part of the well that the angles at an atom leave.

    `cosine` is of the angle between the atom's direction and that to the probe; `out_of_plane` that of the angle with
    the normal of the lone pairs' plane, and `in_plane` that between the direction and what lies in the plane.
    """
    square = cosine * cosine
    if kind != TWO_PAIRS:
        return 0.0 if cosine <= 0 else square if power == 2 else square * square
    lift = math.sqrt(max(0.0, 1 - out_of_plane * out_of_plane))  # the cosine of the angle with the plane
    if cosine >= 0:
        # the sine of twice the angle with the direction
        return (0.9 + 0.2 * in_plane * math.sqrt(max(0.0, 1 - in_plane * in_plane))) * lift
    if cosine >= BEHIND:
        return 562.25 * (0.116978 - square) ** 3 * lift
    return 0.0


@njit(error_model="numpy", nogil=True)
def run(positions, kinds, directions, normals, powers, types, distances, depths, extremes, smooth, cap, cutoff, origin,
        spacing, out, first_plane, last_plane):
    """Write the energies of probes with the atoms that they form hydrogen bonds with, some planes of constant x.

    Parameters
    ----------
    positions, kinds : (N, 3), (N,) int64
    directions, normals : (N, 3)
        Unit vectors from the bonded atoms to each, and of planes of two lone pairs.
    powers : (N,) float64
        Of the cosine at a hydrogen or nitrogen, 2 or 4.
    types : (N,) int64
    distances, depths : (P, T)
        Of the wells of probes with types.
    extremes : (P,) bool
        Of which the least and the largest energy are added, instead of all.
    smooth, cap, cutoff : float
    origin, spacing : (3,)
    out : (P, nx, ny, nz) float64
    """
    count, nz = len(distances), out.shape[3]
    low, high, total = np.empty((count, nz)), np.empty((count, nz)), np.empty((count, nz))
    nearest, closest = np.empty(nz), np.empty(nz, np.int64)
    donors = len(kinds) > 0 and kinds[0] == DONOR
    for i in range(first_plane, last_plane):
        x = origin[0] + i * spacing[0]
        for j in range(out.shape[2]):
            y = origin[1] + j * spacing[1]
            total[:], low[:], high[:], nearest[:] = 0.0, 0.0, 0.0, np.inf
            reached = np.zeros(nz, np.bool_)
            if donors:
                for a in range(len(positions)):
                    square = (positions[a, 0] - x) ** 2 + (positions[a, 1] - y) ** 2
                    for k in range(nz):
                        z = origin[2] + k * spacing[2] - positions[a, 2]
                        r2 = square + z * z
                        if r2 < nearest[k]:
                            nearest[k], closest[k] = r2, a
            for a in range(len(positions)):
                dx, dy = x - positions[a, 0], y - positions[a, 1]
                left = cutoff * cutoff - dx * dx - dy * dy
                if left <= 0:
                    continue
                half, along = math.sqrt(left), positions[a, 2] - origin[2]
                begin = max(0.0, math.ceil((along - half) / spacing[2]))
                end = min(float(nz), math.floor((along + half) / spacing[2]) + 1)
                for k in range(int(begin), int(end)):
                    dz = k * spacing[2] - along
                    r = math.sqrt(dx * dx + dy * dy + dz * dz)
                    inverse = 1 / max(r, LEAST)
                    ux, uy, uz = dx * inverse, dy * inverse, dz * inverse
                    cosine = ux * directions[a, 0] + uy * directions[a, 1] + uz * directions[a, 2]
                    normal = ux * normals[a, 0] + uy * normals[a, 1] + uz * normals[a, 2]
                    inside = math.sqrt(max(1e-12, 1 - normal * normal))
                    part = factor(kinds[a], powers[a], cosine, normal, cosine / inside)
                    ramp = 1.0
                    if donors and cosine > 0 and closest[k] != a:
                        c = closest[k]
                        turn = (directions[a, 0] * directions[c, 0] + directions[a, 1] * directions[c, 1]
                                + directions[a, 2] * directions[c, 2])
                        ramp = 0.5 - 0.5 * math.cos(math.acos(min(1.0, max(-1.0, turn))) * 4 / 3)
                    for p in range(count):
                        distance, depth = distances[p, types[a]], depths[p, types[a]]
                        two = (distance / (r + min(max(distance - r, -smooth), smooth))) ** 2
                        energy = depth * min(two**5 * (5 * two - 6), cap / depth)
                        energy *= part + (1 - part) * min(max(energy / 100, 0.0), 1.0)
                        if extremes[p]:
                            low[p, k] = min(low[p, k], energy) if reached[k] else energy
                            high[p, k] = max(high[p, k], energy) if reached[k] else energy
                        else:
                            total[p, k] += ramp * energy
                    reached[k] = True
            for p in range(count):
                for k in range(nz):
                    out[p, i, j, k] = low[p, k] + high[p, k] if extremes[p] else total[p, k]
