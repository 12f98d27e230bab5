"""Kernel modules for one radial function and precision, compiled once and kept on disk.

A kernel file is run once for each set of constants, as a module of its own name, a hash of all that it depends on.
What Numba makes of its functions goes through :class:`Kept` into the user's cache folder; Numba's own cache knows a
function by a file and its date, and neither finds code whose constants were made at run time nor checks what it reads.

Where vector code cannot be built, because a Numba that is newer than those tested differs within, the same files are
run with PLAIN, and plain loops take its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
import pickle
import sys
import threading
from collections.abc import Hashable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from vmdpotential import cache as files
from vmdpotential import progress
from vmdpotential.errors import BackendError

HERE = Path(__file__).parent.parent

#: Kernel files with vector code, and plain loops for PLAIN.
WITH_VECTORS = ("mesh_kernel", "metropolis_kernel", "multigrid_kernel", "nbody_kernel", "pair_kernel", "point_kernel",
                "region_kernel", "search_kernel", "tile_kernel")

#: What kernel files import, next to Numba.
PARTS = ("engines/cpu/scalar.py", "engines/cpu/maps/rows.py", "engines/cpu/maps/filters.py", "engines/cpu/maps/leaf.py",
         "engines/cpu/continuum/nodes.py", "engines/cpu/continuum/planes.py", "engines/cpu/continuum/stencil.py",
         "engines/cpu/pairs/moves.py", "engines/cpu/pairs/nbody_loop.py", "engines/cpu/pairs/pair_vectors.py",
         "engines/cpu/pairs/search_vectors.py", "engines/cpu/pairs/vector_parts.py",
         "continuum/jump.py", "continuum/region_vectors.py",
         "compiling/simd.py", "compiling/meeting.py", "compiling/threads.py",
         "interactions/tracing.py", "interactions/program.py", "interactions/derivative.py", "interactions/csource.py")

_loading = threading.RLock()
#: Set when vector code could not be built in this process.
_no_vectors = threading.Event()
#: The function that a thread compiles (`kept`), and what ends with it; functions that it calls are part of it.
_under_way = threading.local()


def load(template: str | Path, **constants: Hashable) -> ModuleType:
    """Return the kernel file `template` of this package as a module made for some constants.

    Parameters
    ----------
    template : str or Path
        Name of the file, or the path of another package's.
    **constants
        Values, which ``repr`` distinguishes, of the names in capitals that the file declares and does not set.

    Raises
    ------
    BackendError
        When the environment keeps Numba from compiling.
    """
    with _loading:
        if template not in WITH_VECTORS:
            return _load(template, **constants)
        if plain():
            return _load(template, plain=True, **constants)
        try:
            return _load(template, plain=False, **constants)
        except Exception as error:  # whatever an unknown Numba does to vector code
            module = _load(template, plain=True, **constants)
            _do_without_vectors(error)
            return module


def load_with(template: str, plain: bool, **constants: Hashable) -> ModuleType:
    """Return a kernel file that another one calls, with or without vector code as that one is (:func:`load`)."""
    return _load(template, plain=plain, **constants)


def plain() -> bool:
    """Return whether plain loops serve instead of vector code: where VMDPOTENTIAL_PLAIN says so, or for want of it."""
    return os.environ.get("VMDPOTENTIAL_PLAIN", "0") not in ("", "0") or _no_vectors.is_set()


def describe() -> str:
    """Return which vectors kernels are made of.

    Raises
    ------
    BackendError
        When the environment keeps Numba from compiling.
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
        reason = " ".join(str(error).split())[:200]
        logging.getLogger(__name__).warning(
            "vmdpotential: vector code cannot be built here (%s); plain loops serve, more slowly",
            f"{type(error).__name__}: {reason}" if reason else type(error).__name__)


@cache
def _versions() -> str:
    """Return what compiled code depends on next to its kernel file.

    Raises
    ------
    BackendError
        When the environment keeps Numba from compiling.
    """
    try:
        import llvmlite
        import numba
    except Exception as error:  # a variable that Numba does not understand, or a broken installation
        raise BackendError(f"Numba does not start: {' '.join(str(error).split()).rstrip('.')}",
                           "check the environment variables NUMBA_..., or install numba again") from None
    if numba.config.DISABLE_JIT:
        raise BackendError("NUMBA_DISABLE_JIT is set, and without compilation kernels would take hours",
                           "unset it")
    return "\n".join([numba.__version__, llvmlite.__version__, str(sys.implementation.cache_tag),
                      *((HERE / part).read_text() for part in PARTS)])


@cache
def _files() -> dict[str, Path]:
    """Return the kernel files of this package by name."""
    return {path.stem: path for path in HERE.rglob("*_kernel.py")}


@cache
def _load(template: str | Path, **constants: Hashable) -> ModuleType:
    path = template if isinstance(template, Path) else _files()[template]
    values = {name.upper(): value for name, value in constants.items()}
    depends = f"{_versions()}\n{path.read_text()}\n{sorted(values.items())!r}"
    name = f"vmdpotential_{path.stem}_{hashlib.sha256(depends.encode()).hexdigest()[:16]}"
    if name in sys.modules:  # asked for by other arguments
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(values)
    spec.loader.exec_module(module)
    in_its_place = None if constants.get("plain", True) else (template, constants | {"plain": True})
    for function in list(vars(module).values()):
        if hasattr(function, "py_func") and function.__module__ == name:
            function._cache = kept = Kept(function, in_its_place)
            function.compile = kept.compile
            function.targetoptions["no_cfunc_wrapper"] = True  # it is never called from C
    sys.modules[name] = module  # code from the cache looks for it there
    return module


class Kept:
    """What Numba takes for the disk cache of a function, and calls with its compiler locked.

    Parameters
    ----------
    function : numba.core.registry.CPUDispatcher
    in_its_place : tuple or None
        The kernel file, and the constants, of the plain loops that serve where this cannot be compiled.
    """

    cache_path = None

    def __init__(self, function: Any, in_its_place: tuple[str | Path, dict[str, Hashable]] | None) -> None:
        self._name = function.py_func.__name__
        self._module = function.__module__
        self._compile = function.compile
        self._in_its_place = in_its_place

    def compile(self, signature: Any) -> Any:
        """Return the address of the function for some types of arguments, from the cache or compiled."""
        if getattr(_under_way, "kept", None) is not None:
            return self._compile(signature)
        if self._in_its_place is not None and _no_vectors.is_set():
            return self._plainly(signature)
        try:
            with contextlib.ExitStack() as steps:
                _under_way.kept, _under_way.steps = self, steps
                steps.callback(setattr, _under_way, "kept", None)
                return self._compile(signature)
        except Exception as error:
            if self._in_its_place is None:
                raise
            try:
                entry = self._plainly(signature)
            except Exception:
                raise error from None
            _do_without_vectors(error)
            return entry

    def _plainly(self, signature: Any) -> Any:
        assert self._in_its_place is not None
        template, constants = self._in_its_place
        with _loading:
            module = _load(template, **constants)
        return getattr(module, self._name).compile(signature)

    def _entry(self, signature: Any, codegen: Any) -> str:
        types = hashlib.sha256(f"{signature} {codegen.magic_tuple()}".encode()).hexdigest()[:16]
        return f"{self._module}.{self._name}-{types}"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what was compiled before; None makes Numba compile, and other processes wait for it."""
        if _under_way.kept is not self:
            return None
        entry = self._entry(signature, target.codegen())
        result = _rebuilt(entry, target)
        if result is None:
            _under_way.steps.enter_context(progress.compiling())
            _under_way.steps.enter_context(files.alone(entry))
            _under_way.steps.enter_context(_self_contained(self._name, target.codegen()))
            result = _rebuilt(entry, target)  # made by another process in the meantime
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled, unless it holds addresses of this process."""
        if _under_way.kept is self and not result.library.has_dynamic_globals:
            from numba.core import serialize

            files.write(self._entry(signature, result.library.codegen), serialize.dumps(result._reduce()))


@contextlib.contextmanager
def _self_contained(name: str, codegen: Any) -> Iterator[None]:
    """Let a function that is compiled call its own copies of others: the same results bit by bit as from the cache.

    Where a call is not inlined, the linker takes what a process has under that name. Of what comes from the cache that
    is the copy kept with it; in the process that compiled it, what was called is there by itself, was compiled for
    itself, and may add up in another order.
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
    """Return a function from the cache, None where there is none of use."""
    content = files.read(entry)
    if content is None:
        return None
    from numba.core import compiler
    from numba.core.runtime import rtsys

    # all that code from the cache needs; what `target.refresh()` would bring next to it serves compiling alone, which
    # asks for it, and imports a quarter of a second's worth of modules
    rtsys.initialize(target)
    try:
        return compiler.CompileResult._rebuild(target, *pickle.loads(content))
    except Exception:  # whole, but not for this Numba
        return None
