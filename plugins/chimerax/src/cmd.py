"""The registry's commands as commands of ChimeraX."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from chimerax.atomic import AtomsArg
from chimerax.core.commands import (
    Annotation,
    BoolArg,
    CmdDesc,
    DynamicEnum,
    FloatArg,
    IntArg,
    ListOf,
    OpenFileNameArg,
    SaveFileNameArg,
    StringArg,
    next_token,
)
from chimerax.core.commands import register as _register
from chimerax.core.errors import CancelOperation, UserError
from chimerax.map import MapArg, MapsArg

from vmdpotential import progress, registry
from vmdpotential.errors import Spelling, UsageError, VmdpotentialError, plain
from vmdpotential.frontend import adapters, messages
from vmdpotential.frontend.adapters import default_name, describe, role
from vmdpotential.parameters import Command, Option, Parameter, Report

from . import missing
from .convert import Selected, common_place, read_atoms, read_frames, read_volume, rows_of
from .live import Live
from .progress import StatusLine
from .show import show

#: Put before the name of each command.
PREFIX = "potential "

_others_registered = False


def register(name: str, declared: Collection[str], logger: Any) -> None:
    """Add a command, and with the first one those that the bundle does not declare (other packages').

    Parameters
    ----------
    name : str
        ``potential map`` and so on.
    declared : collection of str
        What ChimeraX knows of already.
    logger : ChimeraX's logger
        Is warned of a command of another package that cannot be loaded.
    """
    global _others_registered
    _register_one(registry.get("command", name.removeprefix(PREFIX)), logger)
    if _others_registered:
        return
    _others_registered = True
    for command in adapters.viewer_commands(logger.warning):
        if PREFIX + command.name not in declared:
            _register_one(command, logger)


def _register_one(command: Command, logger: Any) -> None:
    _register(PREFIX + command.name, description(command), adapt(command), logger=logger)
    if command.name == "live":
        _register(f"{PREFIX}live off", CmdDesc(synopsis="End the live map"), partial(_live, wait=False), logger=logger)
        _register(f"{PREFIX}live wait", CmdDesc(synopsis="Wait until the live map is that of what is shown"),
                  partial(_live, wait=True), logger=logger)


def spelling(command: Command) -> Spelling:
    """Return how ChimeraX writes parameters of a command: as keywords; others, such as an interaction's, stay bare."""
    types = {parameter.name: parameter.type for parameter in command.parameters}

    def spell(name: str, value: str = "") -> str:
        if name not in types:
            return plain(name, value)
        if types[name] is bool:
            value = {"yes": "true", "no": "false"}.get(value, value)
        first, *others = name.split("_")
        return " ".join(filter(None, [first + "".join(word.capitalize() for word in others), value]))

    return spell


class Described(Annotation):  # type: ignore[misc]
    """An annotation of ChimeraX whose name, which `usage` shows, says what the option means."""

    def __init__(self, annotation: Any, text: str) -> None:
        super().__init__(name=f"{annotation.name}: {text}", html_name=f"{annotation.html_name()}: {escape(text)}")
        self.annotation = annotation
        self.parse = annotation.parse
        self.unparse = annotation.unparse
        self.allow_repeat = getattr(annotation, "allow_repeat", False)


class Choice(DynamicEnum):  # type: ignore[misc]
    """One of the values that an option shows, or by its full name one that it does not show."""

    def __init__(self, option: Option) -> None:
        super().__init__(option.shown)
        self.option = option

    def parse(self, text: str, session: Any) -> tuple[str, str, str]:
        """Return the value, the word and what follows it."""
        if text:
            word, _, rest = next_token(text, convert=True)
            if word in self.option.allowed():
                return word, word, rest
        found: tuple[str, str, str] = super().parse(text, session)
        return found


def annotation(parameter: Parameter) -> Described:
    """Return what parses and describes a parameter; limits are checked by the command itself."""
    option, allowed, kind = parameter.option, parameter.option.allowed(), parameter.type
    base: Any
    if role(parameter) == "structure":
        base = AtomsArg
    elif role(parameter) == "map":
        base = MapsArg if parameter.several else MapArg
    elif allowed:
        base = Choice(option)
    elif kind is Path:
        base = SaveFileNameArg if parameter.name == "output" else OpenFileNameArg
    elif option.parse is not None:
        base = StringArg
    else:
        base = {float: FloatArg, int: IntArg, bool: BoolArg}.get(kind, StringArg)
    if parameter.several and role(parameter) != "map":
        base = ListOf(base)
    text = describe(parameter)
    if parameter.required and role(parameter):  # the declaration speaks of files
        text = "the system, or a part of it" if role(parameter) == "structure" else "one or several, such as #2,3"
    if not parameter.required and parameter.default not in (None, ()):
        default = parameter.default
        if isinstance(default, bool):
            default = "true" if default else "false"
        text += f"; default {default}"
    return Described(base, text)


def description(command: Command) -> CmdDesc:
    """Return ChimeraX's description of a command."""
    offered = [(parameter.name, annotation(parameter), parameter.required) for parameter in adapters.offered(command)]
    keyword = [(name, kind) for name, kind, required in offered if not required]
    if not adapters.to_file(command):
        keyword.insert(0, ("name", Described(StringArg, f"what the new model is called; default "
                                                        f"{default_name(command)}")))
    return CmdDesc(
        required=[(name, kind) for name, kind, required in offered if required], keyword=keyword,
        synopsis=command.summary)


def adapt(command: Command) -> Any:
    """Return the function that ChimeraX calls for a command: values by name, as its annotations made them."""
    def function(session: Any, **given: Any) -> Any:
        return _run(session, command, given)

    function.__name__ = (PREFIX + command.name).replace(" ", "_")
    function.__doc__ = command.description
    return function


def _run(session: Any, command: Command, given: Mapping[str, Any]) -> Any:
    """Convert what ChimeraX has, run the command and show the results.

    Returns
    -------
    The new model, None where there is none, a list of several.

    Raises
    ------
    UserError
        For whatever the user can cure, in one line.
    CancelOperation
        When the user stops it; then nothing has been made.
    """
    name, spell = PREFIX + command.name, spelling(command)
    try:
        with messages.warnings(lambda text: session.logger.warning(f"{name}: {text}"), spell):
            values, selected = _convert(command, given, session)
            with StatusLine(session, name) as listener, progress.listening(listener):
                report = command(**values)
            if (made := report.objects.get("live")) is not None:
                end_live(session)
            models, lines = show(session, report, given.get("name") or default_name(command), selected)
    except (VmdpotentialError, MemoryError) as error:
        raise UserError(f"{name}: {messages.one_line(error, spell)}") from error
    except ImportError as error:
        raise UserError(f"{name}: {missing.describe(error)}") from error
    except KeyboardInterrupt:
        session.logger.status(f"{name}: stopped, nothing was made")
        raise CancelOperation(f"{name}: stopped, nothing was made") from None
    if made is not None and selected is not None:
        session.vmdpotential_live = Live(session, command, partial(_convert_again, command, given), spell, models[0],
                                         selected, made)
        lines.append("the map follows what is shown; end it with: potential live off")
    _log(session, name, report, lines)
    return models[0] if len(models) == 1 else models or None


def _convert_again(command: Command, given: Mapping[str, Any], session: Any) -> tuple[dict[str, Any], Selected | None]:
    """Return the values of a command with the atoms that its specification means now."""
    spec = getattr(given["structure"], "spec", None)
    return _convert(command, given if spec is None else {**given, "structure": AtomsArg.parse(spec, session)[0]},
                    session)


def end_live(session: Any) -> str:
    """End the live map and return what to tell the user, nothing where there is none."""
    live, session.vmdpotential_live = getattr(session, "vmdpotential_live", None), None
    return "" if live is None else str(live.stop())


def _live(session: Any, wait: bool) -> None:
    """End the live map, or wait until it is that of what is shown."""
    if getattr(session, "vmdpotential_live", None) is None:
        raise UserError("potential live: there is no live map")
    if wait:
        session.vmdpotential_live.wait()
    else:
        session.logger.info(f"potential live: {end_live(session)}")


def _convert(command: Command, given: Mapping[str, Any], session: Any) -> tuple[dict[str, Any], Selected | None]:
    """Return the values that the command takes, and the atoms among them."""
    values: dict[str, Any] = {}
    selected = place = None
    # maps first: the atoms drawn on a slice are wanted in the coordinates of its map
    for parameter in sorted(adapters.offered(command), key=lambda p: role(p) != "map"):
        value = given.get(parameter.name)
        if value is None or adapters.is_topology(command, parameter):
            continue
        kind = role(parameter)
        if kind == "map":
            volumes: Sequence[Any] = value if parameter.several else [value]
            if not volumes:
                raise UsageError(parameter.name, "there is no such map", "open one, or make it with potential map")
            place = common_place(volumes)
            grids = [read_volume(volume) for volume in volumes]
            values[parameter.name] = grids if parameter.several else grids[0]
        elif kind == "structure":
            topology = given.get("topology")
            selected = read_atoms(value, place, None if topology is None else Path(topology))
            values[parameter.name] = selected.structure
        else:
            values[parameter.name] = value
    if selected is not None:
        atoms = selected
        for parameter in command.parameters:
            if parameter.option.selection and parameter.name in values:
                value = values[parameter.name]
                picked = [adapters.selection(parameter, text, atoms.structure, lambda s: rows_of(session, atoms, s))
                          for text in (value if parameter.several else [value])]
                values[parameter.name] = picked if parameter.several else picked[0]
        adapters.with_frames(command, values, lambda: read_frames(selected))
    return values, selected


def _log(session: Any, name: str, report: Report, lines: list[str]) -> None:
    told = [*report.lines, *lines]
    text = "\n".join([f"{name}:", *told])
    session.logger.info(f"<pre>{escape(text)}</pre>", is_html=True)
    session.logger.status(f"{name}: {(told[-1] if lines else next(iter(told), 'done')).partition(';')[0]}")
