"""Energy by residue.

Which residues of a protein bind its water most strongly: Coulomb energies without a cutoff, and Lennard-Jones up to
12 A, of each residue with all water. The Lennard-Jones parameters are those of OpenMM's Amber force field; a prmtop or
TPR has its own. `Between` is planned once, and `run` takes the positions of any frame.
"""

import sys
from pathlib import Path

import numpy as np

import vmdpotential as vp
from vmdpotential.figures.page import save
from vmdpotential.figures.pairs import draw_residues, residues
from vmdpotential.pairs.energy import Between, by_residue

DATA = Path(__file__).resolve().parents[2] / "data"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/energy_by_residue")
out.mkdir(parents=True, exist_ok=True)

structure = vp.assign_charges(vp.read_structure(DATA / "dhfr.pdb.gz"))
terms = vp.nonbonded(structure, ["amber14-all.xml", "amber14/tip3p.xml"])
pairs = Between(structure, terms, vp.select(structure, "protein"), vp.select(structure, "water"))
energies = pairs.run(structure.positions, structure.cell)

rows, coulomb = by_residue(structure, energies.atoms, energies.coulomb)
_, lennard_jones = by_residue(structure, energies.atoms, energies.lennard_jones)
first = structure.residue_starts[rows]
names = [f"{structure.residue_names[n]} {structure.residue_ids[n]}" for n in first]
print(f"Coulomb {energies.coulomb.sum():.1f}, Lennard-Jones {energies.lennard_jones.sum():.1f} kcal/mol; "
      f"most with {names[int(np.argmin(coulomb + lennard_jones))]}")
figure = residues(
    lambda axes: draw_residues(axes, names, coulomb, lennard_jones, title="protein with water"), len(names))
save(figure, out / "residues.png", dpi=200, force=True)
