"""Files that are written whole or not at all, several together or none of them.

A run writes under hidden names beside its outputs, syncs them, and renames all. What stood there before is kept under
a hidden name until the last has its own, and comes back when a rename fails. In each folder a run holds a lock,
``.vmdpotential-MACHINE-RUN-lock``; the system lets go of it however the run ends, so that the next run that writes
there knows which hidden files nobody finishes, and removes them. Before the first of several renames the lock's file
says what is renamed to what: a run that was killed among them is brought to its end.

A Zarr map is a folder: it is written and renamed likewise, and replaces a folder only where that is a Zarr map and
nothing else.

``-`` is standard output. That, and what is no regular file (a pipe, /dev/null), gets the whole content at the end.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import platform
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vmdpotential.errors import OutputError, UsageError
from vmdpotential.parameters import reading

#: Hidden names begin with this, then machine, run, and which file of the run.
MARK = ".vmdpotential-"

#: Seconds after which hidden files of another machine, whose locks may not be seen here, are nobody's.
ABANDONED = 86400.0

#: The name of standard output.
STANDARD = Path("-")

_OURS = tuple(map(Path, ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")))

# what systems say where nothing can be locked, linked or synced
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EBADF, errno.EPERM, errno.EMLINK)


def is_folder(name: Path) -> bool:
    """Return whether what has this name is a folder."""
    return name.suffix.lower() == ".zarr"


def _is_map_folder(path: Path) -> bool:
    """Return whether a folder is a Zarr map and holds nothing else."""
    try:
        attributes = json.loads((path / "zarr.json").read_text())["attributes"]
        known = {dataset["path"] for image in attributes["ome"]["multiscales"] for dataset in image["datasets"]}
        return {item.name for item in path.iterdir()} <= {"zarr.json", *known}
    except (OSError, ValueError, KeyError, TypeError):
        return False


def is_standard(path: Path) -> bool:
    """Return whether a path is standard output, by ``-`` or by one of its names."""
    return path == STANDARD or path in _OURS


def named(paths: Sequence[Path], format: str, known: Callable[[Path], bool]) -> list[Path]:
    """Return the name of each output that tells its format: its own, or with `format` as the suffix.

    Parameters
    ----------
    paths : sequence of Path
    format : str
        A suffix, such as ``dx`` or ``dx.gz``, for the outputs whose names tell none; empty for no such.
    known : callable
        Whether a path has a suffix of a format.

    Raises
    ------
    UsageError
        When an output needs a format, or none needs the one that is given.
    """
    told = [known(path) and not is_standard(path) for path in paths]
    for path, tells in zip(paths, told, strict=True):
        if not tells and not format and is_stream(path):
            raise UsageError("", f"{path}: has no suffix that tells a format", "give {format}")
    if format and paths and all(told):
        raise UsageError("format", "is for an output whose name does not tell it", "leave it out", value=format)
    return [path if tells or not format else path.with_name(f"{path.name}.{format.removeprefix('.')}")
            for path, tells in zip(paths, told, strict=True)]


@contextlib.contextmanager
def writing(paths: Sequence[Path], force: bool = False, names: Sequence[Path] | None = None) -> Iterator[list[Path]]:
    """Give a temporary name for each path; on success rename all, on failure remove all.

    A file that is replaced keeps its mode, its owner where that is possible, and the links to it.

    Parameters
    ----------
    paths : sequence of Path
    force : bool
        Whether files that exist may be replaced.
    names : sequence of Path, optional
        What the temporary names end like (:func:`named`), because writers choose the format by them; as `paths`
        unless given.

    Yields
    ------
    list of Path
        Where to write, in the order of `paths`: files that are there and empty.

    Raises
    ------
    UsageError
        When a path stands twice, is read by the same command, or exists and `force` is not set.
    OutputError
        When a folder is missing, nothing can be written there, or the disk is full.
    """
    check(paths, force, names)
    try:
        with _Run(paths, names or paths) as run:
            yield [file.temporary for file in run.files]
            run.finish()
    except BrokenPipeError:  # whoever reads our output has gone
        raise
    except OSError as error:
        raise describe(error, paths) from error


def check(paths: Sequence[Path], force: bool = False, names: Sequence[Path] | None = None) -> None:
    """Raise what :func:`writing` would raise, before any work is done."""
    places: set[str] = set()
    for path, name in zip(paths, names or paths, strict=True):
        if is_standard(path):
            place = str(STANDARD)
        elif is_stream(path):
            place = ""  # /dev/null takes everything
        else:
            place = os.path.realpath(path)
        if place in places:
            raise UsageError("", f"{path}: the same output file is named twice", "give each a name of its own")
        if place:
            places.add(place)
        try:
            _check_one(path, force, is_folder(name))
        except OSError as error:  # a name that is too long, a loop of links
            raise describe(error, [path]) from error


def _check_one(path: Path, force: bool, folder_wanted: bool) -> None:
    if folder_wanted and is_stream(path):
        raise OutputError(f"{path}: takes no Zarr map, which is a folder", "name a folder, or write another format")
    if is_standard(path):
        return
    if path.is_dir() and not (folder_wanted and _is_map_folder(path)):
        raise OutputError(f"{path}: is a folder", "name a new one: what is in it is no Zarr map alone" if folder_wanted
                          else "name a file")
    if is_stream(path):
        if not (path.is_fifo() or path.is_char_device()):
            raise OutputError(f"{path}: is no file", "name another")
        if not os.access(path, os.W_OK):
            raise OutputError(f"{path}: no permission to write to it", "name another file")
        return
    folder = path.parent
    if not folder.is_dir():
        if folder.exists():
            raise OutputError(f"{path}: {folder} is no folder", "name one that is")
        raise OutputError(f"{path}: the folder {folder} does not exist", "create it first")
    for source in reading():
        with contextlib.suppress(OSError):
            if os.path.samefile(path, source):
                raise UsageError("", f"{path}: is read by the same command, and would be lost",
                                 "write to another file")
    if os.path.lexists(path):
        if not force:
            raise UsageError("", f"{path}: exists", "use {force} to replace it")
        folder = _place(path).parent
        if not folder.is_dir():
            raise OutputError(f"{path}: is a link to {_place(path)}, whose folder does not exist", "create it first")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: no permission to write in {folder}", "name another folder")


def is_stream(path: Path) -> bool:
    """Return whether a path stands for something that is there and is no regular file, as /dev/null or a pipe."""
    try:
        return is_standard(path) or (path.exists() and not path.is_file() and not path.is_dir())
    except OSError:
        return False


def _place(path: Path) -> Path:
    """Return the file that stands at the end of a path's links."""
    return Path(os.path.realpath(path))


class _Known(NamedTuple):
    """Which file it was, and that it is unchanged."""

    node: int
    size: int
    time: int


def _known(path: Path) -> _Known | None:
    """Return which file is at a path, None where there is none."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return _Known(found.st_ino, found.st_size, found.st_mtime_ns)


class _File(NamedTuple):
    """One output of a run.

    Parameters
    ----------
    temporary : Path
        Where it is written.
    place : Path
        Where it belongs: the end of links; where `stream` is true, what gets its content.
    former : Path
        Where the file that stood there is kept meanwhile.
    stream : bool
    folder : bool
        Whether it is a folder.
    """

    temporary: Path
    place: Path
    former: Path
    stream: bool
    folder: bool = False


class _Run:
    """The hidden files of a run."""

    def __init__(self, paths: Sequence[Path], names: Sequence[Path]) -> None:
        prefix = f"{MARK}{_machine()}-{secrets.token_hex(4)}-"
        self.files: list[_File] = []
        for n, (path, name) in enumerate(zip(paths, names, strict=True)):
            stream = is_stream(path)
            place = path if stream else _place(path)
            folder = Path(tempfile.gettempdir()) if stream else place.parent
            # the end of a long name is enough, and keeps the whole as short as file systems want it
            self.files.append(_File(folder / f"{prefix}{n}-{name.name[-40:]}", place, folder / f"{prefix}{n}", stream,
                                    is_folder(name)))
        self.locks: dict[Path, int] = {}
        self.prefix = prefix
        self.lost = False

    def __enter__(self) -> _Run:
        """Hold a lock in every folder, and make the temporary files."""
        try:
            for folder in dict.fromkeys(file.temporary.parent for file in self.files):
                with contextlib.suppress(OSError):
                    collect(folder)
                path = folder / f"{self.prefix}lock"
                self.locks[path] = _held(path)
            for file in self.files:
                # nobody else reads what takes the place of a file that nobody else may read
                mode = 0o600 if file.stream or file.place.exists() else 0o666
                if file.folder:
                    file.temporary.mkdir(0o700 if file.place.is_dir() else 0o777)
                    continue
                os.close(os.open(file.temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is left."""
        if not self.lost:
            for file in self.files:
                _remove(file.temporary)
                _remove(file.former)
        for path, lock in self.locks.items():
            os.close(lock)
            if not self.lost:
                _unlink(path)

    def finish(self) -> None:
        """Put every file in its place, or none."""
        files = [file for file in self.files if not file.stream]
        for file in files:
            if file.folder:
                _sync_inside(file.temporary)
            _sync(file.temporary, like=file.place)
        for file in self.files:
            if file.stream:
                _pour(file.temporary, file.place)
        moves = [_Move(str(file.temporary), str(file.place), str(file.former), _known(file.place),
                       _known(file.temporary)) for file in files]
        # a folder is replaced by two renames
        several = len(moves) > 1 or any(file.folder and file.place.exists() for file in files)
        journal = json.dumps(moves).encode()
        try:
            if several:
                self._note(b"+" + journal)
            for move in moves:
                _move(move, several)
            for folder in dict.fromkeys(file.place.parent for file in files):
                _sync(folder)
        except BaseException as error:
            if several:
                with contextlib.suppress(OSError):
                    self._note(b"-")
            lost = _put_back(moves)
            if lost:
                self.lost = True  # what stood there before stays under its hidden name
                raise OutputError(f"{', '.join(lost)}: replaced already when writing failed ({error}), and what stood "
                                  "there before cannot be put back", "it is in the hidden files beside") from error
            raise

    def _note(self, journal: bytes) -> None:
        for lock in self.locks.values():
            os.lseek(lock, 0, os.SEEK_SET)
            os.write(lock, journal)
            os.fsync(lock)


def _held(path: Path) -> int:
    """Make a lock's file and hold it."""
    while True:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        _lock(handle, wait=True)
        if path.exists():
            return handle
        os.close(handle)  # another run took it for one that nobody holds, just before


class _Move(NamedTuple):
    """What a rename does: from a hidden name to its place, and where what stood there before is kept.

    `before` is the file that stands in the place, `new` the one that comes there.
    """

    temporary: str
    place: str
    former: str
    before: _Known | None
    new: _Known | None


def _move(move: _Move, several: bool) -> None:
    if move.before is not None and (Path(move.place).is_dir() or Path(move.temporary).is_dir()):
        os.replace(move.place, move.former)
    elif move.before is not None:
        try:
            os.link(move.place, move.former)
        except OSError as error:  # a file system without hard links; others' files cannot always be linked
            if error.errno not in _UNABLE:
                raise
            if several:
                os.replace(move.place, move.former)
    os.replace(move.temporary, move.place)


def _put_back(moves: Sequence[_Move]) -> list[str]:
    """Undo renames; return the places where that fails."""
    lost = []
    for move in moves:
        place, former = Path(move.place), Path(move.former)
        try:
            if former.exists():
                if place.is_dir():  # the new one
                    os.replace(place, move.temporary)
                os.replace(former, place)
            elif move.before is None and move.new is not None and _known(place) == move.new:
                _remove(place)
            elif move.before is not None and _known(place) == move.new:  # it was replaced and not kept
                lost.append(move.place)
        except OSError:
            lost.append(move.place)
    return lost


def _go_on(moves: Sequence[_Move]) -> None:
    """Do the renames that a killed run had begun, but not over what has been changed since."""
    for move in moves:
        temporary, place, former = Path(move.temporary), Path(move.place), Path(move.former)
        there = _known(place)
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
    if locked and prefix.startswith(f"{MARK}{_machine()}-"):
        return True
    newest = max((path.stat().st_mtime for path in folder.glob(f"{prefix}*")), default=time.time())
    return locked is not False and time.time() - newest > ABANDONED


def _recover(handle: int, prefix: str) -> None:
    """Finish, or undo, the renames that a lock's file tells of."""
    os.lseek(handle, 0, os.SEEK_SET)
    with open(handle, "rb", closefd=False) as file:
        text = file.read()
    try:
        moves = [_Move(*row[:3], *(None if known is None else _Known(*known) for known in row[3:]))
                 for row in json.loads(text[1:])]
    except ValueError:  # nothing was renamed, as it is synced before
        return
    if all(Path(path).name.startswith(prefix) for move in moves for path in (move.temporary, move.former)):
        if text.startswith(b"+"):
            _go_on(moves)
        elif _put_back(moves):
            raise OSError(errno.EIO, "cannot be put back")


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
def _machine() -> str:
    """Return what tells this machine, since it was started, from others that see the same folders."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        text = platform.node()
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _make_alike(temporary: Path, place: Path) -> None:
    """Give a file the owner and mode of the one that it takes the place of."""
    found = place.stat()
    if hasattr(os, "chown"):
        for owner in (found.st_uid, -1):  # only root can give a file away, but a group may be one's own
            with contextlib.suppress(OSError):
                os.chown(temporary, owner, found.st_gid)
                break
    temporary.chmod(stat.S_IMODE(found.st_mode))


def _sync(path: Path, like: Path | None = None) -> None:
    """Wait until a file, made `like` the one that it takes the place of, or the names in a folder, are on the disk."""
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        if like is not None and like.exists() and like.is_dir() == path.is_dir():
            _make_alike(path, like)
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
    finally:
        os.close(handle)


def _sync_inside(folder: Path) -> None:
    """Wait until all that a folder holds is on the disk."""
    for path, _, names in os.walk(folder, topdown=False):
        for name in names:
            _sync(Path(path, name))
        if Path(path) != folder:
            _sync(Path(path))


def _pour(source: Path, place: Path) -> None:
    """Send a file's content to standard output, a pipe or a device."""
    with source.open("rb") as file:
        if is_standard(place):
            stream: Any = getattr(sys.stdout, "buffer", None)
            if stream is None:
                raise OutputError(f"{place}: there is no standard output for data here", "name a file")
            sys.stdout.flush()
            shutil.copyfileobj(file, stream, 1 << 20)
            stream.flush()
        else:
            with open(os.open(place, os.O_WRONLY), "wb") as pipe:
                shutil.copyfileobj(file, pipe, 1 << 20)


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that it holds."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        _unlink(path)


def describe(error: OSError, paths: Iterable[Path]) -> OutputError:
    """Return one line for what went wrong while writing `paths`."""
    name = ", ".join(map(str, paths))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"{name}: the disk is full; nothing was written", "make room, or write to another disk")
    if error.errno == errno.EFBIG:
        return OutputError(f"{name}: is larger than a file may be here; nothing was written", "see 'ulimit -f'")
    if error.errno == errno.ENAMETOOLONG:
        return OutputError(f"{name}: the name is too long", "use a shorter one")
    return OutputError(f"{name}: cannot be written ({error.strerror or error}); nothing was written")
