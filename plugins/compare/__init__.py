"""Comparison of two maps, with the command ``compare``.

It registers through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command, which is also a function of Python."""
    from vmdpotential import registry

    registry.register("task", "compare", f"{__name__}.command:command")
