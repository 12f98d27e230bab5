"""Atomic writing of files: either all files of a run are written completely, or none is.

A run writes into a hidden folder next to its outputs (:mod:`vmdpotential.io.files.hidden`), syncs the new files, and
then renames all of them; an exception undoes the renaming. After a kill every output is complete, the old or the new
one.

A Zarr map is a folder, which is written and renamed in the same way. It replaces an existing folder only if that is a
Zarr map and contains nothing else.

``-`` is standard output. Standard output and files that are not regular (a pipe, /dev/null) receive the whole content
at the end.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from vmdpotential.errors import OutputError, UsageError
from vmdpotential.io.files import hidden
from vmdpotential.parameters import files_read

#: The name of standard output.
STANDARD = Path("-")

_STANDARD_NAMES = tuple(map(Path, ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")))


def is_folder(name: Path) -> bool:
    """Return whether an output of this name is a folder (a Zarr map)."""
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
    return path == STANDARD or path in _STANDARD_NAMES


def named(paths: Sequence[Path], format: str, known: Callable[[Path], bool]) -> list[Path]:
    """Return for each output a name whose suffix gives its format: its own name, or that with `format` appended.

    Parameters
    ----------
    paths : sequence of Path
        The outputs.
    format : str
        A suffix, such as ``dx`` or ``dx.gz``, for the outputs whose own names have no known one; may be empty.
    known : callable
        Returns whether the suffix of a path is that of a format.

    Raises
    ------
    UsageError
        When a stream needs `format` and it is empty, or when no output needs it.
    """
    recognised = [known(path) and not is_standard(path) for path in paths]
    for path, has_suffix in zip(paths, recognised, strict=True):
        if not has_suffix and not format and is_stream(path):
            raise UsageError("", f"{path}: has no suffix that states the format", "give {format}")
    if format and paths and all(recognised):
        raise UsageError("format", "a format is only needed for an output whose name has no suffix", "leave it out",
                         value=format)
    return [path if has_suffix or not format else path.with_name(f"{path.name}.{format.removeprefix('.')}")
            for path, has_suffix in zip(paths, recognised, strict=True)]


@contextlib.contextmanager
def writing_files(paths: Sequence[Path], force: bool = False,
                  names: Sequence[Path] | None = None) -> Iterator[list[Path]]:
    """Yield a temporary path for each output; on success rename all files, on failure remove all.

    A replaced file keeps its mode, its owner if possible, and the symbolic links to it.

    Parameters
    ----------
    paths : sequence of Path
        The outputs.
    force : bool
        Whether existing files may be replaced.
    names : sequence of Path, optional
        Names that the temporary files have (:func:`named`), because writers choose the format by their suffixes; by
        default `paths`.

    Yields
    ------
    list of Path
        The temporary paths, in the order of `paths`: existing, empty files or folders.

    Raises
    ------
    UsageError
        When a path occurs twice, is read by the same command, or exists and `force` is not set.
    OutputError
        When a folder is missing, nothing can be written there, or the disk is full.
    """
    check(paths, force, names)
    try:
        with contextlib.ExitStack() as stack:
            folders: dict[Path, hidden.HiddenFolder] = {}
            files = []
            for n, (path, name) in enumerate(zip(paths, names or paths, strict=True)):
                stream = is_stream(path)
                target = path if stream else Path(os.path.realpath(path))
                parent = Path(tempfile.gettempdir()) if stream else target.parent
                if parent not in folders:
                    folders[parent] = stack.enter_context(hidden.HiddenFolder(parent))
                files.append(_File(folders[parent].path / str(n) / name.name, target, stream, is_folder(name)))
            yield [file.temporary for file in files]
            for file in files:
                file.sync()
            for file in files:
                if file.stream:
                    _send(file.temporary, file.path)
            _rename_all([file for file in files if not file.stream], folders.values())
    except BrokenPipeError:  # the program that reads our output has closed the pipe
        raise
    except OSError as error:
        raise output_error(error, paths) from error


def check(paths: Sequence[Path], force: bool = False, names: Sequence[Path] | None = None) -> None:
    """Raise the errors that :func:`writing_files` would raise, before any work is done."""
    targets: set[str] = set()
    for path, name in zip(paths, names or paths, strict=True):
        if is_standard(path):
            target = str(STANDARD)
        elif is_stream(path):
            target = ""  # several outputs may go to /dev/null
        else:
            target = os.path.realpath(path)
        if target in targets:
            raise UsageError("", f"{path}: the same output file is named twice", "give each a name of its own")
        if target:
            targets.add(target)
        try:
            _check_one(path, force, is_folder(name))
        except OSError as error:  # the name is too long, or links form a loop
            raise output_error(error, [path]) from error


def _check_one(path: Path, force: bool, writes_folder: bool) -> None:
    if writes_folder and is_stream(path):
        raise OutputError(f"{path}: is a file, and a Zarr map is a folder", "name a folder, or write another format")
    if is_standard(path):
        return
    if path.is_dir() and not (writes_folder and _is_map_folder(path)):
        raise OutputError(f"{path}: is a folder", "name a new one, as it contains more than a Zarr map" if writes_folder
                          else "name a file")
    if is_stream(path):
        if not (path.is_fifo() or path.is_char_device()):
            raise OutputError(f"{path}: is not a regular file", "name another")
        if not os.access(path, os.W_OK):
            raise OutputError(f"{path}: no permission to write to it", "name another file")
        return
    folder = path.parent
    if not folder.is_dir():
        if folder.exists():
            raise OutputError(f"{path}: {folder} is not a folder", "name one that is")
        raise OutputError(f"{path}: the folder {folder} does not exist", "create it first")
    for source in files_read():
        with contextlib.suppress(OSError):
            if os.path.samefile(path, source):
                raise UsageError("", f"{path}: is read by the same command, and would be lost",
                                 "write to another file")
    if os.path.lexists(path):
        if not force:
            raise UsageError("", f"{path}: exists", "use {force} to replace it")
        target = Path(os.path.realpath(path))
        folder = target.parent
        if not folder.is_dir():
            raise OutputError(f"{path}: is a link to {target}, whose folder does not exist", "create it first")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: no permission to write in {folder}", "name another folder")


def is_stream(path: Path) -> bool:
    """Return whether a path is an existing file that is not regular, such as /dev/null or a pipe."""
    try:
        return is_standard(path) or (path.exists() and not path.is_file() and not path.is_dir())
    except OSError:
        return False


class _File:
    """One output of a run.

    Parameters
    ----------
    temporary : Path
        Its path in the hidden folder, where it is written.
    path : Path
        Its final path, with symbolic links resolved; or a stream, which receives its content.
    stream : bool
        Whether `path` is a stream.
    folder : bool
        Whether the output is a folder.
    """

    def __init__(self, temporary: Path, path: Path, stream: bool, folder: bool) -> None:
        self.temporary, self.path, self.stream, self.folder = temporary, path, stream, folder
        self._former = temporary.parent.with_name(f"{temporary.parent.name}-former")
        self._node = 0  # inode of the new file
        temporary.parent.mkdir()
        if folder:
            temporary.mkdir()
        else:
            temporary.touch()

    def sync(self) -> None:
        """Wait until the new file is on the disk, with the owner and mode of the file that it replaces."""
        if self.folder:
            hidden.sync_content(self.temporary)
        hidden.sync(self.temporary, like=self.path)
        self._node = self.temporary.stat().st_ino

    def rename(self) -> None:
        """Rename the new file to its final path, and keep the former file until all are renamed."""
        if self.folder and self.path.exists():
            self._exchange()
            return
        if self.path.exists():
            try:
                os.link(self.path, self._former)
            except OSError as error:  # no hard links in this file system, or not to files of other users
                if error.errno not in hidden.UNABLE:
                    raise
                shutil.copy2(self.path, self._former)
        os.replace(self.temporary, self.path)

    def _exchange(self) -> None:
        try:
            hidden.exchange(self.temporary, self.path)
        except OSError as error:
            if error.errno not in hidden.UNABLE:
                raise
            # two steps: if the run is killed in between, this is the only copy, under a name that no run removes
            self._former = self.path.with_name(f"{self.path.name}.former-{secrets.token_hex(4)}")
            os.replace(self.path, self._former)
            os.replace(self.temporary, self.path)

    def undo(self) -> bool:
        """Restore the former file; return whether that succeeded."""
        try:
            renamed = self.path.exists() and self.path.stat().st_ino == self._node
            if renamed and self.folder and self.temporary.exists():
                hidden.exchange(self.temporary, self.path)
            elif self._former.exists():
                if renamed and self.folder:
                    os.replace(self.path, self.temporary)
                if renamed or not self.path.exists():
                    os.replace(self._former, self.path)
            elif renamed:
                hidden.remove(self.path)
        except OSError:
            return False
        return True

    def forget(self) -> None:
        """Remove the former file."""
        hidden.remove(self._former)


def _rename_all(files: Sequence[_File], folders: Iterable[hidden.HiddenFolder]) -> None:
    """Rename every file to its final path, or none."""
    try:
        for file in files:
            file.rename()
        for parent in dict.fromkeys(file.path.parent for file in files):
            hidden.sync(parent)
    except BaseException as error:
        lost = [str(file.path) for file in files if not file.undo()]
        if lost:
            kept = ", ".join(str(folder.keep()) for folder in folders)
            raise OutputError(f"{', '.join(lost)}: replaced before writing failed ({error}), and the former content "
                              "cannot be put back", f"it is in {kept}") from error
        raise
    for file in files:
        file.forget()


def _send(source: Path, target: Path) -> None:
    """Send a file's content to standard output, a pipe or a device."""
    with source.open("rb") as file:
        if is_standard(target):
            stream: Any = getattr(sys.stdout, "buffer", None)
            if stream is None:
                raise OutputError(f"{target}: there is no standard output for data here", "name a file")
            sys.stdout.flush()
            shutil.copyfileobj(file, stream, 1 << 20)
            stream.flush()
        else:
            with open(os.open(target, os.O_WRONLY), "wb") as pipe:
                shutil.copyfileobj(file, pipe, 1 << 20)


def output_error(error: OSError, paths: Iterable[Path]) -> OutputError:
    """Return an error of one line for a failure to write `paths`."""
    name = ", ".join(map(str, paths))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"{name}: the disk is full; nothing was written", "make room, or write to another disk")
    if error.errno == errno.EFBIG:
        return OutputError(f"{name}: exceeds the limit on file sizes; nothing was written", "see 'ulimit -f'")
    if error.errno == errno.ENAMETOOLONG:
        return OutputError(f"{name}: the name is too long", "use a shorter one")
    return OutputError(f"{name}: cannot be written ({error.strerror or error}); nothing was written")
