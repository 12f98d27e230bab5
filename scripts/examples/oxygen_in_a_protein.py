"""Where oxygen goes in a protein.

Implicit ligand sampling: the free energy of O2 relative to vacuum, everywhere in and around adenylate kinase, from ten
frames of a simulation without it (the trajectory in MDAnalysis' tests). Lennard-Jones parameters are those of the run's
TPR file. The slice shows cavities as red islands in the protein; a converged map needs thousands of frames. The deepest
minima are printed, and the barriers between them.
"""

import sys
from pathlib import Path

from MDAnalysisTests import datafiles

import vmdpotential as vp
from vmdpotential.figures.page import WIDTHS, Panel, compose, save
from vmdpotential.plugins.probes.energies import probe_sum
from vmdpotential.plugins.probes.insertions import plan_insertions
from vmdpotential.plugins.probes.ligands import LIGANDS
from vmdpotential.plugins.probes.paths import minima_and_barriers

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/oxygen_in_a_protein")
out.mkdir(parents=True, exist_ok=True)

structure = vp.read_structure(datafiles.GRO, topology=datafiles.TPR)
frames = vp.Trajectory(Path(datafiles.XTC), len(structure))
protein, oxygen = vp.select(structure, "protein"), LIGANDS["O2"]
terms = vp.nonbonded(structure)
sums = tuple(probe_sum(terms, sigma, epsilon, 10.0)
             for sigma, epsilon in zip(oxygen.sigma.tolist(), oxygen.epsilon.tolist(), strict=True))
planning = plan_insertions(
    structure, frames, oxygen, sums, alignment={"group": protein, "name": "protein"}, lattice=None, spacing=1.0,
    padding=4.0, options={"orientations": 12, "parts": 1, "temperature": 300.0, "boundary": "periodic",
                          "engine": "auto", "fixed_cell": False})
result = planning.merge(planning.run())
grid = result.grids["mean"]
vp.write_map(grid, out / "oxygen.dx", force=True)
print(f"{result.frames} frames; free energy of O2 in the box {result.solvation:.2f} kcal/mol against vacuum")
minima = minima_and_barriers(grid, below=19.0, least=0.6, wraps=False, most=5)
for number, minimum in enumerate(minima, 1):
    way = "" if minimum.barrier is None else f", over {minimum.barrier:.1f} kcal/mol to minimum {minimum.lower + 1}"
    print(f"minimum {number} at {' '.join(f'{x:.0f}' for x in minimum.position)} A: {minimum.energy:.2f} kcal/mol{way}")

page = compose([Panel(grid, vp.Plane.parse(f"z={minima[0].position[2]:g}"))], value_range=(-5.0, 5.0),
               structure=structure, width=WIDTHS["single"])
save(page.figure, out / "oxygen.png", dpi=200, force=True)
