"""Ions for a solvated structure: their numbers (counts, salts), sites (sites, montecarlo), and the edit (edit).

The command is ``ionize``. It registers through the entry-point group ``vmdpotential.plugins``, as those of any other
package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command, and the functions of Python that place ions."""
    from vmdpotential import registry

    registry.register("command", "ionize", f"{__name__}.command:command")
    for name in ("place_ions", "place_replicas"):
        registry.register("function", name, f"{__name__}.place:{name}")
