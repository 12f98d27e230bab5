// Direct sum: the sum over all atoms at all lattice points.
//
// A block of 256 threads sums 8 x 8 x 32 points: a thread has a column of 8 points along x, and the threads of a warp
// are along z, so that stores coalesce. Atoms are read in tiles to shared memory, relative to the block's centre, with
// the squared distances to the 8 planes, which are the same for all threads: an evaluation is an addition, an inverse
// root and a multiply-add.
//
// The special function units compute 16 inverse roots per clock cycle, an eighth of the rate of other operations.
// Therefore SOFTWARE of the 8 points of a thread use the integer and multiply-add units instead: a linear guess in the
// logarithm, and two Newton steps with constants that centre the error (at most 6e-7). The steps' factors 1/2 are left
// out, so that the result is 16 times too large, which SOFT_CHARGE corrects.

#define TILE 256
#define WORDS (TILE / 32)

__device__ __forceinline__ REAL software_inverse_root(REAL x)
{
#if SOFTWARE
    float y = __int_as_float(0x5f376908 - (__float_as_int(x) >> 1));
    y = y * fmaf(-x * y, y, 3.00175774f);
    return y * fmaf(-x * y, y, 12.0000046f);
#else
    return inverse_root(x);
#endif
}

constexpr int unroll = UNROLL;  // macros are not expanded in pragmas
constexpr int maps = FIELD ? 4 : 1;

extern "C" __global__ void __launch_bounds__(256, BLOCKS) direct(const Task task)
{
    __shared__ Four atoms[TILE][3];
    __shared__ unsigned near[WORDS];
    const int lane_z = threadIdx.x & 31, lane_y = threadIdx.x >> 5;
    const int first_x = blockIdx.z * 8 + task.first_plane, first_y = blockIdx.y * 8, first_z = blockIdx.x * 32;
    const double hx = task.spacing[0], hy = task.spacing[1], hz = task.spacing[2];
    const double cx = (first_x + 3.5) * hx, cy = (first_y + 3.5) * hy, cz = (first_z + 15.5) * hz;
    const REAL soft = (REAL)task.soft;
    const REAL py = (REAL)(lane_y - 3.5) * (REAL)hy, pz = (REAL)(lane_z - 15.5) * (REAL)hz;
    double total[maps][8] = {};
    for (int base = 0; base < task.count; base += TILE) {
        const int mine = base + threadIdx.x;
        bool is_near = false;
        REAL x = FAR, y = 0, z = 0, q = 0;
        if (mine < task.count) {
            x = (REAL)((task.positions[3 * mine] - task.origin[0]) * task.inverse_unit - cx);
            y = (REAL)((task.positions[3 * mine + 1] - task.origin[1]) * task.inverse_unit - cy);
            z = (REAL)((task.positions[3 * mine + 2] - task.origin[2]) * task.inverse_unit - cz);
            q = (REAL)task.charges[mine];
            is_near = fabs(x) < 4 * (REAL)hx && fabs(y) < 4 * (REAL)hy && fabs(z) < 16 * (REAL)hz &&
                      on_lattice(x, (REAL)hx, 1 / (REAL)hx, soft) && on_lattice(y, (REAL)hy, 1 / (REAL)hy, soft) &&
                      on_lattice(z, (REAL)hz, 1 / (REAL)hz, soft);
        }
        __syncthreads();  // until all threads have summed the previous tile
        const unsigned word = __ballot_sync(~0u, is_near);
        if (lane_z == 0)
            near[lane_y] = word;
        if (is_near) {
            x = FAR;
            q = 0;
        }
        REAL d2[8];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const REAL d = (REAL)(k - 3.5) * (REAL)hx - x;
            d2[k] = d * d;
        }
        atoms[threadIdx.x][0] = make_four(y, z, q, FIELD ? x : q * (REAL)SOFT_CHARGE);
        atoms[threadIdx.x][1] = make_four(d2[0], d2[1], d2[2], d2[3]);
        atoms[threadIdx.x][2] = make_four(d2[4], d2[5], d2[6], d2[7]);
        __syncthreads();
        for (int flush = 0; flush < TILE; flush += FLUSH) {
            REAL sum[maps][8] = {};
#pragma unroll unroll
            for (int j = flush; j < flush + FLUSH; j++) {
                const Four a = atoms[j][0], low = atoms[j][1], high = atoms[j][2];
                const REAL dy = py - a.x, dz = pz - a.y;
                const REAL yz2 = dy * dy + dz * dz;
                const REAL x2[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (int k = 0; k < 8; k++) {
                    const REAL r2 = x2[k] + yz2;
                    const REAL dx = (REAL)(k - 3.5) * (REAL)hx - a.w;  // only with FIELD, for which SOFTWARE is 0
                    if (k < SOFTWARE)
                        add_pair(sum, k, a.w, radial(r2, software_inverse_root(r2), task.UNIFORMS), dx, dy, dz);
                    else
                        add_pair(sum, k, a.z, radial(r2, inverse_root(r2), task.UNIFORMS), dx, dy, dz);
                }
            }
#pragma unroll
            for (int k = 0; k < 8 * maps; k++)
                total[k / 8][k % 8] += (double)sum[k / 8][k % 8];
        }
        for (int w = 0; w < WORDS; w++)
            for (unsigned bits = near[w]; bits; bits &= bits - 1) {
                const int j = base + 32 * w + __ffs(bits) - 1;
                const double nx = (task.positions[3 * j] - task.origin[0]) * task.inverse_unit - cx;
                const double ny = (task.positions[3 * j + 1] - task.origin[1]) * task.inverse_unit - cy - (double)py;
                const double nz = (task.positions[3 * j + 2] - task.origin[2]) * task.inverse_unit - cz - (double)pz;
                for (int k = 0; k < 8; k++) {
                    const double dx = (k - 3.5) * hx - nx;
                    const double d2 = dx * dx + ny * ny + nz * nz, r2 = fmax(d2, task.soft * task.soft);
                    add_pair(total, k, task.charges[j], radial((REAL)r2, (REAL)(1 / sqrt(r2)), task.UNIFORMS),
                             (REAL)dx, -(REAL)ny, -(REAL)nz, d2 == r2);
                }
            }
    }
    const int iy = first_y + lane_y, iz = first_z + lane_z;
    if (iy < task.shape[1] && iz < task.shape[2])
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (first_x + k < task.shape[0]) {
                const size_t plane = first_x - task.first_plane + k;
                float *out = &task.out[(plane * task.shape[1] + iy) * task.shape[2] + iz];
#pragma unroll
                for (int n = 0; n < maps; n++, out += task.map_size)
                    *out = (float)(total[n][k] * (n ? task.field_factor : task.factor));
            }
}
