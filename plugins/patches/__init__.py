"""Patches of surfaces over the frames of a trajectory, with the command ``patches``.

It registers through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command, which is also a function of Python, and what `verify` checks."""
    from vmdpotential import registry

    registry.register("task", "patches", f"{__name__}.command:command")
    registry.register("check", "patches", f"{__name__}.check:check_dipole")
