"""Kernels that nvcc compiles in tests, whatever machine they run on."""

import ctypes
import functools
import hashlib
import re
import shutil
import subprocess

import compiled
import numpy as np
import pytest
from helpers import EVERYTHING

from vmdpotential import cache, registry
from vmdpotential.engines.cuda import build, radial
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.probes import interactions as probe
from vmdpotential.sums.cuda import maps
from vmdpotential.sums.potential_sum import PotentialSum

ARCHITECTURES = ("75", "80", "90")
PROBES = [probe.DISPERSION, probe.GAUSSIAN, probe.SCREENED]
INTERACTIONS = [*(registry.get("interaction", name) for name in registry.available("interaction")), *PROBES, EVERYTHING]
LATTICE = Lattice(np.zeros(3), np.array([0.5, 0.7, 0.9]), (33, 20, 41))


def work(bound, precision="single", lattice=LATTICE, field=False):
    return maps.Sum(PotentialSum(lattice, bound, None, precision, field))


def traced_on_the_host(bound, unit, real, field, r):
    """Return the traced function, or its slope, at distances r (A), by what the device compiles, compiled for the host.

    The saturating difference is written out.
    """
    scaled = bound.scaled(unit)
    text = radial.radial_source(scaled, real, field).replace("__device__ __forceinline__", "static")
    text = ("#include <math.h>\nstatic float saturated_difference(float a, float b)"
            f"{{ return fminf(fmaxf(a - b, 0), 1); }}\nstruct Slope {{ {real} potential, slope; }};\n{text}"
            f'extern "C" {real} value({real} r2, const {real} *p) '
            f"{{ return radial(r2, 1 / sqrt(r2), p){'.slope' if field else ''}; }}\n")
    kind = {"float": ctypes.c_float, "double": ctypes.c_double}[real]
    function = compiled.library(text, "-lm").value
    function.restype, function.argtypes = kind, [kind, ctypes.POINTER(kind)]
    uniforms = radial.uniforms(scaled)
    values = (kind * max(1, len(uniforms)))(*uniforms)
    result = np.array([function(kind((x / unit) ** 2), values) for x in r]) * scaled.factor
    return result if bound.cutoff is None else np.where(r < bound.cutoff, result, 0)  # which kernels see to


def nvcc(text, tmp_path, *arguments):
    result = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if result is None:
        pytest.skip("nvcc is not installed")
    files = []
    if text:
        path = tmp_path / "kernel.cu"
        path.write_text(text)
        files = ["-o", str(tmp_path / "out"), str(path)]
    done = subprocess.run([result, *arguments, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@functools.cache
def nvcc_version():
    return nvcc("", None, "--version")


def compile_for_all(text, macros, tmp_path, spilled=16, architectures=ARCHITECTURES, large=""):
    """Compile a kernel, or take what nvcc said of the same text in an earlier run.

    Functions whose names match `large` may spill 1,280 bytes.
    """
    arguments = ["-fatbin", *(f"-gencode=arch=compute_{a},code=sm_{a}" for a in architectures), *build.options(macros),
                 "-Xptxas", "-v"]
    entry = hashlib.sha256("\0".join([text, *arguments, nvcc_version()]).encode()).hexdigest() + ".txt"
    kept = cache.read(entry, "nvcc")
    said = kept.decode() if kept else nvcc(text, tmp_path, *arguments)
    if kept is None:
        cache.write(entry, said.encode(), "nvcc")
    assert "warning" not in said
    spills = re.findall(r"properties for (\w+)\n +\d+ bytes stack frame, (\d+) bytes spill stores", said)
    assert len(spills) >= len(architectures)
    # bytes: an array indexed at run time, or too few registers, take hundreds
    assert all(int(size) <= (1280 if re.fullmatch(large, name) else spilled) for name, size in spills), said
