"""Completion of structures: hydrogens, missing atoms, protonation states, charges and radii, the command ``prepare``.

They register through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command, what adds missing atoms before other tasks, and the sources of pKa values."""
    from vmdpotential import registry

    registry.register("task", "prepare", f"{__name__}.command:command")
    registry.register("preparation", "prepare", f"{__name__}.prepare:prepare_structure")
    registry.register("pka", "model", f"{__name__}.states:model_values")
    registry.register("pka", "propka", f"{__name__}.propka:propka_values")
