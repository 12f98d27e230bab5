"""The errors a user can meet, and the exit code of each.

::

    VmdpotentialError            exit code
    ├── UsageError (ValueError)       2   an option or an argument is wrong
    ├── InputError (ValueError)       2   a file cannot be read, or does not fit
    │   └── ChargeError               2   atoms without a charge
    │       └── IncompleteError       2   atoms are missing, or have no template
    ├── TaskError (RuntimeError)      3   the input is good, the task cannot be done
    │   ├── NoRoomError               3   no water left where an ion may go
    │   ├── MemoryPlanError           3   more memory than there is, refused before it is taken
    │   ├── CheckError                3   something is not right here; a report says what
    │   │   └── StoppedError        130   interrupted; a report says what was done
    │   └── OutputError               3   a result cannot be written
    └── BackendError (RuntimeError)   4   an engine or package asked for by name is missing

A message is one line: what is wrong (with the file, the atom or the parameter) and the cure. Parameters are in
it as :class:`VmdpotentialError` says, so that a shell can write ``--spacing``, PyMOL ``spacing=`` and Tcl ``-spacing``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

#: Writes a parameter, with a value where one is given (else empty), the way an interface has it.
Spelling = Callable[[str, str], str]

#: A word that is cut, such as a value of thousands of letters or digits, and the longest text that is not.
_LONG_WORD = re.compile(r"\S{500,}")
_MOST = 3000

_PARAMETER = re.compile(r"\{([a-z_]+)(?: ([^{}]*))?\}")


def plain(name: str, value: str = "") -> str:
    """Return a parameter as Python has it: its bare name, or ``name=value``."""
    return f"{name}={value}" if value else name


def in_words(name: str, value: str = "") -> str:
    """Return a parameter as reports have it, which every interface shows as they are: ``the engine cpu``."""
    return f"the {name} {value}" if value else name


def spelled(words: str, spell: Spelling = plain) -> str:
    """Return words in which ``{spacing}`` and ``{boundary open}`` stand for parameters, spelled out.

    Nothing that a user brought (names of files, values) belongs into such words.
    """
    return _PARAMETER.sub(lambda match: spell(match[1], match[2] or ""), words)


class Words:
    """A message to log with parameters in it, ``{cutoff}``: bare ones, unless an interface spells :attr:`template`."""

    def __init__(self, template: str) -> None:
        self.template = template

    def __str__(self) -> str:
        return spelled(self.template)


def one_line(text: str) -> str:
    """Return text on one line, with what cannot be printed made visible: line ends, control characters, odd bytes."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _visible(letter) for letter in text)


def _shortened(text: str) -> str:
    """Return text whose words, and itself, can be read: the middle of longer ones is left out."""
    text = _LONG_WORD.sub(lambda match: f"{match[0][:120]}...{match[0][-80:]}", text)
    return text if len(text) <= _MOST else f"{text[: _MOST - 200]}...{text[-100:]}"


def _visible(letter: str) -> str:
    if 0xDC80 <= ord(letter) <= 0xDCFF:  # a byte of a file's name that is no UTF-8
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape", "surrogatepass").decode()


def listed(words: Iterable[str], most: int) -> str:
    """Return words with commas between, at most `most` characters of them; how many more there are is said."""
    taken: list[str] = []
    left = [one_line(word) for word in words]
    while left and sum(map(len, taken)) + 2 * len(taken) + len(left[0]) <= most:
        taken.append(left.pop(0))
    if left and not taken:
        taken.append(f"{left.pop(0)[: most - 3]}...")
    return ", ".join(taken) + (f" and {len(left)} more" if left else "")


def similar(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'map'?)`` where a word resembles a known one, else an empty string."""
    import difflib

    close = difflib.get_close_matches(word, list(known), 1, 0.65)
    return f" (did you mean '{close[0]}'?)" if close else ""


class VmdpotentialError(Exception):
    """Base of all errors that this package raises on purpose.

    Parameters
    ----------
    text : str
        What is wrong; may hold anything.
    cure : str
        What to do, in words of our own in which parameters are as ``{spacing}`` or ``{boundary open}``.
    parameter : str
        The name of the parameter that is wrong, where it is one.
    value : str
        What it was given, where that is worth repeating.

    Examples
    --------
    >>> try:
    ...     vp.read_structure("missing.pdb")
    ... except vp.VmdpotentialError as error:
    ...     print(type(error).__name__, error.exit_code)
    InputError 2
    """

    exit_code = 2

    def __init__(self, text: str, cure: str = "", *, parameter: str = "", value: str = "") -> None:
        super().__init__(text, cure)
        self.text, self.cure, self.parameter, self.value = text, cure, parameter, value

    def message(self, spell: Spelling = plain) -> str:
        """Return the line, with parameters as an interface spells them."""
        value = self.value if len(self.value) <= 80 else f"{self.value[:77]}..."
        head = f"{spell(self.parameter, value)}: " if self.parameter else ""
        return one_line(head + _shortened(self.text) + (f"; {spelled(self.cure, spell)}" if self.cure else ""))

    def __str__(self) -> str:
        return self.message()

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), self.__dict__)


def _again(kind: type[VmdpotentialError], state: dict[str, object]) -> VmdpotentialError:
    """Return an error as it was in another process."""
    error = kind.__new__(kind)
    error.__dict__.update(state)
    return error


class UsageError(VmdpotentialError, ValueError):
    """A parameter is wrong: ``UsageError("tolerance", "give 1e-6 to 0.1", value="3")``.

    Parameters
    ----------
    parameter : str
        The name of the parameter.
    text : str
        What is wrong.
    cure : str
        How to fix it.
    value : str
        The value of the parameter, where it is worth repeating.

    Examples
    --------
    >>> print(vp.UsageError("tolerance", "must be at least 1e-06", value="0"))
    tolerance=0: must be at least 1e-06
    """

    def __init__(self, parameter: str, text: str, cure: str = "", *, value: str = "") -> None:
        super().__init__(text, cure, parameter=parameter, value=value)


class InputError(VmdpotentialError, ValueError):
    """A file cannot be read, is inconsistent, or is unsuitable for the task."""


class ChargeError(InputError):
    """Atoms have no charge: neither a topology nor a template gives one."""


class IncompleteError(ChargeError):
    """Atoms are missing, or have no template, which completing the structure may cure."""


class TaskError(VmdpotentialError, RuntimeError):
    """The input is good but the task cannot be done."""

    exit_code = 3


class NoRoomError(TaskError):
    """No site is left that keeps the distances asked for."""


class MemoryPlanError(TaskError):
    """The task needs more memory than there is; raised before any is taken."""


class CheckError(TaskError):
    """A check failed.

    Parameters
    ----------
    text : str
        What failed.
    report : vmdpotential.parameters.Report
        What was checked; the shell prints it before the error.

    Examples
    --------
    >>> vp.CheckError("2 of 30 checks failed", report=None).exit_code
    3
    """

    def __init__(self, text: str, report: Any) -> None:
        super().__init__(text)
        self.report = report


class StoppedError(CheckError):
    """The task was stopped, and what is done was kept."""

    exit_code = 130


class OutputError(TaskError):
    """A result cannot be written (no permission, disk full)."""


class BackendError(VmdpotentialError, RuntimeError):
    """An engine or an optional package that was asked for by name is missing."""

    exit_code = 4
