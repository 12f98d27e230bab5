// Conjugate gradients preconditioned by one cycle of multigrid, as engines/cpu/continuum/multigrid_kernel.py has it.
// Levels lie one after the other in flat arrays, the finest first; nodes on their faces keep their values. A thread has
// one node after another; what fits into one block is smoothed by one, all levels at once.

#define THREADS 256  // as in multigrid.py
#define PARTS 512    // of a sum, which are added up in the same order always; as in multigrid.py
#define SWEEPS 12    // up and down on the coarsest level
#define SMOOTHINGS 2 // sweeps on each of the others before and after the level below; as in multigrid_kernel.py

struct Node { int i, j, k; size_t at; bool inner; };

__device__ __forceinline__ Node node(const MultigridTask &t, int level, size_t n)
{
    const int *shape = t.levels[level].shape;
    Node a;
    a.k = n % shape[2];
    a.j = n / shape[2] % shape[1];
    a.i = n / ((size_t)shape[2] * shape[1]);
    a.at = t.levels[level].first + n;
    a.inner = a.i > 0 && a.j > 0 && a.k > 0 && a.i < shape[0] - 1 && a.j < shape[1] - 1 && a.k < shape[2] - 1;
    return a;
}

__device__ __forceinline__ size_t count(const MultigridTask &t, int level)
{
    const int *shape = t.levels[level].shape;
    return (size_t)shape[0] * shape[1] * shape[2];
}

// What flows to a node from those next to it, times their potentials.
__device__ __forceinline__ float around(const MultigridTask &t, int level, const float *u, size_t at)
{
    const size_t y = t.levels[level].shape[2], x = y * t.levels[level].shape[1];
    return t.x[at] * u[at + x] + t.x[at - x] * u[at - x] + t.y[at] * u[at + y] + t.y[at - y] * u[at - y]
        + t.z[at] * u[at + 1] + t.z[at - 1] * u[at - 1];
}

__device__ void start_at(const MultigridTask &t, int level, size_t n)
{
    const Node a = node(t, level, n);
    t.u[a.at] = a.inner && (a.i + a.j + a.k) % 2 == 0 ? t.f[a.at] * t.d[a.at] : 0.0f;
}

__device__ void smooth_at(const MultigridTask &t, int level, int colour, size_t n)
{
    const Node a = node(t, level, n);
    if (a.inner && (a.i + a.j + a.k + colour) % 2 == 0)
        t.u[a.at] = (t.f[a.at] + around(t, level, t.u, a.at)) * t.d[a.at];
}

__device__ void residual_at(const MultigridTask &t, int level, size_t n)
{
    const Node a = node(t, level, n);
    t.r[a.at] = a.inner ? t.f[a.at] + around(t, level, t.u, a.at) - t.u[a.at] / t.d[a.at] : 0.0f;
}

// The residual's weighted sum at a node of the level below.
__device__ void restrict_at(const MultigridTask &t, int level, size_t n)
{
    const Node a = node(t, level + 1, n);
    if (!a.inner)
        return;
    const size_t y = t.levels[level].shape[2], x = y * t.levels[level].shape[1];
    const float *middle = t.r + t.levels[level].first + 2 * a.i * x + 2 * a.j * y + 2 * a.k;
    float sum = 0;
    for (int i = -1; i < 2; i++)
        for (int j = -1; j < 2; j++) {
            const float *row = middle + i * (long long)x + j * (long long)y;
            sum += (float)((2 - abs(i)) * (2 - abs(j))) * (2 * row[0] + row[-1] + row[1]);
        }
    t.f[a.at] = sum / 16;
}

// The level below, interpolated trilinearly, is added.
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

ONE_NODE(start, t.level, start_at(t, t.level, n))
ONE_NODE(smooth, t.level, smooth_at(t, t.level, t.colour, n))
ONE_NODE(residual, t.level, residual_at(t, t.level, n))
ONE_NODE(restricted, t.level + 1, restrict_at(t, t.level, n))
ONE_NODE(prolong, t.level, prolong_at(t, t.level, n))

#define ALL_NODES(level, call)                                                              \
    for (size_t n = threadIdx.x; n < count(t, level); n += blockDim.x)                      \
        call;                                                                               \
    __syncthreads();

// One block does all levels from the level t.level on.
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

// The sum of a block's threads goes to its place among the parts.
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

// r z, which the next two need.
extern "C" __global__ void __launch_bounds__(THREADS) products(const MultigridTask t)
{
    FINEST(sum += (double)t.f[n] * t.u[n])
}

// The operator's values at p, to where z was, and p times these.
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
                + t.k2[n] * c;
            sum += (double)value * c;
        }
        t.u[n] = value)
}

// A step along p, and the squares of what is left.
extern "C" __global__ void __launch_bounds__(THREADS) advance(const MultigridTask t)
{
    const float alpha = t.totals[0] / t.totals[1];
    FINEST(
        t.w[n] += alpha * t.p[n];
        const float left = t.f[n] - alpha * t.u[n];
        t.f[n] = left;
        sum += (double)left * left)
}

// The next direction: z, and the last one times the ratio of r z now and before.
extern "C" __global__ void __launch_bounds__(THREADS) turn(const MultigridTask t)
{
    const size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;
    const double before = t.totals[3];
    if (n < count(t, 0))
        t.p[n] = t.u[n] + (before > 0 ? (float)(t.totals[0] / before) * t.p[n] : 0.0f);
}

// Parts are added up, into the total t.level; of r z, the last one is kept.
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
