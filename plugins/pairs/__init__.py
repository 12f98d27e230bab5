"""Pair interactions: energies and forces between selections, binding in a solvent, and distributions of distances.

Its commands are ``energy``, ``forces`` and ``rdf``. They register through the entry-point group
``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the commands, which are also functions of Python, the potentials of pairs, and what `verify` checks."""
    from vmdpotential import registry

    for name in ("energy", "forces", "rdf"):
        registry.register("task", name, f"{__name__}.{name}_command:command")
    registry.register("function", "binding_energy", f"{__name__}.binding:binding_energy")
    for name, attribute in (("lennard_jones", "INTERACTION"), ("lennard_jones_shifted", "SHIFTED"),
                            ("lennard_jones_switched", "SWITCHED")):
        registry.register("pair", name, f"{__name__}.lennard_jones:{attribute}")
    registry.register("check", "pairs", f"{__name__}.checks:check_pairs")
