// AutoGrid's hydrogen bonds, whose energies depend on angles at the receptor's atoms.
#include "kernel.h"

#define DONOR 0  // kinds of atoms, as in bonds.py
#define TWO_PAIRS 2

#define BEHIND -0.34202f  // cosine of 110 degrees, the angle beyond which an oxygen accepts no hydrogen bond
#define LEAST 1e-6f       // distance that divides vectors to atoms nearer than it, so that none divides by zero, A
#define NEVER 1e30f       // energy and squared distance where there is no atom

struct Bonds {
    const double *positions, *directions, *normals;  // (atoms, 3)
    const double *powers;                            // (atoms,)
    const index_t *kinds, *types;                    // (atoms,)
    const double *distances, *depths;                // (probes, type_count)
    const bool *extremes;                            // (probes,)
    double *out;                                     // (probes, shape)
    double origin[3], spacing[3], smooth, cap, cutoff;
    index_t shape[3], atoms, probes, type_count;
};

DEVICE float larger(float a, float b) { return a > b ? a : b; }
DEVICE float smaller(float a, float b) { return a < b ? a : b; }

// The angular factor of the well of a hydrogen or nitrogen, by the cosine of the angle with its direction.
DEVICE float left_of_single(float cosine, bool squared)
{
    const float c = larger(cosine, 0), c2 = c * c;
    return squared ? c2 : c2 * c2;
}

// That of an oxygen or sulfur with two lone pairs, by the cosine of the angle with the normal of their plane as well.
DEVICE float left_of_pairs(float cosine, float normal)
{
    const float lift = sqrtf(larger(1 - normal * normal, 1e-12f));  // the cosine of the angle with the plane
    const float along = cosine / lift;
    // the sine of twice the angle with the direction
    const float front = 0.9f + 0.2f * along * sqrtf(larger(1 - along * along, 0));
    const float left = 0.116978f - cosine * cosine;
    const float behind = cosine >= BEHIND ? 562.25f * left * left * left : 0;
    return lift * (cosine >= 0 ? front : behind);
}

// sin^2(2 t / 3), the factor of a hydrogen that faces a probe to which another hydrogen is nearer, by the cosine of t,
// the angle of the directions of both. arccos is the root of 1 - c times a polynomial (M. Abramowitz, I. A. Stegun,
// 1964, 4.4.46), sin its series.
DEVICE float left_of_facing(float cosine)
{
    const float c = smaller(larger(cosine, -1), 1), u = fabsf(c);
    float angle = 0.0066700901f - 0.0012624911f * u;
    angle = -0.0170881256f + u * angle;
    angle = 0.0308918810f + u * angle;
    angle = -0.0501743046f + u * angle;
    angle = 0.0889789874f + u * angle;
    angle = -0.2145988016f + u * angle;
    angle = sqrtf(1 - u) * (1.5707963050f + u * angle);
    angle = 2.0f / 3 * (c >= 0 ? angle : 3.14159265f - angle);
    const float t = angle * angle;
    float sine = 1.0f / 362880 + t * (-1.0f / 39916800 + t * (1.0f / 6227020800.0f));
    sine = angle * (1 + t * (-1.0f / 6 + t * (1.0f / 120 + t * (-1.0f / 5040 + t * sine))));
    return sine * sine;
}

// The energy of a probe: 5 (R/x)^12 - 6 (R/x)^10, times the angular factor unless it is repulsive.
DEVICE float bond_energy(float r, float part, float distance, float depth, float smooth, float cap)
{
    const float ratio = distance / (r + smaller(larger(distance - r, -smooth), smooth));
    const float two = ratio * ratio, four = two * two;
    const float value = smaller(depth * (four * four * two * (5 * two - 6)), cap);
    return value * (part + (1 - part) * smaller(larger(value * 0.01f, 0), 1));
}

#ifdef __CUDACC__

#define TOGETHER 4  // probes whose energies are computed together

KERNEL(sum_bonds, Bonds, at)
{
    const index_t row = args.shape[2], plane = args.shape[1] * row, nodes = args.shape[0] * plane;
    const double x = args.origin[0] + at / plane * args.spacing[0], z = args.origin[2] + at % row * args.spacing[2];
    const double y = args.origin[1] + at / row % args.shape[1] * args.spacing[1];
    const float reach = (float)args.cutoff, smoothing = (float)args.smooth, cap = (float)args.cap;
    const int atoms = (int)args.atoms, probes = (int)args.probes;
    const bool donors = atoms > 0 && args.kinds[0] == DONOR;
    float nearest = NEVER;
    int closest = 0;
    for (int a = 0; donors && a < atoms; a++) {
        const double *from = args.positions + 3 * a;
        const float dx = (float)(x - from[0]), dy = (float)(y - from[1]), dz = (float)(z - from[2]);
        const float r2 = dx * dx + dy * dy + dz * dz;
        closest = r2 < nearest ? a : closest;
        nearest = smaller(r2, nearest);
    }
    for (int first = 0; first < probes; first += TOGETHER) {
        float low[TOGETHER], high[TOGETHER];
        double total[TOGETHER] = {};
#pragma unroll
        for (int p = 0; p < TOGETHER; p++) {
            low[p] = NEVER;
            high[p] = -NEVER;
        }
        for (int a = 0; a < atoms; a++) {
            const double *from = args.positions + 3 * a, *along = args.directions + 3 * a, *axis = args.normals + 3 * a;
            const float dx = (float)(x - from[0]), dy = (float)(y - from[1]), dz = (float)(z - from[2]);
            const float r = sqrtf(dx * dx + dy * dy + dz * dz), inverse = 1 / larger(r, LEAST);
            if (r > reach)
                continue;
            const float cosine = (dx * (float)along[0] + dy * (float)along[1] + dz * (float)along[2]) * inverse;
            const float normal = (dx * (float)axis[0] + dy * (float)axis[1] + dz * (float)axis[2]) * inverse;
            const float part = args.kinds[a] == TWO_PAIRS ? left_of_pairs(cosine, normal)
                : left_of_single(cosine, args.powers[a] == 2);
            const double *other = args.directions + 3 * closest;
            const float ramp = donors && cosine > 0 && closest != a ? left_of_facing(
                (float)(along[0] * other[0] + along[1] * other[1] + along[2] * other[2])) : 1;
#pragma unroll
            for (int p = 0; p < TOGETHER; p++) {
                const index_t well = (first + p < probes ? first + p : 0) * args.type_count + args.types[a];
                const float energy = bond_energy(r, part, (float)args.distances[well], (float)args.depths[well],
                                                 smoothing, cap);
                low[p] = smaller(low[p], energy);
                high[p] = larger(high[p], energy);
                total[p] += ramp * energy;
            }
        }
#pragma unroll
        for (int p = 0; p < TOGETHER; p++)
            if (first + p < probes)
                args.out[(first + p) * nodes + at] = !args.extremes[first + p] ? total[p]
                    : low[p] <= high[p] ? (double)low[p] + high[p] : 0;
    }
}

#else
#include <string.h>

#define WIDTH 16  // nodes of a row that are computed together

// An atom, as it is seen from a row of nodes.
struct Seen {
    float dx, dy, direction[3], normal[3];
    const float *z;
};

// Distances, cosines with the direction of a hydrogen or nitrogen, and the angular factor of the well.
DEVICE void single_bond(const Seen &atom, bool squared, float *r, float *front, float *part)
{
    const float flat = atom.dx * atom.direction[0] + atom.dy * atom.direction[1];
    const float square = atom.dx * atom.dx + atom.dy * atom.dy, rise = atom.direction[2];
    for (int w = 0; w < WIDTH; w++) {
        r[w] = sqrtf(square + atom.z[w] * atom.z[w]);
        front[w] = (flat + atom.z[w] * rise) / larger(r[w], LEAST);
        part[w] = left_of_single(front[w], squared);
    }
}

// Distances, and the angular factor of the well of an oxygen or sulfur with two lone pairs in the plane of the normal.
DEVICE void lone_pairs(const Seen &atom, float *r, float *part)
{
    const float flat = atom.dx * atom.direction[0] + atom.dy * atom.direction[1];
    const float out = atom.dx * atom.normal[0] + atom.dy * atom.normal[1];
    const float square = atom.dx * atom.dx + atom.dy * atom.dy, rise = atom.direction[2], up = atom.normal[2];
    for (int w = 0; w < WIDTH; w++) {
        r[w] = sqrtf(square + atom.z[w] * atom.z[w]);
        const float inverse = 1 / larger(r[w], LEAST);
        part[w] = left_of_pairs((flat + atom.z[w] * rise) * inverse, (out + atom.z[w] * up) * inverse);
    }
}

// Write the energies of probes, from and to the beginning of a plane of constant x. For each atom, the angular factor of
// the well is computed for a few nodes of a row, and then the energy of each probe, in loops without branches.
RANGE_KERNEL(sum_bonds, Bonds, first_node, last_node)
{
    const index_t nz = args.shape[2], plane = args.shape[1] * nz, probes = args.probes;
    const index_t padded = (nz + WIDTH - 1) / WIDTH * WIDTH, all = probes * padded;
    double *const totals = (double *)malloc(16 * all + 20 * padded + 12 * args.atoms);
    float *const lows = (float *)(totals + all), *const highs = lows + all;        // (probes, padded), as totals
    float *const distances = highs + all, *const others = distances + padded;      // (padded,), (3, padded)
    int *const numbers = (int *)(others + 3 * padded), *const seen_atoms = numbers + padded;  // (padded,), (atoms, 3)
    const double h = args.spacing[2];
    const bool donors = args.atoms > 0 && args.kinds[0] == DONOR;
    const float reach = (float)args.cutoff, smoothing = (float)args.smooth, cap = (float)args.cap;
    double farthest = 0;
    for (index_t n = 0; n < probes * args.type_count; n++)
        farthest = fmax(farthest, args.distances[n]);
    const float repelled = (float)(farthest + args.smooth);
    float z[WIDTH], r[WIDTH], front[WIDTH] = {}, part[WIDTH], energy[WIDTH], ramp[WIDTH];
    for (int w = 0; w < WIDTH; w++)
        ramp[w] = 1;
    for (index_t i = first_node / plane; i < last_node / plane; i++) {
        const double x = args.origin[0] + i * args.spacing[0];
        for (index_t j = 0; j < args.shape[1]; j++) {
            const double y = args.origin[1] + j * args.spacing[1];
            for (index_t n = 0; n < all; n++) {
                totals[n] = 0;
                lows[n] = NEVER;
                highs[n] = -NEVER;
            }
            for (index_t k = 0; k < padded; k++) {
                distances[k] = NEVER;
                numbers[k] = -1;
            }
            index_t seen = 0;
            for (index_t a = 0; a < args.atoms; a++) {
                const double *at = args.positions + 3 * a;
                const double left = args.cutoff * args.cutoff - (x - at[0]) * (x - at[0]) - (y - at[1]) * (y - at[1]);
                if (left <= 0)
                    continue;
                const double half = sqrt(left), middle = at[2] - args.origin[2];
                const double first = fmax(0, ceil((middle - half) / h)), end = fmin(nz, floor((middle + half) / h) + 1);
                if (first < end) {
                    int *near = seen_atoms + 3 * seen++;
                    near[0] = (int)a;
                    near[1] = (int)first / WIDTH * WIDTH;
                    near[2] = (int)end;
                }
            }
            for (index_t n = 0; donors && n < seen; n++) {
                const int *near = seen_atoms + 3 * n, a = near[0];
                const double *at = args.positions + 3 * a, middle = at[2] - args.origin[2];
                const float dx = (float)(x - at[0]), dy = (float)(y - at[1]), square = dx * dx + dy * dy;
                for (int begin = near[1]; begin < near[2]; begin += WIDTH) {
                    float *nearest = distances + begin;
                    int *closest = numbers + begin;
#pragma omp simd
                    for (int w = 0; w < WIDTH; w++) {
                        const float dz = (float)((begin + w) * h - middle), r2 = square + dz * dz;
                        const bool closer = r2 < nearest[w];
                        nearest[w] = closer ? r2 : nearest[w];
                        closest[w] = closer ? a : closest[w];
                    }
                }
            }
            for (index_t k = 0; donors && seen && k < padded; k++)
                for (int d = 0; d < 3; d++)
                    others[d * padded + k] = (float)args.directions[3 * (numbers[k] < 0 ? 0 : numbers[k]) + d];
            for (index_t n = 0; n < seen; n++) {
                const int *near = seen_atoms + 3 * n, a = near[0];
                const double *at = args.positions + 3 * a, middle = at[2] - args.origin[2];
                Seen atom = {(float)(x - at[0]), (float)(y - at[1]), {}, {}, z};
                for (int d = 0; d < 3; d++) {
                    atom.direction[d] = (float)args.directions[3 * a + d];
                    atom.normal[d] = (float)args.normals[3 * a + d];
                }
                for (int begin = near[1]; begin < near[2]; begin += WIDTH) {
                    for (int w = 0; w < WIDTH; w++)
                        z[w] = (float)((begin + w) * h - middle);
                    if (args.kinds[a] == TWO_PAIRS)
                        lone_pairs(atom, r, part);
                    else
                        single_bond(atom, args.powers[a] == 2, r, front, part);
                    float left = 0;
#pragma omp simd reduction(+ : left)
                    for (int w = 0; w < WIDTH; w++)
                        left += part[w] + (r[w] < repelled ? 1.0f : 0.0f);
                    if (left == 0)  // all nodes are behind the atom and out of its repulsion
                        memset(energy, 0, sizeof(energy));
                    else if (donors)
                        for (int w = 0; w < WIDTH; w++) {
                            const float *other = others + begin + w, square = left_of_facing(
                                atom.direction[0] * other[0] + atom.direction[1] * other[padded]
                                + atom.direction[2] * other[2 * padded]);
                            ramp[w] = (front[w] > 0) & (numbers[begin + w] != a) ? square : 1;
                        }
                    for (index_t p = 0; p < probes; p++) {
                        const index_t type = p * args.type_count + args.types[a];
                        if (left > 0)
                            for (int w = 0; w < WIDTH; w++)
                                energy[w] = bond_energy(r[w], part[w], (float)args.distances[type],
                                                        (float)args.depths[type], smoothing, cap);
                        else if (!args.extremes[p])
                            continue;
                        if (args.extremes[p]) {
                            float *low = lows + p * padded + begin, *high = highs + p * padded + begin;
#pragma omp simd
                            for (int w = 0; w < WIDTH; w++) {
                                low[w] = smaller(low[w], r[w] <= reach ? energy[w] : NEVER);
                                high[w] = larger(high[w], r[w] <= reach ? energy[w] : -NEVER);
                            }
                        } else {
                            double *total = totals + p * padded + begin;
#pragma omp simd
                            for (int w = 0; w < WIDTH; w++)
                                total[w] += r[w] <= reach ? ramp[w] * energy[w] : 0;
                        }
                    }
                }
            }
            for (index_t p = 0; p < probes; p++) {
                const float *low = lows + p * padded, *high = highs + p * padded;
                double *out = args.out + ((p * args.shape[0] + i) * args.shape[1] + j) * nz;
                for (index_t k = 0; k < nz; k++)
                    out[k] = !args.extremes[p] ? totals[p * padded + k]
                        : low[k] <= high[k] ? (double)low[k] + high[k] : 0;
            }
        }
    }
    free(totals);
}
#endif
