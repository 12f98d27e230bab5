// Unpacks the coordinates of an XTC frame, and checks every number that it reads.
//
// Coordinates are packed in groups. The first atom of a group is packed as three integers within the ranges of the
// frame, combined into one number of as few bits as possible. A flag follows. If it is set, five bits give the number
// of further atoms in the group, which are packed as differences from the atom before them, and the step by which the
// range of the differences changes; otherwise the group is as long as the one before. The first two atoms of a group
// are exchanged, which makes the differences shorter for water (oxygen first in the file, hydrogen first in the group).
//
// Layout and packing: xdrfile of GROMACS (xdrfile_decompress_coord_float).
#include "kernel.h"
#ifndef __CUDACC__

struct PackedFrame {
    const uint8_t *data;          // 16 bytes longer than `length`
    const index_t *low, *sizes;   // (3,) least integers, and ranges
    const index_t *bits;          // (3,) of each coordinate if packed separately, else of all three, 0 and 0
    float *singles;               // (atoms, 3), A; one of these two is null
    double *doubles;
    bool *valid;                  // (1,) whether the data are
    index_t length, atoms, row;   // the row of the first range of differences
    float inverse;                // factor from integers to nm
};

// Ranges of differences by the number of bits that three of them take together; those below FIRST are not used.
static const int64_t RANGES[] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 101, 128, 161, 203, 256, 322, 406, 512, 645,
    812, 1024, 1290, 1625, 2048, 2580, 3250, 4096, 5060, 6501, 8192, 10321, 13003, 16384, 20642, 26007, 32768, 41285,
    52015, 65536, 82570, 104031, 131072, 165140, 208063, 262144, 330280, 416127, 524287, 660561, 832255, 1048576,
    1321122, 1664510, 2097152, 2642245, 3329021, 4194304, 5284491, 6658042, 8388607, 10568983, 13316085, 16777216};
#define ROWS (index_t)(sizeof(RANGES) / sizeof(RANGES[0]))
#define FIRST 9         // the first row of RANGES in use
#define MAX_BITS 56     // of a number that is read at once
#define PART_BITS 24    // of the parts of longer numbers

// 64 bits, of which at least the first 57 are those of the data from `bit` on.
DEVICE uint64_t window(const uint8_t *data, index_t bit)
{
    uint64_t value = 0;
    for (int n = 0; n < 8; n++)
        value = value << 8 | data[(bit >> 3) + n];
    return value << (bit & 7);
}

// A number of up to MAX_BITS bits, stored with the lowest byte first; the last byte may be partial.
DEVICE int64_t number(const uint8_t *data, index_t bit, index_t bits)
{
    const uint64_t value = window(data, bit), whole = bits & ~7;
    const uint64_t rest = value << whole >> 56 >> (8 - (bits & 7));
    return (int64_t)((__builtin_bswap64(value) & (((uint64_t)1 << whole) - 1)) | rest << whole);
}

// Quotient of a division by `size`, less than 2^50, and remainder. The product with the inverse may be off by one,
// which is corrected.
DEVICE int64_t divided(int64_t value, int64_t size, double inverse, int64_t &remainder)
{
    int64_t quotient = (int64_t)(value * inverse);
    const int64_t rest = value - quotient * size;
    quotient += (rest >= size) - (rest < 0);
    remainder = value - quotient * size;
    return quotient;
}

// The three integers of a combined number, by the ranges of the last two and the inverses of these.
DEVICE void three(const uint8_t *data, index_t bit, index_t bits, int64_t second, int64_t third, double inverse_second,
                  double inverse_third, int64_t &x, int64_t &y, int64_t &z)
{
    if (bits <= MAX_BITS) {
        const int64_t value = divided(number(data, bit, bits), third, inverse_third, z);
        x = divided(value, second, inverse_second, y);
        return;
    }
    int64_t low = number(data, bit, PART_BITS), middle = number(data, bit + PART_BITS, PART_BITS);
    int64_t high = number(data, bit + 2 * PART_BITS, bits - 2 * PART_BITS), rest[2];
    const int64_t sizes[2] = {third, second};
    for (int n = 0; n < 2; n++) {
        int64_t carry = high % sizes[n];
        high /= sizes[n];
        int64_t now = carry << PART_BITS | middle;
        middle = now / sizes[n];
        now = (now % sizes[n]) << PART_BITS | low;
        low = now / sizes[n];
        rest[n] = now % sizes[n];
    }
    x = low | middle << PART_BITS | high << 2 * PART_BITS;
    y = rest[1];
    z = rest[0];
}

DEVICE void write_atom(const PackedFrame &args, index_t atom, int64_t x, int64_t y, int64_t z)
{
    const int64_t place[3] = {x, y, z};
    for (int d = 0; d < 3; d++) {
        const float nm = (float)place[d] * args.inverse;
        if (args.singles)
            args.singles[3 * atom + d] = nm * 10.0f;
        else
            args.doubles[3 * atom + d] = nm * 10.0;
    }
}

KERNEL(unpack_frame, PackedFrame, frame)
{
    const index_t *bits = args.bits, last = 8 * args.length, whole = bits[0] + bits[1] + bits[2];
    const uint8_t *data = args.data;
    const double second = 1.0 / args.sizes[1], third = 1.0 / args.sizes[2];
    index_t atom = 0, bit = 0, run = 0, row = args.row;
    int64_t x, y, z, dx, dy, dz;
    args.valid[frame] = false;
    while (atom < args.atoms) {
        if (bit + whole >= last || row < FIRST || row >= ROWS)
            return;
        if (bits[1]) {
            x = (int64_t)(window(data, bit) >> (64 - bits[0]));
            y = (int64_t)(window(data, bit + bits[0]) >> (64 - bits[1]));
            z = (int64_t)(window(data, bit + bits[0] + bits[1]) >> (64 - bits[2]));
        } else
            three(data, bit, whole, args.sizes[1], args.sizes[2], second, third, x, y, z);
        x += args.low[0];
        y += args.low[1];
        z += args.low[2];
        bit += whole;
        const int six = (int)(window(data, bit) >> 58);
        int step = 0;
        bit += 1;
        if (six & 32) {
            bit += 5;
            run = (six & 31) / 3;
            step = (six & 31) % 3 - 1;
        }
        if (atom + 1 + run > args.atoms || bit + run * row > last)
            return;
        write_atom(args, atom + (run > 0), x, y, z);
        const int64_t size = RANGES[row];
        const double part = 1.0 / size;
        for (index_t n = 0; n < run; n++) {
            three(data, bit, row, size, size, part, part, dx, dy, dz);
            x += dx - size / 2;
            y += dy - size / 2;
            z += dz - size / 2;
            write_atom(args, atom + n + (n > 0), x, y, z);
            bit += row;
        }
        atom += 1 + run;
        row += step;
    }
    args.valid[frame] = row >= FIRST && row < ROWS;
}
#endif
