"""The folder where compiled kernels are kept between runs."""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

#: Bytes that the compiled kernels of a few runs take.
ROOM = 4_000_000


@cache
def folder(name: str = "") -> Path:
    """Return the folder of compiled kernels: under VMDPOTENTIAL_CACHE, else the user's cache folder.

    Where that cannot be written, a temporary folder is used and kernels are compiled anew in every run.

    Parameters
    ----------
    name : str
        A folder inside it, for kernels of one kind.
    """
    base = os.environ.get("VMDPOTENTIAL_CACHE")
    if base:
        place = Path(base)
    elif sys.platform == "win32":
        place = Path(os.environ.get("LOCALAPPDATA", Path.home())) / "vmdpotential"
    elif sys.platform == "darwin":
        place = Path.home() / "Library" / "Caches" / "vmdpotential"
    else:
        place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vmdpotential"
    place = place / "kernels" / name
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
        if shutil.disk_usage(place).free < ROOM:
            raise OSError(errno.ENOSPC, "the disk is full")
    except OSError:
        place = Path(tempfile.mkdtemp(prefix="vmdpotential-kernels-"))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place
