"""Profiles along an axis, and potentials and fields at atoms, bonds and points, over the frames of a trajectory.

The commands ``profile`` and ``field`` register through the entry-point group ``vmdpotential.plugins``, as those of any
other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the commands, which are also functions of Python."""
    from vmdpotential import registry

    for name in ("profile", "field"):
        registry.register("task", name, f"{__name__}.{name}_command:command")
