"""Hidden folders in which outputs are written before they are renamed to their final paths.

A run makes one, ``.vmdpotential-COMPUTER-...``, next to its outputs and holds a lock on it (flock), which the system
releases however the run ends. A later run that writes into the same parent folder removes hidden folders with such a
name and this computer's digest that belong to the same user and are locked by no process. It neither reads their
content nor moves it elsewhere. Where folders cannot be locked (Windows), they are left alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import os
import platform
import shutil
import stat
import tempfile
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Error numbers of file systems that cannot lock, link, exchange or sync.
UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EBADF, errno.EPERM, errno.EMLINK)

#: Arguments of renameat2 (Linux): resolve relative paths in the current folder; exchange the two names.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@functools.cache
def mark() -> str:
    """Return the prefix of the names of this computer's hidden folders."""
    return f".vmdpotential-{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"


class HiddenFolder:
    """A folder that only this user can read, and that is removed with its content at the end of the context.

    Parameters
    ----------
    parent : Path
        The folder in which it is made.

    Raises
    ------
    OSError
        When it cannot be made.
    """

    def __init__(self, parent: Path) -> None:
        remove_abandoned(parent)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=mark(), dir=parent))
            self._lock = _lock(self.path, wait=True)
            if self.path.exists():
                break
            _close(self._lock)  # another run considered it abandoned before it was locked
        #: Path to which the folder is renamed at the end instead of being removed, if set.
        self.kept_as: Path | None = None

    def __enter__(self) -> HiddenFolder:
        return self

    def __exit__(self, *_: object) -> None:
        if self.kept_as is None:
            remove(self.path)
        else:
            with contextlib.suppress(OSError):
                self.path.rename(self.kept_as)
        _close(self._lock)

    def keep(self) -> Path:
        """Keep the content under a name that no later run removes; return its path."""
        self.kept_as = self.path.with_name(self.path.name.removeprefix("."))
        return self.kept_as


def final_folder(path: Path) -> Path:
    """Return the folder of a file; of a file in a hidden folder, the folder to which it will be renamed."""
    return next((folder.parent for folder in path.parents if folder.name.startswith(mark())), path.parent)


def remove_abandoned(parent: Path) -> None:
    """Remove the hidden folders in `parent` that killed runs of this user on this computer have left."""
    with contextlib.suppress(OSError):
        for path in parent.glob(f"{mark()}*"):
            lock = _lock(path)
            if lock is not None and os.fstat(lock).st_uid == os.geteuid():
                remove(path)
            _close(lock)


def _lock(folder: Path, wait: bool = False) -> int | None:
    """Lock a folder and return its file descriptor, or None if it cannot be locked or another process has done so."""
    if fcntl is None:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # belongs to another user, is not a folder, or has just been removed
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        return None
    return handle


def _close(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def exchange(first: Path, second: Path) -> None:
    """Exchange the names of two folders in one step.

    Raises
    ------
    OSError
        When the system or the file system cannot do that (its errno is then one of :data:`UNABLE`).
    """
    rename = None if os.name == "nt" else getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def sync(path: Path, like: Path | None = None) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk.

    Parameters
    ----------
    path : Path
        File or folder.
    like : Path, optional
        The file that `path` will replace, whose owner and mode it gets.
    """
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        if like is not None and like.exists() and like.is_dir() == path.is_dir():
            _copy_owner_and_mode(like, path)
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNABLE:
            raise
    finally:
        os.close(handle)


def sync_content(folder: Path) -> None:
    """Wait until the whole content of a folder is on the disk."""
    for path, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(path, name))
        if Path(path) != folder:
            sync(Path(path))


def _copy_owner_and_mode(source: Path, target: Path) -> None:
    former = source.stat()
    if hasattr(os, "chown"):
        for owner in (former.st_uid, -1):  # only root can change the owner, but users can set a group of theirs
            with contextlib.suppress(OSError):
                os.chown(target, owner, former.st_gid)
                break
    target.chmod(stat.S_IMODE(former.st_mode))


def remove(path: Path) -> None:
    """Remove a file, or a folder with its content, as far as that is possible."""
    with contextlib.suppress(OSError, RecursionError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
