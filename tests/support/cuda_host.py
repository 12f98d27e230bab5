"""A GPU that is not there: its kernels compiled for the host, where the threads of a block take turns.

It takes the place of :class:`vmdpotential.engines.cuda.device.Gpu` for the smooth part of a sum, for results, pairs and
points anywhere (the files of TASKS), and of files that include kernel.h; Fourier transforms are scipy's,
and the kernels of other files do nothing.
"""

import contextlib
import ctypes
import re
import zlib
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

import compiled
import numpy as np
from scipy import fft

from vmdpotential.engines.cuda import blocks, build, copies, device, driver
from vmdpotential.engines.cuda import fft as device_fft
from vmdpotential.kernels.build import is_shared
from vmdpotential.plugins.pairs import clusters, in_range
from vmdpotential.sums.cuda import kernels, result

HEAD = """
#include <cmath>
#include <cstring>
#include <setjmp.h>
#include <ucontext.h>
#define __host__
#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define asm(...)
using std::acos; using std::atan2; using std::cos; using std::erf; using std::exp; using std::fabs; using std::floor;
using std::fma; using std::fmax; using std::fmin; using std::isfinite;
using std::llrint; using std::rint; using std::sin; using std::sqrt;
template <class T> static T min(T a, T b) { return b < a ? b : a; }
template <class T> static T max(T a, T b) { return a < b ? b : a; }
struct Index { unsigned x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
static Index threadIdx, blockIdx, blockDim, gridDim;
static ucontext_t home;

// The threads of a block. Two blocks that wait for each other have one of two rooms each.
struct Room {
    ucontext_t thread[1024];
    jmp_buf left_at[1024];
    bool begun[1024], ended[1024];
    unsigned block, left;  // the block, and its threads that have not ended
};

static Room rooms[2], *room;
static char stack[2][1024][1 << 16];

static void enter(Room *wanted)
{
    room = wanted;
    blockIdx = {room->block % gridDim.x, room->block / gridDim.x % gridDim.y, room->block / gridDim.x / gridDim.y};
}

static void go_on(unsigned number)
{
    if (room->begun[number])
        _longjmp(room->left_at[number], 1);
    room->begun[number] = true;
    setcontext(&room->thread[number]);
}

// Go on with the next thread that has not ended, round and round, until this one's turn comes again. Jumps cost a
// tenth of what swapcontext does, which asks the system for the signals' mask.
static void __attribute__((noinline)) __syncthreads()
{
    const unsigned own = threadIdx.x;
    for (unsigned n = 1; n <= blockDim.x; n++) {
        const unsigned other = (own + n) % blockDim.x;
        if (room->ended[other])
            continue;
        if (other != own && !_setjmp(room->left_at[own]))
            go_on(other);
        threadIdx.x = own;
        return;
    }
    setcontext(&home);
}

// Time passes: let the other block go on with its first thread, which waits here as well, or has not begun.
static long long __attribute__((noinline)) clock64()
{
    Room *const own = room, *const other = &rooms[room == rooms];
    if (other->left && !_setjmp(own->left_at[0])) {
        enter(other);
        go_on(0);
    }
    enter(own);
    threadIdx.x = 0;
    return 0;
}

template <class T, class U> static T atomicAdd(T *sum, U value) { const T old = *sum; *sum += value; return old; }
template <class T> static T atomicMax(T *most, T value) { const T old = *most; *most = max(old, value); return old; }
template <class T> static T atomicMin(T *least, T value) { const T old = *least; *least = min(old, value); return old; }
static void atomicOr(unsigned *bits, unsigned more) { *bits |= more; }
static double __dmul_rn(double a, double b) { return a * b; }
static double rsqrt(double x) { return 1 / sqrt(x); }
static void sincospi(double x, double *sine, double *cosine) { *sine = sin(M_PI * x); *cosine = cos(M_PI * x); }
static float rsqrtf(float x) { return 1 / sqrtf(x); }
static int __ffs(unsigned x) { return __builtin_ffs(x); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
static float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
static int __float_as_int(float x) { int y; memcpy(&y, &x, 4); return y; }
static unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
static void __threadfence() {}
static void __trap() {}

// What the lanes of a warp tell each other; all threads of the block have to call them, in blocks of one warp at best.
static double lanes[1024];
static void __syncwarp() { __syncthreads(); }

template <class T> static T __shfl_sync(unsigned, T value, int lane)
{
    lanes[threadIdx.x] = value;
    __syncthreads();
    const T other = (T)lanes[(threadIdx.x & ~31u) | (lane & 31)];
    __syncthreads();
    return other;
}

template <class T> static T __shfl_xor_sync(unsigned all, T value, int bits)
{
    return __shfl_sync(all, value, (threadIdx.x & 31) ^ bits);
}

template <class T> static T __shfl_up_sync(unsigned all, T value, int lanes)
{
    return __shfl_sync(all, value, max((int)(threadIdx.x & 31) - lanes, 0));
}

static unsigned __ballot_sync(unsigned, bool mine)
{
    lanes[threadIdx.x] = mine;
    __syncthreads();
    unsigned bits = 0;
    for (int lane = 0; lane < 32; lane++)
        bits |= (lanes[(threadIdx.x & ~31u) | lane] != 0) << lane;
    __syncthreads();
    return bits;
}

static bool __any_sync(unsigned all, bool mine) { return __ballot_sync(all, mine); }
"""

TAIL = """
static void (*kernel)(const TASK);
static const TASK *task;

static void work(int number)
{
    threadIdx = {(unsigned)number, 0, 0};
    kernel(*task);
    room->ended[number] = true;
    room->left--;
    __syncthreads();
}

extern "C" void run(void (*wanted)(const TASK), const TASK *argument, const unsigned *grid, unsigned threads)
{
    kernel = wanted;
    task = argument;
    blockDim = {threads, 1, 1};
    gridDim = {grid[0], grid[1], grid[2]};
    for (unsigned n = 0; n < grid[0] * grid[1] * grid[2]; n += 2) {
        for (Room &each : rooms) {
            each.block = n + (&each - rooms);
            each.left = each.block < grid[0] * grid[1] * grid[2] ? threads : 0;
            for (unsigned i = 0; i < each.left; i++) {
                each.begun[i] = each.ended[i] = false;
                getcontext(&each.thread[i]);
                each.thread[i].uc_stack.ss_sp = stack[&each - rooms][i];
                each.thread[i].uc_stack.ss_size = sizeof(stack[0][i]);
                makecontext(&each.thread[i], (void (*)())work, 1, (int)i);
            }
        }
        for (volatile unsigned r = 0; r < 2; r++) {
            getcontext(&home);  // where a block goes on when it has ended
            if (rooms[r].left) {
                enter(&rooms[r]);
                go_on(0);
            }
        }
    }
}
"""

#: The argument of a file's kernels.
TASKS = {"mesh.cu": "MeshTask", "levels.cu": "LevelTask", "result.cu": "ResultTask",
         "sort.cu": "Task", "near.cu": "Task", "points.cu": "PointTask",
         "cutoff_largebin.cu": "Task",
         "cutoff_smallbin.cu": "ListTask"}

#: Instructions of a GPU that results depend on, and what they compute.
INSTRUCTIONS = ((r'asm\("rsqrt\S+ %0, %1;" : .*\)', "y = 1 / sqrtf(x)"),
                (r'asm\("sub.sat\S+ %0, %1, %2;" : .*\)', "y = fminf(fmaxf(a - b, 0), 1)"))


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

    number, name, multiprocessors = 0, "host", 2
    bound = device.Gpu.bound

    def __init__(self):
        self.buffers, self.kept, self.shared, self.libraries = {}, {}, {}, {}
        self.functions, self._barriers = {}, None
        self.used = set()

    def buffer(self, name, size):
        self.buffers[name] = np.full(size, 0xFF, np.uint8)  # not a number, for a kernel that reads what was not written
        return self.buffers[name].ctypes.data

    def send(self, name, array, stream):
        return self.upload(name, array)

    def upload(self, name, array):
        self.buffers[name] = np.ascontiguousarray(array)
        return self.buffers[name].ctypes.data

    def release_timers(self, timers):
        pass

    def keep(self, array):
        array = np.array(array, order="C")
        self.kept[array.ctypes.data] = array
        return SimpleNamespace(address=array.ctypes.data)

    def share(self, key, make):
        if key not in self.shared:
            self.shared[key] = self.keep(make())
        return self.shared[key]

    def take(self, size):
        return self.keep(np.full(size, 0xFF, np.uint8))

    @cached_property
    def stage(self):
        return blocks.PinnedStage()

    timer = SimpleNamespace(record=lambda stream=None: None, synchronize=lambda: None, time_since=lambda start: 1.0)

    def streams(self):
        return self.timer, [(self.timer, self.timer)]

    def timers(self):
        return self.timer, self.timer

    def free(self):
        return 2**30

    def trim(self):
        pass

    require, start, barriers = device.Gpu.require, device.Gpu.start, device.Gpu.barriers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def plan(self, key, make):
        return make()

    def kernel(self, file, function, macros, radial, size):
        shared = is_shared(build.HERE / file)

        def run(grid, block, stream, argument, shared_size=0):
            self.used.add(function)
            if shared or Path(file).name in TASKS:
                assert shared_size <= 48_000
                library = (self.shared_library(file, function, macros, radial) if shared
                           else self.library(file, macros, radial))
                name = "packed" if shared else function
                library.run(library[name], argument, (ctypes.c_uint * 3)(*grid), ctypes.c_uint(block[0]))

        return SimpleNamespace(prepared_async_call=run, prepared_call=lambda grid, block, argument: run(
            grid, block, None, argument))

    def shared_library(self, file, function, macros, radial):
        """Return a kernel of a file for CPUs and GPUs, by what is compiled for GPUs."""
        name = f"{Path(file).name} {function}" + "".join(map(str, macros.values())) + str(zlib.crc32(radial.encode()))
        if name not in self.libraries:
            struct = re.search(rf"KERNEL\({function}, ([\w<>]+)", Path(file).read_text())[1]
            packed = (f"struct Packed {{ {struct} args; index_t count; }};\n"
                      f'extern "C" void packed(const Packed packed) {{ {function}(packed.args, packed.count); }}\n')
            text = f"#define __CUDACC__\n{HEAD}{build.source(file, macros, radial)}{packed}#define TASK Packed\n{TAIL}"
            self.libraries[name] = compiled.library(text, "-U_FORTIFY_SOURCE", "-std=c++17", "-w")
        return self.libraries[name]

    def library(self, file, macros, radial=""):
        name = Path(file).name + "".join(map(str, macros.values())) + str(zlib.crc32(radial.encode()))
        if name not in self.libraries:
            text = build.source(file, macros | {"TASK": TASKS[Path(file).name]}, radial)
            for instruction, computed in INSTRUCTIONS:
                text = re.sub(instruction, computed, text)
            text = text.replace("extern __shared__ double dynamic[]", "static double dynamic[6000]")
            self.libraries[name] = compiled.library(HEAD + text + TAIL, "-U_FORTIFY_SOURCE", "-std=c++17", "-w")
        return self.libraries[name]

    def memset(self, address, value, count, stream):
        ctypes.memset(address, value, 4 * count)

    def copy(self, array, address, stream=None):
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy_back(self, address, array, stream=None):
        ctypes.memmove(address, array.ctypes.data, array.nbytes)


def install(monkeypatch):
    """Return a host that takes the place of all GPUs; its warps come one a block."""
    host = HostGpu()
    nothing = type("Nothing", (Exception,), {})
    calls = SimpleNamespace(
        memset_d32_async=host.memset, memset_d32=lambda address, value, count: host.memset(address, value, count, None),
        memset_d8=ctypes.memset, memcpy_dtod=ctypes.memmove, memcpy_dtoh=host.copy,
        memcpy_dtoh_async=host.copy, memcpy_htod=host.copy_back, memcpy_htod_async=host.copy_back,
        pagelocked_empty=np.empty, mem_alloc=lambda size: host.take(size).address, Event=lambda: host.timer,
        MemoryError=nothing, Error=nothing, Context=SimpleNamespace(synchronize=lambda: None))
    for module in (blocks, copies, device, driver, kernels, result):
        monkeypatch.setattr(module, "cuda_driver", lambda: calls)
    for module in (device, driver, kernels, result):
        monkeypatch.setattr(module, "converted_errors", lambda *_: contextlib.nullcontext())
    for module in (device, kernels):
        monkeypatch.setattr(module, "least_busy_gpus", lambda count: [host])
    for module, name in ((result.pinned, "empty_pinned"), (kernels, "empty_pinned")):
        monkeypatch.setattr(module, name, lambda shape, dtype=np.float32: np.empty(shape, dtype))
    monkeypatch.setattr(device_fft, "Transform", Transform)
    monkeypatch.setattr(clusters, "LIST_THREADS", 32)
    monkeypatch.setattr(in_range, "WARPS", dict.fromkeys(in_range.WARPS, 1))
    return host
