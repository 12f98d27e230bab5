// The operations of traced functions (vmdpotential/interactions/tracing.py) on a float, a double, or a vector of them.
#pragma once

#include <math.h>

#include "vectors.h"
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define MEMBER inline __attribute__((always_inline))

namespace traced {

typedef int64_t longs __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t half_ints __attribute__((vector_size(VECTOR_BYTES / 2)));

template <class V> struct type_of;  // the type of one number, whole numbers of the same size, and how many there are
template <> struct type_of<float> { typedef float number; typedef int32_t whole; enum { lanes = 1 }; };
template <> struct type_of<double> { typedef double number; typedef int64_t whole; enum { lanes = 1 }; };
template <> struct type_of<floats> { typedef float number; typedef ints whole; enum { lanes = FLOATS }; };
template <> struct type_of<half_floats> { typedef float number; typedef half_ints whole; enum { lanes = FLOATS / 2 }; };
template <> struct type_of<doubles> { typedef double number; typedef longs whole; enum { lanes = DOUBLES }; };
template <class V> using number_of = typename type_of<V>::number;
template <class V> using whole_of = typename type_of<V>::whole;

template <class To, class From> INLINE To bits_as(From x)
{
    static_assert(sizeof(To) == sizeof(From), "bits_as");
    To y;
    memcpy(&y, &x, sizeof(y));
    return y;
}

// A number in all places; unlike a sum with 0, the difference costs no instruction.
template <class V> INLINE V fill(number_of<V> x) { return x - V{}; }
template <class V> INLINE V constant(double x) { return fill<V>((number_of<V>)x); }

template <class V> INLINE V fma(V a, V b, V c) { return a * b + c; }  // rounded once where the processor can
template <class V> INLINE auto less(V a, V b) { return a < b; }
template <class C, class V> INLINE V select(C condition, V a, V b) { return condition ? a : b; }
template <class V> INLINE V min(V a, V b) { return a < b ? a : b; }
template <class V> INLINE V max(V a, V b) { return b < a ? a : b; }
#if VECTOR_BYTES == 64  // one instruction, for which compilers take the conditions above only if there are no NaN
INLINE floats min(floats a, floats b) { return (floats)_mm512_min_ps((__m512)a, (__m512)b); }
INLINE floats max(floats a, floats b) { return (floats)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE doubles min(doubles a, doubles b) { return (doubles)_mm512_min_pd((__m512d)a, (__m512d)b); }
INLINE doubles max(doubles a, doubles b) { return (doubles)_mm512_max_pd((__m512d)a, (__m512d)b); }
#elif VECTOR_BYTES == 32
INLINE floats min(floats a, floats b) { return (floats)_mm256_min_ps((__m256)a, (__m256)b); }
INLINE floats max(floats a, floats b) { return (floats)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE doubles min(doubles a, doubles b) { return (doubles)_mm256_min_pd((__m256d)a, (__m256d)b); }
INLINE doubles max(doubles a, doubles b) { return (doubles)_mm256_max_pd((__m256d)a, (__m256d)b); }
#endif
template <class V> INLINE V magnitude(V a) { return max(a, -a); }

template <class V> INLINE V div(V a, V b) { return a / b; }
INLINE floats div(floats a, floats b)
{
#if VECTOR_BYTES == 64  // the instruction's estimate and one step of Newton's method, with an error of 1e-7
    floats y;
    __asm__("vrcp14ps %1, %0" : "=v"(y) : "v"(b));
    return a * (y + y * (1.0f - b * y));
#else
    return a / b;
#endif
}

INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
INLINE double sqrt(double x) { return __builtin_sqrt(x); }
#if VECTOR_BYTES == 64 || VECTOR_BYTES == 32
INLINE floats sqrt(floats x) { __asm__("vsqrtps %1, %0" : "=v"(x) : "v"(x)); return x; }
INLINE doubles sqrt(doubles x) { __asm__("vsqrtpd %1, %0" : "=v"(x) : "v"(x)); return x; }
#elif defined(__aarch64__)
INLINE floats sqrt(floats x) { __asm__("fsqrt %0.4s, %1.4s" : "=w"(x) : "w"(x)); return x; }
INLINE doubles sqrt(doubles x) { __asm__("fsqrt %0.2d, %1.2d" : "=w"(x) : "w"(x)); return x; }
#else
INLINE floats sqrt(floats x) { __asm__("sqrtps %1, %0" : "=x"(x) : "x"(x)); return x; }
INLINE doubles sqrt(doubles x) { __asm__("sqrtpd %1, %0" : "=x"(x) : "x"(x)); return x; }
#endif

// The nearest whole number of a small number.
template <class V> INLINE V nearest(V x)
{
    const number_of<V> magic = sizeof(number_of<V>) == 4 ? 12582912.0 : 6755399441055744.0;
    return x + magic - magic;
}

// Differences of float64 numbers from one, rounded to V.
template <class V> inline __attribute__((always_inline)) V differences(const double *from, double x);
template <> inline __attribute__((always_inline)) doubles differences<doubles>(const double *from, double x)
{
    return load<doubles>(from) - x;
}
template <> inline __attribute__((always_inline)) floats differences<floats>(const double *from, double x)
{
    const half_floats a = narrow(load<doubles>(from) - x), b = narrow(load<doubles>(from + DOUBLES) - x);
#if VECTOR_BYTES == 64
    return (floats)_mm512_insertf32x8(_mm512_castps256_ps512((__m256)a), (__m256)b, 1);
#elif VECTOR_BYTES == 32
    return (floats)_mm256_set_m128((__m128)b, (__m128)a);
#else
    floats y;
    memcpy(&y, &a, sizeof(a));
    memcpy((char *)&y + sizeof(a), &b, sizeof(b));
    return y;
#endif
}

// 1 / sqrt(x), to 12 or 14 bits where there is an instruction for it.
INLINE floats rough_inverse_root(floats x) { return root_estimate(x); }
INLINE doubles rough_inverse_root(doubles x)
{
#if VECTOR_BYTES == 64
    doubles y;
    __asm__("vrsqrt14pd %1, %0" : "=v"(y) : "v"(x));
    return y;
#else
    return 1.0 / sqrt(x);
#endif
}

// 2 / sqrt(x) from that by steps of Newton's method, the last y (3 - x y^2): one in float32, one or two in float64.
INLINE floats twice_refined(floats x, floats y, int) { return y * (3.0f - x * y * y); }
INLINE doubles twice_refined(doubles x, doubles y, int steps)
{
#if VECTOR_BYTES == 64
    if (steps > 1)
        y = 0.5 * y * (3.0 - x * y * y);
    return y * (3.0 - x * y * y);
#else
    return y + y;
#endif
}

// 1 / sqrt(x) to the rounding of float64, for x in the range of float32, without a division where that is faster.
INLINE doubles inverse_root(doubles x)
{
#if VECTOR_BYTES == 64
    return 0.5 * twice_refined(x, rough_inverse_root(x), 2);
#elif VECTOR_BYTES == 32
    doubles y = widen((half_floats)_mm_rsqrt_ps((__m128)narrow(x)));
    const doubles rest = 1.0 - x * y * y;
    y += y * (rest * (0.375 * rest + 0.5));
    return y + y * (0.5 - 0.5 * x * y * y);
#else
    return 1.0 / sqrt(x);
#endif
}

// The same with an error of 2^-27, a step less.
INLINE doubles near_inverse_root(doubles x)
{
#if VECTOR_BYTES == 64
    return 0.5 * twice_refined(x, rough_inverse_root(x), 1);
#elif VECTOR_BYTES == 32
    const doubles y = widen((half_floats)_mm_rsqrt_ps((__m128)narrow(x))), rest = 1.0 - x * y * y;
    return y + y * (rest * (0.375 * rest + 0.5));
#else
    return 1.0 / sqrt(x);
#endif
}

// a b + c where x < y, and c elsewhere.
template <class V> INLINE V fma_below(V x, V y, V a, V b, V c) { return c + a * select(x < y, b, V{}); }
#if VECTOR_BYTES == 64  // with the condition in a register of masks
INLINE floats fma_below(floats x, floats y, floats a, floats b, floats c)
{
    return (floats)_mm512_mask3_fmadd_ps((__m512)a, (__m512)b, (__m512)c,
                                         _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_LT_OQ));
}
INLINE doubles fma_below(doubles x, doubles y, doubles a, doubles b, doubles c)
{
    return (doubles)_mm512_mask3_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c,
                                          _mm512_cmp_pd_mask((__m512d)x, (__m512d)y, _CMP_LT_OQ));
}
#endif

// Write the numbers for which a condition holds, or their places from `first` on, one after the other; return how many.
// What follows them, up to a whole vector, is overwritten.
#if VECTOR_BYTES == 64
INLINE int append(float *to, floats x, ints condition)
{
    const __mmask16 mask = _mm512_movepi32_mask((__m512i)condition);
    store(to, (floats)_mm512_maskz_compress_ps(mask, (__m512)x));
    return __builtin_popcount(mask);
}
INLINE int append(double *to, doubles x, longs condition)
{
    const __mmask8 mask = _mm512_movepi64_mask((__m512i)condition);
    store(to, (doubles)_mm512_maskz_compress_pd(mask, (__m512d)x));
    return __builtin_popcount(mask);
}
INLINE int append_places(int32_t *to, int first, ints condition)
{
    const __mmask16 mask = _mm512_movepi32_mask((__m512i)condition);
    const __m512i places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    store(to, (ints)_mm512_maskz_compress_epi32(mask, _mm512_add_epi32(places, _mm512_set1_epi32(first))));
    return __builtin_popcount(mask);
}
#else
template <class V> INLINE int append(number_of<V> *to, V x, whole_of<V> condition)
{
    int count = 0;
    for (int i = 0; i < type_of<V>::lanes; i++) {
        to[count] = x[i];
        count += condition[i] != 0;
    }
    return count;
}
#endif
template <class Whole> INLINE int append_places(int32_t *to, int first, Whole condition)
{
    int count = 0;
    for (int i = 0; i < (int)(sizeof(condition) / sizeof(condition[0])); i++) {
        to[count] = first + i;
        count += condition[i] != 0;
    }
    return count;
}

// The polynomial of some coefficients, lowest first, by Horner's rule.
template <class V, int N> INLINE V polynomial(V x, const number_of<V> (&coefficients)[N])
{
    V y = fill<V>(coefficients[N - 1]);
    for (int n = N - 2; n >= 0; n--)
        y = y * x + coefficients[n];
    return y;
}

// exp(x) = 2^k 2^f with |f| <= 1/2, for x in tracing.EXP_DOMAIN. Adding `magic` rounds to whole numbers, which are then
// the last bits of the sum.
template <class V> INLINE V exp_float(V x)
{
    const float magic = 12582912.0f, per_two = 1.44269502f, rest = 1.92596303e-8f;  // 1 / log(2) in two parts
    // interpolates at Chebyshev's points of [-1/2, 1/2], with an error of 2e-8
    const float power[] = {1.0f, 0.693147207f, 0.240226509f, 0.0555032723f, 0.00961805668f, 0.00134004282f,
                           0.000154614447f};
    const V sum = x * per_two + magic, k = sum - magic;
    const V f = x * rest + (x * per_two - k);
    return polynomial(f, power) * bits_as<V>((bits_as<whole_of<V>>(sum) << 23) + (127 << 23));
}

// The same by the terms of the series of e^r with |r| <= log(2) / 2, with an error of 4e-15.
template <class V> INLINE V exp_double(V x)
{
    const double magic = 6755399441055744.0, high = 0.6931471803691238, low = 1.9082149292705877e-10;
    const double terms[] = {1.0, 1.0, 1 / 2., 1 / 6., 1 / 24., 1 / 120., 1 / 720., 1 / 5040., 1 / 40320., 1 / 362880.,
                            1 / 3628800., 1 / 39916800., 1 / 479001600.};
    const V sum = x * 1.4426950408889634 + magic, k = sum - magic;
    const V r = (x - k * high) - k * low;
    return polynomial(r, terms) * bits_as<V>((bits_as<whole_of<V>>(sum) << 52) + (1023LL << 52));
}

INLINE float exp(float x) { return exp_float(x); }
INLINE floats exp(floats x) { return exp_float(x); }
INLINE half_floats exp(half_floats x) { return exp_float(x); }
INLINE double exp(double x) { return exp_double(x); }
INLINE doubles exp(doubles x) { return exp_double(x); }

// exp(-x^2) t times a polynomial in t = 1 / (1 + x / 2), which interpolates at Chebyshev's points; the error is 5e-7.
template <class V> INLINE V erfc_float(V x)
{
    const float scaled[] = {0.282094792f, 0.282094716f, 0.246836834f, 0.176238997f, 0.0842857195f, -0.00559184338f,
                            -0.065777199f, 0.024761947f, -0.280041779f, 0.5878506f, -0.510431694f, 0.213732554f,
                            -0.0360536444f};
    const V a = min(magnitude(x), fill<V>(9.3f));  // beyond, it is 1e-39, and the square leaves the domain of exp
    const V t = div(fill<V>(1.0f), a * 0.5f + 1.0f);
    const V right = exp(-(a * a)) * (t * polynomial(t, scaled));
    return x < 0.0f ? 2.0f - right : right;
}

INLINE float erfc(float x) { return erfc_float(x); }
INLINE floats erfc(floats x) { return erfc_float(x); }
INLINE double erfc(double x) { return ::erfc(x); }
INLINE doubles erfc(doubles x)
{
    for (int i = 0; i < DOUBLES; i++)
        x[i] = ::erfc(x[i]);
    return x;
}

// The linear interpolation between table[k] and table[k + 1] at x = k + fraction.
template <class V> INLINE V interpolate(V x, const number_of<V> *table)
{
    const int lanes = type_of<V>::lanes;
    number_of<V> places[lanes], low[lanes], high[lanes];
    store(places, x);
    for (int i = 0; i < lanes; i++) {
        const int k = (int)places[i];
        low[i] = table[k];
        high[i] = table[k + 1];
        places[i] -= k;
    }
    const V a = load<V>(low), b = load<V>(high);
    return a + load<V>(places) * (b - a);
}

}  // namespace traced
