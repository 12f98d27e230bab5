"""Any command for many input files or for the rows of a table, the command ``batch``.

It registers through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command."""
    from vmdpotential import registry

    registry.register("command", "batch", f"{__name__}.command:command")
