// Atoms sorted by cell on the device. Rows of cells along z are runs of atoms. The order is that of the
// input within a cell, whatever the order in which threads come, so that sums are the same every time.

// Count the atoms of each cell; those outside all cells are left out. One thread an atom.
extern "C" __global__ void count(const Task task)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= task.count)
        return;
    int c[3];
    bool inside = true;
    for (int d = 0; d < 3; d++) {
        const double x = (task.positions[3 * (size_t)i + d] - task.origin[d]) * task.inverse_unit - task.low[d];
        const double place = floor(x * task.inverse_cell[d]);
        inside = inside && place >= 0 && place < task.cells[d];
        c[d] = inside ? (int)place : 0;
    }
    const int cell = inside ? (c[0] * task.cells[1] + c[1]) * (task.cells[2] + 1) + c[2] : -1;
    task.cell[i] = cell;
    if (inside)
        task.rank[i] = atomicAdd(&task.starts[cell], 1);
}

// Turn the counts of a row into starts within it. One warp a row.
extern "C" __global__ void scan_rows(const Task task)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (row >= task.cells[0] * task.cells[1])
        return;
    int *starts = task.starts + (size_t)row * (task.cells[2] + 1);
    int carry = 0;
    for (int z = lane; z - lane < task.cells[2]; z += 32) {
        const int own = z < task.cells[2] ? starts[z] : 0;
        int sum = own;
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, sum, step);
            sum += lane >= step ? other : 0;
        }
        if (z < task.cells[2])
            starts[z] = carry + sum - own;
        carry += __shfl_sync(~0u, sum, 31);
    }
    if (lane == 0) {
        starts[task.cells[2]] = carry;
        task.rows[row] = carry;
    }
}

// Turn the totals of the rows into starts. One block of 1024 threads.
extern "C" __global__ void scan_totals(const Task task)
{
    __shared__ int sums[32];
    const int rows = task.cells[0] * task.cells[1], lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    int carry = 0;
    for (int base = 0; base < rows; base += 1024) {
        const int row = base + threadIdx.x;
        const int own = row < rows ? task.rows[row] : 0;
        int sum = own;
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, sum, step);
            sum += lane >= step ? other : 0;
        }
        if (lane == 31)
            sums[warp] = sum;
        __syncthreads();
        int before = 0, all = 0;
        for (int w = 0; w < 32; w++) {
            before += w < warp ? sums[w] : 0;
            all += sums[w];
        }
        __syncthreads();
        if (row < rows)
            task.rows[row] = carry + before + sum - own;
        carry += all;
    }
    if (threadIdx.x == 0)
        task.rows[rows] = carry;
}

// Write the atoms' numbers cell by cell, in the order of arrival. One thread an atom.
extern "C" __global__ void place(const Task task)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= task.count || task.cell[i] < 0)
        return;
    const int cell = task.cell[i], row = cell / (task.cells[2] + 1);
    task.index[task.rows[row] + task.starts[cell] + task.rank[i]] = i;
}

// Write the atoms in the order of the input within each cell. One thread an atom.
extern "C" __global__ void order(const Task task)
{
    const int slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= task.rows[task.cells[0] * task.cells[1]])
        return;
    const int i = task.index[slot];
    const int cell = task.cell[i], row = cell / (task.cells[2] + 1);
    const int first = task.rows[row] + task.starts[cell], end = task.rows[row] + task.starts[cell + 1];
    int before = 0;
    for (int other = first; other < end; other++)
        before += task.index[other] < i;
    double4_t atom;
    atom.x = (task.positions[3 * (size_t)i] - task.origin[0]) * task.inverse_unit;
    atom.y = (task.positions[3 * (size_t)i + 1] - task.origin[1]) * task.inverse_unit;
    atom.z = (task.positions[3 * (size_t)i + 2] - task.origin[2]) * task.inverse_unit;
    atom.w = task.charges[i];
    task.atoms[first + before] = atom;
}
