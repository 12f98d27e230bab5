"""The CUDA engine without a GPU: every kernel compiles, plans hold, and what is missing is named."""

import ctypes
import functools
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import sums
from helpers import EVERYTHING

from vmdpotential import cache, engines, methods, registry
from vmdpotential.engines import LatticeSum
from vmdpotential.engines.cuda import ENGINE as CUDA
from vmdpotential.engines.cuda import build, cells, device, maps, points, radial, result
from vmdpotential.engines.result import HostResult
from vmdpotential.errors import BackendError, InputError, MemoryPlanError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Interaction, Quantity
from vmdpotential.molecule.cell import Cell

ARCHITECTURES = ("75", "80", "90")


INTERACTIONS = [registry.get("interaction", name) for name in registry.available("interaction")] + [EVERYTHING]
LATTICE = Lattice(np.zeros(3), np.array([0.5, 0.7, 0.9]), (33, 20, 41))


def work(bound, precision="single", lattice=LATTICE, field=False):
    return maps.Sum(LatticeSum(lattice, bound, None, precision, field))


def nvcc(text, tmp_path, *arguments):
    found = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if found is None:
        pytest.skip("nvcc is not installed")
    files = []
    if text:
        path = tmp_path / "kernel.cu"
        path.write_text(text)
        files = ["-o", str(tmp_path / "out"), str(path)]
    done = subprocess.run([found, *arguments, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@functools.cache
def nvcc_version():
    return nvcc("", None, "--version")


def compile_for_all(text, macros, tmp_path, spilled=16, architectures=ARCHITECTURES):
    """Compile a kernel, or take what nvcc said of the same text in an earlier run."""
    arguments = ["-fatbin", *(f"-gencode=arch=compute_{a},code=sm_{a}" for a in architectures), *build.options(macros),
                 "-Xptxas", "-v"]
    entry = hashlib.sha256("\0".join([text, *arguments, nvcc_version()]).encode()).hexdigest() + ".txt"
    kept = cache.read(entry, "nvcc")
    said = kept.decode() if kept else nvcc(text, tmp_path, *arguments)
    if kept is None:
        cache.write(entry, said.encode(), "nvcc")
    assert "warning" not in said
    spills = [int(n) for n in re.findall(r"(\d+) bytes spill stores", said)]
    assert len(spills) >= len(architectures)
    # bytes: an array indexed at run time, or too few registers, take hundreds
    assert max(spills) <= spilled, said


#: Every operation in each precision with and without the field, the others in two of these four.
MAPS = [(interaction, precision, field) for n, interaction in enumerate(INTERACTIONS)
        for precision in ("single", "double") for field in (False, True)
        if interaction is EVERYTHING or (precision == "double") ^ field == n % 2]


@pytest.mark.slow
@pytest.mark.parametrize(("interaction", "precision", "field"), MAPS, ids=lambda value: getattr(value, "name", value))
def test_map_kernels_compile_with_every_interaction(interaction, precision, field, tmp_path):
    bound = interaction.bind()
    cases = [bound] if bound.cutoff is not None else [bound, bound.truncated(9.0)]
    turn = INTERACTIONS.index(interaction) + 2 * (precision == "double") + field
    for number, case in enumerate(cases):
        planned = work(case, precision, field=field)
        file = "direct.cu" if planned.direct else "cutoff.cu"
        # every operation with a cutoff for all, what is made of the same for each in turn
        everything = interaction is EVERYTHING
        one = ARCHITECTURES[(turn + number) % len(ARCHITECTURES)]
        compile_for_all(build.source(file, planned.macros, planned.radial), planned.macros, tmp_path,
                        64 if everything else 16, ARCHITECTURES if everything and number else (one,))


def test_other_kernels_compile(tmp_path):
    macros = {"REAL": "float"}
    compile_for_all(build.source("sort.cu", macros), macros, tmp_path)
    same = f"static_assert(PARTS == {result.PARTS});\n"  # structs have checks of their own, see build.declarations
    compile_for_all(build.source("result.cu", macros) + same, macros, tmp_path)
    scaled = EVERYTHING.bind().scaled()
    macros = {"REAL": "double", "MASKED": 0}
    same = f"static_assert(sizeof(PointTask) == {points.TASK.itemsize});\n"
    compile_for_all(build.source("points.cu", macros, radial.source(scaled, "double")) + same, macros, tmp_path)


@pytest.mark.parametrize("interaction", INTERACTIONS, ids=lambda i: i.name)
@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("field", [False, True], ids=["potential", "slope"])
def test_the_traced_function_computes_what_numpy_does(interaction, real, field, tmp_path):
    """Compiled for the host, where the saturating difference is written out."""
    gcc = shutil.which("g++") or pytest.skip("g++ is not installed")
    bound = interaction.bind()
    unit = 2.0 * (bound.cutoff or 8.0)
    scaled = bound.scaled(unit)
    text = radial.source(scaled, real, field).replace("__device__ __forceinline__", "static")
    text = ("#include <math.h>\nstatic float saturated_difference(float a, float b)"
            f"{{ return fminf(fmaxf(a - b, 0), 1); }}\nstruct Slope {{ {real} potential, slope; }};\n{text}"
            f'extern "C" {real} value({real} r2, const {real} *p) '
            f"{{ return radial(r2, 1 / sqrt(r2), p){'.slope' if field else ''}; }}\n")
    (tmp_path / "radial.cc").write_text(text)
    subprocess.run([gcc, "-O1", "-shared", "-fPIC", "-o", tmp_path / "radial.so", tmp_path / "radial.cc", "-lm"],
                   check=True)
    kind = {"float": ctypes.c_float, "double": ctypes.c_double}[real]
    function = ctypes.CDLL(str(tmp_path / "radial.so")).value
    function.restype, function.argtypes = kind, [kind, ctypes.POINTER(kind)]
    uniforms = radial.uniforms(scaled)
    values = (kind * max(1, len(uniforms)))(*uniforms)
    r = np.linspace(0.02, 1.2, 60) * (bound.cutoff or 20.0)
    found = np.array([function(kind((x / unit) ** 2), values) for x in r]) * scaled.factor
    reference = bound.derivative(r) / (2 * r) * unit**2 if field else bound(r)
    if bound.cutoff is not None:  # which kernels see to
        found = np.where(r < bound.cutoff, found, 0)
    np.testing.assert_allclose(found, reference, rtol={"float": 2e-5, "double": 1e-12}[real],
                               atol=1e-6 * abs(reference[0]) if real == "float" else 1e-14)


def test_a_zero_bound_becomes_saturation_only_where_the_value_is_at_most_one():
    shifted = registry.get("interaction", "shifted_coulomb").bind(cutoff=12.0)
    assert "saturated" in radial.source(shifted.scaled(16.0), "float")
    assert "saturated" not in radial.source(shifted.scaled(4.0), "float")
    assert "saturated" not in radial.source(shifted.scaled(16.0), "double")


@pytest.mark.parametrize("nx", [1, 7, 8, 9, 64, 65])
@pytest.mark.parametrize("room", [1, 2, 3, 100])
@pytest.mark.parametrize("parts", [1, 3, 8])
def test_slabs_cover_the_map_once_in_whole_layers_that_fit(nx, room, parts):
    layer = 4 * 8 * 5 * 6
    found = maps.slabs((nx, 5, 6), room * layer, parts)
    assert [i for slab in found for i in range(slab.start, slab.stop)] == list(range(nx))
    assert all(slab.start % 8 == 0 for slab in found)
    assert all(-(-(slab.stop - slab.start) // 8) <= room for slab in found)
    assert len(found) >= min(parts, -(-nx // 8)) // 2


def test_a_layer_that_does_not_fit_is_refused_with_the_bytes():
    with pytest.raises(MemoryPlanError, match=r"320 MB of GPU memory at least, 1 kB are free"):
        maps.slabs((2000, 1000, 10000), 1000)


@pytest.mark.parametrize("spacing", [0.1, 0.5, 3.0])
@pytest.mark.parametrize("cutoff", [0.5, 12.0, 40.0])
def test_cells_hold_all_that_a_tile_reaches_in_rows_the_kernel_has_room_for(spacing, cutoff):
    bound = registry.get("interaction", "shifted_coulomb").bind(cutoff=cutoff)
    lattice = Lattice(np.zeros(3), np.array([spacing, spacing * 0.3, spacing]), (200, 11, 30))
    task = work(bound, lattice=lattice).task
    # the most rows that a tile can touch, and the cells reach as far as the cutoff
    rows = np.floor(2 * (task["cutoff"] + 3.5 * task["spacing"]) / task["cell_size"])[:2] + 2
    assert rows.prod() <= 256
    extent = (task["shape"] - 1) * task["spacing"] + 2 * task["cutoff"]
    assert (task["low"] + task["cells"] * task["cell_size"] >= task["low"] + extent).all()


def test_cells_get_larger_before_there_are_too_many():
    bound = registry.get("interaction", "shifted_coulomb").bind(cutoff=1.0)
    lattice = Lattice(np.zeros(3), np.full(3, 0.5), (2000, 2000, 2000))
    assert work(bound, lattice=lattice).starts <= 1.05 * cells.MOST_CELLS


def test_software_roots_are_for_the_plain_coulomb_sum_alone():
    def knobs(name, precision="single"):
        return work(registry.get("interaction", name).bind(), precision).macros

    assert knobs("coulomb")["SOFTWARE"] == 2
    assert knobs("coulomb")["SOFT_CHARGE"] == 1 / 16
    assert knobs("coulomb", "compensated")["SOFTWARE"] == knobs("screened_coulomb")["SOFTWARE"] == 0
    assert knobs("shifted_coulomb")["MASKED"] == 0
    assert work(registry.get("interaction", "coulomb").bind().truncated(5.0)).macros["MASKED"] == 1


HOST = """
#include <cmath>
#include <cstddef>
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
struct { int x, y, z; } blockIdx, blockDim, threadIdx;
static int atomicAdd(int *where, int what) { const int old = *where; *where += what; return old; }
static double __dmul_rn(double a, double b) { return a * b; }
static int __shfl_up_sync(unsigned, int a, int) { return a; }
static int __shfl_sync(unsigned, int a, int) { return a; }
static void __syncthreads() {}
using namespace std;
"""


@pytest.mark.parametrize("parameters", [(24, 25, 26), (24, 25, 26, 70, 80, 110), (4, 5, 40, 60, 90, 60), (90, 90, 90)])
def test_the_sort_finds_every_periodic_image_in_reach(parameters, tmp_path):
    """The kernels but for the scans, compiled for the host, one thread after the other."""
    gcc = shutil.which("g++") or pytest.skip("g++ is not installed")
    common = (build.HERE / "common.cuh").read_text().partition("struct alignas(4 *")[0]
    main = "".join(f'extern "C" void run_{name}(const Task *task, int n) {{ blockDim.x = 1;\n'
                   f"  for (blockIdx.x = 0; blockIdx.x < n; blockIdx.x++) {name}(*task); }}\n"
                   for name in ("count", "place", "order"))
    (tmp_path / "sort.cc").write_text(HOST + common + build.declarations("sort.cu")
                                      + (build.HERE / "sort.cu").read_text() + main)
    subprocess.run([gcc, "-O1", "-std=c++17", "-w", "-shared", "-fPIC", "-o", tmp_path / "sort.so",
                    tmp_path / "sort.cc"], check=True)
    library = ctypes.CDLL(str(tmp_path / "sort.so"))

    cell = Cell.from_parameters(*parameters)
    rng = np.random.default_rng(5)
    positions, charges = rng.uniform(-100, 100, (40, 3)), rng.normal(size=40)
    lattice = Lattice(np.array([-7.0, 3.0, 50.0]), np.array([0.5, 0.7, 0.9]), (33, 20, 41))
    bound = registry.get("interaction", "shifted_coulomb").bind(cutoff=11.0)
    planned = maps.Sum(LatticeSum(lattice, bound, cell))
    task, starts, numbers = planned.task, np.zeros(planned.starts, np.int32), planned.images * len(positions)
    task["count"] = len(positions)
    filled = np.zeros_like(starts)
    rows = np.zeros(cells.rows(task) + 1, np.int32)
    atoms, placed, index = np.zeros((numbers, 4)), np.zeros((numbers, 4)), np.zeros((3, numbers), np.int32)
    for name, array in (("positions", positions), ("charges", charges), ("atoms", atoms), ("placed", placed),
                        ("cell", index[0]), ("index", index[1]), ("image", index[2]), ("filled", filled),
                        ("starts", starts), ("rows", rows)):
        task[name] = array.ctypes.data

    def run(name, threads):
        getattr(library, f"run_{name}")(task.ctypes.data_as(ctypes.c_void_p), ctypes.c_int(threads))

    run("count", len(positions))
    counts = starts.reshape(len(rows) - 1, -1)
    each = counts.copy()
    rows[1:] = counts.sum(1).cumsum()
    counts[:] = np.cumsum(counts, 1) - counts
    run("place", len(positions))
    run("order", numbers)
    np.testing.assert_array_equal(filled.reshape(each.shape), each)
    found = np.column_stack([atoms[: rows[-1], :3] / task["inverse_unit"] + lattice.origin, atoms[: rows[-1], 3]])
    inside = ((found[:, :3] >= lattice.origin - 11.0) & (found[:, :3] <= lattice.last + 11.0)).all(1)
    images, which = cell.images_in_box(positions, lattice.origin - 11.0, lattice.last + 11.0)
    expected = np.column_stack([images, charges[which]])

    def in_order(table):
        return table[np.lexsort(np.round(table, 6).T)]

    assert len(images)
    np.testing.assert_allclose(in_order(found[inside]), in_order(expected), atol=1e-9)


def test_the_software_root_is_good_to_a_millionth():
    """The kernel's arithmetic in float32, with its constants read from the kernel."""
    text = (build.HERE / "direct.cu").read_text()
    magic = int(text.split("__int_as_float(")[1].split(" ")[0], 16)
    first, second = (float(part.split("f)")[0]) for part in text.split("fmaf(-x * y, y, ")[1:])
    x = np.geomspace(1e-4, 1e8, 200_001).astype(np.float32)
    y = (magic - (x.view(np.int32) >> 1)).astype(np.int32).view(np.float32).astype(np.float64)
    for constant in (first, second):
        y = np.float32(y * (constant - x.astype(float) * y * y)).astype(np.float64)
    assert np.abs(y / radial.SOFTWARE_SCALE * np.sqrt(x.astype(float)) - 1).max() < 1e-6


def test_arguments_are_checked_before_a_gpu_is_asked_for():
    coulomb = registry.get("interaction", "coulomb").bind()
    good = np.zeros((2, 3)), np.ones(2)
    for wrong in ((np.zeros((2, 2)), np.ones(2)), (np.zeros((2, 3)), np.ones(3))):
        with pytest.raises(UsageError, match="do not fit") as error:
            sums.direct(CUDA, LATTICE, *wrong, coulomb)
        assert error.value.parameter == "positions"
    far = np.full((2, 3), 1e3), np.ones(2)
    with pytest.raises(InputError, match="outside of the box"):
        sums.by_levels(CUDA, LATTICE, *far, sums.levels_around(LATTICE, good[0]))
    many = Interaction("many", lambda r2, rinv, p: rinv * (1 + sum(getattr(p, f"a{n}") * r2 * rinv * rinv
                                                                   for n in range(33))),
                       [Quantity(f"a{n}", "", 1, 0, 2, "") for n in range(33)])
    with pytest.raises(UsageError, match="33 constants"):
        sums.direct(CUDA, LATTICE, *good, many.bind())


def test_no_atoms_need_no_gpu():
    nothing = np.zeros((0, 3)), np.zeros(0)
    assert not sums.direct(CUDA, LATTICE, *nothing, registry.get("interaction", "coulomb").bind()).any()
    shifted = registry.get("interaction", "shifted_coulomb").bind()
    assert not sums.cutoff(CUDA, LATTICE, *nothing, shifted, field=True).any()


def test_a_kernel_that_does_not_compile_is_shown_with_line_numbers(tmp_path):
    error = build.failure("direct.cu", "int a;\nint b\n", 'direct.cu(2): error: expected a ";"\n', tmp_path)
    assert 'direct.cu does not compile: direct.cu(2): error: expected a ";"' in str(error)
    assert "\n" not in str(error)
    assert "   2  int b" in error.listing
    assert "   2  int b" in (tmp_path / "failed-direct.txt").read_text()


FAKE = """
class Error(Exception): pass
class MemoryError(Error): pass
class CompileError(Error): pass
class device_attribute: MULTIPROCESSOR_COUNT, CLOCK_RATE = 1, 2
def init(): {init}
def mem_get_info(): return {free}, 8 * 10**9
def mem_alloc(size): raise MemoryError("cuMemAlloc failed: out of memory")
class Context:
    def push(self): pass
    @staticmethod
    def pop(): pass
class Device:
    def __init__(self, n): pass
    @staticmethod
    def count(): return {count}
    def name(self): return "GeForce GTX 960"
    def compute_capability(self): return {capability}
    def get_attribute(self, which): return 8
    def total_memory(self): return 8 * 10**9
    def retain_primary_context(self): return Context()
"""


@pytest.fixture
def pycuda(tmp_path, monkeypatch):
    """Return a function that puts a made-up PyCUDA in place of whatever is installed."""
    def forget(drop=monkeypatch.delitem):
        for name in [name for name in sys.modules if name.split(".")[0] == "pycuda"]:
            drop(sys.modules, name)
        for function in (device.driver, device.nvcc, device.gpus, engines.automatic):
            function.cache_clear()
        importlib.invalidate_caches()

    def make(driver):
        folder = tmp_path / "pycuda"
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "driver.py").write_text(driver)
        monkeypatch.syspath_prepend(tmp_path)
        forget()

    monkeypatch.setattr(device.shutil, "which", lambda name: "/somewhere/nvcc")
    monkeypatch.setattr(device.atexit, "register", lambda function: None)
    real = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "pycuda"}
    forget()
    yield make
    monkeypatch.undo()
    forget(dict.pop)  # what monkeypatch deletes it would bring back
    sys.modules.update(real)


def fake(init="pass", count=1, capability=(9, 0), free=8 * 10**9):
    return FAKE.format(init=init, count=count, capability=capability, free=free)


def test_each_thing_that_is_missing_has_its_own_message(pycuda, monkeypatch):
    engine = registry.get("engine", "cuda")
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(BackendError, match=r"PyCUDA is not installed.*pip install 'vmdpotential\[cuda\]'"):
        engine.check()
    monkeypatch.delitem(sys.modules, "pycuda")
    pycuda("raise ImportError('libcuda.so.1: cannot open shared object file')")
    with pytest.raises(BackendError, match=r"no NVIDIA driver \(libcuda.so.1"):
        engine.check()


@pytest.mark.parametrize(("driver", "message"), [
    (fake(init="raise Error('cuInit failed: unknown error')"), r"driver does not work \(cuInit failed"),
    (fake(count=0), "driver finds no GPU"),
    (fake(capability=(5, 2)), r"GPU 0 \(GeForce GTX 960\) is too old: compute capability 5.2, 6.0 is needed"),
])
def test_a_driver_or_card_that_cannot_be_used_is_named(driver, message, pycuda):
    pycuda(driver)
    with pytest.raises(BackendError, match=message) as caught:
        registry.get("engine", "cuda").check()
    assert "engine=cpu" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_compiler_is_named(pycuda, monkeypatch):
    pycuda(fake())
    monkeypatch.setattr(device.shutil, "which", lambda name: None)
    with pytest.raises(BackendError, match="nvcc is missing"):
        registry.get("engine", "cuda").check()


def test_a_full_card_is_refused_with_the_bytes(pycuda):
    pycuda(fake(free=1000))
    coulomb = registry.get("interaction", "coulomb").bind()
    with pytest.raises(MemoryPlanError, match="GPU memory at least"):
        sums.direct(CUDA, LATTICE, np.zeros((2, 3)), np.ones(2), coulomb)
    gpu = device.gpus()[0]
    with gpu, pytest.raises(MemoryPlanError, match=r"GPU 0 \(GeForce GTX 960\) is full: 5 MB .* are needed, 1 kB"):
        gpu.buffer("map", 5_000_000)


def test_gpus_are_chosen_by_number(pycuda, monkeypatch):
    pycuda(fake(count=3))
    assert [gpu.number for gpu in device.gpus()] == [0, 1, 2]
    device.gpus.cache_clear()
    monkeypatch.setenv("VMDPOTENTIAL_GPUS", "2,0")
    assert [gpu.number for gpu in device.gpus()] == [2, 0]
    for text in ("3", "first"):
        device.gpus.cache_clear()
        monkeypatch.setenv("VMDPOTENTIAL_GPUS", text)
        with pytest.raises(UsageError, match="VMDPOTENTIAL_GPUS"):
            device.gpus()


def test_auto_takes_the_cpu_and_says_why(pycuda):
    pycuda("raise ImportError('libcuda.so.1: no such file')")
    assert engines.get_engine().name == "cpu"
    assert "no NVIDIA driver" in engines.reason()
    report = registry.get("command", "devices")()
    assert report.data["auto"] == "cpu"
    assert "no NVIDIA driver" in report.lines[-1]
    assert not report.data["engines"]["cuda"]["works"]


def test_auto_takes_a_gpu_that_works(pycuda):
    pycuda(fake())
    assert engines.get_engine().name == "cuda"
    assert engines.reason() == ""
    assert "GeForce GTX 960" in registry.get("command", "devices")().data["engines"]["cuda"]["hardware"]


def test_nothing_touches_a_gpu_at_import():
    modules = ["", ".engines", ".engines.cuda", *(f".engines.cuda.{p.stem}" for p in build.HERE.glob("*.py")
                                                 if p.stem != "__init__")]
    code = "import sys\n" + "".join(f"import vmdpotential{m}\n" for m in modules) + "print('pycuda' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout.strip() == "False"


def test_only_this_package_imports_pycuda():
    top = build.HERE.parent.parent
    users = {path.parent for path in top.rglob("*.py")
             if re.search(r"^\s*(import|from) pycuda", path.read_text(), re.MULTILINE)}
    assert users == {build.HERE}


@pytest.mark.slow
def test_verify_passes_on_the_cpu_and_fails_on_a_wrong_engine(monkeypatch, capsys):
    from vmdpotential.commands import verify as module

    cpu = engines.get_engine("cpu")

    class Wrong:
        """Its periodic sums of pairs are a thousandth too large."""

        name = "cpu"

        def __getattr__(self, name):
            return getattr(cpu, name)

        def prepare(self, work):
            prepared = cpu.prepare(work)
            factor = np.float32(1.001 if work.cell is not None and work.smooth is None else 1)
            return SimpleNamespace(run=lambda *atoms: HostResult(prepared.run(*atoms).maps * factor))

    monkeypatch.setattr(module, "EDGE", 24.0)
    report = registry.get("command", "verify")(engine="cpu", points=40)
    assert report.data["passed"]
    rows = [row["what"] for row in report.data["rows"]]
    for name in registry.available("interaction"):
        assert any(row.startswith(f"{name}, the values on its page") for row in rows)
    for name in ("direct", "cutoff", "pme", "msm"):  # those of the historical plugin need a GPU
        for boundary in registry.get("method", name).boundaries:
            found = [row for row in rows if row.startswith(f"{name}, {boundary}, single precision")]
            assert len(found) == 2  # potential and field
    monkeypatch.setattr(engines, "get_engine", lambda name: Wrong())
    monkeypatch.setattr(methods, "get_engine", lambda name: Wrong())
    assert cli.main(["verify", "--engine", "cpu", "--points", "40", "--method", "cutoff"]) == 3
    said = capsys.readouterr()
    failed = re.findall("^FAIL +cpu +(.*shifted_coulomb)", said.out, re.MULTILINE)
    assert failed == ["cutoff, periodic, single precision, shifted_coulomb",
                      "cutoff, periodic, single precision, field of shifted_coulomb"]
    passed = len(re.findall("^PASS", said.out, re.MULTILINE))
    assert passed > 2
    assert re.fullmatch(rf"vmdpotential: verify: 2 of {passed + 2} failed: cpu cutoff, periodic.*\n", said.err)
