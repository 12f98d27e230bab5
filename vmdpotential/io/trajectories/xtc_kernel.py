"""Kernel that unpacks the coordinates of a frame of an XTC file, and trusts no number in it.

The first atom of a group is packed as three integers within the ranges of the frame, which make one number of all its
bits. A flag follows, and where it is set five bits: how many atoms are packed next to the first one, as differences to
the atom before them, and by which step their range changes. A group without the flag has as many as the one before. The
first atom is packed after the second one, of which water has shorter differences.

Layout and packing: xdrfile of GROMACS (xdrfile_decompress_coord_float). This file is run once, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

#: Ranges of differences, by the bits that three of them take; the first are none.
RANGES = np.array([
    0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 101, 128, 161, 203, 256, 322, 406, 512, 645,
    812, 1024, 1290, 1625, 2048, 2580, 3250, 4096, 5060, 6501, 8192, 10321, 13003, 16384, 20642, 26007, 32768, 41285,
    52015, 65536, 82570, 104031, 131072, 165140, 208063, 262144, 330280, 416127, 524287, 660561, 832255, 1048576,
    1321122, 1664510, 2097152, 2642245, 3329021, 4194304, 5284491, 6658042, 8388607, 10568983, 13316085, 16777216])
#: The first range, and the bits of a number that are read at once, and more than that in parts.
FIRST, ONCE, PART = 9, 56, 24


@njit(nogil=True, error_model="numpy", inline="always")
def window(data, bit):
    """Return 64 bits of which the first 57 at least are those from `bit` on."""
    at = np.uint64(bit) >> np.uint64(3)
    value = np.uint64(0)
    for n in range(8):
        value = value << np.uint64(8) | np.uint64(data[at + np.uint64(n)])
    return value << (np.uint64(bit) & np.uint64(7))


@njit(nogil=True, error_model="numpy", inline="always")
def number(data, bit, bits):
    """Return a number of up to :data:`ONCE` bits whose bytes begin with the last one, and whose last one is short."""
    value = window(data, bit)
    whole = np.uint64(bits) & ~np.uint64(7)
    rest = value << whole >> np.uint64(56) >> (np.uint64(8) - (np.uint64(bits) & np.uint64(7)))
    swapped = np.uint64(0)
    for n in range(8):
        swapped |= (value >> np.uint64(8 * n) & np.uint64(255)) << np.uint64(56 - 8 * n)
    return np.int64(swapped & ((np.uint64(1) << whole) - np.uint64(1)) | rest << whole)


@njit(nogil=True, error_model="numpy", inline="always")
def divided(value, size, inverse):
    """Return quotient and remainder of a number by a size, of which the quotient has less than 50 bits."""
    quotient = np.int64(value * inverse)
    rest = value - quotient * size
    quotient += np.int64(rest >= size) - np.int64(rest < 0)
    return quotient, value - quotient * size


@njit(nogil=True, error_model="numpy")
def three_of_many(data, bit, bits, second, third):
    """Return three integers of a number that is not read at once; the sizes of the last two are given."""
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
    """Return the three integers of a number; the sizes of the last two, and their inverses, are given."""
    if bits > ONCE:
        return three_of_many(data, bit, bits, second, third)
    value, z = divided(number(data, bit, bits), third, inverse_third)
    x, y = divided(value, second, inverse_second)
    return x, y, z


@njit(nogil=True, error_model="numpy")
def unpack(data, length, low, sizes, bits, row, inverse, ten, out):
    """Fill out (N, 3), A, with the atoms packed in `length` bytes; return whether they are these and no others.

    Parameters: `data` has 16 bytes more. `low` and `sizes` (3,) are the least integers and their ranges; `bits` (3,)
    those of each where they are packed apart, else those of all three and twice 0. `row` is the first range of
    differences, `inverse` by what integers make nm, and `ten` that number of the type of `out`.
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
