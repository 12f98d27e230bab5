"""Profile of a membrane.

Charge density, field and potential across a bilayer of POPC (one frame that comes with OpenMM), with the contributions
of lipids and water. The middle of the lipids is at 0, and the mean potential of the water is 0.

The charges have to be those that the frame was simulated with: the potential of a membrane is a small difference of the
large contributions of lipids and water, which cancel only if water was oriented by the same charges. Here they are
those of Amber's force fields, from OpenMM. One frame also fluctuates by some tenths of a volt: for a result, give
`profile` a trajectory as the second argument, whose blocks then yield standard errors. Charges are Gaussians of 1 A, so
that the curves of one frame are smooth.
"""

import sys
from pathlib import Path

import openmm.app

import vmdpotential as vp

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/membrane_profile")
out.mkdir(parents=True, exist_ok=True)

file = openmm.app.PDBFile(str(Path(openmm.__file__).parent / "app" / "data" / "POPC.pdb"))
force_field = openmm.app.ForceField("amber14-all.xml", "amber14/tip3p.xml")
bilayer = vp.Structure.from_openmm(file.topology, file.positions, force_field.createSystem(file.topology))
profile = vp.profile(bilayer, center="lipid", zero="water", from_=("lipid", "water"), smear=1.0,
                     figure=out / "profile.png", force=True)
print(*profile.lines, sep="\n")
table = profile.to_dataframe()
middle = table[abs(table["z (A)"]) < 5]["potential (V)"].mean()
print(f"in this frame the middle of the membrane is at {middle:+.2f} V against water")
