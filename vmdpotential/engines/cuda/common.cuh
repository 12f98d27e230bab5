// Common part of all kernels. A kernel is compiled from this file, the structs of the arguments, which
// build.declarations writes, the traced radial function and the kernel file. Macros set by the host:
//   REAL      float or double, the type of the terms
//   MASKED    1 if pairs beyond the cutoff must be left out
//   FLUSH     number of terms that are summed in REAL before the sum is added in double
//   UNIFORMS  doubles or floats, the task's field with the constants of the radial function
//   ADD       1 if the sums are added to the values in the map
//   FIELD     1 if the field is summed in addition to the potential

struct alignas(16) double4_t { double x, y, z, w; };

struct alignas(4 * sizeof(REAL)) Four { REAL x, y, z, w; };

struct Slope { REAL potential, slope; };  // V and dV/d(r^2), the result of radial with FIELD

#define FAR ((REAL)1e4)  // coordinate of atoms that must not count; its square is finite

__device__ __forceinline__ float inverse_root(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ double inverse_root(double x) { return rsqrt(x); }

// max(a - b, 0) for a - b <= 1 in one instruction, which the compiler does not use for __saturatef.
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

// Whether a coordinate, relative to the middle between two lattice points, is nearer than `soft` to a lattice point.
__device__ __forceinline__ bool on_lattice(REAL x, REAL h, REAL inverse_h, REAL soft)
{
    const REAL u = x * inverse_h + (REAL)0.5;
    return fabs(u - rint(u)) * h < soft;
}

// Add the terms of a pair to point k: q V, and with FIELD also q dV/d(r^2) times the distances.
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
