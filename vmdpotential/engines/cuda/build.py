"""Compilation of kernel files by nvcc through PyCUDA; the results are kept in the package's cache folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential import cache, progress
from vmdpotential.errors import BackendError
from vmdpotential.kernels.build import HEADER_FOLDER, is_shared

HERE = Path(__file__).parent

_INCLUDE = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)

#: Subfolder of the cache with compiled kernels.
FOLDER = "cuda"

#: C types of the numpy types in structs.
_C = {np.dtype(np.float64): "double", np.dtype(np.float32): "float", np.dtype(np.int32): "int",
      np.dtype(np.uint64): "size_t"}

#: Structs (name and numpy type) by the kernel file that uses them, or by an empty name if all files do.
_STRUCTS: dict[str, dict[str, np.dtype[Any]]] = {"": {}}


class CompilationError(BackendError):
    """The error of a kernel that does not compile, for instance with a radial function of a plugin.

    Parameters
    ----------
    message : str
        Message of one line.
    listing : str
        Source with line numbers.
    """

    def __init__(self, message: str, listing: str) -> None:
        super().__init__(message)
        self.listing = listing


def pointer_type(kind: str) -> np.dtype[Any]:
    """Return the type, for :func:`struct_type`, of a pointer to values of the C type `kind` on the device."""
    return np.dtype(np.uint64, metadata={"to": kind})  # type: ignore[call-overload]


def struct_type(name: str, fields: Sequence[Any], file: str = "") -> np.dtype[Any]:
    """Return the type of records that kernels read as a struct, and declare the struct to them.

    Parameters
    ----------
    name : str
        Name of the struct in C.
    fields : sequence of tuples
        Fields as for :class:`numpy.dtype`; types may also be those of :func:`pointer_type` and of earlier structs.
    file : str
        Kernel file that uses the struct; by default all of them.
    """
    record = np.dtype(list(fields), align=True)
    _STRUCTS.setdefault(file, {})[name] = record
    return record


def declarations(file: str) -> str:
    """Return the C code of a kernel file's structs, with checks that their layout is the same on host and device."""
    structs = {**_STRUCTS[""], **_STRUCTS.get(file, {})}
    text = ""
    for name, record in structs.items():
        assert record.fields is not None
        lines, checks = "", f"static_assert(sizeof({name}) == {record.itemsize}, \"{name}\");\n"
        for field in record.fields:
            kind, sides = record[field].subdtype or (record[field], ())
            if kind.metadata is not None:
                in_c = f"{kind.metadata['to']} *"
            elif kind.names is not None:
                in_c = next(other for other, dtype in structs.items() if dtype is kind or dtype == kind) + " "
            else:
                in_c = _C[kind] + " "
            lines += f"    {in_c}{field}{''.join(f'[{n}]' for n in sides)};\n"
            checks += f"static_assert(__builtin_offsetof({name}, {field}) == {record.fields[field][1]}, \"{field}\");\n"
        text += f"struct {name} {{\n{lines}}};\n{checks}"
    return text


def source(file: str | Path, macros: Mapping[str, object], radial: str = "") -> str:
    """Return the source to compile: macros, common part, structs, radial function and the kernel file.

    Parts are concatenated instead of included, so that the result depends on this text alone. `file` is the name of a
    file in this folder, or the path of a file of another package. A file that includes ``kernel.h`` is without the
    common part, and its program comes first.
    """
    text = "".join(f"#define {name} {value}\n" for name, value in sorted(macros.items()))
    if is_shared(HERE / file):
        return text + f'#line 1 "program"\n{radial}' * bool(radial) + _included(HERE / file, set())
    for name in ("common.cuh", file):
        text += f'#line 1 "{Path(name).name}"\n{(HERE / name).read_text("utf-8")}'
        if name == "common.cuh":
            text += f'#line 1 "structs"\n{declarations(Path(file).name)}#line 1 "radial function"\n{radial}'
    return text


def _included(path: Path, done: set[Path]) -> str:
    """Return the text of a file with the headers that it includes, each once."""
    if path in done:
        return ""
    done.add(path)

    def replace(include: re.Match[str]) -> str:
        places = (folder / include[1] for folder in (path.parent, HEADER_FOLDER))
        header = next((place for place in places if place.exists()), None)
        number = path.read_text("utf-8")[: include.start()].count("\n") + 2
        return include[0] if header is None else f'{_included(header, done)}#line {number} "{path.name}"'

    text = _INCLUDE.sub(replace, path.read_text("utf-8")).replace("#pragma once", "")
    return f'#line 1 "{path.name}"\n{text}'


def options(macros: Mapping[str, object]) -> list[str]:
    """Return nvcc's options; single precision omits denormal numbers and correct rounding of divisions and roots.

    Diagnostic 177 is about unused variables: where a saturated difference is used, the plain one is not.
    """
    fast = ["-ftz=true", "-prec-div=false", "-prec-sqrt=false"]
    return ["-O3", "-std=c++17", "-diag-suppress", "177", *(fast if macros.get("REAL", "float") == "float" else [])]


def compile_module(file: str | Path, macros: Mapping[str, object], radial: str, nvcc: str,
                   capability: tuple[int, ...]) -> Any:
    """Return the PyCUDA module of a kernel file, for the current context.

    Raises
    ------
    CompilationError
        If nvcc fails; the source with line numbers is in the error, and in a file that its message names.
    """
    from vmdpotential.engines.cuda import driver

    text, architecture = source(file, macros, radial), "sm_" + "".join(map(str, capability))
    depends = [text, *options(macros), architecture, driver.compiler().get_nvcc_version(nvcc)]
    entry = f"{Path(file).stem}-{hashlib.sha256(chr(0).join(depends).encode()).hexdigest()[:16]}"
    binary = cache.read(entry, FOLDER)
    if binary is None:
        with cache.locked(entry, FOLDER), progress.compiling():
            binary = cache.read(entry, FOLDER)  # another process may have compiled it in the meantime
            if binary is None:
                binary = _compile(file, text, nvcc, options(macros), architecture)
                cache.write(entry, binary, FOLDER)
    return driver.cuda_driver().module_from_buffer(binary)


def _compile(file: str | Path, text: str, nvcc: str, flags: list[str], architecture: str) -> bytes:
    from vmdpotential.engines.cuda import driver

    try:
        binary: bytes = driver.compiler().compile(text, nvcc=nvcc, options=flags, no_extern_c=True, arch=architecture,
                                                  cache_dir=False)  # PyCUDA's cache has no checksums
        return binary
    except driver.cuda_driver().CompileError as error:
        output = (error.stderr or "") + (error.stdout or "")
        output = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
        raise failure(file, text, output, cache.folder(FOLDER)) from None


def failure(file: str | Path, text: str, output: str, folder: Path) -> CompilationError:
    """Return the error for a source that does not compile, with the first error in nvcc's output."""
    listing = "\n".join(f"{n:4d}  {line}" for n, line in enumerate(text.splitlines(), 1))
    first = re.search(r"^.*\b(error|fatal)\b.*$", output, re.MULTILINE)
    reason = " ".join((first.group() if first else output or "nvcc gave no reason").split())
    name = Path(file).name
    path = folder / f"failed-{Path(file).stem}.txt"
    path.write_text(f"{listing}\n\n{output}\n", "utf-8")
    return CompilationError(f"the kernel {name} does not compile: {reason} (numbered source: {path})", listing)
