// Cutoff sum with large bins, the first version: a block sums a region of 8^3 points over all atoms in the bins
// around it. A bin is as wide as the cutoff, so that there are few bins, but most of their atoms are beyond the
// cutoff of most points. Atoms are loaded into shared memory; a thread has 4 points along x.

#define BATCH 128

extern "C" __global__ void __launch_bounds__(128) cutoff_largebin(const Task task)
{
    __shared__ float4 batch[BATCH];
    const float4 *atoms = (const float4 *)task.atoms;
    const int region[3] = {(int)blockIdx.z * 8, (int)blockIdx.y * 8, (int)blockIdx.x * 8};
    int first[3], last[3];  // range of bins within the cutoff
    for (int d = 0; d < 3; d++) {
        const double low = region[d] * task.spacing[d] - task.low[d], high = low + 7 * task.spacing[d];
        first[d] = max(0, (int)floor((low - task.cutoff) * task.inverse_cell[d]));
        last[d] = min(task.cells[d] - 1, (int)floor((high + task.cutoff) * task.inverse_cell[d]));
    }
    const int x = region[0] + threadIdx.x / 64, y = region[1] + threadIdx.x / 8 % 8, z = region[2] + threadIdx.x % 8;
    const float hx = (float)task.spacing[0], py = y * (float)task.spacing[1], pz = z * (float)task.spacing[2];
    const float cutoff2 = (float)(task.cutoff * task.cutoff), soft2 = (float)(task.soft * task.soft);
    float sum[4] = {0, 0, 0, 0};
    for (int bx = first[0]; bx <= last[0]; bx++)
        for (int by = first[1]; by <= last[1]; by++) {
            const int *starts = task.starts + ((size_t)bx * task.cells[1] + by) * task.cells[2];
            const int end = starts[last[2] + 1];
            for (int base = starts[first[2]]; base < end; base += BATCH) {
                __syncthreads();
                if (base + (int)threadIdx.x < end)
                    batch[threadIdx.x] = atoms[base + threadIdx.x];
                __syncthreads();
                for (int j = 0; j < min(BATCH, end - base); j++) {
                    const float4 a = batch[j];
                    const float dy = py - a.y, dz = pz - a.z;
                    const float yz2 = dy * dy + dz * dz;
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const float dx = (x + 2 * k) * hx - a.x;
                        const float r2 = fmaxf(dx * dx + yz2, soft2);
                        if (r2 < cutoff2)
                            sum[k] += a.w * radial(r2, inverse_root(r2), task.floats);
                    }
                }
            }
        }
    if (y < task.shape[1] && z < task.shape[2])
        for (int k = 0; k < 4; k++)
            if (x + 2 * k < task.shape[0])
                task.out[((size_t)(x + 2 * k) * task.shape[1] + y) * task.shape[2] + z] = sum[k] * (float)task.factor;
}
