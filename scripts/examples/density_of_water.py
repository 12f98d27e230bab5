"""Water around a protein.

The density of the waters' oxygens around adenylate kinase, relative to the bulk, from the ten frames of the trajectory
in MDAnalysis' tests. Each oxygen is a Gaussian of 1 A, so that a few frames give a smooth map. The slice shows the
protein, where there is no water, and the first hydration layer. The highest maxima are listed; with a long trajectory
they are hydration sites.
"""

import sys
from pathlib import Path

from MDAnalysisTests import datafiles

import vmdpotential as vp

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/density_of_water")
out.mkdir(parents=True, exist_ok=True)

water = vp.density(datafiles.GRO, datafiles.XTC, atoms="//*/(SOL)/OW", unit="relative", fit="protein", padding=8.0,
                   smear=1.0, sites=out / "sites.csv", site_density=1.4, output=out / "water.dx", force=True)
print(*water.lines, sep="\n")
water.grid.plot(structure=datafiles.GRO).figure.savefig(out / "water.png", dpi=300)
