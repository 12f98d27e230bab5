// Pairs in range. Atoms are sorted into super clusters of 64, each of eight clusters of 8 and sixteen groups of 4. A
// warp computes the 8 x 4 pairs of a cluster and a group at once: lane l has atom l & 7 of the cluster and l >> 3 of
// the group. An entry of the list is a group, at one image, in range of a super cluster, with a bit for each of the
// super cluster's clusters that has a pair in range. Positions are relative to the centre of the super cluster; the
// shift between two of them is computed in double precision when the list is made. S. Pall, B. Hess, Comput. Phys.
// Commun. 184 (2013) 2641-2650. Macros set by the host:
//   WARPS       number of warps of a block
//   LEAN        1 if only forces are summed, in single precision
// Tasks are grid constants, so that addresses of their parts need no copy on the stack.
// A pair of super clusters is listed for one of them. Coordinates of places without an atom are NaN, never in range.

#define ALL ~0u
#define HERE_ITSELF 0x808080  // the code of no shift: each byte is an image's number plus 128

struct alignas(16) Entry { REAL x, y, z; int group, bits, mask; };  // shift; bits of clusters, plus 256 on the diagonal

struct alignas(8) Item { int super, count; };

union Record {
    Four words[WORDS];
    Atom atom;
};

// The shift from the frame of super cluster i to that of j at an image.
__device__ __forceinline__ void shift_between(const ClusterTask &task, int i, int j, const int (&image)[3], REAL (&shift)[3])
{
#pragma unroll
    for (int d = 0; d < 3; d++)
        shift[d] = (REAL)fma((double)image[2], task.basis[2][d],
                              fma((double)image[1], task.basis[1][d],
                                  fma((double)image[0], task.basis[0][d],
                                      task.second.centres[3 * (size_t)j + d] - task.first.centres[3 * (size_t)i + d])));
}

__device__ __forceinline__ float squared_gap(const Box &a, const Box &b, const REAL (&shift)[3])
{
    float sum = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const float by = (float)shift[d], gap = fmaxf(0.f, fmaxf(b.low[d] + by - a.high[d], a.low[d] - b.high[d] - by));
        sum = fmaf(gap, gap, sum);
    }
    return sum;
}

// Call use(j, code, shift, diagonal) in all lanes for each super cluster j and image near i whose pair belongs to i.
// The candidates are divided among the warps of a block. The code of an image has one byte per axis.
template <class Use>
__device__ __forceinline__ void neighbours(const ClusterTask &task, int i, int warp, Use use)
{
    const int lane = threadIdx.x & 31;
    const Box own = task.first.boxes[i];
    for (int base = 32 * warp; base < task.second.supers; base += 32 * WARPS) {
        const int j = base + lane;
        int low[3] = {}, sides[3] = {}, count = 0;
        Box box = own;
        if (j < task.second.supers && (!task.same || i == j || (((i + j) & 1) != 0) == (i < j))) {
            box = task.second.boxes[j];
            float middle[3], half[3];
#pragma unroll
            for (int d = 0; d < 3; d++) {
                const float apart = (float)(task.first.centres[3 * (size_t)i + d] - task.second.centres[3 * (size_t)j + d]);
                middle[d] = apart + 0.5f * (own.low[d] + own.high[d] - box.low[d] - box.high[d]);
                half[d] = 0.5f * (own.high[d] - own.low[d] + box.high[d] - box.low[d]) + task.reach;
            }
            count = 1;
#pragma unroll
            for (int d = 0; d < 3; d++) {  // range of images along a lattice vector; without a cell, only image 0
                float at = 0, wide = 1e-4f;
#pragma unroll
                for (int e = 0; e < 3; e++) {
                    at = fmaf(middle[e], task.inverse[e][d], at);
                    wide = fmaf(half[e], fabsf(task.inverse[e][d]), wide);
                }
                low[d] = (int)ceilf(at - wide);
                sides[d] = max(0, (int)floorf(at + wide) - low[d] + 1);
                count *= sides[d];
            }
        }
        for (int number = 0; __any_sync(ALL, number < count); number++) {
            int image[3] = {}, code = 0;
            bool is_near = false;
            if (number < count) {
                image[0] = low[0] + number % sides[0];
                image[1] = low[1] + number / sides[0] % sides[1];
                image[2] = low[2] + number / (sides[0] * sides[1]);
                code = (image[0] + 128) | (image[1] + 128) << 8 | (image[2] + 128) << 16;
                REAL shift[3];
                shift_between(task, i, j, image, shift);
                is_near = squared_gap(own, box, shift) < task.reach2
                    && !(task.same && i == j && code < HERE_ITSELF);  // one of each two opposite images counts
            }
            for (unsigned hits = __ballot_sync(ALL, is_near); hits; hits &= hits - 1) {
                const int hit = __ffs(hits) - 1, other = base + hit, its = __shfl_sync(ALL, code, hit);
                const int at[3] = {(its & 255) - 128, (its >> 8 & 255) - 128, (its >> 16 & 255) - 128};
                REAL shift[3];
                shift_between(task, i, other, at, shift);
                use(other, its, shift, task.same && other == i && its == HERE_ITSELF);
            }
        }
    }
}

// The position of an atom for the search, wrapped into the cell if the task wraps atoms.
__device__ __forceinline__ void home_of(const ClusterTask &task, const Side &side, int i, double (&at)[3])
{
    double x[3], turns[3];
    for (int d = 0; d < 3; d++)
        x[d] = side.positions[3 * (size_t)i + d];
    for (int d = 0; d < 3; d++)
        turns[d] = side.wraps ? floor(x[0] * task.inverse[0][d] + x[1] * task.inverse[1][d] + x[2] * task.inverse[2][d])
                              : 0;
    for (int d = 0; d < 3; d++)
        at[d] = x[d] - (turns[0] * task.basis[0][d] + turns[1] * task.basis[1][d] + turns[2] * task.basis[2][d]);
}

// Return the side of a thread, and in `i` its index among the side's `first` or `second` items; null beyond the last.
__device__ __forceinline__ const Side *side_of(const ClusterTask &task, int first, int second, int &i)
{
    const int number = blockIdx.x * blockDim.x + threadIdx.x;
    i = number < first ? number : number - first;
    return number < first ? &task.first : !task.same && i < second ? &task.second : nullptr;
}

// Compute the bins of atoms, and count the atoms in each. One thread per atom.
extern "C" __global__ void count(const __grid_constant__ ClusterTask task)
{
    int i;
    const Side *of = side_of(task, task.first.count, task.second.count, i);
    if (!of)
        return;
    const Side &side = *of;
    double at[3];
    home_of(task, side, i, at);
    int bin = 0;
    for (int d = 0; d < 3; d++)
        bin = bin * side.across[d]
            + (int)fmin(fmax((at[d] - side.low[d]) * side.scale[d], 0.0), side.across[d] - 1.0);
    side.bin[i] = bin;
    atomicAdd(&side.bins[bin], 1);
}

// Write atoms to their bins in the order of arrival. One thread per atom.
extern "C" __global__ void fill(const __grid_constant__ ClusterTask task)
{
    int i;
    const Side *of = side_of(task, task.first.count, task.second.count, i);
    if (of)
        of->placed[atomicAdd(&of->next[of->bin[i]], 1)] = i;
}

// Sort the atoms of each bin in the order of the input, so that the order is reproducible. One thread per atom.
extern "C" __global__ void order(const __grid_constant__ ClusterTask task)
{
    int i;
    const Side *of = side_of(task, task.first.count, task.second.count, i);
    if (!of)
        return;
    const Side &side = *of;
    const int bin = side.bin[i], end = side.next[bin];
    int place = end - side.bins[bin];
    for (int n = end - side.bins[bin]; n < end; n++)
        place += side.placed[n] < i;
    side.index[place] = i;
}

// Halve super clusters along z, y, x and z, and write their atoms' records, positions and places. One block per super
// cluster, one thread per place.
extern "C" __global__ void __launch_bounds__(64) arrange(const __grid_constant__ ClusterTask task)
{
    __shared__ double at[64][3];
    __shared__ int atoms[64];
    const int n = threadIdx.x, number = blockIdx.x;
    const int super = number < task.first.supers ? number : number - task.first.supers;
    const Side &side = number < task.first.supers ? task.first : task.second;
    const size_t slot = 64 * (size_t)super + n;
    int i = side.index[slot];
    double own[3] = {};
    if (i >= 0)
        home_of(task, side, i, own);
#pragma unroll
    for (int level = 0; level < 4; level++) {
        const int axis = level == 1 ? 1 : level == 2 ? 0 : 2, first = n & -(64 >> level);
        for (int d = 0; d < 3; d++)
            at[n][d] = own[d];
        atoms[n] = i;
        __syncthreads();
        int place = first;
        for (int m = first; m < first + (64 >> level); m++)
            place += i < 0 ? atoms[m] >= 0 || m < n
                           : atoms[m] >= 0 && (at[m][axis] < own[axis] || (at[m][axis] == own[axis] && m < n));
        __syncthreads();
        for (int d = 0; d < 3; d++)
            at[place][d] = own[d];
        atoms[place] = i;
        __syncthreads();
        i = atoms[n];
        for (int d = 0; d < 3; d++)
            own[d] = at[n][d];
        __syncthreads();
    }
    for (int d = 0; d < 3; d++) {
        at[n][d] = own[d];
        side.home[3 * slot + d] = own[d];
    }
    atoms[n] = i;
    side.index[slot] = i;
    Atom atom = {};
    if (i >= 0)
        atom = side.parameters[i];
    side.atoms[slot] = atom;
    if (i >= 0)
        side.places[i] = (int)slot;
    __syncthreads();
    if (n >= 3)
        return;
    double sum = 0;
    int count = 0;
    for (int m = 0; m < 64; m++) {
        sum += at[m][n];
        count += atoms[m] >= 0;
    }
    side.centres[3 * (size_t)super + n] = sum / count;
}

// Compute the boxes around groups and super clusters. One thread per super cluster.
extern "C" __global__ void bound(const __grid_constant__ ClusterTask task)
{
    int i;
    const Side *of = side_of(task, task.first.supers, task.second.supers, i);
    if (!of)
        return;
    const Side &side = *of;
    Box whole = {{3e30f, 3e30f, 3e30f}, {-3e30f, -3e30f, -3e30f}};
    for (int g = 0; g < 16; g++) {
        Box box = {{3e30f, 3e30f, 3e30f}, {-3e30f, -3e30f, -3e30f}};
        for (int n = 0; n < 4; n++) {
            const Atom atom = side.atoms[64 * (size_t)i + 4 * g + n];
            const float at[3] = {(float)atom.x, (float)atom.y, (float)atom.z};
            for (int d = 0; d < 3; d++) {
                box.low[d] = fminf(box.low[d], at[d]);  // fminf and fmaxf ignore NaN
                box.high[d] = fmaxf(box.high[d], at[d]);
            }
        }
        side.groups[16 * (size_t)i + g] = box;
        for (int d = 0; d < 3; d++) {
            whole.low[d] = fminf(whole.low[d], box.low[d]);
            whole.high[d] = fmaxf(whole.high[d], box.high[d]);
        }
    }
    side.boxes[i] = whole;
}

// Write the atoms' positions to their records, at the images nearest to those of the search. One thread per place.
extern "C" __global__ void place(const __grid_constant__ ClusterTask task)
{
    int slot;
    const Side *of = side_of(task, 64 * task.first.supers, 64 * task.second.supers, slot);
    if (!of)
        return;
    const Side &side = *of;
    Atom &atom = side.atoms[slot];
    const int i = side.index[slot];
    for (int d = 0; d < 3; d++)
        side.forces[3 * (size_t)slot + d] = 0;
    for (int t = 0; t < (ENERGY ? TERMS : 0); t++)
        side.energies[(size_t)slot * TERMS + t] = 0;
    if (i < 0) {
        atom.x = atom.y = atom.z = __int_as_float(0x7fc00000);
        return;
    }
    double moved[3], turns[3];
    for (int d = 0; d < 3; d++)
        moved[d] = side.positions[3 * (size_t)i + d] - side.home[3 * (size_t)slot + d];
    for (int d = 0; d < 3; d++)
        turns[d] = rint(moved[0] * task.inverse[0][d] + moved[1] * task.inverse[1][d] + moved[2] * task.inverse[2][d]);
    REAL at[3];
    for (int d = 0; d < 3; d++) {
        const double back = turns[0] * task.basis[0][d] + turns[1] * task.basis[1][d] + turns[2] * task.basis[2][d];
        const double centre = side.centres[3 * (size_t)(slot / 64) + d];
        at[d] = (REAL)(moved[d] - back + (side.home[3 * (size_t)slot + d] - centre));
    }
    atom.x = at[0];
    atom.y = at[1];
    atom.z = at[2];
}

// Find the places and images of excluded pairs, and count the pairs of each super cluster. One thread per pair.
extern "C" __global__ void find_excluded(const __grid_constant__ ClusterTask task)
{
    const int number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= task.pair_count)
        return;
    int first = task.first.places[task.pairs[2 * number]], second = task.first.places[task.pairs[2 * number + 1]];
    double apart[3], turns[3];
    for (int d = 0; d < 3; d++)
        apart[d] = task.first.home[3 * (size_t)first + d] - task.first.home[3 * (size_t)second + d];
    for (int d = 0; d < 3; d++)
        turns[d] = rint(apart[0] * task.inverse[0][d] + apart[1] * task.inverse[1][d] + apart[2] * task.inverse[2][d]);
    double least = 1e300;
    int image[3] = {};
    for (int n = 0; n < 27; n++) {  // the nearest image, for a reduced cell
        const double at[3] = {turns[0] + n % 3 - 1, turns[1] + n / 3 % 3 - 1, turns[2] + n / 9 - 1};
        double r2 = 0;
        for (int d = 0; d < 3; d++) {
            const double x = apart[d] - (at[0] * task.basis[0][d] + at[1] * task.basis[1][d] + at[2] * task.basis[2][d]);
            r2 += x * x;
        }
        if (r2 < least) {
            least = r2;
            for (int d = 0; d < 3; d++)
                image[d] = task.inverse[0][0] != 0 ? (int)at[d] : 0;
        }
    }
    // the same super cluster and image as those for which neighbours() lists the pair
    const int i = first / 64, j = second / 64, steps = image[0] + 256 * image[1] + 65536 * image[2];
    const bool turned = i == j ? steps < 0 || (steps == 0 && first > second) : (((i + j) & 1) != 0) != (i < j);
    Excluded &pair = task.found[number];
    pair.first = turned ? second : first;
    pair.second = turned ? first : second;
    pair.code = (turned ? -steps : steps) + HERE_ITSELF;
    atomicAdd(&task.cursors[pair.first / 64], 1);
}

// Sort excluded pairs by super cluster. One thread per pair.
extern "C" __global__ void place_excluded(const __grid_constant__ ClusterTask task)
{
    const int number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= task.pair_count)
        return;
    Excluded pair = task.found[number];
    const int slot = atomicAdd(&task.cursors[pair.first / 64], 1);
    pair.first &= 63;
    task.excluded[slot] = pair;
}

// Write the entries of a super cluster. One block per super cluster; each warp fills chunks of the list, which become
// items of work.
extern "C" __global__ void __launch_bounds__(32 * WARPS) build(const __grid_constant__ ClusterTask task)
{
    __shared__ Four own[64];
    __shared__ unsigned some[32];  // bits of groups with excluded pairs, hashed by the last 10 bits of their numbers
    __shared__ unsigned left_out[WARPS][8];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, i = blockIdx.x;
    for (int n = threadIdx.x; n < 64; n += 32 * WARPS) {
        const Atom atom = task.first.atoms[64 * (size_t)i + n];
        own[n] = make_four(atom.x, atom.y, atom.z, 0);
    }
    for (int n = threadIdx.x; n < 32; n += 32 * WARPS)
        some[n] = 0;
    __syncthreads();
    const int from = task.starts[i], to = task.starts[i + 1];
    for (int n = from + threadIdx.x; n < to; n += 32 * WARPS) {
        const int group = task.excluded[n].second / 4;
        atomicOr(&some[group >> 5 & 31], 1u << (group & 31));
    }
    __syncthreads();
    const Box box = task.first.boxes[i];
    int start = 0, filled = task.chunk;  // first entry of the current chunk, and number of its entries
    unsigned long long clusters = 0;
    neighbours(task, i, warp, [&](int j, int code, const REAL (&shift)[3], bool diagonal) {
        bool close = false;
        if (lane < 16)
            close = squared_gap(box, task.second.groups[16 * (size_t)j + lane], shift) < task.reach2;
        for (unsigned hits = __ballot_sync(ALL, close); hits; hits &= hits - 1) {
            const int group = 16 * j + __ffs(hits) - 1, local = 4 * (group & 15) + (lane >> 3);
            const Atom other = task.second.atoms[4 * (size_t)group + (lane >> 3)];
            const REAL x = other.x + shift[0], y = other.y + shift[1], z = other.z + shift[2];
            unsigned mask = 0;
#pragma unroll
            for (int c = 0; c < 8; c++) {
                const Four me = own[8 * c + (lane & 7)];
                const REAL dx = me.x - x, dy = me.y - y, dz = me.z - z;
                const bool in = fma(dx, dx, fma(dy, dy, dz * dz)) < task.reach2;
                mask |= __any_sync(ALL, in && !(diagonal && local <= 8 * c + (lane & 7))) ? 1u << c : 0u;
            }
            if (!mask)
                continue;
            int number = -1;
            if (some[group >> 5 & 31] >> (group & 31) & 1) {
                __syncwarp();
                if (lane < 8)
                    left_out[warp][lane] = 0;
                __syncwarp();
                bool any = false;
                for (int n = from + lane; n < to; n += 32) {
                    const Excluded pair = task.excluded[n];
                    if (pair.second / 4 == group && pair.code == code) {
                        atomicOr(&left_out[warp][pair.first >> 3 & 7],
                                 1u << (8 * (pair.second & 3) + (pair.first & 7)));
                        any = true;
                    }
                }
                if (__any_sync(ALL, any)) {
                    if (lane == 0)
                        number = (int)atomicAdd(&task.used[1], 1ull);
                    number = __shfl_sync(ALL, number, 0);
                    __syncwarp();
                    if (lane < 8 && number < task.mask_room)
                        task.masks[8 * (size_t)number + lane] = left_out[warp][lane];
                }
            }
            if (filled == task.chunk) {
                if (lane == 0)
                    start = (int)atomicAdd(&task.used[0], (unsigned long long)task.chunk);
                start = __shfl_sync(ALL, start, 0);
                filled = 0;
            }
            if (lane == 0 && start + task.chunk <= task.room) {
                Entry &entry = task.entries[start + filled];
                entry.group = group;
                entry.bits = (int)(mask | (diagonal ? 256u : 0u));
                entry.mask = number;
                entry.x = shift[0];
                entry.y = shift[1];
                entry.z = shift[2];
                Item &item = task.items[start / task.chunk];
                item.super = i;
                item.count = filled + 1;
            }
            filled++;
            clusters += __popc(mask);
        }
    });
    if (lane == 0 && clusters)
        atomicAdd(&task.used[2], clusters);
}

// Sum over the lanes of a cluster or of a group: its first lane gets the sum of x, the second of y, the third of z.
template <int STEP, int END>
__device__ __forceinline__ REAL sum_of(REAL x, REAL y, REAL z)
{
    const int lane = threadIdx.x / STEP;
    x += __shfl_xor_sync(ALL, x, STEP);
    y += __shfl_xor_sync(ALL, y, STEP);
    z += __shfl_xor_sync(ALL, z, STEP);
    REAL sum = lane & 1 ? y : x;
    sum += __shfl_xor_sync(ALL, sum, 2 * STEP);
    z += __shfl_xor_sync(ALL, z, 2 * STEP);
    sum = lane & 2 ? z : sum;
    if (END > 4 * STEP)
        sum += __shfl_xor_sync(ALL, sum, 4 * STEP);
    return sum;
}

// Sums of an item's atoms: a lane has those at its place in each of the eight clusters.
struct Sums {
    REAL x[8], y[8], z[8];
#if ENERGY
    REAL energy[TERMS][8];
#endif
};

// Add the pairs of an entry; SPECIAL if some of them are excluded or do not count.
template <bool SPECIAL>
__device__ __forceinline__ void add_entry(const ClusterTask &task, const Entry &entry, const Four (&own)[WORDS][64],
                                          int super, Sums &sums)
{
    const int lane = threadIdx.x & 31, i = lane & 7, slot = 4 * entry.group + (lane >> 3);
    Record other;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
        other.words[w] = ((const Four *)task.second.atoms)[(size_t)slot * WORDS + w];
    const REAL x = other.atom.x + entry.x, y = other.atom.y + entry.y, z = other.atom.z + entry.z;
    // within a super cluster only pairs with j > i count
    const int end = entry.bits & 256 ? slot - 64 * super - i : 64;
    unsigned left_out = 0;  // bits of clusters
    if (SPECIAL && entry.mask >= 0)
        for (int c = 0; c < 8; c++)
            left_out |= (task.masks[8 * (size_t)entry.mask + c] >> lane & 1) << c;
    REAL jx = 0, jy = 0, jz = 0;
#if ENERGY
    REAL energy[TERMS] = {};
#endif
#pragma unroll
    for (int c = 0; c < 8; c++) {
        if (!(entry.bits >> c & 1))
            continue;
        Record me;
        me.words[0] = own[0][8 * c + i];
        const REAL dx = me.atom.x - x, dy = me.atom.y - y, dz = me.atom.z - z;
        REAL r2 = fma(dx, dx, fma(dy, dy, dz * dz));
        const bool out = SPECIAL && (left_out >> c & 1);
        if (r2 < task.UNIFORMS[CUTOFF2] && (!SPECIAL || (8 * c < end && (CORRECTS || !out)))) {
#pragma unroll
            for (int w = 1; w < WORDS; w++)
                me.words[w] = own[w][8 * c + i];
            if (SPECIAL)
                r2 = fmax(r2, (REAL)1e-12);  // excluded atoms may coincide
            const REAL rinv = rsqrt(r2);
            Table pair = {};
#if TABLES
            pair = task.table[me.atom.type * task.types + other.atom.type];
#endif
            Values v;
#if CORRECTS
            if (out)
                v = excluded_values(r2, rinv, me.atom, other.atom, pair, task.UNIFORMS);
            else
#endif
                v = pair_values(r2, rinv, me.atom, other.atom, pair, task.UNIFORMS);
            sums.x[c] = fma(v.slope, dx, sums.x[c]); jx = fma(-v.slope, dx, jx);
            sums.y[c] = fma(v.slope, dy, sums.y[c]); jy = fma(-v.slope, dy, jy);
            sums.z[c] = fma(v.slope, dz, sums.z[c]); jz = fma(-v.slope, dz, jz);
#if ENERGY
#pragma unroll
            for (int t = 0; t < TERMS; t++) {
                sums.energy[t][c] += v.energy[t];
                energy[t] += v.energy[t];
            }
#endif
        }
    }
    const REAL force = sum_of<1, 8>(jx, jy, jz);
    if (i < 3)
        atomicAdd(&task.second.forces[3 * (size_t)slot + i], force);
#if ENERGY
#pragma unroll
    for (int t = 0; t < TERMS; t++) {
        for (int step = 1; step < 8; step *= 2)
            energy[t] += __shfl_xor_sync(ALL, energy[t], step);
        if (i == 0)
            atomicAdd(&task.second.energies[(size_t)slot * TERMS + t], 0.5 * energy[t]);
    }
#endif
}

// Limits the registers, so that 36 of at most 64 warps fit into a multiprocessor of these architectures.
#if LEAN && WARPS > 1 && (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900)
#define BOUNDS __launch_bounds__(32 * WARPS, 36 / WARPS)
#else
#define BOUNDS __launch_bounds__(32 * WARPS)
#endif

// Sum the forces and energies of the items of the list. One warp per item.
extern "C" __global__ void BOUNDS force(const __grid_constant__ ClusterTask task)
{
    __shared__ Four shared[WARPS][WORDS][64];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, number = blockIdx.x * WARPS + warp;
    if (number >= task.item_count)
        return;
    const Item item = task.items[number];
    const size_t first = 64 * (size_t)item.super;
    Four (&own)[WORDS][64] = shared[warp];
    for (int n = lane; n < 64 * WORDS; n += 32)
        own[n % WORDS][n / WORDS] = ((const Four *)task.first.atoms)[first * WORDS + n];
    __syncwarp();
    Sums sums = {};
    for (int n = 0; n < item.count; n++) {
        const Entry entry = task.entries[number * task.chunk + n];
        if (entry.mask >= 0 || entry.bits & 256)
            add_entry<true>(task, entry, own, item.super, sums);
        else
            add_entry<false>(task, entry, own, item.super, sums);
    }
#pragma unroll
    for (int c = 0; c < 8; c++) {
        const size_t slot = first + 8 * c + (lane & 7);
        const REAL force = sum_of<8, 32>(sums.x[c], sums.y[c], sums.z[c]);
        if (lane < 24)
            atomicAdd(&task.first.forces[3 * slot + lane / 8], force);
#if ENERGY
#pragma unroll
        for (int t = 0; t < TERMS; t++) {
            REAL energy = sums.energy[t][c];
            energy += __shfl_xor_sync(ALL, energy, 8);
            energy += __shfl_xor_sync(ALL, energy, 16);
            if (lane < 8)
                atomicAdd(&task.first.energies[slot * TERMS + t], 0.5 * energy);
        }
#endif
    }
}

// Write the sums in the order of the atoms. One thread per place.
extern "C" __global__ void collect(const __grid_constant__ ClusterTask task)
{
    int slot;
    const Side *of = side_of(task, 64 * task.first.supers, 64 * task.second.supers, slot);
    if (!of || of->index[slot] < 0)
        return;
    const Side &side = *of;
    const size_t i = side.index[slot];
    for (int d = 0; d < 3; d++)
        side.out_forces[3 * i + d] = side.forces[3 * (size_t)slot + d];
#if ENERGY
    for (int t = 0; t < TERMS; t++)
        side.out_energies[i * TERMS + t] = side.energies[(size_t)slot * TERMS + t];
#endif
}
