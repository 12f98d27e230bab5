"""The command ``plugins``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from vmdpotential import registry
from vmdpotential.parameters import Command, Option
from vmdpotential.results import Result


def plugins(
    declarations: Annotated[bool, Option(
        "print the options of all commands for structures and maps instead, for viewers (with --json)",
        viewer=False)] = False,
) -> PluginList | Declarations:
    """List commands, methods, solvers, interactions and engines, and plugins that failed to load."""
    if declarations:
        return Declarations(declared=registry.get("answer", "declarations")())
    names = {f"{kind}s": registry.available(kind) for kind in registry.KINDS}
    return PluginList(names=names, broken=registry.broken(commands=True))


class PluginList(Result):
    """The registered names of every kind, and plugins that failed to load."""

    names: Mapping[str, Sequence[str]]
    broken: Mapping[str, str]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {**self.names, "broken": self.broken}

    def text(self) -> Iterator[str]:
        """Yield a line for each kind and each broken plugin."""
        yield from (f"{kind}: {', '.join(registered)}" for kind, registered in self.names.items())
        yield from (f"broken plugin {name}: {reason}" for name, reason in self.broken.items())


class Declarations(Result):
    """The options of all commands for structures and maps."""

    declared: Mapping[str, Any]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {**self.declared}

    def text(self) -> Iterator[str]:
        """Yield a line for each command."""
        for name, command in self.declared["commands"].items():
            yield f"{name}: {command['summary']}; options: {', '.join(o['name'] for o in command['options'])}"


command = Command.of(plugins, examples=(
    "plugins",
    "plugins --json",
))
