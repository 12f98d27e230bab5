// The potential of Gaussian charges on a lattice (L. E. McMurchie, E. R. Davidson, J. Comput. Phys. 26 (1978) 218). A
// thread has one point and sums over the charges of one order, as in orbitals/potential.cu. Macros set by the host:
//   ORDER        largest number of derivatives of a Gaussian
//   FINE, TERMS  constants of the table of Boys functions, as in engines/gaussians.py
//   BEYOND       T from which on exp(-T) is negligible for this order

#define EDGE_X 4  // number of points of a block along each axis, as in gaussians.py
#define EDGE_Y 4
#define EDGE_Z 8

#define COUNT ((ORDER + 1) * (ORDER + 2) * (ORDER + 3) / 6)  // coefficients of a Gaussian
#define RECORD (4 + COUNT)  // its centre and exponent too

// The index of the derivative t, u, v: sorted by the sum, then by t and u.
__device__ __forceinline__ constexpr int place(int t, int u, int v)
{
    const int total = t + u + v;
    return total * (total + 1) * (total + 2) / 6 + t * (total + 1) - t * (t - 1) / 2 + u;
}

// Boys functions F_0 ... F_ORDER of t.
__device__ __forceinline__ void boys(double t, const double *table, double (&values)[ORDER + 1])
{
    if (t >= BEYOND) {  // (2n - 1)!! / (2T)^n sqrt(pi / 4T)
        const double root = rsqrt(t), inverse = root * root;
        values[0] = 0.88622692545275801 * root;
#pragma unroll
        for (int n = 0; n < ORDER; n++)
            values[n + 1] = values[n] * (n + 0.5) * inverse;
        return;
    }
    const int row = (int)(t * FINE + 0.5);
    const double *at = table + (1 + TERMS) * row, step = (double)row / FINE - t;
    double power = 1, top = 0, e = 0;
#pragma unroll
    for (int k = 0; k < TERMS; k++) {
        top += power * at[1 + k];
        e += power;
        power *= step * (1.0 / (k + 1));
    }
    e *= at[0];
    values[ORDER] = top;
#pragma unroll
    for (int n = ORDER - 1; n >= 0; n--) {
        top = (2 * t * top + e) * (1.0 / (2 * n + 1));
        values[n] = top;
    }
}

// The potentials of all derivatives by recursion. Higher derivatives are computed first, so that one array is enough.
__device__ __forceinline__ void derivatives(double p, double x, double y, double z, const double (&values)[ORDER + 1],
                                            double (&r)[COUNT])
{
    double scales[ORDER + 1];
    scales[0] = 1;
#pragma unroll
    for (int n = 0; n < ORDER; n++)
        scales[n + 1] = -2 * p * scales[n];
    r[0] = scales[ORDER] * values[ORDER];
#pragma unroll
    for (int n = ORDER - 1; n >= 0; n--) {
#pragma unroll
        for (int total = ORDER - n; total > 0; total--) {
#pragma unroll
            for (int t = 0; t <= total; t++) {
#pragma unroll
                for (int u = 0; u <= total - t; u++) {
                    const int v = total - t - u, here = place(t, u, v);
                    if (t > 0)
                        r[here] = x * r[place(t - 1, u, v)] + (t > 1 ? (t - 1) * r[place(max(t - 2, 0), u, v)] : 0);
                    else if (u > 0)
                        r[here] = y * r[place(t, u - 1, v)] + (u > 1 ? (u - 1) * r[place(t, max(u - 2, 0), v)] : 0);
                    else
                        r[here] = z * r[place(t, u, v - 1)] + (v > 1 ? (v - 1) * r[place(t, u, max(v - 2, 0))] : 0);
                }
            }
        }
        r[0] = scales[n] * values[n];
    }
}

struct Point { double x, y, z; size_t at; };

// Compute the point of a thread; return false if it is outside of the lattice.
__device__ __forceinline__ bool point_of(const GaussianTask &task, Point &point)
{
    const int number = threadIdx.x;
    const int k = blockIdx.x * EDGE_Z + number % EDGE_Z, j = blockIdx.y * EDGE_Y + number / EDGE_Z % EDGE_Y;
    const int i = blockIdx.z * EDGE_X + number / (EDGE_Z * EDGE_Y);
    point.x = task.origin[0] + i * task.spacing[0];
    point.y = task.origin[1] + j * task.spacing[1];
    point.z = task.origin[2] + k * task.spacing[2];
    point.at = ((size_t)i * task.shape[1] + j) * task.shape[2] + k;
    return i < task.shape[0] && j < task.shape[1] && k < task.shape[2];
}

extern "C" __global__ void __launch_bounds__(EDGE_X * EDGE_Y * EDGE_Z) gaussians(const GaussianTask task)
{
    Point point;
    if (!point_of(task, point))
        return;
    double sum = task.begins ? 0 : task.sums[point.at];
    for (int g = 0; g < task.count; g++) {
        const double *gaussian = task.gaussians + (size_t)g * RECORD, p = gaussian[3];
        const double x = gaussian[0] - point.x, y = gaussian[1] - point.y, z = gaussian[2] - point.z;
        double values[ORDER + 1], r[COUNT];
        boys(p * (x * x + y * y + z * z), task.table, values);
        derivatives(p, x, y, z, values, r);
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            sum += gaussian[4 + k] * r[k];
    }
    task.sums[point.at] = sum;
}

// Add the potential of the nuclei, and round the sum to float.
extern "C" __global__ void __launch_bounds__(EDGE_X * EDGE_Y * EDGE_Z) nuclei(const GaussianTask task)
{
    Point point;
    if (!point_of(task, point))
        return;
    double sum = task.begins ? 0 : task.sums[point.at];
    for (int a = 0; a < task.count; a++) {
        const double *nucleus = task.gaussians + 4 * a;
        const double x = nucleus[0] - point.x, y = nucleus[1] - point.y, z = nucleus[2] - point.z;
        sum += nucleus[3] / fmax(sqrt(x * x + y * y + z * z), task.closest);
    }
    task.values[point.at] = (float)sum;
}
