"""Completion of commands and options by a shell's Tab key."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from vmdpotential.extras import load_optional
from vmdpotential.parameters import Command, Option, Parameter
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
    shtab = load_optional("shtab", "completions", "completion")
    from vmdpotential.frontend.arguments import build_parser

    def add_values(action: argparse.Action, parameter: Parameter) -> None:
        """Add the allowed values of an option, or that it is a file."""
        if parameter.option.allowed():
            action.choices = list(parameter.option.shown())
        elif parameter.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]

    parser = build_parser(added=add_values)
    return Completion(shell=shell, script=shtab.complete(parser, shell))


class Completion(Result):
    """A script by which a shell completes commands."""

    shell: str
    script: str

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {"shell": self.shell, "script": self.script}

    def text(self) -> Iterator[str]:
        """Yield the lines of the script."""
        yield from self.script.splitlines()


command = Command.of(completion, repeatable=False, unattended=False, examples=(
    "completion bash > ~/.local/share/bash-completion/completions/vmdpotential",
    "completion fish > ~/.config/fish/completions/vmdpotential.fish",
))
