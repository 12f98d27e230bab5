"""Words of Tcl, in which VMD's plugin reads the program's answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: Letters that braces do not keep from Tcl, and words that need no braces.
_SPECIAL, _PLAIN = re.compile(r"[^ -~]|[{}\\]"), re.compile(r"[\w.:/+=,-]+")


class TclWord(str):
    """A word of Tcl, which is not converted again; long lists of numbers are faster to write in this way."""

    __slots__ = ()

    @classmethod
    def of_numbers(cls, numbers: Sequence[float], row: str = "%d") -> TclWord:
        """Return a list of numbers, or of their rows, by the format of a row."""
        return cls("{" + " ".join([row] * (len(numbers) // row.count("%"))) % tuple(numbers) + "}")


def tcl_word(value: Any) -> str:
    """Return a value as one ASCII word of Tcl, without substitutions: text, a number, or a list or dictionary of them.

    None becomes an empty word, true and false 1 and 0.
    """
    if isinstance(value, TclWord):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value)
    if value is None or isinstance(value, bool):
        return {None: "{}", True: "1", False: "0"}[value]
    if not isinstance(value, str) and isinstance(value, (Mapping, list, tuple)):
        return "{" + tcl_list(value) + "}"
    text = str(value)
    if _SPECIAL.search(text):
        return re.sub(r"""[^!-~]|[{}\[\]"$;#\\]""", _escape, text)
    return text if _PLAIN.fullmatch(text) else "{" + text + "}"


def tcl_list(values: Mapping[str, Any] | list[Any] | tuple[Any, ...]) -> str:
    """Return the words of a Tcl list, or the names and values of a dictionary, separated by blanks."""
    words = [word for item in values.items() for word in item] if isinstance(values, Mapping) else values
    return " ".join(map(tcl_word, words))


def _escape(match: re.Match[str]) -> str:
    letter = match[0]
    if " " <= letter <= "~":
        return "\\" + letter
    units = letter.encode("utf-16-be", "surrogatepass")  # Tcl 8 has characters of 16 bits
    return "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2))
