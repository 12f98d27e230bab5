"""Densities of atoms over the frames of a trajectory, with the command ``density``.

They register through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command, which is also a function of Python, and what `verify` checks."""
    from vmdpotential import registry

    registry.register("task", "density", f"{__name__}.command:command")
    registry.register("check", "densities", f"{__name__}.check:check_counts")
