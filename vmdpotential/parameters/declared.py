"""The parameters that functions and dataclasses of options declare, and options that are changed by keywords."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Set
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache, wraps
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from vmdpotential.docstrings import with_entries
from vmdpotential.errors import UsageError, similar_hint
from vmdpotential.parameters.option import Parameter, by_own_names, own_name

Options = TypeVar("Options")

Kind = TypeVar("Kind", bound=type)

Function = TypeVar("Function", bound=Callable[..., Any])


def change_options(kind: type[Options], options: Options | None, keywords: Mapping[str, Any]) -> Options:
    """Return options, by default those of their dataclass, changed by keywords: names of fields, or their aliases.

    Raises
    ------
    UsageError
        For a keyword that is not a field, an invalid value, or a field that has two values, one of them by an alias.
    """
    result = kind() if options is None else options
    if not isinstance(result, kind):
        raise UsageError("options", f"{kind.__name__} is needed, not {type(result).__name__}")
    names = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    keywords = _own_keywords(kind, keywords, names)
    return replace(result, **keywords) if keywords else result  # type: ignore[type-var]


def _own_keywords(kind: Any, keywords: Mapping[str, Any], names: Set[str]) -> Mapping[str, Any]:
    """Return keywords by the names of a function or a dataclass, which may be aliases of a dataclass' fields."""
    if not keywords.keys() <= names:
        keywords = by_own_names(fields_of(kind), keywords)
        for name in keywords.keys() - names:
            raise UsageError(name, f"there is no such option{similar_hint(name, names)}")
    return keywords


class CheckedOptions:
    """Base class of dataclasses of options, which checks values when a program makes one, as commands check theirs.

    Raises
    ------
    UsageError
        For a value of another type, outside of its limits, or that is no choice.
    """

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for parameter in _plain_fields(kind):
            value = getattr(self, parameter.name)
            if value is not parameter.default and not isinstance(value, parameter.objects):
                object.__setattr__(self, parameter.name, parameter.convert(value))


@cache
def _plain_fields(kind: Any) -> tuple[Parameter, ...]:
    """Return the parameters that are numbers, choices or switches; selections may also be arrays of any kind."""
    return tuple(p for p in fields_of(kind) if p.type in (bool, int, float, str) and not p.option.selection)


def takes_fields(*kinds: Any) -> Callable[[Function], Function]:
    """Return a decorator that replaces ``**keywords`` in a function's signature by the fields of dataclasses.

    Help and editors then show these; the docstring is completed likewise.
    """
    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default,
                                  annotation=hints[item.name])
                for kind, hints in ((kind, get_type_hints(kind)) for kind in kinds)
                for item in fields(kind) if item.name not in signature.parameters]
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        if function.__doc__:  # None with python -OO
            declared = (p for kind in kinds for p in fields_of(kind))
            function.__doc__ = with_entries(function.__doc__, declared)
        return function
    return decorate


def takes_aliases(kind: Any) -> Callable[[Function], Function]:
    """Return a decorator that lets keywords also be the aliases of the fields of a dataclass of options."""
    def decorate(function: Function) -> Function:
        names = inspect.signature(function).parameters.keys()

        @wraps(function)
        def with_aliases(*values: Any, **keywords: Any) -> Any:
            return function(*values, **_own_keywords(kind, keywords, names))

        return with_aliases  # type: ignore[return-value]
    return decorate


class WithoutFields(frozenset[str]):
    """Fields that a command does not have, of a dataclass of options: ``Annotated[Source, Without("charges")]``."""

    def __new__(cls, *names: str) -> Self:
        """Return the fields of these names."""
        return super().__new__(cls, names)


@dataclass(frozen=True)
class Group:
    """An argument that is a dataclass of options.

    Parameters
    ----------
    name : str
        Name of the argument.
    kind : type
        The dataclass.
    default : object
        Its default instance, or None.
    left_out : frozenset of str
        Fields that are no parameters.
    """

    name: str
    kind: Any
    default: Any
    left_out: frozenset[str] = frozenset()


def groups_of(function: Callable[..., Any]) -> list[Group]:
    """Return the arguments that are dataclasses of options."""
    hints, result = get_type_hints(function, include_extras=True), []
    for name, parameter in inspect.signature(function).parameters.items():
        kind, *more = get_args(hints[name]) if get_origin(hints.get(name)) is Annotated else (hints.get(name),)
        if is_dataclass(kind):
            default = None if parameter.default is parameter.empty else parameter.default
            result.append(Group(name, kind, default, *(item for item in more if isinstance(item, WithoutFields))))
    return result


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters that a function declares, by its annotated arguments and its dataclasses of options.

    Raises
    ------
    TypeError
        For an argument or a field without an :class:`Option`, or two parameters of one name.
    """
    hints = get_type_hints(function, include_extras=True)
    groups = {group.name: group for group in groups_of(function)}
    result: list[Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:  # for parameters that are only known in a call
            continue
        if name in groups:
            result += _fields(groups[name])
        else:
            result.append(_parameter(name, hints.get(name), parameter.default, function.__name__))
    names = [parameter.name for parameter in result]
    if twice := {name for name in names if names.count(name) > 1}:
        raise TypeError(f"{function.__name__}: has several parameters named {', '.join(sorted(twice))}")
    return result


def fields_of(kind: Any) -> list[Parameter]:
    """Return the parameters that the fields of a dataclass of options declare, by the names of the fields."""
    return [replace(p, name=p.argument) for p in _fields(Group("", kind, None))]


def document_options(kind: Kind) -> Kind:
    """Complete the docstring of a dataclass of options: an entry ``**keywords`` is replaced by those of its fields."""
    if kind.__doc__:
        kind.__doc__ = with_entries(kind.__doc__, fields_of(kind))
    return kind


def _fields(group: Group) -> list[Parameter]:
    """Return the parameters that the fields of a dataclass of options declare, in the order of the fields."""
    hints = _hints(group.kind)
    results = []
    for item in fields(group.kind):
        value = item.default if group.default is None else getattr(group.default, item.name)
        if value is MISSING:
            value = inspect.Parameter.empty if item.default_factory is MISSING else item.default_factory()
        if get_origin(hints[item.name]) is Annotated and item.name not in group.left_out:
            results.append(replace(_parameter(item.name, hints[item.name], value, group.kind.__name__),
                                   group=group.name))
    return results


@cache  # a dataclass belongs to many commands, and evaluating its annotations takes long
def _hints(kind: Any) -> dict[str, Any]:
    """Return the annotations of the fields of a dataclass, evaluated."""
    return get_type_hints(kind, include_extras=True)


def _parameter(name: str, hint: Any, default: Any, owner: str) -> Parameter:
    """Return the parameter that an argument or a field declares."""
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{owner}: parameter {name} lacks Annotated[type, Option(...)]")
    kind, option = get_args(hint)[:2]
    members = _members(kind)
    optional = type(None) in members
    members = [m for m in members if m is not type(None)]
    several = get_origin(members[0]) is tuple
    if several:
        members = _members(get_args(members[0])[0])
    # for Path | Structure, text is converted to the first type, and objects of the others are not converted
    objects = tuple(member for member in members[1:] if get_origin(member) is None)
    return Parameter(option.name or own_name(name), members[0], several, optional, default, option, objects,
                     argument=name)


def _members(hint: Any) -> list[Any]:
    return list(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else [hint]
