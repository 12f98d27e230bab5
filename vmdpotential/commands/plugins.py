"""The command ``plugins``."""

from __future__ import annotations

from vmdpotential import registry
from vmdpotential.parameters import Command, Report


def plugins() -> Report:
    """List commands, methods, interactions and engines, and plugins that failed to load."""
    names = {kind: registry.available(kind) for kind in registry.KINDS}
    broken = registry.broken()
    lines = [f"{kind}s: {', '.join(found)}" for kind, found in names.items()]
    lines += [f"broken plugin {name}: {reason}" for name, reason in broken.items()]
    return Report(lines, {**{f"{kind}s": found for kind, found in names.items()}, "broken": broken})


command = Command.of(plugins)
