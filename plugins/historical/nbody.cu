// Gravity, with jerks, and Lennard-Jones with Coulomb in three dielectrics, of all pairs.
#include "kernel.h"
#include "all_pairs.h"

template <class Real> struct Bodies {
    const Real *table_i, *table_j;  // (columns, size): x, y and z, A, and numbers that a struct below states
    index_t size_i, size_j;         // multiples of 128; places without a body are far away, and their numbers are 0
    bool alone;                     // always
    double soft2;                   // square of the softening length
    index_t parts;
    double *sums;                   // (parts, sums, size_i)
};

#ifdef __CUDACC__
#define INLINE DEVICE
template <class V> DEVICE V exponential(V x) { return exp(x); }
template <class V> DEVICE V number(double x) { return (V)x; }
#else
template <class V> INLINE V exponential(V x) { return traced::exp(x); }
template <class V> INLINE V number(double x) { return traced::fill<V>((traced::number_of<V>)x); }
#endif

// An eighth of the masses, and velocities before them for jerks: accelerations, jerks and potentials, without the constant G.
template <class V, bool JERK, bool ENERGY> struct Gravity {
    enum { COLUMNS = JERK ? 7 : 4, SUMS = (JERK ? 6 : 3) + ENERGY, TWO_SETS = false, TWO_PARTS = false };
    V soft2;

    template <class Arguments> MEMBER explicit Gravity(const Arguments &args) : soft2(number<V>(args.soft2)) {}
    MEMBER void operator()(const V *i, const V *j, V *of_i, V *of_j) const
    {
        V d[3];
        for (int n = 0; n < 3; n++)
            d[n] = j[n] - i[n];
        const V twice = twice_inverse_root(d[0] * d[0] + (d[1] * d[1] + (d[2] * d[2] + soft2)));
        const V cube = twice * twice * twice, mine = cube * j[COLUMNS - 1], its = cube * -i[COLUMNS - 1];
        for (int n = 0; n < 3; n++) {
            of_i[n] = mine * d[n];
            of_j[n] = its * d[n];
        }
        if constexpr (JERK) {
            V u[3];
            for (int n = 0; n < 3; n++)
                u[n] = j[3 + n] - i[3 + n];
            const V along = number<V>(-0.75) * (twice * twice) * (d[0] * u[0] + (d[1] * u[1] + d[2] * u[2]));
            for (int n = 0; n < 3; n++) {
                const V change = u[n] + along * d[n];
                of_i[3 + n] = mine * change;
                of_j[3 + n] = its * change;
            }
        }
        if constexpr (ENERGY) {
            of_i[SUMS - 1] = number<V>(-4) * twice * j[COLUMNS - 1];
            of_j[SUMS - 1] = number<V>(-4) * twice * i[COLUMNS - 1];
        }
    }
};

// Charges, sqrt(kcal/mol A), halves of the distances of minima, A, and sqrt(12 depth): forces, and the pairs' energies.
template <class V, int DIELECTRIC, bool ENERGY> struct Ions {
    enum { COLUMNS = 6, SUMS = 3 + 2 * ENERGY, TWO_SETS = false, TWO_PARTS = false };

    template <class Arguments> MEMBER explicit Ions(const Arguments &) {}
    MEMBER void operator()(const V *i, const V *j, V *of_i, V *of_j) const
    {
        V d[3];
        for (int n = 0; n < 3; n++)
            d[n] = i[n] - j[n];
        const V r2 = d[0] * d[0] + (d[1] * d[1] + d[2] * d[2]), rinv = twice_inverse_root(r2) * number<V>(0.5);
        const V square = rinv * rinv;
        V coulomb = i[3] * j[3], slope;
        if constexpr (DIELECTRIC == 0) {
            coulomb *= rinv;
            slope = coulomb * square;
        } else if constexpr (DIELECTRIC == 1) {  // 4 r
            coulomb *= square * number<V>(0.25);
            slope = coulomb * square * number<V>(2);
        } else {  // A + B / (1 + k exp(-lambda B r)) of Mehler and Solmajer, see interactions/sigmoidal_dielectric.py
            const double low = -8.5525, bulk = 78.4, rate = 0.003627 * (bulk - low);
            const V f = number<V>(7.7839) * exponential(number<V>(-rate) * (r2 * rinv));
            const V part = rinv / (number<V>(low) * f + number<V>(bulk)), one = f + number<V>(1);
            slope = coulomb * part * (number<V>(rate * (bulk - low)) * f * part + one * square);
            coulomb *= one * part;
        }
        const V rmin = i[4] + j[4], s = rmin * rmin * square, s3 = s * s * s, depth = i[5] * j[5];
        slope += depth * square * (s3 * s3 - s3);
        for (int n = 0; n < 3; n++) {
            of_i[n] = slope * d[n];
            of_j[n] = -of_i[n];
        }
        if constexpr (ENERGY) {
            of_i[3] = of_j[3] = coulomb;
            of_i[4] = of_j[4] = depth * (s3 * s3 * number<V>(1.0 / 12) - s3 * number<V>(1.0 / 6));
        }
    }
};

template <class V> using Accelerations = Gravity<V, false, false>;
template <class V> using Potentials = Gravity<V, false, true>;
template <class V> using Jerks = Gravity<V, true, false>;
template <class V> using JerksAndPotentials = Gravity<V, true, true>;
template <class V> using Constant = Ions<V, 0, false>;
template <class V> using Linear = Ions<V, 1, false>;
template <class V> using Sigmoidal = Ions<V, 2, false>;
template <class V> using ConstantEnergies = Ions<V, 0, true>;
template <class V> using LinearEnergies = Ions<V, 1, true>;
template <class V> using SigmoidalEnergies = Ions<V, 2, true>;

PAIRS_KERNEL(gravity_single, Bodies<float>, Accelerations, float, floats)
PAIRS_KERNEL(gravity_energy_single, Bodies<float>, Potentials, float, floats)
PAIRS_KERNEL(gravity_jerk_single, Bodies<float>, Jerks, float, floats)
PAIRS_KERNEL(gravity_jerk_energy_single, Bodies<float>, JerksAndPotentials, float, floats)
PAIRS_KERNEL(constant_single, Bodies<float>, Constant, float, floats)
PAIRS_KERNEL(constant_energy_single, Bodies<float>, ConstantEnergies, float, floats)
PAIRS_KERNEL(linear_single, Bodies<float>, Linear, float, floats)
PAIRS_KERNEL(linear_energy_single, Bodies<float>, LinearEnergies, float, floats)
PAIRS_KERNEL(sigmoidal_single, Bodies<float>, Sigmoidal, float, floats)
PAIRS_KERNEL(sigmoidal_energy_single, Bodies<float>, SigmoidalEnergies, float, floats)
PAIRS_KERNEL(gravity_energy_double, Bodies<double>, Potentials, double, doubles)
PAIRS_KERNEL(gravity_jerk_energy_double, Bodies<double>, JerksAndPotentials, double, doubles)
PAIRS_KERNEL(constant_energy_double, Bodies<double>, ConstantEnergies, double, doubles)
PAIRS_KERNEL(linear_energy_double, Bodies<double>, LinearEnergies, double, doubles)
PAIRS_KERNEL(sigmoidal_energy_double, Bodies<double>, SigmoidalEnergies, double, doubles)
