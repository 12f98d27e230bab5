"""Energies of probe atoms, AutoGrid's maps and free energies of small molecules, with the command ``probe``.

They register through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the command, which is also a function of Python, and what `verify` checks."""
    from vmdpotential import registry

    registry.register("task", "probe", f"{__name__}.command:command")
    registry.register("check", "probes", f"{__name__}.check:check_probes")
