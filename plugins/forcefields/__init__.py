"""Lennard-Jones parameters of a structure from force fields: CHARMM's files by ParmEd, and OpenMM's by OpenMM.

They register through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations

#: Suffixes of CHARMM's files, in the order in which they must be read: topologies (for numbered types) first.
CHARMM_SUFFIXES = (".rtf", ".prm", ".par", ".inp", ".str")


def register() -> None:
    """Register the function ``nonbonded``, and the parameters of ions in these files."""
    from vmdpotential import registry

    registry.register("function", "nonbonded", f"{__name__}.forcefield:nonbonded")
    registry.register("ion_parameters", ".xml", f"{__name__}.openmm:ion_parameters")
    for suffix in CHARMM_SUFFIXES:
        registry.register("ion_parameters", suffix, f"{__name__}.charmm:ion_parameters")
