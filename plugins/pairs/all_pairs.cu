// Coulomb energies and forces between all pairs of charges, in float64.
#include "kernel.h"
#include "all_pairs.h"

struct Charges {
    const double *table_i, *table_j;  // (columns, size): x, y and z, A, and half of the charge
    index_t size_i, size_j;           // multiples of 128; places without an atom are far away, and their charge is 0
    bool alone;                       // the atoms j are the atoms i, and each pair of them counts once
    index_t split;                    // places of the first of two parts, between which alone pairs count; or 0
    double soft2;                     // the smallest squared distance, A^2
    index_t parts;
    double *sums;                     // (parts, sums, size_i) twice the force, and the energy; on a GPU all of it in the first part
};

template <class V> struct Coulomb {
    enum { COLUMNS = 4, SUMS = 4, TWO_SETS = true, TWO_PARTS = true };
    double soft2;

    MEMBER explicit Coulomb(const Charges &args) : soft2(args.soft2) {}
    MEMBER void operator()(const V *i, const V *j, V *of_i, V *of_j) const
    {
        V d[3];
        for (int n = 0; n < 3; n++)
            d[n] = i[n] - j[n];
        const V r2 = larger(d[0] * d[0] + (d[1] * d[1] + d[2] * d[2]), V{} + soft2);
        const V twice = twice_inverse_root(r2), energy = i[3] * j[3] * twice, slope = energy * (twice * twice);
        for (int n = 0; n < 3; n++) {
            of_i[n] = slope * d[n];
            of_j[n] = -of_i[n];
        }
        of_i[3] = of_j[3] = energy;
    }
};

PAIRS_KERNEL(sum_charges, Charges, Coulomb, double, doubles)
