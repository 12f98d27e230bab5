"""Completion of commands and options by a shell's Tab key."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from vmdpotential.errors import BackendError
from vmdpotential.parameters import Command, Option
from vmdpotential.results import Result

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def completion(
    shell: Annotated[str, Option("shell for which the script is printed", choices=SHELLS, positional=True)],
) -> Completion:
    """Print a script by which a shell completes commands, options, their values and files.

    It includes commands of other packages; print it again after installing one.

    Raises
    ------
    BackendError
        When shtab is not installed.
    """
    try:
        import shtab
    except ImportError:
        raise BackendError("completion needs the package shtab", "pip install shtab") from None
    from vmdpotential.frontend.arguments import build_parser, called

    parser = build_parser()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                _with_values(command, called([name]), shtab.FILE)
    return Completion(shell=shell, script=shtab.complete(parser, shell))


class Completion(Result):
    """A script by which a shell completes commands."""

    shell: str
    script: str

    def text(self) -> Iterator[str]:
        """Yield the lines of the script."""
        yield from self.script.splitlines()


def _with_values(parser: argparse.ArgumentParser, command: Command, files: Any) -> None:
    """Add the allowed values of a command's options, or that they are files, for completion."""
    known = {parameter.name: parameter for parameter in command.parameters}
    for action in parser._actions:
        parameter = known.get(action.dest)
        if parameter is not None and parameter.option.allowed():
            action.choices = list(parameter.option.shown())
        elif parameter is not None and parameter.type is Path:
            action.complete = files  # type: ignore[attr-defined]


command = Command.of(completion, repeatable=False, examples=(
    "completion bash > ~/.local/share/bash-completion/completions/vmdpotential",
    "completion fish > ~/.config/fish/completions/vmdpotential.fish",
))
