"""The shell program ``vmdpotential``, built from the command registry."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from vmdpotential import __version__, progress, registry
from vmdpotential.errors import UsageError, VmdpotentialError
from vmdpotential.parameters import Command, Parameter

EXIT_CODES = """exit codes: 0 done; 2 wrong usage or unsuitable input; 3 the task cannot be done;
4 an engine or package asked for by name is missing; 130 interrupted"""


class _Parser(argparse.ArgumentParser):
    """argparse, but an error is one line, as everywhere in this program."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see '{self.prog} --help'")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all registered commands."""
    parser = _Parser(
        prog="vmdpotential", epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Electrostatic potential maps, ion placement and slice images of molecular structures.",
    )
    parser.add_argument("--version", action="version", version=f"vmdpotential {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in registry.available("command"):
        command: Command = registry.get("command", name)
        sub = commands.add_parser(
            name, help=command.summary, description=command.description, epilog=EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )
        for parameter in command.parameters:
            _add(sub, parameter)
        sub.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    return parser


def _add(parser: argparse.ArgumentParser, parameter: Parameter) -> None:
    option = parameter.option
    text = option.help.replace("%", "%%")
    details = [option.unit] if option.unit else []
    if parameter.default not in (None, ()) and not parameter.required:
        default = parameter.default
        if isinstance(default, bool):  # not 0.0 and 1.0, which equal False and True
            default = "yes" if default else "no"
        details.append(f"default {default}")
    if details:
        text += f" ({', '.join(map(str, details))})".replace("%", "%%")
    allowed = option.allowed()
    settings: dict[str, Any] = {"help": text, "default": argparse.SUPPRESS}
    metavar = option.metavar or ("|".join(allowed) if allowed else parameter.flag.upper())
    if option.positional:
        nargs = "+" if parameter.several else None if parameter.required else "?"
        parser.add_argument(parameter.name, metavar=metavar, nargs=nargs, **settings)
        return
    names = [f"--{parameter.flag}"] + ([f"-{option.short}"] if option.short else [])
    if parameter.type is bool:
        parser.add_argument(*names, action=argparse.BooleanOptionalAction, **settings)
    elif parameter.several:
        parser.add_argument(*names, metavar=metavar, action="extend", nargs="+", **settings)
    else:
        parser.add_argument(*names, metavar=metavar, **settings)


def run(arguments: Sequence[str]) -> None:
    """Parse, run and print one command.

    Raises
    ------
    VmdpotentialError
        Whatever the command raises.
    """
    values = vars(build_parser().parse_args(_join_negative_values(arguments)))
    command: Command = registry.get("command", values.pop("command"))
    as_json = values.pop("json")
    with progress.listening(progress.Terminal()):
        report = command(**values)
    print(json.dumps(report.data, allow_nan=False) if as_json else "\n".join(report.lines))


def _join_negative_values(arguments: Sequence[str]) -> list[str]:
    """Write ``--range -5,5`` as ``--range=-5,5``, because argparse takes ``-5,5`` for an option."""
    joined: list[str] = []
    for argument in arguments:
        negative = len(argument) > 1 and argument[0] == "-" and (argument[1].isdigit() or argument[1] == ".")
        if negative and joined and joined[-1].startswith("--") and "=" not in joined[-1]:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except VmdpotentialError as error:
        print(f"vmdpotential: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except MemoryError:
        print("vmdpotential: out of memory; use a larger --spacing or fewer atoms", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("vmdpotential: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output, such as head, has gone
        sys.stderr.close()
    return 0
