"""Kernels of files that include ``kernel.h``: their arguments, and the compiled library of this machine's processor.

A file is compiled for CPUs when the package is built (:mod:`vmdpotential.kernels.build`), and for a GPU by PyCUDA. The
arguments of a kernel are one struct, which is declared in the file alone; what Python passes by name is checked against
it and packed.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import platform
import re
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from vmdpotential.errors import BackendError, UsageError
from vmdpotential.kernels import build, threads

#: The environment variable that forces an instruction set.
VARIABLE = "VMDPOTENTIAL_VECTORS"

#: numpy's types of the C types in structs of arguments.
TYPES: dict[str, type[Any]] = {
    "float": np.float32, "double": np.float64, "int": np.int32, "index_t": np.int64, "bool": np.bool_,
    "unsigned char": np.uint8, "signed char": np.int8, "short": np.int16, "unsigned": np.uint32, "int64_t": np.int64,
    "uint64_t": np.uint64, "int32_t": np.int32, "uint32_t": np.uint32, "uint16_t": np.uint16, "uint8_t": np.uint8,
}

#: Codes of numbers for the module ``struct``.
CODES = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f4": "f", "f8": "d",
         "b1": "?"}

#: Types of the arguments of compiled kernels: over a range of elements, and by a team of threads.
RANGE = (ctypes.c_char_p, ctypes.c_longlong, ctypes.c_longlong)
TEAM = (ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)

_STRUCT = re.compile(r"^(?:template <class (\w+)> )?struct\s+(\w+)\s*\{(.*?)\};", re.MULTILINE | re.DOTALL)
_KERNEL = re.compile(r"^(?:RANGE_|TEAM_|BLOCK_|NODE_|REDUCE_|PAIRS_)?KERNEL\((\w+),\s*(\w+(?:<\w+>)?)[,)]",
                     re.MULTILINE)
_MEMBER = re.compile(r"^\s*(const\s+)?(unsigned char|signed char|\w+)\s+(.+?)\s*$", re.DOTALL)
_NAME = re.compile(r"^(\*?)\s*(\w+)((?:\[\d+\])*)$")


#: Nodes of a tile along y and z, as in tiles.h.
TILE = (4, 8)


def tiled_plane(shape: Sequence[int]) -> int:
    """Return the number of elements of a plane of constant x, see tiles.h."""
    return math.prod(-(-nodes // edge) * edge for nodes, edge in zip(shape[1:], TILE, strict=True))


class Member(NamedTuple):
    """A member of a struct: its place and type, the type of the values of an array, and how a row is packed."""

    place: int
    kind: np.dtype[Any]
    array: np.dtype[Any] | None
    row: struct.Struct | None


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

    @cached_property
    def _layout(self) -> tuple[struct.Struct, dict[str, Member]]:
        """The struct as the module ``struct`` packs it, several times as fast as numpy, and its members."""
        code, end, members = "=", 0, {}
        for place, (name, (kind, at, *_)) in enumerate((self.record.fields or {}).items()):
            code += f"{at - end}x" + (f"{kind.itemsize}s" if kind.shape else CODES[kind.str[1:]])
            row = struct.Struct(f"={kind.shape[0]}{CODES[kind.base.str[1:]]}") if len(kind.shape) == 1 else None
            end, members[name] = at + kind.itemsize, Member(place, kind, self.arrays.get(name), row)
        return struct.Struct(code + f"{self.record.itemsize - end}x"), members

    def pack(self, values: Mapping[str, Any], address: Callable[[Any], int]) -> bytes:
        """Return the struct as bytes, with the addresses of arrays that `address` returns.

        Raises
        ------
        TypeError
            If a value is missing or unknown, or if an array has another type or is not contiguous.
        """
        known = self._layout[1]
        return self._packed([None] * len(known), known.keys(), values, address)

    def packer(self, fixed: Mapping[str, Any], address: Callable[[Any], int]) -> Callable[[Mapping[str, Any]], bytes]:
        """Return a function that packs the struct, as :meth:`pack` does, from those values that are not `fixed`."""
        known = self._layout[1]
        left, whole = known.keys() - fixed.keys(), [None] * len(known)
        self._put(whole, fixed, address)
        return lambda values: self._packed(whole.copy(), left, values, address)

    def _packed(self, members: list[Any], left: Set[str], values: Mapping[str, Any],
                address: Callable[[Any], int]) -> bytes:
        if values.keys() != left:
            raise TypeError(f"arguments {sorted(values.keys() ^ left)} are missing or unknown")
        try:
            self._put(members, values, address)
            return self._layout[0].pack(*members)
        except struct.error as error:
            raise TypeError(f"the arguments {', '.join(sorted(left))} cannot be packed: {error}") from None

    def _put(self, members: list[Any], values: Mapping[str, Any], address: Callable[[Any], int]) -> None:
        known = self._layout[1]
        for name, value in values.items():
            place, whole, kind, row = known[name]
            if kind is None:
                if whole.shape:
                    if row is not None and type(value) in (tuple, list):
                        value = row.pack(*value)
                    elif type(value) is not bytes:  # also one number for all elements
                        numbers = np.asarray(value, whole.base)
                        value = (numbers if numbers.shape == whole.shape
                                 else np.broadcast_to(numbers, whole.shape)).tobytes()
                members[place] = value
            elif value is None:
                members[place] = 0  # a null pointer
            elif value.dtype is not kind and value.dtype != kind:
                raise TypeError(f"{name} is an array of {value.dtype}, not {kind}")
            elif not value.flags.c_contiguous:
                raise TypeError(f"{name} is not contiguous")
            else:
                members[place] = address(value)


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
    libraries: Path = field(default=build.HEADER_FOLDER / build.FOLDER)

    @cached_property
    def arguments(self) -> dict[str, Arguments]:
        """The arguments of the file's kernels, by their names."""
        return parse_arguments(self.path.read_text("utf-8"))

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        return {name: Kernel(self, name) for name in self.arguments}

    def __getitem__(self, name: str) -> Kernel:
        return self._kernels[name]


class DeviceProgram(Protocol):
    """Functions that are compiled with a kernel for a GPU, such as an interaction; they are written when needed."""

    @property
    def macros(self) -> Mapping[str, object]:
        """Macros, before the file."""

    @property
    def source(self) -> str:
        """C++, before the file."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of a file, which an engine launches.

    Parameters
    ----------
    file : KernelFile
    name : str
    threads : int
        Number of threads of a block of a GPU, of which `count` is then a multiple; 0 for that of a BLOCK_KERNEL.
    program : DeviceProgram, optional
        Functions that are compiled with the kernel for a GPU; its macro WARPS is the number of warps of a block.
    """

    file: KernelFile
    name: str
    threads: int = field(default=0, compare=False)
    program: DeviceProgram | None = field(default=None, compare=False)

    def for_blocks(self, threads: int, program: DeviceProgram | None = None) -> Kernel:
        """Return the kernel with blocks of so many threads on a GPU, and functions that are compiled with it there."""
        return replace(self, threads=threads, program=program)

    @cached_property
    def arguments(self) -> Arguments:
        """The struct of the kernel's arguments."""
        return self.file.arguments[self.name]

    @cached_property
    def on_range(self) -> Any:
        """The compiled function of the CPU's kernel over a range of elements."""
        return _function(self, RANGE)

    @cached_property
    def on_team(self) -> Any:
        """The compiled function of a TEAM_KERNEL of the CPU."""
        return _function(self, TEAM)


#: Parameters of glibc's mallopt, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, and bytes: blocks up to the first size are
#: taken from the heap, which keeps up to the second one of what was freed.
KEPT_MEMORY = {-3: 32 << 20, -1: 128 << 20}


@cache
def load_library(folder: Path = build.HEADER_FOLDER / build.FOLDER) -> ctypes.CDLL:
    """Return the library for the best instruction set of this processor, or for that in VMDPOTENTIAL_VECTORS.

    Raises
    ------
    BackendError
        If there is no library for this processor.
    UsageError
        If the variable names an instruction set that does not exist here.
    """
    names = list(build.INSTRUCTION_SETS.get(build.PROCESSORS.get(platform.machine(), ""), ("baseline",)))
    # otherwise arrays of some MB are given back after each sum, and the system clears their memory for the next one,
    # which takes a seventh of the time of a live map
    for parameter, size in KEPT_MEMORY.items() if sys.platform == "linux" else ():
        getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)(parameter, size)  # not in other C libraries
    try:
        library = ctypes.CDLL(str(folder / build.library_name(names[0])))
        supported = names[: library.supported_instruction_set() + 1] if folder == build.HEADER_FOLDER / build.FOLDER \
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
    """Return the instruction set of the kernels, the number of float32 in its vectors, and whether it was chosen."""
    library = load_library()
    library.instruction_set.restype = ctypes.c_char_p
    chosen = f", chosen by {VARIABLE}" if os.environ.get(VARIABLE) else ""
    return f"{library.instruction_set().decode()} vectors of {library.vector_floats()} floats{chosen}"


_symbols = threading.Lock()


@cache
def _check_compiled(file: KernelFile) -> None:
    """Raise BackendError for a file that was changed after it was compiled: its kernels would read other arguments."""
    record = file.libraries / build.RECORD
    compiled = json.loads(record.read_text()).get(build.SOURCES) if record.exists() else None
    if compiled and build.source_checksum(file.path) not in compiled:
        raise BackendError(f"{file.path} was changed after it was compiled",
                           "run python3 vmdpotential/kernels/build.py, or install its package again")


@cache
def _function(kernel: Kernel, kinds: tuple[Any, ...]) -> Any:
    library = load_library(kernel.file.libraries)
    _check_compiled(kernel.file)
    with _symbols:
        function = library[kernel.name]  # a new object, unlike an attribute
    function.argtypes, function.restype = kinds, None
    return function


_addressof, _view = ctypes.addressof, (ctypes.c_char * 0).from_buffer


def address_of(array: Any) -> int:
    """Return the address of the values of an array of numpy."""
    try:
        return _addressof(_view(array))  # three times as fast as the other
    except (TypeError, ValueError):  # it is read-only
        return int(array.__array_interface__["data"][0])


def launch_kernel(kernel: Kernel, count: int, label: str, grain: int = 0, /, **values: Any) -> None:
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
    if not count:  # also of a kernel that only GPUs have
        return
    function = kernel.on_range
    packed = kernel.arguments.pack(values, address_of)
    workers = 1 if count <= grain else threads.count()
    if workers == 1 and (count <= grain or count == 1):
        function(packed, 0, count)
        return
    threads.run(lambda first, last: function(packed, first, last), count, label,
                grain or max(1, -(-count // (8 * workers))))


def call_kernel(kernel: Kernel, first: int, last: int, /, **values: Any) -> None:
    """Run a kernel for a range of elements on this thread, with its arguments as in :func:`launch_kernel`."""
    kernel.on_range(kernel.arguments.pack(values, address_of), first, last)


def bind_kernel(kernel: Kernel, /, **fixed: Any) -> Callable[..., None]:
    """Return :func:`call_kernel` of a kernel, with some arguments that are packed once for many calls.

    The returned function also takes the label and the grain of :func:`launch_kernel`, and then divides a
    range from 0 on.
    """
    function, pack = kernel.on_range, kernel.arguments.packer(fixed, address_of)

    def call_with(first: int, last: int, label: str = "", grain: int = 0, /, **values: Any) -> None:
        packed = pack(values)
        if grain and last > grain:
            threads.run(lambda begin, end: function(packed, begin, end), last, label, grain)
        else:
            function(packed, first, last)

    call_with.arrays = fixed  # type: ignore[attr-defined]  # they must not be freed
    return call_with


def launch_team(kernel: Kernel, workers: int = 0, /, **values: Any) -> None:
    """Run a kernel once on several threads, which meet at barriers; see TEAM_KERNEL in kernel.h."""
    function = kernel.on_team
    packed = kernel.arguments.pack(values, address_of)
    workers = workers or threads.count()
    threads.together(lambda worker, shared: function(packed, worker, workers, address_of(shared)), workers)


if sys.byteorder != "little":  # pragma: no cover
    raise ImportError("kernels are compiled for little-endian processors only")
