// Direct Coulomb sum with the atoms in constant memory, as many at a time as its cache holds: all threads
// of a warp read the same atom, which the cache broadcasts. Each launch adds a batch of atoms.

__constant__ float4 batch[BATCH];

extern "C" __global__ void __launch_bounds__(256) direct_constant(const Task task)
{
    const int x = blockIdx.z, y = blockIdx.y * 8 + threadIdx.x / 32, z = blockIdx.x * 32 + threadIdx.x % 32;
    if (y >= task.shape[1] || z >= task.shape[2])
        return;
    const float px = x * (float)task.spacing[0], py = y * (float)task.spacing[1], pz = z * (float)task.spacing[2];
    const float soft2 = (float)(task.soft * task.soft);
    float sum = 0;
    for (int i = 0; i < task.count; i++) {
        const float4 a = batch[i];
        const float dx = px - a.x, dy = py - a.y, dz = pz - a.z;
        sum += a.w * inverse_root(fmaxf(dx * dx + dy * dy + dz * dz, soft2));
    }
    task.out[((size_t)x * task.shape[1] + y) * task.shape[2] + z] += sum * (float)task.factor;
}
