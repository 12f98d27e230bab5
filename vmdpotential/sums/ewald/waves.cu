// Structure factors in float64: sums over atoms of q exp(-2 pi i (h, k, l) f), h from 0 on, k and l of either sign.
#include "kernel.h"

struct Waves {
    const double *fraction, *charges;  // (atoms, 3) and (atoms,)
    double *sums;                      // (parts, waves, 2) real and imaginary parts; 0 at first
    index_t counts[3];                 // the largest index along each axis
    index_t waves, atoms, part;        // a GPU sums `part` atoms apart from others; CPUs all atoms as the first part
};

#ifdef __CUDACC__

struct alignas(32) Atom {
    double x, y, z, q;
};

// A thread has one wave; atoms are read in tiles to shared memory. The blocks of all waves follow each other, for one
// part of the atoms after another.
BLOCK_KERNEL(sum_waves, Waves)
{
    __shared__ Atom atoms[BLOCK_THREADS];
    const int blocks = (int)((args.waves + BLOCK_THREADS - 1) / BLOCK_THREADS), part = blockIdx.x / blocks;
    const int wave = (blockIdx.x - part * blocks) * BLOCK_THREADS + threadIdx.x;
    const int depth = 2 * (int)args.counts[2] + 1, height = 2 * (int)args.counts[1] + 1;
    const double h = wave / (depth * height);
    const double k = wave / depth % height - (int)args.counts[1], l = wave % depth - (int)args.counts[2];
    const int first = part * (int)args.part, end = min((int)args.atoms, first + (int)args.part);
    double real = 0, imaginary = 0;
    for (int base = first; base < end; base += BLOCK_THREADS) {
        const index_t i = base + threadIdx.x;
        __syncthreads();
        if (i < end)
            atoms[threadIdx.x] = {args.fraction[3 * i], args.fraction[3 * i + 1], args.fraction[3 * i + 2],
                                  args.charges[i]};
        __syncthreads();
        for (int j = 0; j < min(BLOCK_THREADS, end - base); j++) {
            const double turns = h * atoms[j].x + k * atoms[j].y + l * atoms[j].z;
            double sine, cosine;
            sincospi(-2 * (turns - rint(turns)), &sine, &cosine);
            real += atoms[j].q * cosine;
            imaginary += atoms[j].q * sine;
        }
    }
    if (wave < args.waves) {
        double *sum = args.sums + 2 * (part * args.waves + wave);
        sum[0] = real;
        sum[1] = imaginary;
    }
}

#else
#include "vectors.h"

enum { TOGETHER = 128 };  // atoms whose powers are in the cache

// A complex number of each of some atoms.
struct Numbers {
    double real[TOGETHER], imaginary[TOGETHER];

    void set(int n, double a, double b)
    {
        real[n] = a;
        imaginary[n] = b;
    }
};

// Write a b, or with a sign of -1 a times the conjugate of b.
static void multiply(const Numbers &a, const Numbers &b, double sign, Numbers &result)
{
    for (int n = 0; n < TOGETHER; n += DOUBLES) {
        const doubles x = load<doubles>(a.real + n), y = load<doubles>(a.imaginary + n);
        const doubles u = load<doubles>(b.real + n), v = sign * load<doubles>(b.imaginary + n);
        store(result.real + n, x * u - y * v);
        store(result.imaginary + n, x * v + y * u);
    }
}

// Write the powers of exp(-2 pi i f) from 0 to `last`, of the coordinates f of some atoms along an axis. The first is
// the fourth power of a series for an angle of at most pi / 4.
static void find_powers(const Waves &args, index_t begin, int axis, index_t last, Numbers *powers)
{
    Numbers part;
    for (int n = 0; n < TOGETHER; n++) {
        const double f = begin + n < args.atoms ? args.fraction[3 * (begin + n) + axis] : 0;
        part.real[n] = -0.5 * 3.14159265358979323846 * (f - floor(f + 0.5));
        powers[0].set(n, 1, 0);
    }
    for (int n = 0; n < TOGETHER; n += DOUBLES) {
        const doubles angle = load<doubles>(part.real + n), square = angle * angle;
        doubles cosine = {}, sine = {};
        for (int k = 18; k > 0; k -= 2) {
            cosine = (1.0 - cosine * square) / (double)(k * (k - 1));
            sine = (1.0 - sine * square) / (double)(k * (k + 1));
        }
        store(part.real + n, 1.0 - cosine * square);
        store(part.imaginary + n, angle - sine * square * angle);
    }
    multiply(part, part, 1, part);
    multiply(part, part, 1, powers[1]);
    for (index_t k = 1; k < last; k++)
        multiply(powers[k], powers[1], 1, powers[k + 1]);
}

DEVICE double total(doubles values)
{
    double sum = 0;
    for (int n = 0; n < DOUBLES; n++)
        sum += values[n];
    return sum;
}

// Elements are pairs of h and k. The waves of l and -l are of the same products, and those of l and l + 1 are summed
// together.
RANGE_KERNEL(sum_waves, Waves, first, last)
{
    const index_t ny = args.counts[1], nz = args.counts[2], height = 2 * ny + 1, depth = 2 * nz + 1;
    const index_t nx = (last - 1) / height;
    Numbers *const x = (Numbers *)malloc(sizeof(Numbers) * (nx + ny + nz + 7));
    Numbers *const y = x + nx + 2, *const z = y + ny + 2, &both = z[nz + 2];
    for (index_t begin = 0; begin < args.atoms; begin += TOGETHER) {
        find_powers(args, begin, 0, nx, x);
        find_powers(args, begin, 1, ny, y);
        find_powers(args, begin, 2, nz + 1, z);
        for (int n = 0; n < TOGETHER; n++) {
            const double q = begin + n < args.atoms ? args.charges[begin + n] : 0;
            for (index_t h = 0; h <= nx; h++)
                x[h].set(n, q * x[h].real[n], q * x[h].imaginary[n]);
        }
        for (index_t row = first; row < last; row++) {
            const index_t k = row % height - ny;
            multiply(x[row / height], y[k < 0 ? -k : k], k < 0 ? -1 : 1, both);
            double *middle = args.sums + 2 * (row * depth + nz);
            for (index_t l = 0; l <= nz; l += 2) {
                doubles sums[2][4] = {};
                for (int n = 0; n < TOGETHER; n += DOUBLES) {
                    const doubles a = load<doubles>(both.real + n), b = load<doubles>(both.imaginary + n);
                    for (int m = 0; m < 2; m++) {
                        const doubles c = load<doubles>(z[l + m].real + n), d = load<doubles>(z[l + m].imaginary + n);
                        sums[m][0] += a * c;
                        sums[m][1] += b * d;
                        sums[m][2] += a * d;
                        sums[m][3] += b * c;
                    }
                }
                for (int m = 0; m < 2 && l + m <= nz; m++) {
                    double *one = middle + 2 * (l + m), *opposite = middle - 2 * (l + m);
                    one[0] += total(sums[m][0] - sums[m][1]);
                    one[1] += total(sums[m][2] + sums[m][3]);
                    if (l + m) {
                        opposite[0] += total(sums[m][0] + sums[m][1]);
                        opposite[1] += total(sums[m][3] - sums[m][2]);
                    }
                }
            }
        }
    }
    free(x);
}
#endif
