"""Ions in pores: their free energy along a path by the Poisson-Boltzmann equation, with the command ``born``.

It registers through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command, which is also a function of Python, and what `verify` checks."""
    from vmdpotential import registry

    registry.register("task", "born", f"{__name__}.command:command")
    registry.register("check", "pores", f"{__name__}.check:check_pores")
    registry.register("check", "voltage", f"{__name__}.check:check_voltage")
