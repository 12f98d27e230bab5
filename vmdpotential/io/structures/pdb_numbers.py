"""Residue numbers of PDB files in all notations in use: decimal, hybrid-36, VMD's hexadecimal, asterisks."""

from __future__ import annotations

import re

import numpy as np

from vmdpotential.io.files import columns
from vmdpotential.molecule.structure import Integers, Names

_WITH_LETTER = re.compile(r"([-+]?[0-9]+)([A-Za-z])$")
#: Value of each character as a digit, -1 if it is none.
_VALUES = np.full(256, -1, np.int64)
_VALUES[48:58] = np.arange(10)
_VALUES[65:91] = _VALUES[97:123] = np.arange(10, 36)


def numbers(fields: columns.Bytes) -> tuple[Integers, Names]:
    """Return residue numbers, (R,) int64, and insertion codes, (R,) str, from columns 23-27 of a PDB file.

    Accepted are decimal numbers (wrapped numbers are not changed; column 27 may be a fifth digit),
    hybrid-36, VMD's hexadecimal numbers after 9999, and ``****``, which means the next number.

    Parameters
    ----------
    fields : (R, 5) uint8
        Columns 23-27, one row for each residue.

    Raises
    ------
    ValueError
        For anything else; the exception's argument is the index of the first such residue.
    """
    four, codes = fields[:, :4], columns.words(fields[:, 4:])
    result = _in_base(four, 10)
    result[(four == 45).any(1)] *= -1
    fifth = ((fields >= 48) & (fields <= 57)).all(1)
    result[fifth] = _in_base(fields[fifth], 10)
    codes[fifth] = ""
    odd = np.flatnonzero(~columns.plain_numbers(four) | (four == 46).any(1))
    if _is_hexadecimal(four, odd):
        _read_hexadecimal(four, odd, result)
        return result, codes
    large = four[odd]
    lower = (large >= 97).any(1)
    hybrid = (large[:, 0] >= 65) & (_VALUES[large] >= 0).all(1) & ~(lower & ((large >= 65) & (large <= 90)).any(1))
    result[odd] = _in_base(large, 36) - 10 * 36**3 + 10**4 + lower * 26 * 36**3
    for i in odd[~hybrid]:
        word = four[i].tobytes().decode("latin-1").strip()
        with_letter = _WITH_LETTER.match(word)
        if with_letter:  # an insertion code in the wrong column
            result[i], codes[i] = int(with_letter[1]), with_letter[2]
        elif word.strip("*"):
            raise ValueError(int(i))
        else:
            result[i] = result[i - 1] + 1 if i else 0
    return result, codes


def _in_base(characters: columns.Bytes, base: int) -> Integers:
    """Return rows of digits and letters as numbers in a base; other characters are skipped."""
    result = np.zeros(len(characters), np.int64)
    for column in characters.T:
        value = _VALUES[column]
        result = np.where(value >= 0, result * base + value, result)
    return result


def _is_hexadecimal(four: columns.Bytes, odd: Integers) -> bool:
    """Return whether numbers are VMD's (9999, 2710, 2711 ... 271a), not hybrid-36 (9999, A000) or insertion codes."""
    letters = four[odd]
    letters = letters[(letters != 42).all(1)]
    values = _VALUES[letters]
    if not len(letters) or not ((values >= 0) & (values < 16)).all() or (_in_base(letters, 16) < 10000).any():
        return False
    begun = bool((values[:, 0] < 10).any())  # 271a comes long before a000
    return begun or not bool(((letters >= 65) & (letters <= 90)).any())


def _read_hexadecimal(four: columns.Bytes, odd: Integers, result: Integers) -> None:
    value = _in_base(four, 16)
    letters = np.zeros(len(four), bool)
    letters[odd] = True
    # 2710 after 9999 is hexadecimal for 10000; elsewhere it is decimal
    candidates = ((four >= 48) & (four <= 57)).all(1) & (value >= 10000)
    for i in np.flatnonzero(letters | candidates):
        before = int(result[i - 1]) if i else 0
        if letters[i]:
            result[i] = before + 1 if 42 in four[i] else value[i]
        elif before >= 9999 and 0 <= value[i] - before <= 1000:
            result[i] = value[i]
