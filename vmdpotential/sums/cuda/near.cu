// Pairs of arbitrary points and the atoms within the cutoff, sorted by cell (sort.cu), in float64.

// The first and the last cell along axis d between the coordinates `low` and `high`.
__device__ __forceinline__ void cells_between(const Task &task, int d, double low, double high, int *first, int *last)
{
    *first = max(0, (int)floor((low - task.low[d]) * task.inverse_cell[d]));
    *last = min(task.cells[d] - 1, (int)floor((high - task.low[d]) * task.inverse_cell[d]));
}

// The distance of a coordinate from a cell along axis d.
__device__ __forceinline__ double apart(const Task &task, int d, int cell, double at)
{
    const double low = task.low[d] + cell * task.cell_size[d];
    return fmax(0.0, fmax(low - at, at - low - task.cell_size[d]));
}

// Add the potential and field of the pairs to the sums at the points. A warp has one point, each lane every 32nd row of
// the cells in reach. Blocks of 128 threads.
extern "C" __global__ void __launch_bounds__(128) near(const Task task)
{
    const int point = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x & 31;
    const double *place = task.places + 3 * (size_t)min(point, task.place_count - 1);
    const double cutoff2 = task.cutoff * task.cutoff, soft2 = task.soft * task.soft;
    double at[3], sums[4] = {};
    int first[2], last[2];
    for (int d = 0; d < 3; d++)
        at[d] = (place[d] - task.origin[d]) * task.inverse_unit;
    for (int d = 0; d < 2; d++)
        cells_between(task, d, at[d] - task.cutoff, at[d] + task.cutoff, first + d, last + d);
    const int across = last[1] - first[1] + 1, rows = (last[0] - first[0] + 1) * across;
    for (int k = lane; k < rows; k += 32) {
        const int x = first[0] + k / across, y = first[1] + k % across;
        const double far_x = apart(task, 0, x, at[0]), far_y = apart(task, 1, y, at[1]);
        const double rest = cutoff2 - far_x * far_x - far_y * far_y;
        if (rest <= 0)
            continue;
        int from, to;
        cells_between(task, 2, at[2] - sqrt(rest), at[2] + sqrt(rest), &from, &to);
        const size_t row = (size_t)x * task.cells[1] + y;
        const int *starts = task.starts + row * (task.cells[2] + 1);
        const int end = from > to ? 0 : task.rows[row] + starts[to + 1];
        for (int slot = from > to ? 0 : task.rows[row] + starts[from]; slot < end; slot++) {
            const double4_t atom = task.atoms[slot];
            const double x = at[0] - atom.x, y = at[1] - atom.y, z = at[2] - atom.z;
            const double exact2 = x * x + y * y + z * z, r2 = fmax(exact2, soft2);
            if (r2 >= cutoff2)
                continue;
            const Slope pair = radial(r2, inverse_root(r2), task.doubles);
            const double slope = exact2 < soft2 ? 0 : atom.w * pair.slope;
            sums[0] += atom.w * pair.potential;
            sums[1] += slope * x;
            sums[2] += slope * y;
            sums[3] += slope * z;
        }
    }
    for (int d = 0; d < 4; d++)
        for (int bits = 16; bits; bits /= 2)
            sums[d] += __shfl_xor_sync(~0u, sums[d], bits);
    if (lane == 0 && point < task.place_count)
        for (int d = 0; d < 4; d++)
            task.sums[d * (size_t)task.place_count + point] += sums[d] * (d ? task.field_factor : task.factor);
}
