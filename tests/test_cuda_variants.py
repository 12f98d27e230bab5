"""The cutoff sums of 2008 without a GPU: bins against brute force, and the kernels compiled for the host."""

import contextlib
import csv
import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import definition

from vmdpotential import registry
from vmdpotential.engines.cuda import bins, build, device, pinned
from vmdpotential.errors import MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell

CASES = [(variant, precision) for variant, precisions in bins.CUTOFF.items() for precision in precisions]
LATTICE = Lattice(np.array([-3.0, 1.7, 2.2]), np.array([0.5, 0.7, 0.9]), (33, 20, 9))


def shifted(cutoff):
    return registry.get("interaction", "shifted_coulomb").bind(cutoff=cutoff)


def atoms(count, low=-10, high=25, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(low, high, (count, 3)), rng.normal(size=count)


@pytest.mark.parametrize(("spacing", "side", "reach"), [
    (0.5, 4.0, 12.0), ([0.5, 0.7, 0.9], 4.0, 9.0), (0.5, 2.9, 7.0), (2.0, 4.0, 3.0), (0.2, 4.0, 0.7)])
def test_the_list_reaches_all_that_is_in_range_of_a_region(spacing, side, reach):
    lattice = Lattice(np.array([-3.0, 1.7, 2.2]), spacing, (33, 20, 9))
    found, homes, steps = bins.small_bins(lattice, reach, side)
    positions = np.random.default_rng(1).uniform(lattice.origin - reach, lattice.last + reach, (400, 3))
    number = found.numbers(positions)
    assert (number >= 0).all()
    for region in np.ndindex(*(len(h) for h in homes)):
        first = 8 * np.array(region)
        last = np.minimum(first + 7, np.array(lattice.shape) - 1)
        low, high = lattice.origin + first * lattice.spacing, lattice.origin + last * lattice.spacing
        gap = np.maximum(0, np.maximum(low - positions, positions - high))
        x, y, z = (homes[d][region[d]] for d in range(3))
        home = (x * found.shape[1] + y) * found.shape[2] + z
        listed = set((home + steps).tolist())
        assert min(listed) >= 0
        assert max(listed) < found.size
        assert {int(n) for n in number[(gap**2).sum(1) < reach**2]} <= listed


def test_the_list_of_the_paper_is_short():
    """Regions of 4 A in bins of 4 A: no bin is listed that is out of range of the home bin's inside."""
    _, _, steps = bins.small_bins(Lattice(np.zeros(3), 0.5, (200, 200, 200)), 12.0, 4.0)
    place = np.arange(-4, 5)
    gap = np.maximum(0, np.maximum(4 * place - 3.75, 0.25 - 4 * (place + 1))) ** 2
    assert len(steps) == np.count_nonzero(gap[:, None, None] + gap[:, None] + gap < 144)


def test_bins_hold_every_atom_once_or_leave_it_over():
    positions, charges = atoms(6000)
    charges[::5] = 0
    four = np.column_stack([positions, charges]).astype(np.float32)
    found = bins.small_bins(LATTICE, 6.0, 4.0)[0]
    filled, overflow = bins.fill(found, positions, four)
    number = found.numbers(positions)
    wanted = np.flatnonzero((number >= 0) & (charges != 0))
    counts = np.bincount(number[wanted], minlength=found.size)
    assert len(overflow) == np.maximum(counts - bins.CAPACITY, 0).sum() > 0
    full = filled[..., 3] != 0
    np.testing.assert_array_equal(full.sum(1), np.minimum(counts, bins.CAPACITY))
    assert (np.diff(full.astype(int), axis=1) <= 0).all()  # from the front
    kept = np.setdiff1d(wanted, overflow)
    np.testing.assert_array_equal(np.sort(filled[full], axis=0), np.sort(four[kept], axis=0))


def test_large_bins_are_sorted_runs():
    positions, charges = atoms(500)
    four = np.column_stack([positions, charges]).astype(np.float32)
    planned = bins.plan("largebin", LATTICE, positions, four, 5.0)
    starts, sorted_atoms = planned.arrays["starts"], planned.arrays["atoms"]
    number = planned.bins.numbers(sorted_atoms[:, :3].astype(float))
    assert starts[-1] == len(sorted_atoms) == np.count_nonzero(planned.bins.numbers(positions) >= 0)
    for k in range(planned.bins.size):
        assert (number[starts[k] : starts[k + 1]] == k).all()
    assert (planned.bins.side >= np.maximum(5.0, 8 * LATTICE.spacing)).all()


def test_overlap_takes_bins_of_which_few_overflow():
    positions, charges = atoms(6000, 0, 25)
    four = np.column_stack([positions, charges]).astype(np.float32)
    lattice = Lattice(np.zeros(3), 0.5, (50, 50, 50))
    few = len(bins.plan("overlap", lattice, positions, four, 8.0).overflow)
    assert few <= bins.OVERFLOW * len(positions) < len(bins.plan("smallbin", lattice, positions, four, 8.0).overflow)
    assert bins.overlap_side(lattice, 8.0, np.ones((100, 3))) >= 0.9 * bins.SMALLEST  # no side is small enough


def test_a_long_list_takes_several_launches():
    steps = np.arange(2 * bins.LISTED + 5)
    tasks = [np.frombuffer(t, bins.LIST_TASK)[0] for t in bins.list_tasks(np.zeros((), bins.maps.TASK), steps)]
    assert [t["count"] for t in tasks] == [bins.LISTED, bins.LISTED, 5]
    np.testing.assert_array_equal(np.concatenate([t["steps"][: t["count"]] for t in tasks]), steps)
    assert bins.LIST_TASK.itemsize <= 4096  # bytes of arguments that every GPU takes


def test_what_does_not_fit_together_is_refused(monkeypatch):
    good = np.zeros((2, 3)), np.ones(2)
    with pytest.raises(UsageError, match="no variant 'best' of the cutoff sum"):
        bins.cutoff("best", LATTICE, *good, shifted(5.0))
    with pytest.raises(UsageError, match="largebin has no precision 'compensated'; choose single"):
        bins.cutoff("largebin", LATTICE, *good, shifted(5.0), "compensated")
    with pytest.raises(UsageError, match="no cutoff"):
        bins.cutoff("overlap", LATTICE, *good, registry.get("interaction", "coulomb").bind())
    assert not bins.cutoff("overlap", LATTICE, np.zeros((0, 3)), np.zeros(0), shifted(5.0)).any()
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1k")
    with pytest.raises(MemoryPlanError, match="bins needs"):
        bins.cutoff("smallbin", LATTICE, *good, shifted(5.0))


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
def host(tmp_path, monkeypatch):
    """Let kernels run on the host, a thread of it for a thread of a block."""
    compiler = shutil.which("g++") or pytest.skip("g++ is not installed")
    compiled = {}

    class Kernel:
        def __init__(self, file, name, macros, radial):
            text = re.sub(r"^#line.*$", "", build.source(file, macros, radial), flags=re.MULTILINE)
            text = re.sub(r'asm\("rsqrt\S+ %0, %1;" : "=f"\(y\) : "f"\(x\)\)', "y = 1 / sqrtf(x)", text)
            text = re.sub(r'asm\("sub.sat\S+ %0, %1, %2;" : .*\)', "y = fminf(fmaxf(a - b, 0), 1)", text)
            text = re.sub(r'asm\("fma\S+ %0, %1, %2, %3;" : .*\)', "y = fminf(fmaxf(a * b + c, 0), 1)", text)
            text = text.replace("return rsqrt(x)", "return 1 / sqrt(x)")
            argument = re.search(rf"{name}\(const (\w+) ", text)[1]
            launch = LAUNCH.replace("KERNEL", name).replace("ARGUMENT", argument)
            path = tmp_path / f"{len(compiled)}.cpp"
            path.write_text(HOST + text + launch)
            subprocess.run([compiler, "-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-pthread",
                            "-o", path.with_suffix(".so"), path], check=True)
            self.launch = ctypes.CDLL(str(path.with_suffix(".so"))).launch

        def prepared_async_call(self, grid, block, stream, argument):
            assert block == (128, 1, 1)
            memory, address = aligned(argument)
            self.launch(address, *grid)
            del memory  # not before

    class Gpu:
        number, name = 0, "host"

        def __init__(self):
            self.buffers = {}

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def lanes(self):
            return Event(), [(None, Event())]

        def buffer(self, name, size):
            self.buffers[name], address = aligned(b"\xff" * size)
            return address.value

        def upload(self, name, array):
            self.buffers[name], address = aligned(array.tobytes())
            return address.value

        def kernel(self, file, name, macros, radial, size):
            key = file, tuple(macros.items()), radial
            if key not in compiled:
                compiled[key] = Kernel(file, name, macros, radial)
            return compiled[key]

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

    monkeypatch.setattr(device, "gpus", lambda: (Gpu(),))
    monkeypatch.setattr(device, "driver", lambda: Driver)
    monkeypatch.setattr(device, "errors", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(pinned, "empty", lambda shape: np.empty(shape, np.float32))


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
        values = bins.cutoff(variant, lattice, positions, charges, bound, precision)
        reference = definition(lattice.points(), positions, charges, bound).reshape(lattice.shape)
        assert np.abs(values - reference).max() < 5e-6 * np.abs(reference).max()
    cell = Cell.from_parameters(7, 8, 9, 70, 80, 110)
    values = bins.cutoff(variant, lattice, positions[:100], charges[:100], shifted(7.0), precision, cell)
    reference = definition(lattice.points(), positions[:100], charges[:100], shifted(7.0), cell).reshape(lattice.shape)
    assert np.abs(values - reference).max() < 2e-5 * np.abs(reference).max()


@pytest.mark.slow
def test_the_paper_is_reproduced_without_a_gpu(tmp_path):
    script = Path(__file__).parent.parent / "scripts" / "reproduce_cutoff_paper"

    def run(*arguments):
        return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True,
                              env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})

    done = run("-o", str(tmp_path), "--engine", "cpu", "--largest", "1e4")
    assert done.returncode == 0, done.stderr
    tables = {}
    for name in ("table2", "table3", "table4", "direct"):
        with open(tmp_path / f"{name}.csv", newline="") as file:
            tables[name] = list(csv.DictReader(file))
    assert {row["volume"] for row in tables["table3"]} == {"1000", "3162", "10000"}
    assert tables["table3"][0]["speedup"] == "1.0"
    mean = {row["precision"]: float(row["mean"]) for row in tables["table2"]}
    assert mean["compensated"] < mean["single"] < 1e-5
    assert all(row["published_mean"] == "" for row in tables["table2"])  # not known, so not said
    share = {row["variant"]: float(row["overflow"]) for row in tables["table4"]}
    assert share["largebin"] == 0 <= share["overlap"] <= bins.OVERFLOW < share["smallbin"]
    more = {row["variant"]: float(row["tested_per_pair"]) for row in tables["table4"]}
    assert more["largebin"] > more["smallbin"] > 1
    assert "published: Tesla C870" in done.stdout
    for name in ("figure4_time", "figure5_speedup", "figure6_pairs", "figure7_accuracy"):
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    wrong = run("--largest", "5")
    assert (wrong.returncode, wrong.stdout) == (2, "")
