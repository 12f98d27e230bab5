"""Points that a user gives: lines of three coordinates and, where they have one, a name."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.errors import InputError, UsageError, one_line
from vmdpotential.io.files.text import held, read_text, reading


def read_points(path: Path | str) -> tuple[NDArray[np.float64], list[str]]:
    """Return points (M, 3), A, and their names, which are their numbers from 1 on where the file has none.

    Fields are between commas or blanks; a first line without numbers and lines that begin with # are passed over.

    Raises
    ------
    InputError
        When the file cannot be read, or a line has no three numbers; the message names it.
    """
    path = held(path)
    with reading(path):
        lines = read_text(path, 20, 200).decode("utf-8", "replace").split("\n")
    points: list[list[float]] = []
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        words = line.replace(",", " ").split()
        if not words or words[0].startswith("#"):
            continue
        try:
            place = [float(word) for word in words[:3]]
        except ValueError:
            place = []
        if len(place) != 3 or not all(map(math.isfinite, place)):
            if not points and number == 1:
                continue  # names of columns
            raise InputError(f"{path}: line {number}: three numbers x,y,z are needed", "correct it")
        points.append(place)
        names.append(one_line(" ".join(words[3:])) or str(len(points)))
    if not points:
        raise InputError(f"{path}: holds no points", "write a line x,y,z for each")
    return np.array(points), names


def numbered_points(points: ArrayLike) -> tuple[NDArray[np.float64], list[str]]:
    """Return points (M, 3), A, of an array, and their numbers from 1 on as names.

    Raises
    ------
    UsageError
        For an array of another shape, or without points.
    """
    result = np.asarray(points, np.float64)
    if result.ndim != 2 or result.shape[1] != 3 or not result.size or not np.isfinite(result).all():
        raise UsageError("points", f"an array (M, 3) of finite numbers is needed, not {result.shape}")
    return result, [str(number) for number in range(1, len(result) + 1)]
