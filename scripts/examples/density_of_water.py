"""Water around a protein.

The density of the waters' oxygens around adenylate kinase, relative to the bulk, from the ten frames of the trajectory
in MDAnalysis' tests. Each oxygen is a Gaussian of 1 A, so that a few frames give a smooth map. The slice shows the
protein, where there is no water, and the first hydration layer. The highest maxima are printed; with a long trajectory
they are hydration sites.
"""

import sys
from pathlib import Path

from MDAnalysisTests import datafiles

import vmdpotential as vp
from vmdpotential.densities.quantities import count
from vmdpotential.densities.sites import find_sites
from vmdpotential.figures.page import WIDTHS, Panel, compose, save
from vmdpotential.frames.density import DensityOptions, plan_density

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/density_of_water")
out.mkdir(parents=True, exist_ok=True)

structure = vp.read_structure(datafiles.GRO)
frames = vp.Trajectory(Path(datafiles.XTC), len(structure))
protein, water = vp.select(structure, "protein"), vp.select(structure, "//*/(SOL)/OW")
planning = plan_density(structure, frames, count(structure, water, "number", "relative"),
                        DensityOptions(padding=8.0, smear=1.0), alignment={"group": protein, "name": "protein"})
result = planning.merge(planning.run())
grid = result.grids["mean"]
vp.write_map(grid, out / "water.dx", force=True)
print(f"{result.frames} frames; bulk {result.bulk:.4f} oxygens in 1 A^3; at most {grid.values.max():.1f} times that")

density = grid.values.astype(float) * result.bulk
sites = find_sites(density, None, grid.lattice, volume=result.voxel, radius=1.4, most=5)
for site in sites:
    print(f"site at {' '.join(f'{x:.1f}' for x in site.position)} A: {site.occupancy:.2f} waters")

middle = grid.lattice.origin[2] + grid.lattice.spacing[2] * (grid.lattice.shape[2] // 2)
page = compose([Panel(grid, vp.Plane.parse(f"z={middle:.3f}"))], structure=structure, width=WIDTHS["single"])
save(page.figure, out / "water.png", dpi=200, force=True)
