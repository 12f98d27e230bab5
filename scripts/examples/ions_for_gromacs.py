"""Ions for GROMACS.

A solvated system from `gmx solvate` (GRO and TOP) gets 0.15 mol/L of salt, and GRO and TOP are written for grompp. The
topology keeps its own lines, `[ molecules ]` is updated, and the ions have the names of the force field's ions.itp.
Here the system is water only, with the GROMOS force field of MDAnalysis' tests. The picture shows the potential of the
ions, with the waters around them.
"""

import sys
from pathlib import Path

import openmm
from MDAnalysisTests import datafiles

import vmdpotential as vp

FIELD = Path(datafiles.PDB).parent / "gromacs" / "gromos54a7_edited.ff"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/ions_for_gromacs")
out.mkdir(parents=True, exist_ok=True)

# what gmx solvate leaves
water = vp.read_structure(Path(openmm.__file__).parent / "app" / "data" / "tip3p.pdb")
vp.write_structure(water, out / "water.gro", force=True)
(out / "topol.top").write_text(f"""#include "{FIELD}/forcefield.itp"
#include "{FIELD}/spc.itp"
#include "{FIELD}/ions.itp"

[ system ]
Water

[ molecules ]
SOL {water.residue_count}
""")

structure = vp.read_structure(out / "water.gro", topology=out / "topol.top")
placed = vp.place_ions(structure, cation="NA", anion="CL", concentration=0.15, naming="gromacs")
print(placed)
vp.write_structure(placed.structure, out / "ions.gro", force=True)
vp.write_structure(placed.structure, out / "ions.top", force=True)
print((out / "ions.top").read_text().partition("[ molecules ]")[2].strip())

potential = vp.potential_map(placed.structure, atoms="not water", medium="explicit", spacing=0.75)
axes = potential.plot(plane=f"z={placed.ions[0].position[2]:g}", structure=placed.structure, waters=True)
axes.figure.savefig(out / "ions.png", dpi=300)
