"""The time of a map on this machine, the command ``benchmark``.

It registers through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command."""
    from vmdpotential import registry

    registry.register("command", "benchmark", f"{__name__}.command:command")
