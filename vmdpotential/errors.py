"""The errors a user can meet, and the exit code of each.

::

    VmdpotentialError            exit code
    ├── UsageError (ValueError)       2   an option or an argument is wrong
    ├── InputError (ValueError)       2   a file cannot be read, or does not fit
    │   └── ChargeError               2   atoms without a charge
    │       └── IncompleteError       2   atoms are missing, or have no template
    ├── TaskError (RuntimeError)      3   the input is valid, but the task cannot be done
    │   ├── NoRoomError               3   no allowed site is left for an ion
    │   ├── MemoryPlanError           3   not enough memory, detected before any is allocated
    │   ├── CheckError                3   a check failed; has a report
    │   │   └── StoppedError        130   interrupted; has a report of the finished part
    │   └── OutputError               3   a result cannot be written
    └── BackendError (RuntimeError)   4   a requested engine or package is missing

A message is one line: what is wrong (with the file, the atom or the parameter) and a hint how to fix it. Parameters are
placeholders in it (see :class:`VmdpotentialError`), so that a shell can write ``--spacing``, PyMOL ``spacing=`` and Tcl
``-spacing``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from keyword import iskeyword
from typing import Any

#: Function of a parameter's name and value (empty for none) that returns them in the syntax of an interface.
Spelling = Callable[[str, str], str]

#: Words that are shortened in messages (values of thousands of characters), and longest text that is not shortened.
_LONG_WORD = re.compile(r"\S{500,}")
_MOST = 3000

_PARAMETER = re.compile(r"\{([a-z_]+)(?: ([^{}]*))?\}")


def plain_spelling(name: str, value: str = "") -> str:
    """Return a parameter in Python's syntax: its bare name, or ``name=value``; ``from_`` as ``from`` is a keyword."""
    name = f"{name}_" if iskeyword(name) else name
    return f"{name}={value}" if value else name


def in_words(name: str, value: str = "") -> str:
    """Return a parameter in plain words, e.g. ``the engine cpu``, for reports, which are the same in every interface.
    """
    return f"the {name} {value}" if value else name


def spell_parameters(words: str, spell: Spelling = plain_spelling) -> str:
    """Return a text with its placeholders ``{spacing}`` and ``{boundary open}`` replaced by parameters.

    The text must not contain names of files or values from the user, in which braces would be replaced, too.
    """
    return _PARAMETER.sub(lambda match: spell(match[1], match[2] or ""), words)


class Message:
    """Log message with placeholders for parameters, ``{cutoff}``; interfaces replace them in :attr:`template`."""

    def __init__(self, template: str) -> None:
        self.template = template

    def __str__(self) -> str:
        return spell_parameters(self.template)


def one_line(text: str) -> str:
    """Return text on one line, with escapes for line ends, control characters and bytes that are not UTF-8."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _visible(letter) for letter in text)


def shorten_text(text: str, most: int, end: int = 0) -> str:
    """Return text of at most `most` characters, without its middle if it is longer.

    Parameters
    ----------
    text : str
    most : int
        Largest number of characters, at least 5.
    end : int
        Number of characters that are kept at the end; half of them if 0.
    """
    end = end or (most - 3) // 2
    return text if len(text) <= most else f"{text[: most - 3 - end]}...{text[-end:]}"


def _limited(text: str) -> str:
    """Return text in which very long words, and a very long text, are shortened."""
    return shorten_text(_LONG_WORD.sub(lambda match: shorten_text(match[0], 203, 80), text), _MOST)


def _visible(letter: str) -> str:
    if 0xDC80 <= ord(letter) <= 0xDCFF:  # a surrogate for a byte in a file name that is not UTF-8
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape", "surrogatepass").decode()


def count_of(count: int | str, noun: str) -> str:
    """Return a number with its noun, such as ``1 frame`` or ``2 frames``."""
    return f"{count} {noun}" + "s" * (str(count) != "1")


def listed_words(words: Iterable[str], most: int) -> str:
    """Return words separated by commas, in at most `most` characters, and the number of further ones."""
    taken: list[str] = []
    left = [one_line(word) for word in words]
    while left and sum(map(len, taken)) + 2 * len(taken) + len(left[0]) <= most:
        taken.append(left.pop(0))
    if left and not taken:
        taken.append(shorten_text(left.pop(0), most))
    return ", ".join(taken) + (f" and {len(left)} more" if left else "")


def similar_hint(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'map'?)`` if a word resembles another, known one, else an empty string."""
    import difflib

    others = [name for name in known if name != word]
    swapped = [name for name in others if sorted(name.lower()) == sorted(word.lower())]  # also short ones: bp, pb
    close = swapped or difflib.get_close_matches(word, others, 1, 0.65)
    return f" (did you mean '{close[0]}'?)" if close else ""


class VmdpotentialError(Exception):
    """Base of all errors that this package raises on purpose.

    Parameters
    ----------
    text : str
        What is wrong; may contain any text.
    hint : str
        How to fix it; parameters are written as ``{spacing}`` or ``{boundary open}``.
    parameter : str
        Name of the invalid parameter, if the error is about one.
    value : str
        Value of the parameter, if it should be repeated.

    Examples
    --------
    >>> try:
    ...     vp.read_structure("missing.pdb")
    ... except vp.VmdpotentialError as error:
    ...     print(type(error).__name__, error.exit_code)
    InputError 2
    """

    exit_code = 2
    #: How Python writes parameters; :mod:`vmdpotential.exported` sets it for the function that was called.
    spelling: Spelling = staticmethod(plain_spelling)

    def __init__(self, text: str, hint: str = "", *, parameter: str = "", value: str = "") -> None:
        super().__init__(text, hint)
        self.text, self.hint, self.parameter, self.value = text, hint, parameter, value

    def message(self, spell: Spelling = plain_spelling) -> str:
        """Return the line, with parameters as an interface spells them."""
        head = f"{spell(self.parameter, shorten_text(self.value, 80))}: " if self.parameter else ""
        return one_line(head + _limited(self.text) + (f"; {spell_parameters(self.hint, spell)}" if self.hint else ""))

    def __str__(self) -> str:
        return self.message(self.spelling)

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), self.__dict__)


def _again(kind: type[VmdpotentialError], state: dict[str, object]) -> VmdpotentialError:
    """Return an unpickled error; its class may have another signature than its base."""
    error = kind.__new__(kind)
    error.__dict__.update(state)
    return error


class UsageError(VmdpotentialError, ValueError):
    """A parameter is wrong: ``UsageError("tolerance", "give 1e-6 to 0.1", value="3")``.

    Parameters
    ----------
    parameter : str
        Name of the parameter.
    text : str
        What is wrong.
    hint : str
        How to fix it.
    value : str
        Value of the parameter, if it should be repeated.

    Examples
    --------
    >>> print(vp.UsageError("tolerance", "must be at least 1e-06", value="0"))
    tolerance=0: must be at least 1e-06
    """

    def __init__(self, parameter: str, text: str, hint: str = "", *, value: str = "") -> None:
        super().__init__(text, hint, parameter=parameter, value=value)


class InputError(VmdpotentialError, ValueError):
    """A file cannot be read, is inconsistent, or is unsuitable for the task."""


class ChargeError(InputError):
    """Atoms have no charge: neither a topology nor a template gives one."""


class IncompleteError(ChargeError):
    """Atoms are missing, or have no template; completing the structure may help."""


class TaskError(VmdpotentialError, RuntimeError):
    """The input is valid but the task cannot be done."""

    exit_code = 3


class NoRoomError(TaskError):
    """No site is left that keeps the required distances."""


class MemoryPlanError(TaskError):
    """The task needs more memory than is available; raised before any is allocated."""


class CheckError(TaskError):
    """A check failed.

    Parameters
    ----------
    text : str
        What failed.
    report : vmdpotential.parameters.Report
        Report of the checks; the shell prints it before the error.

    Examples
    --------
    >>> vp.CheckError("2 of 30 checks failed", report=None).exit_code
    3
    """

    def __init__(self, text: str, report: Any) -> None:
        super().__init__(text)
        self.report = report


class StoppedError(CheckError):
    """The task was interrupted; the finished part is in its report."""

    exit_code = 130


class OutputError(TaskError):
    """A result cannot be written (no permission, disk full)."""


class BackendError(VmdpotentialError, RuntimeError):
    """A requested engine or an optional package is missing."""

    exit_code = 4


def check_unmasked(array: Any, what: str) -> None:
    """Raise InputError for a masked array of numpy with masked values, which have no meaning below the mask."""
    import numpy as np

    if np.ma.is_masked(array):
        raise InputError(f"{int(np.sum(np.ma.getmaskarray(array)))} values are masked in the {what}",
                         "leave these out, or replace them by array.filled(value)")
