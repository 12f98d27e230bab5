// Levels of a multilevel sum (msm_cuda.py): charges are spread to the coarser levels, each level sums the charges
// within the stencil's range of its nodes, and potentials are interpolated back. Macros that the host sets:
//   REAL   float or double, the type of the levels
//   ORDER  of the interpolation between levels, even
//
// Nodes are stored in rows along z of 2 (n / 2 + 1) values, as in mesh.cu. A block of `surround`, `restriction` and
// `prolongation` has one row; the block's x is the index along y, and its y that along x.

#define ROWS 4                    // neighbouring rows, and
#define GROUP 4                   // nodes along z of each, that a thread sums
#define TILE_Y 16                 // rows and nodes along z that a warp sums, 4 x 8 threads
#define TILE_Z 32
#define PARTS 8                   // warps that share the planes of a stencil
#define STRIP 128                 // nodes of a row that a block, of as many threads, carries from level to level
#define SHIFT (ORDER - 2)         // nodes of a level before the one on which the next coarser one starts, open axes

struct alignas(GROUP * sizeof(REAL)) Group { REAL v[GROUP]; };

__device__ __forceinline__ size_t row_of(const Level &level, int x, int y)
{
    return ((size_t)x * level.shape[1] + y) * (2 * (level.shape[2] / 2 + 1));
}

__device__ __forceinline__ size_t around_row(const Level &level, int x, int y)
{
    return ((size_t)x * level.wide[1] + y) * level.wide[2];
}

__device__ __forceinline__ int wrapped(int node, int n)
{
    node %= n;
    return node < 0 ? node + n : node;
}

// Copy the charges of a level, with margins around them: periodic images or zeros.
extern "C" __global__ void surround(const LevelTask task)
{
    const Level &level = task.levels[task.level];
    int x = (int)blockIdx.y - level.before[0], y = (int)blockIdx.x - level.before[1];
    bool inside = true;
    if (task.periodic[0])
        x = wrapped(x, level.shape[0]);
    else
        inside = x >= 0 && x < level.shape[0];
    if (task.periodic[1])
        y = wrapped(y, level.shape[1]);
    else
        inside = inside && y >= 0 && y < level.shape[1];
    const REAL *row = level.nodes + (inside ? row_of(level, x, y) : 0);
    REAL *out = level.around + around_row(level, blockIdx.y, blockIdx.x);
    for (int k = threadIdx.x; k < level.wide[2]; k += blockDim.x) {
        int z = k - level.before[2];
        if (task.periodic[2])
            z = wrapped(z, level.shape[2]);
        out[k] = inside && z >= 0 && z < level.shape[2] ? row[z] : (REAL)0;
    }
}

// Return the k-th node of the finer level that adds to a node along axis d, -1 for none, and its weight: first the node
// at the same position, then those at odd distances.
__device__ __forceinline__ int finer_node(const LevelTask &task, int d, int node, int k, REAL *weight)
{
    *weight = 1;
    if (!task.levels[task.level].halved[d])
        return node;
    const int n = task.levels[task.level - 1].shape[d];
    node = 2 * node - (task.periodic[d] ? 0 : SHIFT);
    if (k) {
        node += 2 * k - ORDER - 1;
        *weight = (REAL)task.half[k - 1];
    }
    if (task.periodic[d])
        return wrapped(node, n);
    return node >= 0 && node < n ? node : -1;
}

// Spread the charges of the preceding level to a level: first sum the rows that add to a row, then along the row.
// The charges of a molecule nearly cancel, so that they are summed in double precision.
extern "C" __global__ void __launch_bounds__(STRIP) restriction(const LevelTask task)
{
    __shared__ REAL weight[(ORDER + 1) * (ORDER + 1)];
    __shared__ double sums[2 * STRIP + 2 * ORDER];
    __shared__ size_t row[(ORDER + 1) * (ORDER + 1)];
    const Level &fine = task.levels[task.level - 1], &level = task.levels[task.level];
    const int across = level.halved[1] ? ORDER + 1 : 1, rows = (level.halved[0] ? ORDER + 1 : 1) * across;
    if ((int)threadIdx.x < rows) {
        REAL wx, wy;
        const int x = finer_node(task, 0, blockIdx.y, threadIdx.x / across, &wx);
        const int y = finer_node(task, 1, blockIdx.x, threadIdx.x % across, &wy);
        weight[threadIdx.x] = x < 0 || y < 0 ? 0 : wx * wy;
        row[threadIdx.x] = row_of(fine, max(x, 0), max(y, 0));
    }
    __syncthreads();
    const int first = blockIdx.z * STRIP, n = fine.shape[2];
    const int first_fine = level.halved[2] ? 2 * first - (task.periodic[2] ? 0 : SHIFT) - (ORDER - 1) : first;
    for (int k = threadIdx.x; k < (level.halved[2] ? 2 * STRIP + 2 * ORDER - 3 : STRIP); k += STRIP) {
        int z = first_fine + k;
        if (task.periodic[2])
            z = wrapped(z, n);
        double sum = 0;
        if (z >= 0 && z < n)
            for (int r = 0; r < rows; r++)
                sum += (double)weight[r] * (double)fine.nodes[row[r] + z];
        sums[k] = sum;
    }
    __syncthreads();
    const int z = first + threadIdx.x;
    double sum = sums[threadIdx.x];
    if (level.halved[2]) {
        const double *near = sums + 2 * threadIdx.x;  // from the farthest at an odd distance on
        sum = near[ORDER - 1];
#pragma unroll
        for (int k = 0; k < ORDER; k++)
            sum += task.half[k] * near[2 * k];
    }
    if (z < level.shape[2])
        level.nodes[row_of(level, blockIdx.y, blockIdx.x) + z] = (REAL)sum;
}

// Return the number of nodes of the next coarser level from which a node is interpolated along axis d.
__device__ __forceinline__ int coarser_nodes(const LevelTask &task, int d, int node)
{
    return task.levels[task.level + 1].halved[d] && node % 2 ? ORDER : 1;
}

// Return the k-th of these nodes, and its weight.
__device__ __forceinline__ int coarser_node(const LevelTask &task, int d, int node, int k, REAL *weight)
{
    const Level &coarse = task.levels[task.level + 1];
    *weight = 1;
    if (!coarse.halved[d])
        return node;
    const int place = node + (task.periodic[d] ? 0 : SHIFT);
    if (place % 2 == 0)
        return place / 2;
    *weight = (REAL)task.half[k];
    return wrapped(place / 2 + k - (ORDER / 2 - 1), coarse.shape[d]);
}

// Add the interpolated potential of the next coarser level to that of a level: first across rows, then along them.
extern "C" __global__ void __launch_bounds__(STRIP) prolongation(const LevelTask task)
{
    __shared__ REAL weight[ORDER * ORDER], sums[STRIP + ORDER];
    __shared__ size_t row[ORDER * ORDER];
    const Level &coarse = task.levels[task.level + 1], &level = task.levels[task.level];
    const int across = coarser_nodes(task, 1, blockIdx.x), rows = coarser_nodes(task, 0, blockIdx.y) * across;
    if ((int)threadIdx.x < rows) {
        REAL wx, wy;
        const int x = coarser_node(task, 0, blockIdx.y, threadIdx.x / across, &wx);
        const int y = coarser_node(task, 1, blockIdx.x, threadIdx.x % across, &wy);
        weight[threadIdx.x] = wx * wy;
        row[threadIdx.x] = row_of(coarse, x, y);
    }
    __syncthreads();
    const int first = blockIdx.z * STRIP, n = coarse.shape[2];
    const int first_coarse = coarse.halved[2] ? (first + (task.periodic[2] ? 0 : SHIFT)) / 2 - (ORDER / 2 - 1) : first;
    for (int k = threadIdx.x; k < (coarse.halved[2] ? STRIP / 2 + ORDER : STRIP); k += STRIP) {
        const int z = wrapped(first_coarse + k, n);
        REAL sum = 0;
        for (int r = 0; r < rows; r++)
            sum += weight[r] * coarse.nodes[row[r] + z];
        sums[k] = sum;
    }
    __syncthreads();
    const int z = first + threadIdx.x;
    REAL sum = sums[threadIdx.x];
    if (coarse.halved[2]) {
        const REAL *near = sums + threadIdx.x / 2;
        sum = near[ORDER / 2 - 1];
        if (threadIdx.x % 2) {
            sum = 0;
#pragma unroll
            for (int k = 0; k < ORDER; k++)
                sum += (REAL)task.half[k] * near[k];
        }
    }
    if (z < level.shape[2])
        level.nodes[row_of(level, blockIdx.y, blockIdx.x) + z] += sum;
}

// Return whether a plane of `around` is one of the level itself, not of its margins.
__device__ __forceinline__ bool meets(const Level &level, int x)
{
    return x >= level.before[0] && x < level.before[0] + level.shape[0];
}

__device__ __forceinline__ Group plus(Group a, const Group &b)
{
#pragma unroll
    for (int k = 0; k < GROUP; k++)
        a.v[k] += b.v[k];
    return a;
}

// Sum the potential of each level's charges on the same level. A thread sums ROWS rows of GROUP nodes, so that
// 2 GROUP charges and ROWS * GROUP weights are loaded for ROWS * GROUP^2 products; a block sums TILE_Y rows of
// TILE_Z nodes, and its warps share the planes of the stencil. Charges with the same plane of weights are added
// first, which halves the number of products.
extern "C" __global__ void __launch_bounds__(32 * PARTS) convolve(const LevelTask task)
{
    __shared__ REAL sums[PARTS][ROWS * GROUP][32];
    int number = 0;
    while (number + 1 < task.count && (int)blockIdx.x >= task.levels[number + 1].first_block)
        number++;
    const Level &level = task.levels[number];
    const int block = (int)blockIdx.x - level.first_block;
    const int across_z = (level.shape[2] + TILE_Z - 1) / TILE_Z, across_y = (level.shape[1] + TILE_Y - 1) / TILE_Y;
    const int x = block / across_z / across_y;
    const int first_y = block / across_z % across_y * TILE_Y, first_z = block % across_z * TILE_Z;
    const int lane = threadIdx.x % 32, part = threadIdx.x / 32;
    const int y = first_y + lane / (TILE_Z / GROUP) * ROWS, z = first_z + lane % (TILE_Z / GROUP) * GROUP;

    // the range of rows and groups of the stencil that meets charges, along axes with empty margins
    const int rows = level.width[1] + ROWS - 1, width = level.width[2];
    int first_row = 0, last_row = rows, first = 0, last = width / GROUP;
    if (!task.periodic[1]) {
        first_row = max(0, level.before[1] - first_y - (TILE_Y - ROWS));
        last_row = min(rows, level.before[1] + level.shape[1] - first_y);
    }
    if (!task.periodic[2]) {
        first = max(0, level.before[2] - first_z - (TILE_Z + GROUP - 2)) / GROUP;
        last = min(last, (level.before[2] + level.shape[2] - first_z + GROUP - 1) / GROUP);
    }

#pragma unroll
    for (int k = 0; k < ROWS * GROUP; k++)
        sums[part][k][lane] = 0;
    for (int a = part; a < level.width[0]; a += PARTS) {
        const int left = x + level.planes[2 * a], right = x + level.planes[2 * a + 1];
        if (!task.periodic[0] && !meets(level, left) && !meets(level, right))
            continue;
        REAL sum[ROWS][GROUP] = {};
        for (int b = first_row; b < last_row; b++) {
            const int *used = level.used + 2 * (a * rows + b);
            const int low = max(first, used[0]), high = min(last, used[1]);
            const Group *charges = (const Group *)(level.around + around_row(level, left, y + b) + z) + low;
            const Group *others = (const Group *)(level.around + around_row(level, right, y + b) + z) + low;
            // the row of weights for the first of the thread's rows; the row for the next one precedes it
            const size_t weights_row = ((size_t)a * (rows + ROWS - 1) + b + ROWS - 1) * width;
            const Group *weights = (const Group *)(level.stencil + weights_row) + low;
            Group near = plus(*charges, *others);
#pragma unroll 1
            for (int g = low; g < high; g++) {
                const Group next = plus(*++charges, *++others);
#pragma unroll
                for (int m = 0; m < ROWS; m++) {
                    const Group w = weights[-m * (width / GROUP)];
#pragma unroll
                    for (int k = 0; k < GROUP; k++)
#pragma unroll
                        for (int c = 0; c < GROUP; c++)
                            sum[m][k] += w.v[c] * (k + c < GROUP ? near.v[(k + c) % GROUP] : next.v[(k + c) % GROUP]);
                }
                near = next;
                weights++;
            }
        }
        // plane by plane, so that fewer small terms are added to large sums
#pragma unroll
        for (int k = 0; k < ROWS * GROUP; k++)
            sums[part][k][lane] += sum[k / GROUP][k % GROUP];
    }
    __syncthreads();
    for (int t = threadIdx.x; t < TILE_Y * TILE_Z; t += 32 * PARTS) {
        const int own_y = t / TILE_Z, own_z = t % TILE_Z;
        const int place = own_y % ROWS * GROUP + own_z % GROUP;
        const int owner = own_y / ROWS * (TILE_Z / GROUP) + own_z / GROUP;
        REAL total = 0;
        for (int p = 0; p < PARTS; p++)
            total += sums[p][place][owner];
        if (first_y + own_y < level.shape[1] && first_z + own_z < level.shape[2])
            level.nodes[row_of(level, x, first_y + own_y) + first_z + own_z] = total;
    }
}
