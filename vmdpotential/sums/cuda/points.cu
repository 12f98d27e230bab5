// Sums at arbitrary points in float64, over the nearest image of every atom. A thread has one point; atoms are read in
// tiles to shared memory. Each block along y sums one part of the atoms.

extern "C" __global__ void __launch_bounds__(128) at_points(const PointTask task)
{
    __shared__ Four atoms[128];
    const int point = blockIdx.x * 128 + threadIdx.x;
    const size_t mine = 3 * (size_t)min(point, task.count - 1);
    const double px = task.points[mine], py = task.points[mine + 1], pz = task.points[mine + 2];
    const double *b = task.basis[0], *v = task.inverse[0];
    const int first = blockIdx.y * task.part, end = min(task.atoms, first + task.part);
    double sums[FIELD ? 4 : 1] = {}, least = INFINITY;
    for (int base = first; base < end; base += 128) {
        const size_t i = base + threadIdx.x;
        __syncthreads();
        if (i < end)
            atoms[threadIdx.x] = make_four(task.positions[3 * i], task.positions[3 * i + 1],
                                           task.positions[3 * i + 2], task.charges[i]);
        __syncthreads();
        for (int j = 0; j < min(128, end - base); j++) {
            double x = px - atoms[j].x, y = py - atoms[j].y, z = pz - atoms[j].z;
            const double f = rint(x * v[0] + y * v[3] + z * v[6]);
            const double g = rint(x * v[1] + y * v[4] + z * v[7]);
            const double h = rint(x * v[2] + y * v[5] + z * v[8]);
            x -= f * b[0] + g * b[3] + h * b[6];
            y -= f * b[1] + g * b[4] + h * b[7];
            z -= f * b[2] + g * b[5] + h * b[8];
            double exact2 = x * x + y * y + z * z;
#if FIELD
            double dx = x, dy = y, dz = z;
#endif
            for (int s = 0; s < task.shift_count; s++) {
                const double sx = x + task.shifts[s][0], sy = y + task.shifts[s][1], sz = z + task.shifts[s][2];
                const double shifted2 = sx * sx + sy * sy + sz * sz;
#if FIELD
                if (shifted2 < exact2)
                    dx = sx, dy = sy, dz = sz;
#endif
                exact2 = fmin(exact2, shifted2);
            }
            least = fmin(least, exact2);
            const double r2 = fmax(exact2, task.soft2);
            if (MASKED && r2 >= task.cutoff2)
                continue;
#if FIELD
            const Slope pair = radial(r2, inverse_root(r2), task.doubles);
            const double slope = exact2 < task.soft2 ? 0 : atoms[j].w * pair.slope;
            sums[0] += atoms[j].w * pair.potential;
            sums[1] += slope * dx;
            sums[2] += slope * dy;
            sums[3] += slope * dz;
#else
            sums[0] += atoms[j].w * radial(r2, inverse_root(r2), task.doubles);
#endif
        }
    }
    const int maps = FIELD ? 4 : 1;
    if (point < task.count) {
        double *out = task.sums + (size_t)blockIdx.y * (maps + 1) * task.count + point;
        for (int map = 0; map < maps; map++)
            out[map * (size_t)task.count] = sums[map];
        out[maps * (size_t)task.count] = least;
    }
}
