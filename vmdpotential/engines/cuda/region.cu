// Signed distances of the nodes of a lattice to a molecular surface, as in continuum/region.cu. A warp, which is
// a block, has one sphere or one arc; a thread has one node where all nodes are computed. Results do not depend on the
// order in which threads run: they are maxima.

#define WARP 32       // threads of a block for a sphere or an arc, as in region.py
#define THREADS 256   // threads of a block for nodes, as in region.py
#define ROW 8         // lanes of a warp along a row of nodes
#define SORTED 512    // most neighbours that are sorted; more take longer, with the same result
#define PARTS 32      // most parts of a circle outside of other spheres; more are reported to the host
#define PIECE 0.5     // longest piece of an arc, in radians, that is processed with one box of nodes
#define EVERY 0xffffffffu

// Numbers in the order of floats.
__device__ __forceinline__ unsigned ordered(float x)
{
    const unsigned bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float unordered(unsigned bits)
{
    return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

// What is compared at a node: the depth, and for equal depths the first sphere.
__device__ __forceinline__ unsigned long long key(float depth, int sphere)
{
    return (unsigned long long)ordered(depth) << 32 | (EVERY - (unsigned)sphere);
}

// The range of nodes along an axis within a distance of a place, clamped to the lattice, also if it is not a number.
struct Range { int begin, end; };

__device__ __forceinline__ Range nodes_within(const RegionTask &t, int axis, double place, double far)
{
    const double middle = place - t.origin[axis], count = t.shape[axis];
    Range r;
    r.begin = (int)fmin(fmax(ceil((middle - far) / t.spacing[axis]), 0.0), count);
    r.end = (int)fmin(fmax(floor((middle + far) / t.spacing[axis]) + 1, 0.0), count);
    return r;
}

// Call use(i, j, range of k, first node of the row) for the rows of nodes within a distance of a point. Each ROW threads
// of a warp have one row.
template <class Use>
__device__ __forceinline__ void around(const RegionTask &t, double x, double y, double z, double far, Use use)
{
    const Range along_x = nodes_within(t, 0, x, far), along_y = nodes_within(t, 1, y, far);
    const int wide = along_y.end - along_y.begin;
    if (along_x.end <= along_x.begin || wide <= 0)
        return;
    const unsigned rows = (unsigned)(along_x.end - along_x.begin) * wide;
    for (unsigned n = threadIdx.x / ROW; n < rows; n += WARP / ROW) {
        const int i = along_x.begin + n / wide, j = along_y.begin + n % wide;
        const double dx = i * t.spacing[0] + t.origin[0] - x, dy = j * t.spacing[1] + t.origin[1] - y;
        const double left = far * far - dx * dx - dy * dy;
        if (left < 0)
            continue;
        const Range row = nodes_within(t, 2, z, sqrt(left));
        const size_t at = ((size_t)i * t.shape[1] + j) * t.shape[2];
        use(i, j, row, at);
    }
}

// Before any sphere, all nodes are `reach` outside of the first one.
extern "C" __global__ void __launch_bounds__(THREADS) begin(const RegionTask t)
{
    const size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (at < t.nodes)
        t.keys[at] = key((float)-t.reach, 0);
}

// Record a sphere where it is the deepest.
extern "C" __global__ void __launch_bounds__(WARP) stamp(const RegionTask t)
{
    const double *sphere = t.spheres + 4 * (size_t)blockIdx.x;
    const float radius = (float)sphere[3];
    around(t, sphere[0], sphere[1], sphere[2], sphere[3] + t.reach, [&](int i, int j, Range row, size_t at) {
        const double dx = i * t.spacing[0] + t.origin[0] - sphere[0], dy = j * t.spacing[1] + t.origin[1] - sphere[1];
        const float across = (float)(dx * dx + dy * dy);
        for (int k = row.begin + threadIdx.x % ROW; k < row.end; k += ROW) {
            const double dz = k * t.spacing[2] + t.origin[2] - sphere[2];
            const unsigned long long own = key(radius - sqrtf(across + (float)(dz * dz)), blockIdx.x);
            if (own > t.keys[at + k])  // only rises, so that an old value does no harm
                atomicMax(&t.keys[at + k], own);
        }
    });
}

// The fraction of each node's cell that is accessible to the centres of ions.
extern "C" __global__ void __launch_bounds__(THREADS) shares(const RegionTask t)
{
    const size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (at < t.nodes)
        t.values[at] = fminf(fmaxf(unordered(t.keys[at] >> 32) * (float)t.slope + (float)t.offset, 0.0f), 1.0f);
}

// Count the spheres that intersect each sphere, or write them, nearest first, where `others` is not null.
extern "C" __global__ void __launch_bounds__(WARP) neighbours(const RegionTask t)
{
    __shared__ float squares[SORTED];
    __shared__ int indices[SORTED];
    const int a = blockIdx.x, lane = threadIdx.x;
    const double *own = t.spheres + 4 * (size_t)a;
    int cube[3], low[3], high[3], count = 0;
    for (int d = 0; d < 3; d++) {
        cube[d] = (int)((own[d] - t.low[d]) / t.side);
        low[d] = max(0, cube[d] - 1);
        high[d] = min(t.cubes[d], cube[d] + 2);
    }
    int *others = t.others ? t.others + t.first[a] : nullptr;
    for (int i = low[0]; i < high[0]; i++)
        for (int j = low[1]; j < high[1]; j++) {
            const size_t row = ((size_t)i * t.cubes[1] + j) * t.cubes[2];
            const int end = (int)t.starts[row + high[2]];
            for (int b = (int)t.starts[row + low[2]] + lane; b - lane < end; b += WARP) {
                float square = 0;
                bool near = b < end && b != a;
                if (near) {
                    const double *other = t.spheres + 4 * (size_t)b;
                    const double x = other[0] - own[0], y = other[1] - own[1], z = other[2] - own[2];
                    const double exact = x * x + y * y + z * z, reach = own[3] + other[3];
                    near = exact < reach * reach;
                    square = (float)exact;
                }
                const unsigned bits = __ballot_sync(EVERY, near);
                const int place = count + __popc(bits & ((1u << lane) - 1));
                if (near && others) {
                    if (place < SORTED) {
                        squares[place] = square;
                        indices[place] = b;
                    } else {
                        others[place] = b;
                    }
                }
                count += __popc(bits);
            }
        }
    if (!others) {
        if (lane == 0)
            t.numbers[a] = count;
        return;
    }
    __syncwarp();
    for (int n = lane; n < min(count, SORTED); n += WARP) {
        int rank = 0;
        for (int m = 0; m < min(count, SORTED); m++)
            rank += squares[m] < squares[n] || (squares[m] == squares[n] && m < n);
        others[rank] = indices[n];
    }
}

// Replace depths in accessible spheres by signed distances to the surface, negative inside. The nearest point outside
// of the deepest sphere is the nearest accessible point if no other sphere contains it; otherwise `roll` finds a probe.
extern "C" __global__ void __launch_bounds__(THREADS) project(const RegionTask t)
{
    const size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= t.nodes)
        return;
    const unsigned long long deepest = t.keys[at];
    const float depth = unordered(deepest >> 32);
    t.values[at] = (float)t.probe - depth;
    if (t.probe == 0 || depth <= 0 || depth >= t.probe + t.reach)
        return;
    const int n = (int)(EVERY - (unsigned)deepest);
    const unsigned row = (unsigned)(at / t.shape[2]);
    const int i = row / t.shape[1], j = row % t.shape[1], k = (int)(at - (size_t)row * t.shape[2]);
    const double *own = t.spheres + 4 * (size_t)n;
    double x = i * t.spacing[0] + t.origin[0] - own[0], y = j * t.spacing[1] + t.origin[1] - own[1];
    double z = k * t.spacing[2] + t.origin[2] - own[2];
    const double scale = own[3] / fmax(1e-9, sqrt(x * x + y * y + z * z));
    x = own[0] + scale * x;
    y = own[1] + scale * y;
    z = own[2] + scale * z;
    const long long end = t.first[n + 1];
    for (long long m = t.first[n]; m < end; m++) {
        const double *other = t.spheres + 4 * (size_t)t.others[m];
        const double dx = x - other[0], dy = y - other[1], dz = z - other[2];
        if (dx * dx + dy * dy + dz * dz < other[3] * other[3] - 1e-9) {
            t.values[at] = (float)-t.reach;
            return;
        }
    }
}

// A number from 0 to 4 that increases with the angle of (x, y), without trigonometric functions.
__device__ __forceinline__ double turns(double x, double y)
{
    const double part = y / (fabs(x) + fabs(y));
    return x < 0 ? 2 - part : part >= 0 ? part : 4 + part;
}

// The angle that belongs to a number of `turns`.
__device__ __forceinline__ double radians(double turn)
{
    const double quarter = floor(turn), part = turn - quarter, half_pi = 1.5707963267948966;
    return turn >= 4 ? 4 * half_pi : half_pi * quarter + atan2(part, 1 - part);
}

// The circle where two spheres intersect: its centre relative to the first one, two unit vectors in its plane, its
// radius, which is 0 if they do not intersect.
struct Circle { double centre[3], u[3], v[3], radius; };

__device__ __forceinline__ Circle circle(const double *a, const double *b)
{
    Circle c;
    c.radius = 0;
    double along[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    const double square = along[0] * along[0] + along[1] * along[1] + along[2] * along[2], apart = sqrt(square);
    if (apart < 1e-6 || apart <= fabs(a[3] - b[3]))
        return c;
    const double t = (square + a[3] * a[3] - b[3] * b[3]) / (2 * apart), left = a[3] * a[3] - t * t;
    if (left <= 1e-12)
        return c;
    c.radius = sqrt(left);
    for (int d = 0; d < 3; d++) {
        along[d] /= apart;
        c.centre[d] = t * along[d];
    }
    // u is perpendicular to the axis, and next to the coordinate axis along which the axis is shortest
    const bool x = fabs(along[0]) <= fabs(along[1]) && fabs(along[0]) <= fabs(along[2]);
    const bool y = !x && fabs(along[1]) <= fabs(along[2]);
    const double least = x ? along[0] : y ? along[1] : along[2], length = sqrt(1 - least * least);
    c.u[0] = ((x ? 1 : 0) - least * along[0]) / length;
    c.u[1] = ((y ? 1 : 0) - least * along[1]) / length;
    c.u[2] = ((x || y ? 0 : 1) - least * along[2]) / length;
    c.v[0] = along[1] * c.u[2] - along[2] * c.u[1];
    c.v[1] = along[2] * c.u[0] - along[0] * c.u[2];
    c.v[2] = along[0] * c.u[1] - along[1] * c.u[0];
    return c;
}

// Remove the range from begin to end, which a sphere buries, from the free parts of a circle; return their number, which
// is larger than PARTS if they do not fit.
__device__ __forceinline__ int without(double (&low)[PARTS], double (&high)[PARTS], int count, double begin, double end)
{
    const bool around_0 = begin > end;  // the buried range includes the angle 0
    int kept = 0;
    double cut = 0, until = 0;  // the second part, if one part is split into two
    for (int n = 0; n < count; n++) {
        double from = low[n], to = high[n];
        if (!around_0 && from < begin && end < to) {
            cut = end;
            until = to;
            to = begin;
        } else if (!around_0 && from < begin) {
            to = fmin(to, begin);
        } else {
            from = fmax(from, end);
            if (around_0)
                to = fmin(to, begin);
        }
        if (to > from + 1e-9) {
            low[kept] = from;
            high[kept++] = to;
        }
    }
    if (until > cut + 1e-9) {
        if (kept < PARTS) {
            low[kept] = cut;
            high[kept] = until;
        }
        kept++;
    }
    return kept;
}

// Write the arcs, outside of all other spheres, of the circles where a sphere intersects spheres with larger numbers.
// They are only counted where there is no room. Circles are collected until each thread has one; the threads compare
// them with the same neighbours, nearest first, because few spheres bury most circles.
extern "C" __global__ void __launch_bounds__(WARP) arcs(const RegionTask t)
{
    __shared__ double near[WARP][4];
    __shared__ int waiting[2 * WARP];
    const int a = blockIdx.x, lane = threadIdx.x, count = (int)(t.first[a + 1] - t.first[a]);
    const int *others = t.others + t.first[a];
    const double *own = t.spheres + 4 * (size_t)a;
    double low[PARTS], high[PARTS];
    int held = 0;
    for (int base = 0; base < count || held > 0; base += WARP) {
        const bool wanted = base + lane < count && others[base + lane] > a;
        const unsigned bits = __ballot_sync(EVERY, wanted);
        if (wanted)
            waiting[held + __popc(bits & ((1u << lane) - 1))] = base + lane;
        held += __popc(bits);
        __syncwarp();
        if (held < WARP && base + WARP < count)
            continue;
        const int taken = min(held, WARP), m = lane < taken ? waiting[held - taken + lane] : -1;
        held -= taken;
        const int b = m < 0 ? a : others[m];
        const Circle c = circle(own, t.spheres + 4 * (size_t)b);  // none of a sphere with itself
        int left = c.radius > 0 ? 1 : 0;
        low[0] = 0;
        high[0] = 4;
        for (int first = 0; first < count && __any_sync(EVERY, left > 0); first += WARP) {
            if (first + lane < count) {
                const double *other = t.spheres + 4 * (size_t)others[first + lane];
                for (int d = 0; d < 3; d++)
                    near[lane][d] = other[d] - own[d];
                near[lane][3] = other[3] * other[3];
            }
            __syncwarp();
            for (int n = 0; n < min(WARP, count - first) && left > 0; n++) {
                if (first + n == m)  // the circle is on this sphere
                    continue;
                const double x = c.centre[0] - near[n][0], y = c.centre[1] - near[n][1], z = c.centre[2] - near[n][2];
                const double square = x * x + y * y + z * z;
                const double level = (near[n][3] - square - c.radius * c.radius) / (2 * c.radius);
                const double p = x * c.u[0] + y * c.u[1] + z * c.u[2], q = x * c.v[0] + y * c.v[1] + z * c.v[2];
                const double rest = p * p + q * q - level * level;
                if (rest <= 0) {  // the sphere's surface does not cut the circle
                    left = level > 1e-12 ? 0 : left;
                    continue;
                }
                const double root = sqrt(rest);
                left = without(low, high, left, turns(p * level - q * root, q * level + p * root),
                               turns(p * level + q * root, q * level - p * root));
                if (left > PARTS) {
                    atomicAdd(&t.counters[1], 1u);
                    left = 0;
                }
            }
            __syncwarp();
        }
        for (int n = 0; n < left; n++) {
            const unsigned place = atomicAdd(&t.counters[0], 1u);
            if (place < t.room) {
                RegionArc arc;
                arc.begin = radians(low[n]);
                arc.end = radians(high[n]);
                arc.spheres[0] = a;
                arc.spheres[1] = b;
                t.arcs[place] = arc;
            }
        }
    }
}

// Replace a number by a larger one: as integers, positive floats have the same order, and negative ones the opposite.
__device__ __forceinline__ void raise(float *value, float larger)
{
    if (larger >= 0)
        atomicMax((int *)value, __float_as_int(larger));
    else
        atomicMin((unsigned *)value, __float_as_uint(larger));
}

// Raise signed distances to the depths of nodes in probes with centres on an arc.
extern "C" __global__ void __launch_bounds__(WARP) roll(const RegionTask t)
{
    const RegionArc arc = t.arcs[blockIdx.x];
    const double *a = t.spheres + 4 * (size_t)arc.spheres[0];
    const Circle c = circle(a, t.spheres + 4 * (size_t)arc.spheres[1]);
    const double centre[3] = {a[0] + c.centre[0], a[1] + c.centre[1], a[2] + c.centre[2]};
    const int pieces = max(1, (int)ceil((arc.end - arc.begin) / PIECE)), third = threadIdx.x % 3;
    const double half = 0.5 * (arc.end - arc.begin) / pieces;
    const double far = t.probe + t.reach + 2 * c.radius * sin(0.5 * half);  // from the middle of a piece
    const float narrow = (float)cos(half), radius = (float)c.radius, probe = (float)t.probe;
    const float up_u = (float)c.u[2], up_v = (float)c.v[2];
    for (int piece = 0; piece < pieces; piece++) {
        // the first three threads compute the directions of both ends and of the middle
        const double angle = arc.begin + (2 * piece + third) * half;
        double sine, cosine, to[3][2], ends[2][3];
        sincos(angle, &sine, &cosine);
        for (int n = 0; n < 3; n++) {
            to[n][0] = __shfl_sync(EVERY, cosine, n);
            to[n][1] = __shfl_sync(EVERY, sine, n);
        }
        for (int e = 0; e < 2; e++)
            for (int d = 0; d < 3; d++)
                ends[e][d] = c.radius * (to[2 * e][0] * c.u[d] + to[2 * e][1] * c.v[d]);
        double middle[3];
        for (int d = 0; d < 3; d++)
            middle[d] = centre[d] + c.radius * (to[1][0] * c.u[d] + to[1][1] * c.v[d]);
        const float to_x = (float)to[1][0], to_y = (float)to[1][1], end_0 = (float)ends[0][2], end_1 = (float)ends[1][2];
        around(t, middle[0], middle[1], middle[2], far, [&](int i, int j, Range row, size_t at) {
            const double x = i * t.spacing[0] + t.origin[0] - centre[0], y = j * t.spacing[1] + t.origin[1] - centre[1];
            const float along_u = (float)(x * c.u[0] + y * c.u[1]), along_v = (float)(x * c.v[0] + y * c.v[1]);
            const float square = (float)(x * x + y * y);
            const double x_0 = x - ends[0][0], y_0 = y - ends[0][1], x_1 = x - ends[1][0], y_1 = y - ends[1][1];
            const float to_0 = (float)(x_0 * x_0 + y_0 * y_0), to_1 = (float)(x_1 * x_1 + y_1 * y_1);
            for (int k = row.begin + threadIdx.x % ROW; k < row.end; k += ROW) {
                const float z = (float)(k * t.spacing[2] + t.origin[2] - centre[2]);
                const float p = along_u + z * up_u, q = along_v + z * up_v, across = sqrtf(p * p + q * q);
                float nearest = square + z * z + radius * (radius - 2 * across);
                if (p * to_x + q * to_y < across * narrow)  // nearest to an end of the piece
                    nearest = fminf(to_0 + (z - end_0) * (z - end_0), to_1 + (z - end_1) * (z - end_1));
                const float value = probe - sqrtf(fmaxf(0.0f, nearest));
                if (value > t.values[at + k])
                    raise(&t.values[at + k], value);
            }
        });
    }
}
