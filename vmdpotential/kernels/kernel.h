// One source for CPUs and GPUs: every file of kernels includes this once. The arguments of a kernel are one struct,
// which vmdpotential.kernels.launch reads from the file to pack what Python passes.
//
//   KERNEL(name, Arguments, i) { ... }               one element; both engines
//   RANGE_KERNEL(name, Arguments, first, last) { }   elements from first to last; on CPUs, next to the KERNEL of that
//                                                    name for GPUs, where both must differ
//   TEAM_KERNEL(name, Arguments, team) { }           all threads together; on CPUs, with barriers (team.meet())
//   BLOCK_KERNEL(name, Arguments) { }                on GPUs, next to the RANGE_KERNEL of that name: a thread of blocks of
//                                                    128, which may share memory; `count` is the number of elements
//
// `args` is the struct in each of them.
#pragma once

#include <stdint.h>

typedef long long index_t;

#ifdef __CUDACC__

#define DEVICE __device__ __forceinline__
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
