// Cutoff sum with small bins: a bin has room for CAPACITY atoms, which are contiguous in memory and found without a
// table; atoms that do not fit are summed on the CPU. A block sums a region of 8^3 points over a list of the bins
// that may be within the cutoff, 16 at a time through shared memory. All regions have the same list, of steps from
// the bin at the region's centre, which is in constant memory like all arguments. A list longer than LISTED is
// divided among several launches, which add to the map. Macros that the host sets:
//   COMPENSATED  1 for Kahan's sums, which compensate the rounding errors of additions

__device__ __forceinline__ void add(float &sum, float &lost, float term)
{
#if COMPENSATED
    const float corrected = term - lost, total = sum + corrected;
    lost = (total - sum) - corrected;
    sum = total;
#else
    sum += term;
#endif
}

extern "C" __global__ void __launch_bounds__(128) cutoff_smallbin(const ListTask list)
{
    __shared__ float4 batch[16 * CAPACITY];
    const Task &task = list.task;
    const float4 *bins = (const float4 *)task.atoms;
    const int *home_x = task.index, *home_y = home_x + gridDim.z, *home_z = home_y + gridDim.y;
    const int home = (home_x[blockIdx.z] * task.cells[1] + home_y[blockIdx.y]) * task.cells[2] + home_z[blockIdx.x];
    const int x = blockIdx.z * 8 + threadIdx.x / 64, y = blockIdx.y * 8 + threadIdx.x / 8 % 8;
    const int z = blockIdx.x * 8 + threadIdx.x % 8;
    const float hx = (float)task.spacing[0], py = y * (float)task.spacing[1], pz = z * (float)task.spacing[2];
    const float cutoff2 = (float)(task.cutoff * task.cutoff), soft2 = (float)(task.soft * task.soft);
    float sum[4] = {0, 0, 0, 0}, lost[4] = {0, 0, 0, 0};
    for (int base = 0; base < list.count; base += 16) {
        const int bins_here = min(16, list.count - base);
        __syncthreads();
        for (int j = threadIdx.x; j < bins_here * CAPACITY; j += 128)
            batch[j] = bins[(size_t)(home + list.steps[base + j / CAPACITY]) * CAPACITY + j % CAPACITY];
        __syncthreads();
        for (int bin = 0; bin < bins_here; bin++)
            for (int j = 0; j < CAPACITY; j++) {
                const float4 a = batch[bin * CAPACITY + j];
                if (a.w == 0)  // the rest of the bin is empty
                    break;
                const float dy = py - a.y, dz = pz - a.z;
                const float yz2 = dy * dy + dz * dz;
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const float dx = (x + 2 * k) * hx - a.x;
                    const float r2 = fmaxf(dx * dx + yz2, soft2);
                    if (r2 < cutoff2)
                        add(sum[k], lost[k], a.w * radial(r2, inverse_root(r2), task.floats));
                }
            }
    }
    if (y < task.shape[1] && z < task.shape[2])
        for (int k = 0; k < 4; k++)
            if (x + 2 * k < task.shape[0])
                task.out[((size_t)(x + 2 * k) * task.shape[1] + y) * task.shape[2] + z] += sum[k] * (float)task.factor;
}
