"""Compiled kernels that are kept between runs: read whole or not at all, written whole, made by one process at a time.

What is kept is code that is run, so a folder counts only when no user but this one, or root, can write to it.
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

#: Bytes that the compiled kernels of a few runs take.
ROOM = 4_000_000

#: Seconds to wait for another process that makes the same; after that each makes its own.
PATIENCE = 600.0

#: Seconds after which a file that was being written counts as abandoned.
ABANDONED = 3600.0

#: Seconds after which an entry that no run used is one of an older version; and how often its use is noted.
UNUSED, DAY = 60 * 86400.0, 86400.0

#: Bytes of entries that are kept at most; those that were not used for longest go first.
MOST = 500_000_000

#: Bytes of the checksum that an entry begins with.
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
    """Return why code in a folder must not be trusted, empty where it may; `shared` folders may be sticky as /tmp."""
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
    """Return the user's folder of kernels, made where it was not, None where there can be none."""
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

    Where that cannot be written, or must not be trusted, it is a temporary one, and kernels are compiled again in
    every run.

    Parameters
    ----------
    name : str
        A folder inside it, for kernels of one kind.
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
    """Look for the folders again, for tests that move them."""
    for function in (_kept, _temporary, folder):
        function.cache_clear()


def kept() -> tuple[Path | None, int]:
    """Return the user's folder of compiled kernels, None where there is none, and the bytes that its files take."""
    place = _kept("")
    if place is None:
        return None, 0
    return place, sum(path.stat().st_size for path in place.rglob("*") if path.is_file() and not path.is_symlink())


def clear() -> int:
    """Remove the compiled kernels that are kept for later runs; return how many bytes they took."""
    place, size = kept()
    if place is not None:
        shutil.rmtree(place, ignore_errors=True)
        forget()
    return size


def read(entry: str, name: str = "") -> bytes | None:
    """Return what is kept as `entry` in the folder `name`, None where there is nothing or a damaged file.

    A damaged file (a power cut, a full disk) is removed. A folder that can only be read serves too.
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
                    os.utime(path)  # it is in use
            return content
        with contextlib.suppress(OSError):
            path.unlink()
    return None


def write(entry: str, content: bytes, name: str = "") -> None:
    """Keep `content` as `entry` in the folder `name`; where there is no room for it, nothing is kept.

    It is on the disk before it has its name, so that no other process and no power cut leaves half of it there.
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
    """Remove what a process that was killed left, and entries that older versions made."""
    results = []
    for path in place.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process cleans too
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
def alone(entry: str, name: str = "") -> Iterator[None]:
    """Make other processes, and other threads, wait that want to make the same entry.

    A process that ends, however it does, lets the next one go on. Where files cannot be locked none waits.
    """
    with _one_thread, contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open(folder(name) / "lock", "ab"))  # closing it unlocks
        except OSError:
            file = None
        place = int.from_bytes(hashlib.sha256(entry.encode()).digest()[:3], "big")  # a byte of the file for each entry
        end = time.monotonic() + PATIENCE
        while file is not None and not _locked(file, place) and time.monotonic() < end:
            progress.report(progress.COMPILING, 0.0)  # by the other; a listener may stop the waiting
            time.sleep(0.05)
        yield


def _locked(file: IO[bytes], place: int) -> bool:
    """Lock one byte of a file, wherever it ends; return False while another process has it locked."""
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
