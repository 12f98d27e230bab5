"""Orbitals of benzene.

PySCF computes benzene and writes a Molden file. Its highest occupied and lowest unoccupied orbitals become maps, drawn
as isosurfaces of both signs, and as a slice 1 A above the ring, next to the electron density in the plane of the ring.
The cube files open in PyMOL, VMD and ChimeraX.
"""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from pyscf import gto, scf
from pyscf.tools import molden
from skimage.measure import marching_cubes

import vmdpotential as vp
from vmdpotential.figures.page import WIDTHS, Panel, compose, save
from vmdpotential.figures.slices import short_label
from vmdpotential.figures.surfaces import figure
from vmdpotential.plugins.orbitals.evaluate import density_map, orbital_map
from vmdpotential.plugins.orbitals.read import read_wavefunction
from vmdpotential.surfaces import Surface

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/orbitals_of_benzene")
out.mkdir(parents=True, exist_ok=True)

ring = [(element, (r * math.cos(n * math.pi / 3), r * math.sin(n * math.pi / 3), 0.0))
        for element, r in (("C", 1.397), ("H", 2.481)) for n in range(6)]
molecule = gto.M(atom=ring, basis="6-31G*", cart=False, verbose=0)
molden.from_scf(scf.RHF(molecule).run(), str(out / "benzene.molden"))

wavefunction = read_wavefunction(out / "benzene.molden")
structure = wavefunction.structure()
lattice = vp.Lattice.around(wavefunction.positions, spacing=0.12, padding=3.5)
orbitals = {name: orbital_map(wavefunction, lattice, wavefunction.find(name)) for name in ("homo", "lumo")}
density = density_map(wavefunction, lattice)
for name, grid in orbitals.items():
    vp.write_map(grid, out / f"{name}.cube", force=True)
    norm = float((grid.values.astype(float) ** 2).sum() * lattice.spacing.prod())
    print(f"{name}: {grid.provenance.quantity}, integral of the square {norm:.4f}")

panels = [Panel(replace(grid, provenance=replace(grid.provenance, quantity="orbital")), vp.Plane.parse("z=1"),
                name.upper()) for name, grid in orbitals.items()]
page = compose(panels, contours=8, structure=structure, width=WIDTHS["double"])
save(page.figure, out / "slices.png", dpi=150, force=True)
inside = vp.Grid(lattice, np.minimum(density.values, 2.0), density.unit, provenance=density.provenance)
page = compose([Panel(inside, vp.Plane.parse("z=0"))], contours=8, structure=structure, width=WIDTHS["single"])
save(page.figure, out / "density.png", dpi=150, force=True)

LEVEL = 0.08  # A^-3/2
for name, grid in orbitals.items():
    parts = [marching_cubes(sign * grid.values, LEVEL, spacing=tuple(lattice.spacing)) for sign in (1, -1)]
    vertices = np.concatenate([part[0] for part in parts]) + lattice.origin
    triangles = np.concatenate([parts[0][1], parts[1][1] + len(parts[0][0])])
    signs = np.repeat([1.0, -1.0], [len(part[0]) for part in parts])
    both = Surface(vertices, triangles, np.zeros(len(vertices), np.int64), np.ones(len(vertices)), "isosurface",
               np.zeros(len(vertices), bool))
    drawn = figure(both, LEVEL * signs, ["z", "-y"], (-2 * LEVEL, 2 * LEVEL), short_label(grid), WIDTHS["double"])
    save(drawn, out / f"{name}.png", dpi=200, force=True)
