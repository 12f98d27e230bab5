"""The registry's commands as commands of ChimeraX."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from chimerax.atomic import AtomsArg
from chimerax.core.commands import (
    Annotation,
    AnnotationError,
    BoolArg,
    CmdDesc,
    DynamicEnum,
    FileNameArg,
    FloatArg,
    IntArg,
    JSONResult,
    ListOf,
    OpenFileNameArg,
    SaveFileNameArg,
    StringArg,
    next_token,
)
from chimerax.core.commands import register as _register
from chimerax.core.errors import CancelOperation, UserError
from chimerax.map import MapArg, MapsArg

from vmdpotential import registry
from vmdpotential.frontend import messages
from vmdpotential.parameters import Command, Option, Parameter, Report
from vmdpotential.plugins.viewers import adapters
from vmdpotential.plugins.viewers.adapters import describe_parameter, object_role
from vmdpotential.plugins.viewers.display import surface_options

from .progress import StatusLine
from .task import PREFIX, Task, end_live

_others_registered = False


def register(name: str, declared: Collection[str], logger: Any) -> None:
    """Add a command, and with the first one also those of other packages, which the bundle does not declare.

    Parameters
    ----------
    name : str
        Name of the command in ChimeraX, such as ``potential map``.
    declared : collection of str
        Names of the commands that the bundle declares.
    logger : ChimeraX's logger
        Logger for warnings of commands of other packages that cannot be loaded.
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
    if command.draws == "live":
        _register(f"{PREFIX}live off", CmdDesc(synopsis="End the live map"), partial(_live, wait=False), logger=logger)
        _register(f"{PREFIX}live wait", CmdDesc(synopsis="Wait until the live map is up to date"),
                  partial(_live, wait=True), logger=logger)


class Described(Annotation):  # type: ignore[misc]
    """An annotation of ChimeraX with a description of the option in its name, which `usage` shows."""

    def __init__(self, annotation: Any, text: str) -> None:
        super().__init__(name=f"{annotation.name}: {text}", html_name=f"{annotation.html_name()}: {escape(text)}")
        self.annotation = annotation
        self.parse = annotation.parse
        self.unparse = annotation.unparse
        self.allow_repeat = getattr(annotation, "allow_repeat", False)


class System(AtomsArg):  # type: ignore[misc]
    """Annotation for the atoms of a system, whose errors give an example."""

    @classmethod
    def parse(cls, text: str, session: Any) -> tuple[Any, str, str]:
        """Return the atoms, the parsed text and the rest."""
        try:
            result: tuple[Any, str, str] = super().parse(text, session)
        except AnnotationError as error:
            raise AnnotationError(f"{error}; specify atoms, such as #1 or #1/A, or leave them out for all structures "
                                  "that are displayed", error.offset) from None
        return result


class Bundled(OpenFileNameArg):  # type: ignore[misc]
    """Annotation for a file, or for the name of one that comes with a package, which the command finds."""

    @classmethod
    def parse(cls, text: str, session: Any) -> tuple[str, str, str]:
        """Return the path or the name, the parsed word and the rest of the text."""
        try:
            result: tuple[str, str, str] = super().parse(text, session)
        except AnnotationError:  # no such file
            result = FileNameArg.parse(text, session)
        return result


class Choice(DynamicEnum):  # type: ignore[misc]
    """Annotation for one of the values that an option lists, or the full name of one that it does not list."""

    def __init__(self, option: Option) -> None:
        super().__init__(option.shown)
        self.option = option

    def parse(self, text: str, session: Any) -> tuple[str, str, str]:
        """Return the value, the parsed word and the rest of the text."""
        if text:
            word, _, rest = next_token(text, convert=True)
            if word in self.option.allowed():
                return word, word, rest
        return super().parse(text, session)


def annotation(parameter: Parameter) -> Described:
    """Return the annotation that parses and describes a parameter; the command itself checks limits."""
    option, allowed, kind = parameter.option, parameter.option.allowed(), parameter.type
    base: Any
    if object_role(parameter) == "structure":
        base = System if parameter.required else AtomsArg
    elif object_role(parameter) == "map":
        base = MapsArg if parameter.several else MapArg
    elif allowed:
        base = Choice(option)
    elif option.bundled:
        base = Bundled
    elif kind is Path:
        base = SaveFileNameArg if option.written else OpenFileNameArg
    elif option.parse is not None:
        base = StringArg
    else:
        base = {float: FloatArg, int: IntArg, bool: BoolArg}.get(kind, StringArg)
    if parameter.several and object_role(parameter) != "map":
        base = ListOf(base)
    text = describe_parameter(parameter)
    if parameter.required and object_role(parameter):  # the declaration's help is about files
        text = ("atoms of the system; default all structures that are displayed"
                if object_role(parameter) == "structure" else "one or several maps, such as #2,3")
    if not parameter.required and parameter.default not in (None, ()):
        default = parameter.default
        if isinstance(default, bool):
            default = "true" if default else "false"
        text += f"; default {default}"
    return Described(base, text)


def description(command: Command) -> CmdDesc:
    """Return ChimeraX's description of a command."""
    offered = [(parameter.name, annotation(parameter),
                parameter.required) for parameter in adapters.offered_parameters(command)]
    keyword = [(name, kind) for name, kind, required in offered if not required]
    keyword += [(parameter.name, annotation(parameter)) for parameter in surface_options(command)]
    if not adapters.to_file(command):
        keyword.insert(0, ("name", Described(StringArg, f"name of the new model; default "
                                                        f"{command.makes}")))
    aliases = [(alias, annotation(parameter)) for parameter in (*adapters.offered_parameters(command),
                                                                *surface_options(command))
               for alias in parameter.option.aliases if not parameter.required]
    # further specifications are after keywords, as they would be read as part of the first one otherwise
    page = Path(__file__).parent / "docs" / "user" / "commands" / f"potential_{command.name}.html"
    needed = [parameter for parameter in command.parameters if parameter.required]
    first = next((parameter for parameter in needed if object_role(parameter)), None)
    named = [p.name for p in needed if p.option.selection or (object_role(p) == "map" and p is not first)]
    optional = [*(p.name for p in needed if object_role(p) == "structure"), *named]
    return CmdDesc(
        required=[(name, kind) for name, kind, required in offered if required and name not in optional],
        optional=[(name, kind) for name, kind, _ in offered if name in optional], required_arguments=named,
        keyword=[*keyword, *aliases], hidden=[alias for alias, _ in aliases], synopsis=command.summary,
        url=f"help:user/commands/{page.name}" if page.exists() else None)


def adapt(command: Command) -> Any:
    """Return the function that ChimeraX calls for a command, with the values of its annotations by name.

    It returns the new model, a list if there are several, or None. With `return_json`, which ChimeraX passes for its
    interfaces to other programs, there are also the values of the report as a JSON object, the lines of the log
    (``report``), and the new models (``model specs``, as of the command open).
    """
    def function(session: Any, return_json: bool = False, **inputs: Any) -> Any:
        task, report, lines = _run(session, command, inputs)
        result = task.models[0] if len(task.models) == 1 else task.models or None
        specs = [f"#{model.id_string}" for model in task.models]
        return _result({**report.data, "model specs": specs}, lines, result) if return_json else result

    function.__name__ = (PREFIX + command.name).replace(" ", "_")
    function.__doc__ = command.description
    return function


def _result(data: Mapping[str, Any], lines: Sequence[str], result: Any) -> Any:
    return JSONResult(json.dumps({**data, "report": list(lines)}, allow_nan=False), result)


def _run(session: Any, command: Command, inputs: Mapping[str, Any]) -> tuple[Task, Report, list[str]]:
    """Convert the inputs, run the command and show the results; return also the lines for the user.

    Raises
    ------
    UserError
        For errors that the user can fix, in one line.
    CancelOperation
        When the user stops the command; then there are no new models.
    """
    task = Task(session, command, inputs, session.logger.warning)
    try:
        with StatusLine(session, task.name) as listener:
            report = task.compute(listener)
    except KeyboardInterrupt:
        session.logger.status(f"{task.name}: {messages.STOPPED}")
        raise CancelOperation(f"{task.name}: {messages.STOPPED}") from None
    return task, report, task.show(report)


def _live(session: Any, wait: bool, return_json: bool = False) -> Any:
    """End the live map, or wait until it is up to date."""
    if getattr(session, "vmdpotential_live", None) is None:
        raise UserError("potential live: there is no live map")
    if wait:
        session.vmdpotential_live.wait()
        line = "the map is up to date"
    else:
        line = end_live(session)
        session.logger.info(f"potential live: {line}")
    return _result({}, [line], None) if return_json else None
