"""Kernel modules for one radial function and precision, compiled once and kept on disk.

A kernel file is run once for each set of constants, as a module whose name contains a hash of everything that it
depends on. :class:`KernelCache` stores its compiled functions in the user's cache folder. Numba's own cache identifies
a function by its file and date: it cannot distinguish constants that are set at run time, and does not check what it
reads.

If vector code cannot be built, because a Numba that is newer than those tested has changed internally, the same files
are run with PLAIN, and use plain loops instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
import pickle
import re
import sys
import threading
from collections.abc import Hashable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from vmdpotential import cache as files
from vmdpotential import progress
from vmdpotential.errors import BackendError, shortened

HERE = Path(__file__).parent.parent

#: Kernel files that have vector code, and plain loops for PLAIN.
WITH_VECTORS = ("nbody_kernel",)

#: An import of a module of this package, and of names, which may be modules.
_IMPORT = re.compile(
    r"^\s*(?:from\s+(vmdpotential[\w.]*)\s+import\s+(\([^)]*\)|[^\n#]*)|import\s+(vmdpotential[\w.]*))", re.MULTILINE)

_loading = threading.RLock()
#: Set when vector code could not be built in this process.
_no_vectors = threading.Event()
#: The function that the thread compiles (`kept`), of which the functions it calls are part, and its clean-up (`steps`).
_under_way = threading.local()


def load(template: str | Path, **constants: Hashable) -> ModuleType:
    """Return a kernel file as a module for some constants.

    Parameters
    ----------
    template : str or Path
        Name of a kernel file of this package, or the path of another one.
    **constants
        Values of the names in capitals that the file declares without a value; ``repr`` must distinguish them.

    Raises
    ------
    BackendError
        When Numba cannot compile in this environment.
    """
    with _loading:
        if template not in WITH_VECTORS:
            return _load(template, **constants)
        if plain():
            return _load(template, plain=True, **constants)
        try:
            return _load(template, plain=False, **constants)
        except Exception as error:  # any error, as vector code depends on Numba's internals
            module = _load(template, plain=True, **constants)
            _do_without_vectors(error)
            return module


def plain() -> bool:
    """Return whether plain loops are used instead of vector code: if VMDPOTENTIAL_PLAIN is set, or if that failed."""
    return os.environ.get("VMDPOTENTIAL_PLAIN", "0") not in ("", "0") or _no_vectors.is_set()


def describe() -> str:
    """Return a description of the vectors that kernels use.

    Raises
    ------
    BackendError
        When Numba cannot compile in this environment.
    """
    _versions()
    if not plain():
        with contextlib.suppress(ImportError, AttributeError):
            from vmdpotential.compiling import simd

            return f"{simd.LEVEL} vectors of {simd.LANES[32]} floats"
    return "plain loops"


def _do_without_vectors(error: Exception) -> None:
    if not _no_vectors.is_set():
        _no_vectors.set()
        reason = shortened(" ".join(str(error).split()), 200)
        logging.getLogger(__name__).warning(
            "vmdpotential: vector code cannot be built here (%s); plain loops are used, which are slower",
            f"{type(error).__name__}: {reason}" if reason else type(error).__name__)


@cache
def _versions() -> str:
    """Return what compiled code depends on in addition to its kernel file, as text.

    Raises
    ------
    BackendError
        When Numba cannot compile in this environment.
    """
    try:
        import llvmlite
        import numba
    except Exception as error:  # an invalid environment variable, or a broken installation
        raise BackendError(f"Numba does not start: {' '.join(str(error).split()).rstrip('.')}",
                           "check the environment variables NUMBA_..., or install numba again") from None
    if numba.config.DISABLE_JIT:
        raise BackendError("NUMBA_DISABLE_JIT is set, and without compilation kernels would take hours",
                           "unset it")
    return f"{numba.__version__}\n{llvmlite.__version__}\n{sys.implementation.cache_tag}"


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Return the modules of this package that a file imports itself."""
    text = path.read_text("utf-8")
    found: list[Path] = []
    for module, names, plain_import in _IMPORT.findall(text):
        base = module or plain_import
        for name in (base, *(f"{base}.{word}" for word in re.findall(r"\w+", names))):
            place = HERE.parent.joinpath(*name.split("."))
            found += [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
    return tuple(found)


def depends_on(path: Path) -> list[Path]:
    """Return the modules of this package that a kernel file imports, and those that they import, sorted."""
    known: set[Path] = set()
    left = [path]
    while left:
        new = set(_imports(left.pop())) - known - {HERE / "__init__.py"}
        known |= new
        left += new
    return sorted(known)


@cache
def _files() -> dict[str, Path]:
    """Return the kernel files of this package, by name."""
    return {path.stem: path for path in HERE.rglob("*_kernel.py")}


@cache
def _load(template: str | Path, **constants: Hashable) -> ModuleType:
    path = template if isinstance(template, Path) else _files()[template]
    values = {name.upper(): value for name, value in constants.items()}
    sources = "\n".join(source.read_text("utf-8") for source in (path, *depends_on(path)))
    depends = f"{_versions()}\n{sources}\n{sorted(values.items())!r}"
    name = f"vmdpotential_{path.stem}_{hashlib.sha256(depends.encode()).hexdigest()[:16]}"
    if name in sys.modules:  # loaded for equal arguments
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(values)
    spec.loader.exec_module(module)
    fallback = None if constants.get("plain", True) else (template, constants | {"plain": True})
    for function in list(vars(module).values()):
        if hasattr(function, "py_func") and function.__module__ == name:
            function._cache = kept = KernelCache(function, fallback)
            function.compile = kept.compile
            function.targetoptions["no_cfunc_wrapper"] = True  # it is never called from C
    sys.modules[name] = module  # where code from the cache looks for it
    return module


class KernelCache:
    """The disk cache of a function, with the interface of Numba's; Numba calls it while its compiler is locked.

    Parameters
    ----------
    function : numba.core.registry.CPUDispatcher
    fallback : tuple or None
        Kernel file and constants of the plain loops that are used if the function cannot be compiled.
    """

    cache_path = None

    def __init__(self, function: Any, fallback: tuple[str | Path, dict[str, Hashable]] | None) -> None:
        self._name = function.py_func.__name__
        self._module = function.__module__
        self._compile = function.compile
        self._fallback = fallback

    def compile(self, signature: Any) -> Any:
        """Return the address of the function for a signature, from the cache or compiled."""
        if getattr(_under_way, "kept", None) is not None:
            return self._compile(signature)
        if self._fallback is not None and _no_vectors.is_set():
            return self._compile_fallback(signature)
        try:
            with contextlib.ExitStack() as steps:
                _under_way.kept, _under_way.steps = self, steps
                steps.callback(setattr, _under_way, "kept", None)
                return self._compile(signature)
        except Exception as error:
            if self._fallback is None:
                raise
            try:
                entry = self._compile_fallback(signature)
            except Exception:
                raise error from None
            _do_without_vectors(error)
            return entry

    def _compile_fallback(self, signature: Any) -> Any:
        assert self._fallback is not None
        template, constants = self._fallback
        with _loading:
            module = _load(template, **constants)
        return getattr(module, self._name).compile(signature)

    def _entry(self, signature: Any, codegen: Any) -> str:
        types = hashlib.sha256(f"{signature} {codegen.magic_tuple()}".encode()).hexdigest()[:16]
        return f"{self._module}.{self._name}-{types}"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the function from the cache; None makes Numba compile it, while other processes wait."""
        if _under_way.kept is not self:
            return None
        entry = self._entry(signature, target.codegen())
        result = _rebuilt(entry, target)
        if result is None:
            _under_way.steps.enter_context(progress.compiling())
            _under_way.steps.enter_context(files.locked(entry))
            _under_way.steps.enter_context(_self_contained(self._name, target.codegen()))
            result = _rebuilt(entry, target)  # compiled by another process in the meantime
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled function, unless it contains addresses of this process."""
        if _under_way.kept is self and not result.library.has_dynamic_globals:
            from numba.core import serialize

            files.write(self._entry(signature, result.library.codegen), serialize.dumps(result._reduce()))


@contextlib.contextmanager
def _self_contained(name: str, codegen: Any) -> Iterator[None]:
    """Let a compiled function call its own copies of other functions, so that its results equal those from the cache.

    Calls that are not inlined are linked by name. A function from the cache is linked with the copies that were kept
    with it. In the process that compiled it, it would be linked with functions that were compiled separately, which may
    add numbers in another order.
    """
    before: Any = getattr(codegen, "_library_class", None)
    if before is None:  # another Numba
        yield
        return

    class Library(before):  # type: ignore[misc]
        def _finalize_final_module(self) -> None:
            if self.name == name:
                for function in self._final_module.functions:
                    if not function.is_declaration and function.linkage.name == "linkonce_odr":
                        function.linkage = "internal"
            super()._finalize_final_module()

    codegen._library_class = Library
    try:
        yield
    finally:
        codegen._library_class = before


def _rebuilt(entry: str, target: Any) -> Any:
    """Return a function from the cache, or None if there is none that can be used."""
    content = files.read(entry)
    if content is None:
        return None
    from numba.core import compiler
    from numba.core.runtime import rtsys

    # this is all that code from the cache needs; `target.refresh()` would also load what is needed for compiling, which
    # takes a quarter of a second of imports
    rtsys.initialize(target)
    try:
        return compiler.CompileResult._rebuild(target, *pickle.loads(content))
    except Exception:  # not damaged, but of another Numba
        return None
