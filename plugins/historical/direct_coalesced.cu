// Direct Coulomb sum, unrolled and coalesced: a thread has 8 points along z at distances of 32 points, so that the
// stores of a warp are contiguous.

#define STEP 32

__constant__ float4 batch[BATCH];

extern "C" __global__ void __launch_bounds__(256) direct_coalesced(const Task task)
{
    const int x = blockIdx.z, y = blockIdx.y * 8 + threadIdx.x / 32, z = blockIdx.x * 256 + threadIdx.x % 32;
    const float px = x * (float)task.spacing[0], py = y * (float)task.spacing[1], h = (float)task.spacing[2];
    const float soft2 = (float)(task.soft * task.soft);
    float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int i = 0; i < task.count; i++) {
        const float4 a = batch[i];
        const float dx = px - a.x, dy = py - a.y, dz = z * h - a.z;
        const float xy2 = dx * dx + dy * dy;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const float d = dz + k * STEP * h;
            sum[k] += a.w * inverse_root(fmaxf(xy2 + d * d, soft2));
        }
    }
    if (y >= task.shape[1])
        return;
    float *out = task.out + ((size_t)x * task.shape[1] + y) * task.shape[2];
    for (int k = 0; k < 8; k++)
        if (z + k * STEP < task.shape[2])
            out[z + k * STEP] += sum[k] * (float)task.factor;
}
