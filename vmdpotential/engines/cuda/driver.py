"""PyCUDA, which only this module imports, and only when a GPU is used."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from vmdpotential import memory
from vmdpotential.errors import BackendError, MemoryPlanError
from vmdpotential.extras import install_command

OTHER_ENGINE = "use {engine cpu}"


@cache
def cuda_driver() -> Any:
    """Return the module pycuda.driver, initialised.

    Raises
    ------
    BackendError
        If PyCUDA or the NVIDIA driver is not installed, or the driver finds no GPU.
    """
    try:
        import pycuda.driver as drv
    except ModuleNotFoundError as error:
        raise BackendError(f"PyCUDA is not installed (no module {error.name})",
                           f"{install_command('cuda')}, or {OTHER_ENGINE}") from None
    except ImportError as error:
        raise BackendError(f"there is no NVIDIA driver ({one_line(error)})", f"install it, or {OTHER_ENGINE}") from None
    try:
        drv.init()
        count = drv.Device.count()
    except drv.Error as error:
        raise BackendError(f"the NVIDIA driver does not work ({one_line(error)})",
                           f"see nvidia-smi, or {OTHER_ENGINE}") from None
    if not count:
        raise BackendError("the NVIDIA driver finds no GPU", f"see nvidia-smi, or {OTHER_ENGINE}")
    return drv


def compiler() -> Any:
    """Return the module pycuda.compiler."""
    cuda_driver()  # raises an error if something is missing
    from pycuda import compiler as module

    return module


def gpu_array(shape: tuple[int, ...], dtype: Any, address: int) -> Any:
    """Return PyCUDA's array of the memory at an address, for libraries that require this type."""
    from pycuda.gpuarray import GPUArray

    return GPUArray(shape, dtype, gpudata=address)


@cache
def nvcc() -> str:
    """Return the path of the CUDA compiler.

    Raises
    ------
    BackendError
        If there is none on PATH, in CUDA_HOME, CUDA_PATH or /usr/local/cuda.
    """
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda"]
    for path in ("nvcc", *(str(Path(home, "bin", "nvcc")) for home in homes if home)):
        result = shutil.which(path)
        if result:
            return result
    raise BackendError("the CUDA compiler nvcc is missing",
                       f"install the CUDA toolkit and put nvcc on PATH, or {OTHER_ENGINE}")


@contextlib.contextmanager
def converted_errors(what: str, size: int = 0) -> Iterator[None]:
    """Convert CUDA's errors inside the block into ours; `size` is the number of bytes that the block allocates."""
    drv = cuda_driver()
    try:
        yield
    except drv.MemoryError:
        free = memory.size(drv.mem_get_info()[0]) if size else "too little"
        raise MemoryPlanError(
            f"{what} is full: {memory.size(size)} of memory are needed, {free} is free",
            f"end other programs on it, or {OTHER_ENGINE}") from None
    except drv.Error as error:
        raise BackendError(f"{what}: {one_line(error)}", f"see what verify says, or {OTHER_ENGINE}") from None


def one_line(error: BaseException) -> str:
    """Return the text of an error without line breaks."""
    return " ".join(str(error).split())
