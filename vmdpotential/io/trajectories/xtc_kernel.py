"""Kernel that unpacks the coordinates of an XTC frame, and checks every number that it reads.

Coordinates are packed in groups. The first atom of a group is packed as three integers within the ranges of the frame,
combined into one number of as few bits as possible. A flag follows. If it is set, five bits give the number of further
atoms in the group, which are packed as differences from the atom before them, and the step by which the range of the
differences changes; otherwise the group is as long as the one before. The first two atoms of a group are exchanged,
which makes the differences shorter for water (oxygen first in the file, hydrogen first in the group).

Layout and packing: xdrfile of GROMACS (xdrfile_decompress_coord_float). This file is run once, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

#: Ranges of differences by the number of bits that three of them take together; those below `FIRST` are not used.
RANGES = np.array([
    0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 101, 128, 161, 203, 256, 322, 406, 512, 645,
    812, 1024, 1290, 1625, 2048, 2580, 3250, 4096, 5060, 6501, 8192, 10321, 13003, 16384, 20642, 26007, 32768, 41285,
    52015, 65536, 82570, 104031, 131072, 165140, 208063, 262144, 330280, 416127, 524287, 660561, 832255, 1048576,
    1321122, 1664510, 2097152, 2642245, 3329021, 4194304, 5284491, 6658042, 8388607, 10568983, 13316085, 16777216])
#: First row of `RANGES` in use; most bits of a number that is read at once; bits of the parts of longer numbers.
FIRST, ONCE, PART = 9, 56, 24


@njit(nogil=True, error_model="numpy", inline="always")
def window(data, bit):
    """Return 64 bits, of which at least the first 57 are those of the data from `bit` on."""
    at = np.uint64(bit) >> np.uint64(3)
    value = np.uint64(0)
    for n in range(8):
        value = value << np.uint64(8) | np.uint64(data[at + np.uint64(n)])
    return value << (np.uint64(bit) & np.uint64(7))


@njit(nogil=True, error_model="numpy", inline="always")
def number(data, bit, bits):
    """Return a number of up to :data:`ONCE` bits, stored with the lowest byte first; the last byte may be partial."""
    value = window(data, bit)
    whole = np.uint64(bits) & ~np.uint64(7)
    rest = value << whole >> np.uint64(56) >> (np.uint64(8) - (np.uint64(bits) & np.uint64(7)))
    swapped = np.uint64(0)
    for n in range(8):
        swapped |= (value >> np.uint64(8 * n) & np.uint64(255)) << np.uint64(56 - 8 * n)
    return np.int64(swapped & ((np.uint64(1) << whole) - np.uint64(1)) | rest << whole)


@njit(nogil=True, error_model="numpy", inline="always")
def divided(value, size, inverse):
    """Return quotient and remainder of a division by `size`; the quotient has less than 50 bits.

    The product with the inverse of the size may be off by one, which is corrected.
    """
    quotient = np.int64(value * inverse)
    rest = value - quotient * size
    quotient += np.int64(rest >= size) - np.int64(rest < 0)
    return quotient, value - quotient * size


@njit(nogil=True, error_model="numpy")
def three_of_many(data, bit, bits, second, third):
    """Return three integers from a number of more than :data:`ONCE` bits; `second` and `third` are their ranges."""
    low, middle = number(data, bit, PART), number(data, bit + PART, PART)
    high = number(data, bit + 2 * PART, bits - 2 * PART)
    results = np.zeros(2, np.int64)
    for n, size in enumerate((third, second)):
        high, rest = high // size, high % size
        middle, rest = (rest << PART | middle) // size, (rest << PART | middle) % size
        low, results[n] = (rest << PART | low) // size, (rest << PART | low) % size
    return low | middle << PART | high << 2 * PART, results[1], results[0]


@njit(nogil=True, error_model="numpy", inline="always")
def three(data, bit, bits, second, third, inverse_second, inverse_third):
    """Return the three integers of a combined number, by the ranges of the last two and the inverses of these."""
    if bits > ONCE:
        return three_of_many(data, bit, bits, second, third)
    value, z = divided(number(data, bit, bits), third, inverse_third)
    x, y = divided(value, second, inverse_second)
    return x, y, z


@njit(nogil=True, error_model="numpy")
def unpack(data, length, low, sizes, bits, row, inverse, ten, out):
    """Fill `out` (N, 3), A, with the atoms packed in `length` bytes; return whether the data are valid.

    `data` is 16 bytes longer. `low` and `sizes` (3,) are the least integers and the ranges; `bits` (3,) are the bits of
    each coordinate if they are packed separately, else the bits of all three, 0 and 0. `row` is the row of the first
    range of differences, `inverse` the factor from integers to nm, and `ten` the number 10 in the type of `out`.
    """
    last, whole, atoms = 8 * length, bits[0] + bits[1] + bits[2], len(out)
    atom = bit = run = 0
    second, third = 1.0 / sizes[1], 1.0 / sizes[2]
    while atom < atoms:
        if bit + whole >= last or row < FIRST or row >= len(RANGES):
            return False
        if bits[1]:
            x = np.int64(window(data, bit) >> np.uint64(64 - bits[0]))
            y = np.int64(window(data, bit + bits[0]) >> np.uint64(64 - bits[1]))
            z = np.int64(window(data, bit + bits[0] + bits[1]) >> np.uint64(64 - bits[2]))
        else:
            x, y, z = three(data, bit, whole, sizes[1], sizes[2], second, third)
        x, y, z = x + low[0], y + low[1], z + low[2]
        bit += whole
        six = np.int64(window(data, bit) >> np.uint64(58))
        bit, step = bit + 1, 0
        if six & 32:
            bit += 5
            run, step = (six & 31) // 3, (six & 31) % 3 - 1
        if atom + 1 + run > atoms or bit + run * row > last:
            return False
        first = atom + (run > 0)
        out[first, 0] = np.float32(x) * inverse * ten
        out[first, 1] = np.float32(y) * inverse * ten
        out[first, 2] = np.float32(z) * inverse * ten
        size, part = RANGES[row], 1.0 / RANGES[row]
        for n in range(run):
            dx, dy, dz = three(data, bit, row, size, size, part, part)
            x, y, z = x + dx - size // 2, y + dy - size // 2, z + dz - size // 2
            place = atom + n + (n > 0)
            out[place, 0] = np.float32(x) * inverse * ten
            out[place, 1] = np.float32(y) * inverse * ten
            out[place, 2] = np.float32(z) * inverse * ten
            bit += row
        atom += 1 + run
        row += step
    return FIRST <= row < len(RANGES)
