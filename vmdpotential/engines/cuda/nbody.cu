// Sums over all pairs. A thread has EACH atoms; the others are read to shared memory, THREADS at a time. Each block
// along y sums one part of the others, and the last one to finish adds up the parts. Macros set by the host:
//   THREADS   number of threads of a block
//   EACH      number of atoms of a thread
//   UNROLL    number of others in an iteration of the unrolled loop
// Every atom has a sorted list of the others that it excludes, itself included. The list is used only for tiles of
// others that contain one of them.

constexpr int unrolled = UNROLL;  // macros are not expanded in pragmas

struct Sums {
    REAL x, y, z;
#if JERK
    REAL jx, jy, jz;
#endif
#if ENERGY
    REAL energy[TERMS];
#endif
};

struct Totals {
    REAL x, y, z;
#if JERK
    REAL jx, jy, jz;
#endif
#if ENERGY
    double energy[TERMS];
#endif
};

template <class A, class B>
__device__ __forceinline__ void add(A &sums, const B &part)
{
    sums.x += part.x; sums.y += part.y; sums.z += part.z;
#if JERK
    sums.jx += part.jx; sums.jy += part.jy; sums.jz += part.jz;
#endif
#if ENERGY
    for (int t = 0; t < TERMS; t++)
        sums.energy[t] += part.energy[t];
#endif
}

// Add the contributions of j to i; if `out`, the correction of an excluded pair, and nothing for the atom itself.
template <bool MAY_BE_OUT>
__device__ __forceinline__ void add_pair(Sums &sums, const Atom &i, const Atom &j, const Four &vi, const Four &vj,
                                         const AllPairsTask &task, bool out, bool itself)
{
    const REAL dx = i.x - j.x, dy = i.y - j.y, dz = i.z - j.z;
    REAL r2 = fma(dx, dx, fma(dy, dy, fma(dz, dz, task.UNIFORMS[SOFTENING2])));
    if (MAY_BE_OUT)
        r2 = fmax(r2, (REAL)1e-12);  // excluded atoms may coincide
    const REAL rinv = rsqrt(r2);
    Table pair = {};
#if TABLES
    pair = task.table[i.type * task.types + j.type];
#endif
    Values v = pair_values(r2, rinv, i, j, pair, task.UNIFORMS);
    if (MAY_BE_OUT && out) {
        v = Values();
#if CORRECTS
        if (!itself)
            v = excluded_values(r2, rinv, i, j, pair, task.UNIFORMS);
#endif
    }
    sums.x = fma(v.slope, dx, sums.x); sums.y = fma(v.slope, dy, sums.y); sums.z = fma(v.slope, dz, sums.z);
#if JERK
    const REAL ux = vi.x - vj.x, uy = vi.y - vj.y, uz = vi.z - vj.z;
    const REAL bend = v.bend * (TWICE_BEND * fma(dx, ux, fma(dy, uy, dz * uz)));
#if BEND_BY_SLOPE  // saves one multiplication
    sums.jx = fma(v.slope, fma(bend, dx, ux), sums.jx);
    sums.jy = fma(v.slope, fma(bend, dy, uy), sums.jy);
    sums.jz = fma(v.slope, fma(bend, dz, uz), sums.jz);
#else
    sums.jx = fma(v.slope, ux, fma(bend, dx, sums.jx));
    sums.jy = fma(v.slope, uy, fma(bend, dy, sums.jy));
    sums.jz = fma(v.slope, uz, fma(bend, dz, sums.jz));
#endif
#endif
#if ENERGY
    for (int t = 0; t < TERMS; t++)
        sums.energy[t] += v.energy[t];
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) all_pairs(const AllPairsTask task)
{
    __shared__ Atom others[THREADS];
    __shared__ Four velocities[JERK ? THREADS : 1];
    __shared__ int is_last;
    Atom own[EACH];
    Four velocity[EACH] = {};
    Totals totals[EACH] = {};
    int next[EACH], place[EACH], end_of[EACH];  // next excluded atom, its index in the list, and end of the list
    const int first = blockIdx.x * THREADS * EACH + threadIdx.x;
    const int from = blockIdx.y * task.part, end = min(task.others_count, from + task.part);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = min(first + k * THREADS, task.count - 1);
        own[k] = task.atoms[i];
#if JERK
        velocity[k] = task.velocities[i];
#endif
        place[k] = task.starts[i];
        end_of[k] = task.starts[i + 1];
        while (place[k] < end_of[k] && task.excluded[place[k]] < from)
            place[k]++;
        next[k] = place[k] < end_of[k] ? task.excluded[place[k]] : 0x7fffffff;
    }
    for (int base = from; base < end; base += THREADS) {
        __syncthreads();
        const int mine = base + threadIdx.x;
        if (mine < end) {
            others[threadIdx.x] = task.others[mine];
#if JERK
            velocities[threadIdx.x] = task.other_velocities[mine];
#endif
        }
        __syncthreads();
        Sums sums[EACH] = {};
        bool special = base + THREADS > end;
#pragma unroll
        for (int k = 0; k < EACH; k++)
            special = special || next[k] < base + THREADS;
        if (__any_sync(~0u, special)) {
            for (int word = base; word < min(base + THREADS, end); word += 32) {
                unsigned out[EACH];
#pragma unroll
                for (int k = 0; k < EACH; k++) {
                    out[k] = 0;
                    while (next[k] < word + 32) {
                        out[k] |= 1u << (next[k] - word);
                        place[k]++;
                        next[k] = place[k] < end_of[k] ? task.excluded[place[k]] : 0x7fffffff;
                    }
                }
                for (int t = 0; t < min(32, end - word); t++) {
                    const int n = word - base + t;
#pragma unroll
                    for (int k = 0; k < EACH; k++)
                        add_pair<true>(sums[k], own[k], others[n], velocity[k], velocities[JERK ? n : 0], task,
                                       out[k] >> t & 1, task.same && word + t == first + k * THREADS);
                }
            }
        } else {
#pragma unroll unrolled
            for (int n = 0; n < THREADS; n++) {
                const Atom other = others[n];
                const Four its = velocities[JERK ? n : 0];
#pragma unroll
                for (int k = 0; k < EACH; k++)
                    add_pair<false>(sums[k], own[k], other, velocity[k], its, task, false, false);
            }
        }
#pragma unroll
        for (int k = 0; k < EACH; k++)
            add(totals[k], sums[k]);
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = first + k * THREADS;
        if (i < task.count)
            task.totals[(size_t)blockIdx.y * task.count + i] = totals[k];
    }
    if (gridDim.y == 1)
        return;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicAdd(&task.ended[blockIdx.x], 1) == (int)gridDim.y - 1;
    __syncthreads();
    if (!is_last)
        return;
    __threadfence();
    for (int k = 0; k < EACH; k++) {
        const int i = first + k * THREADS;
        if (i >= task.count)
            continue;
        Totals sum = {};
        for (int part = 0; part < gridDim.y; part++)
            add(sum, task.totals[(size_t)part * task.count + i]);
        task.totals[i] = sum;
    }
    if (threadIdx.x == 0)
        task.ended[blockIdx.x] = 0;  // for the next run
}
