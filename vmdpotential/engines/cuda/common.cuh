// What every kernel shares; when a kernel file is compiled, this is before it, and between the two
// the structs of the arguments, which build.struct makes of the host's types, and the text of the traced
// radial function. Macros that the host sets:
//   REAL      float or double, the type of the terms
//   MASKED    1 where pairs beyond the cutoff must be left out
//   FLUSH     terms that are summed in REAL before the sum is added in double
//   UNIFORMS  doubles or floats, the field of the task that the radial function reads
//   ADD       1 where the sums are added to what is in the map
//   FIELD     1 where the field is summed next to the potential

struct alignas(16) double4_t { double x, y, z, w; };

struct alignas(4 * sizeof(REAL)) Four { REAL x, y, z, w; };

struct Slope { REAL potential, slope; };  // V and dV/d(r^2): what radial returns with FIELD

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

// Add the terms of a pair to point k: q V alone, or with those of the field, q dV/d(r^2) times the distances.
template <class Sum, int POINTS>
__device__ __forceinline__ void add_pair(Sum (&sums)[1][POINTS], int k, Sum q, REAL potential, REAL, REAL, REAL,
                                         bool = true)
{
    sums[0][k] += q * (Sum)potential;
}

template <class Sum, int POINTS>
__device__ __forceinline__ void add_pair(Sum (&sums)[4][POINTS], int k, Sum q, Slope value, REAL dx, REAL dy, REAL dz,
                                         bool has_field = true)
{
    const Sum slope = has_field ? q * (Sum)value.slope : (Sum)0;
    sums[0][k] += q * (Sum)value.potential;
    sums[1][k] += slope * (Sum)dx;
    sums[2][k] += slope * (Sum)dy;
    sums[3][k] += slope * (Sum)dz;
}
