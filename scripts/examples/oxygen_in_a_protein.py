"""Where oxygen goes in a protein.

Implicit ligand sampling: the free energy of O2 relative to vacuum, everywhere in and around adenylate kinase, from five
frames of a simulation without it (the trajectory in MDAnalysis' tests). Lennard-Jones parameters are those of the run's
TPR file. The slice through the deepest minimum shows a cavity as a red island inside the outline of the molecular
surface; a converged map needs thousands of frames. The report lists the minima, and the barriers between them.
"""

import sys
from pathlib import Path

import pandas as pd
from MDAnalysisTests import datafiles

import vmdpotential as vp

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/oxygen_in_a_protein")
out.mkdir(parents=True, exist_ok=True)

oxygen = vp.probe(datafiles.GRO, datafiles.XTC, topology=datafiles.TPR, ligand="O2", fit="protein", spacing=1.0,
                  padding=4.0, places=1, cutoff=10.0, temperature=300.0, frames="::2", paths=out / "paths.csv",
                  output=out / "oxygen.dx", force=True)
print(*oxygen.lines, sep="\n")
minima = pd.read_csv(out / "paths.csv")
axes = oxygen.grid.plot(plane=f"z={minima['z (A)'][0]:.0f}", structure=datafiles.GRO, value_range=(-5, 0),
                          interior="outlined")
axes.figure.savefig(out / "oxygen.png", dpi=300)
