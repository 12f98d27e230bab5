"""A peptide in water with the parameters of its prmtop, for probes and insertions."""

from functools import cache

from helpers import TOOLS

from vmdpotential import io
from vmdpotential.plugins.forcefields.forcefield import nonbonded

PEPTIDE = TOOLS / "alanine-dipeptide-explicit"


@cache
def peptide_and_terms():
    structure = io.read_structure(PEPTIDE / "alanine-dipeptide.crd", PEPTIDE / "alanine-dipeptide.prmtop")
    return structure, nonbonded(structure)
