"""Kernel files compiled by nvcc through PyCUDA, and kept on disk below the package's cache folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vmdpotential import cache
from vmdpotential.errors import BackendError

HERE = Path(__file__).parent


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


def source(file: str | Path, macros: Mapping[str, object], radial: str = "") -> str:
    """Return the text that is compiled: macros, common part, radial function and the kernel file.

    Parts are joined instead of included: PyCUDA's cache would run nvcc to look into included files. The file is
    one of this folder, or a path of another package's.
    """
    text = "".join(f"#define {name} {value}\n" for name, value in sorted(macros.items()))
    for name in ("common.cuh", file):
        text += f'#line 1 "{Path(name).name}"\n{(HERE / name).read_text()}'
        if name == "common.cuh":
            text += f'#line 1 "radial function"\n{radial}'
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

    text = source(file, macros, radial)
    folder = cache.folder("cuda")
    architecture = "sm_" + "".join(map(str, capability))
    try:
        return device.compiler().SourceModule(text, nvcc=nvcc, options=options(macros), no_extern_c=True,
                                              arch=architecture, cache_dir=str(folder))
    except device.driver().CompileError as error:
        said = (error.stderr or "") + (error.stdout or "")
        said = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
        raise failure(file, text, said, folder) from None


def failure(file: str | Path, text: str, said: str, folder: Path) -> CompilationError:
    """Return the error for a source that nvcc refused, with what it said."""
    listing = "\n".join(f"{n:4d}  {line}" for n, line in enumerate(text.splitlines(), 1))
    first = re.search(r"^.*\b(error|fatal)\b.*$", said, re.MULTILINE)
    reason = " ".join((first.group() if first else said or "nvcc gave no reason").split())
    name = Path(file).name
    path = folder / f"failed-{Path(file).stem}.txt"
    path.write_text(f"{listing}\n\n{said}\n")
    return CompilationError(f"the kernel {name} does not compile: {reason} (numbered source: {path})", listing)
