// Atoms counted at the nodes of a lattice, and their sums over frames. Values of a frame are in fixed point, so that
// they do not depend on the order in which atoms are added. Macro set by the host:
//   SPREADING  0 nearest node, 1 Gaussian, 2 occupancy

#define THREADS 128   // number of threads of a block, as in counting.py
#define SEGMENT 1024  // number of nodes that a warp collects, as in counting.py
#define ROUNDING 1e-9  // distance, in spacings, by which rounding may place an atom outside of the cell

typedef unsigned long long Whole;

// The position of an atom in spacings, wrapped into the cell.
__device__ __forceinline__ void place(const CountingTask &t, int n, double (&u)[3])
{
    double x[3], f[3];
    for (int d = 0; d < 3; d++)
        x[d] = t.positions[3 * n + d];
    for (int d = 0; d < 3; d++) {
        const double y = t.changes ? x[0] * t.change[d] + x[1] * t.change[3 + d] + x[2] * t.change[6 + d] : x[d];
        u[d] = (y - t.origin[d]) / t.spacing[d];
    }
    if (t.periodic) {
        for (int d = 0; d < 3; d++)
            f[d] = floor((u[0] + 0.5) * t.inverse[d] + (u[1] + 0.5) * t.inverse[3 + d]
                         + (u[2] + 0.5) * t.inverse[6 + d]);
        for (int d = 0; d < 3; d++)
            u[d] -= f[0] * t.cell[d] + f[1] * t.cell[3 + d] + f[2] * t.cell[6 + d];
    }
}

// The node nearest to v among `count` nodes along an axis; -1 outside of the lattice.
__device__ __forceinline__ int nearest(double v, int count, bool periodic)
{
    const double i = floor(v + 0.5);
    if (i == count && v + 0.5 - count <= (periodic ? ROUNDING : 0.0))
        return count - 1;
    if (i == -1 && periodic && v > -0.5 - ROUNDING)
        return 0;
    return i >= 0 && i < count ? (int)i : -1;
}

// Count atoms at their nearest nodes. One thread per atom.
extern "C" __global__ void __launch_bounds__(THREADS) count_nearest(const CountingTask task)
{
    const int n = blockIdx.x * THREADS + threadIdx.x;
    if (n >= task.atoms)
        return;
    double u[3];
    place(task, n, u);
    const long long value = llrint(task.weights[n] * task.scale);
    for (int image = 0; image < task.images; image++) {
        const double *shift = task.shifts + 3 * image;
        const int i = nearest(u[0] + shift[0], task.shape[0], task.periodic);
        const int j = nearest(u[1] + shift[1], task.shape[1], task.periodic);
        const int k = nearest(u[2] + shift[2], task.shape[2], task.periodic);
        if (i >= 0 && j >= 0 && k >= 0)
            atomicAdd(task.values + ((size_t)i * task.shape[1] + j) * task.shape[2] + k, (Whole)value);
    }
}

// Count atoms as Gaussians or by their radii. One block per atom, whose threads divide the nodes around it.
extern "C" __global__ void __launch_bounds__(THREADS) count_spread(const CountingTask task)
{
    __shared__ double totals[3];
    const int n = blockIdx.x;
    double u[3], width[3];
    place(task, n, u);
    for (int d = 0; d < 3; d++)
        width[d] = task.widths[n] / task.spacing[d];
    for (int image = 0; image < task.images; image++) {
        double v[3];
        long long first[3];
        int side[3];
        bool away = false;
        for (int d = 0; d < 3; d++) {
            v[d] = u[d] + task.shifts[3 * image + d];
            first[d] = (long long)floor(v[d] + 0.5) - task.reach[d];
            side[d] = 2 * task.reach[d] + 1;
            away = away || first[d] >= task.shape[d] || first[d] + side[d] <= 0;
        }
        if (away)
            continue;
        __syncthreads();
        if (SPREADING == 1 && threadIdx.x < 3) {  // normalisation on the nodes, for any spacing
            const int d = threadIdx.x;
            double total = 0;
            for (int m = 0; m < side[d]; m++) {
                const double x = (first[d] + m - v[d]) / width[d];
                total += exp(-0.5 * x * x);
            }
            totals[d] = total;
        }
        __syncthreads();
        const double whole = SPREADING == 1 ? task.weights[n] / (totals[0] * totals[1] * totals[2]) : 1.0;
        const long long nodes = (long long)side[0] * side[1] * side[2];
        for (long long m = threadIdx.x; m < nodes; m += THREADS) {
            const long long k = first[2] + m % side[2], j = first[1] + m / side[2] % side[1];
            const long long i = first[0] + m / ((long long)side[2] * side[1]);
            if (i < 0 || j < 0 || k < 0 || i >= task.shape[0] || j >= task.shape[1] || k >= task.shape[2])
                continue;
            const double x = (i - v[0]) / width[0], y = (j - v[1]) / width[1], z = (k - v[2]) / width[2];
            const double square = x * x + y * y + z * z;
            Whole *value = task.values + ((size_t)i * task.shape[1] + j) * task.shape[2] + k;
            if (SPREADING == 1)
                atomicAdd(value, (Whole)llrint(whole * exp(-0.5 * square) * task.scale));
            else if (square <= 1)
                *value = (Whole)(long long)task.scale;
        }
    }
}

// Add the values of a frame to the sums, and reset them.
extern "C" __global__ void __launch_bounds__(THREADS) add_frame(const CountingTask task)
{
    const size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (n >= task.nodes || !task.values[n])
        return;
    const double value = (double)(long long)task.values[n] / task.scale;
    task.sums[n] += value;
    task.squares[n] += value * value;
    task.values[n] = 0;
}

// Bits of the lanes of a warp whose nodes, from the node of lane 0 on, have contributions.
__device__ __forceinline__ unsigned reached(const CountingTask &task, size_t first)
{
    const size_t n = first + threadIdx.x % 32;
    return __ballot_sync(0xFFFFFFFF, n < task.nodes && task.squares[n] != 0);
}

// Count the nodes with contributions in each segment.
extern "C" __global__ void __launch_bounds__(THREADS) count_reached(const CountingTask task)
{
    const size_t segment = (size_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    int count = 0;
    for (size_t first = segment * SEGMENT; first < (segment + 1) * SEGMENT; first += 32)
        count += __popc(reached(task, first));
    if (threadIdx.x % 32 == 0 && segment * SEGMENT < task.nodes)
        task.counts[segment] = count;
}

// Write the nodes with contributions and their sums to the result, in ascending order, and reset the sums.
extern "C" __global__ void __launch_bounds__(THREADS) collect(const CountingTask task)
{
    const size_t segment = (size_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    size_t next = segment * SEGMENT < task.nodes ? task.starts[segment] : 0;
    for (size_t first = segment * SEGMENT; first < (segment + 1) * SEGMENT; first += 32) {
        const unsigned bits = reached(task, first);
        if (bits >> lane & 1) {
            const size_t place = next + __popc(bits & ((1u << lane) - 1)), n = first + lane;
            task.result[place] = __longlong_as_double((long long)n);
            task.result[task.reached + place] = task.sums[n];
            task.result[2 * task.reached + place] = task.squares[n];
            task.sums[n] = task.squares[n] = 0;
        }
        next += __popc(bits);
    }
}
