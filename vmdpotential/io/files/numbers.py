"""Numbers in files. Python would also accept ``1_0`` and the digits of other scripts, which in a file are damage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from vmdpotential.molecule.structure import Floats

#: Most characters of a number: every float64 can be written in fewer, and parsing very long texts is slow.
LONGEST = 1000

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)


def parse_whole(text: str) -> int:
    """Return a whole number of at most 18 digits; raises ValueError for anything else."""
    if len(text) > LONGEST or not _WHOLE.fullmatch(text):
        raise ValueError(f"'{text[:80]}' is not a whole number")
    return int(text)


def residue_number(text: str) -> int:
    """Return a whole number of 32 bits, which other programs can store too; raises ValueError for anything else."""
    number = parse_whole(text)
    if abs(number) >= 2**31:
        raise ValueError(f"'{text}' is not a residue number")
    return number


def parse_real(text: str) -> float:
    """Return a number, which may be nan or inf (callers check for these); raises ValueError for anything else."""
    if "_" in text or len(text) > LONGEST or not text.isascii():
        raise ValueError(f"'{text[:80]}' is not a number")
    return float(text)


def first_wrong(texts: Iterable[str]) -> int:
    """Return the index of the first text for which :func:`parse_real` raises ValueError."""
    for index, text in enumerate(texts):
        try:
            parse_real(text)
        except ValueError:
            return index
    raise AssertionError("each text alone is a number")


def parse_reals(texts: Sequence[str]) -> Floats:
    """Return numbers, (N,); raises ValueError when :func:`parse_real` would for one of them."""
    together = "".join(texts)
    if "_" in together or not together.isascii() or max(map(len, texts), default=0) > LONGEST:
        raise ValueError("not all are numbers")
    return np.array(list(map(float, texts)), np.float64)
