"""Points given by the user: lines of three coordinates and, optionally, a name."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.errors import InputError, UsageError, check_unmasked, one_line
from vmdpotential.io.files.text import buffered_stream, read_text, reading_file


def read_points(path: Path | str) -> tuple[NDArray[np.float64], list[str]]:
    """Return points (M, 3), A, and their names; a point without a name is named by its number, from 1.

    Commas or blanks separate the fields. A first line without numbers and lines that begin with # are skipped.

    Raises
    ------
    InputError
        When the file cannot be read, or a line does not begin with three numbers; the message gives its number.
    """
    path = buffered_stream(path)
    with reading_file(path):
        lines = read_text(path, 20, 200).decode("utf-8", "replace").split("\n")
    points: list[list[float]] = []
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        words = line.replace(",", " ").split()
        if not words or words[0].startswith("#"):
            continue
        try:
            point = [float(word) for word in words[:3]]
        except ValueError:
            point = []
        if len(point) != 3 or not all(map(math.isfinite, point)):
            if not points and number == 1:
                continue  # names of columns
            raise InputError(f"{path}: line {number}: three numbers x,y,z are needed", "correct it")
        points.append(point)
        names.append(one_line(" ".join(words[3:])) or str(len(points)))
    if not points:
        raise InputError(f"{path}: contains no points", "write a line x,y,z for each")
    return np.array(points), names


def as_points(points: ArrayLike) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """Return points as an array (P, 3), and the shape of values at them: (P,), or () for one point (3,).

    Raises
    ------
    UsageError
        For other arrays, and numbers that are not finite.
    """
    check_unmasked(points, "points")
    try:
        places = np.asarray(points, np.float64)
    except (TypeError, ValueError):
        raise UsageError("points", "an array of numbers (P, 3) is needed") from None
    if places.ndim not in (1, 2) or places.shape[-1] != 3:
        raise UsageError("points", f"an array of numbers (P, 3) is needed, not {places.shape}")
    if not np.isfinite(places).all():
        raise UsageError("points", "finite numbers are needed")
    return places.reshape(-1, 3), places.shape[:-1]


def numbered_points(points: ArrayLike) -> tuple[NDArray[np.float64], list[str]]:
    """Return an array as points (M, 3), A, and their numbers, from 1, as names.

    Raises
    ------
    UsageError
        For an array of another shape, or without points.
    """
    result, _ = as_points(points)
    if not len(result):
        raise UsageError("points", "at least one point is needed")
    return result, [str(number) for number in range(1, len(result) + 1)]
