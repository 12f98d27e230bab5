"""The Poisson-Boltzmann equation as a method, ``apbs``: solved by the program APBS, for maps like all others.

It registers through the entry-point group ``vmdpotential.plugins``, as ``historical`` does.
"""

from __future__ import annotations


def register() -> None:
    """Register the method by its dotted name, which is imported when it is used."""
    from vmdpotential import registry

    registry.register("method", "apbs", f"{__name__}.method:METHOD")
