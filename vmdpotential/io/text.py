"""Files as bytes: plain, gzip or bzip2, with one-line errors for what cannot be read."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, cast

from vmdpotential.errors import InputError

#: Suffixes of compressed files; the format is told by the suffix before.
COMPRESSED = (".gz", ".bz2")

_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh"}
_KIND = {".gz": "gzip", ".bz2": "bzip2"}


def suffix(path: Path) -> str:
    """Return the lower-case suffix that tells the format: ``.pdb`` of ``A.PDB.gz``."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def read_bytes(path: Path) -> bytes:
    """Return the whole content of a file, decompressed.

    Raises
    ------
    InputError
        When the file is missing, a folder, unreadable, empty, damaged, or not what its suffix says.
    """
    data = _read(Path(path), -1)
    if not data or data.isspace():
        raise InputError(f"{path}: is empty", "write or copy it again")
    return data


def first_bytes(path: Path, count: int = 8192) -> bytes:
    """Return the first bytes of a file, decompressed; raises what :func:`read_bytes` does."""
    data = _read(Path(path), count)
    if not data:
        raise InputError(f"{path}: is empty", "write or copy it again")
    return data


def write_bytes(path: Path, blocks: Iterable[bytes]) -> None:
    """Write blocks one after the other, compressed when the suffix is ``.gz``.

    The time is left out of the gzip header, so that equal content gives equal files.
    """
    with open(path, "wb") as file:
        if Path(path).suffix.lower() == ".gz":
            with gzip.GzipFile(filename="", mode="wb", compresslevel=5, fileobj=file, mtime=0) as packed:
                packed.writelines(blocks)
        else:
            file.writelines(blocks)


def _read(path: Path, count: int) -> bytes:
    try:
        with open(path, "rb") as file:
            kind = _compression(path, file)
            opened: IO[bytes] = file
            if kind == ".gz":
                opened = cast(IO[bytes], gzip.GzipFile(fileobj=file))
            elif kind == ".bz2":
                opened = bz2.BZ2File(file)
            try:
                return opened.read(count)
            except (EOFError, zlib.error, gzip.BadGzipFile, OSError) as error:
                if not kind or isinstance(error, PermissionError):
                    raise
                raise InputError(f"{path}: the {_KIND[kind]} file is damaged or cut short", "copy it again") from None
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> InputError:
    """Return one line for why a file cannot be read, and what to do."""
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return InputError(f"{path}: is a link to {os.readlink(path)}, which does not exist", "link it to another file")
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: there is no such file", "check its name and folder")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{path}: is a folder", "name a file")
    return InputError(f"{path}: cannot be read ({error.strerror or error})", "copy it to where it can be")


@contextlib.contextmanager
def curing() -> Iterator[None]:
    """Add what to do about a damaged file to errors of readers that only say what is wrong with it."""
    try:
        yield
    except InputError as error:
        error.cure = error.cure or "correct it, write it again, or give it the suffix of its format"
        raise


def _compression(path: Path, file: IO[bytes]) -> str:
    """Return the suffix of the compression that the first bytes show, or an empty string."""
    start = file.read(4)
    file.seek(0)
    found = next((kind for kind, magic in _MAGIC.items() if start.startswith(magic)), "")
    named = path.suffix.lower()
    if named in COMPRESSED and start and found != named:
        raise InputError(f"{path}: is not a {_KIND[named]} file", f"rename it without {named}, or compress it")
    return found
