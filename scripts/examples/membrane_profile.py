"""Profile of a membrane.

Charge density, field and potential across a bilayer of POPC (the one frame that comes with OpenMM), with what lipids
and water contribute. The middle of the lipids is at 0, and so is the mean potential of the water. A trajectory (XTC,
DCD ...) goes into `profile` as `Trajectory(path, len(structure))`; standard errors then come from blocks of its frames.
Charges are Gaussians of 1 A, so that the curves of one frame are smooth.
"""

import sys
from pathlib import Path

import openmm

import vmdpotential as vp
from vmdpotential.figures.page import save
from vmdpotential.figures.profiles import profiles
from vmdpotential.frames.profile import profile
from vmdpotential.molecule.selection import select

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/membrane_profile")
out.mkdir(parents=True, exist_ok=True)

bilayer = vp.assign_charges(vp.read_structure(Path(openmm.__file__).parent / "app" / "data" / "POPC.pdb"))
groups = {name: select(bilayer, name) for name in ("lipid", "water")}
found = profile(bilayer, center=groups["lipid"], zero=groups["water"], sources=groups, smear=1.0)
middle = found.values[0, 2][abs(found.z) < 5].mean()
print(f"the middle of the membrane is at {middle:+.2f} {found.unit} against water")

labels = ("Charge density (e/Å³)", "Field (V/Å)", f"Potential ({found.unit})")
drawn = profiles(found.z, found.names, found.values, found.errors, labels)
save(drawn, out / "profile.png", dpi=200, force=True)
