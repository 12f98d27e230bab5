"""Blocks in start-up files of other programs: added once between marker comments, and removed without other changes."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from pathlib import Path

from vmdpotential.errors import InputError
from vmdpotential.io.files.output import output_error, writing_files

# the number counts the line ends that were added before the block; both languages (Tcl, Python) have # comments
_BEGIN = "# >>> vmdpotential, after {} added line ends >>>"
_END = "# <<< vmdpotential <<<"
_NEW_FILE = "# this file is new: it is removed when nothing but this block is in it"
_BLOCK = re.compile(
    rb"# >>> vmdpotential, after (\d) added line ends >>>\r?\n(?P<body>.*?)# <<< vmdpotential <<<\r?\n", re.DOTALL)


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
        Folder of the plugin, which is noted in the block for :func:`folder_of`.
    """
    is_new_file = old is None or was_created(old)
    base = without_block(old or b"", path)
    end = b"\r\n" if b"\r\n" in base else b"\n"
    added = 0
    if base and not base.endswith(b"\n"):
        added = 1
    if base.rstrip(b"\r\n").endswith(b"\\"):
        added += 1  # otherwise the last line would continue into the block
    body = [
        _BEGIN.format(added), *([_NEW_FILE] if is_new_file else []), f"# plugin folder: {folder}", *lines,
        _END, "",
    ]
    return base + end * added + end.join(os.fsencode(line) for line in body)


def without_block(old: bytes, path: Path) -> bytes:
    """Return a file's bytes as they were before the block was added.

    Raises
    ------
    InputError
        When the block has no end marker.
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
    """Return whether a file's bytes contain a block."""
    return old is not None and _BLOCK.search(old) is not None


def was_created(old: bytes) -> bool:
    """Return whether a file was created for its block."""
    match = _BLOCK.search(old)
    return match is not None and _NEW_FILE.encode() in match["body"]


def folder_of(old: bytes | None) -> Path | None:
    """Return the plugin's folder noted in the block, or None if there is no block."""
    match = None if old is None else _BLOCK.search(old)
    result = None if match is None else re.search(rb"^# plugin folder: (.*?)\r?$", match["body"], re.MULTILINE)
    return None if result is None else Path(os.fsdecode(result[1]))


def removed(old: bytes, path: Path) -> bytes | None:
    """Return a file's bytes without the block, or None if the file was created for it and has no other content."""
    left = without_block(old, path)
    return None if not left and was_created(old) else left


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


def put_folder(source: Path, target: Path, names: list[str], more: dict[str, str]) -> None:
    """Replace a folder by one with copies of some files and further new files; on an error nothing is changed.

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
