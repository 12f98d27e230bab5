"""Orbitals of benzene.

PySCF computes benzene and writes a Molden file. Its highest occupied and lowest unoccupied orbitals become maps, drawn
as isosurfaces of both signs, and as a slice 1 A above the ring, next to the electron density in the plane of the ring.
The cube files open in PyMOL, VMD and ChimeraX.
"""

import math
import sys
from pathlib import Path

import numpy as np
from pyscf import gto, scf
from pyscf.tools import molden
from skimage.measure import marching_cubes

import vmdpotential as vp
from vmdpotential.figures import page, slices, surfaces
from vmdpotential.surfaces import Surface

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/orbitals_of_benzene")
out.mkdir(parents=True, exist_ok=True)

ring = [(element, (r * math.cos(n * math.pi / 3), r * math.sin(n * math.pi / 3), 0.0))
        for element, r in (("C", 1.397), ("H", 2.481)) for n in range(6)]
molecule = gto.M(atom=ring, basis="6-31G*", cart=False, verbose=0)
file = out / "benzene.molden"
molden.from_scf(scf.RHF(molecule).run(), str(file))

sizes = {"spacing": 0.12, "padding": 2.5, "force": True}
orbitals = {name: vp.orbital(file, orbital=name, output=out / f"{name}.cube", **sizes) for name in ("homo", "lumo")}
density = vp.orbital(file, density=True, output=out / "density.cube", **sizes)
for result in (*orbitals.values(), density):
    print(*result.lines, sep="\n")

atoms = slices.AtomsOnSlice(density.structure)
panels = [page.Panel(result.grid, vp.Plane.parse("z=1"), name.upper()) for name, result in orbitals.items()]
drawn = page.compose_slices(panels, value_range=(-0.3, 0.3), contours=8, drawn=atoms, label="orbital (Å⁻³ᐟ²)")
page.save(drawn.figure, out / "slices.png", dpi=300, force=True)
axes = density.grid.plot(plane="z=0", contours=4, value_range=(0, 2), structure=density.structure)
axes.figure.savefig(out / "density.png", dpi=300)

LEVEL = 0.08  # A^-3/2
for name, result in orbitals.items():
    grid = result.grid
    parts = [marching_cubes(sign * grid.values, LEVEL, spacing=tuple(grid.lattice.spacing), gradient_direction="ascent")
             for sign in (1, -1)]
    vertices = np.concatenate([part[0] for part in parts]) + grid.lattice.origin
    triangles = np.concatenate([parts[0][1], parts[1][1] + len(parts[0][0])])
    signs = np.repeat([1.0, -1.0], [len(part[0]) for part in parts])
    both = Surface(vertices, triangles, np.zeros(len(vertices), np.int64), np.ones(len(vertices)), "isosurface",
                   np.zeros(len(vertices), bool))
    label = f"{slices.short_label(grid)}, isosurfaces of ±{LEVEL}"
    drawn = surfaces.figure(both, LEVEL * signs, ["z", "-y"], (-2 * LEVEL, 2 * LEVEL), label,
                           structure=result.structure)
    page.save(drawn, out / f"{name}.png", dpi=300, force=True)
