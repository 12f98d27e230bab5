"""Metropolis steps of charges that hop between sites, or exchange their sites, in a periodic cell with all images.

The potential of a charge is computed by functions of the kernel file ``point_kernel``.

This file is run once for each set of the constants that it declares, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

from vmdpotential.compiling import build
from vmdpotential.interactions.program import Program

#: The traced radial function.
PROGRAM: Program
#: The name of the module made from ``point_kernel``, a hash of all its dependencies, on which this file depends too.
KERNEL: str
#: Whether plain loops replace vector code.
PLAIN: bool

_points = build.load_with("point_kernel", plain=PLAIN, program=PROGRAM, precision="double", masked=True)
add_charge, nearest, BLOCK = _points.add_charge, _points.nearest, _points.BLOCK

FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}


@njit(**FAST)
def free(ion, site, other, sites, where, placed, size, apart2, barred, basis, inverse, shifts):
    """Return whether a charge may move to a site; the site and distance of the charge `other` do not count."""
    if barred[size[ion], site]:
        return False
    dx, dy, dz, r2 = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    x, y, z, limits = sites[0, site], sites[1, site], sites[2, site], apart2[size[ion]]
    for first in range(0, len(placed), BLOCK):
        last = min(first + BLOCK, len(placed))
        nearest(where[0, first:last], where[1, first:last], where[2, first:last], last - first, x, y, z,
                basis, inverse, shifts, dx, dy, dz, r2)
        for j in range(first, last):
            near = r2[j - first] < limits[size[j]] or placed[j] == site
            if near and j != ion and j != other:
                return False
    return True


@njit(**FAST)
def steps(ions, partners, targets, chances, sites, where, placed, size, apart2, barred, charge, fixed, phi, pairs,
          scale, counts, unit, basis, inverse, shifts, values, soft2, cutoff2, smooth):
    """Do Metropolis steps; return the change of the energy.

    ions, partners, targets, chances (S,): in each step the charge `ions` moves to the site `targets` or, if `partners`
    is not -1, exchanges sites with that charge, if `chances` is below the Boltzmann factor. sites (3, W): positions of
    the sites, A. where (3, K), A, and placed (K,): positions and sites of the charges. size (K,): row of each charge in
    apart2 (Z, Z), the squares of the smallest allowed distances, and in barred (Z, W), the forbidden sites. fixed (W,):
    the potential at the sites without that of the charges. phi (K,): the potential at each charge of everything but
    itself. pairs (K, K): the potential of a unit charge in place of one charge at another one, 0 on the diagonal.
    scale: factor from the potential's unit to the energy's. counts (2, 2): tried and accepted hops, tried and accepted
    exchanges. unit and the following parameters are those of :func:`add_charge`. where, placed, phi, pairs and counts
    are changed in place.
    """
    count, gained = len(placed), 0.0
    new_row = np.empty(count)
    for step in range(len(ions)):
        ion, partner, chance = ions[step], partners[step], chances[step]
        old = placed[ion]
        row = pairs[ion]
        if partner < 0:
            counts[0, 0] += 1
            new = targets[step]
            if not free(ion, new, ion, sites, where, placed, size, apart2, barred, basis, inverse, shifts):
                continue
            new_row[:] = 0
            add_charge(where[0], where[1], where[2], sites[0, new], sites[1, new], sites[2, new], unit,
                       basis, inverse, shifts, values, soft2, cutoff2, smooth, new_row, 0, -(-count // BLOCK))
            new_row[ion] = 0
            potential = fixed[new]
            for j in range(count):
                potential += new_row[j] * charge[j]
            change = scale * charge[ion] * (potential - phi[ion])
            if change > 0 and chance >= np.exp(-change):
                continue
            counts[0, 1] += 1
            for j in range(count):
                phi[j] += charge[ion] * (new_row[j] - row[j])
                pairs[j, ion] = new_row[j]
            pairs[ion] = new_row
            phi[ion] = potential
        else:
            counts[1, 0] += 1
            new = placed[partner]
            if size[ion] != size[partner] and not (
                    free(ion, new, partner, sites, where, placed, size, apart2, barred, basis, inverse, shifts)
                    and free(partner, old, ion, sites, where, placed, size, apart2, barred, basis, inverse, shifts)):
                continue
            # the potentials at both sites without the contributions of the exchanged charges
            at_old, at_new = phi[ion] - charge[partner] * row[partner], phi[partner] - charge[ion] * row[partner]
            moved = charge[ion] - charge[partner]
            change = scale * moved * (at_new - at_old)
            if change > 0 and chance >= np.exp(-change):
                continue
            counts[1, 1] += 1
            other, between = pairs[partner], row[partner]
            for j in range(count):
                if j != ion and j != partner:
                    phi[j] += moved * (other[j] - row[j])
                    row[j], other[j] = other[j], row[j]
                    pairs[j, ion], pairs[j, partner] = row[j], other[j]
            phi[ion], phi[partner] = at_new + charge[partner] * between, at_old + charge[ion] * between
            placed[partner] = old
            where[0, partner], where[1, partner], where[2, partner] = sites[0, old], sites[1, old], sites[2, old]
        gained += change
        placed[ion] = new
        where[0, ion], where[1, ion], where[2, ion] = sites[0, new], sites[1, new], sites[2, new]
    return gained
