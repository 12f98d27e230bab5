"""Memory planned before it is taken."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from vmdpotential.errors import MemoryPlanError, UsageError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

#: A limit of so many bytes is none: version 1 has no other word for it.
_NONE = 2**60

#: Where the system tells about itself.
ROOT = Path("/")

#: Bytes that libraries take which are loaded, and kernels that are compiled, after a plan was made.
RESERVE = 150_000_000

#: Bytes of address space that libraries take when they are loaded, most of which is never used.
ADDRESSES = 450_000_000


def limit(root: Path = ROOT, reserve: int = RESERVE) -> int:
    """Return the bytes that may be used: VMDPOTENTIAL_MEMORY (such as 8G), else what is free now for this process.

    That is the least of what the machine has, what the control groups of the process leave (a container's, a batch
    system's, each group above), and what ``ulimit -v`` and ``ulimit -d`` leave, less `reserve`.

    Parameters
    ----------
    root : Path
        Where ``proc`` and ``sys`` are, for tests.
    reserve : int, bytes
        What is kept for others; nothing for who loads and compiles nothing more, such as a reader of files.

    Raises
    ------
    UsageError
        When the variable is not a number with an optional k, M, G or T.
    """
    requested = from_environment("VMDPOTENTIAL_MEMORY")
    if requested is not None:
        return requested
    # a map asks several times, and on a GPU it takes milliseconds: what was found is good for a tenth of a second,
    # and as long as the process has the limits that it had
    known = (int(10 * time.monotonic()), *_limits_of_process())
    free = _free(root, known) if root == ROOT else _free.__wrapped__(root, known)
    return max(free - reserve, 0)


@functools.lru_cache(maxsize=1)
def _free(root: Path, _: tuple[float, ...]) -> int:
    results = [*_of_machine(root), *_of_groups(root), *_of_process(root)]
    return min(results) if results else 2**62  # nothing is known; the operating system will say


def _of_machine(root: Path) -> Iterator[int]:
    """Yield what is free on the machine."""
    numbers = _numbers(root / "proc/meminfo", "MemAvailable")
    if numbers:
        yield numbers["MemAvailable"]
    elif hasattr(os, "sysconf"):
        with contextlib.suppress(ValueError, OSError):
            yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_groups(root: Path) -> Iterator[int]:
    """Yield what each control group of the process, and each group above it, leaves."""
    for folder in _groups(root):
        yield from _of_group(folder)


@functools.cache
def _groups(root: Path) -> list[Path]:
    """Return the folders of these groups; looked for once, as it takes as long as a small map on a GPU."""
    results = []
    for line in _lines(root / "proc/self/cgroup"):  # 4:memory:/a/b of version 1, 0::/a/b of version 2
        kinds, path = line.split(":", 2)[1:]
        if not kinds or "memory" in kinds.split(","):
            for top, folder in _mounted(root, kinds, path):
                results += [folder, *(above for above in folder.parents if above == top or top in above.parents)]
    return [folder for folder in results if folder.is_dir()]


def _mounted(root: Path, kinds: str, path: str) -> Iterator[tuple[Path, Path]]:
    """Yield where a hierarchy of groups is mounted, and the folder of a group in it; `kinds` are empty in version 2."""
    for line in _lines(root / "proc/self/mountinfo"):
        ours, _, mount = line.partition(" - ")
        source, place = (_unescaped(word) for word in ours.split()[3:5])
        kind, _, options = mount.split(" ", 2)
        if kind != ("cgroup" if kinds else "cgroup2") or (kinds and "memory" not in options.split(",")):
            continue
        top = root / place.lstrip("/")
        # a container sees a part of the tree, whose top is what is mounted; "/.." is above what it sees
        inside = os.path.relpath(path, source) if ".." not in path.split("/") else "."
        yield top, top if inside.startswith("..") else top / inside


def _unescaped(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def _of_group(folder: Path) -> Iterator[int]:
    """Yield what a control group leaves: its limits less what is in use and cannot be dropped."""
    old = _number(folder / "memory.limit_in_bytes")
    names = ("memory.max", "memory.high")
    most = min((n for n in (old, *map(_number, (folder / name for name in names))) if n is not None), default=_NONE)
    taken = None if most >= _NONE else _number(folder / ("memory.current" if old is None else "memory.usage_in_bytes"))
    if taken is not None:
        idle, used = ("inactive_file", "active_file") if old is None else ("total_inactive_file", "total_active_file")
        stat = _numbers(folder / "memory.stat", idle, used)
        # copies of files are dropped where memory is wanted: those in use too, but then they have to be read again
        files = stat.get(idle, 0) + stat.get(used, 0) // 2
        yield max(most - max(taken - files, 0), 0)


def _limits_of_process() -> tuple[float, ...]:
    """Return the most bytes of addresses, and of data, that the process may have; inf where there is no limit."""
    try:
        import resource
    except ImportError:  # Windows
        return math.inf, math.inf
    result = (resource.getrlimit(getattr(resource, name))[0] if hasattr(resource, name) else resource.RLIM_INFINITY
             for name in ("RLIMIT_AS", "RLIMIT_DATA"))
    return tuple(math.inf if most == resource.RLIM_INFINITY else most for most in result)


def _of_process(root: Path) -> Iterator[int]:
    """Yield what the limits of the process leave."""
    numbers = _numbers(root / "proc/self/status", "VmSize", "VmData")
    if "numba" not in sys.modules:  # the largest of them, and who compiles without room is ended by LLVM
        numbers["VmSize"] = numbers.get("VmSize", 0) + ADDRESSES
    for most, taken in zip(_limits_of_process(), ("VmSize", "VmData"), strict=True):
        if most != math.inf:
            yield max(int(most) - numbers.get(taken, 0), 0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    """Return the number in a file; None where there is none, or "max"."""
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdecimal() else None


def _numbers(path: Path, *names: str) -> dict[str, int]:
    """Return some numbers of a file with a name and a number on each line, in bytes."""
    result = {}
    for line in _lines(path):
        words = line.replace(":", " ").split() if line.startswith(names) else ()
        if len(words) > 1 and words[1].isdecimal():
            result[words[0]] = int(words[1]) * (1024 if words[2:] == ["kB"] else 1)
    return result


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


def require(needed: int, what: str, cure: str, reserve: int = RESERVE) -> None:
    """Refuse a task that needs more memory than there is; parameters are in the cure as :mod:`errors` says.

    What is kept for others is as in :func:`limit`.

    Raises
    ------
    MemoryPlanError
        Naming the task, the bytes it needs and those there are, and the cure.
    """
    available = limit(reserve=reserve)
    if needed > available:
        others = min([*_of_machine(ROOT), *_of_groups(ROOT)], default=_NONE) - reserve
        if from_environment("VMDPOTENTIAL_MEMORY") is None and needed <= others:
            cure = f"raise the limit of this process, which is set by ulimit -v or -d, or {cure}"
        raise MemoryPlanError(f"{what} needs {size(needed)} of memory, {size(available)} are free", cure)


def size(count: float) -> str:
    """Return a number of bytes for people, such as 1.5 GB; a damaged file may ask for more than a float holds."""
    count = min(count, 10**300)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError
