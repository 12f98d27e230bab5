// Angle-dependent energies of hydrogen bonds between probes and a receptor's atoms. A thread computes one node, for all
// probes; formulas as in probes/bonds.cu. Macro set by the host:
//   PROBES  number of probes

#define THREADS 128  // number of threads of a block, as in bonds.py

#define DONOR 0  // kinds of atoms, as in engines/bonds.py
#define TWO_PAIRS 2

// The angular factor of the well of an atom: `cosine` is that of the angle with its direction, `normal` that with the
// normal of the plane of its lone pairs.
__device__ __forceinline__ double left_by_angles(int kind, double power, double cosine, double normal)
{
    const double square = cosine * cosine;
    if (kind != TWO_PAIRS)
        return cosine <= 0 ? 0 : power == 2 ? square : square * square;
    const double lift = sqrt(fmax(1 - normal * normal, 1e-12)), along = cosine / lift, left = 0.116978 - square;
    if (cosine >= 0)
        return (0.9 + 0.2 * along * sqrt(fmax(1 - along * along, 0.0))) * lift;
    return cosine >= -0.34202 ? 562.25 * left * left * left * lift : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS) bonds(const BondTask task)
{
    const size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= task.nodes)
        return;
    const int k = at % task.shape[2], j = at / task.shape[2] % task.shape[1];
    const int i = at / ((size_t)task.shape[2] * task.shape[1]);
    const double x = task.origin[0] + i * task.spacing[0], y = task.origin[1] + j * task.spacing[1];
    const double z = task.origin[2] + k * task.spacing[2], reach2 = task.cutoff * task.cutoff;
    const bool donors = task.kinds[0] == DONOR;
    double nearest = reach2, low[PROBES], high[PROBES], total[PROBES];
    int closest = -1;
    for (int a = 0; donors && a < task.atoms; a++) {
        const double dx = x - task.positions[3 * a], dy = y - task.positions[3 * a + 1];
        const double dz = z - task.positions[3 * a + 2], r2 = dx * dx + dy * dy + dz * dz;
        if (r2 < nearest) {
            nearest = r2;
            closest = a;
        }
    }
#pragma unroll
    for (int p = 0; p < PROBES; p++) {
        low[p] = 1e30;
        high[p] = -1e30;
        total[p] = 0;
    }
    for (int a = 0; a < task.atoms; a++) {
        const double dx = x - task.positions[3 * a], dy = y - task.positions[3 * a + 1];
        const double dz = z - task.positions[3 * a + 2], r2 = dx * dx + dy * dy + dz * dz;
        if (r2 > reach2)
            continue;
        const double r = sqrt(r2), inverse = 1 / fmax(r, 1e-6);
        const double *along = task.directions + 3 * a, *axis = task.normals + 3 * a;
        const double cosine = (dx * along[0] + dy * along[1] + dz * along[2]) * inverse;
        const double normal = (dx * axis[0] + dy * axis[1] + dz * axis[2]) * inverse;
        const double part = left_by_angles(task.kinds[a], task.powers[a], cosine, normal);
        double ramp = 1;
        if (donors && cosine > 0 && closest >= 0 && closest != a) {
            const double *other = task.directions + 3 * closest;
            const double turn = along[0] * other[0] + along[1] * other[1] + along[2] * other[2];
            ramp = 0.5 - 0.5 * cos(acos(fmin(1.0, fmax(-1.0, turn))) * 4 / 3);
        }
#pragma unroll
        for (int p = 0; p < PROBES; p++) {
            const int well = p * task.types + task.type[a];
            const double distance = task.distances[well], depth = task.depths[well];
            const double ratio = distance / (r + fmin(fmax(distance - r, -task.smooth), task.smooth));
            const double two = ratio * ratio, four = two * two;
            double energy = fmin(depth * (four * four * two * (5 * two - 6)), task.cap);
            energy *= part + (1 - part) * fmin(fmax(energy / 100, 0.0), 1.0);
            low[p] = fmin(low[p], energy);
            high[p] = fmax(high[p], energy);
            total[p] += ramp * energy;
        }
    }
#pragma unroll
    for (int p = 0; p < PROBES; p++)
        task.values[p * task.nodes + at] = !task.extremes[p] ? total[p] : low[p] <= high[p] ? low[p] + high[p] : 0;
}
