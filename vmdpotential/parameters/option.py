"""Declarations of parameters, and their values from texts and objects."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeVar

from vmdpotential.errors import InputError, UsageError, similar_hint

#: What an option is to the programs that offer it: a topology of the structure's atoms, the frames of a trajectory to
#: use, the copies of a structure (two), permission to replace files, the medium of the charges, the engine, and the
#: address of other machines.
OptionRole = Literal["", "topology", "frames", "assembly", "expansion", "overwriting", "medium", "engine", "address"]


@dataclass(frozen=True)
class Option:
    """Declaration of a parameter, apart from its type.

    Parameters
    ----------
    help : str
        One line, without the default and the unit.
    unit : str
    above, low, high : float or None
        Exclusive lower limit, and inclusive limits.
    choices : sequence of str, or function that returns one
        Allowed values; a function, e.g. for registered names, is called when they are needed.
    listed : sequence of str, or function that returns one
        Choices that help and dialogs show; all unless given.
    positional : bool
        Whether the shell takes it without an option name.
    short : str
        One-letter option of the shell.
    metavar : str
        Placeholder of the value in the shell's help.
    parse : function or None
        Converts text to the value, or raises ValueError with a reason.
    viewer : bool
        Whether viewers offer it; false for parameters that only make sense in a shell (files, overwriting).
    shell : bool
        Whether no viewer offers it, not even one that runs the program instead of importing it, such as VMD.
    written : bool
        Whether its value is a file that the command writes; other files are read.
    selection : bool
        Whether it selects atoms of the structure; viewers accept their own selection language for it.
    words : sequence of str
        Words that are allowed instead of a selection or numbers.
    front : bool
        Whether dialogs show it at once, as one that is often set; the others are folded under "Advanced".
    name : str
        Name of the parameter, if it differs from that of the argument or field.
    aliases : sequence of str
        Further names of the parameter, which every interface accepts (:func:`by_own_names`), and which are listed
        before its own in the help of the shell.
    suffix : str
        Default suffix of the files that the command ``batch`` writes for this parameter; empty for none.
    heading : str
        Heading under which the help of the shell lists it; required parameters and those with `front` or `short` are
        under the main one.
    data : function or None
        Reads the file of its value, which takes the place of a viewer's atoms and maps; viewers call it, and offer the
        command because of it.
    bundled : bool
        Whether a file may also be named that comes with an installed package, such as ``amber14-all.xml``.
    role : OptionRole
        What it is to viewers, dialogs and batches, which treat it in a special way whatever its name; empty for none.
    """

    help: str
    unit: str = ""
    above: float | None = None
    low: float | None = None
    high: float | None = None
    choices: Sequence[str] | Callable[[], Sequence[str]] = ()
    listed: Sequence[str] | Callable[[], Sequence[str]] = ()
    positional: bool = False
    short: str = ""
    metavar: str = ""
    parse: Callable[[str], Any] | None = None
    viewer: bool = True
    shell: bool = False
    written: bool = False
    selection: bool = False
    words: Sequence[str] = ()
    front: bool = False
    name: str = ""
    aliases: Sequence[str] = ()
    suffix: str = ""
    heading: str = ""
    data: Callable[[Path], Any] | None = None
    bundled: bool = False
    role: OptionRole = ""

    def allowed(self) -> Sequence[str]:
        """Return the allowed values, empty if any value is allowed."""
        return self.choices() if callable(self.choices) else self.choices

    def shown(self) -> Sequence[str]:
        """Return the allowed values that help and dialogs show."""
        return tuple((self.listed() if callable(self.listed) else self.listed) or self.allowed())


@dataclass(frozen=True)
class Parameter:
    """Parameter of a command.

    Parameters
    ----------
    name : str
    type : type
        Type of the value, or of each of `several` values, without None.
    several, optional : bool
        Whether it takes several values; whether None is allowed.
    default : object
        ``inspect.Parameter.empty`` if a value is required.
    option : Option
    objects : tuple of types
        Types that a program may pass instead of text (Structure, Grid).
    group : str
        Argument of the command's function of which the parameter is a field; empty for none.
    argument : str
        Name of that field, or of the argument itself.
    """

    name: str
    type: type
    several: bool
    optional: bool
    default: Any
    option: Option
    objects: tuple[Any, ...] = ()
    group: str = ""
    argument: str = ""

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is inspect.Parameter.empty

    def convert(self, value: Any) -> Any:
        """Return the checked value made from text or an object.

        Raises
        ------
        UsageError
            Naming the option, the value and what is allowed.
        """
        if value is None or (self.optional and isinstance(value, str) and value in ("none", "None")):
            if self.required or not self.optional:
                raise UsageError(self.name, "a value is needed")
            return None
        if self.several:
            items = list(value) if isinstance(value, (list, tuple)) else [value]
            return tuple(self._one(item) for item in items)
        return self._one(value)

    @property
    def flag(self) -> str:
        """Name of the option in a shell, without the leading dashes."""
        return self.name.replace("_", "-")

    def _one(self, value: Any) -> Any:
        option = self.option
        if isinstance(value, str):
            # an empty value is not taken as missing, so that an unset variable of a script does not change the result
            if not value or (value.isspace() and self.type is not Path):
                raise UsageError(self.name, "is empty", "give a value, or leave it out")
            try:
                if option.parse is not None:
                    value = option.parse(value)
                elif self.type is bool:
                    value = _boolean(value)
                elif self.type is Path:
                    if re.match(r"[a-z]+://", value):
                        raise ValueError("an address is not supported; download the file, and give its name")
                    value = Path(value)
                elif self.type in (int, float) and "_" in value:  # Python would ignore underscores in numbers
                    raise ValueError
                elif self.type is not str:  # kept for str, since it may be a subclass that also holds selected atoms
                    value = self.type(value)
            except (InputError, UsageError) as error:  # the parser is also a function of the library
                raise UsageError(self.name, error.text, error.hint,
                                 value="" if Path(value).name in error.text else value) from None
            except ValueError as error:
                reason = str(error) if option.parse or self.type in (bool, Path) else (
                    "a whole number is needed" if self.type is int else
                    f"a number is needed{f', in {option.unit} and without a unit' if option.unit else ''}")
                raise UsageError(self.name, reason, value=value) from None
        value = self._typed(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            self._check_limits(value)
        allowed = option.allowed()
        if allowed and not isinstance(value, self.objects) and value not in allowed:
            raise UsageError(self.name, f"is unknown{similar_hint(str(value), allowed)}",
                             f"choose one of {', '.join(option.shown())}", value=str(value))
        return value

    def _typed(self, value: Any) -> Any:
        """Return a value as the declared type; numbers may be of any numeric type, including numpy's."""
        number = {float: Real, int: Integral, bool: Integral, str: Real}.get(self.type)
        if number is not None and isinstance(value, number):
            return self.type(value)
        plain = self.type in (bool, int, float, str, Path) and self.option.parse is None
        if plain and not isinstance(value, (self.type, *self.objects)):
            requested = " or ".join(kind.__name__ for kind in (self.type, *self.objects))
            raise UsageError(self.name, f"{requested} is needed, not {type(value).__name__}")
        return value

    def _check_limits(self, value: float) -> None:
        option, unit = self.option, f" {self.option.unit}" if self.option.unit else ""
        if not math.isfinite(value):
            raise UsageError(self.name, "a finite number is needed", value=str(value))
        if option.above is not None and not value > option.above:
            raise UsageError(self.name, f"must be above {option.above:g}{unit}", value=f"{value:g}")
        if option.low is not None and value < option.low:
            raise UsageError(self.name, f"must be at least {option.low:g}{unit}", value=f"{value:g}")
        if option.high is not None and value > option.high:
            raise UsageError(self.name, f"must be at most {option.high:g}{unit}", value=f"{value:g}")


def parse_items(text: str, mark: str, form: str) -> dict[str, str]:
    """Return ``{name: rest}`` of a text such as ``SOD=11,CLA=2``.

    `mark` separates name and rest, and `form` describes the syntax in errors.

    Raises
    ------
    ValueError
        For an item without a name or a rest, or a name that occurs twice.
    """
    result: dict[str, str] = {}
    for item in text.split(","):
        name, _, rest = (part.strip() for part in item.partition(mark))
        if not name or not rest:
            raise ValueError(f"write {form}")
        if name in result:
            raise ValueError(f"{name} occurs twice")
        result[name] = rest
    return result


def parse_numbers(text: str, word: str | None = None) -> dict[str, Any]:
    """Return ``{"debye_length": 8.0}`` for ``debye_length=8``; several are separated by commas.

    A value may also be `word`.

    Raises
    ------
    ValueError
        When the text has another form.
    """
    result: dict[str, Any] = {}
    for item in filter(None, text.split(",")):
        name, _, value = (part.strip() for part in item.partition("="))
        if name in result:
            raise ValueError(f"{name} occurs twice")
        try:
            result[name] = value if value == word else float(value)
        except ValueError:
            raise ValueError("give NAME=NUMBER, such as debye_length=8") from None
        if value != word and math.isnan(result[name]):
            raise ValueError(f"{name} is not a number")
    return result


def parse_numbers_or_auto(text: str) -> dict[str, Any]:
    """Return the same as :func:`parse_numbers`; a value may also be the word ``auto``."""
    return parse_numbers(text, "auto")


def _boolean(text: str) -> bool:
    words = {"1": True, "yes": True, "true": True, "on": True, "0": False, "no": False, "false": False, "off": False}
    if text.lower() not in words:
        raise ValueError("write yes or no")
    return words[text.lower()]


Value = TypeVar("Value")


def other_names(parameters: Iterable[Parameter]) -> dict[str, str]:
    """Return a mapping from aliases, and from the names of arguments in Python, to the names of parameters."""
    parameters = list(parameters)
    own = {parameter.name for parameter in parameters}
    return {other: p.name for p in parameters for other in (*p.option.aliases, p.argument, p.option.name)
            if other and other not in own}


def by_own_names(parameters: Iterable[Parameter], values: Mapping[str, Value]) -> dict[str, Value]:
    """Return values with the names of parameters instead of aliases (``ionic_strength``) and Python names (``from_``).

    Raises
    ------
    UsageError
        For a parameter that has two values, one of them by an alias.
    """
    parameters = list(parameters)
    names, others = {parameter.name for parameter in parameters}, other_names(parameters)
    result: dict[str, Value] = {}
    for name, value in values.items():
        own = name if name in names else others.get(own_name(name), own_name(name))
        if own in result:
            raise UsageError(own, f"two values were given, by {own} and by its alias", "leave one of them out")
        result[own] = value
    return result


def own_name(name: str) -> str:
    """Return the name of a parameter for that of an argument, which ends in _ if it is a Python keyword: ``from_``."""
    return name[:-1] if iskeyword(name[:-1]) else name
