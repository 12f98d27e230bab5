"""A GPU that is not there: mesh.cu compiled for the host, where threads of a block are threads with a barrier.

It takes the place of :class:`vmdpotential.engines.cuda.device.Gpu` for the mesh part of a sum; Fourier
transforms are scipy's, and the kernels of other files do nothing.
"""

import ctypes
import subprocess
from types import SimpleNamespace

import numpy as np
from scipy import fft

from vmdpotential.engines.cuda import build

HEAD = """
#include <cmath>
#include <pthread.h>
#include <thread>
#include <vector>
#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define asm(...)
using std::fabs; using std::floor; using std::fma; using std::fmax; using std::fmin; using std::llrint; using std::sqrt;
template <class T> static T min(T a, T b) { return b < a ? b : a; }
struct Index { unsigned x, y, z; };
static thread_local Index threadIdx;
static Index blockIdx, blockDim;
static pthread_barrier_t barrier;
static void __syncthreads() { pthread_barrier_wait(&barrier); }
static void atomicAdd(unsigned long long *sum, unsigned long long value)
{ __atomic_fetch_add(sum, value, __ATOMIC_RELAXED); }
static double rsqrt(double x) { return 1 / sqrt(x); }
"""

TAIL = """
extern "C" void run(void (*kernel)(const MeshTask), const MeshTask *task, const unsigned *grid, unsigned threads,
                    bool with_barriers)
{
    blockDim = {threads, 1, 1};
    const unsigned blocks = grid[0] * grid[1] * grid[2];
    auto choose = [&](unsigned n) { blockIdx = {n % grid[0], n / grid[0] % grid[1], n / grid[0] / grid[1]}; };
    if (!with_barriers) {
        for (unsigned n = 0; n < blocks; n++)
            for (choose(n), threadIdx = {0, 0, 0}; threadIdx.x < threads; threadIdx.x++)
                kernel(*task);
        return;
    }
    pthread_barrier_init(&barrier, nullptr, threads);
    auto work = [&](unsigned i) {
        threadIdx = {i, 0, 0};
        for (unsigned n = 0; n < blocks; n++) {
            __syncthreads();
            if (i == 0)
                choose(n);
            __syncthreads();
            kernel(*task);
        }
    };
    std::vector<std::thread> pool;
    for (unsigned i = 1; i < threads; i++)
        pool.emplace_back(work, i);
    work(0);
    for (auto &thread : pool)
        thread.join();
    pthread_barrier_destroy(&barrier);
}
"""


class Transform:
    """The interface of engines.cuda.fft.Transform."""

    def __init__(self, shape, real, stream):
        self.shape, self.real = shape, np.dtype(real)

    def _values(self, address):
        shape = (*self.shape[:2], 2 * (self.shape[2] // 2 + 1))
        kind = np.ctypeslib.as_ctypes_type(self.real)
        return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(kind)), shape)

    def forward(self, address):
        values = self._values(address)
        values.view(np.result_type(self.real, np.complex64))[:] = fft.rfftn(values[..., : self.shape[2]].astype(float))

    def inverse(self, address):
        values = self._values(address)
        spectrum = values.view(np.result_type(self.real, np.complex64)).astype(complex)
        values[..., : self.shape[2]] = fft.irfftn(spectrum, s=self.shape, norm="forward")


class HostGpu:
    """What a mesh sum asks of a GPU, in ordinary memory."""

    def __init__(self, folder):
        self.folder, self.buffers, self.libraries, self.used = folder, {}, {}, set()

    def buffer(self, name, size):
        self.buffers[name] = np.full(size, 0xFF, np.uint8)  # not a number, for whoever reads what was not written
        return self.buffers[name].ctypes.data

    def upload(self, name, array):
        self.buffers[name] = np.ascontiguousarray(array)
        return self.buffers[name].ctypes.data

    def plan(self, key, make):
        return make()

    def kernel(self, file, function, macros, radial, size):
        def run(grid, block, stream, argument, shared_size=0):
            self.used.add(function)
            if file == "mesh.cu":
                assert shared_size <= 48_000
                library = self.library(macros)
                library.run(library[function], argument, (ctypes.c_uint * 3)(*grid), ctypes.c_uint(block[0]),
                            function in ("spread", "interpolate"))

        return SimpleNamespace(prepared_async_call=run)

    def library(self, macros):
        name = "{REAL}{ORDER}".format(**macros)
        if name not in self.libraries:
            text = build.source("mesh.cu", macros).replace("extern __shared__ double dynamic[]",
                                                           "static double dynamic[6000]")
            source, target = self.folder / f"{name}.cpp", self.folder / f"{name}.so"
            source.write_text(HEAD + text + TAIL)
            subprocess.run(["g++", "-O1", "-std=c++17", "-shared", "-fPIC", "-w", "-pthread", "-o", target, source],
                           check=True)
            self.libraries[name] = ctypes.CDLL(str(target))
        return self.libraries[name]

    def memset(self, address, value, count, stream):
        ctypes.memset(address, value, 4 * count)
