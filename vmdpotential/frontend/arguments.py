"""Parser of the shell's arguments, built from the command registry, and its help with headings and examples."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, get_origin

from vmdpotential import __version__, registry
from vmdpotential.errors import BackendError, UsageError
from vmdpotential.frontend.declarations import as_text, parameter_kind, takes_data
from vmdpotential.frontend.summaries import COMMAND_SUMMARIES
from vmdpotential.parameters import Command, Parameter

EXIT_CODES = """exit codes: 0 done; 2 invalid option or input; 3 valid request that cannot be done or failed;
4 a requested engine or package is missing; 130 interrupted; 141 output pipe closed"""

#: Hidden option of VMD's plugin: the answer is a Tcl dictionary, and errors and warnings write parameters as VMD does.
#: With a file, the answer is written to it, and the program ends when its standard input does.
TCL = "--tcl"

#: Hidden options of VMD's plugin: the answer has a map's surface, coloured in this range, or the usual one if empty;
#: and the atoms that get a surface.
SURFACE, SURFACE_OF = "--tcl-surface", "--surface-of"

#: Heading of required and often used options, which come first, and of options without another heading.
MAIN, OTHER = "main options", "other options"

#: Headings in the help of commands with many options, in their order; an option with another one declares a heading of
#: its command, which comes before these.
HEADINGS = ("structure and charges", "ions", "sites", "grid", "medium", "method and accuracy", "surface", "trajectory",
            "figure", "output", "benchmark", "execution")

#: Commands with at most this many options list them under one heading.
FEW = 10


class _Parser(argparse.ArgumentParser):
    """Argument parser whose errors are UsageErrors, and so one line like all errors of this program."""

    def error(self, message: str) -> NoReturn:
        if message.endswith("expected one argument"):
            message += " (one that begins with a dash is written after '=', a file also as ./-name)"
        raise UsageError("", message, f"see '{self.prog} --help'")


class _Once(argparse.Action):
    """Action of an option with one value, of which argparse would silently ignore the first of two."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        """Store the value; raise an error for a second one."""
        if hasattr(namespace, self.dest):
            parser.error(f"argument {option_string}: is given twice, and has one value")
        setattr(namespace, self.dest, values)


class _Switch(_Once):
    """Action of an option without a value: ``--force`` or ``--no-force``."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        """Store whether it is the option or its opposite."""
        super().__call__(parser, namespace, not (option_string or "").startswith("--no-"), option_string)


class _Added(argparse.Action):
    """Action of an option with a list of names and values, ``--set a=1,b=2``, to which further ones are added."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        """Append the value to those before."""
        setattr(namespace, self.dest, ",".join([*filter(None, [getattr(namespace, self.dest, "")]), values]))


def is_for_tcl(arguments: Sequence[str]) -> bool:
    """Return whether the arguments contain :data:`TCL`."""
    return any(word.partition("=")[0] == TCL for word in arguments)


def called_command(arguments: Sequence[str]) -> Command:
    """Return the command that is the first of the arguments, with its parameters in this call."""
    command: Command = registry.get("command", arguments[0])
    return command.for_arguments(arguments[1:])


def build_parser(arguments: Sequence[str] | None = None,
                 added: Callable[[argparse.Action, Parameter], None] | None = None) -> argparse.ArgumentParser:
    """Return the parser of all registered commands, or for some arguments.

    For arguments it is faster, with only what these need: the command that they call, without the declarations of
    others, or the summaries of all commands if they call none. `added` is called with each action of a parameter.
    """
    parser = _Parser(
        prog="vmdpotential", epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Electrostatic potential maps, ion placement and slice images of molecular structures.",
    )
    parser.add_argument("--version", action="version", version=f"vmdpotential {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    words = list(arguments or ())
    only = [name for name in words[:1] if name in registry.available("command")]
    if arguments is not None and not only:
        for name, summary in summaries().items():
            commands.add_parser(name, help=summary, add_help=False)
        return parser
    for name in only or registry.available("command"):
        try:
            command = called_command([name, *words[1:]])
        except BackendError:  # a broken plugin; `vmdpotential plugins` gives the reason
            continue
        sub = commands.add_parser(
            name, help=command.summary, description=command.description, usage=_usage(command), add_help=False,
            epilog="\n".join([*_examples(command), EXIT_CODES]), allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for title, parameters in headings(command).items():
            group = sub.add_argument_group(title)
            for parameter in parameters:
                for action in _add(group.add_argument, parameter):
                    if added is not None:
                        added(action, parameter)
        group = sub.add_argument_group("help and reports")
        group.add_argument("-h", "--help", action="help", help="print this help")
        group.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        group.add_argument("--verbose", action="store_true",
                           help="print the whole report; the chosen method, its cost and measured errors go to stderr")
        group.add_argument(SURFACE, default=None, help=argparse.SUPPRESS)
        group.add_argument(SURFACE_OF, default=None, help=argparse.SUPPRESS)
        group.add_argument(TCL, nargs="?", const="", help=argparse.SUPPRESS)
    return parser


def summaries() -> dict[str, str]:
    """Return the summaries of all commands; those for structures and maps come first, whichever package they are of.

    The commands of this package are not imported for them, which would take most of the time of ``--help``.
    """
    results: dict[str, tuple[str, bool]] = {}
    for name in registry.available("command"):
        with contextlib.suppress(BackendError):  # a broken plugin; `vmdpotential plugins` gives the reason
            known = COMMAND_SUMMARIES.get(registry.path("command", name))
            results[name] = known or summary_of(registry.get("command", name))
    return {name: summary for name, (summary, _) in sorted(results.items(), key=lambda item: not item[1][1])}


def summary_of(command: Command) -> tuple[str, bool]:
    """Return the summary of a command, and whether it is listed with those for structures and maps."""
    return command.summary, takes_data(command) or any(parameter_kind(p) == "structure" for p in command.parameters)


def headings(command: Command) -> dict[str, list[Parameter]]:
    """Return the parameters of a command under the headings of its help."""
    options = [parameter for parameter in command.parameters if not parameter.option.positional]
    others = [p.option.heading for p in options if p.option.heading not in (*HEADINGS, "")]
    many = len(options) > FEW
    titles = ("arguments", MAIN, *others, *HEADINGS, OTHER) if many else ("arguments", "options")
    result: dict[str, list[Parameter]] = {title: [] for title in titles}
    for parameter in command.parameters:
        option = parameter.option
        title = (option.heading or OTHER) if many else "options"
        if many and (parameter.required or option.front or option.short):
            title = MAIN
        result["arguments" if option.positional else title].append(parameter)
    return {title: parameters for title, parameters in result.items() if parameters}


def _usage(command: Command) -> str:
    """Return the first line of the help, with positional and required arguments."""
    words = ["vmdpotential", command.name]
    for parameter in command.parameters:
        if parameter.option.positional or parameter.required:
            word = _metavar(parameter) + (" ..." if parameter.several else "")
            word = word if parameter.option.positional else f"--{parameter.flag} {word}"
            words.append(word if parameter.required else f"[{word}]")
    return " ".join([*words, "[options]"]).replace("%", "%%")


def _examples(command: Command) -> list[str]:
    return ["examples:", *(f"  vmdpotential {line}" for line in command.examples), ""] if command.examples else []


def _metavar(parameter: Parameter) -> str:
    allowed = parameter.option.shown()
    return parameter.option.metavar or ("|".join(allowed) if allowed else parameter.flag.upper())


def _help(parameter: Parameter) -> str:
    """Return the help of an option, with its unit and default."""
    details = [parameter.option.unit, "required" if parameter.required and not parameter.option.positional else ""]
    default = as_text(() if parameter.required or parameter.default is False else parameter.default)
    details.append(f"default {default}" if default else "")
    text = ", ".join(filter(None, details))
    return (parameter.option.help + (f" ({text})" if text else "")).replace("%", "%%")


def _add(add: Callable[..., argparse.Action], parameter: Parameter) -> list[argparse.Action]:
    """Add the arguments of a parameter by `add`, and return them."""
    option, metavar = parameter.option, _metavar(parameter)
    settings: dict[str, Any] = {"help": _help(parameter), "default": argparse.SUPPRESS}
    if option.positional:
        single, several = (None, "+") if parameter.required else ("?", "*")
        nargs = several if parameter.several else single
        return [add(parameter.name, metavar=metavar, nargs=nargs, **settings)]
    names = [f"--{name.replace('_', '-')}" for name in (*option.aliases, parameter.name)]
    names += [f"-{option.short}"] if option.short else []
    settings["dest"] = parameter.name
    if parameter.type is bool and parameter.default is False:
        hidden = settings | {"help": argparse.SUPPRESS}
        return [add(*names, action=_Switch, **settings), add(f"--no-{parameter.flag}", action=_Switch, **hidden)]
    if parameter.type is bool:
        return [add(*names, f"--no-{parameter.flag}", action=_Switch, **settings)]
    if parameter.several:
        return [add(*names, metavar=metavar, action="extend", nargs="+", **settings)]
    kind = _Added if get_origin(parameter.type) is Mapping else _Once
    return [add(*names, metavar=metavar, action=kind, **settings)]


def join_negative_values(arguments: Sequence[str]) -> list[str]:
    """Write ``--range -5,5`` as ``--range=-5,5``, and ``--view z -z`` as ``--view=z --view=-z``.

    Argparse would take such values for options.
    """
    signed = _signed_options(arguments)
    joined: list[str] = []
    option = ""  # the last one, if it has values that begin with a dash
    for argument in arguments:
        negative = len(argument) > 1 and argument[0] == "-" and (argument[1].isdigit() or argument[1] == ".")
        words, several = signed.get(option, ((), False))
        first = bool(joined) and joined[-1] == option
        if (option in signed and (first or several) and (negative or argument in words)) or (
                several and joined[-1].startswith(f"{option}=") and not argument.startswith("-")):
            if first:
                joined.pop()
            joined.append(f"{option}={argument}")
        elif negative and joined and joined[-1].startswith("--") and joined[-1] != "--" and "=" not in joined[-1]:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
            if argument.startswith("-"):
                option = argument
    return joined


def _signed_options(arguments: Sequence[str]) -> dict[str, tuple[Sequence[str], bool]]:
    """Return the words of those options of the called command that have words which begin with a dash.

    With them is returned whether the option takes several.
    """
    if not arguments or arguments[0] not in registry.available("command"):
        return {}
    words = {f"--{p.flag}": ((*p.option.allowed(), *p.option.words), p.several)
             for p in called_command(arguments).parameters}
    return {flag: (allowed, several) for flag, (allowed, several) in words.items()
            if any(name.startswith("-") for name in allowed)}
