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

// Sweeps in each direction on the coarsest level; on each other level on the way down, before the coarser ones, and up.
// Further sweeps cost less than the iterations that they save. They are the same on both engines, whose solutions then
// differ by rounding alone.
#define COARSEST_SWEEPS 20
#define SMOOTHINGS 4
#define RELAXATION 1.4f
#define STEPS (2 * SMOOTHINGS)

// Step s of the sweeps solves for the nodes of colour s % 2: on the way down from 0 to STEPS - 1, and up from 1 to STEPS.
// Over-relaxation saves a sixth of the iterations, or more (I. Yavneh, SIAM J. Sci. Comput. 17 (1996) 180). Next to the
// coarser level there is none, so that the residual of colour 1 is 0, nor at the ends, from where values are 0.
DEVICE float relaxation_of(int step, bool down)
{
    return step == (down ? STEPS - 1 : 1) || step % STEPS == 0 ? 1 : RELAXATION;
}

struct Equation {
    const index_t *shapes, *starts;   // (levels, 3); (levels + 1,) where levels begin and end in arrays of all of them
    const float *x, *y, *z;           // conductances of the edges from each node of the finest level along an axis
    float *coarse;                    // those along x of all coarse levels, then y, then z; on CPUs of all levels, and
                                      // then what the ions add to the diagonal of the finest one
    float *inverse;                   // of all levels: the inverse diagonals
    float *scratch;                   // for each system, of all levels: u, and the residual f; of the finest level: the
                                      // direction, and the ions' contribution at w for the full equation. Faces are 0
    const float *k2;                  // finest level: contribution of the ions to the diagonal
    float *w;                         // (systems, finest level)
    const float *sources, *values;    // (systems, finest level): see compute_residual
    const double *ions;               // (kinds, 2) valences and shares of the ionic strength, for the full equation
    double *sums;                     // (systems, 3, parts) scratch, 0 at first; compute_residual writes two rows
    double *state;                    // (systems, 5) of the last iteration: residual times correction, squares of the
                                      // residual, and number of iterations; norm of the first residual or of the
                                      // sources, and squares of the residual at which iterations stop
    index_t levels, parts, kinds, systems, stride, begin, end;  // numbers in scratch for a system; iterations from
                                                                // `begin` to `end`
    index_t repeats;                  // whether the first residual is known from another round
    double tolerance, least;          // of the residual relative to the first one; its least reduction in a round
    double limit;                     // squares at which iterations for the residual at hand stop, instead of these
};

// The equation of one of several systems, with its own arrays.
DEVICE Equation equation_of(const Equation &args, index_t system)
{
    Equation own = args;
    const index_t nodes = args.shapes[0] * args.shapes[1] * args.shapes[2];
    own.scratch += system * args.stride;
    own.w += system * nodes;
    own.sources += system * nodes;
    own.values += args.values ? system * nodes : 0;
    own.sums += system * 3 * args.parts;
    own.state += 5 * system;
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

DEVICE float *direction_of(const Equation &args) { return args.scratch + 2 * args.starts[args.levels]; }

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

// The residual of w at a node, with the ions' charge there, divided by its coefficient. Flows, which are proportional to
// differences, have smaller errors of rounding than what the rounding of w makes of them.
DEVICE float rest_with(const Equation &args, index_t at, float charge)
{
    const index_t sy = args.shapes[2], sx = args.shapes[1] * sy;
    const float *w = args.w, *x = args.x, *y = args.y, *z = args.z;
    const float c = w[at];
    return x[at] * (w[at + sx] - c) + x[at - sx] * (w[at - sx] - c) + y[at] * (w[at + sy] - c)
        + y[at - sy] * (w[at - sy] - c) + z[at] * (w[at + 1] - c) + z[at - 1] * (w[at - 1] - c) + args.sources[at]
        - args.k2[at] * charge;
}

DEVICE float exact_rest(const Equation &args, index_t at)
{
    const float c = args.w[at];
    return rest_with(args, at, !args.kinds ? c : args.k2[at] > 0 ? (float)of_ions(args, c, false) : 0);
}

#ifdef __CUDACC__
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

// Solve for the nodes of a colour, with a relaxation.
DEVICE void smooth_level(const Level &l, int colour, const Team &team, float relaxation = 1)
{
    for_colour(l, team, colour, [=](index_t at, int, int, int) {
        l.u[at] += relaxation * ((l.f[at] + around(l, at)) * l.d[at] - l.u[at]);
    });
}

// Smooth u, which is 0 at first, and write weighted sums of the residual to the coarse level. The weights are trilinear;
// the residual is 0 at the direct neighbours of a coarse node and at the corners around it.
DEVICE bool go_down(const Level &l, const Level &coarse, const Team &team)
{
    for_colour(l, team, 0, [=](index_t at, int, int, int) { l.u[at] = l.f[at] * l.d[at]; });
    // without waiting for those: the nodes of colour 1 from the same products
    for_colour(l, team, 1, [=](index_t at, int, int, int) {
        const float sum = sum_around(l, at, [=](index_t n) { return l.f[n] * l.d[n]; });
        l.u[at] = relaxation_of(1, true) * (l.f[at] + sum) * l.d[at];
    });
    for (int step = 2; step < STEPS; step++) {
        if (!team.meet())
            return false;
        smooth_level(l, step % 2, team, relaxation_of(step, true));
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

// Add the values of the coarse level, interpolated trilinearly, and smooth u. The first step solves for the nodes of
// colour 1, from those of colour 0 alone.
DEVICE bool go_up(const Level &coarse, const Level &l, const Team &team)
{
    for_colour(l, team, 0, [=](index_t at, int i, int j, int k) {
        float total = 0;
        for (int a = i / 2, m = 0; m < 2; m++, a = (i + 1) / 2)
            for (int b = j / 2, n = 0; n < 2; n++, b = (j + 1) / 2)
                total += coarse.u[coarse.row(a, b) + k / 2] + coarse.u[coarse.row(a, b) + (k + 1) / 2];
        l.u[at] += 0.125f * total;
    });
    for (int step = 1; step <= STEPS; step++) {
        if (!team.meet())
            return false;
        smooth_level(l, step % 2, team, relaxation_of(step, false));
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

DEVICE void find_residual(const Equation &args, const Team &team)
{
    const Level l = level_of(args, 0);
    sum_inner(l, team, args.sums, [&](index_t at) {
        const float rest = exact_rest(args, at);
        l.f[at] = rest;
        return rest * rest;
    });
    if (const float *values = args.values)
        sum_inner(l, team, args.sums + args.parts, [=](index_t at) { return values[at] * values[at]; });
}

// Add a step along p to w, subtract it along q from the residual, and write the sums of the squares of that.
DEVICE void advance(const Equation &args, const Level &l, const Team &team, float step, const float *p, const float *q,
                    double *sums)
{
    float *w = args.w, *f = l.f;
    sum_inner(l, team, sums, [=](index_t at) {
        w[at] += step * p[at];
        const float value = f[at] - step * q[at];
        f[at] = value;
        return value * value;
    });
}

DEVICE void clear_level(const Level &l, const Team &team)
{
    for_inner(l, team, [=](index_t at, int, int, int) { l.u[at] = 0; });
}
#else
// Number of nodes of a level below which one thread alone is faster than several that have to synchronise.
#define SMALL_LEVEL 30000

// On CPUs the nodes of a plane are divided by colours: first those at even places of the plane, then those at odd ones.
// Rows have an odd number of places, so that all neighbours of a node in its plane are of the other kind, and sweeps over
// a colour run through memory, also over the faces, where inverse diagonals are 0. Each half of a plane begins at a
// cache line.
struct Level {
    int nx, ny, nz;
    index_t stride, half;             // places of a row, and of half a plane
    const float *x, *y, *z, *d;
    float *u, *f;

    index_t plane() const { return 2 * half; }
    index_t place(index_t i, index_t kind) const { return (2 * i + kind) * half; }
};

static Level level_of(const Equation &args, index_t n)
{
    const index_t *shape = args.shapes + 3 * n, all = args.starts[args.levels], stride = shape[2] | 1;
    const float *x = args.coarse + args.starts[n];
    float *u = args.scratch + args.starts[n];
    const index_t half = (args.starts[n + 1] - args.starts[n]) / (2 * shape[0]);
    return {(int)shape[0], (int)shape[1], (int)shape[2], stride, half, x, x + all, x + 2 * all,
            args.inverse + args.starts[n], u, u + all};
}

// What the ions add to the diagonal of the finest level, at w for the full equation.
static float *added_of(const Equation &args) { return args.coarse + 3 * args.starts[args.levels]; }

// The nodes of a row at even and at odd places of it.
template <class Number> struct Row {
    Number *even, *odd;
};

template <class Number> static Row<Number> row_of(const Level &l, Number *values, index_t i, index_t j)
{
    const index_t first = j * l.stride, kind = first % 2;
    return {values + l.place(i, kind) + first / 2, values + l.place(i, 1 - kind) + (first + 1) / 2};
}

static void put_row(const Level &l, const float *row, float *values, index_t i, index_t j)
{
    const Row<float> to = row_of(l, values, i, j);
#pragma omp simd
    for (index_t n = 0; n < l.nz / 2; n++) {
        to.even[n] = row[2 * n];
        to.odd[n] = row[2 * n + 1];
    }
    if (l.nz % 2)
        to.even[l.nz / 2] = row[l.nz - 1];
}

// Room for numbers, 0 at first.
struct Scratch {
    float *values;
    Scratch(index_t count) : values((float *)calloc(count, sizeof(float))) {}
    ~Scratch() { free(values); }
    Scratch(const Scratch &) = delete;
};

// A thread's share of the inner planes.
static void share(const Level &l, const Team &team, index_t &first, index_t &last)
{
    team.part(l.nx - 2, first, last);
    first++;
    last++;
}

// Write the sum of what body(at) returns over the nodes of each plane to sums; at faces it has to be 0.
template <class Body> static void sum_inner(const Level &l, const Team &team, double *sums, Body body)
{
    index_t first, last;
    share(l, team, first, last);
    for (index_t i = first; i < last; i++) {
        double total = 0;
        for (index_t j = 0; j < l.plane(); j += l.stride) {
            const index_t row = i * l.plane() + j, end = l.plane() - j < l.stride ? l.plane() - j : l.stride;
            float part = 0;
#pragma omp simd reduction(+ : part)
            for (index_t at = row; at < row + end; at++)
                part += body(at);
            total += part;
        }
        sums[i] = total;
    }
}

// The sum over all planes.
static double sum_of(const Level &l, const Team &, const double *sums)
{
    double total = 0;
    for (index_t i = 0; i < l.nx; i++)
        total += sums[i];
    return total;
}

// Pointers for the nodes of a kind in a plane: conductances of their edges, and values at the other ends.
struct Stencil {
    const float *x, *lower_x, *y, *lower_y, *z, *lower_z, *above, *below, *behind, *before, *right, *left;

    Stencil(const Level &l, const float *values, index_t i, index_t kind)
    {
        const index_t own = l.place(i, kind), other = l.place(i, 1 - kind), back = other + (l.stride - 1) / 2 + kind;
        x = l.x + own;
        lower_x = x - l.plane();
        y = l.y + own;
        lower_y = l.y + back - l.stride;
        z = l.z + own;
        lower_z = l.z + other + kind - 1;
        above = values + own + l.plane();
        below = values + own - l.plane();
        behind = values + back;
        before = behind - l.stride;
        right = values + other + kind;
        left = right - 1;
    }

    float around(index_t m) const
    {
        return x[m] * above[m] + lower_x[m] * below[m] + y[m] * behind[m] + lower_y[m] * before[m] + z[m] * right[m]
            + lower_z[m] * left[m];
    }

    float diagonal(index_t m) const { return x[m] + lower_x[m] + y[m] + lower_y[m] + z[m] + lower_z[m]; }

    // What flows out of a node with the value c.
    float outflow(index_t m, float c) const
    {
        return x[m] * (c - above[m]) + lower_x[m] * (c - below[m]) + y[m] * (c - behind[m]) + lower_y[m] * (c - before[m])
            + z[m] * (c - right[m]) + lower_z[m] * (c - left[m]);
    }
};

// Solve for the nodes of a colour in a plane, with a relaxation and a part of what they were.
static void smooth_plane(const Level &l, index_t i, int colour, float relaxation = 1, float kept = 0)
{
    const index_t kind = (i + colour) % 2, own = l.place(i, kind);
    const Stencil s(l, l.u, i, kind);
    float *u = l.u + own;
    const float *f = l.f + own, *d = l.d + own;
    if (kept == 0)
#pragma omp simd
        for (index_t m = 0; m < l.half; m++)
            u[m] = relaxation * ((f[m] + s.around(m)) * d[m]);
    else
#pragma omp simd
        for (index_t m = 0; m < l.half; m++)
            u[m] = relaxation * ((f[m] + s.around(m)) * d[m]) + kept * u[m];
}

// A step of the sweeps down or up. Before step 1 down, the nodes of its colour are 0.
static void smooth_step(const Level &l, index_t i, int step, bool down)
{
    const float relaxation = relaxation_of(step, down);
    smooth_plane(l, i, step % 2, relaxation, down && step == 1 ? 0 : 1 - relaxation);
}

// Solve for the nodes of colour 0 in a plane where all others are 0.
static void start_plane(const Level &l, index_t i)
{
    const index_t own = l.place(i, i % 2);
#pragma omp simd
    for (index_t at = own; at < own + l.half; at++)
        l.u[at] = l.f[at] * l.d[at];
}

// Write the residual of the nodes of colour 0 in a plane just after solving for those of colour 1, where it is 0.
static void residual_plane(const Level &l, index_t i, float *out)
{
    const index_t kind = i % 2, own = l.place(i, kind);
    const Stencil s(l, l.u, i, kind);
    const float *u = l.u + own, *f = l.f + own, *d = l.d + own;
#pragma omp simd
    for (index_t m = 0; m < l.half; m++)
        out[m] = f[m] + s.around(m) - u[m] / d[m];
}

// Add the values of the coarse level, interpolated trilinearly, to the nodes of colour 0 in a plane. The next step
// solves for the nodes of colour 1, from those of colour 0 alone. `sums` has room for a coarse plane.
static void prolong_plane(const Level &coarse, const Level &l, index_t i, float *sums)
{
    for (index_t j = 0; j < coarse.ny; j++) {
        const Row<float> low = row_of(coarse, coarse.u, i / 2, j), high = row_of(coarse, coarse.u, (i + 1) / 2, j);
        float *row = sums + j * coarse.stride;
#pragma omp simd
        for (index_t n = 0; n < coarse.nz / 2; n++) {
            row[2 * n] = low.even[n] + high.even[n];
            row[2 * n + 1] = low.odd[n] + high.odd[n];
        }
        row[coarse.nz - 1] = 0;  // a face
    }
    for (index_t j = 1; j < l.ny - 1; j++) {
        const index_t odd = (i + j) % 2;
        const float *a = sums + j / 2 * coarse.stride, *b = sums + (j + 1) / 2 * coarse.stride;
        float *to = l.u + l.place(i, i % 2) + (j * l.stride + odd - i % 2) / 2;
#pragma omp simd
        for (index_t n = 1 - odd; n < coarse.nz - 1; n++)
            to[n] += 0.125f * (a[n] + b[n] + a[n + odd] + b[n + odd]);
    }
}

// Write weighted sums of planes 2 i - 1 to 2 i + 1 of the residual, which `planes` holds before room for a row, to plane
// i of the coarse level. The weights are trilinear; the residual is 0 at the direct neighbours of a coarse node and at
// the corners around it.
static void restrict_plane(const Level &fine, float *planes, const Level &coarse, index_t i)
{
    const float *low = planes + (2 * i - 1) % 3 * fine.half, *middle = planes + 2 * i % 3 * fine.half;
    const float *high = planes + (2 * i + 1) % 3 * fine.half;
    const index_t less = (fine.stride - 1) / 2, more = less + 1;
    float *row = planes + 3 * fine.half;
    for (index_t j = 1; j < coarse.ny - 1; j++) {
        const float *a = low + j * fine.stride, *b = middle + j * fine.stride, *c = high + j * fine.stride;
#pragma omp simd
        for (index_t k = 1; k < coarse.nz - 1; k++) {
            const float outer = a[k + less] + a[k - more] + a[k] + a[k - 1] + c[k + less] + c[k - more] + c[k] + c[k - 1];
            row[k] = 0.5f * b[k] + 0.125f * (outer + b[k + more] + b[k + less] + b[k - less] + b[k - more]);
        }
        row[coarse.nz - 1] = 0;
        put_row(coarse, row, coarse.f, i, j);
    }
}

// Smooth the planes at both ends of a thread's share that a pass over planes had to leave out: s planes in step s. They
// depend on those of other threads.
static bool smooth_ends(const Level &l, index_t first, index_t last, bool down, const Team &team)
{
    for (int s = 1; s <= STEPS - down; s++) {
        if (!team.meet())
            return false;
        const index_t begin = first + s < last ? first + s : last, end = last - s > first + s ? last - s : first + s;
        for (index_t i = first; i < begin; i++)
            smooth_step(l, i, s, down);
        for (index_t i = end; i < last; i++)
            smooth_step(l, i, s, down);
    }
    return team.meet();
}

// Smooth u, which is 0 at first, and write weighted sums of the residual to the coarse level.
//
// All steps are done in one pass over planes, each step one plane behind the previous one, so that data are still in the
// cache.
static bool go_down(const Level &l, const Level &coarse, const Team &team)
{
    const Scratch scratch(3 * l.half + coarse.nz);
    float *planes = scratch.values;
    index_t first, last;
    share(l, team, first, last);
    for (index_t i = first; i < last + STEPS; i++) {
        if (i < last)
            start_plane(l, i);
        for (int s = 1; s < STEPS; s++)
            if (first + s <= i - s && i - s < last - s)
                smooth_step(l, i - s, s, true);
        const index_t done = i - STEPS;
        if (first + STEPS <= done && done < last - STEPS) {
            residual_plane(l, done, planes + done % 3 * l.half);
            if (done % 2 && done - 2 >= first + STEPS)
                restrict_plane(l, planes, coarse, done / 2);
        }
    }
    if (!smooth_ends(l, first, last, true, team))
        return false;
    for (index_t i = (first + 1) / 2; i < (last + 1) / 2; i++) {
        if (first + STEPS < 2 * i && 2 * i < last - STEPS - 1)
            continue;
        for (index_t fine = 2 * i - 1; fine < 2 * i + 2; fine++)
            residual_plane(l, fine, planes + fine % 3 * l.half);
        restrict_plane(l, planes, coarse, i);
    }
    return team.meet();
}

// Add the values of the coarse level and smooth u, in one pass as in go_down.
static bool go_up(const Level &coarse, const Level &l, const Team &team)
{
    const Scratch sums(coarse.ny * coarse.stride);
    index_t first, last;
    share(l, team, first, last);
    for (index_t i = first; i < last + STEPS; i++) {
        if (i < last)
            prolong_plane(coarse, l, i, sums.values);
        for (int s = 1; s <= STEPS; s++)
            if (first + s <= i - s && i - s < last - s)
                smooth_step(l, i - s, s, false);
    }
    return smooth_ends(l, first, last, false, team);
}

// Solve for the nodes of a colour, on one thread.
static void smooth_level(const Level &l, int colour, const Team &)
{
    for (index_t i = 1; i < l.nx - 1; i++)
        smooth_plane(l, i, colour);
}

static void clear_level(const Level &l, const Team &)
{
    for (index_t at = 0; at < l.nx * l.plane(); at++)
        l.u[at] = 0;
}

// Reset the faces of a plane to 0: its first row and the last ones, and both ends of the others.
static void clear_faces(const Level &l, index_t i, float *values)
{
    for (index_t kind = 0; kind < 2; kind++) {
        float *half = values + l.place(i, kind);
        for (index_t m = 0; m < (l.stride - kind + 1) / 2; m++)
            half[m] = 0;
        for (index_t m = ((l.ny - 1) * l.stride - kind + 1) / 2; m < l.half; m++)
            half[m] = 0;
    }
    for (index_t j = 1; j < l.ny - 1; j++) {
        const Row<float> row = row_of(l, values, i, j);
        row.even[0] = row.even[l.nz / 2] = 0;
        if (l.nz % 2 == 0)
            row.odd[l.nz / 2 - 1] = 0;
    }
}

// Write the operator applied to p in a plane to q; return the sum of p q in it.
static double apply_plane(const Level &l, index_t i, const float *p, const float *added, float *q)
{
    double total = 0;
    for (index_t kind = 0; kind < 2; kind++) {
        const index_t own = l.place(i, kind);
        const Stencil s(l, p, i, kind);
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (index_t m = 0; m < l.half; m++) {
            const float c = p[own + m], value = added[own + m] * c + s.outflow(m, c);
            q[own + m] = value;
            sum += value * c;
        }
        total += sum;
    }
    clear_faces(l, i, q);
    return total;
}

// Replace the direction p by z + beta p in a plane; with a beta of 0, p may be what an earlier solution left.
static void update_direction(const Level &l, index_t i, float beta, const float *z, float *p)
{
#pragma omp simd
    for (index_t at = i * l.plane(); at < (i + 1) * l.plane(); at++)
        p[at] = beta == 0 ? z[at] : z[at] + beta * p[at];
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

// Call body(i, j, at) for the inner rows, which begin at node `at` of arrays that are not divided by colours.
template <class Body> static void for_rows(const Level &l, const Team &team, Body body)
{
    index_t first, last;
    share(l, team, first, last);
    for (index_t i = first; i < last; i++)
        for (index_t j = 1; j < l.ny - 1; j++)
            body(i, j, (i * l.ny + j) * l.nz);
}

// The sum of the squares of the inner nodes of a row.
static float sum_squares(const float *row, index_t nz)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index_t k = 1; k < nz - 1; k++)
        sum += row[k] * row[k];
    return sum;
}

static void find_residual(const Equation &args, const Team &team)
{
    const Level l = level_of(args, 0);
    const Scratch scratch(l.nz);
    float *row = scratch.values;
    for_rows(l, team, [&](index_t i, index_t j, index_t at) {
        if (args.kinds)
            for (index_t k = 1; k < l.nz - 1; k++)
                row[k] = exact_rest(args, at + k);
        else
#pragma omp simd
            for (index_t k = 1; k < l.nz - 1; k++)
                row[k] = rest_with(args, at + k, args.w[at + k]);
        put_row(l, row, l.f, i, j);
        double *sums = args.sums + i;
        sums[0] = sum_squares(row, l.nz) + (j > 1 ? sums[0] : 0);
        if (args.values)
            sums[args.parts] = sum_squares(args.values + at, l.nz) + (j > 1 ? sums[args.parts] : 0);
    });
}

// Add a step along p to w, subtract it along q from the residual, and write the sums of the squares of that.
static void advance(const Equation &args, const Level &l, const Team &team, float step, const float *p, const float *q,
                    double *sums)
{
    float *f = l.f;
    sum_inner(l, team, sums, [=](index_t at) {
        f[at] -= step * q[at];
        return f[at] * f[at];
    });
    for_rows(l, team, [&](index_t i, index_t j, index_t at) {
        const Row<const float> from = row_of(l, p, i, j);
        float *w = args.w + at;
#pragma omp simd
        for (index_t n = 0; n < l.nz / 2; n++) {
            w[2 * n] += step * from.even[n];
            w[2 * n + 1] += step * from.odd[n];
        }
    });
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
        clear_level(l, alone);
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
    const double limit = args.kinds ? args.limit : args.state[4];
    if ((args.begin || !args.kinds) && !(args.state[1] > limit))
        return;
    const Level l = level_of(args, 0);
    float *p = direction_of(args), *q = l.u, *f = l.f;
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
        advance(args, l, team, step, p, q, norms);
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

// Add to w the correction that reduces the residual f until the sum of its squares is within the limit.
TEAM_KERNEL(solve_gradients, Equation, team)
{
    for_systems(args, team, [](const Equation &own, const Team &part) { solve_system(own, part); });
}

// Write the residual of w and where iterations for it stop, unless it is known from another round to be small.
DEVICE void begin_system(const Equation &args, const Team &team)
{
    const double wanted = args.repeats ? 0.5 * args.tolerance * args.state[3] : 0;
    if (args.repeats && args.state[1] <= wanted * wanted) {
        if (team.leads())
            args.state[2] = 0;
        return;
    }
    find_residual(args, team);
    if (!team.meet())
        return;
    const Level l = level_of(args, 0);
    const double squares = sum_of(l, team, args.sums), norm = sqrt(squares);
    const double other = sum_of(l, team, args.sums + args.parts);
    if (!team.leads())
        return;
    const double first = args.repeats ? args.state[3] : fmax(norm, sqrt(other));
    const double limit = fmax(args.least * norm, 0.5 * args.tolerance * first);
    args.state[1] = !isfinite(norm) ? NAN : norm <= args.tolerance * first ? 0 : squares;
    args.state[2] = 0;
    args.state[3] = isfinite(norm) ? first : 0;
    args.state[4] = limit * limit;
}

// Write the residual of w to f, and the sums of its squares, and of those of `values` if there are any.
TEAM_KERNEL(compute_residual, Equation, team)
{
    for_systems(args, team, [](const Equation &own, const Team &part) { begin_system(own, part); });
}

// Compute the inverse diagonals of all levels, with the derivative of the ions' term at w for the full equation. On a
// coarse level it is that at the finest node, scaled to a larger cell.
TEAM_KERNEL(invert_diagonals, Equation, team)
#ifdef __CUDACC__
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
#else
{
    const Level finest = level_of(args, 0);
    const Scratch scratch(finest.nz);
    float *row = scratch.values, *added = added_of(args);
    for_rows(finest, team, [&](index_t i, index_t j, index_t at) {
        for (index_t k = 1; k < finest.nz - 1; k++) {
            const float own = args.k2[at + k];
            row[k] = args.kinds && own > 0 ? (float)(own * of_ions(args, args.w[at + k], true)) : args.kinds ? 0 : own;
        }
        put_row(finest, row, added, i, j);
    });
    if (!team.meet())
        return;
    for (index_t n = 0; n < args.levels; n++) {
        const Level l = level_of(args, n);
        float *inverse = args.inverse + args.starts[n];
        const index_t step = (index_t)1 << n;
        if (n)
            for_rows(l, team, [&](index_t i, index_t j, index_t) {
                const Row<float> from = row_of(finest, added, i * step, j * step);
                for (index_t k = 0; k < l.nz; k++)
                    row[k] = step * step * from.even[k * step / 2];
                put_row(l, row, inverse, i, j);
            });
        index_t first, last;
        share(l, team, first, last);
        for (index_t i = first; i < last; i++) {
            for (index_t kind = 0; kind < 2; kind++) {
                const Stencil s(l, l.u, i, kind);
                float *d = inverse + l.place(i, kind);
                const float *own = (n ? inverse : added) + l.place(i, kind);
#pragma omp simd
                for (index_t m = 0; m < l.half; m++)
                    d[m] = 1.0f / (s.diagonal(m) + own[m]);
            }
            clear_faces(l, i, inverse);
        }
    }
}
#endif

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
static void coarsen(const Level &fine, const float *from, const Level &coarse, float *out, int axis, const Team &team)
{
    const index_t ax = axis == 0, ay = axis == 1, az = axis == 2, count = coarse.nz - az;
    const Scratch scratch(coarse.nz);
    float *row = scratch.values;
    index_t first, last;
    team.part(coarse.nx - ax, first, last);
    for (index_t i = first; i < last; i++)
        for (index_t j = 0; j < coarse.ny - ay; j++) {
            for (index_t k = 0; k < count; k++)
                row[k] = 0;
            for (int s = -1; s < 2; s++)
                for (int t = -1; t < 2; t++) {
                    const index_t a = clamped(2 * i + (ax ? 0 : s), fine.nx);
                    const index_t b = clamped(2 * j + (ay ? 0 : ax ? s : t), fine.ny), shift = az ? 0 : t;
                    const Row<const float> one = row_of(fine, from, a, b), two = row_of(fine, from, a + ax, b + ay);
                    const float *u = shift ? one.odd : one.even, *v = shift || az ? two.odd : two.even;
                    const index_t before = shift < 0;
                    const float weight = 0.125f * (s ? 1.0f : 2.0f) * (t ? 1.0f : 2.0f);
                    if (shift)  // at a face, the row's end
                        row[before ? 0 : count - 1] += weight
                            * in_series(one.even[before ? 0 : count - 1], two.even[before ? 0 : count - 1]);
#pragma omp simd
                    for (index_t k = before; k < count - (shift > 0); k++)
                        row[k] += weight * in_series(u[k - before], v[k - before]);
                }
            put_row(coarse, row, out, i, j);
        }
}

// Divide the conductances of the finest level by colours.
static void divide_planes(const Level &l, const float *from, float *to, const Team &team)
{
    index_t first, last;
    team.part(l.nx, first, last);
    for (index_t i = first; i < last; i++)
        for (index_t j = 0; j < l.ny; j++)
            put_row(l, from + (i * l.ny + j) * l.nz, to, i, j);
}
#endif

// Compute the conductances of all coarse levels.
TEAM_KERNEL(coarsen_conductances, Equation, team)
#ifdef __CUDACC__
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
#else
{
    const index_t all = args.starts[args.levels];
    const float *given[3] = {args.x, args.y, args.z};
    for (int axis = 0; axis < 3; axis++)
        divide_planes(level_of(args, 0), given[axis], args.coarse + axis * all, team);
    for (index_t n = 1; n < args.levels && team.meet(); n++)
        for (int axis = 0; axis < 3; axis++)
            coarsen(level_of(args, n - 1), args.coarse + axis * all + args.starts[n - 1], level_of(args, n),
                    args.coarse + axis * all + args.starts[n], axis, team);
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
