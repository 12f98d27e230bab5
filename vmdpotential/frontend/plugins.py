"""The command ``plugins``."""

from __future__ import annotations

import contextlib
from typing import Annotated

from vmdpotential import registry
from vmdpotential.errors import BackendError
from vmdpotential.parameters import Command, Option, Report


def plugins(
    declarations: Annotated[bool, Option(
        "print the options of all commands for structures and maps instead, for viewers (with --json)",
        viewer=False)] = False,
) -> Report:
    """List commands, methods, interactions and engines, and plugins that failed to load."""
    if declarations:
        from vmdpotential.frontend.declarations import declarations as declare

        declared = declare()
        return Report([f"{name}: {result['summary']}; options: {', '.join(o['name'] for o in result['options'])}"
                       for name, result in declared["commands"].items()], declared)
    names = {kind: registry.available(kind) for kind in registry.KINDS}
    for name in names["command"]:
        with contextlib.suppress(BackendError):  # which `broken` then names
            registry.get("command", name)
    broken = registry.broken()
    lines = [f"{kind}s: {', '.join(registered)}" for kind, registered in names.items()]
    lines += [f"broken plugin {name}: {reason}" for name, reason in broken.items()]
    return Report(lines, {**{f"{kind}s": registered for kind, registered in names.items()}, "broken": broken})


command = Command.of(plugins, examples=(
    "plugins",
    "plugins --json",
))
