"""Compilation of kernels for CPUs: one library for each instruction set, made when the package is built.

Kernels are C++ that is also CUDA C, in files ``*.cu`` that include ``kernel.h``. This module uses only the standard
library, because it also runs where nothing else is installed: from the build backend, from ``scripts/environment``, and
as a program, ``python vmdpotential/kernels/build.py``. Another package builds its kernels with :func:`build_libraries`.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

#: Folder of the headers that kernels include.
HEADER_FOLDER = Path(__file__).parent

#: Subfolder, next to this module, of the compiled libraries.
FOLDER = "libraries"

#: Instruction sets, from the most common to the fastest, with the compiler's options for each, by processor family.
INSTRUCTION_SETS: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "baseline": ("-march=x86-64", "-O2"),  # few processors have no more; -O3 takes a third longer to compile
        "avx2": ("-march=x86-64-v3",),
        "avx512": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
    },
    "aarch64": {"neon": ()},
}

#: Environment variable: if it is set, this package is built for this machine's processor alone, with the baseline that
#: is asked for it.
OWN_PROCESSOR = "VMDPOTENTIAL_OWN_PROCESSOR"

#: Names of processor families, as operating systems spell them.
PROCESSORS = {"AMD64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}

#: ``sys.platform`` of the systems that targets name.
SYSTEMS = {"linux": "linux", "macos": "darwin", "windows": "win32"}

#: Options of every compilation. Terms of a sum may only be added in another order where a loop says so (`omp simd`),
#: and products and sums may be fused; neither exceptions nor the C++ library are used.
OPTIONS = ("-x", "c++", "-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
           "-fopenmp-simd", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-Wall", "-Wno-unknown-pragmas",
           "-Wno-ignored-attributes", "-Wno-psabi")

#: Seconds after which one compilation counts as hanging.
MAX_SECONDS = 600


class CompilerError(Exception):
    """The error of a compiler that is missing or that fails; the message has its output."""


#: File in the folder of the libraries with what they were compiled from, and its entry for all kernel files.
RECORD, SOURCES = "checksums.json", "sources"


def find_compiler() -> tuple[str, ...]:
    """Return the command of the C++ compiler: the variable CXX, the system's, or that of the wheel ``ziglang``.

    Raises
    ------
    CompilerError
        If there is none.
    """
    if os.environ.get("CXX"):
        return tuple(shlex.split(os.environ["CXX"]))
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return (name,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "c++")
    raise CompilerError("there is no C++ compiler: install one (Debian: g++, macOS: xcode-select --install), name it "
                        "in the environment variable CXX, or pip install ziglang")


def find_sources(root: Path) -> list[Path]:
    """Return the kernel files below a folder that are compiled for CPUs: those that include ``kernel.h``."""
    return sorted(filter(is_shared, root.rglob("*.cu")))


def package_sources() -> list[Path]:
    """Return the kernel files of this package and its plugins that are compiled for CPUs."""
    package = HEADER_FOLDER.parent
    plugins = package.parent / "plugins"  # in a checkout, plugins are next to the package
    return find_sources(package) + (find_sources(plugins) if (plugins / "pymol").is_dir() else [])


def is_shared(path: Path) -> bool:
    """Return whether a file is compiled for both CPUs and GPUs: it includes ``kernel.h``."""
    return b'#include "kernel.h"' in path.read_bytes()


def library_name(instruction_set: str, system: str = sys.platform) -> str:
    """Return the file name of the library for an instruction set."""
    suffix = {"win32": "dll", "darwin": "dylib"}.get(system, "so")
    return f"{instruction_set}.{suffix}"


def build_libraries(sources: Sequence[Path], folder: Path, compiler: Sequence[str] = (),
                    target: str = "", only: int | None = None) -> list[Path]:
    """Compile kernel files into one library for each instruction set, except those in the folder that are up to date.

    Parameters
    ----------
    sources : sequence of Path
    folder : Path
        Folder of the libraries, which is created.
    compiler : sequence of str
        Command of the compiler; :func:`find_compiler` by default.
    target : str
        Processor and system of the libraries, such as ``aarch64-linux-gnu.2.17``, for a compiler that builds for
        others (zig's); by default those of this machine.
    only : int, optional
        The place in ``INSTRUCTION_SETS`` of the one that is compiled; all by default.

    Returns
    -------
    list of Path

    Raises
    ------
    CompilerError
        If there is no compiler, or if it fails.
    """
    family = PROCESSORS.get(target.split("-")[0] or platform.machine(), "")
    system = next((name for part, name in SYSTEMS.items() if part in target), sys.platform)
    sets: Mapping[str, tuple[str, ...]] = INSTRUCTION_SETS.get(family, {"baseline": ()})
    libraries = {name: folder / library_name(name, system) for name in sets}
    included = dict.fromkeys(file for path in sources for file in _included(path))
    checksums = {name: _checksum(list(included), repr((options, OPTIONS, target))) for name, options in sets.items()}
    record = folder / RECORD
    built = json.loads(record.read_text()) if record.exists() else {}
    stale = [name for name in sets if built.get(name) != checksums[name] or not libraries[name].exists()]
    wanted = list(sets) if only is None else [list(sets)[only]]
    for name in set(stale) - set(wanted):
        libraries[name].unlink(missing_ok=True)  # kernels of another version must not be loaded
    sets = {name: sets[name] for name in wanted if name in stale}
    if not sets:
        return [libraries[name] for name in wanted]
    command = [*(compiler or find_compiler()), *(["-target", target] if target else [])]
    if "ziglang" in command:  # which spells them in its own way
        sets = {name: tuple(option.replace("x86-64-", "x86_64_").replace("x86-64", "x86_64") for option in each)
                for name, each in sets.items()}
    kept = folder / "objects"  # of files that did not change, a rebuild takes the objects
    kept.mkdir(parents=True, exist_ok=True)
    position = ("-D_USE_MATH_DEFINES",) if system == "win32" else ("-fPIC",)  # M_PI is not in the standard of C++
    objects: dict[str, list[Path]] = {name: [] for name in sets}
    # next to the libraries, so that renaming stays within one file system
    with tempfile.TemporaryDirectory(dir=folder) as place, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        waiting = []
        for path in sorted(sources, key=lambda path: -path.stat().st_size):  # the longest compilations first
            for name, options in sets.items():
                compilation = [*command, *OPTIONS, *position, *options, f"-I{HEADER_FOLDER}", "-c", str(path), "-o"]
                output = kept / f"{path.stem}-{name}-{_checksum(_included(path), shlex.join(compilation))[:16]}.o"
                objects[name].append(output)
                if not output.exists():
                    waiting.append(pool.submit(_make, compilation, Path(place, output.name), output))
        for each in waiting:
            each.result()
        for name in sets:
            # the optimisation options are not repeated: with some of them linkers change the processor's rounding mode
            # kernels need no C++ library, which ziglang would compile for each new target
            _make([*command, "-shared", *(["-nostdlib++"] if "ziglang" in command else []), *map(str, objects[name]),
                   *(() if system == "win32" else ("-lm",)), "-o"], Path(place, libraries[name].name), libraries[name])
    for name, current in objects.items():
        for path in set(kept.glob(f"*-{name}-*.o")) - set(current):
            path.unlink(missing_ok=True)
    compiled = {name: checksums[name] for name in sets}
    record.write_text(json.dumps({**built, **compiled, SOURCES: [source_checksum(path) for path in sources]}))
    return [libraries[name] for name in wanted]


def build_package(target: str = "") -> list[Path]:
    """Write ``radial.h`` and build the libraries of this package; `target` as in :func:`build_libraries`.

    Where the variable VMDPOTENTIAL_OWN_PROCESSOR is set, libraries that this machine does not load are not built.
    """
    with _locked(HEADER_FOLDER / "build.py"):
        _run([sys.executable, "-S", str(HEADER_FOLDER.parent.parent / "scripts" / "make_radial_functions")])
        sources = package_sources()
        folder = HEADER_FOLDER / FOLDER
        if not os.environ.get(OWN_PROCESSOR):
            return build_libraries(sources, folder, target=target)
        baseline = build_libraries(sources, folder, only=0)
        best = ctypes.CDLL(str(baseline[0])).supported_instruction_set()
        return baseline + (build_libraries(sources, folder, only=best) if best else [])


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time do what follows: the others find its libraries."""
    with path.open() as file:
        with contextlib.suppress(ImportError):  # on Windows, each compiles
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def source_checksum(path: Path) -> str:
    """Return the checksum by which the record of the libraries knows a kernel file."""
    return _checksum([path], "")


def _checksum(files: Sequence[Path], options: str) -> str:
    content = hashlib.sha256(options.encode())
    for path in files:
        content.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return content.hexdigest()


def _included(path: Path) -> list[Path]:
    """Return a file and the headers of this package and next to it that it includes, directly or through others."""
    found = [path]
    for each in found:
        for name in re.findall(r'#include "([^"]+)"', each.read_text(encoding="utf-8")):
            header = next((place / name for place in (each.parent, HEADER_FOLDER) if (place / name).exists()), None)
            if header is not None and header not in found:
                found.append(header)
    return found


def _make(command: Sequence[str], made: Path, output: Path) -> None:
    _run([*command, str(made)])
    os.replace(made, output)


def _run(command: Sequence[str]) -> None:
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=MAX_SECONDS, check=False)
    except OSError as error:
        raise CompilerError(f"the compiler {command[0]} cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise CompilerError(f"the compiler {command[0]} did not end within {MAX_SECONDS} s") from None
    if result.returncode:
        raise CompilerError(f"{shlex.join(command)}\n{result.stderr}")


if __name__ == "__main__":
    try:
        build_package()
    except CompilerError as failure:
        sys.exit(f"kernels cannot be compiled: {failure}")
