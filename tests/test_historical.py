"""The kernels of 2007 and 2008 without a GPU: bins against brute force, and kernels compiled, for the host too."""

import ast
import contextlib
import csv
import ctypes
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import EVERYTHING, definition
from test_engine_cuda import compile_for_all

from vmdpotential import registry
from vmdpotential.engines.cuda import build, device, maps, pinned, radial
from vmdpotential.errors import MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.methods import Charges, Request
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import METHODS, bins, cutoff, direct

CASES = [(name, precision) for name in METHODS["cutoff"] for precision in registry.get("method", name).precisions]
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
    planned = bins.place("largebin", LATTICE, positions, four, 5.0)
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
    few = len(bins.place("overlap", lattice, positions, four, 8.0).overflow)
    assert few <= bins.OVERFLOW * len(positions) < len(bins.place("smallbin", lattice, positions, four, 8.0).overflow)
    assert bins.overlap_side(lattice, 8.0, np.ones((100, 3))) >= 0.9 * bins.SMALLEST  # no side is small enough


def test_a_long_list_takes_several_launches():
    steps = np.arange(2 * cutoff.LISTED + 5)
    tasks = [np.frombuffer(t, cutoff.LIST_TASK)[0] for t in cutoff.list_tasks(np.zeros((), maps.TASK), steps)]
    assert [t["count"] for t in tasks] == [cutoff.LISTED, cutoff.LISTED, 5]
    np.testing.assert_array_equal(np.concatenate([t["steps"][: t["count"]] for t in tasks]), steps)
    assert cutoff.LIST_TASK.itemsize <= 4096  # bytes of arguments that every GPU takes


def request(method, bound, lattice=LATTICE, precision="single", cell=None, positions=None, charges=None):
    positions, charges = (np.zeros((2, 3)), np.ones(2)) if positions is None else (positions, charges)
    return Request(lattice, cell, bound, Charges.of(positions, charges, cell), precision)


def run(name, lattice, positions, charges, bound, precision="single", cell=None):
    """Return the map of a registered method."""
    method = registry.get("method", name)
    wanted = request(method, bound, lattice, precision, cell, positions, charges)
    return method.plan(wanted, registry.get("engine", "cuda")).run(positions, charges).values()


def test_what_does_not_fit_together_is_refused(monkeypatch):
    cpu, cuda = registry.get("engine", "cpu"), registry.get("engine", "cuda")
    coulomb = registry.get("interaction", "coulomb").bind()
    largebin, overlap, simple = (registry.get("method", name) for name in ("largebin", "overlap", "simple"))
    for method, bound in ((largebin, shifted(5.0)), (simple, coulomb)):
        with pytest.raises(UsageError, match=f"{method.name}: runs on a GPU alone; use engine=cuda"):
            method.plan(request(method, bound), cpu)
        with pytest.raises(UsageError, match="has no double precision; use precision=single"):
            method.plan(request(method, bound, precision="double"), cuda)
    with pytest.raises(UsageError, match="needs an interaction with a cutoff"):
        overlap.plan(request(overlap, coulomb), cuda)
    with pytest.raises(UsageError, match="cannot do a boundary that is periodic"):
        simple.plan(request(simple, coulomb, cell=Cell.from_parameters(7, 8, 9)), cuda)
    with pytest.raises(UsageError, match="sums coulomb alone"):
        simple.plan(request(simple, shifted(5.0)), cuda)
    assert not run("overlap", LATTICE, np.zeros((0, 3)), np.zeros(0), shifted(5.0)).any()
    plan = overlap.plan(request(overlap, shifted(5.0)), cuda)
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1k")
    with pytest.raises(MemoryPlanError, match="bins needs"):
        plan.run(np.zeros((2, 3)), np.ones(2))


@pytest.mark.parametrize("precision", ["single", "compensated"])
@pytest.mark.parametrize("edge", [10.0, 30.0, 100.0])
@pytest.mark.parametrize("periodic", [False, True])
def test_auto_takes_todays_kernels(precision, edge, periodic):
    cuda, cell = registry.get("engine", "cuda"), Cell.from_parameters(edge, edge, edge) if periodic else None
    positions, charges = water_box(edge)
    lattice = Lattice(np.zeros(3), 0.5, (round(2 * edge),) * 3)
    for ours, bound in (("direct", registry.get("interaction", "coulomb").bind()), ("cutoff", shifted(12.0))):
        for name in METHODS[ours]:
            method = registry.get("method", name)
            wanted = request(method, bound, lattice, precision, cell, positions, charges)
            if method.refusal(wanted) is None:
                least = registry.get("method", ours).estimate(wanted, cuda).seconds
                assert least < method.estimate(wanted, cuda).seconds < 20 * least + 10


def test_plans_pickle_and_say_what_they_are():
    bound, cuda = shifted(5.0), registry.get("engine", "cuda")
    plan = registry.get("method", "smallbin").plan(request(None, bound), cuda)
    assert len(pickle.dumps(plan)) < 10_000
    assert str(pickle.loads(pickle.dumps(plan))) == str(plan)
    assert str(plan).startswith("smallbin on one GPU, 33 x 20 x 9 points, single precision: shifted_coulomb (cutoff 5")


@pytest.mark.parametrize("variant", direct.POINTS)
def test_direct_sums_compile(variant, tmp_path):
    macros = {"REAL": "float", "BATCH": direct.BATCH.get(variant, 0)}
    compile_for_all(build.source(direct.HERE / f"direct_{variant}.cu", macros), macros, tmp_path)


@pytest.mark.parametrize("compensated", [0, 1])
@pytest.mark.parametrize("bound", [shifted(12.0), EVERYTHING.bind().truncated(9.0)], ids=str)
def test_cutoff_sums_compile(bound, compensated, tmp_path):
    macros = {"REAL": "float", "COMPENSATED": compensated, "CAPACITY": bins.CAPACITY, "LISTED": cutoff.LISTED}
    task = cutoff.LIST_TASK
    same = "".join(f"static_assert({found} == {wanted});\n" for found, wanted in (
        ("sizeof(ListTask)", task.itemsize),
        *((f"__builtin_offsetof(ListTask, {name})", task.fields[name][1]) for name in task.names)))
    for name, layout in (("largebin", ""), ("smallbin", same)):
        text = build.source(cutoff.HERE / f"cutoff_{name}.cu", macros, radial.source(bound.scaled(16.0), "float"))
        compile_for_all(text + layout, macros, tmp_path)


def test_every_kernel_file_is_compiled_here():
    assert {path.name for path in direct.HERE.glob("*.cu")} == {
        "cutoff_largebin.cu", "cutoff_smallbin.cu", *(f"direct_{name}.cu" for name in direct.POINTS)}


def test_a_line_of_a_kernel_elsewhere_is_named_by_its_file_alone():
    text = build.source(direct.HERE / "direct_simple.cu", {"REAL": "float"})
    assert '#line 1 "direct_simple.cu"' in text
    assert str(direct.HERE) not in text


def test_one_module_imports_pycuda():
    root = Path(__file__).parent.parent
    found = set()
    for path in [*(root / "vmdpotential").rglob("*.py"), *(root / "plugins").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else \
                [node.module or ""] if isinstance(node, ast.ImportFrom) else \
                [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)] \
                if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
                    "import_module", "__import__") else []
            if any(name.partition(".")[0] == "pycuda" for name in names):
                found.add(str(path.relative_to(root)))
    assert found == {"vmdpotential/engines/cuda/device.py"}


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
        def __init__(self, file, name, macros, function):
            text = re.sub(r"^#line.*$", "", build.source(file, macros, function), flags=re.MULTILINE)
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
        number, name, users = 0, "host", 0

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

        def kernel(self, file, name, macros, function, size):
            key = file, tuple(macros.items()), function
            if key not in compiled:
                compiled[key] = Kernel(file, name, macros, function)
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
        values = run(variant, lattice, positions, charges, bound, precision)
        reference = definition(lattice.points(), positions, charges, bound, None).reshape(lattice.shape)
        assert np.abs(values - reference).max() < 5e-6 * np.abs(reference).max()
    cell = Cell.from_parameters(7, 8, 9, 70, 80, 110)
    values = run(variant, lattice, positions[:100], charges[:100], shifted(7.0), precision, cell)
    reference = definition(lattice.points(), positions[:100], charges[:100], shifted(7.0), cell).reshape(lattice.shape)
    assert np.abs(values - reference).max() < 2e-5 * np.abs(reference).max()


@pytest.mark.slow
def test_the_paper_is_reproduced_without_a_gpu(tmp_path):
    script = Path(__file__).parent.parent / "scripts" / "reproduce_cutoff_paper"

    def run(*arguments):
        return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True,
                              env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})

    done = run("-o", str(tmp_path), "--engine", "cpu", "--quick")
    assert done.returncode == 0, done.stderr
    tables = {}
    for name in ("table2", "table3", "table4", "times", "bins", "direct", "multilevel"):
        with open(tmp_path / f"{name}.csv", newline="") as file:
            tables[name] = list(csv.DictReader(file))
    assert {row["volume"] for row in tables["times"]} == {"1000", "3162", "10000"}
    assert {row["run"]: row["speedup"] for row in tables["table4"]}["2008: SmallBin-Overlap"] == "18.17"
    ours = {row["precision"]: float(row["relative_percent"]) for row in tables["table2"] if row["precision"]}
    assert ours["compensated"] < ours["single"] < 0.4793  # percent, of the paper's CPU
    assert [row["2008: SmallBin"] for row in tables["table3"] if row["part"] == "total"] == ["1.518"]
    assert [row["atoms_in_bin"] for row in tables["bins"]] == [str(n) for n in range(1, 9)]
    steps = {row.pop("step"): float(list(row.values())[-1]) for row in tables["multilevel"]}
    assert all(seconds > 0 for seconds in steps.values())
    assert "GPU counts are missing" in done.stderr
    for name in ("figure4_time", "figure5_rate", "figure6_speedup", "figure7_bins", "table2_accuracy", "direct",
                 "multilevel"):
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    wrong = run("--largest", "5")
    assert (wrong.returncode, wrong.stdout) == (2, "")


def pairs_tested(placed, lattice):
    """Return how many pairs of a point and an atom a kernel with small bins tests."""
    count = (placed.arrays["atoms"][..., 3] != 0).sum(1)
    x, y, z = np.split(placed.arrays["index"], np.cumsum([-(-n // bins.REGION) for n in lattice.shape])[:2])
    home = ((x[:, None, None] * placed.bins.shape[1] + y[:, None]) * placed.bins.shape[2] + z).ravel()
    return bins.REGION**3 * sum(int(count[home + step].sum()) for step in placed.steps)


def test_few_tested_pairs_are_out_of_range():
    """A region's list leads to 3 times the atoms in range: what estimates take for granted."""
    positions, charges = water_box(60.0)
    lattice = Lattice(np.full(3, 20.25), 0.5, (40, 40, 40))  # all in range are in the box
    placed = bins.place("smallbin", lattice, positions, np.column_stack([positions, charges]).astype(np.float32), 12.0)
    in_range = lattice.size * len(positions) / 60**3 * 4 / 3 * np.pi * 12**3
    assert 2 < pairs_tested(placed, lattice) / in_range < 3.5
    assert 0 < len(placed.overflow) < 0.05 * len(positions)
