// One source for CPUs and GPUs: every file of kernels includes this once. The arguments of a kernel are one struct,
// which vmdpotential.kernels.launch reads from the file to pack what Python passes.
//
//   KERNEL(name, Arguments, i) { ... }               one element; both engines
//   RANGE_KERNEL(name, Arguments, first, last) { }   elements from first to last; on CPUs, next to the KERNEL of that
//                                                    name for GPUs, where both must differ
//   TEAM_KERNEL(name, Arguments, team) { }           all workers together, with barriers (team.meet()): threads of a CPU, or
//                                                    blocks of a GPU that run at once; both engines
//   BLOCK_KERNEL(name, Arguments) { }                on GPUs, next to the RANGE_KERNEL of that name: a thread of blocks of
//                                                    128, which may share memory; `count` is the number of elements
//   NODE_KERNEL(name, Arguments, extent, i, j, k) {} one node of a lattice of the shape args.extent; both engines. The
//                                                    elements are planes on CPUs and nodes on GPUs. Also next to the
//                                                    RANGE_KERNEL of that name, over planes
//   REDUCE_KERNEL(name, Arguments, extent, sums, COUNT, join, i, j, k) {}
//                                                    likewise, but each node adds to COUNT numbers, joined[], by `join`
//                                                    (sum_of or larger_of); those of plane i are in args.sums from COUNT i on.
//                                                    The elements are planes on CPUs, and 128 for each plane on GPUs
//
// `args` is the struct in each of them.
#pragma once

#include <stdint.h>

typedef long long index_t;

#ifdef __CUDACC__

#define DEVICE __device__ __forceinline__
#define MEMBER __device__ __forceinline__  // of functions of structs
#define BLOCK_THREADS 128
#define BLOCK_KERNEL(name, Arguments) \
    extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) name(const Arguments args, index_t count)
#define KERNEL(name, Arguments, i)                                           \
    DEVICE void name##_element(const Arguments &args, index_t i);            \
    BLOCK_KERNEL(name, Arguments)                                            \
    {                                                                        \
        const index_t at = blockIdx.x * (index_t)blockDim.x + threadIdx.x;   \
        if (at < count)                                                      \
            name##_element(args, at);                                        \
    }                                                                        \
    DEVICE void name##_element(const Arguments &args, index_t i)

// The indices of the node at a place in an array with planes of (ny, nz); no memory holds more than 2^32 nodes.
struct Node { unsigned i, j, k; };

DEVICE Node find_node(index_t at, index_t ny, index_t nz)
{
    const unsigned n = (unsigned)at, row = n / (unsigned)nz, i = row / (unsigned)ny;
    return {i, row - i * (unsigned)ny, n - row * (unsigned)nz};
}

#define NODE_KERNEL(name, Arguments, extent, i, j, k)                                              \
    DEVICE void name##_node(const Arguments &args, index_t i, index_t j, index_t k);               \
    BLOCK_KERNEL(name, Arguments)                                                                  \
    {                                                                                              \
        const index_t at = blockIdx.x * (index_t)blockDim.x + threadIdx.x;                         \
        const Node node = find_node(at, args.extent[1], args.extent[2]);                           \
        if (at < count)                                                                            \
            name##_node(args, node.i, node.j, node.k);                                             \
    }                                                                                              \
    DEVICE void name##_node(const Arguments &args, index_t i, index_t j, index_t k)
#define REDUCE_KERNEL(name, Arguments, extent, sums, COUNT, join, i, j, k)                         \
    DEVICE void name##_node(const Arguments &args, index_t i, index_t j, index_t k, double *joined); \
    BLOCK_KERNEL(name, Arguments)                                                                  \
    {                                                                                              \
        __shared__ double all[COUNT][BLOCK_THREADS];                                               \
        double own[COUNT] = {};                                                                    \
        const unsigned row = (unsigned)args.extent[2], nodes = (unsigned)args.extent[1] * row;     \
        for (unsigned n = threadIdx.x; n < nodes; n += BLOCK_THREADS)                              \
            name##_node(args, blockIdx.x, n / row, n % row, own);                                  \
        for (int m = 0; m < COUNT; m++)                                                            \
            all[m][threadIdx.x] = own[m];                                                          \
        for (int half = BLOCK_THREADS / 2; half > 0; half /= 2) {                                  \
            __syncthreads();                                                                       \
            for (int m = 0; m < COUNT && threadIdx.x < half; m++)                                  \
                all[m][threadIdx.x] = join(all[m][threadIdx.x], all[m][threadIdx.x + half]);       \
        }                                                                                          \
        if (threadIdx.x < COUNT)                                                                   \
            args.sums[(index_t)COUNT * blockIdx.x + threadIdx.x] = all[threadIdx.x][0];            \
    }                                                                                              \
    DEVICE void name##_node(const Arguments &args, index_t i, index_t j, index_t k, double *joined)

#define TEAM_THREADS 1024
#define COUNTER_BYTES 128  // between the counters of teams into which the blocks of a launch may be divided

// Blocks of one launch, at most one for each multiprocessor, so that all of them run at once.
struct Team {
    int worker, workers;
    unsigned *shared;  // 0 at first: how often blocks came to a barrier

    // Threads of all blocks, and this one's place among them.
    MEMBER index_t threads() const { return (index_t)workers * TEAM_THREADS; }
    MEMBER index_t thread() const { return (index_t)worker * TEAM_THREADS + threadIdx.x; }

    // Whether this is the one thread that writes results of all.
    MEMBER bool leads() const { return worker == 0 && threadIdx.x == 0; }

    // Wait until all threads of all blocks are here, with what they have written; return whether they go on.
    MEMBER bool meet() const
    {
        __syncthreads();
        if (workers == 1)
            return true;
        if (threadIdx.x == 0) {
            __threadfence();
            const unsigned arrived = atomicAdd(shared, 1u), all = (arrived / workers + 1) * workers;
            const long long start = clock64();
            while (*(volatile unsigned *)shared < all)
                if (clock64() - start > 1LL << 36)  // half a minute: an error is better than to wait for ever
                    __trap();
            __threadfence();
        }
        __syncthreads();
        return true;
    }

    // The sum of the numbers of this block's threads, in all of them.
    MEMBER double sum(double own) const
    {
        __shared__ double parts[TEAM_THREADS];
        parts[threadIdx.x] = own;
        for (int half = TEAM_THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                parts[threadIdx.x] += parts[threadIdx.x + half];
        }
        __syncthreads();
        const double total = parts[0];
        __syncthreads();
        return total;
    }
};

#define TEAM_KERNEL(name, Arguments, team)                                                         \
    DEVICE void name##_team(const Arguments &args, const Team &team);                              \
    extern "C" __global__ void __launch_bounds__(TEAM_THREADS) name(const Arguments args, index_t shared) \
    {                                                                                              \
        name##_team(args, Team{(int)blockIdx.x, (int)gridDim.x, (unsigned *)shared});              \
    }                                                                                              \
    DEVICE void name##_team(const Arguments &args, const Team &team)

DEVICE float inverse_root(float x) { return rsqrtf(x); }
DEVICE double inverse_root(double x) { return rsqrt(x); }

// Add to a whole number to which other threads may add at the same time; return what it was.
DEVICE index_t add_atomically(index_t *sum, index_t value)
{
    return (index_t)atomicAdd((unsigned long long *)sum, (unsigned long long)value);
}

#else

#include <math.h>
#include <stdlib.h>
#if defined(_WIN32)
extern "C" __declspec(dllimport) int __stdcall SwitchToThread(void);
#else
#include <sched.h>
#endif

#define DEVICE static inline __attribute__((always_inline))
#define MEMBER inline __attribute__((always_inline))
#if defined(_WIN32)
#define EXPORTED extern "C" __declspec(dllexport)
#else
#define EXPORTED extern "C" __attribute__((visibility("default")))
#endif

DEVICE double inverse_root(double x) { return 1 / sqrt(x); }
DEVICE index_t add_atomically(index_t *sum, index_t value) { return __atomic_fetch_add(sum, value, __ATOMIC_RELAXED); }

#define KERNEL(name, Arguments, i)                                                 \
    DEVICE void name##_element(const Arguments &args, index_t i);                  \
    EXPORTED void name(const Arguments *arguments, index_t first, index_t last)    \
    {                                                                              \
        const Arguments args = *arguments;                                         \
        for (index_t at = first; at < last; at++)                                  \
            name##_element(args, at);                                              \
    }                                                                              \
    DEVICE void name##_element(const Arguments &args, index_t i)

#define RANGE_KERNEL(name, Arguments, first, last)                                 \
    DEVICE void name##_range(const Arguments &args, index_t first, index_t last);  \
    EXPORTED void name(const Arguments *arguments, index_t first, index_t last)    \
    {                                                                              \
        const Arguments args = *arguments;                                         \
        name##_range(args, first, last);                                           \
    }                                                                              \
    DEVICE void name##_range(const Arguments &args, index_t first, index_t last)

#define NODE_KERNEL(name, Arguments, extent, i, j, k)                                          \
    DEVICE void name##_node(const Arguments &args, index_t i, index_t j, index_t k);           \
    EXPORTED void name(const Arguments *arguments, index_t first, index_t last)                \
    {                                                                                          \
        const Arguments args = *arguments;                                                     \
        for (index_t a = first; a < last; a++)                                                 \
            for (index_t b = 0; b < args.extent[1]; b++)                                       \
                _Pragma("omp simd")                                                            \
                for (index_t c = 0; c < args.extent[2]; c++)                                   \
                    name##_node(args, a, b, c);                                                \
    }                                                                                          \
    DEVICE void name##_node(const Arguments &args, index_t i, index_t j, index_t k)
#define REDUCE_KERNEL(name, Arguments, extent, sums, COUNT, join, i, j, k)                     \
    DEVICE void name##_node(const Arguments &args, index_t i, index_t j, index_t k, double *joined); \
    EXPORTED void name(const Arguments *arguments, index_t first, index_t last)                \
    {                                                                                          \
        const Arguments args = *arguments;                                                     \
        for (index_t a = first; a < last; a++) {                                               \
            double own[COUNT] = {};                                                            \
            for (index_t b = 0; b < args.extent[1]; b++)                                       \
                for (index_t c = 0; c < args.extent[2]; c++)                                   \
                    name##_node(args, a, b, c, own);                                           \
            for (int m = 0; m < COUNT; m++)                                                    \
                args.sums[COUNT * a + m] = own[m];                                             \
        }                                                                                      \
    }                                                                                          \
    DEVICE void name##_node(const Arguments &args, index_t i, index_t j, index_t k, double *joined)

// Threads of one launch. They meet at barriers, and take pieces of work from a shared counter; a thread that fails or
// is interrupted makes all others leave, and kernels look at `stopped` in loops over many pieces.
struct Team {
    int worker, workers;
    int64_t *shared;  // of engines/threads: 8 cache lines; the first is not 0 if all have to stop

    bool stopped() const { return __atomic_load_n(&shared[0], __ATOMIC_RELAXED) != 0; }

    // Wait until all threads are here; return whether they go on.
    bool meet() const
    {
        if (workers == 1)
            return !stopped();
        int64_t *arrived = &shared[8], *round = &shared[16];
        const int64_t now = __atomic_load_n(round, __ATOMIC_ACQUIRE);
        if (__atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL) == workers) {
            __atomic_store_n(arrived, (int64_t)0, __ATOMIC_RELAXED);
            __atomic_store_n(round, now + 1, __ATOMIC_RELEASE);
            return !stopped();
        }
        for (int spins = 0; __atomic_load_n(round, __ATOMIC_ACQUIRE) == now && !stopped(); spins++)
            spins < 100 ? pause() : yield();
        return !stopped();
    }

    // Whether this is the one thread that writes results of all.
    bool leads() const { return worker == 0; }

    // Return this thread's part of range(total).
    void part(index_t total, index_t &first, index_t &last) const
    {
        first = total * worker / workers;
        last = total * (worker + 1) / workers;
    }

    // Let another thread run, where there are more of them than processors.
    static void yield()
    {
#if defined(_WIN32)
        SwitchToThread();
#else
        sched_yield();
#endif
    }

    static void pause()
    {
#if defined(__x86_64__) || defined(_M_X64)
        __builtin_ia32_pause();
#endif
    }
};

#define TEAM_KERNEL(name, Arguments, team)                                                     \
    DEVICE void name##_team(const Arguments &args, const Team &team);                          \
    EXPORTED void name(const Arguments *arguments, int worker, int workers, int64_t *shared)   \
    {                                                                                          \
        const Arguments args = *arguments;                                                     \
        name##_team(args, Team{worker, workers, shared});                                      \
    }                                                                                          \
    DEVICE void name##_team(const Arguments &args, const Team &team)

#endif

DEVICE double sum_of(double a, double b) { return a + b; }
DEVICE double larger_of(double a, double b) { return a < b ? b : a; }
