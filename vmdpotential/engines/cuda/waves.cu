// Structure factors in float64. A thread has one wave; atoms are read in tiles to shared memory. Each block along y
// sums one part of the atoms.

extern "C" __global__ void __launch_bounds__(128) structure_factors(const WaveTask task)
{
    __shared__ Four atoms[128];
    const int wave = blockIdx.x * 128 + threadIdx.x;
    // indices 0 ... n along the first axis, -n ... n along the others; the remaining waves are complex conjugates
    const int depth = 2 * task.counts[2] + 1, height = 2 * task.counts[1] + 1;
    const double h = wave / (depth * height);
    const double k = wave / depth % height - task.counts[1], l = wave % depth - task.counts[2];
    const int first = blockIdx.y * task.part, end = min(task.atoms, first + task.part);
    double real = 0, imaginary = 0;
    for (int base = first; base < end; base += 128) {
        const size_t i = base + threadIdx.x;
        __syncthreads();
        if (i < end)
            atoms[threadIdx.x] = make_four(task.fraction[3 * i], task.fraction[3 * i + 1], task.fraction[3 * i + 2],
                                           task.charges[i]);
        __syncthreads();
        for (int j = 0; j < min(128, end - base); j++) {
            const double turns = h * atoms[j].x + k * atoms[j].y + l * atoms[j].z;
            double sine, cosine;
            sincospi(-2 * (turns - rint(turns)), &sine, &cosine);
            real += atoms[j].w * cosine;
            imaginary += atoms[j].w * sine;
        }
    }
    if (wave < task.waves) {
        double *sum = task.sums + 2 * ((size_t)blockIdx.y * task.waves + wave);
        sum[0] = real;
        sum[1] = imaginary;
    }
}
