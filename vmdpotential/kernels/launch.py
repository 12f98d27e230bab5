"""Kernels of files that include ``kernel.h``: their arguments, and the compiled library of this machine's processor.

A file is compiled for CPUs when the package is built (:mod:`vmdpotential.kernels.build`), and for a GPU by PyCUDA. The
arguments of a kernel are one struct, which is declared in the file alone; what Python passes by name is checked against
it and packed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
import threading
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential.compiling import threads
from vmdpotential.errors import BackendError, UsageError
from vmdpotential.kernels import build

#: The environment variable that forces an instruction set.
VARIABLE = "VMDPOTENTIAL_VECTORS"

#: numpy's types of the C types in structs of arguments.
TYPES: dict[str, type[Any]] = {
    "float": np.float32, "double": np.float64, "int": np.int32, "index_t": np.int64, "bool": np.bool_,
    "unsigned char": np.uint8, "signed char": np.int8, "short": np.int16, "unsigned": np.uint32, "int64_t": np.int64,
    "uint64_t": np.uint64, "int32_t": np.int32, "uint32_t": np.uint32, "uint16_t": np.uint16, "uint8_t": np.uint8,
}

#: Types of the arguments of compiled kernels: over a range of elements, and by a team of threads.
RANGE = (ctypes.c_char_p, ctypes.c_longlong, ctypes.c_longlong)
TEAM = (ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)

_STRUCT = re.compile(r"^(?:template <class (\w+)> )?struct\s+(\w+)\s*\{(.*?)\};", re.MULTILINE | re.DOTALL)
_KERNEL = re.compile(r"^(?:RANGE_|TEAM_|BLOCK_)?KERNEL\((\w+),\s*(\w+(?:<\w+>)?)[,)]", re.MULTILINE)
_MEMBER = re.compile(r"^\s*(const\s+)?(unsigned char|signed char|\w+)\s+(.+?)\s*$", re.DOTALL)
_NAME = re.compile(r"^(\*?)\s*(\w+)((?:\[\d+\])*)$")


@dataclass(frozen=True)
class Arguments:
    """The struct of a kernel's arguments.

    Parameters
    ----------
    record : numpy.dtype
        The struct; arrays are addresses (uint64).
    arrays : mapping from str to numpy.dtype
        Types of the values in arrays.
    results : set of str
        Names of the arrays that the kernel may write to.
    """

    record: np.dtype[Any]
    arrays: Mapping[str, np.dtype[Any]]
    results: Set[str]

    def pack(self, values: Mapping[str, Any], address: Callable[[Any], int]) -> bytes:
        """Return the struct as bytes, with the addresses of arrays that `address` returns.

        Raises
        ------
        TypeError
            If a value is missing or unknown, or if an array has another type or is not contiguous.
        """
        assert self.record.names is not None
        if set(values) != set(self.record.names):
            raise TypeError(f"arguments {sorted(set(values) ^ set(self.record.names))} are missing or unknown")
        packed = np.zeros((), self.record)
        self.write(packed, values, address)
        return packed.tobytes()

    def write(self, packed: np.ndarray[Any, Any], values: Mapping[str, Any], address: Callable[[Any], int]) -> None:
        """Write some values into the struct, as :meth:`pack` does."""
        for name, value in values.items():
            if name in self.arrays:
                if value is None:
                    continue  # a null pointer
                if value.dtype != self.arrays[name]:
                    raise TypeError(f"{name} is an array of {value.dtype}, not {self.arrays[name]}")
                if not value.flags.c_contiguous:
                    raise TypeError(f"{name} is not contiguous")
                packed[name] = address(value)
            else:
                packed[name] = value


def parse_arguments(source: str) -> dict[str, Arguments]:
    """Return the arguments of the kernels that a source declares, by the kernels' names."""
    structs = {name: (parameter, body) for parameter, name, body in _STRUCT.findall(source)}
    found = {}
    for kernel, name in _KERNEL.findall(source):
        template, _, kind = name.rstrip(">").partition("<")
        parameter, body = structs[template]
        found[kernel] = _arguments(name, re.sub(rf"\b{parameter}\b", kind, body) if kind else body)
    return found


def _arguments(name: str, body: str) -> Arguments:
    fields: list[Any] = []
    arrays, results = {}, set()
    for line in re.sub(r"//[^\n]*", "", body).split(";"):
        if not line.strip():
            continue
        kind = _MEMBER.match(line)
        members = [] if kind is None else [_NAME.match(part.strip()) for part in kind[3].split(",")]
        if kind is None or kind[2] not in TYPES or None in members:
            raise ValueError(f"the members {' '.join(line.split())!r} of struct {name} cannot be read")
        for star, key, sides in (member.groups() for member in members if member is not None):
            if star:
                arrays[key] = np.dtype(TYPES[kind[2]])
                fields.append((key, np.uint64))
                if kind[1] is None:
                    results.add(key)
            else:
                fields.append((key, TYPES[kind[2]], tuple(map(int, re.findall(r"\d+", sides)))))
    return Arguments(np.dtype(fields, align=True), arrays, results)


@dataclass(frozen=True)
class KernelFile:
    """A file of kernels; ``file["name"]`` is one of them.

    Parameters
    ----------
    path : Path
        The file ``*.cu``.
    libraries : Path
        Folder of the compiled libraries; by default that of this package.
    """

    path: Path
    libraries: Path = field(default=build.HEADERS / build.FOLDER)

    @cached_property
    def arguments(self) -> dict[str, Arguments]:
        """The arguments of the file's kernels, by their names."""
        return parse_arguments(self.path.read_text("utf-8"))

    def __getitem__(self, name: str) -> Kernel:
        return Kernel(self, name)


@dataclass(frozen=True)
class Kernel:
    """A kernel of a file, which an engine launches."""

    file: KernelFile
    name: str

    @property
    def arguments(self) -> Arguments:
        """The struct of the kernel's arguments."""
        return self.file.arguments[self.name]


@cache
def load_library(folder: Path = build.HEADERS / build.FOLDER) -> ctypes.CDLL:
    """Return the library for the best instruction set of this processor, or for that in VMDPOTENTIAL_VECTORS.

    Raises
    ------
    BackendError
        If there is no library for this processor.
    UsageError
        If the variable names an instruction set that does not exist here.
    """
    names = list(build.INSTRUCTION_SETS.get(build.PROCESSORS.get(platform.machine(), ""), ("baseline",)))
    try:
        library = ctypes.CDLL(str(folder / build.library_name(names[0])))
        supported = names[: library.supported_instruction_set() + 1] if folder == build.HEADERS / build.FOLDER \
            else names[: load_library().supported_instruction_set() + 1]
        chosen = os.environ.get(VARIABLE, "") or supported[-1]
        if chosen not in supported:
            raise UsageError(VARIABLE, f"this processor supports {', '.join(supported)}", value=repr(chosen[:30]))
        return library if chosen == names[0] else ctypes.CDLL(str(folder / build.library_name(chosen)))
    except OSError:
        raise BackendError(f"there are no compiled kernels for this processor ({platform.machine()}) in {folder}",
                           "install the package again, or in a checkout run python3 vmdpotential/kernels/build.py") \
            from None


def describe_vectors() -> str:
    """Return the instruction set of the kernels, and the number of float32 values in its vectors."""
    library = load_library()
    library.instruction_set.restype = ctypes.c_char_p
    return f"{library.instruction_set().decode()} vectors of {library.vector_floats()} floats"


_symbols = threading.Lock()


@cache
def _function(kernel: Kernel, kinds: tuple[Any, ...]) -> Any:
    library = load_library(kernel.file.libraries)
    with _symbols:
        function = library[kernel.name]  # a new object, unlike an attribute
    function.argtypes, function.restype = kinds, None
    return function


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])  # five times as fast as array.ctypes.data


def launch(kernel: Kernel, count: int, label: str, grain: int = 0, /, **values: Any) -> None:
    """Run a kernel for range(count) on all threads of the CPU, with its arguments by name.

    Parameters
    ----------
    kernel : Kernel
    count : int
        Number of elements.
    label : str
        Label of the progress.
    grain : int
        Number of elements that a thread takes at a time; by default an eighth of a thread's share.
    **values
        The members of the struct of arguments: numbers, and arrays, which must be contiguous and of its types.
    """
    function = _function(kernel, RANGE)
    packed = kernel.arguments.pack(values, _address)
    workers = threads.count()
    if count <= grain or workers == count == 1:
        function(packed, 0, count)
        return
    threads.run(lambda first, last: function(packed, first, last), count, label,
                grain or max(1, -(-count // (8 * workers))))


def call(kernel: Kernel, first: int, last: int, /, **values: Any) -> None:
    """Run a kernel for a range of elements on this thread, with its arguments as in :func:`launch`."""
    _function(kernel, RANGE)(kernel.arguments.pack(values, _address), first, last)


def bind(kernel: Kernel, /, **fixed: Any) -> Callable[..., None]:
    """Return :func:`call` of a kernel, with some arguments that are packed once for many calls."""
    function, arguments = _function(kernel, RANGE), kernel.arguments
    struct = np.zeros((), arguments.record)
    arguments.write(struct, fixed, _address)
    assert arguments.record.names is not None
    left = set(arguments.record.names) - set(fixed)

    def call_with(first: int, last: int, /, **values: Any) -> None:
        if set(values) != left:
            raise TypeError(f"arguments {sorted(set(values) ^ left)} are missing or unknown")
        packed = struct.copy()
        arguments.write(packed, values, _address)
        function(packed.tobytes(), first, last)

    call_with.arrays = fixed  # type: ignore[attr-defined]  # they must not be freed
    return call_with


def launch_team(kernel: Kernel, workers: int = 0, /, **values: Any) -> None:
    """Run a kernel once on several threads, which meet at barriers; see TEAM_KERNEL in kernel.h."""
    function = _function(kernel, TEAM)
    packed = kernel.arguments.pack(values, _address)
    workers = workers or threads.count()
    threads.together(lambda worker, shared: function(packed, worker, workers, _address(shared)), workers)


if sys.byteorder != "little":  # pragma: no cover
    raise ImportError("kernels are compiled for little-endian processors only")
