// Numbers in text, separated by blanks and line ends: counts words, and reads them as float32.
//
// The value of a word is that of its float64 (as Python reads it), rounded to float32. Where at most 53 bits of digits
// are scaled by an exact power of ten, one operation gives that float64 (Clinger 1990, https://doi.org/10.1145/93542.93557).
// Otherwise a product that is wrong in its last bits suffices if all float64 near it have the same float32. Few words
// are left, which become NaN, as does everything that is no finite number; the caller reads these.
#include "kernel.h"
#ifndef __CUDACC__

struct Words {
    const uint8_t *text;      // (length,) ends with a blank
    const index_t *before;    // (parts,) number of words before each part
    index_t *count;           // (parts,) number of words that begin in each part
    float *values;            // (words,)
    index_t length, part;     // bytes of the text, and of each part
};

#define LONGEST 1000        // characters of a word
#define DIGITS 19           // decimal digits that fit into 64 bits
#define EXACT_POWER 22      // the largest power of ten that is a float64
#define LARGEST_POWER 60    // beyond it no float32 but 0
#define LEAST_POWER -70     // below it nothing but 0, as the digits are less than 1e20
#define MARGIN 0x1p-50      // above the relative error of a scaled float64

static const double POWERS[] = {
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39,
    1e40, 1e41, 1e42, 1e43, 1e44, 1e45, 1e46, 1e47, 1e48, 1e49, 1e50, 1e51, 1e52, 1e53, 1e54, 1e55, 1e56, 1e57, 1e58,
    1e59, 1e60, 1e61, 1e62, 1e63, 1e64, 1e65, 1e66, 1e67, 1e68, 1e69, 1e70};

DEVICE bool blank(uint8_t c) { return (c == ' ') | ((uint8_t)(c - 9) < 5); }

DEVICE float rounded(uint64_t digits, index_t power)
{
    if (digits == 0 || power < LEAST_POWER)
        return 0.0f;
    if (power > LARGEST_POWER)
        return NAN;
    const double scaled = power < 0 ? (double)digits / POWERS[-power] : (double)digits * POWERS[power];
    const float low = (float)(scaled * (1 - MARGIN)), high = (float)(scaled * (1 + MARGIN));
    const bool exact = digits <= (uint64_t)1 << 53 && power <= EXACT_POWER && power >= -EXACT_POWER;
    const float value = (float)scaled;
    return (exact || low == high) && value <= 3.4028234663852886e38f ? value : NAN;
}

// The number at `at`, whose end it becomes; the words are followed by a blank.
DEVICE float number(const uint8_t *&at)
{
    const uint8_t *const first = at;
    const bool negative = *at == '-';
    at += (*at == '-') | (*at == '+');
    uint64_t digits = 0;
    int used = 0;
    index_t power = 0, figures = 0;
    for (uint8_t d; (d = (uint8_t)(*at - '0')) < 10; at++, figures++)
        if (used < DIGITS) {
            digits = 10 * digits + d;
            used += digits > 0;
        } else
            power++;
    if (*at == '.') {
        at++;
        for (uint8_t d; (d = (uint8_t)(*at - '0')) < 10; at++, figures++)
            if (used < DIGITS) {
                digits = 10 * digits + d;
                used += digits > 0;
                power--;
            }
    }
    bool good = figures > 0;
    if ((*at | 32) == 'e' || (*at | 32) == 'd') {  // 1.0D+00 of Fortran
        at++;
        const bool down = *at == '-';
        at += (*at == '-') | (*at == '+');
        const uint8_t *const exponent = at;
        index_t stated = 0;
        for (uint8_t d; (d = (uint8_t)(*at - '0')) < 10; at++)
            stated = stated < 100000 ? 10 * stated + d : stated;
        good &= at > exponent;
        power += down ? -stated : stated;
    }
    good &= blank(*at);
    while (!blank(*at))
        at++;
    good &= at - first <= LONGEST;
    const float size = good ? rounded(digits, power) : NAN;
    return negative ? -size : size;
}

KERNEL(count_words, Words, part)
{
    const index_t first = part * args.part, last = first + args.part < args.length ? first + args.part : args.length;
    index_t count = first == 0 && !blank(args.text[0]);
    for (index_t n = first > 0 ? first : 1; n < last; n++)
        count += !blank(args.text[n]) & blank(args.text[n - 1]);
    args.count[part] = count;
}

KERNEL(read_words, Words, part)
{
    const uint8_t *at = args.text + part * args.part;
    float *value = args.values + args.before[part], *const end = value + args.count[part];
    if (part > 0 && !blank(at[-1]))
        while (!blank(*at))
            at++;
    for (; value < end; value++) {
        while (blank(*at))
            at++;
        *value = number(at);
    }
}
#endif
