"""Titration of proteins: pKa values and curves by the Poisson-Boltzmann equation, with the command ``titrate``.

They register through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command, the pKa values for protonation states, and what `verify` checks."""
    from vmdpotential import registry

    registry.register("task", "titrate", f"{__name__}.command:command")
    registry.register("pka", "pb", f"{__name__}.titration:pka_values")
    registry.register("check", "titration", f"{__name__}.check:check_titration")
