// What the processor supports. This is in every library; the one of the baseline is asked first.
#include "kernel.h"
#ifndef __CUDACC__
#include "vectors.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>

static int best_instruction_set()
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA) || !(c & bit_AVX))
        return 0;
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & (1u << 5)) || !(b & (1u << 8)))
        return 0;  // the system keeps no vectors of 256 bits, or AVX2 or BMI2 are missing
    const unsigned wide = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;  // AVX-512 F, DQ, CD, BW, VL
    return (low & 0xe6) == 0xe6 && (b & wide) == wide ? 2 : 1;
}
#else
static int best_instruction_set() { return 0; }
#endif

// The place of the best instruction set that the processor supports, in the order of build.INSTRUCTION_SETS.
EXPORTED int supported_instruction_set() { return best_instruction_set(); }
// The instruction set that this library is compiled for.
EXPORTED const char *instruction_set() { return INSTRUCTION_SET; }
EXPORTED int vector_floats() { return FLOATS; }
#endif
