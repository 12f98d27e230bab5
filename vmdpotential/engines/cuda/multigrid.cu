// Conjugate gradients preconditioned by one multigrid cycle, as in continuum/multigrid.cu.
// Flat arrays hold one level after the other, the finest first; nodes on the faces of a level keep their values. One
// thread computes one node. A single block smooths all the levels that are small enough for it, in one launch.

#define THREADS 256  // as in multigrid.py
#define PARTS 1024   // partial sums of a sum, always added in the same order; as in multigrid.py
#define SWEEPS 12    // in each direction on the coarsest level
#define SMOOTHINGS 2 // sweeps on each other level before and after the coarser ones; as in continuum/multigrid.cu

struct Node { int i, j, k; size_t at; bool inner; };

__device__ __forceinline__ Node node(const MultigridTask &t, int level, size_t n)
{
    const int *shape = t.levels[level].shape;
    const unsigned row = (unsigned)n / shape[2];  // no memory holds more than 2^32 nodes
    Node a;
    a.k = (unsigned)n - row * shape[2];
    a.i = row / shape[1];
    a.j = row - a.i * shape[1];
    a.at = t.levels[level].first + n;
    a.inner = a.i > 0 && a.j > 0 && a.k > 0 && a.i < shape[0] - 1 && a.j < shape[1] - 1 && a.k < shape[2] - 1;
    return a;
}

__device__ __forceinline__ size_t count(const MultigridTask &t, int level)
{
    const int *shape = t.levels[level].shape;
    return (size_t)shape[0] * shape[1] * shape[2];
}

// The sum over the neighbours of a node of conductance times potential.
__device__ __forceinline__ float around(const MultigridTask &t, int level, const float *u, size_t at)
{
    const size_t y = t.levels[level].shape[2], x = y * t.levels[level].shape[1];
    return t.x[at] * u[at + x] + t.x[at - x] * u[at - x] + t.y[at] * u[at + y] + t.y[at - y] * u[at - y]
        + t.z[at] * u[at + 1] + t.z[at - 1] * u[at - 1];
}

// The conductance of a coarse edge: two fine edges in series, averaged with weights over parallel edges around it.
__device__ float coarser(const MultigridTask &t, int level, const Node &a, const float *conductances, int axis)
{
    const int *shape = t.levels[level - 1].shape, *own = t.levels[level].shape;
    const float *fine = conductances + t.levels[level - 1].first;
    const size_t y = shape[2], x = y * shape[1], along = axis == 0 ? x : axis == 1 ? y : 1;
    if ((axis == 0 ? a.i : axis == 1 ? a.j : a.k) == own[axis] - 1)
        return 0.0f;
    float sum = 0;
    for (int s = -1; s < 2; s++)
        for (int v = -1; v < 2; v++) {
            const int i = min(max(2 * a.i + (axis == 0 ? 0 : s), 0), shape[0] - 1);
            const int j = min(max(2 * a.j + (axis == 1 ? 0 : axis == 0 ? s : v), 0), shape[1] - 1);
            const int k = min(max(2 * a.k + (axis == 2 ? 0 : v), 0), shape[2] - 1);
            const float *edge = fine + i * x + j * y + k, first = edge[0], second = edge[along];
            sum += (float)((2 - abs(s)) * (2 - abs(v))) * first * second / (first + second);
        }
    return 0.125f * sum;
}

__device__ void coarsen_at(const MultigridTask &t, int level, size_t n)
{
    const Node a = node(t, level, n);
    t.x[a.at] = coarser(t, level, a, t.x, 0);
    t.y[a.at] = coarser(t, level, a, t.y, 1);
    t.z[a.at] = coarser(t, level, a, t.z, 2);
}

// The diagonal at an inner node, including the contribution of the ions. It is stored on all levels but the finest.
__device__ __forceinline__ float diagonal(const MultigridTask &t, int level, size_t at)
{
    if (level > 0)
        return t.d[at - t.levels[1].first];
    const size_t y = t.levels[0].shape[2], x = y * t.levels[0].shape[1];
    return t.x[at] + t.x[at - x] + t.y[at] + t.y[at - y] + t.z[at] + t.z[at - 1] + t.added[at];
}

// The contribution of the ions to the diagonal of a coarse level is that at the finest node, scaled to a larger cell.
__device__ void diagonal_at(const MultigridTask &t, int level, size_t n)
{
    const Node a = node(t, level, n);
    const int *finest = t.levels[0].shape;
    const size_t y = t.levels[level].shape[2], x = y * t.levels[level].shape[1];
    const size_t same = (((size_t)a.i << level) * finest[1] + (a.j << level)) * finest[2] + (a.k << level);
    if (a.inner)
        t.d[a.at - t.levels[1].first] = t.x[a.at] + t.x[a.at - x] + t.y[a.at] + t.y[a.at - y] + t.z[a.at]
            + t.z[a.at - 1] + (float)(1 << 2 * level) * t.added[same];
}

__device__ void start_at(const MultigridTask &t, int level, size_t n)
{
    const Node a = node(t, level, n);
    t.u[a.at] = a.inner && (a.i + a.j + a.k) % 2 == 0 ? t.f[a.at] / diagonal(t, level, a.at) : 0.0f;
}

__device__ void smooth_at(const MultigridTask &t, int level, int colour, size_t n)
{
    const Node a = node(t, level, n);
    if (a.inner && (a.i + a.j + a.k + colour) % 2 == 0)
        t.u[a.at] = (t.f[a.at] + around(t, level, t.u, a.at)) / diagonal(t, level, a.at);
}

__device__ void residual_at(const MultigridTask &t, int level, size_t n)
{
    const Node a = node(t, level, n);
    t.r[n] = a.inner ? t.f[a.at] + around(t, level, t.u, a.at) - t.u[a.at] * diagonal(t, level, a.at) : 0.0f;
}

// The weighted sum of the residual at a node of the next coarser level.
__device__ void restrict_at(const MultigridTask &t, int level, size_t n)
{
    const Node a = node(t, level + 1, n);
    if (!a.inner)
        return;
    const size_t y = t.levels[level].shape[2], x = y * t.levels[level].shape[1];
    const float *middle = t.r + 2 * a.i * x + 2 * a.j * y + 2 * a.k;
    float sum = 0;
    for (int i = -1; i < 2; i++)
        for (int j = -1; j < 2; j++) {
            const float *row = middle + i * (long long)x + j * (long long)y;
            sum += (float)((2 - abs(i)) * (2 - abs(j))) * (2 * row[0] + row[-1] + row[1]);
        }
    t.f[a.at] = sum / 16;
}

// Adds the next coarser level, interpolated trilinearly.
__device__ void prolong_at(const MultigridTask &t, int level, size_t n)
{
    const Node a = node(t, level, n);
    if (!a.inner)
        return;
    const int *shape = t.levels[level + 1].shape;
    const float *coarse = t.u + t.levels[level + 1].first;
    float sum = 0;
    for (int i = a.i / 2; i <= (a.i + 1) / 2; i++)
        for (int j = a.j / 2; j <= (a.j + 1) / 2; j++)
            for (int k = a.k / 2; k <= (a.k + 1) / 2; k++)
                sum += coarse[((size_t)i * shape[1] + j) * shape[2] + k];
    t.u[a.at] += sum / ((1 + a.i % 2) * (1 + a.j % 2) * (1 + a.k % 2));
}

#define ONE_NODE(name, level, call)                                                         \
    extern "C" __global__ void __launch_bounds__(THREADS) name(const MultigridTask t)       \
    {                                                                                       \
        const size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;                        \
        if (n < count(t, level))                                                            \
            call;                                                                           \
    }

ONE_NODE(coarsen, t.level, coarsen_at(t, t.level, n))
ONE_NODE(diagonals, t.level, diagonal_at(t, t.level, n))
ONE_NODE(start, t.level, start_at(t, t.level, n))
ONE_NODE(residual, t.level, residual_at(t, t.level, n))
ONE_NODE(restricted, t.level + 1, restrict_at(t, t.level, n))
ONE_NODE(prolong, t.level, prolong_at(t, t.level, n))

// Rows and planes have odd numbers of nodes on all levels but the coarsest, so that colours alternate in memory.
extern "C" __global__ void __launch_bounds__(THREADS) smooth(const MultigridTask t)
{
    const size_t n = 2 * ((size_t)blockIdx.x * THREADS + threadIdx.x) + t.colour;
    if (n < count(t, t.level))
        smooth_at(t, t.level, t.colour, n);
}

#define ALL_NODES(level, call)                                                              \
    for (size_t n = threadIdx.x; n < count(t, level); n += blockDim.x)                      \
        call;                                                                               \
    __syncthreads();

// One block computes level t.level and all coarser ones.
extern "C" __global__ void __launch_bounds__(1024) coarse(const MultigridTask t)
{
    const int most = t.count - 1;
    for (int level = t.level; level < most; level++) {
        ALL_NODES(level, start_at(t, level, n))
        for (int step = 1; step < 2 * SMOOTHINGS; step++) {
            ALL_NODES(level, smooth_at(t, level, step % 2, n))
        }
        ALL_NODES(level, residual_at(t, level, n))
        ALL_NODES(level + 1, restrict_at(t, level, n))
    }
    ALL_NODES(most, t.u[t.levels[most].first + n] = 0)
    for (int sweep = 0; sweep < 2 * SWEEPS; sweep++)
        for (int half = 0; half < 2; half++) {
            ALL_NODES(most, smooth_at(t, most, sweep < SWEEPS ? half : 1 - half, n))
        }
    for (int level = most - 1; level >= t.level; level--) {
        ALL_NODES(level, prolong_at(t, level, n))
        for (int step = 1; step <= 2 * SMOOTHINGS; step++) {
            ALL_NODES(level, smooth_at(t, level, step % 2, n))
        }
    }
}

// Writes the sum over the threads of a block to its element of the partial sums.
__device__ void add_up(const MultigridTask &t, double mine)
{
    __shared__ double partial[THREADS];
    partial[threadIdx.x] = mine;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        t.parts[blockIdx.x] = partial[0];
}

#define FINEST(call)                                                                        \
    double sum = 0;                                                                         \
    for (size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x; n < count(t, 0);            \
         n += (size_t)PARTS * THREADS) {                                                    \
        call;                                                                               \
    }                                                                                       \
    add_up(t, sum);

// The ions' term at a potential, divided by its coefficient in the linear equation, or the derivative of that.
__device__ double of_ions(const MultigridTask &t, double w, bool derivative)
{
    double sum = 0;
    for (int n = 0; n < t.kinds; n++) {
        const double valence = t.ions[2 * n], share = t.ions[2 * n + 1];
        sum += (derivative ? share : -share / valence) * exp(fmin(50.0, -valence * w));
    }
    return sum;
}

ONE_NODE(slope, 0, t.slope[n] = t.k2[n] > 0 ? t.k2[n] * of_ions(t, t.whole[n], true) : 0.0)

// The residual of a solution, in float64.
__device__ void exact_at(const MultigridTask &t, size_t n)
{
    const Node a = node(t, 0, n);
    const size_t y = t.levels[0].shape[2], x = y * t.levels[0].shape[1];
    const float *w = t.whole;
    double sum = 0;
    if (a.inner) {
        const double c = w[n];
        sum = t.x[n] * (w[n + x] - c) + t.x[n - x] * (w[n - x] - c) + t.y[n] * (w[n + y] - c)
            + t.y[n - y] * (w[n - y] - c) + t.z[n] * (w[n + 1] - c) + t.z[n - 1] * (w[n - 1] - c);
        sum += t.sources[n];
        if (t.k2[n] > 0)
            sum -= t.k2[n] * (t.kinds ? of_ions(t, c, false) : c);
    }
    t.f[n] = sum;
}

ONE_NODE(exact, 0, exact_at(t, n))

extern "C" __global__ void __launch_bounds__(THREADS) squares(const MultigridTask t)
{
    FINEST(sum += (double)t.f[n] * t.f[n])
}

// r z, for `direction` and `advance`.
extern "C" __global__ void __launch_bounds__(THREADS) products(const MultigridTask t)
{
    FINEST(sum += (double)t.f[n] * t.u[n])
}

// Replaces z by the operator applied to p, and sums the products of both.
extern "C" __global__ void __launch_bounds__(THREADS) apply(const MultigridTask t)
{
    const size_t y = t.levels[0].shape[2], x = y * t.levels[0].shape[1];
    FINEST(
        const Node a = node(t, 0, n);
        float value = 0;
        if (a.inner) {
            const float c = t.p[n];
            value = t.x[n] * (c - t.p[n + x]) + t.x[n - x] * (c - t.p[n - x]) + t.y[n] * (c - t.p[n + y])
                + t.y[n - y] * (c - t.p[n - y]) + t.z[n] * (c - t.p[n + 1]) + t.z[n - 1] * (c - t.p[n - 1])
                + t.added[n] * c;
            sum += (double)value * c;
        }
        t.u[n] = value)
}

// Takes a step along p, and sums the squares of the new residual.
extern "C" __global__ void __launch_bounds__(THREADS) advance(const MultigridTask t)
{
    const float alpha = t.totals[0] / t.totals[1];
    FINEST(
        t.w[n] += alpha * t.p[n];
        const float left = t.f[n] - alpha * t.u[n];
        t.f[n] = left;
        sum += (double)left * left)
}

// The next direction: z plus the previous direction times the ratio of the new to the previous r z.
extern "C" __global__ void __launch_bounds__(THREADS) direction(const MultigridTask t)
{
    const size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;
    const double before = t.totals[3];
    if (n < count(t, 0))
        t.p[n] = t.u[n] + (before > 0 ? (float)(t.totals[0] / before) * t.p[n] : 0.0f);
}

// Adds the partial sums up to the total number t.level, and keeps the previous r z.
extern "C" __global__ void __launch_bounds__(THREADS) total(const MultigridTask t)
{
    __shared__ double partial[THREADS];
    double sum = 0;
    for (int n = threadIdx.x; n < PARTS; n += THREADS)
        sum += t.parts[n];
    partial[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0) {
        if (t.level == 0)
            t.totals[3] = t.totals[0];
        t.totals[t.level] = partial[0];
    }
}
