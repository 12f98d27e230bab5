"""Orbitals, electron densities and potentials of quantum chemistry as maps, with the command ``orbital``.

They register through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command, which is also a function of Python, and what `verify` checks."""
    from vmdpotential import registry

    registry.register("task", "orbital", f"{__name__}.command:command")
    registry.register("check", "orbitals", f"{__name__}.check:check_gaussian")
