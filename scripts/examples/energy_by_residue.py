"""Energy by residue.

Which residues of a protein bind its water most strongly: Coulomb energies without a cutoff, and Lennard-Jones up to
12 A, of each residue with all water. The Lennard-Jones parameters are those of OpenMM's Amber force field; a prmtop or
TPR has its own. With a trajectory as the second argument, the energies are means with standard errors.
"""

import sys
from pathlib import Path

import vmdpotential as vp

DATA = Path(__file__).resolve().parents[2] / "data"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/energy_by_residue")
out.mkdir(parents=True, exist_ok=True)

energies = vp.energy(DATA / "dhfr.pdb.gz", between=("protein", "water"), by="residue",
                     parameters=["amber14-all.xml", "amber14/tip3p.xml"], figure=out / "residues.png", force=True)
print(*energies.lines, sep="\n")
print(energies.to_dataframe().nsmallest(5, "total")[["a", "coulomb", "lennard_jones", "total"]])
