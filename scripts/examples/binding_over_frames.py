"""Energy of binding over frames.

Adenylate kinase opens: two of its domains, LID and NMP, come apart (a path of 98 frames, which comes with the tests of
MDAnalysis; every third is taken). What binds them in water, frame by frame, by a Generalized Born model with a surface
term (MM/GBSA), and which of their residues contribute most. The Coulomb energy is large, and the water compensates for
most of it. The Lennard-Jones parameters are those of OpenMM's CHARMM force field; a prmtop or TPR has its own.

`solvent="pb"` solves the Poisson-Boltzmann equation instead, in seconds a frame on one core. The frames of this path
are not samples at a temperature; with a simulation's trajectory each term has a standard error.
"""

import sys
from pathlib import Path

from MDAnalysisTests.datafiles import DCD, PSF

import vmdpotential as vp

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/binding_over_frames")
out.mkdir(parents=True, exist_ok=True)

options = {"between": ("resid 122-159", "resid 30-59"), "solvent": "gb", "gb_model": "gbn2",
           "surface_tension": 0.0072, "parameters": ["charmm36.xml"], "force": True}
energies = vp.energy(PSF, DCD, frames="::3", figure=out / "terms.png", **options)
print(*energies.lines, sep="\n")
table = energies.to_dataframe()
print(f"closed {table['total'].iloc[0]:.1f}, open {table['total'].iloc[-1]:.1f} kcal/mol")

residues = vp.energy(PSF, DCD, frames="0:10", by="residue", figure=out / "residues.png", **options)
print(residues.to_dataframe().nsmallest(5, "total")[["name", "coulomb", "screening", "desolvation", "total"]])
