"""The solver ``apbs``: the Poisson-Boltzmann equation for maps by the program APBS.

It registers through the entry-point group ``vmdpotential.plugins``, as ``historical`` does.
"""

from __future__ import annotations


def register() -> None:
    """Register the solver by its dotted name, which is imported only when the solver is used."""
    from vmdpotential import registry

    registry.register("solver", "apbs", f"{__name__}.method:SOLVER")
