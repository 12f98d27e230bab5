// What the search for pairs of clusters and the sums over them share: images of atoms, and the list of a GPU.
#pragma once

// The code of no shift.
static const int HERE_ITSELF = (512 * 1024 + 512) * 1024 + 512;

// The multiples i, j and k of lattice vectors of an image, from -512 to 511, as one number.
DEVICE int image_code(int i, int j, int k) { return ((i + 512) * 1024 + j + 512) * 1024 + k + 512; }

// The multiple of one of the lattice vectors.
DEVICE int multiple_of(int code, int vector) { return (code >> (20 - 10 * vector) & 1023) - 512; }

// The code of the opposite image.
DEVICE int opposite(int code) { return 2 * HERE_ITSELF - code; }

// Of two chunks, the one for which a GPU lists their pairs.
DEVICE bool is_first_of(int i, int j) { return (((i + j) & 1) != 0) == (i < j); }

// Whether a pair of places in chunks i and j is listed for i, if the second is at an image; `ascends` if the first place
// is before the second.
DEVICE bool owns_pair(int i, int j, int code, bool ascends)
{
    return i == j ? code > HERE_ITSELF || (code == HERE_ITSELF && ascends) : is_first_of(i, j);
}

#ifdef __CUDACC__

#define ALL ~0u  // lanes of a warp

// A group of four atoms j: its shift, its number, bits of clusters in range, plus 256 on the diagonal, and its masks or -1.
template <class Real> struct Entry;
template <> struct alignas(16) Entry<float> { float x, y, z; int group, bits, mask; };
template <> struct alignas(16) Entry<double> { double x, y, z; int group, bits, mask; };

// Entries of the list for a warp: the chunk of atoms i and their number.
struct alignas(8) Item { int chunk, count; };

struct Box { float low[3], high[3]; };

struct Excluded { int first, second, code; };

#endif
