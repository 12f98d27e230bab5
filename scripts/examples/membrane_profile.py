"""Profile of a membrane.

Charge density, field and potential across a bilayer of POPC (one frame that comes with OpenMM), with the contributions
of lipids and water. The middle of the lipids is at 0, and the mean potential of the water is 0. For a trajectory (XTC,
DCD ...), give `profile` a `vp.Trajectory(path, len(structure))`; standard errors then come from blocks of its frames.
Charges are Gaussians of 1 A, so that the curves of one frame are smooth.
"""

import sys
from pathlib import Path

import openmm

import vmdpotential as vp
from vmdpotential.figures.page import save
from vmdpotential.figures.profiles import profiles
from vmdpotential.frames.profile import profile

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/membrane_profile")
out.mkdir(parents=True, exist_ok=True)

bilayer = vp.assign_charges(vp.read_structure(Path(openmm.__file__).parent / "app" / "data" / "POPC.pdb"))
groups = {name: vp.select(bilayer, name) for name in ("lipid", "water")}
result = profile(bilayer, center=groups["lipid"], zero=groups["water"], sources=groups, smear=1.0)
middle = result.values[0, 2][abs(result.z) < 5].mean()
print(f"the middle of the membrane is at {middle:+.2f} {result.unit} against water")

labels = ("Charge density (e/Å³)", "Field (V/Å)", f"Potential ({result.unit})")
drawn = profiles(result.z, result.names, result.values, result.errors, labels)
save(drawn, out / "profile.png", dpi=200, force=True)
