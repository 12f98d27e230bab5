// Direct Coulomb sum, the first version: a thread has one point and reads every atom from device memory.

extern "C" __global__ void __launch_bounds__(256) direct_simple(const Task task)
{
    const int x = blockIdx.z, y = blockIdx.y * 8 + threadIdx.x / 32, z = blockIdx.x * 32 + threadIdx.x % 32;
    if (y >= task.shape[1] || z >= task.shape[2])
        return;
    const float4 *atoms = (const float4 *)task.atoms;
    const float px = x * (float)task.spacing[0], py = y * (float)task.spacing[1], pz = z * (float)task.spacing[2];
    const float soft2 = (float)(task.soft * task.soft);
    float sum = 0;
    for (int i = 0; i < task.count; i++) {
        const float4 a = atoms[i];
        const float dx = px - a.x, dy = py - a.y, dz = pz - a.z;
        sum += a.w * inverse_root(fmaxf(dx * dx + dy * dy + dz * dz, soft2));
    }
    task.out[((size_t)x * task.shape[1] + y) * task.shape[2] + z] = sum * (float)task.factor;
}
