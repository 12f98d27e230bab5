// Conjugate gradients preconditioned by one multigrid cycle, as one kernel that a team of threads runs.
//
// Nodes on the faces of a level keep their values. A node has colour 0 if the sum of its three indices is even, otherwise
// colour 1. Sums over nodes are added up plane by plane, so that results do not depend on the number of threads.
#include "kernel.h"
#ifndef __CUDACC__
#include "vectors.h"

// Number of nodes of a level below which one thread alone is faster than several that have to synchronise.
#define SMALL_LEVEL 30000
// Sweeps in each direction on the coarsest level; on each other level before and after the coarser ones.
#define COARSEST_SWEEPS 12
#define SMOOTHINGS 2
// Vectors that are solved for together: one by one, each would have to wait until the previous one is written.
#define TOGETHER 4

// The arrays of a level; x, y, z are the conductances of the edges from each node along an axis, d the inverse diagonal.
struct Level {
    index_t nx, ny, nz;
    const float *x, *y, *z, *d;
    float *u, *f;

    index_t plane() const { return ny * nz; }
    index_t row(index_t i, index_t j) const { return (i * ny + j) * nz; }
    // Whether colours alternate along the whole of a plane, so that its inner rows can be processed as one run of nodes,
    // with the face nodes between rows. The last vector may extend into the last row, which is a face.
    bool alternates() const { return nz >= FLOATS && nz % 2; }
};

// The sum over neighbours of conductance times potential.
DEVICE float around(const Level &l, index_t at)
{
    const index_t sx = l.plane(), sy = l.nz;
    return l.x[at] * l.u[at + sx] + l.x[at - sx] * l.u[at - sx] + l.y[at] * l.u[at + sy] + l.y[at - sy] * l.u[at - sy]
        + l.z[at] * l.u[at + 1] + l.z[at - 1] * l.u[at - 1];
}

DEVICE floats vector_around(const Level &l, index_t at)
{
    const index_t sx = l.plane(), sy = l.nz;
    floats total = load<floats>(l.f + at);
    total += load<floats>(l.x + at) * load<floats>(l.u + at + sx);
    total += load<floats>(l.x + at - sx) * load<floats>(l.u + at - sx);
    total += load<floats>(l.y + at) * load<floats>(l.u + at + sy);
    total += load<floats>(l.y + at - sy) * load<floats>(l.u + at - sy);
    total += load<floats>(l.z + at) * load<floats>(l.u + at + 1);
    return total + load<floats>(l.z + at - 1) * load<floats>(l.u + at - 1);
}

template <int COUNT> DEVICE void relax(const Level &l, index_t first)
{
    floats results[COUNT];
    for (int n = 0; n < COUNT; n++) {
        const index_t at = first + n * FLOATS;
        results[n] = even_places() ? vector_around(l, at) * load<floats>(l.d + at) : load<floats>(l.u + at);
    }
    for (int n = 0; n < COUNT; n++)
        store(l.u + first + n * FLOATS, results[n]);
}

// Solve for the nodes of a colour in a plane.
static void smooth_plane(const Level &l, index_t i, int colour)
{
    if (!l.alternates()) {
        for (index_t j = 1; j < l.ny - 1; j++)
            for (index_t at = l.row(i, j) + 1 + (i + j + 1 + colour) % 2; at < l.row(i, j) + l.nz - 1; at += 2)
                l.u[at] = (l.f[at] + around(l, at)) * l.d[at];
        return;
    }
    index_t at = l.row(i, 1) + (i + 1 + colour) % 2;
    const index_t last = l.row(i, l.ny - 1);
    for (; at + TOGETHER * FLOATS <= last; at += TOGETHER * FLOATS)
        relax<TOGETHER>(l, at);
    for (; at < last; at += FLOATS)
        relax<1>(l, at);
}

// Solve for the nodes of colour 0 in a plane where all others are 0.
static void start_plane(const Level &l, index_t i)
{
    if (!l.alternates()) {
        for (index_t j = 1; j < l.ny - 1; j++)
            for (index_t k = 1, at = l.row(i, j) + 1; k < l.nz - 1; k++, at++)
                l.u[at] = (i + j + k) % 2 ? 0 : l.f[at] * l.d[at];
        return;
    }
    for (index_t at = l.row(i, 1) + (i + 1) % 2; at < l.row(i, l.ny - 1); at += FLOATS)
        store(l.u + at, even_places() ? load<floats>(l.f + at) * load<floats>(l.d + at) : floats{});
}

// Write the residual of a plane just after solving for the nodes of colour 1, where it is 0.
static void residual_plane(const Level &l, index_t i, float *out)
{
    const index_t begin = l.row(i, 0);
    if (!l.alternates()) {
        for (index_t j = 1; j < l.ny - 1; j++)
            for (index_t k = 1, at = l.row(i, j) + 1; k < l.nz - 1; k++, at++)
                out[at - begin] = (i + j + k) % 2 ? 0 : l.f[at] + around(l, at) - l.u[at] / l.d[at];
        return;
    }
    for (index_t at = l.row(i, 1) + (i + 1) % 2; at < l.row(i, l.ny - 1); at += FLOATS) {
        const floats total = vector_around(l, at) - load<floats>(l.u + at) / load<floats>(l.d + at);
        store(out + at - begin, even_places() ? total : floats{});
    }
}

// Add the values of the coarse level, interpolated trilinearly, to the nodes of colour 0 in a plane. The next step
// solves for the nodes of colour 1, from those of colour 0 alone.
static void prolong_plane(const Level &coarse, const Level &l, index_t i)
{
    for (index_t j = 1; j < l.ny - 1; j++) {
        const float *from[4] = {coarse.u + coarse.row(i / 2, j / 2), coarse.u + coarse.row(i / 2, (j + 1) / 2),
                                coarse.u + coarse.row((i + 1) / 2, j / 2),
                                coarse.u + coarse.row((i + 1) / 2, (j + 1) / 2)};
        float *to = l.u + l.row(i, j);
        const index_t odd = (i + j) % 2;
        index_t n = 1 - odd;
        for (; 2 * n + odd + FLOATS < l.nz; n += FLOATS / 2) {
            half_floats total = {};
            for (int c = 0; c < 4; c++)
                total += load<half_floats>(from[c] + n) + load<half_floats>(from[c] + n + odd);
            store(to + 2 * n + odd, load<floats>(to + 2 * n + odd) + 0.125f * spread(total));
        }
        for (; n < coarse.nz - 1; n++) {
            float total = 0;
            for (int c = 0; c < 4; c++)
                total += from[c][n] + from[c][n + odd];
            to[2 * n + odd] += 0.125f * total;
        }
    }
}

// Write weighted sums of planes 2 i - 1 to 2 i + 1 of the residual, which `planes` holds, to plane i of the coarse
// level. The weights are trilinear; the residual is 0 at the direct neighbours of a coarse node and at the corners
// around it.
static void restrict_plane(const Level &fine, const float *planes, const Level &coarse, index_t i)
{
    const float *low = planes + (2 * i - 1) % 3 * fine.plane(), *middle = planes + 2 * i % 3 * fine.plane();
    const float *high = planes + (2 * i + 1) % 3 * fine.plane();
    for (index_t j = 1; j < coarse.ny - 1; j++) {
        const index_t b = 2 * j * fine.nz, before = b - fine.nz, behind = b + fine.nz;
        for (index_t k = 1; k < coarse.nz - 1; k++) {
            const index_t c = 2 * k;
            const float sides = low[before + c] + low[behind + c] + high[before + c] + high[behind + c];
            const float left = low[b + c - 1] + high[b + c - 1] + middle[before + c - 1] + middle[behind + c - 1];
            const float right = low[b + c + 1] + high[b + c + 1] + middle[before + c + 1] + middle[behind + c + 1];
            coarse.f[coarse.row(i, j) + k] = 0.5f * middle[b + c] + 0.125f * (sides + left + right);
        }
    }
}

// Smooth the planes at both ends of a thread's share that a pass over planes had to leave out: s planes in step s. They
// depend on those of other threads. Step s solves for the nodes of colour s % 2.
static bool smooth_ends(const Level &l, index_t first, index_t last, int steps, const Team &team)
{
    for (int s = 1; s <= steps; s++) {
        if (!team.meet())
            return false;
        const index_t begin = first + s < last ? first + s : last, end = last - s > first + s ? last - s : first + s;
        for (index_t i = first; i < begin; i++)
            smooth_plane(l, i, s % 2);
        for (index_t i = end; i < last; i++)
            smooth_plane(l, i, s % 2);
    }
    return team.meet();
}

// A thread's share of the inner planes.
DEVICE void share(const Level &l, const Team &team, index_t &first, index_t &last)
{
    team.part(l.nx - 2, first, last);
    first++;
    last++;
}

// Smooth u, which is 0 at first, in two sweeps, and write weighted sums of the residual to the coarse level.
//
// All steps are done in one pass over planes, each step one plane behind the previous one, so that data are still in the
// cache; `planes` (3, ny, nz) is scratch.
static bool go_down(const Level &l, const Level &coarse, float *planes, const Team &team)
{
    const int steps = 2 * SMOOTHINGS - 1, end = steps + 1;
    index_t first, last;
    share(l, team, first, last);
    for (index_t i = first; i < last + end; i++) {
        if (i < last)
            start_plane(l, i);
        for (int s = 1; s < end; s++)
            if (first + s <= i - s && i - s < last - s)
                smooth_plane(l, i - s, s % 2);
        const index_t done = i - end;
        if (first + end <= done && done < last - end) {
            residual_plane(l, done, planes + done % 3 * l.plane());
            if (done % 2 && done - 2 >= first + end)
                restrict_plane(l, planes, coarse, done / 2);
        }
    }
    if (!smooth_ends(l, first, last, steps, team))
        return false;
    for (index_t i = (first + 1) / 2; i < (last + 1) / 2; i++) {
        if (first + end < 2 * i && 2 * i < last - end - 1)
            continue;
        for (index_t fine = 2 * i - 1; fine < 2 * i + 2; fine++)
            residual_plane(l, fine, planes + fine % 3 * l.plane());
        restrict_plane(l, planes, coarse, i);
    }
    return team.meet();
}

// Add the values of the coarse level and smooth u in two sweeps, in one pass as in go_down.
static bool go_up(const Level &coarse, const Level &l, const Team &team)
{
    const int steps = 2 * SMOOTHINGS;
    index_t first, last;
    share(l, team, first, last);
    for (index_t i = first; i < last + steps; i++) {
        if (i < last)
            prolong_plane(coarse, l, i);
        for (int s = 1; s <= steps; s++)
            if (first + s <= i - s && i - s < last - s)
                smooth_plane(l, i - s, s % 2);
    }
    return smooth_ends(l, first, last, steps, team);
}

struct Gradients {
    const index_t *shapes, *offsets;  // (levels, 3), and (levels + 1,) in arrays of all levels; the finest is separate
    const float *x, *y, *z, *d;       // finest level
    const float *coarse_x, *coarse_y, *coarse_z, *coarse_d;
    float *u, *f, *coarse_u, *coarse_f;  // f is the residual; the coarse levels of both are scratch
    const float *k2;                  // contribution of the ions to the diagonal, on the finest level
    float *direction, *w;             // finest level; the faces of direction are 0; w is changed
    float *planes;                    // (workers, 3, ny, nz) scratch
    double *sums;                     // (3, nx) scratch, 0 at first
    index_t *iterations;              // (2,) their number, and whether they reduced the residual so far
    index_t levels, max_iterations;
    double tolerance;                 // factor by which the residual is to be reduced
};

DEVICE Level level_of(const Gradients &args, index_t n)
{
    const index_t *shape = args.shapes + 3 * n, at = n ? args.offsets[n] - args.offsets[1] : 0;
    if (n == 0)
        return {shape[0], shape[1], shape[2], args.x, args.y, args.z, args.d, args.u, args.f};
    return {shape[0], shape[1], shape[2], args.coarse_x + at, args.coarse_y + at, args.coarse_z + at,
            args.coarse_d + at, args.coarse_u + at, args.coarse_f + at};
}

// Apply one V cycle to f and write the result to u. The first thread alone computes the small levels.
static bool apply_cycle(const Gradients &args, const Team &team)
{
    const index_t coarsest = args.levels - 1;
    const Team alone = {0, 1, team.shared};
    index_t small = 0;
    while (small < coarsest && args.offsets[small + 1] - args.offsets[small] >= SMALL_LEVEL)
        small++;
    float *planes = args.planes + 3 * args.shapes[1] * args.shapes[2] * team.worker;
    for (index_t n = 0; n < coarsest && (n < small || team.worker == 0); n++) {
        const Level l = level_of(args, n);
        for (index_t at = 0; at < 3 * l.plane(); at++)
            planes[at] = 0;
        if (!go_down(l, level_of(args, n + 1), planes, n < small ? team : alone))
            return false;
    }
    if (team.worker == 0) {
        const Level l = level_of(args, coarsest);
        for (index_t at = 0; at < l.nx * l.plane(); at++)
            l.u[at] = 0;
        for (int sweep = 0; sweep < 2 * COARSEST_SWEEPS; sweep++)
            for (int half = 0; half < 2; half++)
                for (index_t i = 1; i < l.nx - 1; i++)
                    smooth_plane(l, i, sweep < COARSEST_SWEEPS ? half : 1 - half);
    }
    for (index_t n = coarsest - 1; n >= 0; n--) {
        if (n >= small && team.worker)
            continue;
        if (n == small - 1 && !team.meet())
            return false;
        if (!go_up(level_of(args, n + 1), level_of(args, n), n < small ? team : alone))
            return false;
    }
    return small || team.meet();
}

// Reset the faces of a plane, which vectors have overwritten, to 0.
DEVICE void clear_faces(const Level &l, index_t i, float *values)
{
    for (index_t j = 1; j < l.ny - 1; j++)
        values[l.row(i, j)] = values[l.row(i, j) + l.nz - 1] = 0;
    for (int k = 0; k < FLOATS; k++)
        values[l.row(i, l.ny - 1) + k] = 0;
}

// Write the operator applied to p in a plane to q; return the sum of p q in it.
static double apply_plane(const Level &l, index_t i, const float *p, const float *k2, float *q)
{
    const index_t sx = l.plane(), sy = l.nz;
    if (l.nz < FLOATS) {
        double total = 0;
        for (index_t j = 1; j < l.ny - 1; j++)
            for (index_t at = l.row(i, j) + 1; at < l.row(i, j) + l.nz - 1; at++) {
                const float c = p[at];
                q[at] = l.x[at] * (c - p[at + sx]) + l.x[at - sx] * (c - p[at - sx]) + l.y[at] * (c - p[at + sy])
                    + l.y[at - sy] * (c - p[at - sy]) + l.z[at] * (c - p[at + 1]) + l.z[at - 1] * (c - p[at - 1])
                    + k2[at] * c;
                total += q[at] * c;
            }
        return total;
    }
    floats sums = {};
    for (index_t at = l.row(i, 1); at < l.row(i, l.ny - 1); at += FLOATS) {
        const floats c = load<floats>(p + at);
        floats total = load<floats>(k2 + at) * c;
        total += load<floats>(l.x + at) * (c - load<floats>(p + at + sx));
        total += load<floats>(l.x + at - sx) * (c - load<floats>(p + at - sx));
        total += load<floats>(l.y + at) * (c - load<floats>(p + at + sy));
        total += load<floats>(l.y + at - sy) * (c - load<floats>(p + at - sy));
        total += load<floats>(l.z + at) * (c - load<floats>(p + at + 1));
        total += load<floats>(l.z + at - 1) * (c - load<floats>(p + at - 1));
        store(q + at, total);
        sums += total * c;
    }
    clear_faces(l, i, q);
    double total = 0;
    for (int n = 0; n < FLOATS; n++)
        total += sums[n];
    return total;
}

// Replace the direction p by z + beta p in a plane; with a beta of 0, p may be what an earlier solution left.
DEVICE void update_direction(const Level &l, index_t i, float beta, const float *z, float *p)
{
    for (index_t j = 1; j < l.ny - 1; j++) {
        const float *zj = z + l.row(i, j);
        float *pj = p + l.row(i, j);
#pragma omp simd
        for (index_t k = 1; k < l.nz - 1; k++)
            pj[k] = beta == 0 ? zj[k] : zj[k] + beta * pj[k];
    }
}

// Write the sum of a b in each of a range of planes to sums.
DEVICE void sum_products(const Level &l, index_t first, index_t last, const float *a, const float *b, double *sums)
{
    for (index_t i = first; i < last; i++) {
        double total = 0;
        for (index_t j = 1; j < l.ny - 1; j++) {
            const float *aj = a + l.row(i, j), *bj = b + l.row(i, j);
            float part = 0;
#pragma omp simd reduction(+ : part)
            for (index_t k = 1; k < l.nz - 1; k++)
                part += aj[k] * bj[k];
            total += part;
        }
        sums[i] = total;
    }
}

// Take a step along p; write the sum of squares of the residual in each plane to sums.
DEVICE void advance(const Level &l, index_t first, index_t last, float step, const float *p, const float *q, float *w,
                    double *sums)
{
    for (index_t i = first; i < last; i++) {
        double total = 0;
        for (index_t j = 1; j < l.ny - 1; j++) {
            const index_t row = l.row(i, j);
            const float *pj = p + row, *qj = q + row;
            float *wj = w + row, *rj = l.f + row, part = 0;
#pragma omp simd reduction(+ : part)
            for (index_t k = 1; k < l.nz - 1; k++) {
                wj[k] += step * pj[k];
                const float value = rj[k] - step * qj[k];
                rj[k] = value;
                part += value * value;
            }
            total += part;
        }
        sums[i] = total;
    }
}

DEVICE double sum_of(const double *sums, index_t count)
{
    double total = 0;
    for (index_t i = 0; i < count; i++)
        total += sums[i];
    return total;
}

// Add to w the correction that reduces the residual f by the factor `tolerance`.
TEAM_KERNEL(solve_gradients, Gradients, team)
{
    const Level l = level_of(args, 0);
    const float *k2 = args.k2;
    float *p = args.direction, *q = args.u;
    double *norms = args.sums, *products = args.sums + l.nx, *energies = args.sums + 2 * l.nx, before = 0;
    index_t first, last;
    share(l, team, first, last);
    sum_products(l, first, last, l.f, l.f, norms);
    if (!team.meet())
        return;
    const double goal = sum_of(norms, l.nx) * args.tolerance * args.tolerance;
    for (index_t count = 0; count < args.max_iterations; count++) {
        if (!apply_cycle(args, team))
            return;
        sum_products(l, first, last, l.f, q, products);
        if (!team.meet())
            return;
        const double now = sum_of(products, l.nx);
        if (!(now > 0) || !isfinite(now))
            return;
        // one pass over planes; q may be the same array as the cycle's result, because that is read before q is written
        for (index_t i = first; i < last; i++) {
            update_direction(l, i, (float)(count ? now / before : 0), q, p);
            if (first < i - 1)
                energies[i - 1] = apply_plane(l, i - 1, p, k2, q);
        }
        before = now;
        if (!team.meet())
            return;
        energies[first] = apply_plane(l, first, p, k2, q);
        if (last - 1 != first)
            energies[last - 1] = apply_plane(l, last - 1, p, k2, q);
        if (!team.meet())
            return;
        advance(l, first, last, (float)(now / sum_of(energies, l.nx)), p, q, args.w, norms);
        if (!team.meet())
            return;
        if (team.worker == 0)
            args.iterations[0] = count + 1;
        if (sum_of(norms, l.nx) <= goal) {
            if (team.worker == 0)
                args.iterations[1] = 1;
            return;
        }
    }
}

struct Coarsening {
    const float *fine;  // conductances of edges along an axis, (fine_shape)
    float *coarse;      // (shape)
    index_t fine_shape[3], shape[3];
    int axis;
};

DEVICE index_t clamped(index_t place, index_t count) { return place < 0 ? 0 : place > count - 1 ? count - 1 : place; }
DEVICE float in_series(float first, float second) { return first * second / (first + second); }

// Two fine edges are in series along a coarse one; this is averaged with weights over the neighbouring parallel edges.
KERNEL(coarsen_conductances, Coarsening, i)
{
    const index_t ax = args.axis == 0, ay = args.axis == 1, az = args.axis == 2, *n = args.fine_shape;
    const index_t step = (ax * n[1] + ay) * n[2] + az;
    if (i >= args.shape[0] - ax)
        return;
    for (index_t j = 0; j < args.shape[1] - ay; j++) {
        float *coarse = args.coarse + (i * args.shape[1] + j) * args.shape[2];
        const index_t count = args.shape[2] - az;
        for (index_t k = 0; k < count; k++)
            coarse[k] = 0;
        for (int s = -1; s < 2; s++)
            for (int t = -1; t < 2; t++) {
                const index_t a = clamped(2 * i + (ax ? 0 : s), n[0]), b = clamped(2 * j + (ay ? 0 : ax ? s : t), n[1]);
                const index_t shift = az ? 0 : t;
                const float *row = args.fine + (a * n[1] + b) * n[2];
                const float weight = 0.125f * (s ? 1.0f : 2.0f) * (t ? 1.0f : 2.0f);
                coarse[0] += weight * in_series(row[clamped(shift, n[2])], row[clamped(shift, n[2]) + step]);
#pragma omp simd
                for (index_t k = 1; k < count - 1; k++)
                    coarse[k] += weight * in_series(row[2 * k + shift], row[2 * k + shift + step]);
                const index_t last = clamped(2 * (count - 1) + shift, n[2]);
                if (count > 1)
                    coarse[count - 1] += weight * in_series(row[last], row[last + step]);
            }
    }
}

struct Diagonal {
    const float *x, *y, *z;   // conductances of the level
    const float *k2;          // ions on the finest level, every `step` nodes of which is one of this level
    float *d;                 // the inverse diagonal
    index_t shape[3], fine_shape[3], step;
};

KERNEL(invert_diagonal, Diagonal, i)
{
    const index_t *n = args.shape, sx = n[1] * n[2], sy = n[2], step = args.step;
    if (i < 1 || i >= n[0] - 1)
        return;
    const float factor = (float)(step * step);
    for (index_t j = 1; j < n[1] - 1; j++) {
        const float *ions = args.k2 + (i * step * args.fine_shape[1] + j * step) * args.fine_shape[2];
        for (index_t k = 1; k < n[2] - 1; k++) {
            const index_t at = i * sx + j * sy + k;
            args.d[at] = 1.0f / (args.x[at] + args.x[at - sx] + args.y[at] + args.y[at - sy] + args.z[at]
                                 + args.z[at - 1] + factor * ions[k * step]);
        }
    }
}

struct Residual {
    const float *w, *x, *y, *z, *k2, *sources;
    const double *ions;   // (kinds, 2) valences and shares of the ionic strength, for the full equation
    float *out;
    double *sums;         // (nx,) for the sums of squares
    index_t shape[3], kinds;
};

// Write the residual of w, summed in float64, to a plane of out.
KERNEL(compute_residual, Residual, i)
{
    const Level l = {args.shape[0], args.shape[1], args.shape[2], args.x, args.y, args.z, nullptr, nullptr, nullptr};
    const index_t sx = l.plane(), sy = l.nz;
    const float *w = args.w;
    if (i < 1 || i >= l.nx - 1)
        return;
    if (l.nz >= FLOATS && !args.kinds) {
        for (index_t at = l.row(i, 1); at < l.row(i, l.ny - 1); at += DOUBLES) {
            const doubles c = widen(load<half_floats>(w + at));
            doubles total = widen(load<half_floats>(args.sources + at)) - widen(load<half_floats>(args.k2 + at)) * c;
            total += widen(load<half_floats>(l.x + at)) * (widen(load<half_floats>(w + at + sx)) - c);
            total += widen(load<half_floats>(l.x + at - sx)) * (widen(load<half_floats>(w + at - sx)) - c);
            total += widen(load<half_floats>(l.y + at)) * (widen(load<half_floats>(w + at + sy)) - c);
            total += widen(load<half_floats>(l.y + at - sy)) * (widen(load<half_floats>(w + at - sy)) - c);
            total += widen(load<half_floats>(l.z + at)) * (widen(load<half_floats>(w + at + 1)) - c);
            total += widen(load<half_floats>(l.z + at - 1)) * (widen(load<half_floats>(w + at - 1)) - c);
            store(args.out + at, narrow(total));
        }
        clear_faces(l, i, args.out);
        return;
    }
    for (index_t j = 1; j < l.ny - 1; j++)
        for (index_t at = l.row(i, j) + 1; at < l.row(i, j) + l.nz - 1; at++) {
            const double c = w[at];
            double total = l.x[at] * (w[at + sx] - c) + l.x[at - sx] * (w[at - sx] - c) + l.y[at] * (w[at + sy] - c)
                + l.y[at - sy] * (w[at - sy] - c) + l.z[at] * (w[at + 1] - c) + l.z[at - 1] * (w[at - 1] - c);
            double charge = args.kinds ? 0 : c;
            for (index_t n = 0; args.k2[at] > 0 && n < args.kinds; n++)
                charge -= args.ions[2 * n + 1] / args.ions[2 * n] * exp(fmin(50, -args.ions[2 * n] * c));
            args.out[at] = (float)(total + args.sources[at] - args.k2[at] * charge);
        }
}

// Write the sum of the squares of the residual in an inner plane to sums.
KERNEL(sum_squares, Residual, i)
{
    const Level l = {args.shape[0], args.shape[1], args.shape[2], nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
    if (i >= 1 && i < l.nx - 1)
        sum_products(l, i, i + 1, args.out, args.out, args.sums);
}

// Write the derivative of the ions' term of the full equation to a plane of out.
KERNEL(compute_slope, Residual, i)
{
    const index_t plane = args.shape[1] * args.shape[2];
    for (index_t at = i * plane; at < (i + 1) * plane; at++) {
        double total = 0;
        for (index_t n = 0; args.k2[at] > 0 && n < args.kinds; n++)
            total += args.ions[2 * n + 1] * exp(fmin(50, -args.ions[2 * n] * args.w[at]));
        args.out[at] = (float)(args.k2[at] * total);
    }
}
#endif

struct Change {
    const float *change, *k2;   // (shape)
    float *w;                   // (shape)
    double *sums;               // (planes,)
    index_t shape[3];
    float factor;
};

// The largest change of the potential at nodes where ions are.
REDUCE_KERNEL(find_largest_change, Change, shape, sums, 1, larger_of, i, j, k)
{
    const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
    const float size = fabsf(args.change[at]);
    if (size > joined[0] && args.k2[at] > 0)
        joined[0] = size;
}

NODE_KERNEL(add_change, Change, shape, i, j, k)
{
    const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
    args.w[at] += args.factor * args.change[at];
}
