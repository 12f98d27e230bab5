// Spreading of charges to a mesh, interpolation to a lattice, and multiplication by the factors between the transforms
// of charges and potential (vmdpotential.splitting.mesh). Macros set by the host:
//   REAL   float or double, the type of the mesh
//   ORDER  even order of the basis: number of nodes along each axis that an atom or a point uses
//   NODAL  1 for polynomials through the nodes, which multilevel sums use, 0 for B-splines
//
// Rows of nodes along c have 2 (n / 2 + 1) values, so that transforms are in place.

#define AHEAD (ORDER / 2 - 1)  // number of nodes of a spline before the one below the point
#define ATOMS 32               // number of atoms of a block that spreads
#define TILE 8                 // number of points along each axis of a block that interpolates

#if NODAL

// The weights of the ORDER nodes around a point, a fraction t above the node below it, and their derivatives: a linear
// blend of two polynomials, each through the ORDER - 1 nodes nearest to one of the two nodes around the point
// (D. J. Hardy, J. E. Stone, K. Schulten, Parallel Comput. 35 (2009) 164, eq. 5 for ORDER 4).
__host__ __device__ __forceinline__ void nodal(REAL t, REAL *w, REAL *slope)
{
    const REAL place = t + AHEAD;
#pragma unroll
    for (int j = 0; j < ORDER; j++) {
        // the factors that both polynomials do not share; the first and the last node are in one polynomial only
        REAL value = j == 0 ? 1 - t : t, derivative = j == 0 ? -1 : 1;
        if (j > 0 && j < ORDER - 1) {
            const REAL left = (REAL)1 / max(j, 1), right = (REAL)1 / max(ORDER - 1 - j, 1);
            value = (1 - t) * place * left + t * (ORDER - 1 - place) * right;
            derivative = (1 - t - place) * left + (ORDER - 1 - place - t) * right;
        }
#pragma unroll
        for (int i = 1; i < ORDER - 1; i++)
            if (i != j) {
                const REAL scale = (REAL)1 / (j - i), factor = (place - i) * scale;
                derivative = derivative * factor + value * scale;
                value *= factor;
            }
        w[j] = value;
        slope[j] = derivative;
    }
}

__host__ __device__ __forceinline__ void spline(REAL t, REAL *w)
{
    REAL slope[ORDER];
    nodal(t, w, slope);
}

__host__ __device__ __forceinline__ void spline_or_slope(REAL t, bool derivative, REAL *w)
{
    REAL slope[ORDER];
    nodal(t, w, slope);
#pragma unroll
    for (int k = 0; k < ORDER; k++)
        w[k] = derivative ? slope[k] : w[k];
}

#else

// The weights of the ORDER nodes around a point, a fraction t above the node below it
// (U. Essmann et al., J. Chem. Phys. 103 (1995) 8577, eq. 4.1).
template <int P> __host__ __device__ __forceinline__ void spline_of_order(REAL t, REAL *w)
{
    w[0] = 1 - t;
    w[1] = t;
#pragma unroll
    for (int k = 3; k <= P; k++) {
        const REAL d = (REAL)1 / (k - 1);
        w[k - 1] = d * t * w[k - 2];
#pragma unroll
        for (int j = 1; j < k - 1; j++)
            w[k - 1 - j] = d * ((t + j) * w[k - 2 - j] + (k - j - t) * w[k - 1 - j]);
        w[0] = d * (1 - t) * w[0];
    }
}

__host__ __device__ __forceinline__ void spline(REAL t, REAL *w) { spline_of_order<ORDER>(t, w); }

// The weights, or their derivatives, which are differences of the spline of the next lower order.
__host__ __device__ __forceinline__ void spline_or_slope(REAL t, bool derivative, REAL *w)
{
    if (!derivative)
        return spline(t, w);
    spline_of_order<ORDER - 1>(t, w);
    w[ORDER - 1] = w[ORDER - 2];
#pragma unroll
    for (int k = ORDER - 2; k > 0; k--)
        w[k] = w[k - 1] - w[k];
    w[0] = -w[0];
}

#endif

// The first node of a spline, wrapped into [0, n).
__host__ __device__ __forceinline__ int first_node(double base, int n)
{
    const double node = base - AHEAD;
    return (int)(node - n * floor(node / n));
}

// The mesh coordinate of a lattice point along axis d; it is monotonic along each axis in spite of rounding.
__device__ __forceinline__ double place_of(const MeshTask &task, int d, int x, int y, int z)
{
    const double along_x = fma((double)x, task.step[0][d], task.place[d]);
    return fma((double)z, task.step[2][d], fma((double)y, task.step[1][d], along_x));
}

__device__ __forceinline__ size_t row_of(const MeshTask &task, int a, int b)
{
    return ((size_t)a * task.transform[1] + b) * (2 * (task.transform[2] / 2 + 1));
}

// Spread the charges to the nodes, in fixed point, so that sums do not depend on their order. A block of 128 threads
// has ATOMS atoms.
extern "C" __global__ void __launch_bounds__(128) spread(const MeshTask task)
{
    __shared__ REAL weight[3][ATOMS][ORDER];
    __shared__ int first[3][ATOMS];
    const int start = blockIdx.x * ATOMS, atoms = min(ATOMS, task.count - start);
    const int d = threadIdx.x / ATOMS, own = threadIdx.x % ATOMS;
    if (d < 3 && own < atoms) {
        const double *r = task.positions + 3 * (size_t)(start + own);
        double place = 0;
        for (int k = 0; k < 3; k++)
            place += (r[k] - task.origin[k]) * task.inverse[k][d];
        const double base = floor(place);
        // charges are rounded after, not before, multiplication by the weight: thousands of equal charges would have
        // the same rounding error, and the sum of the errors is a charge with a potential everywhere
        const double charge = d == 0 ? task.charges[start + own] / task.unit : 1;
        REAL w[ORDER];
        spline((REAL)(place - base), w);
#pragma unroll
        for (int k = 0; k < ORDER; k++)
            weight[d][own][k] = (REAL)(charge * w[k]);
        first[d][own] = first_node(base, task.shape[d]);
    }
    __syncthreads();
    const size_t plane = (size_t)task.shape[1] * task.shape[2];
    for (int t = threadIdx.x; t < atoms * ORDER * ORDER; t += 128) {  // a column along a
        const int atom = t / (ORDER * ORDER), j = t / ORDER % ORDER, k = t % ORDER;
        int a = first[0][atom], b = first[1][atom] + j, c = first[2][atom] + k;
        b -= b < task.shape[1] ? 0 : task.shape[1];
        c -= c < task.shape[2] ? 0 : task.shape[2];
        unsigned long long *column = task.fixed + (size_t)b * task.shape[2] + c;
        const REAL w = weight[1][atom][j] * weight[2][atom][k];
#pragma unroll
        for (int i = 0; i < ORDER; i++) {
            const long long value = llrint(weight[0][atom][i] * w);
            atomicAdd(column + a * plane, (unsigned long long)value);
            a = a + 1 < task.shape[0] ? a + 1 : 0;
        }
    }
}

// Add the charges of a frame to the sums over frames. Blocks of 128 threads.
extern "C" __global__ void collect(const MeshTask task)
{
    const size_t i = (size_t)blockIdx.x * 128 + threadIdx.x;
    if (i < (size_t)task.shape[0] * task.shape[1] * task.shape[2])
        task.sums[i] += (double)(long long)task.fixed[i] * task.unit;
}

// Convert the charges from fixed point, and pad them with zeros. One block per row: its x is b, its y is a, as in the
// kernels below.
extern "C" __global__ void unpack(const MeshTask task)
{
    const int a = blockIdx.y, b = blockIdx.x;
    REAL *row = task.nodes + row_of(task, a, b);
    const size_t first = ((size_t)a * task.shape[1] + b) * task.shape[2];
    const int charged = a < task.shape[0] && b < task.shape[1] ? task.shape[2] : 0;
    for (int c = threadIdx.x; c < task.transform[2]; c += blockDim.x) {
        double charge = 0;
        if (c < charged)
            charge = task.sums ? task.sums[first + c] * task.share : (double)(long long)task.fixed[first + c] * task.unit;
        row[c] = (REAL)charge;
    }
}

// Sample the smooth part at all distances between nodes, in an open boundary.
extern "C" __global__ void sample(const MeshTask task)
{
    const int a = blockIdx.y, b = blockIdx.x;
    const int na = task.transform[0], nb = task.transform[1], nc = task.transform[2];
    const double *squares = task.squares + na / 2 + 1;
    const double ab2 = task.squares[min(a, na - a)] + squares[min(b, nb - b)];
    squares += nb / 2 + 1;
    REAL *row = task.nodes + row_of(task, a, b);
    for (int c = threadIdx.x; c < nc; c += blockDim.x) {
        const double r2 = ab2 + squares[min(c, nc - c)], x = r2 * task.inverse_square;
        REAL value = exp(-(REAL)task.kappa * sqrt((REAL)r2)) / sqrt((REAL)r2);
        if (task.gaussian > 0) {
            const double r = sqrt(r2), turns = r * task.gaussian;
            value = (REAL)(turns > 1e-6 ? erf(turns) / r : 1.1283791670955126 * task.gaussian);
        } else if (x < 1) {
            double inside = task.smooth[8];
            for (int k = 7; k >= 0; k--)
                inside = inside * x + task.smooth[k];
            value = (REAL)inside;
        }
        row[c] = value;
    }
}

// Write the factors from the transform of the sampled smooth part, which is real and even along each axis, so that one
// octant is enough.
extern "C" __global__ void keep(const MeshTask task)
{
    const int a = blockIdx.y, b = blockIdx.x;
    const int na = task.transform[0] / 2 + 1, nb = task.transform[1] / 2 + 1, nc = task.transform[2] / 2 + 1;
    const double factor = task.factor * task.correction[a] * task.correction[na + b];
    const double *correction = task.correction + na + nb;
    const REAL *row = task.nodes + row_of(task, a, b);
    REAL *influence = task.influence + ((size_t)a * nb + b) * nc;
    for (int c = threadIdx.x; c < nc; c += blockDim.x)
        influence[c] = (REAL)(row[2 * c] * (factor * correction[c]));
}

struct alignas(2 * sizeof(REAL)) Complex { REAL re, im; };

__device__ __forceinline__ void multiply(Complex *value, REAL factor)
{
    Complex v = *value;
    v.re *= factor;
    v.im *= factor;
    *value = v;
}

// Multiply the transform of the charges by the sampled factors, which yields that of the potential.
extern "C" __global__ void multiply_sampled(const MeshTask task)
{
    const int a = blockIdx.y, b = blockIdx.x, nb = task.transform[1] / 2 + 1, nc = task.transform[2] / 2 + 1;
    const int even_a = min(a, task.transform[0] - a), even_b = min(b, task.transform[1] - b);
    const REAL *influence = task.influence + ((size_t)even_a * nb + even_b) * nc;
    Complex *row = (Complex *)(task.nodes + row_of(task, a, b));
    for (int c = threadIdx.x; c < nc; c += blockDim.x)
        multiply(row + c, influence[c]);
}

// The same if the smooth part's transform is known: in a periodic cell, or if the smooth part has a cutoff.
extern "C" __global__ void multiply_transformed(const MeshTask task)
{
    const int a = blockIdx.y, b = blockIdx.x;
    const int na = task.transform[0], nb = task.transform[1], nc = task.transform[2];
    const double *correction = task.correction + na / 2 + 1;
    const double factor = task.factor * task.correction[min(a, na - a)] * correction[min(b, nb - b)];
    correction += nb / 2 + 1;
    const double turns_a = 2 * a < na ? a : a - na, turns_b = 2 * b < nb ? b : b - nb;
    REAL k_ab[3];
#pragma unroll
    for (int d = 0; d < 3; d++)
        k_ab[d] = (REAL)(task.reciprocal[d][0] * turns_a + task.reciprocal[d][1] * turns_b);
    // at the Nyquist index both signs of the wave number are possible, two different waves in a slanted cell: omit them
    const bool half_turn = task.slanted && (2 * a == na || 2 * b == nb);
    const REAL kappa2 = (REAL)(task.kappa * task.kappa);
    Complex *row = (Complex *)(task.nodes + row_of(task, a, b));
    for (int c = threadIdx.x; c < nc / 2 + 1; c += blockDim.x) {
        REAL k2 = 0;
#pragma unroll
        for (int d = 0; d < 3; d++) {
            const REAL k = k_ab[d] + (REAL)task.reciprocal[d][2] * (REAL)c;
            k2 += k * k;
        }
        const REAL entry = sqrt(k2) * (REAL)task.window_scale, below = floor(entry);
        const REAL low = task.window[(int)below], high = task.window[(int)below + 1];
        REAL influence = (REAL)(factor * correction[c]) * (low + (entry - below) * (high - low)) / (k2 + kappa2);
        if (k2 == 0)
            influence = (REAL)task.constant;
        if (half_turn || (task.slanted && 2 * c == nc))
            influence = 0;
        multiply(row + c, influence);
    }
}

// Interpolate the potential to a tile of points, along one axis after the other: along c for all nodes along a and b
// that the tile uses, then along b, then along a. Coordinates along c must depend on z only, and along b on y and z, as
// in any cell with a along x and b in the xy plane. Blocks of 256 threads.
extern "C" __global__ void __launch_bounds__(256) interpolate(const MeshTask task)
{
    extern __shared__ double dynamic[];
    __shared__ REAL weight_a[TILE][ORDER], weight_b[ORDER][TILE * TILE], weight_c[ORDER][TILE];
    __shared__ int low[3], count[3], first_a[TILE], first_b[TILE * TILE], first_c[TILE];
    const int tile[3] = {(int)blockIdx.z * TILE, (int)blockIdx.y * TILE, (int)blockIdx.x * TILE};
    const int plane = tile[0] + task.first_plane;
    REAL *nodes = (REAL *)dynamic;                                   // (span a, span b, span c)
    REAL *along_c = nodes + task.span[0] * task.span[1] * task.span[2];  // (span a, span b, z)
    REAL *along_b = along_c + task.span[0] * task.span[1] * TILE;        // (span a, y, z)
    int *index_a = (int *)(along_b + task.span[0] * TILE * TILE);
    int *index_b = index_a + task.span[0], *index_c = index_b + task.span[1];

    if (threadIdx.x < 3) {
        const int d = threadIdx.x;
        double near = 1e300, far = -1e300;
        for (int corner = 0; corner < 8; corner++) {
            const int x = plane + (corner & 1) * (TILE - 1), y = tile[1] + (corner >> 1 & 1) * (TILE - 1);
            const double place = place_of(task, d, x, y, tile[2] + (corner >> 2) * (TILE - 1));
            near = fmin(near, floor(place));
            far = fmax(far, floor(place));
        }
        const int n = task.transform[d];
        int node = first_node(near, n), *index = d == 0 ? index_a : d == 1 ? index_b : index_c;
        low[d] = (int)near;
        count[d] = min((int)(far - near) + ORDER, task.span[d]);
        for (int k = 0; k < count[d]; k++) {
            index[k] = node;
            node = node + 1 < n ? node + 1 : 0;
        }
    }
    __syncthreads();
    if (threadIdx.x < TILE * TILE + 2 * TILE) {  // splines along b, along c, and along a
        const int t = threadIdx.x % (TILE * TILE), d = threadIdx.x < TILE * TILE ? 1 : t < TILE ? 2 : 0;
        const int x = d == 0 ? t - TILE : 0, y = d == 1 ? t / TILE : 0, z = d == 0 ? 0 : t % TILE;
        const double place = place_of(task, d, plane + x, tile[1] + y, tile[2] + z), base = floor(place);
        const int first = (int)base - low[d];
        REAL w[ORDER];
        spline_or_slope((REAL)(place - base), task.along == d, w);
        (d == 0 ? first_a[x] : d == 1 ? first_b[t] : first_c[z]) = first;
#pragma unroll
        for (int k = 0; k < ORDER; k++)
            (d == 0 ? weight_a[x][k] : d == 1 ? weight_b[k][t] : weight_c[k][z]) = w[k];
    }
    const size_t plane_size = row_of(task, 1, 0);
    for (int b = threadIdx.x / 16; b < count[1]; b += 16)
        for (int c = threadIdx.x % 16; c < count[2]; c += 16) {
            const REAL *column = task.nodes + row_of(task, 0, index_b[b]) + index_c[c];
            for (int a = 0; a < count[0]; a++)
                nodes[(a * count[1] + b) * task.span[2] + c] = column[index_a[a] * plane_size];
        }
    __syncthreads();
    for (int t = threadIdx.x; t < count[0] * count[1] * TILE; t += 256) {
        const int row = t / TILE, z = t % TILE;
        const REAL *line = nodes + row * task.span[2] + first_c[z];
        REAL sum = 0;
#pragma unroll
        for (int k = 0; k < ORDER; k++)
            sum += weight_c[k][z] * line[k];
        along_c[t] = sum;
    }
    __syncthreads();
    for (int t = threadIdx.x; t < count[0] * TILE * TILE; t += 256) {
        const int a = t / (TILE * TILE), yz = t % (TILE * TILE);
        const REAL *line = along_c + (a * count[1] + first_b[yz]) * TILE + yz % TILE;
        REAL sum = 0;
#pragma unroll
        for (int k = 0; k < ORDER; k++)
            sum += weight_b[k][yz] * line[k * TILE];
        along_b[t] = sum;
    }
    __syncthreads();
    for (int t = threadIdx.x; t < TILE * TILE * TILE; t += 256) {
        const int yz = t % (TILE * TILE);
        const int x = tile[0] + t / (TILE * TILE), y = tile[1] + yz / TILE, z = tile[2] + yz % TILE;
        const REAL *line = along_b + yz;
        REAL w[ORDER], sum = 0;
        if (task.slanted) {
            const double place = place_of(task, 0, x + task.first_plane, y, z), base = floor(place);
            spline_or_slope((REAL)(place - base), task.along == 0, w);
            line += ((int)base - low[0]) * (TILE * TILE);
        } else {
#pragma unroll
            for (int k = 0; k < ORDER; k++)
                w[k] = weight_a[t / (TILE * TILE)][k];
            line += first_a[t / (TILE * TILE)] * (TILE * TILE);
        }
#pragma unroll
        for (int k = 0; k < ORDER; k++)
            sum += w[k] * line[k * (TILE * TILE)];
        if (x < task.points[0] && y < task.points[1] && z < task.points[2])
            task.out[((size_t)x * task.points[1] + y) * task.points[2] + z] = (float)sum;
    }
}

// The same for any cell and any spacing, point by point. Blocks of 128 threads.
extern "C" __global__ void __launch_bounds__(128) gather(const MeshTask task)
{
    __shared__ REAL weight[2][ORDER][128];
    const size_t point = (size_t)blockIdx.x * 128 + threadIdx.x;
    const size_t row = point / task.points[2];
    const int x = (int)(row / task.points[1]), y = (int)(row % task.points[1]), z = (int)(point % task.points[2]);
    if (x >= task.points[0])
        return;
    int first[3];
    REAL w[ORDER];
    for (int d = 0; d < 3; d++) {
        const double place = place_of(task, d, x + task.first_plane, y, z), base = floor(place);
        first[d] = first_node(base, task.transform[d]);
        spline_or_slope((REAL)(place - base), task.along == d, w);
#pragma unroll
        for (int k = 0; d < 2 && k < ORDER; k++)
            weight[d][k][threadIdx.x] = w[k];
    }
    REAL total = 0;
    for (int i = 0; i < ORDER; i++) {
        int a = first[0] + i;
        a -= a < task.transform[0] ? 0 : task.transform[0];
        REAL plane = 0;
        for (int j = 0; j < ORDER; j++) {
            int b = first[1] + j;
            b -= b < task.transform[1] ? 0 : task.transform[1];
            const REAL *line = task.nodes + row_of(task, a, b);
            REAL sum = 0;
#pragma unroll
            for (int k = 0; k < ORDER; k++) {
                int c = first[2] + k;
                c -= c < task.transform[2] ? 0 : task.transform[2];
                sum += w[k] * line[c];
            }
            plane += weight[1][j][threadIdx.x] * sum;
        }
        total += weight[0][i][threadIdx.x] * plane;
    }
    task.out[point] = (float)total;
}

// Convert three maps of derivatives along a, b and c to the field along x, y and z. Blocks of 128 threads.
extern "C" __global__ void __launch_bounds__(128) field(const MeshTask task)
{
    const size_t points = (size_t)task.points[0] * task.points[1] * task.points[2];
    const size_t point = (size_t)blockIdx.x * 128 + threadIdx.x;
    if (point >= points)
        return;
    float *out = task.out + point;
    const float slope[3] = {out[0], out[task.map_size], out[2 * task.map_size]};
#pragma unroll
    for (int d = 0; d < 3; d++) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < 3; k++)
            sum -= (float)task.inverse[d][k] * slope[k];
        out[d * task.map_size] = sum;
    }
}

// Interpolate potential and field at arbitrary points. Blocks of 128 threads.
extern "C" __global__ void __launch_bounds__(128) at_points(const MeshTask task)
{
    __shared__ REAL weight[2][ORDER][128], slope[2][ORDER][128];
    const size_t point = (size_t)blockIdx.x * 128 + threadIdx.x;
    if (point >= task.place_count)
        return;
    const double *r = task.places + 3 * point;
    int first[3];
    REAL w[ORDER], s[ORDER];
    for (int d = 0; d < 3; d++) {
        double place = 0;
        for (int k = 0; k < 3; k++)
            place += (r[k] - task.origin[k]) * task.inverse[k][d];
        const double base = floor(place);
        first[d] = first_node(base, task.transform[d]);
        spline_or_slope((REAL)(place - base), false, w);
        spline_or_slope((REAL)(place - base), true, s);
#pragma unroll
        for (int k = 0; d < 2 && k < ORDER; k++) {
            weight[d][k][threadIdx.x] = w[k];
            slope[d][k][threadIdx.x] = s[k];
        }
    }
    REAL total[4] = {};  // the potential, and its derivatives along a, b and c
    for (int i = 0; i < ORDER; i++) {
        int a = first[0] + i;
        a -= a < task.transform[0] ? 0 : task.transform[0];
        REAL plane = 0, along_b = 0, along_c = 0;
        for (int j = 0; j < ORDER; j++) {
            int b = first[1] + j;
            b -= b < task.transform[1] ? 0 : task.transform[1];
            const REAL *line = task.nodes + row_of(task, a, b);
            REAL sum = 0, change = 0;
#pragma unroll
            for (int k = 0; k < ORDER; k++) {
                int c = first[2] + k;
                c -= c < task.transform[2] ? 0 : task.transform[2];
                const REAL node = line[c];
                sum += w[k] * node;
                change += s[k] * node;
            }
            plane += weight[1][j][threadIdx.x] * sum;
            along_b += slope[1][j][threadIdx.x] * sum;
            along_c += weight[1][j][threadIdx.x] * change;
        }
        total[0] += weight[0][i][threadIdx.x] * plane;
        total[1] += slope[0][i][threadIdx.x] * plane;
        total[2] += weight[0][i][threadIdx.x] * along_b;
        total[3] += weight[0][i][threadIdx.x] * along_c;
    }
    task.values[point] = total[0];
#pragma unroll
    for (int d = 0; d < 3; d++)
        task.values[(d + 1) * (size_t)task.place_count + point] =
            -(task.inverse[d][0] * total[1] + task.inverse[d][1] * total[2] + task.inverse[d][2] * total[3]);
}
