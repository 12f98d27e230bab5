"""Ions for Amber.

A dipeptide in a box of TIP3P from tleap (prmtop and rst7) gets 0.15 mol/L of salt at random waters. The new prmtop and
rst7, for sander, pmemd or OpenMM, keep all bonds, angles and exclusions of the remaining atoms. The ions have the van
der Waals parameters of Amber's force field in OpenMM; a frcmod can be used as well. Random sites are a suitable start
for a simulation that is to find the distribution of the ions itself. The picture shows the potential of the ions and
the peptide on the plane through the first ion.
"""

import subprocess
import sys
from pathlib import Path

from MDAnalysisTests import datafiles

import vmdpotential as vp

AMBER = Path(datafiles.PDB).parent / "Amber"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/ions_for_amber")
out.mkdir(parents=True, exist_ok=True)

subprocess.run([sys.executable, "-m", "vmdpotential", "ionize", AMBER / "parmed_ala2_solv.rst7",
                "--topology", AMBER / "parmed_ala2_solv.parm7", "--parameters", "amber14/tip3p.xml",
                "--concentration", "0.15", "--site", "random", "--seed", "1",
                "-o", out / "ions.prmtop", "-o", out / "ions.rst7", "--force"], check=True)

structure = vp.read_structure(out / "ions.rst7", topology=out / "ions.prmtop")
potential = vp.potential_map(structure, atoms="not water", medium="explicit", spacing=0.75)
height = structure.positions[vp.select(structure, "ions")][0, 2]
axes = potential.plot(plane=f"z={height:g}", structure=structure, slab=4, value_range=(-500, 500))
axes.figure.savefig(out / "ions.png", dpi=300)
