"""Disk cache of compiled kernels and found parameters: entries are read and written whole, and compiled by one process.

Entries are code that will be executed, so a folder is used only if no user except this one and root can write to it.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import hashlib
import logging
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO

from vmdpotential import progress

#: Free disk space that the cache needs, bytes; the kernels of a few runs take less.
ROOM = 4_000_000

#: Time to wait for another process that compiles the same entry, s; after that it is compiled by this process, too.
PATIENCE = 600.0

#: Age after which a temporary file is taken to be left by a killed process, s.
ABANDONED = 3600.0

#: Time after which an unused entry is removed, as one of an older version, and interval of noting its use, s.
UNUSED, DAY = 60 * 86400.0, 86400.0

#: Largest size of all entries, bytes; the least recently used ones are removed first.
MOST = 500_000_000

#: Size of the checksum at the beginning of an entry, bytes.
CHECKSUM = 32

_one_thread = threading.Lock()


def _base() -> Path:
    """Return the folder of this package's caches: VMDPOTENTIAL_CACHE, else one in the user's cache folder."""
    base = os.environ.get("VMDPOTENTIAL_CACHE")
    if base:
        return Path(base)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "vmdpotential"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "vmdpotential"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vmdpotential"


def _flaw(place: Path, shared: bool = False) -> str:
    """Return why code in a folder must not be trusted, or an empty string; `shared` folders may be sticky like /tmp."""
    if not hasattr(os, "geteuid"):
        return ""  # Windows keeps users' folders apart
    status = place.stat()
    if status.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    if status.st_mode & 0o022 and not (shared and status.st_mode & 0o1000):
        return "can be written by others (chmod go-w)"
    return ""


@cache
def _kept(name: str) -> Path | None:
    """Return the user's folder of kernels, which is created if needed, or None if that is not possible."""
    try:
        place = base = _base()
        base.parent.mkdir(parents=True, exist_ok=True)
        for part in ("", "kernels", *([name] if name else [])):
            place /= part
            place.mkdir(mode=0o700, exist_ok=True)
            if flaw := _flaw(place, shared=place == base):
                logging.getLogger(__name__).warning(
                    "vmdpotential: %s %s: kernels are compiled again in every run", place, flaw)
                return None
    except (OSError, RuntimeError):  # it cannot be made, or the user has no home
        return None
    return place


@cache
def _temporary(name: str) -> Path:
    place = Path(tempfile.mkdtemp(prefix="vmdpotential-kernels-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


@cache
def folder(name: str = "") -> Path:
    """Return the folder that new kernels are written to: under VMDPOTENTIAL_CACHE, else in the user's cache folder.

    If that cannot be written, or must not be trusted, it is a temporary folder, and kernels are compiled again in every
    run.

    Parameters
    ----------
    name : str
        Name of a folder inside it, for kernels of one kind.
    """
    kept = _kept(name)
    if kept is None:
        return _temporary(name)
    try:
        with tempfile.TemporaryFile(dir=kept):
            pass
        if shutil.disk_usage(kept).free < ROOM:
            raise OSError(errno.ENOSPC, "the disk is full")
    except OSError:
        return _temporary(name)
    return kept


def forget() -> None:
    """Forget the folders that were found, for tests that change their location."""
    for function in (_kept, _temporary, folder):
        function.cache_clear()


def folder_and_size() -> tuple[Path | None, int]:
    """Return the user's folder of compiled kernels, or None if there is none, and the size of its files in bytes."""
    place = _kept("")
    if place is None:
        return None, 0
    return place, sum(path.stat().st_size for path in place.rglob("*") if path.is_file() and not path.is_symlink())


def clear() -> int:
    """Remove all compiled kernels from the cache; return their size in bytes."""
    place, size = folder_and_size()
    if place is not None:
        shutil.rmtree(place, ignore_errors=True)
        forget()
    return size


def read(entry: str, name: str = "") -> bytes | None:
    """Return the content of `entry` in the folder `name`, or None if there is no entry or a damaged one.

    A damaged entry (after a power cut, or on a full disk) is removed. A read-only folder can be read, too.
    """
    for place in dict.fromkeys((_kept(name) or folder(name), folder(name))):
        path = place / entry
        try:
            data = path.read_bytes()
        except OSError:
            continue
        content = data[CHECKSUM:]
        if content and hashlib.sha256(content).digest() == data[:CHECKSUM]:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > DAY:
                    os.utime(path)  # the time of modification is that of the last use
            return content
        with contextlib.suppress(OSError):
            path.unlink()
    return None


def write(entry: str, content: bytes, name: str = "") -> None:
    """Write `content` as `entry` in the folder `name`; if that fails, there is no entry and no error.

    The file is synced before it gets its name, so that another process, or a run after a power cut, never finds a part
    of it.
    """
    place = folder(name)
    with contextlib.suppress(OSError):
        _clean(place)
    try:
        with tempfile.NamedTemporaryFile(dir=place, suffix=".tmp", delete=False) as file:
            try:
                file.write(hashlib.sha256(content).digest() + content)
                file.flush()
                os.fsync(file.fileno())
                file.close()
                os.replace(file.name, place / entry)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError:
        pass


def _clean(place: Path) -> None:
    """Remove temporary files of killed processes, unused entries, and the oldest ones if all are too large."""
    results = []
    for path in place.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process may clean at the same time
            status = path.stat()
            if path.suffix == ".tmp":
                if time.time() - status.st_mtime > ABANDONED:
                    path.unlink()
            elif path.name != "lock" and stat.S_ISREG(status.st_mode):
                results.append((status.st_mtime, status.st_size, path))
    total = 0
    for used, size, path in sorted(results, reverse=True):
        total += size
        if total > MOST or time.time() - used > UNUSED:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(entry: str, name: str = "") -> Iterator[None]:
    """Lock an entry, so that other processes and threads that would compile it wait.

    The lock ends with the process, even if that is killed. On file systems without locks, processes do not wait.
    """
    place = int.from_bytes(hashlib.sha256(entry.encode()).digest()[:3], "big")  # each entry locks one byte
    end = time.monotonic() + PATIENCE
    while True:
        with _one_thread, contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(_opened(folder(name) / "lock"))  # closing it unlocks
            except OSError:
                file = None
            if file is None or _locked(file, place) or time.monotonic() >= end:
                yield
                return
        # other threads are not kept from other entries while another process compiles this one
        progress.report_progress(progress.COMPILING, 0.0)  # the listener may raise KeyboardInterrupt to end the waiting
        time.sleep(0.05)


def _opened(path: Path) -> IO[bytes]:
    """Open a file to lock it; anything else, such as a pipe, of which opening would wait for ever, is an OSError."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError
    return os.fdopen(number, "r+b")


def _locked(file: IO[bytes], place: int) -> bool:
    """Lock one byte of a file, even beyond its end; return False if another process has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(place)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True
