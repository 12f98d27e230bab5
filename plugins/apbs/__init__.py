"""The method ``apbs``: the Poisson-Boltzmann equation for maps, solved by the program APBS.

It registers through the entry-point group ``vmdpotential.plugins``, as ``historical`` does.
"""

from __future__ import annotations


def register() -> None:
    """Register the method by its dotted name, which is imported only when the method is used."""
    from vmdpotential import registry

    registry.register("method", "apbs", f"{__name__}.method:METHOD")
