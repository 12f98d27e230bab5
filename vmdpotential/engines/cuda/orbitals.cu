// Orbitals, and weighted sums of their squares, on a lattice. A thread has one point; the shells within reach add their
// monomials, with angular momenta that are compile-time constants, to the sums of ORBITALS orbitals at once. Macro set
// by the host:
//   ORBITALS  number of orbitals that are evaluated together; 1 for the value of a single orbital

#define EDGE_X 4  // number of points of a block along each axis, as in orbitals.py
#define EDGE_Y 4
#define EDGE_Z 8

// Add x^a y^b z^c times the radial part, sorted by c and then by a, to all orbitals.
template <int MOMENTUM>
__device__ __forceinline__ void add_shell(float (&sums)[ORBITALS], const float *coefficients, float radial, float x,
                                          float y, float z)
{
    float powers_x[MOMENTUM + 1], powers_y[MOMENTUM + 1];
    powers_x[0] = powers_y[0] = 1;
#pragma unroll
    for (int n = 0; n < MOMENTUM; n++) {
        powers_x[n + 1] = powers_x[n] * x;
        powers_y[n + 1] = powers_y[n] * y;
    }
#pragma unroll
    for (int c = 0; c <= MOMENTUM; c++) {
#pragma unroll
        for (int a = 0; a <= MOMENTUM - c; a++) {
            const float value = radial * powers_x[a] * powers_y[MOMENTUM - c - a];
#pragma unroll
            for (int n = 0; n < ORBITALS; n++)
                sums[n] += coefficients[n] * value;
            coefficients += ORBITALS;
        }
        radial *= z;
    }
}

extern "C" __global__ void __launch_bounds__(EDGE_X * EDGE_Y * EDGE_Z) orbitals(const OrbitalTask task)
{
    const int number = threadIdx.x;
    const int k = blockIdx.x * EDGE_Z + number % EDGE_Z, j = blockIdx.y * EDGE_Y + number / EDGE_Z % EDGE_Y;
    const int i = blockIdx.z * EDGE_X + number / (EDGE_Z * EDGE_Y);
    if (i >= task.shape[0] || j >= task.shape[1] || k >= task.shape[2])
        return;
    const double x = task.origin[0] + i * task.spacing[0], y = task.origin[1] + j * task.spacing[1];
    const double z = task.origin[2] + k * task.spacing[2];
    const size_t at = ((size_t)i * task.shape[1] + j) * task.shape[2] + k;
    float total = 0;
    for (int first = 0; first < task.orbitals; first += ORBITALS) {
        float sums[ORBITALS] = {};
        const float *coefficients = task.coefficients + (size_t)first * task.monomials;
        for (int n = 0; n < task.shells; n++) {
            const int *shell = task.table + 4 * n;
            const float dx = (float)(x - task.centres[3 * n]), dy = (float)(y - task.centres[3 * n + 1]);
            const float dz = (float)(z - task.centres[3 * n + 2]), r2 = dx * dx + dy * dy + dz * dz;
            if (r2 >= task.reaches2[n])
                continue;
            float radial = 0;
            for (int p = shell[1]; p < shell[2]; p++)
                radial += task.factors[p] * exp(-task.exponents[p] * r2);
            const float *own = coefficients + (size_t)shell[3] * ORBITALS;
            switch (shell[0]) {
            case 0: add_shell<0>(sums, own, radial, dx, dy, dz); break;
            case 1: add_shell<1>(sums, own, radial, dx, dy, dz); break;
            case 2: add_shell<2>(sums, own, radial, dx, dy, dz); break;
            case 3: add_shell<3>(sums, own, radial, dx, dy, dz); break;
            case 4: add_shell<4>(sums, own, radial, dx, dy, dz); break;
            default: add_shell<5>(sums, own, radial, dx, dy, dz);
            }
        }
#pragma unroll
        for (int n = 0; n < ORBITALS; n++)
            total += ORBITALS == 1 && !task.squares ? sums[n] : task.weights[first + n] * sums[n] * sums[n];
    }
    task.values[at] = total;
}
