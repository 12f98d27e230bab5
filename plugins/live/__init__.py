"""Maps that follow what a viewer shows, with the command ``live``.

It registers through the entry-point group ``vmdpotential.plugins``, as those of any other package. What the
adapters of viewers share of such a map is :class:`vmdpotential.plugins.viewers.following.FollowingMap`.
"""

from __future__ import annotations


def register() -> None:
    """Register the command."""
    from vmdpotential import registry

    registry.register("command", "live", f"{__name__}.command:command")
