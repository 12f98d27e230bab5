// Conjugate gradients preconditioned by one multigrid cycle. A team computes all steps in one launch: threads of a CPU,
// each of which has some planes, or blocks of a GPU, whose threads have single nodes.
//
// Nodes on the faces of a level keep their values. A node has colour 0 if the sum of its three indices is even,
// otherwise colour 1. On CPUs, sums over nodes are added up plane by plane, so that results do not depend on the number
// of threads.
//
// Several potentials, of different sources, may be solved for at once. They share the conductances. Threads of a CPU
// take one after the other; the blocks of a GPU are divided into teams that take different ones, because the steps of a
// single solution are too short for all of them.
#include "kernel.h"
#ifndef __CUDACC__
#include "vectors.h"
#endif

// Sweeps in each direction on the coarsest level; on each other level before and after the coarser ones.
#define COARSEST_SWEEPS 6
#define SMOOTHINGS 2

struct Equation {
    const index_t *shapes, *starts;   // (levels, 3); (levels + 1,) where levels begin and end in arrays of all of them
    const float *x, *y, *z;           // conductances of the edges from each node of the finest level along an axis
    float *coarse;                    // those along x of all coarse levels, then y, then z
    float *inverse;                   // of all levels: the inverse diagonals
    float *scratch;                   // for each system, of all levels: u, and the residual f; of the finest level: the
                                      // direction, and the ions' contribution at w for the full equation. Faces are 0
    const float *k2;                  // finest level: contribution of the ions to the diagonal
    float *w;                         // (systems, finest level)
    const float *sources, *values;    // (systems, finest level): see compute_residual
    const double *ions;               // (kinds, 2) valences and shares of the ionic strength, for the full equation
    double *sums;                     // (systems, 3, parts) scratch, 0 at first; compute_residual writes two rows
    double *state;                    // (systems, 3) of the last iteration: residual times correction, squares of the
                                      // residual, and number of iterations
    const double *limits;             // (systems,) sum of the squares of the residual at which they stop
    index_t levels, parts, kinds, systems, stride, begin, end;  // numbers in scratch for a system; iterations from
                                                                // `begin` to `end`
};

// The equation of one of several systems, with its own arrays.
DEVICE Equation equation_of(const Equation &args, index_t system)
{
    Equation own = args;
    const index_t nodes = args.starts[1];
    own.scratch += system * args.stride;
    own.w += system * nodes;
    own.sources += system * nodes;
    own.values += args.values ? system * nodes : 0;
    own.sums += system * 3 * args.parts;
    own.state += 3 * system;
    own.limits += args.limits ? system : 0;
    return own;
}

// Call body(equation, team) for each system.
template <class Body> DEVICE void for_systems(const Equation &args, const Team &team, Body body)
{
#ifdef __CUDACC__
    const int teams = args.systems < team.workers ? (int)args.systems : team.workers, size = team.workers / teams;
    const int mine = team.worker / size;
    if (mine >= teams)
        return;
    const Team part = {team.worker % size, size, team.shared + mine * (COUNTER_BYTES / sizeof(unsigned))};
    for (index_t system = mine; system < args.systems; system += teams)
        body(equation_of(args, system), part);
#else
    for (index_t system = 0; system < args.systems; system++)
        body(equation_of(args, system), team);
#endif
}

// The arrays of a level, as in Equation.
struct Level {
    int nx, ny, nz;
    const float *x, *y, *z, *d;
    float *u, *f;

    MEMBER index_t plane() const { return (index_t)ny * nz; }
    MEMBER index_t row(index_t i, index_t j) const { return (i * ny + j) * nz; }
};

DEVICE Level level_of(const Equation &args, index_t n)
{
    const index_t *shape = args.shapes + 3 * n, all = args.starts[args.levels], finest = args.starts[1];
    const int nx = (int)shape[0], ny = (int)shape[1], nz = (int)shape[2];
    const float *d = args.inverse + args.starts[n];
    float *u = args.scratch + args.starts[n], *f = u + all;
    if (n == 0)
        return {nx, ny, nz, args.x, args.y, args.z, d, u, f};
    const float *x = args.coarse + args.starts[n] - finest, *y = x + all - finest;
    return {nx, ny, nz, x, y, y + all - finest, d, u, f};
}

DEVICE float *direction_of(const Equation &args) { return args.scratch + 2 * args.starts[args.levels]; }

// The contribution of the ions to the diagonal of the finest level, at w for the full equation.
DEVICE const float *added_of(const Equation &args)
{
    return args.kinds ? direction_of(args) + args.starts[1] : args.k2;
}

// The sum over neighbours of conductance times what `value` returns for them.
template <class Value> DEVICE float sum_around(const Level &l, index_t at, Value value)
{
    const index_t sx = l.plane(), sy = l.nz;
    return l.x[at] * value(at + sx) + l.x[at - sx] * value(at - sx) + l.y[at] * value(at + sy)
        + l.y[at - sy] * value(at - sy) + l.z[at] * value(at + 1) + l.z[at - 1] * value(at - 1);
}

DEVICE float around(const Level &l, index_t at)
{
    const float *u = l.u;
    return sum_around(l, at, [=](index_t n) { return u[n]; });
}

// The residual at a node.
DEVICE float rest(const Level &l, index_t at) { return l.f[at] + around(l, at) - l.u[at] / l.d[at]; }

// What p makes flow out of a node.
DEVICE float outflow(const Level &l, index_t at, const float *p, const float *added)
{
    const index_t sx = l.plane(), sy = l.nz;
    const float c = p[at];
    return l.x[at] * (c - p[at + sx]) + l.x[at - sx] * (c - p[at - sx]) + l.y[at] * (c - p[at + sy])
        + l.y[at - sy] * (c - p[at - sy]) + l.z[at] * (c - p[at + 1]) + l.z[at - 1] * (c - p[at - 1]) + added[at] * c;
}

// The ions' term at a potential, divided by its coefficient in the linear equation, or the derivative of that.
DEVICE double of_ions(const Equation &args, double w, bool derivative)
{
    double total = 0;
    for (index_t n = 0; n < args.kinds; n++) {
        const double valence = args.ions[2 * n], share = args.ions[2 * n + 1];
        total += (derivative ? share : -share / valence) * exp(fmin(50.0, -valence * w));
    }
    return total;
}

// The residual of w at a node, in float64.
DEVICE float exact_rest(const Equation &args, const Level &l, index_t at)
{
    const index_t sx = l.plane(), sy = l.nz;
    const float *w = args.w;
    const double c = w[at];
    const double total = l.x[at] * (w[at + sx] - c) + l.x[at - sx] * (w[at - sx] - c) + l.y[at] * (w[at + sy] - c)
        + l.y[at - sy] * (w[at - sy] - c) + l.z[at] * (w[at + 1] - c) + l.z[at - 1] * (w[at - 1] - c);
    const double charge = !args.kinds ? c : args.k2[at] > 0 ? of_ions(args, c, false) : 0;
    return (float)(total + args.sources[at] - args.k2[at] * charge);
}

#ifdef __CUDACC__
// Number of nodes of a level below which one block alone is faster than several that have to synchronise.
#define SMALL_LEVEL 6000

// Call body(at, i, j, k) for the inner nodes at every `step`-th place from `first` on.
template <class Body> DEVICE void for_places(const Level &l, const Team &team, index_t first, index_t step, Body body)
{
    for (index_t at = first + step * team.thread(); at < l.nx * l.plane(); at += step * team.threads()) {
        const Node n = find_node(at, l.ny, l.nz);
        if (n.i > 0 && n.j > 0 && n.k > 0 && n.i + 1 < l.nx && n.j + 1 < l.ny && n.k + 1 < l.nz)
            body(at, n.i, n.j, n.k);
    }
}

template <class Body> DEVICE void for_inner(const Level &l, const Team &team, Body body)
{
    for_places(l, team, 0, 1, body);
}

// Likewise for the inner nodes of a colour. Where rows and planes have odd numbers of nodes, colours alternate in
// memory.
template <class Body> DEVICE void for_colour(const Level &l, const Team &team, int colour, Body body)
{
    const bool alternates = l.ny % 2 && l.nz % 2;
    for_places(l, team, alternates ? colour : 0, alternates ? 2 : 1, [=](index_t at, int i, int j, int k) {
        if ((i + j + k + colour) % 2 == 0)
            body(at, i, j, k);
    });
}

// Write the sum over this block's inner nodes of what body(at) returns to its place in sums.
template <class Body> DEVICE void sum_inner(const Level &l, const Team &team, double *sums, Body body)
{
    double total = 0;
    for_inner(l, team, [&](index_t at, int, int, int) { total += body(at); });
    total = team.sum(total);
    if (threadIdx.x == 0)
        sums[team.worker] = total;
}

// The sum of what all blocks wrote.
DEVICE double sum_of(const Level &, const Team &team, const double *sums)
{
    double total = 0;
    for (int n = threadIdx.x; n < team.workers; n += TEAM_THREADS)
        total += sums[n];
    return team.sum(total);
}

// Solve for the nodes of a colour.
DEVICE void smooth_level(const Level &l, int colour, const Team &team)
{
    for_colour(l, team, colour, [=](index_t at, int, int, int) { l.u[at] = (l.f[at] + around(l, at)) * l.d[at]; });
}

// Smooth u, which is 0 at first, in two sweeps, and write weighted sums of the residual to the coarse level. The
// weights are trilinear; the residual is 0 at the direct neighbours of a coarse node and at the corners around it.
DEVICE bool go_down(const Level &l, const Level &coarse, const Team &team)
{
    for_colour(l, team, 0, [=](index_t at, int, int, int) { l.u[at] = l.f[at] * l.d[at]; });
    // without waiting for those: the nodes of colour 1 from the same products
    for_colour(l, team, 1, [=](index_t at, int, int, int) {
        l.u[at] = (l.f[at] + sum_around(l, at, [=](index_t n) { return l.f[n] * l.d[n]; })) * l.d[at];
    });
    for (int step = 2; step < 2 * SMOOTHINGS; step++) {
        if (!team.meet())
            return false;
        smooth_level(l, step % 2, team);
    }
    if (!team.meet())
        return false;
    for_inner(coarse, team, [=](index_t at, int i, int j, int k) {
        const index_t middle = l.row(2 * i, 2 * j) + 2 * k, sx = l.plane(), sy = l.nz;
        float total = 0;
        for (int axis = 0; axis < 3; axis++) {
            const index_t a = axis == 0 ? sy : sx, b = axis == 2 ? sy : 1;  // steps along the other two
            total += rest(l, middle - a - b) + rest(l, middle - a + b) + rest(l, middle + a - b)
                + rest(l, middle + a + b);
        }
        coarse.f[at] = 0.5f * rest(l, middle) + 0.125f * total;
    });
    return team.meet();
}

// Add the values of the coarse level, interpolated trilinearly, and smooth u in two sweeps. The first step solves for
// the nodes of colour 1, from those of colour 0 alone.
DEVICE bool go_up(const Level &coarse, const Level &l, const Team &team)
{
    for_colour(l, team, 0, [=](index_t at, int i, int j, int k) {
        float total = 0;
        for (int a = i / 2, m = 0; m < 2; m++, a = (i + 1) / 2)
            for (int b = j / 2, n = 0; n < 2; n++, b = (j + 1) / 2)
                total += coarse.u[coarse.row(a, b) + k / 2] + coarse.u[coarse.row(a, b) + (k + 1) / 2];
        l.u[at] += 0.125f * total;
    });
    for (int step = 1; step <= 2 * SMOOTHINGS; step++) {
        if (!team.meet())
            return false;
        smooth_level(l, step % 2, team);
    }
    return team.meet();
}

// Replace the direction p by z + beta p, where z is in q, and write the operator applied to p to q and the sums of p q.
// With a beta of 0, p may be what an earlier solution left.
DEVICE bool turn(const Level &l, const Team &team, float beta, const float *added, float *p, float *q,
                        double *sums)
{
    for_inner(l, team, [=](index_t at, int, int, int) { p[at] = beta == 0 ? q[at] : q[at] + beta * p[at]; });
    if (!team.meet())
        return false;
    sum_inner(l, team, sums, [=](index_t at) { return (q[at] = outflow(l, at, p, added)) * p[at]; });
    return team.meet();
}

DEVICE void compute_rest(const Equation &args, const Level &l, const Team &team)
{
    for_inner(l, team, [&](index_t at, int, int, int) { l.f[at] = exact_rest(args, l, at); });
}
#else
// Number of nodes of a level below which one thread alone is faster than several that have to synchronise.
#define SMALL_LEVEL 30000
// Vectors that are solved for together: one by one, each would have to wait until the previous one is written.
#define TOGETHER 4

// A thread's share of the inner planes.
DEVICE void share(const Level &l, const Team &team, index_t &first, index_t &last)
{
    team.part(l.nx - 2, first, last);
    first++;
    last++;
}

// Call body(at, i, j, k) for the inner nodes.
template <class Body> DEVICE void for_inner(const Level &l, const Team &team, Body body)
{
    index_t first, last;
    share(l, team, first, last);
    for (index_t i = first; i < last; i++)
        for (index_t j = 1; j < l.ny - 1; j++)
#pragma omp simd
            for (index_t k = 1; k < l.nz - 1; k++)
                body(l.row(i, j) + k, i, j, k);
}

// Write the sum of what body(at) returns over the inner nodes of each plane to sums.
template <class Body> DEVICE void sum_inner(const Level &l, const Team &team, double *sums, Body body)
{
    index_t first, last;
    share(l, team, first, last);
    for (index_t i = first; i < last; i++) {
        double total = 0;
        for (index_t j = 1; j < l.ny - 1; j++) {
            const index_t row = l.row(i, j);
            float part = 0;
#pragma omp simd reduction(+ : part)
            for (index_t k = 1; k < l.nz - 1; k++)
                part += body(row + k);
            total += part;
        }
        sums[i] = total;
    }
}

// The sum over all planes.
DEVICE double sum_of(const Level &l, const Team &, const double *sums)
{
    double total = 0;
    for (index_t i = 0; i < l.nx; i++)
        total += sums[i];
    return total;
}

// Whether colours alternate along the whole of a plane, so that its inner rows can be processed as one run of nodes,
// with the face nodes between rows. The last vector may extend into the last row, which is a face.
DEVICE bool alternates(const Level &l) { return l.nz >= FLOATS && l.nz % 2; }

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
    if (!alternates(l)) {
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
    if (!alternates(l)) {
        for (index_t j = 1; j < l.ny - 1; j++)
            for (index_t k = 1, at = l.row(i, j) + 1; k < l.nz - 1; k++, at++)
                l.u[at] = (i + j + k) % 2 ? 0 : l.f[at] * l.d[at];
        return;
    }
    for (index_t at = l.row(i, 1) + (i + 1) % 2; at < l.row(i, l.ny - 1); at += FLOATS)
        store(l.u + at, even_places() ? load<floats>(l.f + at) * load<floats>(l.d + at) : floats{});
}

// Room for the residual of three planes, 0 at first.
struct ThreePlanes {
    float *values;
    ThreePlanes(const Level &l) : values((float *)calloc(3 * l.plane(), sizeof(float))) {}
    ~ThreePlanes() { free(values); }
    ThreePlanes(const ThreePlanes &) = delete;
};

// Write the residual of a plane just after solving for the nodes of colour 1, where it is 0.
static void residual_plane(const Level &l, index_t i, float *out)
{
    const index_t begin = l.row(i, 0);
    if (!alternates(l)) {
        for (index_t j = 1; j < l.ny - 1; j++)
            for (index_t k = 1, at = l.row(i, j) + 1; k < l.nz - 1; k++, at++)
                out[at - begin] = (i + j + k) % 2 ? 0 : rest(l, at);
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

// Smooth u, which is 0 at first, in two sweeps, and write weighted sums of the residual to the coarse level.
//
// All steps are done in one pass over planes, each step one plane behind the previous one, so that data are still in the
// cache.
static bool go_down(const Level &l, const Level &coarse, const Team &team)
{
    const ThreePlanes scratch(l);
    float *planes = scratch.values;
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

// Solve for the nodes of a colour, on one thread.
static void smooth_level(const Level &l, int colour, const Team &)
{
    for (index_t i = 1; i < l.nx - 1; i++)
        smooth_plane(l, i, colour);
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
static double apply_plane(const Level &l, index_t i, const float *p, const float *added, float *q)
{
    const index_t sx = l.plane(), sy = l.nz;
    if (l.nz < FLOATS) {
        double total = 0;
        for (index_t j = 1; j < l.ny - 1; j++)
            for (index_t at = l.row(i, j) + 1; at < l.row(i, j) + l.nz - 1; at++) {
                q[at] = outflow(l, at, p, added);
                total += q[at] * p[at];
            }
        return total;
    }
    floats sums = {};
    for (index_t at = l.row(i, 1); at < l.row(i, l.ny - 1); at += FLOATS) {
        const floats c = load<floats>(p + at);
        floats total = load<floats>(added + at) * c;
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

// Replace the direction p by z + beta p, where z is in q, and write the operator applied to p to q and the sums of p q.
static bool turn(const Level &l, const Team &team, float beta, const float *added, float *p, float *q, double *sums)
{
    index_t first, last;
    share(l, team, first, last);
    // one pass over planes: z is read before q is written
    for (index_t i = first; i < last; i++) {
        update_direction(l, i, beta, q, p);
        if (first < i - 1)
            sums[i - 1] = apply_plane(l, i - 1, p, added, q);
    }
    if (!team.meet())
        return false;
    sums[first] = apply_plane(l, first, p, added, q);
    if (last - 1 != first)
        sums[last - 1] = apply_plane(l, last - 1, p, added, q);
    return team.meet();
}

static void compute_rest(const Equation &args, const Level &l, const Team &team)
{
    if (l.nz < FLOATS || args.kinds) {
        for_inner(l, team, [&](index_t at, index_t, index_t, index_t) { l.f[at] = exact_rest(args, l, at); });
        return;
    }
    const index_t sx = l.plane(), sy = l.nz;
    const float *w = args.w;
    index_t first, last;
    share(l, team, first, last);
    for (index_t i = first; i < last; i++) {
        for (index_t at = l.row(i, 1); at < l.row(i, l.ny - 1); at += DOUBLES) {
            const doubles c = widen(load<half_floats>(w + at));
            doubles total = widen(load<half_floats>(args.sources + at)) - widen(load<half_floats>(args.k2 + at)) * c;
            total += widen(load<half_floats>(l.x + at)) * (widen(load<half_floats>(w + at + sx)) - c);
            total += widen(load<half_floats>(l.x + at - sx)) * (widen(load<half_floats>(w + at - sx)) - c);
            total += widen(load<half_floats>(l.y + at)) * (widen(load<half_floats>(w + at + sy)) - c);
            total += widen(load<half_floats>(l.y + at - sy)) * (widen(load<half_floats>(w + at - sy)) - c);
            total += widen(load<half_floats>(l.z + at)) * (widen(load<half_floats>(w + at + 1)) - c);
            total += widen(load<half_floats>(l.z + at - 1)) * (widen(load<half_floats>(w + at - 1)) - c);
            store(l.f + at, narrow(total));
        }
        clear_faces(l, i, l.f);
    }
}
#endif

// Apply one V cycle to f and write the result to u. The first worker alone computes the small levels.
DEVICE bool apply_cycle(const Equation &args, const Team &team)
{
    const index_t coarsest = args.levels - 1;
    const Team alone = {0, 1, team.shared};
    index_t small = 0;
    while (small < coarsest && level_of(args, small).nx * level_of(args, small).plane() >= SMALL_LEVEL)
        small++;
    for (index_t n = 0; n < coarsest && (n < small || team.worker == 0); n++)
        if (!go_down(level_of(args, n), level_of(args, n + 1), n < small ? team : alone))
            return false;
    if (team.worker == 0) {
        const Level l = level_of(args, coarsest);
        for_inner(l, alone, [=](index_t at, index_t, index_t, index_t) { l.u[at] = 0; });
        for (int sweep = 0; sweep < 2 * COARSEST_SWEEPS; sweep++)
            for (int half = 0; half < 2; half++) {
                if (!alone.meet())
                    return false;
                smooth_level(l, sweep < COARSEST_SWEEPS ? half : 1 - half, alone);
            }
        if (!alone.meet())
            return false;
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

DEVICE void solve_system(const Equation &args, const Team &team)
{
    const double limit = *args.limits;
    if (!isfinite(limit) || (args.begin && args.state[1] <= limit))
        return;
    const Level l = level_of(args, 0);
    float *p = direction_of(args), *q = l.u, *w = args.w, *f = l.f;
    double *norms = args.sums, *products = norms + args.parts, *energies = products + args.parts;
    for (index_t count = args.begin; count < args.end; count++) {
        if (!apply_cycle(args, team))
            return;
        sum_inner(l, team, products, [=](index_t at) { return f[at] * q[at]; });
        if (!team.meet())
            return;
        const double now = sum_of(l, team, products);
        if (!(now > 0) || !isfinite(now)) {
            if (team.leads()) {
                args.state[1] = INFINITY;
                args.state[2] = (double)count;
            }
            return;
        }
        if (!turn(l, team, (float)(count ? now / args.state[0] : 0), added_of(args), p, q, energies))
            return;
        const float step = (float)(now / sum_of(l, team, energies));
        sum_inner(l, team, norms, [=](index_t at) {
            w[at] += step * p[at];
            const float value = f[at] - step * q[at];
            f[at] = value;
            return value * value;
        });
        if (!team.meet())
            return;
        const double squares = sum_of(l, team, norms);
        if (team.leads()) {
            args.state[0] = now;
            args.state[1] = squares;
            args.state[2] = (double)(count + 1);
        }
        if (squares <= limit)
            return;
    }
}

// Add to w the correction that reduces the residual f until the sum of its squares is within the limit; none if that is
// infinite.
TEAM_KERNEL(solve_gradients, Equation, team)
{
    for_systems(args, team, [](const Equation &own, const Team &part) { solve_system(own, part); });
}

DEVICE void find_residual(const Equation &args, const Team &team)
{
    const Level l = level_of(args, 0);
    compute_rest(args, l, team);
    const float *f = l.f, *values = args.values;
    sum_inner(l, team, args.sums, [=](index_t at) { return f[at] * f[at]; });  // which each thread wrote itself
    if (values)
        sum_inner(l, team, args.sums + args.parts, [=](index_t at) { return values[at] * values[at]; });
}

// Write the residual of w to f, the sums of its squares, and those of `values` if there are any.
TEAM_KERNEL(compute_residual, Equation, team)
{
    for_systems(args, team, [](const Equation &own, const Team &part) { find_residual(own, part); });
}

// Compute the inverse diagonals of all levels, with the derivative of the ions' term at w for the full equation. On a
// coarse level it is that at the finest node, scaled to a larger cell.
TEAM_KERNEL(invert_diagonals, Equation, team)
{
    const float *added = added_of(args);
    if (args.kinds) {
        float *slope = direction_of(args) + args.starts[1];
        for_inner(level_of(args, 0), team, [&](index_t at, index_t, index_t, index_t) {
            slope[at] = args.k2[at] > 0 ? (float)(args.k2[at] * of_ions(args, args.w[at], true)) : 0;
        });
        if (!team.meet())
            return;
    }
    const index_t ny = args.shapes[1], nz = args.shapes[2];
    for (index_t n = 0; n < args.levels; n++) {
        const Level l = level_of(args, n);
        float *d = args.inverse + args.starts[n];
        const index_t sx = l.plane(), sy = l.nz, step = 1 << n;
        const float factor = (float)(step * step);
        for_inner(l, team, [=](index_t at, index_t i, index_t j, index_t k) {
            d[at] = 1.0f / (l.x[at] + l.x[at - sx] + l.y[at] + l.y[at - sy] + l.z[at] + l.z[at - 1]
                            + factor * added[(i * step * ny + j * step) * nz + k * step]);
        });
    }
}

DEVICE index_t clamped(index_t place, index_t count) { return place < 0 ? 0 : place > count - 1 ? count - 1 : place; }
DEVICE float in_series(float first, float second) { return first * second / (first + second); }

// Write the conductances of the coarse edges along an axis. Two fine edges are in series along a coarse one; this is
// averaged with weights over the neighbouring parallel edges.
#ifdef __CUDACC__
DEVICE void coarsen(const float *fine, float *out, const index_t *n, const index_t *shape, int axis,
                           const Team &team)
{
    const index_t ax = axis == 0, ay = axis == 1, az = axis == 2, step = (ax * n[1] + ay) * n[2] + az;
    for (index_t at = team.thread(); at < shape[0] * shape[1] * shape[2]; at += team.threads()) {
        const Node place = find_node(at, shape[1], shape[2]);
        const index_t i = place.i, j = place.j, k = place.k;
        float total = 0;
        if (i < shape[0] - ax && j < shape[1] - ay && k < shape[2] - az)
            for (int s = -1; s < 2; s++)
                for (int t = -1; t < 2; t++) {
                    const index_t a = clamped(2 * i + (ax ? 0 : s), n[0]);
                    const index_t b = clamped(2 * j + (ay ? 0 : ax ? s : t), n[1]);
                    const float *edge = fine + (a * n[1] + b) * n[2] + clamped(2 * k + (az ? 0 : t), n[2]);
                    total += 0.125f * (s ? 1.0f : 2.0f) * (t ? 1.0f : 2.0f) * in_series(edge[0], edge[step]);
                }
        out[at] = total;
    }
}
#else
static void coarsen(const float *fine, float *out, const index_t *n, const index_t *shape, int axis, const Team &team)
{
    const index_t ax = axis == 0, ay = axis == 1, az = axis == 2, step = (ax * n[1] + ay) * n[2] + az;
    index_t first, last;
    team.part(shape[0] - ax, first, last);
    for (index_t i = first; i < last; i++)
        for (index_t j = 0; j < shape[1] - ay; j++) {
            float *coarse = out + (i * shape[1] + j) * shape[2];
            const index_t count = shape[2] - az;
            for (index_t k = 0; k < count; k++)
                coarse[k] = 0;
            for (int s = -1; s < 2; s++)
                for (int t = -1; t < 2; t++) {
                    const index_t a = clamped(2 * i + (ax ? 0 : s), n[0]);
                    const index_t b = clamped(2 * j + (ay ? 0 : ax ? s : t), n[1]);
                    const index_t shift = az ? 0 : t;
                    const float *row = fine + (a * n[1] + b) * n[2];
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
#endif

// Compute the conductances of all coarse levels.
TEAM_KERNEL(coarsen_conductances, Equation, team)
{
    for (index_t n = 1; n < args.levels; n++) {
        const Level fine = level_of(args, n - 1);
        const index_t *shape = args.shapes + 3 * n, finest = args.starts[1], size = args.starts[args.levels] - finest;
        float *x = args.coarse + args.starts[n] - finest;
        coarsen(fine.x, x, shape - 3, shape, 0, team);
        coarsen(fine.y, x + size, shape - 3, shape, 1, team);
        coarsen(fine.z, x + 2 * size, shape - 3, shape, 2, team);
        if (!team.meet())
            return;
    }
}

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
