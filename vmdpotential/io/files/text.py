"""Reading of plain, gzip and bzip2 files, from disk or a stream, with errors of one line.

The amount of data is checked against the available memory while it is read, because a small file may unpack to more
than that. A stream (standard input, which is ``-``, or a pipe) is read once and kept in memory, see
:func:`buffered_stream`.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import math
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from vmdpotential import memory
from vmdpotential.errors import (
    BackendError,
    InputError,
    MemoryPlanError,
    UsageError,
    VmdpotentialError,
    one_line,
    shorten_text,
)

#: Suffixes of compressed files; the suffix before them gives the format.
COMPRESSED_SUFFIXES = (".gz", ".bz2")

#: The path that means standard input, and its name in messages.
STREAM = Path("-")
STANDARD_INPUT = "standard input"

_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh"}
_KIND = {".gz": "gzip", ".bz2": "bzip2"}
#: Byte order marks: of UTF-8, which is ignored, and of UTF-16, which no supported format uses.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")

#: A compressed file may unpack to _FREE bytes plus _RATIO times its size. Text files of atoms are compressed to a tenth
#: to a quarter, a map of mostly zeros to a hundredth; a file compressed further was made to exhaust the memory.
_FREE, _RATIO = 1 << 26, 100

_BLOCK = 1 << 20
#: Most characters of a reader's message, without the program's name in front and a viewer's spelling of parameters.
_MESSAGE = 270
_HINT = "correct it, write it again, or give it the suffix of its format"
_LESS = "read a smaller file, or make memory free"


class BufferedStream(type(Path())):  # type: ignore[misc]  # Path itself cannot be subclassed before Python 3.12
    """The path of a stream, with its whole content."""

    content: bytes


def format_suffix(path: Path) -> str:
    """Return the lower-case suffix that gives the format: ``.pdb`` for ``A.PDB.gz``."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED_SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()


def buffered_stream(path: Path | str) -> Path:
    """Return the path; for a stream, which can be read only once, read it and return a :class:`BufferedStream`.

    Raises
    ------
    InputError
        When standard input is a terminal or closed, or the stream cannot be read.
    MemoryPlanError
        When its content does not fit into memory.
    """
    if isinstance(path, BufferedStream):
        return path
    path = Path(path)
    if path == STREAM:
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None or sys.stdin.isatty():
            raise InputError(f"{STANDARD_INPUT}: no data arrive from a file or pipe",
                             "send a file, such as with <, or name one")
        result = BufferedStream(STANDARD_INPUT)
        with translating(result):
            result.content = take(stream, result)
        return result
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # reported when the file is opened
        return path
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return path
    result = BufferedStream(path)
    with translating(path), open(path, "rb") as file:
        result.content = take(file, path)
    return result


def read_bytes(path: Path, times: float = 3) -> bytes:
    """Return the whole content of a file, decompressed.

    Parameters
    ----------
    path : Path
    times : float
        Most bytes of memory that the caller needs for each byte of the content.

    Raises
    ------
    InputError
        When the file is missing, a folder, unreadable, empty, damaged, or not compressed as its suffix says.
    MemoryPlanError
        When reading takes more memory than there is.
    """
    with opened(path) as file:
        data = take(file, path, times)
    if not data or data.isspace():
        raise _empty(path)
    return data


def read_text(path: Path, times: float = 3, line: float = 0) -> bytes:
    """Return the whole content of a text file, decompressed, with line feeds as line ends.

    Parameters
    ----------
    path : Path
    times, line : float
        Most bytes of memory that the caller needs for each byte of the content, and for each line.

    Raises
    ------
    InputError
        As for :func:`read_bytes`; also when the file is not text in an encoding that extends ASCII.
    MemoryPlanError
        When reading takes more memory than there is.
    """
    data = read_bytes(path, times)
    if data.startswith(_WIDE):
        raise InputError(f"{path}: is text in UTF-16", "save it as plain text or UTF-8")
    if b"\0" in data:
        line_number = plain_text(data[: data.index(b"\0")]).count(b"\n") + 1
        raise InputError(f"{path}: line {line_number}: contains a NUL byte, so it is not a text file")
    data = plain_text(data)
    memory.require(int(len(data) * times + (data.count(b"\n") + 1) * line), f"reading {path}", _LESS)
    return data


def plain_text(data: bytes) -> bytes:
    """Return text without a byte order mark, with line feeds as line ends."""
    data = data.removeprefix(BYTE_ORDER_MARK)
    if b"\r" in data:
        if b"\n" in data:  # even after several carriage returns, as some conversions write
            data = re.sub(rb"\r+\n", b"\n", data)
        data = data.replace(b"\r", b"\n")
    return data


def first_bytes(path: Path, count: int = 8192) -> bytes:
    """Return the first bytes of a file, decompressed; raises the errors of :func:`read_bytes`."""
    with opened(path) as file:
        data = file.read(count)
    if not data:
        raise _empty(path)
    return data


def _empty(path: Path) -> InputError:
    hint = "send a file to it, and name it once" if str(path) == STANDARD_INPUT else "write or copy it again"
    return InputError(f"{path}: is empty", hint)


def write_bytes(path: Path, blocks: Iterable[bytes], level: int = 5) -> None:
    """Write blocks of bytes to a file, compressed at a level of gzip if the suffix is ``.gz``.

    The gzip header contains no time, so that equal content gives equal files.
    """
    with open(path, "wb") as file:
        if Path(path).suffix.lower() == ".gz":
            with gzip.GzipFile(filename="", mode="wb", compresslevel=level, fileobj=file, mtime=0) as packed:
                packed.writelines(blocks)
        else:
            file.writelines(blocks)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for sequential reading, decompressed; raises the errors of :func:`read_bytes`."""
    path = buffered_stream(path)
    with translating(path), contextlib.ExitStack() as stack:
        raw: IO[bytes] = (io.BytesIO(path.content) if isinstance(path, BufferedStream)
                          else stack.enter_context(open(path, "rb")))
        kind = _compression(path, raw)
        file = raw
        if kind == ".gz":
            file = cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=raw)))
        elif kind == ".bz2":
            file = stack.enter_context(bz2.BZ2File(raw))
        try:
            yield file
        except (EOFError, zlib.error, OSError) as error:
            if not kind or isinstance(error, PermissionError):
                raise
            raise InputError(f"{path}: the {_KIND[kind]} file is damaged or cut short",
                             "copy it again, or write it again") from None


@contextlib.contextmanager
def open_seekable(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for random access: a plain file on disk, or else the decompressed content in memory."""
    path = buffered_stream(path)
    if not isinstance(path, BufferedStream):
        with translating(path), open(path, "rb") as file:
            if not _compression(path, file):
                yield cast(IO[bytes], file)
                return
    yield io.BytesIO(read_bytes(path))


def is_compressed(path: Path) -> bool:
    """Return whether a file on disk is compressed; a folder is not."""
    if path.is_dir():
        return False
    with open(path, "rb") as file:
        return bool(_compression(path, file))


def take(file: IO[bytes], path: Path, times: float = 3, count: int | None = None) -> bytes:
    """Return the rest of a file, or its next `count` bytes.

    They are read in pieces, because a damaged header may state any `count`.

    Raises
    ------
    MemoryPlanError
        As soon as `times` as many bytes exceed the available memory.
    InputError
        As soon as a compressed file has unpacked to more than :data:`_RATIO` times its size.
    """
    most = memory.limit() / times
    unpacked = _most_unpacked(file, path)
    pieces: list[bytes] = []
    have = 0
    size = _BLOCK
    if isinstance(file, io.BufferedReader):  # a file on disk, whose size is known: read it in one piece
        size = max(size, os.fstat(file.fileno()).st_size + 1)
    while count is None or have < count:
        piece = file.read(int(min(size, most + 1 - have, *([] if count is None else [count - have]))))
        if not piece:
            break
        have += len(piece)
        if have > most:
            memory.require(int(have * times), f"reading {path}", _LESS)
        if have > unpacked:
            raise InputError(f"{path}: unpacks to more than {_RATIO} times its size, as if made to exhaust the memory",
                             "if you trust it, unpack it first")
        pieces.append(piece)
        size = _BLOCK
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _most_unpacked(file: IO[bytes], path: Path) -> float:
    """Return the number of bytes that a file may unpack to; infinite if it is not compressed."""
    if not isinstance(file, (gzip.GzipFile, bz2.BZ2File)):
        return math.inf
    return _FREE + _RATIO * (len(path.content) if isinstance(path, BufferedStream) else path.stat().st_size)


@contextlib.contextmanager
def translating(path: Path) -> Iterator[None]:
    """Convert errors of the operating system on a file to an InputError of one line."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:
        if "null byte" not in str(error):  # Python's message for such a name
            raise
        raise InputError(f"{path}: is not a valid file name", "check its name and folder") from None


def unreadable(path: Path, error: OSError) -> InputError:
    """Return an error of one line that says why a file cannot be read, and what to do."""
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return InputError(f"{path}: is a link to {os.readlink(path)}, which does not exist", "link it to another file")
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: there is no such file", "check its name and folder")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{path}: is a folder", "name a file")
    return InputError(f"{path}: cannot be read ({error.strerror or error})", "check the file's permissions, or copy it")


@contextlib.contextmanager
def reading_file(path: Path) -> Iterator[None]:
    """Convert whatever a reader raises to an error of one line with the file's name and a hint."""
    try:
        with translating(path), np.errstate(all="ignore"):  # readers check for numbers that are not finite themselves
            yield
    except (MemoryError, MemoryPlanError, BackendError):
        raise
    except UsageError as error:
        if error.parameter.startswith("VMDPOTENTIAL_"):  # a variable of the environment, not the file, is wrong
            raise
        raise error_with_name(path, InputError(f"{error.parameter}: {error.text}", error.hint)) from None
    except VmdpotentialError as error:
        raise error_with_name(path, error) from error.__cause__
    except Exception as error:
        raise error_with_name(path, InputError(f"cannot be read ({type(error).__name__}: {error})")) from error


@contextlib.contextmanager
def naming(where: str | Path) -> Iterator[None]:
    """Add a file, or a line of it, to the text of an InputError."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error.text}", error.hint) from None


def error_with_name(path: Path, error: Any) -> Any:
    """Return a reader's error with the file's name and a hint added, and with a long name and a long text shortened."""
    error.hint = error.hint or _HINT
    name, text = one_line(str(path)), one_line(error.text)
    text = text if name in text else f"{name}: {text}"
    most = _MESSAGE - len(error.hint)
    if len(text) > most:  # the end of a name identifies the file better than its start
        short = shorten_text(name, 100, 80)
        before, _, reason = text.partition(name)
        head = shorten_text(before, 60) + short
        reason = re.sub(r"\S{61,}", lambda match: shorten_text(match[0], 60), reason.replace(name, short))
        text = head + shorten_text(reason, max(40, most - len(head)))
    error.text = text
    return error


def _compression(path: Path, file: IO[bytes]) -> str:
    """Return the suffix of a file's compression, by its first bytes, or an empty string."""
    start = file.read(4)
    file.seek(0)
    match = next((kind for kind, magic in _MAGIC.items() if start.startswith(magic)), "")
    named = path.suffix.lower()
    if named in COMPRESSED_SUFFIXES and start and match != named:
        raise InputError(f"{path}: is not a {_KIND[named]} file", f"rename it without {named}, or compress it")
    return match
