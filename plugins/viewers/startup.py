"""Blocks in start-up files of other programs: added once between marker comments, and removed without other changes."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from vmdpotential.errors import InputError
from vmdpotential.io.files.output import output_error, writing_files

# both languages (Tcl, Python) have # comments
_BEGIN, _END = "# >>> vmdpotential >>>", "# <<< vmdpotential <<<"
_NEW_FILE = "# this file is new: it is removed when nothing but this block is in it"

#: A block with the two line ends before it: one for a last line without one, and one for a line that is continued.
_BLOCK = re.compile(rb"\r?\n\r?\n# >>> vmdpotential >>>\r?\n(?P<new># this file is new[^\n]*\n)?"
                    rb"# plugin folder: (?P<folder>[^\r\n]*).*?# <<< vmdpotential <<<\r?\n", re.DOTALL)


def read(path: Path) -> bytes | None:
    """Return the content of a file, or None if there is no file.

    Raises
    ------
    InputError
        When it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); nothing was changed") from None


def find_block(old: bytes | None, path: Path) -> re.Match[bytes] | None:
    """Return the block in a file's bytes, or None if it has none; its `folder` is the plugin's.

    Raises
    ------
    InputError
        When the block has no end marker.
    """
    match = _BLOCK.search(old or b"")
    if match is None and _BEGIN.encode() in (old or b""):
        raise InputError(f"{path}: the block of vmdpotential lacks its last line '{_END}'",
                         "put it back, or remove the block by hand")
    return match


def was_created(old: bytes | None, path: Path) -> bool:
    """Return whether a file was created for its block, or does not exist yet."""
    match = find_block(old, path)
    return old is None or (match is not None and match["new"] is not None)


def with_block(old: bytes | None, lines: list[str], path: Path, folder: Path) -> bytes:
    """Return a file's bytes with a block at the end, which replaces an earlier block.

    Parameters
    ----------
    old : bytes or None
        None if there is no file.
    lines : list of str
        Lines of the block.
    path : Path
        Path of the file, for messages.
    folder : Path
        Folder of the plugin, which is noted in the block.
    """
    base = without_block(old, path) or b""
    end = b"\r\n" if b"\r\n" in base else b"\n"
    body = ["", "", _BEGIN, *[_NEW_FILE] * was_created(old, path), f"# plugin folder: {folder}", *lines, _END, ""]
    return base + end.join(map(os.fsencode, body))


def without_block(old: bytes | None, path: Path) -> bytes | None:
    """Return a file's bytes without the block, or None if the file was created for it and has no other content."""
    match = find_block(old, path)
    if old is None or match is None:
        return old
    left = old[: match.start()] + old[match.end() :]
    return None if not left and match["new"] else left


def replace(path: Path, data: bytes | None) -> None:
    """Write a file atomically, or remove it for None; links and permissions are kept.

    Raises
    ------
    OutputError
        When it cannot be written.
    """
    try:
        if data is None:
            Path(os.path.realpath(path)).unlink()
            return
    except OSError as error:
        raise output_error(error, [path]) from error
    with writing_files([path], force=True) as (temporary,):
        temporary.write_bytes(data)


def put_folder(target: Path, contents: Mapping[str, bytes]) -> None:
    """Replace a folder by one with some files, by their names in it; on an error nothing is changed.

    Raises
    ------
    OutputError
        When they cannot be written.
    """
    temporary = target.with_name(f".{secrets.token_hex(4)}-new")
    old = target.with_name(f".{secrets.token_hex(4)}-old")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        for name, data in contents.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            (temporary / name).write_bytes(data)
        if target.exists():
            target.rename(old)
        temporary.rename(target)
    except OSError as error:
        if old.exists() and not target.exists():
            old.rename(target)
        raise output_error(error, [target]) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def remove_folder(target: Path) -> None:
    """Remove a folder, and its parent folder if that is empty then.

    Raises
    ------
    OutputError
        When it cannot be removed.
    """
    try:
        if target.exists():
            shutil.rmtree(target)
    except OSError as error:
        raise output_error(error, [target]) from error
    with contextlib.suppress(OSError):
        target.parent.rmdir()
