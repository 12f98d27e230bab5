// Atoms and their periodic images sorted by cell on the device. The atoms of a row of cells along z are contiguous.
// Within a cell they are in the order of the input, for any order in which threads run, so that sums are reproducible.

// Call use(cell, number, x, y, z) for each image of an atom that is in a cell. Products and sums are explicit fma, so
// that the compiler cannot round them differently when atoms are counted and when they are placed.
template <class Use>
__device__ __forceinline__ void images(const Task &task, int i, Use use)
{
    double x[3], first[3], last[3];
    for (int d = 0; d < 3; d++)
        x[d] = task.positions[3 * (size_t)i + d];
    for (int d = 0; d < 3; d++) {
        const double fraction = fma(x[2], task.inverse_basis[2][d],
                                    fma(x[1], task.inverse_basis[1][d], __dmul_rn(x[0], task.inverse_basis[0][d])));
        first[d] = ceil(task.first_image[d] - fraction);
        last[d] = floor(task.last_image[d] - fraction);
    }
    int number = 0;
    for (double a = first[0]; a <= last[0]; a++)
        for (double b = first[1]; b <= last[1]; b++)
            for (double c = first[2]; c <= last[2]; c++, number++) {
                double at[3];
                int cell = 0;
                bool inside = true;
                for (int d = 0; d < 3; d++) {
                    const double moved = fma(c, task.basis[2][d],
                                             fma(b, task.basis[1][d], fma(a, task.basis[0][d], x[d])));
                    at[d] = __dmul_rn(moved - task.origin[d], task.inverse_unit);
                    const double place = floor((at[d] - task.low[d]) * task.inverse_cell[d]);
                    inside = inside && place >= 0 && place < task.cells[d];
                    cell = cell * (d < 2 ? task.cells[d] : task.cells[d] + 1) + (inside ? (int)place : 0);
                }
                if (inside)
                    use(cell, number, at[0], at[1], at[2]);
            }
}

// Count the atoms of each cell; those outside of all cells are left out. One thread per atom.
extern "C" __global__ void count(const Task task)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < task.count)
        images(task, i, [&](int cell, int, double, double, double) { atomicAdd(&task.starts[cell], 1); });
}

// Convert the counts of a row's cells to starts within the row. One warp per row.
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

// Convert the totals of the rows to starts. One block of 1024 threads.
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

// Write the atoms cell by cell, in the order of arrival. One thread per atom.
extern "C" __global__ void place(const Task task)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= task.count)
        return;
    const double charge = task.charges[i];
    images(task, i, [&](int cell, int number, double x, double y, double z) {
        const int row = cell / (task.cells[2] + 1);
        const int slot = task.rows[row] + task.starts[cell] + atomicAdd(&task.filled[cell], 1);
        double4_t atom;
        atom.x = x; atom.y = y; atom.z = z;
        atom.w = charge;
        task.placed[slot] = atom;
        task.cell[slot] = cell;
        task.index[slot] = i;
        task.image[slot] = number;
    });
}

// Copy the atoms of each cell in the order of the input. One thread per atom or image.
extern "C" __global__ void order(const Task task)
{
    const int slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= task.rows[task.cells[0] * task.cells[1]])
        return;
    const int i = task.index[slot], image = task.image[slot];
    const int cell = task.cell[slot], row = cell / (task.cells[2] + 1);
    const int first = task.rows[row] + task.starts[cell], end = task.rows[row] + task.starts[cell + 1];
    int before = 0;
    for (int other = first; other < end; other++)
        before += task.index[other] < i || (task.index[other] == i && task.image[other] < image);
    task.atoms[first + before] = task.placed[slot];
}
