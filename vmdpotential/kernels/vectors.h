// Vectors of the compilers' types (GCC and Clang), as wide as the instruction set that the file is compiled for. This is
// the only file that names instruction sets.
#pragma once

#include <stdint.h>
#include <string.h>

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
typedef uint32_t half_words __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef uint64_t words __attribute__((vector_size(VECTOR_BYTES)));

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

// The numbers at even places of a vector, and 0 between them.
static inline __attribute__((always_inline)) floats spread(half_floats x)
{
    return (floats)__builtin_convertvector((half_words)x, words);
}

// Whether places are even.
static inline __attribute__((always_inline)) ints even_places()
{
    ints x = {};
    for (int i = 0; i < FLOATS; i += 2)
        x[i] = -1;
    return x;
}

// 1 / sqrt(x), to the rounding of float32: the instruction's estimate and one step of Newton's method.
static inline __attribute__((always_inline)) floats inverse_root(floats x)
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
