"""How files are damaged: by lines, fields, numbers, words of four bytes, encodings, compression and archives."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import re
import struct
import warnings
import zipfile
from random import Random

#: What replaces a number, or follows it.
NUMBERS = [
    b"0", b"-1", b"1", b"-0.0", b"1e308", b"-1e308", b"1e-320", b"1e400", b"nan", b"-inf", b"inf", b"1_0",
    b"1_0.5", b"0x10", b"2147483647", b"2147483648", b"-2147483649", b"9223372036854775807",
    b"9223372036854775808", b"99999999999999999999", b"999999999999", b"4294967296", b"1" * 400, b"\xb2",
    b"1\xa0", b"\xd9\xa1", b"********", b"1.2.3", b"1-2", b"--1", b"+5", b"1d0", b"", b" ", b".", b"-", b"e5",
    b"1e", b"?", b"'1'", b"(1)", b"true", b"None", b"0.1e", b"1,5", b"20a4", b"0a4", b"A000", b"zzzz",
    b"20a9223372036854775807", b"16777217", b"65536", b"-9223372036854775808", b"1e5", b"3 3 3",
]  # fmt: skip
PIECES = [
    b"\0", b"\x80", b"\xff", b"\r", b"\n", b"\r\n", b"\t", b" ", b"\x1a", b"\x0c", b"\x85", b"\xa0",
    b"\x1b[31m", b"\xef\xbb\xbf", b"_", b"$\\foo$", b"%s%n", b"#", b";", b"'", b'"', b"!", b"loop_\n",
    b"data_\n", b"%FLAG ", b"ATOM ", b"END\n", b"TER\n", b"{}", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"A" * 300,
    b" " * 5000, b"9" * 70000, b"(" * 500, b"\x7f", b"\\", b"\n;\n",
]  # fmt: skip
WORDS = [0, 1, -1, 2, 3, 4, 5, 255, 256, 65535, 2**31 - 1, -(2**31), 0x7FC00000, 0x7F800000, 0x00800000, 1000, 20140,
         10**6, 10**9]
SUFFIXES = (".pdb", ".cif", ".gro", ".pqr", ".psf", ".prmtop", ".rst7", ".nc", ".dx", ".mrc", ".cube", ".npz", "",
            ".dat", ".csv", ".dcd", ".xtc", ".mol2")
BINARY = (".mrc", ".ccp4", ".map", ".npz", ".nc", ".ncdf", ".ncrst", ".dcd", ".xtc", ".trr", ".entry",
          ".chunk", ".h5md")
SHAPES = (b"(100000000000000000000,)", b"(99999999999,)", b"((((", b"(-1,)", b"()", b"(2, 3, 4, 5)", b"(0, 3, 4)",
          b"[]", b"(2**99,)", b"(1e9,)", b"(99999, 99999, 99999)", b"None")
TYPES = (b"'|O'", b"'<f8'", b"'<i8'", b"'<U99999999'", b"'|V7'", b"'<M8[s]'", b"'<c8'", b"'xx'", b"[('a', '<f4')]",
         b"'>f4'", b"'|b1'", b"'<f2'", b"'<U0'")
ENTRIES = ("values.npy", "x.npy", "../a.npy", "temperature.npy", "a\nb.npy", "readme.txt")
_NUMBER = re.compile(rb"[-+]?[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?")
_FIELD = re.compile(rb"\S+")


def mutated(rng: Random, suffix: str, data: bytes, others: list[bytes]) -> tuple[str, bytes]:
    """Return another suffix and content, after one to four mutations."""
    if suffix == ".dx.gz":  # what is in it is what matters, and how it is packed comes below
        suffix, data = ".dx", gzip.decompress(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        binary = suffix in BINARY or b"\0" in data
        if suffix == ".npz" and rng.random() < 0.7:
            data = _archive(rng, data)
        elif binary:
            data = rng.choice(_BINARY)(rng, data, others)
        else:
            data = rng.choice(_TEXT)(rng, data, others)
        data = data[:200_000]
    if rng.random() < 0.06:
        suffix, data = _packed(rng, suffix, data)
    elif rng.random() < 0.02:
        suffix = rng.choice(SUFFIXES)
    return suffix, data


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True) or [b""]


def _drop_lines(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    lines = _lines(data)
    at = rng.randrange(len(lines))
    del lines[at : at + rng.choice((1, 1, 2, 5, 20))]
    return b"".join(lines)


def _repeat_lines(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    lines = _lines(data)
    at = rng.randrange(len(lines))
    stop = at + rng.choice((1, 1, 2, 5, 20))
    return b"".join(lines[:stop] + lines[at:stop] * rng.choice((1, 1, 2, 100)) + lines[stop:])


def _swap_lines(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    lines = _lines(data)
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def _cut_line(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    lines = _lines(data)
    at = rng.randrange(len(lines))
    line = lines[at].rstrip(b"\r\n")
    keep = rng.randrange(len(line) + 1)
    lines[at] = (line[:keep] if rng.random() < 0.7 else line[keep:]) + b"\n"
    return b"".join(lines)


def _case(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    lines = _lines(data)
    at = rng.randrange(len(lines))
    line = lines[at]
    lines[at] = rng.choice((line.lower(), line.upper(), b" " + line, b"\t" + line, line.replace(b" ", b"\t"),
                            line.replace(b" ", b""), b"\xef\xbb\xbf" + line, line.strip() + b" " * 200 + b"\n"))
    return b"".join(lines)


def _field(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    results = list(_FIELD.finditer(data))
    if not results:
        return data
    match = rng.choice(results)
    a, b = match.span()
    other = rng.choice(results)[0]
    word = rng.choice((b"", other, match[0] * 2, match[0] + b" " + other, rng.choice(NUMBERS), match[0][:-1]))
    if rng.random() < 0.4:  # the columns stay
        word = word[: b - a].rjust(b - a)
    return data[:a] + word + data[b:]


def _number(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    results = list(_NUMBER.finditer(data))
    if not results:
        return data
    a, b = rng.choice(results).span()
    word = rng.choice(NUMBERS)
    if rng.random() < 0.5:
        word = word[: b - a].rjust(b - a)
    return data[:a] + word + data[b:]


def _characters(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(data) + 1)
        piece = rng.choice(PIECES) if rng.random() < 0.6 else bytes([rng.randrange(256)])
        data = data[:at] + piece + data[at + rng.choice((0, len(piece), 1)) :]
    return data


def _encoding(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    text = data.decode("latin-1")
    return rng.choice((
        lambda: b"\xef\xbb\xbf" + data, lambda: text.encode("utf-16"), lambda: text.encode("utf-16-be"),
        lambda: data.replace(b"\n", b"\r"), lambda: data.replace(b"\n", b"\r\n"),
        lambda: data.replace(b"\n", b"\r\r\n"),
        lambda: data.replace(b"\n", b"\r", rng.randrange(10)), lambda: b"\xef\xbb\xbf" * 2 + data,
        lambda: data.replace(b" ", b"\xa0", rng.randrange(20)), lambda: data.replace(b"\n", b"\x0b"), data.rstrip,
        lambda: data + b"\x1a", lambda: data.lower(), lambda: data.replace(b" ", b"\t"), lambda: b"\n" * 3 + data,
    ))()


def _cut(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] if rng.random() < 0.8 else data[at:]


def _mixed(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    other, at = rng.choice(others), rng.randrange(len(data) + 1)
    start = rng.randrange(len(other) + 1)
    part = other[start : start + rng.choice((20, 200, 2000))]
    if rng.random() < 0.5:
        lines, theirs = _lines(data), _lines(part)
        at = rng.randrange(len(lines) + 1)
        return b"".join(lines[:at] + theirs + lines[at:])
    return data[:at] + part + data[at + rng.choice((0, len(part))) :]


def _flip(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16)) if changed else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _word(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    """Put an extreme number of four bytes in place of another, more often near the start, where headers are."""
    if len(data) < 8:
        return data
    reach = min(len(data) - 4, rng.choice((64, 256, 1024, len(data))))
    at = rng.randrange(0, reach + 1) & ~3
    order = rng.choice("<>")
    value = rng.choice(WORDS) if rng.random() < 0.7 else rng.randrange(-(2**31), 2**31)
    return data[:at] + struct.pack(order + "i", value) + data[at + 4 :]


def _archive(rng: Random, data: bytes) -> bytes:
    """Take an archive of arrays apart and put it together otherwise."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [(item.filename, archive.read(item)) for item in archive.infolist()]
    except Exception:  # it was damaged before
        return _flip(rng, data, [])
    if not entries:  # the last one was taken out
        return _flip(rng, data, [])
    at = rng.randrange(len(entries))
    name, array = entries[at]
    end = array.find(b"\n") + 1
    header, body = array[:end], array[end:]
    kind = rng.randrange(8)
    if kind == 0:
        del entries[at]
    elif kind == 1:
        shape = rng.choice(SHAPES)
        entries[at] = (name, re.sub(rb"\([^()]*\)", shape, header, count=1) + body)
    elif kind == 2:
        dtype = rng.choice(TYPES)
        entries[at] = (name, re.sub(rb"'descr': '[^']*'", b"'descr': " + dtype, header, count=1) + body)
    elif kind == 3:
        entries[at] = (name, _flip(rng, array, []))
    elif kind == 4:
        entries[at] = (name, array[: rng.randrange(len(array) + 1)])
    elif kind == 5:
        entries.append((rng.choice(ENTRIES), array))
    elif kind == 6:
        entries[at] = (rng.choice(entries)[0], array)
    text = rng.choice((b"inf", b"nan", b"-1", b"$\\foo$", b"\xff", b"0", b"1e999"))
    buffer = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")  # of two entries with one name
        for name, content in entries:
            if kind == 7 and name == "temperature.npy":
                content = content.replace(b"2\0\0\x009\0\0\0", text.ljust(8, b"\0"))
            archive.writestr(name, content)
    packed = buffer.getvalue()
    if rng.random() < 0.1:  # encrypted, they say
        packed = packed.replace(b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0")
    return packed


@functools.cache
def _bomb(end: str, unit: bytes) -> bytes:
    """Return what unpacks to 64 MB behind anything packed."""
    data = unit * (2**20 // len(unit))
    return (gzip.compress(data, mtime=0) if end == ".gz" else bz2.compress(data)) * 64


def _packed(rng: Random, suffix: str, data: bytes) -> tuple[str, bytes]:
    """Compress, and damage that now and then."""
    end = rng.choice((".gz", ".bz2"))
    packed = gzip.compress(data, 1, mtime=0) if end == ".gz" else bz2.compress(data)
    if rng.random() < 0.05:
        packed += _bomb(end, rng.choice((b" ", b"\0", b"\n", b"0 ", b"#")))
    packed = rng.choice((lambda: packed, lambda: packed, lambda: _cut(rng, packed, []), lambda: _flip(rng, packed, []),
                         lambda: packed + packed, lambda: data))()
    return suffix + rng.choice((end, end, end, "", ".gz", ".bz2")), packed


_BINARY = (_flip, _word, _word, _word, _cut, _mixed, _characters)
_TEXT = (_drop_lines, _repeat_lines, _swap_lines, _cut_line, _case, _field, _field, _field, _number, _number, _number,
         _characters, _characters, _encoding, _cut, _mixed, _flip)  # fmt: skip
