"""Blocks in start-up files of other programs: added once between marker comments, and taken out to the byte."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from pathlib import Path

from vmdpotential.errors import InputError
from vmdpotential.io.files.output import describe, writing

# the number is that of line ends that had to be added in front; both formats (Tcl, Python) have # comments
_BEGIN = "# >>> vmdpotential, after {} added line ends >>>"
_END = "# <<< vmdpotential <<<"
_NEW_FILE = "# this file is new: it is removed when nothing but this block is in it"
_BLOCK = re.compile(
    rb"# >>> vmdpotential, after (\d) added line ends >>>\r?\n(?P<body>.*?)# <<< vmdpotential <<<\r?\n", re.DOTALL)


def read(path: Path) -> bytes | None:
    """Return what a file holds, None when there is none.

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


def with_block(old: bytes | None, lines: list[str], path: Path, folder: Path) -> bytes:
    """Return a file's bytes with a block at the end, in place of one that was there.

    Parameters
    ----------
    old : bytes or None
        None for a file that is not there.
    lines : list of str
    path : Path
        For messages.
    folder : Path
        Of the plugin; :func:`folder_of` finds it again.
    """
    made = old is None or made_here(old)
    base = without_block(old or b"", path)
    end = b"\r\n" if b"\r\n" in base else b"\n"
    added = 0
    if base and not base.endswith(b"\n"):
        added = 1
    if base.rstrip(b"\r\n").endswith(b"\\"):
        added += 1  # else the last line would continue into the block
    body = [
        _BEGIN.format(added), *([_NEW_FILE] if made else []), f"# plugin folder: {folder}", *lines,
        _END, "",
    ]
    return base + end * added + end.join(os.fsencode(line) for line in body)


def without_block(old: bytes, path: Path) -> bytes:
    """Return a file's bytes as they were before the block was added.

    Raises
    ------
    InputError
        When the block has lost its end.
    """
    match = _BLOCK.search(old)
    if match is None:
        if b"# >>> vmdpotential, after" in old:
            raise InputError(f"{path}: the block of vmdpotential lacks its last line '{_END}'",
                             "put it back, or remove the block by hand")
        return old
    before = old[: match.start()]
    for _ in range(int(match[1])):
        before = before.removesuffix(b"\n").removesuffix(b"\r")
    return before + old[match.end() :]


def has_block(old: bytes | None) -> bool:
    """Return whether there is a block."""
    return old is not None and _BLOCK.search(old) is not None


def made_here(old: bytes) -> bool:
    """Return whether a file was made for its block."""
    match = _BLOCK.search(old)
    return match is not None and _NEW_FILE.encode() in match["body"]


def folder_of(old: bytes | None) -> Path | None:
    """Return the folder that the block states, None when there is no block."""
    match = None if old is None else _BLOCK.search(old)
    result = None if match is None else re.search(rb"^# plugin folder: (.*?)\r?$", match["body"], re.MULTILINE)
    return None if result is None else Path(os.fsdecode(result[1]))


def removed(old: bytes, path: Path) -> bytes | None:
    """Return a file's bytes without the block; None when the file was made for it and holds nothing else."""
    left = without_block(old, path)
    return None if not left and made_here(old) else left


def replace(path: Path, data: bytes | None) -> None:
    """Write a file whole or not at all; None removes it. A link stays a link, and permissions stay as they are.

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
        raise describe(error, [path]) from error
    with writing([path], force=True) as (temporary,):
        temporary.write_bytes(data)


def put_folder(source: Path, target: Path, names: list[str], more: dict[str, str]) -> None:
    """Copy files, and write further ones, into a folder of their own: all, or nothing is changed.

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
        for name in names:
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, temporary / name)
        for name, text in more.items():
            (temporary / name).write_bytes(os.fsencode(text))
        if target.exists():
            target.rename(old)
        temporary.rename(target)
    except OSError as error:
        if old.exists() and not target.exists():
            old.rename(target)
        raise describe(error, [target]) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def remove_folder(target: Path) -> None:
    """Remove a folder, and the one it is in when that is empty then.

    Raises
    ------
    OutputError
        When it cannot be removed.
    """
    try:
        if target.exists():
            shutil.rmtree(target)
    except OSError as error:
        raise describe(error, [target]) from error
    with contextlib.suppress(OSError):
        target.parent.rmdir()
