"""Memory planned before it is taken."""

from __future__ import annotations

import os

from vmdpotential.errors import MemoryPlanError, UsageError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def limit() -> int:
    """Return the bytes that may be used: VMDPOTENTIAL_MEMORY (such as 8G), else what is free now.

    Raises
    ------
    UsageError
        When the variable is not a number with an optional k, M, G or T.
    """
    wanted = from_environment("VMDPOTENTIAL_MEMORY")
    if wanted is not None:
        return wanted
    try:
        with open("/proc/meminfo") as file:
            free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        if not hasattr(os, "sysconf"):
            return 2**62  # nothing is known; the operating system will say
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                free = min(free, int(file.read()))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return free


def from_environment(name: str) -> int | None:
    """Return the bytes that an environment variable gives, such as 8G; None where it is not set.

    Raises
    ------
    UsageError
        When the variable is not a number with an optional k, M, G or T.
    """
    text = os.environ.get(name, "").strip().lower().removesuffix("b")
    if not text:
        return None
    unit = text[-1] if text[-1] in UNITS else ""
    try:
        count = float(text.removesuffix(unit)) * UNITS[unit]
    except ValueError:
        count = 0
    if not 0 < count < 2**62:
        raise UsageError(name, "give bytes, such as 8G", value=text)
    return int(count)


def require(needed: int, what: str, cure: str) -> None:
    """Refuse a task that needs more memory than there is; parameters stand in the cure as :mod:`errors` says.

    Raises
    ------
    MemoryPlanError
        Naming the task, the bytes it needs and those there are, and the cure.
    """
    available = limit()
    if needed > available:
        raise MemoryPlanError(f"{what} needs {size(needed)} of memory, {size(available)} are free", cure)


def size(count: float) -> str:
    """Return a number of bytes for people, such as 1.5 GB."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError
