"""Topologies and parameters of force fields: what is written for other programs, and read besides PSF and prmtop.

Lennard-Jones parameters are from a prmtop or TPR, from CHARMM's files by ParmEd, or from OpenMM's by OpenMM; charges
of single residues from files of ligands. PSF, prmtop and GROMACS' topologies are written for structures with ions.

They register through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations

#: Suffixes of CHARMM's files, in the order in which they must be read: topologies (for numbered types) first.
CHARMM_SUFFIXES = (".rtf", ".prm", ".par", ".inp", ".str")


def register() -> None:
    """Register the function ``nonbonded``, and readers and writers of topologies and parameters."""
    from vmdpotential import registry

    registry.register("function", "nonbonded", f"{__name__}.forcefield:nonbonded")
    registry.register("structure_reader", "gromacs-topology", f"{__name__}.gromacs_top:read_top")
    registry.register("structure_reader", "mdanalysis", f"{__name__}.mdanalysis_topologies:read_structure")
    registry.register("structure_reader", "mdanalysis-topology", f"{__name__}.mdanalysis_topologies:read_topology")
    registry.register("structure_writer", ".psf", f"{__name__}.psfwrite:WRITER")
    registry.register("structure_writer", ".top", f"{__name__}.gromacs_top:WRITER")
    for suffix in (".prmtop", ".parm7", ".parm"):
        registry.register("structure_writer", suffix, f"{__name__}.prmtopwrite:WRITER")
    registry.register("parameter_reader", "prmtop", f"{__name__}.prmtop_nonbonded:read_nonbonded")
    registry.register("parameter_reader", "residue-charges", f"{__name__}.residue_charges:read_residue_charges")
    registry.register("parameter_reader", "charges", f"{__name__}.residue_charges:read_charges")
