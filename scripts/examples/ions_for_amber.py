"""Ions for Amber.

A dipeptide in a box of TIP3P from tleap (prmtop and rst7) gets 0.15 mol/L of salt at random waters. The new prmtop and
rst7, for sander, pmemd or OpenMM, keep all bonds, angles and exclusions of the remaining atoms. The ions have the van
der Waals parameters of Amber's force field in OpenMM; a frcmod can be used as well. Random sites are a suitable start
for a simulation that is to find the distribution of the ions itself. The picture shows the potential of the ions and
the peptide on the plane with most ions.
"""

import sys
from pathlib import Path

import numpy as np
from MDAnalysisTests import datafiles

import vmdpotential as vp
from vmdpotential.figures.page import Panel, compose, save
from vmdpotential.io import write_structures
from vmdpotential.io.topologies.ion_parameters import attached

AMBER = Path(datafiles.PDB).parent / "Amber"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/ions_for_amber")
out.mkdir(parents=True, exist_ok=True)

structure = vp.read_structure(AMBER / "parmed_ala2_solv.rst7", topology=AMBER / "parmed_ala2_solv.parm7")
placed = vp.place_ions(structure, concentration=0.15, site="random", seed=1)
print(placed)
ready = attached(placed.structure, [Path("amber14/tip3p.xml")])
write_structures(ready, [out / "ions.prmtop", out / "ions.rst7"], force=True)

potential = vp.potential_map(placed.structure, atoms="solute", spacing=0.75)
heights = np.array([ion.position[2] for ion in placed.ions])
plane = vp.Plane.across(2, round(float(heights[np.argmax([(abs(heights - z) < 2).sum() for z in heights])])))
page = compose([Panel(potential, plane)], structure=placed.structure, slab=4)
save(page.figure, out / "ions.png", dpi=200, force=True)
