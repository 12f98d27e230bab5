// What every kernel shares; when a kernel file is compiled, this stands before it, and between the two
// the text of the traced radial function. Macros that the host sets:
//   REAL      float or double, the type of the terms
//   MASKED    1 where pairs beyond the cutoff must be left out
//   FLUSH     terms that are summed in REAL before the sum is added in double
//   UNIFORMS  doubles or floats, the field of the task that the radial function reads

// All lengths are in units of a power of two times the largest spacing, where lattice points have
// exact coordinates, and relative to the lattice's first point; positions alone are in A.
// The host's twin is maps.TASK.
struct alignas(16) double4_t { double x, y, z, w; };

struct Task {
    const double *positions;   // (count, 3) A
    const double *charges;     // (count)
    double4_t *atoms;          // (kept) x, y, z, q sorted by cell
    int *cell;                 // (count) an atom's cell, -1 outside
    int *rank;                 // (count) its place among the atoms of the cell, in order of arrival
    int *index;                // (count) atoms by cell
    int *starts;               // (cells x, y, z + 1) first atom of a cell in its row
    int *rows;                 // (cells x * y + 1) first atom of a row of cells along z
    float *out;                // the planes [first plane, ...) of the map
    double *partial;           // sums at points
    double origin[3];          // A, of the lattice
    double inverse_unit;       // 1/A
    double spacing[3];
    double low[3];             // corner of the cells
    double cell_size[3];
    double inverse_cell[3];    // 1/cell_size: where an atom belongs, and which cells are in range
    double cutoff;             // 0: none
    double soft;               // nearer than this, an atom counts as if at this distance
    double factor;             // of all sums
    double doubles[32];        // what the radial function reads, and the same in single precision
    float floats[32];
    int cells[3];
    int shape[3];              // of the whole lattice
    int first_plane;           // along x, a multiple of 8
    int count;                 // of atoms
};

struct alignas(4 * sizeof(REAL)) Four { REAL x, y, z, w; };

#define FAR ((REAL)1e4)  // where atoms that must not count are put; its square is finite

__device__ __forceinline__ float inverse_root(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ double inverse_root(double x) { return rsqrt(x); }

// max(a - b, 0) for a - b <= 1: one instruction, which the compiler does not make of __saturatef.
__device__ __forceinline__ float saturated_difference(float a, float b)
{
    float y;
    asm("sub.sat.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

__device__ __forceinline__ Four make_four(REAL x, REAL y, REAL z, REAL w)
{
    Four f;
    f.x = x; f.y = y; f.z = z; f.w = w;
    return f;
}

// Whether a coordinate relative to a point between two lattice points is nearer than `soft` to one.
__device__ __forceinline__ bool on_lattice(REAL x, REAL h, REAL inverse_h, REAL soft)
{
    const REAL u = x * inverse_h + (REAL)0.5;
    return fabs(u - rint(u)) * h < soft;
}
