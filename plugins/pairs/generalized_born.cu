// Generalized Born sums over all pairs of atoms in float64: what each atom takes away of the solvent around others, and
// the energies of pairs of charges. Exponentials have the precision of float32, and inverse distances one of 2^-27, so
// that energies of some thousand atoms are right to 1e-5 kcal/mol.
#include "kernel.h"
#include "all_pairs.h"

struct Descreened {
    const double *table_i, *table_j;  // (columns, size): x, y, z, offset and scaled radius, A; for necks also radius and kind
    index_t size_i, size_j;           // multiples of 128; places without an atom are far away, and their radii are 0
    bool alone;                       // true: atoms j are the atoms i
    index_t split;                    // places of the first of two parts, between which pairs count; or 0 for all pairs
    double soft2;                     // the smallest squared distance, A^2
    double apart2;                    // squared distance from which no atoms overlap, and a scaled radius is at most a third of it
    const double *necks;              // (2, kinds, kinds) distance and height of the necks between two kinds, A and 1/A
    index_t kinds;
    double width, neck2;              // necks end this far beyond both radii, A; none is longer, A^2
    index_t parts;
    double *sums;                     // (parts, 1, size_i) integrals over the other atoms, 1/A
};

struct BornCharges {
    const double *table_i, *table_j;  // (columns, size): x, y, z, charge, Born radius, A, and half of its inverse; for changes
                                      // of energies also the same two of the radii before
    index_t size_i, size_j;
    bool alone;
    index_t split;
    double soft2;
    double inside, outside, kappa;    // inverse permittivities; 1/A
    index_t parts;
    double *sums;                     // (parts, 1, size_i) energies of the pairs of each atom
};

#define FAR 16.0      // exp(-FAR) is below the precision of float32, as it is in energies
#define LEAST (-80.0)  // in the domain of exponentials

#ifdef __CUDACC__
DEVICE double inverse_root_of(double x) { return rsqrt(x); }
DEVICE double exponential(double x) { return exp((float)x); }
DEVICE double logarithm(double x) { return log(x); }
DEVICE double where(bool condition, double a, double b) { return condition ? a : b; }
DEVICE bool any_below(double a, double b) { return a < b; }
DEVICE double entry(const double *table, double place) { return table[(int)place]; }
#else
INLINE doubles inverse_root_of(doubles x) { return traced::near_inverse_root(x); }
INLINE doubles exponential(doubles x) { return widen(traced::exp(narrow(x))); }
template <class C> INLINE doubles where(C condition, doubles a, doubles b) { return traced::select(condition, a, b); }
INLINE bool any_below(doubles a, double b) { return bits_below(narrow(a), traced::fill<half_floats>((float)b)); }

INLINE doubles entry(const double *table, doubles place)
{
    doubles result;
    for (int n = 0; n < DOUBLES; n++)
        result[n] = table[(int)place[n]];
    return result;
}

// x = 2^k m with m from sqrt(1/2) to sqrt(2), and the series of log(m) in (m - 1) / (m + 1); the error is 1e-15.
INLINE doubles logarithm(doubles x)
{
    const double terms[] = {2., 2 / 3., 2 / 5., 2 / 7., 2 / 9., 2 / 11., 2 / 13., 2 / 15., 2 / 17., 2 / 19., 2 / 21.};
    typedef traced::whole_of<doubles> whole;
    const whole bits = traced::bits_as<whole>(x), power = (bits - 0x3fe6a09e667f3bcdLL) >> 52;
    const doubles m = traced::bits_as<doubles>(bits - (power << 52));
    const doubles k = traced::bits_as<doubles>(power + 0x4338000000000000LL) - 6755399441055744.0;
    const doubles s = (m - 1.0) / (m + 1.0);
    return s * traced::polynomial(s * s, terms) + k * 0.69314718055994531;
}
#endif

template <class V, bool NECKS> struct Descreening {
    enum { COLUMNS = NECKS ? 7 : 5, SUMS = 1, TWO_SETS = false, TWO_PARTS = true };
    double soft2, apart2, neck2, width;
    const double *distances, *heights;
    index_t kinds;

    MEMBER explicit Descreening(const Descreened &args)
        : soft2(args.soft2), apart2(args.apart2), neck2(args.neck2), width(args.width), distances(args.necks),
          heights(args.necks + args.kinds * args.kinds), kinds(args.kinds) {}

    // The integral over the ball of one atom, outside of the other: G. D. Hawkins et al.
    static MEMBER V ball(V radius, V scaled, V r, V inverse)
    {
        const V upper = r + scaled, nearest = r - scaled, lower = larger(radius, larger(nearest, -nearest));
        const V both = 1.0 / (lower * upper), a = upper * both, b = lower * both;
        const V sum = a - b + 0.25 * (r - scaled * scaled * inverse) * (b * b - a * a)
                      + 0.5 * logarithm(lower * b) * inverse;
        return where(radius < upper, 0.5 * sum, V{});
    }

    // The same for balls that are apart: 1/2r times the sum of 2k / (2k + 1) x^(2k + 1) with x of at most 1/3, of which the
    // polynomial interpolates at Chebyshev's points; the relative error is 2e-9.
    static MEMBER V distant_ball(V scaled, V inverse)
    {
        const V x = scaled * inverse, x2 = x * x;
        V sum = V{} + 1.31250313596044;
        sum = sum * x2 + 0.856970633291098;
        sum = sum * x2 + 0.891988974364518;
        sum = sum * x2 + 0.857060765580399;
        sum = sum * x2 + 0.8000007881615;
        sum = sum * x2 + 0.666666665448473;
        return 0.5 * inverse * x * x2 * sum;
    }

    MEMBER V neck(V i, V j, V r) const
    {
        const V place = i * (double)kinds + j, away = r - entry(distances, place), away2 = away * away;
        return entry(heights, place) / (1.0 + away2 + 0.3 * (away2 * away2 * away2));
    }

    MEMBER void operator()(const V *i, const V *j, V *of_i, V *of_j) const
    {
        const V x = i[0] - j[0], y = i[1] - j[1], z = i[2] - j[2];
        const V r2 = larger(x * x + (y * y + z * z), V{} + soft2);
        V inverse = inverse_root_of(r2), r = r2 * inverse;
        if (any_below(r2, apart2)) {
            inverse = inverse * (1.5 - 0.5 * r * inverse);  // their differences cancel
            r = r2 * inverse;
            of_i[0] = ball(i[3], j[4], r, inverse);
            of_j[0] = ball(j[3], i[4], r, inverse);
        } else {
            of_i[0] = distant_ball(j[4], inverse);
            of_j[0] = distant_ball(i[4], inverse);
        }
        if constexpr (NECKS)
            if (any_below(r2, neck2)) {
                const auto within = r < i[5] + j[5] + width;
                of_i[0] += where(within, neck(i[6], j[6], r), V{});
                of_j[0] += where(within, neck(j[6], i[6], r), V{});
            }
    }
};
template <class V> using Balls = Descreening<V, false>;
template <class V> using BallsAndNecks = Descreening<V, true>;

// The energies of pairs; or of changes, from other radii.
template <class V, bool SALT, bool CHANGE> struct BornPair {
    enum { COLUMNS = CHANGE ? 8 : 6, SUMS = 1, TWO_SETS = false, TWO_PARTS = true };
    double soft2, inside, outside, kappa;

    MEMBER explicit BornPair(const BornCharges &args)
        : soft2(args.soft2), inside(args.inside), outside(args.outside), kappa(args.kappa) {}

    // The energy of unit charges at a squared distance that the Born radii have made longer.
    MEMBER V energy(V f2) const
    {
        const V inverse = inverse_root_of(f2);
        V factor = V{} + (outside - inside);
        if constexpr (SALT)
            factor = outside * exponential(larger(-kappa * (f2 * inverse), V{} + LEAST)) - inside;
        return factor * inverse;
    }

    MEMBER void operator()(const V *i, const V *j, V *of_i, V *of_j) const
    {
        const V x = i[0] - j[0], y = i[1] - j[1], z = i[2] - j[2], least = V{} + LEAST;
        const V r2 = larger(x * x + (y * y + z * z), V{} + soft2), power = r2 * (i[5] * j[5]);
        V sum = V{};
        if (any_below(power, FAR)) {
            sum = energy(r2 + i[4] * j[4] * exponential(larger(-power, least)));
            if constexpr (CHANGE)
                sum = sum - energy(r2 + i[6] * j[6] * exponential(larger(-r2 * (i[7] * j[7]), least)));
        } else if constexpr (!CHANGE) {
            sum = energy(r2);
        }
        of_i[0] = of_j[0] = sum * (i[3] * j[3]);
    }
};
template <class V> using WithoutSalt = BornPair<V, false, false>;
template <class V> using WithSalt = BornPair<V, true, false>;
template <class V> using ChangeWithoutSalt = BornPair<V, false, true>;
template <class V> using ChangeWithSalt = BornPair<V, true, true>;

PAIRS_KERNEL(sum_balls, Descreened, Balls, double, doubles)
PAIRS_KERNEL(sum_necks, Descreened, BallsAndNecks, double, doubles)
PAIRS_KERNEL(sum_born, BornCharges, WithoutSalt, double, doubles)
PAIRS_KERNEL(sum_born_in_salt, BornCharges, WithSalt, double, doubles)
PAIRS_KERNEL(sum_changes, BornCharges, ChangeWithoutSalt, double, doubles)
PAIRS_KERNEL(sum_changes_in_salt, BornCharges, ChangeWithSalt, double, doubles)
