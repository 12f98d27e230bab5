// The flow along a molecule's surface; formulas as in continuum/tangential.cu. The nodes next to the
// surface are listed in an order that may change, so that flows into a node are added as whole numbers: their sum does
// not depend on the order.

#define THREADS 128  // number of threads of a block, as in tangential.py
#define TERMS 9      // coefficients of a polynomial, and those that are kept: all but the constant
#define KEPT 8
#define UNIT 4294967296.0  // units of the sums in 1 kT/e

// A step from a node to one of its neighbours, and the size of the normal's component along it.
struct Step { int x, y, z; double size; };

struct Node { int i, j, k; long long at; };

__device__ __forceinline__ Node node(const SurfaceTask &t, long long at)
{
    Node a;
    const unsigned row = (unsigned)at / t.shape[2];  // no memory holds more than 2^32 nodes
    a.k = (unsigned)at - row * t.shape[2];
    a.i = row / t.shape[1];
    a.j = row - a.i * t.shape[1];
    a.at = at;
    return a;
}

__device__ __forceinline__ bool is_within(const SurfaceTask &t, const Node &a, int margin)
{
    return a.i >= margin && a.j >= margin && a.k >= margin && a.i < t.shape[0] - margin && a.j < t.shape[1] - margin
        && a.k < t.shape[2] - margin;
}

__device__ __forceinline__ long long offset(const SurfaceTask &t, int x, int y, int z)
{
    return ((long long)x * t.shape[1] + y) * t.shape[2] + z;
}

// Give each node next to the surface a row; those in the last layer of the margin may be the ends of edges.
extern "C" __global__ void __launch_bounds__(THREADS) find(const SurfaceTask t)
{
    __shared__ unsigned count, first;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    const size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    const Node a = node(t, at);
    bool next = false;
    unsigned row = 0;
    if (at < t.size && is_within(t, a, t.margin - 1)) {
        int inner = 0;
        for (int x = -1; x < 2; x++)
            for (int y = -1; y < 2; y++)
                for (int z = -1; z < 2; z++)
                    inner += t.distances[at + offset(t, x, y, z)] < 0;
        next = 0 < inner && inner < 27;
        if (next)
            row = atomicAdd(&count, 1u) + 1;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        first = count ? atomicAdd(t.counter, count) : 0;
    __syncthreads();
    if (at < t.size)
        t.rows[at] = next ? first + row : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS) list(const SurfaceTask t)
{
    const size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (at < t.size && t.rows[at]) {
        t.nodes[t.rows[at] - 1] = at;
        t.sums[t.rows[at] - 1] = 0;
    }
}

// Fit a polynomial to the values at the outer nodes around an outer node, without those behind a wall.
extern "C" __global__ void __launch_bounds__(THREADS) fit(const SurfaceTask t)
{
    const size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (n >= t.count)
        return;
    const Node a = node(t, t.nodes[n]);
    const float distance = t.distances[a.at];
    const bool wanted = is_within(t, a, t.margin) && distance >= 0 && distance < t.reach;
    t.fitted[n] = wanted;
    if (!wanted)
        return;
    unsigned outer = 0, used = 1u << 13;  // bits 9 x + 3 y + z of the neighbours, the node itself is in the middle
    for (int m = 0; m < 27; m++)
        outer |= (unsigned)(t.distances[a.at + offset(t, m / 9 - 1, m / 3 % 3 - 1, m % 3 - 1)] >= 0) << m;
    for (int size = 1; size < 4; size++)
        for (int m = 0; m < 27; m++) {
            const int x = m / 9 - 1, y = m / 3 % 3 - 1, z = m % 3 - 1;
            const unsigned nearer = (x ? 1u << (m - 9 * x) : 0) | (y ? 1u << (m - 3 * y) : 0) | (z ? 1u << (m - z) : 0);
            if (abs(x) + abs(y) + abs(z) == size && (used & nearer))
                used |= outer & 1u << m;
        }
    const double mean = (t.spacing[0] + t.spacing[1] + t.spacing[2]) / 3;
    const float hx = t.spacing[0] / mean, hy = t.spacing[1] / mean, hz = t.spacing[2] / mean;
    const float middle = t.unknown[a.at];
    float matrix[TERMS][TERMS], right[TERMS];  // the upper triangle
#pragma unroll
    for (int i = 0; i < TERMS; i++) {
        right[i] = 0;
#pragma unroll
        for (int j = i; j < TERMS; j++)
            matrix[i][j] = i == j ? (float)t.stiffness[i] : 0.0f;
    }
#pragma unroll 1
    for (int m = 0; m < 27; m++) {
        if (!(used >> m & 1))
            continue;
        const float x = (m / 9 - 1) * hx, y = (m / 3 % 3 - 1) * hy, z = (m % 3 - 1) * hz;
        const float change = t.unknown[a.at + offset(t, m / 9 - 1, m / 3 % 3 - 1, m % 3 - 1)] - middle;
        const float basis[TERMS] = {1, x, y, z, x * y, y * z, z * x, x * x - y * y, 2 * z * z - x * x - y * y};
#pragma unroll
        for (int i = 0; i < TERMS; i++) {
            right[i] += change * basis[i];
#pragma unroll
            for (int j = i; j < TERMS; j++)
                matrix[i][j] += basis[i] * basis[j];
        }
    }
#pragma unroll
    for (int i = 0; i < TERMS; i++) {
        const float inverse = 1 / matrix[i][i];
#pragma unroll
        for (int j = i + 1; j < TERMS; j++) {
            const float ratio = matrix[i][j] * inverse;
#pragma unroll
            for (int k = j; k < TERMS; k++)
                matrix[j][k] -= ratio * matrix[i][k];
            right[j] -= ratio * right[i];
        }
    }
    const float weight = fminf(1.0f, fmaxf(0.0f, (float)(__popc(used) - t.few) / (t.enough - t.few)));
#pragma unroll
    for (int i = TERMS - 1; i > 0; i--) {
#pragma unroll
        for (int k = i + 1; k < TERMS; k++)
            right[i] -= matrix[i][k] * right[k];
        right[i] /= matrix[i][i];
        t.coefficients[KEPT * n + i - 1] = right[i] * weight;
    }
}

struct Vector { double x, y, z; };

__device__ __forceinline__ double along(const Vector &a, int axis) { return axis == 0 ? a.x : axis == 1 ? a.y : a.z; }

// Add the gradient of a polynomial at (x, y, z) from its node, in A.
__device__ __forceinline__ void add_slope(const SurfaceTask &t, unsigned row, double unit, Vector at, Vector &gradient)
{
    const float *own = t.coefficients + (size_t)KEPT * (row - 1);
    const double x = at.x / unit, y = at.y / unit, z = at.z / unit;
    const double a = own[3], b = own[4], c = own[5], d = own[6], e = own[7];
    gradient.x += (own[0] + a * y + c * z + 2 * (d - e) * x) / unit;
    gradient.y += (own[1] + a * x + b * z - 2 * (d + e) * y) / unit;
    gradient.z += (own[2] + b * y + c * x + 4 * e * z) / unit;
}

// The differences of the distances across a node, per spacing.
__device__ __forceinline__ Vector rise(const SurfaceTask &t, long long at)
{
    const long long x = offset(t, 1, 0, 0), y = offset(t, 0, 1, 0);
    Vector result;
    result.x = ((double)t.distances[at + x] - t.distances[at - x]) / t.spacing[0];
    result.y = ((double)t.distances[at + y] - t.distances[at - y]) / t.spacing[1];
    result.z = ((double)t.distances[at + 1] - t.distances[at - 1]) / t.spacing[2];
    return result;
}

// The fraction of a rectangle where height + u s + v t > 0, with s and t from -1/2 to 1/2.
__device__ __forceinline__ double outer_fraction(double height, double u, double v)
{
    const double a = fmax(fmax(fabs(u), fabs(v)), 1e-9), least = fmin(fabs(u), fabs(v));
    if (2 * fabs(height) >= a + least)
        return height > 0 ? 1 : 0;
    const double b = fmax(least, 1e-9);
    double area = 0;
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const double part = fmax(0.0, height + 0.5 * ((n < 2 ? a : -a) + (n % 2 ? -b : b)));
        area += n == 0 || n == 3 ? part * part : -part * part;
    }
    return fmin(1.0, fmax(0.0, area / (2 * a * b)));
}

__device__ __forceinline__ void sort(Step &a, Step &b)
{
    if (a.size < b.size) {
        const Step c = a;
        a = b;
        b = c;
    }
}

// The step from a node to its owner: to itself if it is outside, or to its outer neighbour in the direction of the
// normal there. Returns whether there is one.
__device__ bool owner(const SurfaceTask &t, long long at, const Vector &normal, Step &step)
{
    step.x = step.y = step.z = 0;
    if (t.distances[at] >= 0)
        return true;
    Step a = {normal.x > 0 ? 1 : -1, 0, 0, fabs(normal.x)}, b = {0, normal.y > 0 ? 1 : -1, 0, fabs(normal.y)};
    Step c = {0, 0, normal.z > 0 ? 1 : -1, fabs(normal.z)};
    sort(a, b);
    sort(a, c);
    sort(b, c);
#pragma unroll
    for (int n = 0; n < 7; n++) {  // along a, b, c, a and b, a and c, b and c, all three
        const bool x = n == 0 || n == 3 || n == 4 || n == 6, y = n == 1 || n == 3 || n == 5 || n == 6;
        const bool z = n == 2 || n == 4 || n == 5 || n == 6;
        step.x = x * a.x + y * b.x + z * c.x;
        step.y = x * a.y + y * b.y + z * c.y;
        step.z = x * a.z + y * b.z + z * c.z;
        if (t.distances[at + offset(t, step.x, step.y, step.z)] >= 0)
            return true;
    }
    return false;
}

__device__ __forceinline__ void add_flow(const SurfaceTask &t, long long into, long long out_of, double flow)
{
    const long long units = llrint(flow * UNIT);
    atomicAdd(&t.sums[t.rows[into] - 1], (unsigned long long)units);
    atomicAdd(&t.sums[t.rows[out_of] - 1], (unsigned long long)-units);
}

__device__ void add_through(const SurfaceTask &t, const Node &p, const Vector &here, int axis)
{
    const int dx = axis == 0, dy = axis == 1, dz = axis == 2;
    const long long q = p.at + offset(t, dx, dy, dz);
    const double first = t.distances[p.at], second = t.distances[q], distance = 0.5 * (first + second);
    const double h = t.spacing[axis], u = t.spacing[axis == 2 ? 0 : axis + 1], v = t.spacing[axis == 0 ? 2 : axis - 1];
    if (4 * distance * distance >= u * u + v * v)  // the surface does not meet the face
        return;
    const Vector there = rise(t, q);
    Vector normal = {here.x + there.x, here.y + there.y, here.z + there.z};
    const double length = fmax(sqrt(normal.x * normal.x + normal.y * normal.y + normal.z * normal.z), 1e-9);
    normal.x /= length;
    normal.y /= length;
    normal.z /= length;
    const double own = along(normal, axis);
    const double free = outer_fraction(distance, along(normal, axis == 2 ? 0 : axis + 1) * u,
                                       along(normal, axis == 0 ? 2 : axis - 1) * v);
    const double lacks = free - (first >= 0 && second >= 0 ? 1 : 0);
    const bool cut = (first < 0) != (second < 0);
    if (lacks == 0 && !cut)
        return;
    Step to_a, to_b;
    if (!owner(t, p.at, here, to_a) || !owner(t, q, there, to_b))
        return;
    const long long a = p.at + offset(t, to_a.x, to_a.y, to_a.z), b = q + offset(t, to_b.x, to_b.y, to_b.z);
    const unsigned row_a = t.rows[a], row_b = t.rows[b];
    if (!row_a || !row_b || !t.fitted[row_a - 1] || !t.fitted[row_b - 1])
        return;
    const double unit = (t.spacing[0] + t.spacing[1] + t.spacing[2]) / 3;
    const double weight = t.spacing[0] * t.spacing[1] * t.spacing[2] / (h * h) / unit;
    const double around = axis < 2 ? t.outside[p.k] : 0.5 * (t.outside[p.k] + t.outside[p.k + 1]);
    if (a != b && lacks != 0) {
        Vector gradient = {0, 0, 0};
        // from p to the point of the surface next to the face
        const Vector middle = {0.5 * h * dx - distance * normal.x, 0.5 * h * dy - distance * normal.y,
                               0.5 * h * dz - distance * normal.z};
        const Vector from_a = {middle.x - to_a.x * t.spacing[0], middle.y - to_a.y * t.spacing[1],
                               middle.z - to_a.z * t.spacing[2]};
        const Vector from_b = {middle.x - (to_b.x + dx) * t.spacing[0], middle.y - (to_b.y + dy) * t.spacing[1],
                               middle.z - (to_b.z + dz) * t.spacing[2]};
        add_slope(t, row_a, unit, from_a, gradient);
        add_slope(t, row_b, unit, from_b, gradient);
        const double across = gradient.x * normal.x + gradient.y * normal.y + gradient.z * normal.z;
        add_flow(t, a, b, weight * (around - t.inside) * h * lacks * 0.5 * (along(gradient, axis) - across * own));
    }
    if (cut) {
        const bool forward = first < 0;  // from p, inside, to q
        const double share = (forward ? second : first) / (fabs(first) + fabs(second));  // of the edge, outside
        const double shift = (forward ? -share : share) * h;  // from the outer node to the surface
        Vector gradient = {0, 0, 0};
        add_slope(t, forward ? row_b : row_a, unit, {shift * dx, shift * dy, shift * dz}, gradient);
        const double across = gradient.x * normal.x + gradient.y * normal.y + gradient.z * normal.z;
        const double at_end = t.outside[p.k + (forward ? dz : 0)];
        const double conductance = weight * t.inside * at_end / ((1 - share) * at_end + share * t.inside);
        add_flow(t, forward ? p.at : q, forward ? q : p.at,
                 conductance * (1 - t.inside / around) * shift * (along(gradient, axis) - across * own));
    }
}

// Add the flows that the edges from a node next to the surface lack.
extern "C" __global__ void __launch_bounds__(THREADS) add(const SurfaceTask t)
{
    const size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (n >= t.count)
        return;
    const Node p = node(t, t.nodes[n]);
    if (!is_within(t, p, t.margin))
        return;
    const Vector here = rise(t, p.at);
    for (int axis = 0; axis < 3; axis++)
        add_through(t, p, here, axis);
}

extern "C" __global__ void __launch_bounds__(THREADS) convert(const SurfaceTask t)
{
    const size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (n < t.count)
        t.flows[n] = (double)(long long)t.sums[n] / UNIT;
}
