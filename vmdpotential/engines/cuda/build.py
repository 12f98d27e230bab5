"""Kernel files compiled by nvcc through PyCUDA, and kept in the package's cache folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential import cache, progress
from vmdpotential.errors import BackendError

HERE = Path(__file__).parent

#: Of the cache, where compiled kernels are kept.
FOLDER = "cuda"

#: What kernels call the numbers of the host.
_C = {np.dtype(np.float64): "double", np.dtype(np.float32): "float", np.dtype(np.int32): "int",
      np.dtype(np.uint64): "size_t"}

#: Structs by the kernel file that knows them, those of every file under an empty name: name and type of the host.
_STRUCTS: dict[str, dict[str, np.dtype[Any]]] = {"": {}}


class CompilationError(BackendError):
    """A kernel does not compile, for instance with a radial function of a plugin.

    Parameters
    ----------
    message : str
        One line.
    listing : str
        The source with line numbers.
    """

    def __init__(self, message: str, listing: str) -> None:
        super().__init__(message)
        self.listing = listing


def address(kind: str) -> np.dtype[Any]:
    """Return the type, for :func:`struct`, of an address on the device of values that C calls `kind`."""
    return np.dtype(np.uint64, metadata={"to": kind})  # type: ignore[call-overload]


def struct(name: str, fields: Sequence[Any], file: str = "") -> np.dtype[Any]:
    """Return the type of records that a kernel file, or each of them, reads as a struct of that name.

    Parameters
    ----------
    name : str
    fields : sequence of tuples
        As for :class:`numpy.dtype`, with :func:`address` and structs made before among the types.
    file : str
        Of the kernels.
    """
    made = np.dtype(list(fields), align=True)
    _STRUCTS.setdefault(file, {})[name] = made
    return made


def declarations(file: str) -> str:
    """Return the structs that a kernel file knows, in C, with checks that host and device lay them out alike."""
    known = {**_STRUCTS[""], **_STRUCTS.get(file, {})}
    text = ""
    for name, made in known.items():
        assert made.fields is not None
        lines, checks = "", f"static_assert(sizeof({name}) == {made.itemsize}, \"{name}\");\n"
        for field in made.fields:
            kind, sides = made[field].subdtype or (made[field], ())
            if kind.metadata is not None:
                in_c = f"{kind.metadata['to']} *"
            elif kind.names is not None:
                in_c = next(other for other, of in known.items() if of is kind or of == kind) + " "
            else:
                in_c = _C[kind] + " "
            lines += f"    {in_c}{field}{''.join(f'[{n}]' for n in sides)};\n"
            checks += f"static_assert(__builtin_offsetof({name}, {field}) == {made.fields[field][1]}, \"{field}\");\n"
        text += f"struct {name} {{\n{lines}}};\n{checks}"
    return text


def source(file: str | Path, macros: Mapping[str, object], radial: str = "") -> str:
    """Return the text that is compiled: macros, common part, structs, radial function and the kernel file.

    Parts are joined instead of included, so that the text is all that the result depends on. The file is one of
    this folder, or a path of another package's.
    """
    text = "".join(f"#define {name} {value}\n" for name, value in sorted(macros.items()))
    for name in ("common.cuh", file):
        text += f'#line 1 "{Path(name).name}"\n{(HERE / name).read_text()}'
        if name == "common.cuh":
            text += f'#line 1 "structs"\n{declarations(Path(file).name)}#line 1 "radial function"\n{radial}'
    return text


def options(macros: Mapping[str, object]) -> list[str]:
    """Return nvcc's options; single precision does without denormals and the last bit of divisions.

    A saturated difference leaves the plain one unused (diagnostic 177).
    """
    fast = ["-ftz=true", "-prec-div=false", "-prec-sqrt=false"]
    return ["-O3", "-std=c++17", "-diag-suppress", "177", *(fast if macros.get("REAL") == "float" else [])]


def compile_module(file: str | Path, macros: Mapping[str, object], radial: str, nvcc: str,
                   capability: tuple[int, ...]) -> Any:
    """Return the PyCUDA module of a kernel file, for the current context.

    Raises
    ------
    CompilationError
        When nvcc refuses it; the source with line numbers is in the error and in a file it names.
    """
    from vmdpotential.engines.cuda import device

    text, architecture = source(file, macros, radial), "sm_" + "".join(map(str, capability))
    depends = [text, *options(macros), architecture, device.compiler().get_nvcc_version(nvcc)]
    entry = f"{Path(file).stem}-{hashlib.sha256(chr(0).join(depends).encode()).hexdigest()[:16]}"
    binary = cache.read(entry, FOLDER)
    if binary is None:
        with cache.alone(entry, FOLDER), progress.compiling():
            binary = cache.read(entry, FOLDER)  # made by another process, or for another GPU, in the meantime
            if binary is None:
                binary = _compile(file, text, nvcc, options(macros), architecture)
                cache.write(entry, binary, FOLDER)
    return device.driver().module_from_buffer(binary)


def _compile(file: str | Path, text: str, nvcc: str, flags: list[str], architecture: str) -> bytes:
    from vmdpotential.engines.cuda import device

    try:
        binary: bytes = device.compiler().compile(text, nvcc=nvcc, options=flags, no_extern_c=True, arch=architecture,
                                                  cache_dir=False)  # PyCUDA's cache checks nothing
        return binary
    except device.driver().CompileError as error:
        said = (error.stderr or "") + (error.stdout or "")
        said = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
        raise failure(file, text, said, cache.folder(FOLDER)) from None


def failure(file: str | Path, text: str, said: str, folder: Path) -> CompilationError:
    """Return the error for a source that nvcc refused, with what it said."""
    listing = "\n".join(f"{n:4d}  {line}" for n, line in enumerate(text.splitlines(), 1))
    first = re.search(r"^.*\b(error|fatal)\b.*$", said, re.MULTILINE)
    reason = " ".join((first.group() if first else said or "nvcc gave no reason").split())
    name = Path(file).name
    path = folder / f"failed-{Path(file).stem}.txt"
    path.write_text(f"{listing}\n\n{said}\n")
    return CompilationError(f"the kernel {name} does not compile: {reason} (numbered source: {path})", listing)
