"""Conjugate gradients preconditioned by one multigrid cycle, as one compiled function that synchronized threads run.

The finest level is a flat array, and all other levels are stored one after the other in a second one. Nodes on the
faces of a level keep their values. Sums over nodes are added up plane by plane, so that results do not depend on the
number of threads.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

from vmdpotential.compiling.meeting import take, wait
from vmdpotential.compiling.threads import SUMMED

#: Whether plain loops replace vector code.
PLAIN: bool

FAST = {"fastmath": {"contract", "reassoc", "nsz", "arcp"}, "error_model": "numpy", "boundscheck": False, "nogil": True}

#: Number of nodes of a level below which one thread alone is faster than several that have to synchronize.
SMALL = 30_000

#: Sweeps in each direction on the coarsest level, and sweeps on each other level before and after the coarser ones.
SWEEPS, SMOOTHINGS = 12, 2

F = np.float32


@njit(**FAST)
def meet(counters, workers, meeting):
    """Wait for all threads; return the number of the next meeting, or -1 if the work was stopped."""
    if workers == 1:
        return meeting if counters[0] == 0 else -1
    take(counters, SUMMED)
    return meeting + 1 if wait(counters, SUMMED, meeting * workers) else -1


@njit(**FAST)
def share(planes, worker, workers):
    """Return a thread's share of the inner planes."""
    inner = planes - 2
    return 1 + inner * worker // workers, 1 + inner * (worker + 1) // workers


if PLAIN:
    from vmdpotential.engines.cpu.continuum.nodes import apply_nodes as apply_plane
    from vmdpotential.engines.cpu.continuum.nodes import exact_residual_nodes as exact_residual_plane
    from vmdpotential.engines.cpu.continuum.nodes import prolong_plane
    from vmdpotential.engines.cpu.continuum.nodes import residual_nodes as residual_plane
    from vmdpotential.engines.cpu.continuum.nodes import smooth_nodes as smooth_plane
    from vmdpotential.engines.cpu.continuum.nodes import start_nodes as start_plane
else:
    from vmdpotential.engines.cpu.continuum.planes import (
        apply_plane,
        exact_residual_plane,
        prolong_plane,
        residual_plane,
        smooth_plane,
        start_plane,
    )


@njit(**FAST)
def smooth_ends(first, last, steps, begin, u, f, ex, ey, ez, d, worker, workers, counters, meeting):
    """Smooth the planes at both ends of a thread's share that a pass over planes had to leave out: s planes in step s.

    These planes depend on those of other threads. Steps s, from `begin` on, solve for the nodes of colour s % 2.
    """
    for s in range(begin, steps + 1):
        meeting = meet(counters, workers, meeting)
        if meeting < 0:
            return meeting
        for i in range(first, min(first + s, last)):
            smooth_plane(i, s % 2, u, f, ex, ey, ez, d)
        for i in range(max(last - s, first + s), last):
            smooth_plane(i, s % 2, u, f, ex, ey, ez, d)
    return meet(counters, workers, meeting)


@njit(**FAST)
def restrict_plane(i, planes, coarse):
    """Write weighted sums of planes 2 i - 1 to 2 i + 1 of the residual to plane i of the coarse level.

    `planes` holds these three planes. The weights are trilinear; the residual is 0 at the direct neighbours of a coarse
    node and at the corners around it.
    """
    _, my, mz = coarse.shape
    low, middle, high = planes[(2 * i - 1) % 3], planes[2 * i % 3], planes[(2 * i + 1) % 3]
    for j in range(1, my - 1):
        b = 2 * j
        for k in range(1, mz - 1):
            c = 2 * k
            sides = low[b - 1, c] + low[b + 1, c] + high[b - 1, c] + high[b + 1, c]
            before = low[b, c - 1] + high[b, c - 1] + middle[b - 1, c - 1] + middle[b + 1, c - 1]
            behind = low[b, c + 1] + high[b, c + 1] + middle[b - 1, c + 1] + middle[b + 1, c + 1]
            coarse[i, j, k] = F(0.5) * middle[b, c] + F(0.125) * (sides + before + behind)


@njit(**FAST)
def down(first, last, u, f, ex, ey, ez, d, coarse, planes, worker, workers, counters, meeting):
    """Smooth u, which is 0 at first, in two sweeps, and write weighted sums of the residual to the coarse level.

    All steps are done in one pass over planes, each step one plane behind the previous one, so that data are still in
    the cache; `planes` (3, ny, nz) is scratch.
    """
    steps = 2 * SMOOTHINGS - 1
    end = steps + 1
    for i in range(first, last + end):
        if i < last:
            start_plane(i, u, f, d)
        for s in range(1, end):
            if first + s <= i - s < last - s:
                smooth_plane(i - s, s % 2, u, f, ex, ey, ez, d)
        done = i - end
        if first + end <= done < last - end:
            residual_plane(done, u, f, ex, ey, ez, d, planes[done % 3])
            if done % 2 and done - 2 >= first + end:
                restrict_plane(done // 2, planes, coarse)
    meeting = smooth_ends(first, last, steps, 1, u, f, ex, ey, ez, d, worker, workers, counters, meeting)
    if meeting < 0:
        return meeting
    for i in range((first + 1) // 2, (last + 1) // 2):
        if not first + end < 2 * i < last - end - 1:
            for fine in range(2 * i - 1, 2 * i + 2):
                residual_plane(fine, u, f, ex, ey, ez, d, planes[fine % 3])
            restrict_plane(i, planes, coarse)
    return meet(counters, workers, meeting)


@njit(**FAST)
def up(first, last, coarse, u, f, ex, ey, ez, d, worker, workers, counters, meeting):
    """Add the values of the coarse level and smooth u in two sweeps, in one pass as in :func:`down`."""
    steps = 2 * SMOOTHINGS
    for i in range(first, last + steps):
        if i < last:
            prolong_plane(i, coarse, u)
        for s in range(1, steps + 1):
            if first + s <= i - s < last - s:
                smooth_plane(i - s, s % 2, u, f, ex, ey, ez, d)
    return smooth_ends(first, last, steps, 1, u, f, ex, ey, ez, d, worker, workers, counters, meeting)


@njit(**FAST)
def level(arrays, offsets, shapes, n):
    """Return level n from a flat array of the finest level and another one of all other levels."""
    shape = (shapes[n, 0], shapes[n, 1], shapes[n, 2])
    if n == 0:
        return arrays[0].reshape(shape)
    return arrays[1][offsets[n] - offsets[1] : offsets[n + 1] - offsets[1]].reshape(shape)


@njit(**FAST)
def cycle(shapes, offsets, ex, ey, ez, d, u, f, worker, workers, counters, meeting):
    """Apply one V cycle to f and write the result to u; return the number of the next meeting.

    The first thread alone computes the small levels.
    """
    most = len(shapes) - 1
    planes = np.empty(3 * shapes[0, 1] * shapes[0, 2], F)
    small = 0
    while small < most and offsets[small + 1] - offsets[small] >= SMALL:
        small += 1
    for n in range(most):
        if n >= small and worker:
            break
        team = workers if n < small else 1
        first, last = share(shapes[n, 0], worker, team)
        ul, fl, dl = level(u, offsets, shapes, n), level(f, offsets, shapes, n), level(d, offsets, shapes, n)
        x, y, z = level(ex, offsets, shapes, n), level(ey, offsets, shapes, n), level(ez, offsets, shapes, n)
        scratch = planes[: 3 * shapes[n, 1] * shapes[n, 2]].reshape((3, shapes[n, 1], shapes[n, 2]))
        scratch[:] = F(0)
        meeting = down(first, last, ul, fl, x, y, z, dl, level(f, offsets, shapes, n + 1), scratch, worker, team,
                       counters, meeting)
        if meeting < 0:
            return meeting
    if worker == 0:
        ul, fl, dl = level(u, offsets, shapes, most), level(f, offsets, shapes, most), level(d, offsets, shapes, most)
        x, y, z = level(ex, offsets, shapes, most), level(ey, offsets, shapes, most), level(ez, offsets, shapes, most)
        ul[:] = F(0)
        for sweep in range(2 * SWEEPS):
            for half in range(2):
                for i in range(1, shapes[most, 0] - 1):
                    smooth_plane(i, half if sweep < SWEEPS else 1 - half, ul, fl, x, y, z, dl)
    for n in range(most - 1, -1, -1):
        if n >= small and worker:
            continue
        if n == small - 1:
            meeting = meet(counters, workers, meeting)
            if meeting < 0:
                return meeting
        team = workers if n < small else 1
        first, last = share(shapes[n, 0], worker, team)
        ul, fl, dl = level(u, offsets, shapes, n), level(f, offsets, shapes, n), level(d, offsets, shapes, n)
        x, y, z = level(ex, offsets, shapes, n), level(ey, offsets, shapes, n), level(ez, offsets, shapes, n)
        meeting = up(first, last, level(u, offsets, shapes, n + 1), ul, fl, x, y, z, dl, worker, team, counters,
                     meeting)
        if meeting < 0:
            return meeting
    return meet(counters, workers, meeting) if small == 0 else meeting


@njit(**FAST)
def update_direction_plane(i, beta, z, p):
    """Replace the direction p by z + beta p in a plane; with a beta of 0, p may be what an earlier solution left."""
    b = F(beta)
    _, ny, nz = p.shape
    for j in range(1, ny - 1):
        if beta == 0:
            p[i, j, 1 : nz - 1] = z[i, j, 1 : nz - 1]
            continue
        zi, pi = z[i, j], p[i, j]
        for k in range(1, nz - 1):
            pi[k] = zi[k] + b * pi[k]


@njit(**FAST)
def update_direction(first, last, beta, z, p, ex, ey, ez, k2, q, sums, workers, counters, meeting):
    """Replace the direction p by z + beta p, write the operator applied to p to q, and p q of each plane to sums.

    This is one pass over planes; q may be the same array as z, because z is read before q is written.
    """
    for i in range(first, last):
        update_direction_plane(i, beta, z, p)
        if first < i - 1:
            sums[i - 1] = apply_plane(i - 1, p, ex, ey, ez, k2, q)
    meeting = meet(counters, workers, meeting)
    if meeting < 0:
        return meeting
    for i in (first, last - 1):
        sums[i] = apply_plane(i, p, ex, ey, ez, k2, q)
    return meet(counters, workers, meeting)


@njit(**FAST)
def advance(first, last, alpha, w, p, r, q, sums):
    """Take a step alpha along p; write the sum of squares of the residual in each plane to sums."""
    a = F(alpha)
    _, ny, nz = p.shape
    for i in range(first, last):
        total = 0.0
        for j in range(1, ny - 1):
            wi, pi, ri, qi = w[i, j], p[i, j], r[i, j], q[i, j]
            part = F(0)
            for k in range(1, nz - 1):
                wi[k] += a * pi[k]
                value = ri[k] - a * qi[k]
                ri[k] = value
                part += value * value
            total += part
        sums[i] = total


@njit(**FAST)
def products(first, last, r, z, sums):
    """Write the sum of r z in each plane to sums."""
    _, ny, nz = r.shape
    for i in range(first, last):
        total = 0.0
        for j in range(1, ny - 1):
            ri, zi = r[i, j], z[i, j]
            part = F(0)
            for k in range(1, nz - 1):
                part += ri[k] * zi[k]
            total += part
        sums[i] = total


@njit(**FAST)
def squares(r, sums, first_plane, last_plane):
    """Write the sum of the squares of r in each inner plane to sums."""
    products(max(1, first_plane), min(len(r) - 1, last_plane), r, r, sums)


@njit(**FAST)
def solve(shapes, offsets, ex, ey, ez, d, k2, u, f, p, w, sums, tolerance, most, iterations, worker, workers, counters):
    """Add to w the correction that reduces the residual f by the factor `tolerance`.

    Sets `iterations` (2,) to their number and whether this was achieved.

    Parameters
    ----------
    shapes : (L, 3), offsets : (L + 1,) int64
        Of the levels in ex, ey, ez (conductances from a node to the next), d (inverse diagonal), u and f.
    k2 : float32
        Contribution of the ions to the diagonal. Like p, whose faces are 0, and w, it is on the finest level.
    sums : (3, nx) float64
        Scratch.
    """
    x, y, z = level(ex, offsets, shapes, 0), level(ey, offsets, shapes, 0), level(ez, offsets, shapes, 0)
    r, q = level(f, offsets, shapes, 0), level(u, offsets, shapes, 0)
    first, last = share(shapes[0, 0], worker, workers)
    meeting = 1
    products(first, last, r, r, sums[0])
    meeting = meet(counters, workers, meeting)
    if meeting < 0:
        return
    goal = sums[0].sum() * tolerance**2
    before = 0.0
    for count in range(most):
        meeting = cycle(shapes, offsets, ex, ey, ez, d, u, f, worker, workers, counters, meeting)
        if meeting < 0:
            return
        products(first, last, r, q, sums[1])
        meeting = meet(counters, workers, meeting)
        if meeting < 0:
            return
        now = sums[1].sum()
        if not now > 0 or not math.isfinite(now):
            return
        meeting = update_direction(first, last, now / before if count else 0.0, q, p, x, y, z, k2, q, sums[2],
                                   workers, counters, meeting)
        before = now
        if meeting < 0:
            return
        advance(first, last, now / sums[2].sum(), w, p, r, q, sums[0])
        meeting = meet(counters, workers, meeting)
        if meeting < 0:
            return
        if worker == 0:
            iterations[0] = count + 1
        if sums[0].sum() <= goal:
            if worker == 0:
                iterations[1] = 1
            return


@njit(**FAST)
def coarsen(fine, axis, coarse, first_plane, last_plane):
    """Write the conductances of planes of a coarse level.

    Two fine edges are in series along a coarse one; this is averaged with weights over the neighbouring parallel edges.
    """
    nx, ny, nz = fine.shape
    ax, ay, az = 1 * (axis == 0), 1 * (axis == 1), 1 * (axis == 2)
    for i in range(first_plane, min(last_plane, coarse.shape[0] - ax)):
        for j in range(coarse.shape[1] - ay):
            for k in range(coarse.shape[2] - az):
                total = F(0)
                for s in range(-1, 2):
                    for t in range(-1, 2):
                        a = min(max(2 * i + (0 if ax else s), 0), nx - 1)
                        b = min(max(2 * j + (0 if ay else s if ax else t), 0), ny - 1)
                        c = min(max(2 * k + (0 if az else t), 0), nz - 1)
                        first, second = fine[a, b, c], fine[a + ax, b + ay, c + az]
                        weight = (F(1) if s else F(2)) * (F(1) if t else F(2))
                        total += weight * first * second / (first + second)
                coarse[i, j, k] = F(0.125) * total


@njit(**FAST)
def invert(ex, ey, ez, k2, factor, d, first_plane, last_plane):
    """Write the inverse diagonal, with a factor on the contribution of the ions, to planes of d."""
    nx, ny, nz = d.shape
    for i in range(max(1, first_plane), min(nx - 1, last_plane)):
        for j in range(1, ny - 1):
            for k in range(1, nz - 1):
                d[i, j, k] = F(1) / (ex[i, j, k] + ex[i - 1, j, k] + ey[i, j, k] + ey[i, j - 1, k] + ez[i, j, k]
                                     + ez[i, j, k - 1] + factor * k2[i, j, k])


@njit(**FAST)
def residual(w, ex, ey, ez, k2, ions, out, first_plane, last_plane):
    """Write the residual of w without its sources, summed in float64, to planes of out.

    `ions` (I, 2) are valences and shares of the ionic strength, for the full equation; none for the linear one.
    """
    for i in range(max(1, first_plane), min(len(w) - 1, last_plane)):
        exact_residual_plane(i, w, ex, ey, ez, k2, ions, out)


@njit(error_model="numpy", boundscheck=False, nogil=True)
def slope(w, k2, ions, out, first_plane, last_plane):
    """Write the derivative of the ions' term of the full equation (see `residual`) to planes of out."""
    _, ny, nz = w.shape
    for i in range(first_plane, last_plane):
        for j in range(ny):
            for k in range(nz):
                total = 0.0
                if k2[i, j, k] > 0:
                    for n in range(len(ions)):
                        total += ions[n, 1] * math.exp(min(50.0, -ions[n, 0] * w[i, j, k]))
                out[i, j, k] = k2[i, j, k] * total
