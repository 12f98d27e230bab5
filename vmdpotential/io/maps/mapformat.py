"""Shared parts of the map formats: provenance as text, exact lattices, order of axes, columns of numbers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import memory, progress
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.stored import StoredGrid
from vmdpotential.io.files import numbers
from vmdpotential.io.files.numbers import parse_real
from vmdpotential.io.files.text import BYTE_ORDER_MARK as BYTE_ORDER_MARK
from vmdpotential.kernels.launch import KernelFile, launch_kernel

#: First words of the text that this package writes into map files, by which the reader recognises that text.
FORMAT_MARK = "vmdpotential map"

# printable ASCII but '%', the escape itself, and ';', which separates entries on one line
_PLAIN = "".join(chr(n) for n in range(32, 127) if chr(n) not in "%;")


#: Kernels of numbers in text; bytes of text that are read at once, and by a thread at a time.
KERNELS = KernelFile(Path(numbers.__file__).with_suffix(".cu"))
_BLOCK, _PART = 1 << 23, 1 << 17
_FORTRAN = str.maketrans("Dd", "ee")  # 1.0D+00
#: Most bytes of memory that a value takes while a map is read.
_VALUE = 16
#: Limits on the header of a text map: bytes of a line, bytes in all, lines.
_LINE, _HEADER, _LINES = 1 << 16, 1 << 24, 200_000
#: Numbers in the header that must be positive, and those that must not be negative.
_POSITIVE = ("temperature", "dielectric", "cutoff")
_NOT_NEGATIVE = ("tolerance", "error", "error_away", "error_field", "error_field_away")

#: Powers of ten that scale float32 numbers to seven digits; those with negative exponents are at the end, for
#: negative indices.
_POWERS = np.array([10.0**n for n in (*range(55), *range(-45, 0))])

def map_title(grid: Grid) -> str:
    """Return quantity, unit and medium on one line: ``electrostatic potential, kT/e at 298.15 K, vacuum ...``."""
    text = grid.provenance.quantity or "map"
    if grid.unit:
        text += f", {grid.unit}"
        if grid.temperature is not None and grid.unit.startswith("kT"):
            text += f" at {grid.temperature:g} K"
    return f"{text}, {grid.provenance.medium}" if grid.provenance.medium else text


def provenance_entries(grid: Grid) -> dict[str, str]:
    """Return the provenance of a map and its exact lattice as ``{name: text}``, in printable ASCII."""
    items = grid.header()
    items["origin"] = " ".join(repr(float(x)) for x in grid.lattice.origin)
    items["spacing"] = " ".join(repr(float(x)) for x in grid.lattice.spacing)
    return {name: _escape(text) for name, text in items.items()}


def header_lines(grid: Grid, width: int) -> list[str]:
    """Return ``name: text`` lines of at most `width` characters; a continuation starts with a blank."""
    lines = [f"{FORMAT_MARK}: {_escape(map_title(grid))}"[:width]]
    for name, text in provenance_entries(grid).items():
        line = f"{name}: {text}"
        while len(line) > width:
            lines.append(line[:width])
            line = " " + line[width:]
        lines.append(line)
    return lines


def parse_header(lines: Iterable[str]) -> dict[str, str]:
    """Return the entries that :func:`header_lines` wrote; from other programs' text, the unit and the temperature."""
    joined: list[str] = []
    for line in lines:
        if line.startswith(" ") and joined:
            joined[-1] += line[1:]
        else:
            joined.append(line)
    if any(line.startswith(FORMAT_MARK) for line in joined):
        pairs = (line.partition(": ") for line in joined if not line.startswith(FORMAT_MARK))
        return {name.strip(): unquote(text, errors="surrogateescape") for name, colon, text in pairs if colon}
    return _foreign(" ".join(joined))


def _escape(text: str) -> str:
    text = quote(text, safe=_PLAIN, errors="surrogateescape")  # names of files may contain any bytes
    if text.endswith(" "):  # programs drop blanks at the end of a line
        text = text[:-1] + "%20"
    return "%20" + text[1:] if text.startswith(" ") else text


def _foreign(text: str) -> dict[str, str]:
    # APBS: "POTENTIAL (kT/e)"; pmepot: "PME potential (kT/e, T=300K)"
    result: dict[str, str] = {}
    unit = re.search(r"\b(kT/e|kcal/mol/e)\b", text)
    temperature = re.search(r"\bT ?= ?(\d+(?:\.\d+)?) ?K\b", text)
    if unit:
        result["unit"] = unit.group(1)
    if temperature:
        result["temperature"] = temperature.group(1)
    return result


def exact_lattice(lattice: Lattice, header: Mapping[str, str]) -> Lattice:
    """Return the exact lattice of the header if the format's rounded numbers agree with it, else that of the format."""
    try:
        origin = np.array([parse_real(x) for x in header["origin"].split()])
        spacing = np.array([parse_real(x) for x in header["spacing"].split()])
    except (KeyError, ValueError):
        return lattice
    if origin.shape != (3,) or spacing.shape != (3,):
        return lattice
    # formats round to six decimals or seven digits
    same = np.allclose(origin, lattice.origin, rtol=2e-7, atol=2e-6)
    if same and np.allclose(spacing, lattice.spacing, rtol=1e-3, atol=2e-6):
        return Lattice(origin, spacing, lattice.shape)
    return lattice


def orient_axes(
    path: Path, origin: ArrayLike, steps: ArrayLike, values: NDArray[Any]
) -> tuple[Lattice, NDArray[np.float32]]:
    """Return lattice and values with axes along +x, +y, +z.

    Parameters
    ----------
    path : Path
        The file, for messages.
    origin : (3,) A
        Position of the first node.
    steps : (3, 3) A
        Row d is the step from node to node along axis d of `values`.
    values : (n0, n1, n2)
        Values in the file's order of axes.

    Raises
    ------
    InputError
        When a step is not along one of x, y and z.
    """
    origin, steps = np.array(origin, np.float64), np.array(steps, np.float64)
    if not (np.isfinite(steps).all() and np.isfinite(origin).all()):
        raise InputError(f"{path}: its origin or spacing is not a number")
    largest = np.abs(steps).argmax(1)
    along = np.abs(steps[range(3), largest])
    others = np.abs(steps).sum(1) - along
    if sorted(largest) != [0, 1, 2] or not (along > 0).all() or (others > 1e-5 * along).any():
        text = "; ".join(" ".join(f"{x:g}" for x in row) for row in steps)
        raise InputError(
            f"{path}: its axes ({text}) do not lie along x, y and z", "resample the map on an orthogonal lattice"
        )
    for axis in range(3):
        step = steps[axis, largest[axis]]
        if step < 0:
            values = np.flip(values, axis)
            origin[largest[axis]] += step * (values.shape[axis] - 1)
    order = np.argsort(largest)
    values = np.ascontiguousarray(values.transpose(order), dtype=np.float32)
    nx, ny, nz = values.shape
    return Lattice(origin, along[order], (nx, ny, nz)), values


def finish_map(path: Path, lattice: Lattice, values: NDArray[Any], header: Mapping[str, str]) -> Grid:
    """Return the map of checked values and header.

    Raises
    ------
    InputError
        When a value is NaN or infinite (the message gives its position), or the header contains an impossible number.
    """
    values = np.ascontiguousarray(values, np.float32)
    check_finite(path, lattice, values)
    check_header(path, header)
    if not header.get("quantity") and not header.get("unit"):
        header = {**header, "quantity": ""}  # unknown
    return Grid.from_header(exact_lattice(lattice, header), values, header)


def check_header(path: Path, header: Mapping[str, str]) -> None:
    """Raise InputError when a header contains an impossible number, such as a temperature of inf K."""
    for names, least in ((_POSITIVE, np.nextafter(0, 1)), (_NOT_NEGATIVE, 0.0)):
        for name in names:
            if name not in header:
                continue
            try:
                good = least <= parse_real(header[name]) < np.inf
            except ValueError:
                good = False
            if not good:
                raise InputError(f"{path}: its header states {name}: {header[name][:40]}", "correct the header")


def header_lines_of(path: Path, stream: IO[bytes], what: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line at the start of a text map.

    Raises
    ------
    InputError
        When the file ends, or a line is not text or too long; the message says that the file is not `what`.
    """
    number = size = 0
    while True:
        text = stream.readline(_LINE)
        number += 1
        if number == 1:
            text = text.removeprefix(BYTE_ORDER_MARK)
        size += len(text)
        if not text:
            problem = "is empty" if number == 1 else f"line {number}: ends within its header"
            raise InputError(f"{path}: {problem}, so it is not {what}")
        line = text.rstrip(b"\r\n")
        if len(text) == _LINE or size > _HEADER or number > _LINES or b"\0" in line:
            raise InputError(f"{path}: line {number}: its header is not text, or too long, so it is not {what}")
        if b"\r" in line:
            raise InputError(f"{path}: line {number} ends in a carriage return alone",
                             "convert line ends, such as with mac2unix")
        yield number, line.decode("latin-1")


def check_finite(path: Path, lattice: Lattice, values: NDArray[np.float32]) -> None:
    """Raise InputError, with the position of the first such value, if a value is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass and no temporary array
            return
    bad = np.unravel_index(int(np.argmin(np.isfinite(values))), values.shape)
    position = " ".join(f"{x:g}" for x in lattice.points(np.array(bad)))
    raise InputError(
        f"{path}: the value at {position} A (node {' '.join(map(str, bad))}) is {values[bad]}; "
        "a map needs finite numbers"
    )


class Writer(Protocol):
    """A writer of one map in slabs along z."""

    def begin(self, lattice: Lattice) -> None:
        """Create the file for a map on a lattice."""

    def put(self, start: int, values: NDArray[np.float32]) -> None:
        """Write the planes (nx, ny, n) from `start` on along z."""

    def finish(self, grid: Grid) -> None:
        """Write unit and provenance, after all values."""


class MapFormat(NamedTuple):
    """Functions for a map format, which are registered as kind ``map_format`` by its suffixes.

    Parameters
    ----------
    read : callable
        Reads the map of a path.
    write : callable
        Writes a map to a path.
    check : callable
        Raises the errors that writing maps on a lattice to a path would raise, before any work is done; without a
        lattice those that do not depend on it.
    open : callable or None
        Returns a map whose values are read in parts.
    slabs : callable or None
        Returns a writer of a path.
    """

    read: Callable[[Path], Grid]
    write: Callable[..., None]
    check: Callable[[Path, Lattice | None], None] = lambda path, lattice: None
    open: Callable[[Path], StoredGrid] | None = None
    slabs: Callable[[Path], Writer] | None = None


def read_whole(path: Path, grid: StoredGrid) -> Grid:
    """Return a map with all its values in memory; raises InputError when a value is not finite."""
    values = grid.values
    check_finite(path, grid.lattice, values)
    return grid.with_values(values)


def write_layers(writer: Writer, grid: Grid, step: int) -> None:
    """Write a map from memory, `step` planes at a time."""
    writer.begin(grid.lattice)
    nz = grid.lattice.shape[2]
    for start in range(0, nz, step):
        writer.put(start, grid.values[:, :, start : start + step])
        progress.report_progress("writing the map", min(1.0, (start + step) / nz))
    writer.finish(grid)


def read_numbers(
    path: Path, stream: IO[bytes], count: int, line: int, ends: Sequence[bytes] = ()
) -> tuple[NDArray[np.float32], str]:
    """Read `count` numbers, separated by blanks and line ends, from a text file.

    Parameters
    ----------
    path : Path
        The file, for messages.
    stream : binary file
        The open file, at the first number.
    count : int
        Number of values that the header states.
    line : int
        Number of the next line, for messages.
    ends : sequence of bytes
        Words before which the numbers end.

    Returns
    -------
    numbers : (count,) float32
        The values.
    rest : str
        The beginning of the text after the numbers.

    Raises
    ------
    InputError
        When there are fewer or more numbers, or other text among them; the message gives the line.
    """
    parts: list[NDArray[np.float32]] = []
    have = 0
    finished, rest, cut_word = False, "", b""
    while not finished:
        block = stream.read(_BLOCK)
        finished = not block
        block = cut_word + block
        # the last word of a block may continue in the next
        cut = len(block) if finished else 1 + max(block.rfind(blank) for blank in (b"\n", b" ", b"\t", b"\r"))
        block, cut_word = block[:cut], block[cut:]
        if len(cut_word) > _LINE:
            raise InputError(f"{path}: line {line}: contains a word of more than {_LINE} characters")
        stops = [at for at in (block.find(word) for word in ends) if at >= 0]
        if stops:
            finished, rest = True, (block[min(stops) :] + cut_word + stream.read(4096))[:4096].decode("latin-1")
            block = block[: min(stops)]
        if block.strip():
            parts.append(_numbers(path, block, line))
            have += len(parts[-1])
        line += block.count(b"\n")
        memory.require(_VALUE * have, f"{path}: a map of {have:,} or more values", "read a smaller map")
        if have > count:
            raise InputError(f"{path}: line {line}: has more than the {count:,} values that its header announces")
        progress.report_progress("reading the map", have / count)
    if have < count:
        raise InputError(
            f"{path}: line {line}: ends after {have:,} of {count:,} values; the file is truncated", "write it again"
        )
    return np.concatenate(parts), rest


def _numbers(path: Path, block: bytes, line: int) -> NDArray[np.float32]:
    """Return the numbers of a block; a number that the kernel leaves, or anything else, is read by Python."""
    text = np.frombuffer(block if block[-1:].isspace() else block + b"\n", np.uint8)
    parts = -(-len(text) // _PART)
    counts, before = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    values = np.empty(0, np.float32)

    def run(kernel: str) -> None:
        launch_kernel(KERNELS[kernel], parts, "reading the map", 1, text=text, before=before, count=counts,
                      values=values, length=len(text), part=_PART)

    run("count_words")
    before[1:] = np.cumsum(counts)[:-1]
    values = np.empty(int(counts.sum()), np.float32)
    run("read_words")
    left = np.flatnonzero(np.isnan(values)).tolist()
    if not left:
        return values
    words = block.split()
    for at in left:
        word = words[at].decode("latin-1")
        try:
            with np.errstate(over="ignore"):
                values[at] = np.float32(parse_real(word.translate(_FORTRAN)))
        except ValueError:
            pass
        if not np.isfinite(values[at]):
            rows = itertools.accumulate(len(row.split()) for row in block.split(b"\n"))
            line += next(number for number, through in enumerate(rows) if through > at)
            raise InputError(f"{path}: line {line}: '{word[:40]}' is not a finite number")
    return values


def scientific_text(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return numbers as text, (N, 14) of ASCII: sign or blank, seven digits, exponent, a blank (``-1.234567e+02``).

    This is four times as fast as formatting with ``%``.
    """
    size = np.abs(values.astype(np.float64))
    with np.errstate(divide="ignore"):
        exponent = np.where(size > 0, np.floor(np.log10(size)), 0.0).astype(np.int32)
    digits = np.rint(size * _POWERS[6 - exponent]).astype(np.int32)
    above = digits >= 10_000_000  # rounded up to the next power of ten
    exponent += above
    digits[above] = 1_000_000
    text = np.empty((len(values), 14), np.uint8)
    text[:, 0] = np.where(np.signbit(values), ord("-"), ord(" "))
    text[:, 2], text[:, 9], text[:, 13] = ord("."), ord("e"), ord(" ")
    for column in (8, 7, 6, 5, 4, 3, 1):
        rest = digits // 10
        text[:, column] = digits - 10 * rest + ord("0")
        digits = rest
    text[:, 10] = np.where(exponent < 0, ord("-"), ord("+"))
    tens = np.abs(exponent) // 10
    text[:, 11], text[:, 12] = tens + ord("0"), np.abs(exponent) - 10 * tens + ord("0")
    return text
