// Vectors of the compilers' types (GCC and Clang), as wide as the instruction set that the file is compiled for. This is
// the only file that names instruction sets.
#pragma once

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define VECTOR_BYTES 64
#define INSTRUCTION_SET "avx512"
#elif defined(__AVX2__) && defined(__FMA__)
#define VECTOR_BYTES 32
#define INSTRUCTION_SET "avx2"
#else
#define VECTOR_BYTES 16
#if defined(__aarch64__)
#define INSTRUCTION_SET "neon"
#else
#define INSTRUCTION_SET "baseline"
#endif
#endif

#define FLOATS (VECTOR_BYTES / 4)   // numbers in a vector
#define DOUBLES (VECTOR_BYTES / 8)

typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t ints __attribute__((vector_size(VECTOR_BYTES)));
typedef double doubles __attribute__((vector_size(VECTOR_BYTES)));
typedef float half_floats __attribute__((vector_size(VECTOR_BYTES / 2)));  // as many as doubles

template <class Vector, class Scalar> static inline __attribute__((always_inline)) Vector load(const Scalar *from)
{
    Vector v;
    memcpy(&v, from, sizeof(v));
    return v;
}

template <class Vector, class Scalar> static inline __attribute__((always_inline)) void store(Scalar *to, Vector v)
{
    memcpy(to, &v, sizeof(v));
}

static inline __attribute__((always_inline)) floats all(float x) { return floats{} + x; }

static inline __attribute__((always_inline)) doubles widen(half_floats x) { return __builtin_convertvector(x, doubles); }
static inline __attribute__((always_inline)) half_floats narrow(doubles x)
{
    return __builtin_convertvector(x, half_floats);
}

// 1 / sqrt(x) with an error that one step of Newton's method reduces to the rounding of float32.
static inline __attribute__((always_inline)) floats root_estimate(floats x)
{
    floats y;
#if VECTOR_BYTES == 64
    __asm__("vrsqrt14ps %1, %0" : "=v"(y) : "v"(x));
#elif VECTOR_BYTES == 32
    __asm__("vrsqrtps %1, %0" : "=x"(y) : "x"(x));
#elif defined(__aarch64__)
    __asm__("frsqrte %0.4s, %1.4s" : "=w"(y) : "w"(x));
    y = y * (1.5f - 0.5f * x * y * y);
#else
    __asm__("rsqrtps %1, %0" : "=x"(y) : "x"(x));
#endif
    return y;
}

// 1 / sqrt(x), to the rounding of float32.
static inline __attribute__((always_inline)) floats inverse_root(floats x)
{
    const floats y = root_estimate(x);
    return y * (1.5f - 0.5f * x * y * y);
}

// The sum of all numbers, added in pairs.
static inline __attribute__((always_inline)) float sum(floats x)
{
    float y[FLOATS];
    store(y, x);
    for (int n = FLOATS / 2; n; n /= 2)
        for (int i = 0; i < n; i++)
            y[i] += y[i + n];
    return y[0];
}

// The smaller numbers of two vectors of any length, those of `b` where they cannot be compared.
template <class Vector> static inline __attribute__((always_inline)) Vector smaller(Vector a, Vector b)
{
#if VECTOR_BYTES == 64
    if constexpr (sizeof(a) == 64)
        return (Vector)_mm512_mask_min_ps((__m512)a, 0xffff, (__m512)a, (__m512)b);  // GCC warns of the plain one
#endif
#if VECTOR_BYTES >= 32
    if constexpr (sizeof(a) == 32)
        return (Vector)_mm256_min_ps((__m256)a, (__m256)b);
#endif
#if defined(__x86_64__) || defined(_M_X64)
    if constexpr (sizeof(a) == 16)
        return (Vector)_mm_min_ps((__m128)a, (__m128)b);
#endif
    return a < b ? a : b;
}

// Whether the numbers of `a` are below those of `b`, as bits, the first the lowest.
template <class Vector> static inline __attribute__((always_inline)) unsigned bits_below(Vector a, Vector b)
{
#if VECTOR_BYTES == 64
    if constexpr (sizeof(a) == 64)
        return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
#endif
#if VECTOR_BYTES >= 32
    if constexpr (sizeof(a) == 32)
        return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LT_OQ));
#endif
#if defined(__x86_64__) || defined(_M_X64)
    if constexpr (sizeof(a) == 16)
        return (unsigned)_mm_movemask_ps(_mm_cmplt_ps((__m128)a, (__m128)b));
#endif
    unsigned result = 0;
    for (unsigned i = 0; i < sizeof(a) / 4; i++)
        result |= (unsigned)(a[i] < b[i]) << i;
    return result;
}

// The number of set bits of a number below 2^16, without a call where there is no instruction.
static inline __attribute__((always_inline)) int count_bits(unsigned x)
{
#if VECTOR_BYTES >= 32
    return __builtin_popcount(x);
#else
    x -= x >> 1 & 0x5555;
    x = (x & 0x3333) + (x >> 2 & 0x3333);
    x = (x + (x >> 4)) & 0x0f0f;
    return (int)((x + (x >> 8)) & 0x1f);
#endif
}
