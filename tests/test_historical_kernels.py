"""The kernels of 2007 and 2008 compiled, for a GPU and for the host."""

import ast
import contextlib
import ctypes
import re
from pathlib import Path

import compiled
import numpy as np
import pytest
from cuda_kernels import ARCHITECTURES, compile_for_all
from helpers import EVERYTHING, definition
from historical_sums import CASES, LATTICE, atoms, run, shifted

from vmdpotential import registry
from vmdpotential.engines.cuda import build, radial
from vmdpotential.engines.cuda import kernels as interface
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.historical import bins, cutoff, direct


@pytest.mark.slow
@pytest.mark.parametrize("variant", direct.POINTS)
def test_direct_sums_compile(variant, tmp_path):
    macros = {"REAL": "float", "BATCH": direct.BATCH.get(variant, 0)}
    arch = ARCHITECTURES[list(direct.POINTS).index(variant) % 3]  # each in turn, as all read the same lines
    compile_for_all(build.source(direct.HERE / f"direct_{variant}.cu", macros), macros, tmp_path, architectures=(arch,))


@pytest.mark.slow
@pytest.mark.parametrize("compensated", [0, 1])
@pytest.mark.parametrize("bound", [shifted(12.0), EVERYTHING.bind().truncated(9.0)], ids=str)
def test_cutoff_sums_compile(bound, compensated, tmp_path):
    macros = {"REAL": "float", "COMPENSATED": compensated, "CAPACITY": bins.CAPACITY, "LISTED": cutoff.LISTED}
    task = cutoff.LIST_TASK
    same = "".join(f"static_assert({actual} == {expected});\n" for actual, expected in (
        ("sizeof(ListTask)", task.itemsize),
        *((f"__builtin_offsetof(ListTask, {name})", task.fields[name][1]) for name in task.names)))
    for turn, (name, layout) in enumerate((("largebin", ""), ("smallbin", same))):
        text = build.source(cutoff.HERE / f"cutoff_{name}.cu", macros, radial.source(bound.scaled(16.0), "float"))
        architecture = ARCHITECTURES[(turn + compensated + (bound.cutoff == 9.0)) % 3]
        compile_for_all(text + layout, macros, tmp_path, architectures=(architecture,))


def test_every_kernel_file_is_compiled():
    """Here, and that of levels in test_cuda_msm.py."""
    assert {path.name for path in direct.HERE.glob("*.cu")} == {
        "levels.cu", "cutoff_largebin.cu", "cutoff_smallbin.cu", *(f"direct_{name}.cu" for name in direct.POINTS)}


def test_a_line_of_a_kernel_elsewhere_is_named_by_its_file_alone():
    text = build.source(direct.HERE / "direct_simple.cu", {"REAL": "float"})
    assert '#line 1 "direct_simple.cu"' in text
    assert str(direct.HERE) not in text


def test_one_module_imports_pycuda():
    root = Path(__file__).parent.parent
    result = set()
    for path in [*(root / "vmdpotential").rglob("*.py"), *(root / "plugins").rglob("*.py")]:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "pycuda" in text else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else \
                [node.module or ""] if isinstance(node, ast.ImportFrom) else \
                [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)] \
                if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
                    "import_module", "__import__") else []
            if any(name.partition(".")[0] == "pycuda" for name in names):
                result.add(str(path.relative_to(root)))
    assert result == {"vmdpotential/engines/cuda/device.py"}


HOST = r"""
#include <math.h>
#include <pthread.h>
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>
using std::max; using std::min;
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
struct Three { unsigned x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
static thread_local Three threadIdx, blockIdx;
static Three gridDim;
static pthread_barrier_t barrier;
static void __syncthreads() { pthread_barrier_wait(&barrier); }
"""
LAUNCH = """
extern "C" void launch(const char *argument, unsigned nx, unsigned ny, unsigned nz)
{
    gridDim = {nx, ny, nz};
    pthread_barrier_init(&barrier, nullptr, 128);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 128; i++)
        threads.emplace_back([=] {
            threadIdx = {i, 0, 0};
            for (unsigned b = 0; b < nx * ny * nz; b++) {
                blockIdx = {b % nx, b / nx % ny, b / nx / ny};
                KERNEL(*(const ARGUMENT *)argument);
                __syncthreads();
            }
        });
    for (auto &thread : threads)
        thread.join();
}
"""


@pytest.fixture
def host(monkeypatch):
    """Let kernels run on the host, a thread of it for a thread of a block."""
    kernels = {}

    class Kernel:
        def __init__(self, file, name, macros, function):
            text = re.sub(r"^#line.*$", "", build.source(file, macros, function), flags=re.MULTILINE)
            text = re.sub(r'asm\("rsqrt\S+ %0, %1;" : "=f"\(y\) : "f"\(x\)\)', "y = 1 / sqrtf(x)", text)
            text = re.sub(r'asm\("sub.sat\S+ %0, %1, %2;" : .*\)', "y = fminf(fmaxf(a - b, 0), 1)", text)
            text = re.sub(r'asm\("fma\S+ %0, %1, %2, %3;" : .*\)', "y = fminf(fmaxf(a * b + c, 0), 1)", text)
            text = text.replace("return rsqrt(x)", "return 1 / sqrt(x)")
            argument = re.search(rf"{name}\(const (\w+) ", text)[1]
            launch = LAUNCH.replace("KERNEL", name).replace("ARGUMENT", argument)
            self.launch = compiled.library(HOST + text + launch, "-std=c++17", "-ffp-contract=off", "-pthread").launch

        def prepared_async_call(self, grid, block, stream, argument):
            assert block == (128, 1, 1)
            memory, address = aligned(argument)
            self.launch(address, *grid)
            del memory  # not before

    class Gpu:
        number, name, users = 0, "host", 0

        def __init__(self):
            self.buffers = {}

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def streams(self):
            return Event(), [(None, Event())]

        def buffer(self, name, size):
            self.buffers[name], address = aligned(b"\xff" * size)
            return address.value

        def upload(self, name, array):
            self.buffers[name], address = aligned(array.tobytes())
            return address.value

        def kernel(self, file, name, macros, function, size):
            key = file, tuple(macros.items()), function
            if key not in kernels:
                kernels[key] = Kernel(file, name, macros, function)
            return kernels[key]

        def trim(self):
            pass

    class Event:
        def record(self, stream):
            pass

        def synchronize(self):
            pass

        def time_since(self, other):
            return 1.0

    class Driver:
        @staticmethod
        def memset_d8(address, value, size):
            ctypes.memset(address, value, size)

        @staticmethod
        def memcpy_dtoh(array, address):
            ctypes.memmove(array.ctypes.data, address, array.nbytes)

    monkeypatch.setattr(interface, "least_busy_gpus", lambda count: [Gpu()])
    monkeypatch.setattr(interface, "driver", lambda: Driver)
    monkeypatch.setattr(interface, "errors", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(interface, "empty", lambda shape: np.empty(shape, np.float32))


def aligned(data):
    """Return memory with the data, and its address, a multiple of 64."""
    memory = ctypes.create_string_buffer(len(data) + 64)
    address = ctypes.addressof(memory) + -ctypes.addressof(memory) % 64
    ctypes.memmove(address, data, len(data))
    return memory, ctypes.c_void_p(address)


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "precision"), CASES)
def test_kernels_on_the_host_equal_the_definition(host, variant, precision):
    lattice = Lattice(LATTICE.origin, LATTICE.spacing, (9, 5, 9))
    positions, charges = atoms(2000)
    truncated = registry.get("interaction", "screened_coulomb").bind().truncated(5.0)
    for bound in (shifted(2.3), shifted(30.0), truncated):  # the second has a list of several launches
        values = run(variant, lattice, positions, charges, bound, precision)
        reference = definition(lattice.points(), positions, charges, bound, None).reshape(lattice.shape)
        assert np.abs(values - reference).max() < 5e-6 * np.abs(reference).max()
    cell = Cell.from_parameters(7, 8, 9, 70, 80, 110)
    values = run(variant, lattice, positions[:100], charges[:100], shifted(7.0), precision, cell)
    reference = definition(lattice.points(), positions[:100], charges[:100], shifted(7.0), cell).reshape(lattice.shape)
    assert np.abs(values - reference).max() < 2e-5 * np.abs(reference).max()
