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
    temporary = [path.with_name(f".{token}-{path.name}") for path in paths]
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
    if len({os.path.abspath(path) for path in paths}) < len(paths):
        raise UsageError("the same output file is named twice")
    for path in paths:
        if path.is_dir():
            raise OutputError(f"{path}: is a folder; name a file")
        if not path.parent.is_dir():
            raise OutputError(f"{path}: the folder {path.parent} does not exist; create it first")
        if path.exists() and not force:
            raise UsageError(f"{path}: exists; use --force to replace it")
        if not os.access(path.parent, os.W_OK):
            raise OutputError(f"{path}: no permission to write in {path.parent}")


def describe(error: OSError, paths: Sequence[Path]) -> OutputError:
    """Return one line for what went wrong while writing `paths`."""
    name = ", ".join(map(str, paths))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"{name}: the disk is full; nothing was written")
    return OutputError(f"{name}: cannot be written ({error.strerror or error}); nothing was written")
