"""OpenDX maps, the exchange format that every viewer reads.

The written files meet the requirements of VMD (comments before ``object 1`` only, fixed order, short
lines), ChimeraX (no blank lines, diagonal deltas), PyMOL (``type double``; no exponent below -100,
which float32 cannot have), APBS (at least six decimals in the deltas) and NAMD (the type without
quotes). Values have seven digits. Origin and spacing have six to twelve decimals in the lines that
other programs read, so that the last of a thousand points is correct to 1e-9 A; the comments have
their exact values.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files import text as files
from vmdpotential.io.files.numbers import parse_real, parse_whole
from vmdpotential.io.maps.mapformat import (
    MapFormat,
    finish_map,
    header_lines,
    header_lines_of,
    map_title,
    orient_axes,
    parse_header,
    read_numbers,
    scientific_text,
)

_BLOCK = 60_000  # values formatted at once; a multiple of the three on a line
_BINARY = {"float": "f4", "double": "f8", "int": "i4", "short": "i2", "byte": "i1"}


def write_dx(path: Path, grid: Grid, binary: bool = False) -> None:
    """Write a map as OpenDX text, compressed if the suffix is ``.gz``, or with `binary` values, as VMD reads them."""
    files.write_bytes(path, _blocks(grid, binary), 1)


def _blocks(grid: Grid, binary: bool) -> Iterator[bytes]:
    lattice = grid.lattice
    counts = " ".join(map(str, lattice.shape))
    hx, hy, hz = (_length(float(h)) for h in lattice.spacing)
    lines = [
        *(f"# {line}" for line in header_lines(grid, 1000)),
        f"object 1 class gridpositions counts {counts}",
        "origin " + " ".join(_length(float(x)) for x in lattice.origin),
        f"delta {hx} 0 0",
        f"delta 0 {hy} 0",
        f"delta 0 0 {hz}",
        f"object 2 class gridconnections counts {counts}",
        f"object 3 class array type {'float' if binary else 'double'} rank 0 items {lattice.size} "
        f"{'binary ' if binary else ''}data follows",
    ]
    name = map_title(grid).encode("ascii", "replace").decode().replace('"', "'")
    tail = [
        'attribute "dep" string "positions"',
        f'object "{name}" class field',
        'component "positions" value 1',
        'component "connections" value 2',
        'component "data" value 3',
    ]
    values = grid.values.reshape(-1)
    yield "".join(f"{line}\n" for line in lines).encode("ascii")
    if binary:
        yield values.astype(np.float32).tobytes() + b"\n"
    for start in range(0, 0 if binary else len(values), _BLOCK):
        text = scientific_text(values[start : start + _BLOCK])
        text[2::3, -1] = text[-1, -1] = ord("\n")
        yield text.tobytes()
        progress.report_progress("writing the map", min(1.0, (start + _BLOCK) / len(values)))
    yield "".join(f"{line}\n" for line in tail).encode("ascii")


def _length(x: float) -> str:
    """Return a length with the decimals that it needs, six to twelve."""
    text = f"{x:.12f}"
    # below a thousandth of an angstrom, too few digits would remain
    return f"{x:.9e}" if 0 < abs(x) < 1e-3 else text[:-6] + text[-6:].rstrip("0")


def read_dx(path: Path) -> Grid:
    """Read an OpenDX map: text or binary, plain or compressed.

    Raises
    ------
    InputError
        When the file is not an OpenDX map, is truncated, or its axes are not along x, y and z.
    """
    with files.opened(path) as stream:
        return _read(path, stream)


def _read(path: Path, stream: IO[bytes]) -> Grid:
    comments: list[str] = []
    counts: list[int] = []
    origin: list[float] = []
    steps: list[list[float]] = []
    for number, line in header_lines_of(path, stream, "an OpenDX map"):
        words = line.split()
        if not words:
            continue
        try:
            if line.startswith("#"):
                comments.append(line[1:].removeprefix(" "))
            elif words[0] == "origin":
                origin = [parse_real(x) for x in words[1:4]]
            elif words[0] == "delta":
                steps.append([parse_real(x) for x in words[1:4]])
            elif words[0] == "object" and words[words.index("class") + 1] == "gridpositions":
                start = words.index("counts") + 1
                counts = [parse_whole(x) for x in words[start : start + 3]]
            elif words[0] == "object" and words[words.index("class") + 1] == "gridconnections":
                continue
            elif words[0] == "object" and words[words.index("class") + 1] == "array":
                break
            else:
                raise ValueError
        except (ValueError, IndexError):
            raise InputError(f"{path}: line {number}: '{line[:60]}' does not belong in an OpenDX grid") from None
    if len(counts) != 3 or min(counts) < 1:
        raise InputError(f"{path}: line {number}: three positive counts are missing before the data")
    if len(origin) != 3 or [len(step) for step in steps] != [3, 3, 3]:
        raise InputError(f"{path}: line {number}: an origin and three deltas are missing before the data")
    values, tail = _array(path, stream, words, counts, number)
    lattice, ordered = orient_axes(path, origin, steps, values.reshape(counts))
    return finish_map(path, lattice, ordered, parse_header([*comments, _field_name(tail)]))


def _array(
    path: Path, stream: IO[bytes], words: list[str], counts: list[int], line: int
) -> tuple[NDArray[np.float32], str]:
    where = f"{path}: line {line}"
    try:
        items = parse_whole(words[words.index("items") + 1])
        kind = words[words.index("type") + 1].strip('"')
        rank = words[words.index("rank") + 1] if "rank" in words else "0"
    except (ValueError, IndexError):
        raise InputError(f"{where}: the array states no type, rank or number of items") from None
    count = counts[0] * counts[1] * counts[2]
    if rank != "0" and ("shape" not in words or words[words.index("shape") + 1 :][:1] != ["1"]):
        raise InputError(f"{where}: contains vectors (rank {rank}); a map has one number at each point")
    if items != count:
        raise InputError(f"{where}: {items:,} items do not fill {' x '.join(map(str, counts))} = {count:,} points")
    if words[-1] != "follows":
        raise InputError(f"{where}: the data are in another file", "join them first")
    if not {"binary", "ieee"} & set(words):
        return read_numbers(path, stream, count, line + 1, (b"attribute", b"object", b"component"))
    if kind not in _BINARY:
        raise InputError(f"{where}: binary data of type '{kind}' cannot be read")
    dtype = np.dtype(_BINARY[kind]).newbyteorder(">" if "msb" in words else "<")
    data = files.take(stream, path, 5, count * dtype.itemsize)
    if len(data) < count * dtype.itemsize:
        raise InputError(f"{path}: ends after {len(data) // dtype.itemsize:,} of {count:,} values; it is truncated")
    return np.frombuffer(data, dtype).astype(np.float32), stream.read(4096).decode("latin-1")


def _field_name(tail: str) -> str:
    # some programs state the unit only in the name of the field
    return next((line.split('"')[1] for line in tail.splitlines()
                 if line.startswith("object") and "field" in line and line.count('"') > 1), "")


TEXT = MapFormat(read_dx, write_dx)
