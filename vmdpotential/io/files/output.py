"""Files that are written whole or not at all, several together or none of them.

A run writes under hidden names beside its outputs (:mod:`vmdpotential.io.files.hidden`), syncs them, and renames all.
What stood there before is kept under a hidden name until the last has its own, and comes back when a rename fails.

A Zarr map is a folder: it is written and renamed likewise, and replaces a folder only where that is a Zarr map and
nothing else.

``-`` is standard output. That, and what is no regular file (a pipe, /dev/null), gets the whole content at the end.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vmdpotential.errors import OutputError, UsageError
from vmdpotential.io.files.hidden import (
    MARK,
    UNABLE,
    Move,
    collect,
    found_at,
    held,
    machine,
    put_back,
    remove,
    rename,
    unlink,
)
from vmdpotential.parameters import reading

#: The name of standard output.
STANDARD = Path("-")

_OURS = tuple(map(Path, ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")))


def is_folder(name: Path) -> bool:
    """Return whether what has this name is a folder."""
    return name.suffix.lower() == ".zarr"


def _is_map_folder(path: Path) -> bool:
    """Return whether a folder is a Zarr map and holds nothing else."""
    try:
        attributes = json.loads((path / "zarr.json").read_text())["attributes"]
        known = {dataset["path"] for image in attributes["ome"]["multiscales"] for dataset in image["datasets"]}
        inside = {item.relative_to(path).as_posix() for item in (*path.iterdir(), *path.glob("levels/*"))}
        return inside <= {"zarr.json", "levels", "levels/zarr.json", *"xyz", *known}
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
        prefix = f"{MARK}{machine()}-{secrets.token_hex(4)}-"
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
                self.locks[path] = held(path)
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
                remove(file.temporary)
                remove(file.former)
        for path, lock in self.locks.items():
            os.close(lock)
            if not self.lost:
                unlink(path)

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
        moves = [Move(str(file.temporary), str(file.place), str(file.former), found_at(file.place),
                       found_at(file.temporary)) for file in files]
        # a folder is replaced by two renames
        several = len(moves) > 1 or any(file.folder and file.place.exists() for file in files)
        journal = json.dumps(moves).encode()
        try:
            if several:
                self._note(b"+" + journal)
            for move in moves:
                rename(move, several)
            for folder in dict.fromkeys(file.place.parent for file in files):
                _sync(folder)
        except BaseException as error:
            if several:
                with contextlib.suppress(OSError):
                    self._note(b"-")
            lost = put_back(moves)
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
        if error.errno not in UNABLE:
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
