"""Files that are either written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from vmdpotential.errors import OutputError, UsageError


@contextlib.contextmanager
def writing(paths: Sequence[Path], force: bool = False) -> Iterator[list[Path]]:
    """Give a temporary name beside each path; on success rename all, on failure remove all.

    The temporary names keep the suffixes, because writers choose the format by them.

    Parameters
    ----------
    paths : sequence of Path
    force : bool
        Whether files that exist may be replaced.

    Yields
    ------
    list of Path
        Where to write, in the order of `paths`.

    Raises
    ------
    UsageError
        When a path stands twice, or exists and `force` is not set.
    OutputError
        When a folder is missing, nothing can be written there, or the disk is full.
    """
    check(paths, force)
    token = secrets.token_hex(4)
    # the end of a long name is enough, and keeps the whole as short as file systems want it
    temporary = [path.with_name(f".{token}-{path.name[-40:]}") for path in paths]
    try:
        yield temporary
        for source, target in zip(temporary, paths, strict=True):
            os.replace(source, target)
    except OSError as error:
        raise describe(error, paths) from error
    finally:
        for path in temporary:
            with contextlib.suppress(OSError):
                path.unlink()


def check(paths: Sequence[Path], force: bool = False) -> None:
    """Raise what :func:`writing` would raise, before any work is done."""
    named: set[str] = set()
    for path in paths:
        if os.path.abspath(path) in named:
            raise UsageError("", f"{path}: the same output file is named twice", "give each a name of its own")
        named.add(os.path.abspath(path))
        try:
            _check_one(path, force)
        except OSError as error:  # a name that is too long, a loop of links
            raise describe(error, [path]) from error


def _check_one(path: Path, force: bool) -> None:
    if path.is_dir():
        raise OutputError(f"{path}: is a folder", "name a file")
    if not path.parent.is_dir():
        if path.parent.exists():
            raise OutputError(f"{path}: {path.parent} is no folder", "name one that is")
        raise OutputError(f"{path}: the folder {path.parent} does not exist", "create it first")
    if path.exists() and not force:
        raise UsageError("", f"{path}: exists", "use {force} to replace it")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path}: no permission to write in {path.parent}", "name another folder")


def describe(error: OSError, paths: Sequence[Path]) -> OutputError:
    """Return one line for what went wrong while writing `paths`."""
    name = ", ".join(map(str, paths))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"{name}: the disk is full; nothing was written", "make room, or write to another disk")
    if error.errno == errno.EFBIG:
        return OutputError(f"{name}: is larger than a file may be here; nothing was written", "see 'ulimit -f'")
    if error.errno == errno.ENAMETOOLONG:
        return OutputError(f"{name}: the name is too long", "use a shorter one")
    return OutputError(f"{name}: cannot be written ({error.strerror or error}); nothing was written")
