"""What the CUDA engine says where a GPU, its driver or a package is missing, and where none is needed."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sums
from cuda_kernels import LATTICE
from helpers import refused
from messages import Words, naming

from vmdpotential import engines, registry
from vmdpotential.engines.cuda import ENGINE as CUDA
from vmdpotential.engines.cuda import build, device
from vmdpotential.engines.cuda import driver as pycuda_driver
from vmdpotential.errors import BackendError, InputError, MemoryPlanError, UsageError
from vmdpotential.extras import install_command
from vmdpotential.interactions import Interaction, Quantity
from vmdpotential.sums.cuda import KERNEL_FOLDER


def test_arguments_are_checked_before_a_gpu_is_asked_for():
    coulomb = registry.get("interaction", "coulomb").bind()
    good = np.zeros((2, 3)), np.ones(2)
    for wrong in ((np.zeros((2, 2)), np.ones(2)), (np.zeros((2, 3)), np.ones(3))):
        with refused("positions") as error:
            sums.direct(CUDA, LATTICE, *wrong, coulomb)
        assert error.value.parameter == "positions"
    far = np.full((2, 3), 1e3), np.ones(2)
    with pytest.raises(InputError):
        sums.by_levels(CUDA, LATTICE, *far, sums.levels_around(LATTICE, good[0]))
    many = Interaction("many", lambda r2, rinv, p: rinv * (1 + sum(getattr(p, f"a{n}") * r2 * rinv * rinv
                                                                   for n in range(33))),
                       [Quantity(f"a{n}", "", 1, 0, 2, "") for n in range(33)])
    with naming(UsageError, "33 constants"):
        sums.direct(CUDA, LATTICE, *good, many.bind())


def test_no_atoms_need_no_gpu():
    nothing = np.zeros((0, 3)), np.zeros(0)
    assert not sums.direct(CUDA, LATTICE, *nothing, registry.get("interaction", "coulomb").bind()).any()
    shifted = registry.get("interaction", "shifted_coulomb").bind()
    assert not sums.cutoff(CUDA, LATTICE, *nothing, shifted, field=True).any()


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
        for function in (pycuda_driver.cuda_driver, pycuda_driver.nvcc, device.gpus, engines.automatic_engine):
            function.cache_clear()
        importlib.invalidate_caches()

    def make(driver):
        folder = tmp_path / "pycuda"
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "driver.py").write_text(driver)
        monkeypatch.syspath_prepend(tmp_path)
        forget()

    monkeypatch.setattr(pycuda_driver.shutil, "which", lambda name: "/somewhere/nvcc")
    monkeypatch.setattr(device.atexit, "register", lambda function: None)
    real = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "pycuda"}
    forget()
    yield make
    monkeypatch.undo()
    forget(dict.pop)  # what monkeypatch deletes it would bring back
    sys.modules.update(real)


def fake(init="pass", count=1, capability=(9, 0), free=8 * 10**9):
    return FAKE.format(init=init, count=count, capability=capability, free=free)


@pytest.mark.parametrize(("driver", "compiler", "message"), [
    (None, True, re.escape(install_command("cuda"))),
    ("raise ImportError('libcuda.so.1: cannot open shared object file')", True, r"no NVIDIA driver \(libcuda.so.1"),
    (fake(init="raise Error('cuInit failed: unknown error')"), True, r"driver does not work \(cuInit failed"),
    (fake(count=0), True, "driver finds no GPU"),
    (fake(capability=(5, 2)), True, r"GPU 0 \(GeForce GTX 960\) is too old: compute capability 5.2, 6.0 is needed"),
    (fake(), False, "nvcc is missing"),
], ids=["PyCUDA", "library", "driver", "GPU", "old", "compiler"])
def test_what_is_missing_is_named(driver, compiler, message, pycuda, monkeypatch):
    if driver is None:
        monkeypatch.setitem(sys.modules, "pycuda", None)
    else:
        pycuda(driver)
    if not compiler:
        monkeypatch.setattr(pycuda_driver.shutil, "which", lambda name: None)
    with pytest.raises(BackendError, match=message) as caught:
        registry.get("engine", "cuda").check()
    assert "\n" not in str(caught.value)


def test_a_full_card_is_refused_with_the_bytes(pycuda):
    pycuda(fake(free=1000))
    coulomb = registry.get("interaction", "coulomb").bind()
    with naming(MemoryPlanError, Words.GPU_MEMORY):
        sums.direct(CUDA, LATTICE, np.zeros((2, 3)), np.ones(2), coulomb)
    gpu = device.gpus()[0]
    with gpu, naming(MemoryPlanError, "GPU 0 (GeForce GTX 960) ", " 5 MB ", " 1 kB"):
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
        with refused("VMDPOTENTIAL_GPUS"):
            device.gpus()


def test_auto_takes_the_cpu_and_says_why(pycuda):
    pycuda("raise ImportError('libcuda.so.1: no such file')")
    assert engines.get_engine().name == "cpu"
    assert "no NVIDIA driver" in engines.automatic_reason()
    report = registry.get("command", "devices")()
    assert report.data["auto"] == "cpu"
    assert "no NVIDIA driver" in report.data["reason"]
    assert not report.data["engines"]["cuda"]["works"]


def test_auto_takes_a_gpu_that_works(pycuda):
    pycuda(fake())
    assert engines.get_engine().name == "cuda"
    assert engines.automatic_reason() == ""
    assert "GeForce GTX 960" in registry.get("command", "devices")().data["engines"]["cuda"]["hardware"]


def test_nothing_touches_a_gpu_at_import():
    modules = ["", ".engines", *(f".{part}.cuda.{path.stem}".removesuffix(".__init__") for part, folder in (
        ("engines", build.HERE), ("sums", KERNEL_FOLDER)) for path in folder.glob("*.py"))]
    code = "import sys\n" + "".join(f"import vmdpotential{m}\n" for m in modules) + "print('pycuda' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout.strip() == "False"


def test_only_this_package_imports_pycuda():
    root = Path(__file__).parents[2]
    users = {path.parent for folder in ("vmdpotential", "plugins") for path in (root / folder).rglob("*.py")
             if re.search(r"^\s*(import|from) pycuda", path.read_text(), re.MULTILINE)}
    assert users == {build.HERE}
