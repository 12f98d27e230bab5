"""Kernel modules for one radial function and precision, compiled once and kept on disk.

Numba's disk cache knows a function by its module file. A kernel that captures an intrinsic made at
run time would miss the cache in every process, so the kernel's module is copied into the user's
cache folder with its program written in, under a name that is a hash of all it depends on.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from types import ModuleType

from vmdpotential.cache import folder as cache_folder

_IMPORT = re.compile(r"^from vmdpotential\.engines\.cpu\.current import (.+)\n", re.MULTILINE)


@cache
def load(template: str, **constants: Hashable) -> ModuleType:
    """Return the module `template` of this package, made for some constants.

    Parameters
    ----------
    template : str
        Name of the module with the kernels.
    **constants
        Values, which ``repr`` writes as Python, of what the module imports from
        :mod:`vmdpotential.engines.cpu.current`; the names there are in capitals.
    """
    import numba

    here = Path(__file__).parent
    source = (here / f"{template}.py").read_text()
    line = _IMPORT.search(source)
    if line is None or {name.strip() for name in line[1].split(",")} != {name.upper() for name in constants}:
        raise RuntimeError(f"{template}.py does not import {', '.join(constants)}")
    definitions = "".join(f"{name.upper()} = {value!r}\n" for name, value in sorted(constants.items()))
    if "program" in constants:
        definitions = f"from vmdpotential.interactions.tracing import Program\n\n{definitions}"
    text = source[: line.start()] + definitions + source[line.end() :]
    interactions = here.parent.parent / "interactions"
    others = [here / "simd.py", here / "filters.py", interactions / "tracing.py", interactions / "derivative.py"]
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
