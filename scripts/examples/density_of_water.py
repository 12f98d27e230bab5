"""Water around a protein.

The density of water's oxygens around adenylate kinase, relative to that of the bulk, over the ten frames of the
trajectory that comes with MDAnalysis' tests. Each oxygen is a Gaussian of 1 A, so that so few frames make a smooth map.
The slice shows the protein's place, which no water enters, and the first layer of water around it. The highest maxima
are printed; a long trajectory makes of them sites where waters stay.
"""

import sys
from pathlib import Path

from MDAnalysisTests import datafiles

import vmdpotential as vp
from vmdpotential.densities.quantities import count
from vmdpotential.densities.sites import find_sites
from vmdpotential.figures.page import WIDTHS, Panel, compose, save
from vmdpotential.frames.blocks import run_blocks
from vmdpotential.frames.density import merge, plan_density
from vmdpotential.io.trajectories.frames import Trajectory
from vmdpotential.molecule.selection import select

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/density_of_water")
out.mkdir(parents=True, exist_ok=True)

structure = vp.read_structure(datafiles.GRO)
frames = Trajectory(Path(datafiles.XTC), len(structure))
protein, water = select(structure, "protein"), select(structure, "//*/(SOL)/OW")
planning = plan_density(structure, frames, count(structure, water, "number", "relative"), spacing=1.0, padding=8.0,
                        width=1.0, alignment={"group": protein, "name": "protein"})
found = merge(planning, run_blocks(planning.work, planning.numbers, size=planning.size))
grid = found.grids["mean"]
vp.write_map(grid, out / "water.dx", force=True)
print(f"{found.frames} frames; bulk {found.bulk:.4f} oxygens in 1 A^3; at most {grid.values.max():.1f} times that")

density = grid.values.astype(float) * found.bulk
sites = find_sites(density, None, grid.lattice, volume=found.voxel, radius=1.4, most=5)
for site in sites:
    print(f"site at {' '.join(f'{x:.1f}' for x in site.position)} A: {site.occupancy:.2f} waters")

middle = grid.lattice.origin[2] + grid.lattice.spacing[2] * (grid.lattice.shape[2] // 2)
page = compose([Panel(grid, vp.Plane.parse(f"z={middle:.3f}"))], structure=structure, width=WIDTHS["single"])
save(page.figure, out / "water.png", dpi=200, force=True)
