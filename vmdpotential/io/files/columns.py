"""Conversion between fixed-column text, as numpy bytes, and columns of names and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.molecule.structure import Floats, Integers, Names

Bytes = NDArray[np.uint8]


#: Lines formatted at once, so that little memory is needed.
_BLOCK = 100_000


class Lines:
    """Lines of a file, copied only into the tables that :meth:`table` returns.

    Parameters
    ----------
    raw : bytes
        Content of the file; lines end with a line feed.
    """

    def __init__(self, raw: bytes) -> None:
        if not raw.endswith(b"\n"):
            raw += b"\n"
        self._size = len(raw)
        # the windows of `table` may reach beyond the last line
        self._buffer = np.frombuffer(raw + b" " * 256, np.uint8)
        ends = np.flatnonzero(self._buffer[: self._size] == 10)
        self._controls = np.count_nonzero(self._buffer < 32) > len(ends)
        self.starts = np.concatenate([[0], ends[:-1] + 1])
        self.lengths = ends - self.starts

    def __len__(self) -> int:
        return len(self.starts)

    def table(self, rows: Integers | slice, width: int) -> Bytes:
        """Return the first `width` (at most 256) characters of some lines, (n, width), padded with blanks."""
        starts, lengths = self.starts[rows], self.lengths[rows]
        table = np.lib.stride_tricks.sliding_window_view(self._buffer, width)[starts]
        short = np.flatnonzero(lengths < width)
        if len(short):
            part = table[short]
            part[np.arange(width) >= lengths[short][:, None]] = 32
            table[short] = part
        if self._controls:
            table[table < 32] = 32
        result: Bytes = table
        return result

    def text(self, row: int) -> str:
        """Return one line without its end."""
        start = self.starts[row]
        return self._buffer[start : start + self.lengths[row]].tobytes().decode("latin-1").rstrip()


def pack(columns: Bytes) -> NDArray[np.uint64]:
    """Return one number for each row of at most 8 bytes, the same for equal rows."""
    packed = np.zeros((len(columns), 8), np.uint8)
    packed[:, : columns.shape[1]] = columns
    return packed.view(np.uint64).ravel()


def words(columns: Bytes) -> Names:
    """Return the text of each row of at most 8 bytes, stripped.

    Equal names often follow each other and recur later, so each distinct name is decoded once.
    """
    if not len(columns):
        return np.zeros(0, "<U1")
    width = columns.shape[1]
    codes = pack(columns)
    first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    values, inverse = np.unique(codes[first], return_inverse=True)
    text = [value.tobytes()[:width].decode("latin-1").strip() for value in values]
    return np.repeat(np.array(text, dtype=np.str_)[inverse], np.diff(np.append(first, len(codes))))


def plain_numbers(columns: Bytes) -> NDArray[np.bool_]:
    """Return a mask of the rows that hold exactly one number, of digits with at most one sign and one point."""
    good = np.ones(len(columns), bool)
    begun, ended, digits, points = (np.zeros(len(columns), bool) for _ in range(4))
    for column in np.ascontiguousarray(columns.T):
        digit, point, blank = (column >= 48) & (column <= 57), column == 46, column == 32
        sign = (column == 45) | (column == 43)
        good &= digit | point | sign | blank
        good &= ~(ended & ~blank) & ~(begun & sign) & ~(points & point)
        ended |= begun & blank
        begun |= ~blank
        digits |= digit
        points |= point
    return good & digits


def numbers(table: Bytes, width: int) -> Floats:
    """Return the numbers in fields of some width, (N, fields); raises ValueError if a field is not a number."""
    table = np.ascontiguousarray(table)
    if (table == 95).any():  # numpy takes 1_0 for 10
        raise ValueError
    return table.view(f"S{width}").astype(np.float64)


def fixed(values: Floats, width: int, decimals: int) -> Bytes:
    """Return numbers as text like ``%{width}.{decimals}f``, (N, width).

    Raises
    ------
    OverflowError
        When a number does not fit; the exception's argument is the index of the first such number.
    """
    scaled = np.rint(np.asarray(values, np.float64) * 10.0**decimals)
    negative = scaled < 0
    room = width - bool(decimals)
    wide = np.flatnonzero(~((scaled < 10.0**room) & (scaled > -(10.0 ** (room - 1)))))
    if len(wide):
        raise OverflowError(int(wide[0]))
    rest = np.abs(scaled)
    rest = rest.astype(np.uint32 if rest.max(initial=0) < 2**32 else np.uint64)
    table = np.full((len(rest), width), 32, np.uint8)
    signed = negative.copy()
    column = width - 1
    for place in range(width):
        if decimals and place == decimals:
            table[:, column] = 46
            column -= 1
        if column < 0:
            break
        if place > decimals and not rest.any() and not signed.any():
            break
        tenth = rest // 10  # numpy has vector code for this, but not for divmod
        digit = (rest - 10 * tenth).astype(np.uint8) + np.uint8(48)
        if place <= decimals:
            table[:, column] = digit
        else:
            written = rest > 0
            table[:, column] = np.where(written, digit, np.where(signed, np.uint8(45), np.uint8(32)))
            signed &= written
        rest = tenth
        column -= 1
    return table


def integers(values: Integers, width: int) -> Bytes:
    """Return whole numbers as right-aligned text, (N, width); raises OverflowError like :func:`fixed`."""
    return fixed(np.asarray(values, np.float64), width, 0)


def wrapped(values: Integers, width: int) -> Integers:
    """Return numbers wrapped to `width` columns: in four columns, 0 follows 9999 and -999, as most programs write."""
    values = np.asarray(values, np.int64)
    most = 10 ** (width - 1)
    result: Integers = np.where(values < 0, -(-values % most), values % (10 * most))
    return result


def text(names: Names, width: int) -> Bytes:
    """Return names as left-aligned bytes, (N, width), cut to the width; characters beyond ASCII become ``?``."""
    letters = np.ascontiguousarray(names).view(np.uint32).reshape(len(names), -1) if len(names) else None
    table = np.full((len(names), width), 32, np.uint8)
    if letters is not None:
        count = min(width, letters.shape[1])
        part: NDArray[Any] = letters[:, :count]
        table[:, :count] = np.where(part == 0, 32, np.where(part < 127, part, 63))
    return table


def longest(names: Names) -> int:
    """Return the length of the longest name."""
    if not len(names):
        return 0
    letters = np.ascontiguousarray(names).view(np.uint32).reshape(len(names), -1)
    used = np.flatnonzero((letters != 0).any(0))
    return int(used[-1]) + 1 if len(used) else 0


def decimals_needed(values: Floats, low: int, high: int) -> int:
    """Return the number of decimals, `low` to `high`, that gives all values to 1e-9 (`high` if none does)."""
    for decimals in range(low, high):
        scaled = values * 10.0**decimals
        if (np.abs(scaled - np.rint(scaled)) < 1e-9 * 10.0**decimals + 1e-15 * np.abs(scaled)).all():
            return decimals
    return high


def table_lines(parts: Sequence[Names | Integers | str | tuple[Any, ...]], count: int) -> Iterator[bytes]:
    """Yield the lines of a table in which every column is text of fixed width, followed by a blank.

    Parameters
    ----------
    parts : sequence
        Columns: names or whole numbers (N,); reals (N,), their decimals and perhaps the least width; or one text for
        all lines.
    count : int
        Number of lines.
    """
    for start in range(0, count, _BLOCK):
        cells = [_cells(part, slice(start, min(start + _BLOCK, count))) for part in parts]
        cells[-1][:, -1] = 10
        yield np.concatenate(cells, axis=1).tobytes()


def _cells(part: Any, rows: slice) -> Bytes:
    if isinstance(part, str):
        body = np.tile(np.frombuffer(part.encode(), np.uint8), (rows.stop - rows.start, 1))
    elif isinstance(part, tuple):
        values, decimals, *least = part
        widest = -float(np.abs(values).max(initial=1.0))
        body = fixed(values[rows], max([len(f"{widest:.{decimals}f}"), *least]), decimals)
    elif part.dtype.kind == "U":
        body = text(part[rows], longest(part) or 1)
    else:
        body = integers(part[rows], len(f"{-int(np.abs(part).max(initial=1))}"))
    return np.concatenate([body, np.full((len(body), 1), 32, np.uint8)], axis=1)


def lines(letters: Bytes, per_line: int) -> bytes:
    """Return fields (N, width) as lines of `per_line` fields each; without fields, one empty line."""
    in_full_lines = len(letters) // per_line * per_line
    full = letters[:in_full_lines].reshape(-1, per_line * letters.shape[1])
    text = np.concatenate([full, np.full((len(full), 1), 10, np.uint8)], axis=1).tobytes()
    has_last_line = in_full_lines < len(letters) or not len(letters)
    return text + (letters[in_full_lines:].tobytes() + b"\n" if has_last_line else b"")
