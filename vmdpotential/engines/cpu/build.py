"""Kernel modules for one radial function and precision, compiled once and kept on disk.

Numba's disk cache knows a function by its module file. A kernel that captures an intrinsic made at
run time would miss the cache in every process, so the kernel's module is copied into the user's
cache folder with its program written in, under a name that is a hash of all it depends on.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

from vmdpotential.cache import folder as cache_folder
from vmdpotential.interactions.tracing import Program

_IMPORT = "from vmdpotential.engines.cpu.current import MASKED, PRECISION, PROGRAM\n"


@cache
def load(template: str, program: Program, precision: str = "single", masked: bool = False) -> ModuleType:
    """Return the module `template` of this package, made for a program.

    Parameters
    ----------
    template : str
        Name of the module with the kernels, which imports PROGRAM, PRECISION and MASKED from
        :mod:`vmdpotential.engines.cpu.current`.
    program : Program
    precision : str
    masked : bool
        Whether the traversal must mask pairs beyond distance 1.
    """
    import numba

    here = Path(__file__).parent
    source = (here / f"{template}.py").read_text()
    definitions = (
        "from vmdpotential.interactions.tracing import Program\n\n"
        f"PROGRAM = {program!r}\nPRECISION = {precision!r}\nMASKED = {masked!r}\n"
    )
    before, line, after = source.partition(_IMPORT)
    if not line:
        raise RuntimeError(f"{template}.py does not import its program")
    text = before + definitions + after
    others = [here / "simd.py", here / "filters.py", here.parent.parent / "interactions" / "tracing.py"]
    depends = "".join([text, *(other.read_text() for other in others), numba.__version__])
    name = f"vmdpotential_{template}_{hashlib.sha256(depends.encode()).hexdigest()[:16]}"
    if name in sys.modules:  # asked for by other arguments
        return sys.modules[name]
    path = cache_folder() / f"{name}.py"
    if not path.exists():
        # renamed into place, so that another process never sees half a file
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
            file.write(text)
        os.replace(file.name, path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
