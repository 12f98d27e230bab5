"""Available memory, and checks that a task fits into it before it allocates any."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from vmdpotential.errors import MemoryPlanError, UsageError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

#: Limits of at least this many bytes mean no limit: control groups of version 1 write it as a huge number.
_NONE = 2**60

#: Folder that contains ``proc`` and ``sys``.
ROOT = Path("/")

#: Memory, bytes, for libraries that are loaded after a plan is made.
RESERVE = 150_000_000


def limit(root: Path = ROOT, reserve: int = RESERVE) -> int:
    """Return the available memory in bytes: VMDPOTENTIAL_MEMORY (such as 8G), else what is free for this process now.

    That is the least of the free memory of the machine, of the process's control groups (those of a container or batch
    system, and all groups above), and of the limits ``ulimit -v`` and ``ulimit -d``, minus `reserve`.

    Parameters
    ----------
    root : Path
        Folder that contains ``proc`` and ``sys``, for tests.
    reserve : int, bytes
        Memory kept free for libraries and kernels; 0 for tasks that load and compile nothing more, such as reading
        files.

    Raises
    ------
    UsageError
        When the variable is not a number with an optional k, M, G or T.
    """
    requested = from_environment("VMDPOTENTIAL_MEMORY")
    if requested is not None:
        return requested
    # a map needs this several times and takes only milliseconds on a GPU, so the result is cached for a tenth of a
    # second, as long as the limits of the process do not change
    known = (int(10 * time.monotonic()), *_limits_of_process())
    free = _free(root, known) if root == ROOT else _free.__wrapped__(root, known)
    return max(free - reserve, 0)


@functools.lru_cache(maxsize=1)
def _free(root: Path, _: tuple[float, ...]) -> int:
    results = [*_of_machine(root), *_of_groups(root), *_of_process(root)]
    return min(results) if results else 2**62  # unknown; the operating system will raise an error if it is too much


def _of_machine(root: Path) -> Iterator[int]:
    """Yield the free memory of the machine, in bytes."""
    numbers = _numbers(root / "proc/meminfo", "MemAvailable")
    if numbers:
        yield numbers["MemAvailable"]
    elif hasattr(os, "sysconf"):
        with contextlib.suppress(ValueError, OSError):
            yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_groups(root: Path) -> Iterator[int]:
    """Yield the free memory, in bytes, of each control group of the process and of each group above it."""
    for folder in _groups(root):
        yield from _of_group(folder)


@functools.cache
def _groups(root: Path) -> list[Path]:
    """Return the folders of these groups; cached, because finding them takes as long as a small map on a GPU."""
    results = []
    for line in _lines(root / "proc/self/cgroup"):  # 4:memory:/a/b of version 1, 0::/a/b of version 2
        kinds, path = line.split(":", 2)[1:]
        if not kinds or "memory" in kinds.split(","):
            for top, folder in _mounted(root, kinds, path):
                results += [folder, *(above for above in folder.parents if above == top or top in above.parents)]
    return [folder for folder in results if folder.is_dir()]


def _mounted(root: Path, kinds: str, path: str) -> Iterator[tuple[Path, Path]]:
    """Yield the mount points of a hierarchy of groups, and the folder of a group in each; version 2 has no `kinds`."""
    for line in _lines(root / "proc/self/mountinfo"):
        ours, _, mount = line.partition(" - ")
        source, place = (_unescaped(word) for word in ours.split()[3:5])
        kind, _, options = mount.split(" ", 2)
        if kind != ("cgroup" if kinds else "cgroup2") or (kinds and "memory" not in options.split(",")):
            continue
        top = root / place.lstrip("/")
        # in a container only a part of the tree is mounted; a path with "/.." is outside of it
        inside = os.path.relpath(path, source) if ".." not in path.split("/") else "."
        yield top, top if inside.startswith("..") else top / inside


def _unescaped(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def _of_group(folder: Path) -> Iterator[int]:
    """Yield the free memory of a control group in bytes: its limit minus the memory that cannot be reclaimed."""
    old = _number(folder / "memory.limit_in_bytes")
    names = ("memory.max", "memory.high")
    most = min((n for n in (old, *map(_number, (folder / name for name in names))) if n is not None), default=_NONE)
    taken = None if most >= _NONE else _number(folder / ("memory.current" if old is None else "memory.usage_in_bytes"))
    if taken is not None:
        idle, used = ("inactive_file", "active_file") if old is None else ("total_inactive_file", "total_active_file")
        stat = _numbers(folder / "memory.stat", idle, used)
        # the page cache can be reclaimed; of its active part only half, because those files would be read again
        files = stat.get(idle, 0) + stat.get(used, 0) // 2
        yield max(most - max(taken - files, 0), 0)


def _limits_of_process() -> tuple[float, ...]:
    """Return the limits of the process's address space and data segment, in bytes; inf if there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return math.inf, math.inf
    result = (resource.getrlimit(getattr(resource, name))[0] if hasattr(resource, name) else resource.RLIM_INFINITY
             for name in ("RLIMIT_AS", "RLIMIT_DATA"))
    return tuple(math.inf if most == resource.RLIM_INFINITY else most for most in result)


def _of_process(root: Path) -> Iterator[int]:
    """Yield the memory, in bytes, that the limits of the process leave."""
    numbers = _numbers(root / "proc/self/status", "VmSize", "VmData")
    for most, taken in zip(_limits_of_process(), ("VmSize", "VmData"), strict=True):
        if most != math.inf:
            yield max(int(most) - numbers.get(taken, 0), 0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    """Return the number in a file; None if there is no file, or no number such as in "max"."""
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdecimal() else None


def _numbers(path: Path, *names: str) -> dict[str, int]:
    """Return the numbers after some names in a file that has a name and a number on each line, in bytes."""
    result = {}
    for line in _lines(path):
        words = line.replace(":", " ").split() if line.startswith(names) else ()
        if len(words) > 1 and words[1].isdecimal():
            result[words[0]] = int(words[1]) * (1024 if words[2:] == ["kB"] else 1)
    return result


def from_environment(name: str) -> int | None:
    """Return the number of bytes in an environment variable, such as 8G; None if it is not set.

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


def require(needed: int, what: str, hint: str, reserve: int = RESERVE) -> None:
    """Raise an error for a task that needs more memory than is available.

    Parameters are written in `hint` as in :mod:`vmdpotential.errors`; `reserve` is as in :func:`limit`.

    Raises
    ------
    MemoryPlanError
        The message has the task, the memory that it needs, the available memory, and a hint.
    """
    available = limit(reserve=reserve)
    if needed > available:
        without_ulimit = min([*_of_machine(ROOT), *_of_groups(ROOT)], default=_NONE) - reserve
        if from_environment("VMDPOTENTIAL_MEMORY") is None and needed <= without_ulimit:
            hint = f"raise the limit of this process, which is set by ulimit -v or -d, or {hint}"
        raise MemoryPlanError(f"{what} needs {size(needed)} of memory, {size(available)} are free", hint)


def size(count: float) -> str:
    """Return a number of bytes as text, such as 1.5 GB."""
    count = min(count, 10**300)  # an integer from a damaged file may be too large for a float
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError
