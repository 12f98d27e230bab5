"""C and C++ that tests compile for the host, kept for the next runs as kernels are."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

KEPT = Path(__file__).resolve().parents[2] / ".pytest_cache" / "host"


def library(text, *flags, suffix=".cpp"):
    """Return the library of a source text, compiled with -O1 where that text was not yet, or by another compiler."""
    names = ["g++"] if suffix == ".cpp" else ["cc", "gcc", "clang"]
    compiler = next(filter(None, map(shutil.which, names)), None) or pytest.skip(f"{names[-1]} is not installed")
    made = f"{compiler} {os.stat(compiler).st_mtime_ns} {flags} {text}"
    target = KEPT / f"{hashlib.sha256(made.encode()).hexdigest()[:32]}.so"
    if not target.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEPT) as folder:
            source, output = Path(folder) / f"source{suffix}", Path(folder) / "made.so"
            source.write_text(text)
            subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", output, source, *flags], check=True)
            output.replace(target)  # whole, also where two processes compile the same
    return ctypes.CDLL(str(target))
