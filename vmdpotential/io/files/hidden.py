"""Hidden files that become outputs by renames, and what is done about those of a run that was killed.

In each folder a run holds a lock, ``.vmdpotential-MACHINE-RUN-lock``; the system lets go of it however the run ends,
so that the next run that writes there knows which hidden files nobody finishes, and removes them. Before the first of
several renames the lock's file says what is renamed to what: a run that was killed among them is brought to its end.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

#: Hidden names begin with this, then machine, run, and which file of the run.
MARK = ".vmdpotential-"

#: Seconds after which hidden files of another machine, whose locks may not be seen here, are nobody's.
ABANDONED = 86400.0

#: What systems say where nothing can be locked, linked or synced.
UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EBADF, errno.EPERM, errno.EMLINK)


class Known(NamedTuple):
    """Which file it was, and that it is unchanged."""

    node: int
    size: int
    time: int


def found_at(path: Path) -> Known | None:
    """Return which file is at a path, None where there is none."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return Known(found.st_ino, found.st_size, found.st_mtime_ns)


class Move(NamedTuple):
    """What a rename does: from a hidden name to its place, and where what stood there before is kept.

    `before` is the file that stands in the place, `new` the one that comes there.
    """

    temporary: str
    place: str
    former: str
    before: Known | None
    new: Known | None


def rename(move: Move, several: bool) -> None:
    """Bring a file to its place; what stands there is kept where it may have to come back."""
    if move.before is not None and (Path(move.place).is_dir() or Path(move.temporary).is_dir()):
        os.replace(move.place, move.former)
    elif move.before is not None:
        try:
            os.link(move.place, move.former)
        except OSError as error:  # a file system without hard links; others' files cannot always be linked
            if error.errno not in UNABLE:
                raise
            if several:
                os.replace(move.place, move.former)
    os.replace(move.temporary, move.place)


def put_back(moves: Sequence[Move]) -> list[str]:
    """Undo renames; return the places where that fails."""
    lost = []
    for move in moves:
        place, former = Path(move.place), Path(move.former)
        try:
            if former.exists():
                if place.is_dir():  # the new one
                    os.replace(place, move.temporary)
                os.replace(former, place)
            elif move.before is None and move.new is not None and found_at(place) == move.new:
                remove(place)
            elif move.before is not None and found_at(place) == move.new:  # it was replaced and not kept
                lost.append(move.place)
        except OSError:
            lost.append(move.place)
    return lost


def _go_on(moves: Sequence[Move]) -> None:
    """Do the renames that a killed run had begun, but not over what has been changed since."""
    for move in moves:
        temporary, place, former = Path(move.temporary), Path(move.place), Path(move.former)
        there = found_at(place)
        if temporary.exists() and (there == move.before or (there is None and former.exists())):
            if place.is_dir() or (there is not None and temporary.is_dir()):
                os.replace(place, former)
            os.replace(temporary, place)


def collect(folder: Path) -> None:
    """Remove the hidden files of runs that were killed, and finish the renames they had begun.

    Those of a run that is alive are left, and of another machine's, whose locks may not be seen here, those that are
    younger than a day; of other users all.
    """
    for lock in folder.glob(f"{MARK}*-lock"):
        prefix = lock.name.removesuffix("lock")
        try:
            handle = os.open(lock, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        except OSError:  # of another user, or it has just gone
            continue
        try:
            if not _is_ours(handle) or not _dead(handle, prefix, folder):
                continue
            _recover(handle, prefix)
            for path in [path for path in folder.glob(f"{prefix}*") if path != lock]:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
            lock.unlink(missing_ok=True)
        finally:
            os.close(handle)


def _is_ours(handle: int) -> bool:
    return not hasattr(os, "geteuid") or os.fstat(handle).st_uid == os.geteuid()


def _dead(handle: int, prefix: str, folder: Path) -> bool:
    """Return whether the run that made a lock has ended."""
    locked = _lock(handle)
    if locked and prefix.startswith(f"{MARK}{machine()}-"):
        return True
    newest = max((path.stat().st_mtime for path in folder.glob(f"{prefix}*")), default=time.time())
    return locked is not False and time.time() - newest > ABANDONED


def _recover(handle: int, prefix: str) -> None:
    """Finish, or undo, the renames that a lock's file tells of."""
    os.lseek(handle, 0, os.SEEK_SET)
    with open(handle, "rb", closefd=False) as file:
        text = file.read()
    try:
        moves = [Move(*row[:3], *(None if known is None else Known(*known) for known in row[3:]))
                 for row in json.loads(text[1:])]
    except ValueError:  # nothing was renamed, as it is synced before
        return
    if all(Path(path).name.startswith(prefix) for move in moves for path in (move.temporary, move.former)):
        if text.startswith(b"+"):
            _go_on(moves)
        elif put_back(moves):
            raise OSError(errno.EIO, "cannot be put back")


def held(path: Path) -> int:
    """Make a lock's file and hold it."""
    while True:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        _lock(handle, wait=True)
        if path.exists():
            return handle
        os.close(handle)  # another run took it for one that nobody holds, just before


def _lock(handle: int, wait: bool = False) -> bool | None:
    """Lock a file as long as it is open; return False where another process has done so, None where nobody can."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in (errno.EAGAIN, errno.EACCES) else None
    return True


@functools.cache
def machine() -> str:
    """Return what tells this machine, since it was started, from others that see the same folders."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        text = platform.node()
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def unlink(path: Path) -> None:
    """Remove a file that may have gone."""
    with contextlib.suppress(OSError):
        path.unlink()


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that it holds."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        unlink(path)
