"""Figure of a protein.

The potential of HIV protease with an inhibitor, from the deposited entry, as figures for a paper: three planes as
panels on one scale, two columns (183 mm) wide, as a PDF with editable text; and the molecular surface from two sides,
as PNG. `prepare` adds hydrogens, protonation states, charges and radii, and reports them. The planes show the medium
`screened`, with one permittivity everywhere, so that values inside the protein can be compared with those outside; the
surface shows the potential in water, by the Poisson-Boltzmann equation.
"""

import sys
from pathlib import Path

import vmdpotential as vp
from vmdpotential.figures import page
from vmdpotential.figures.slices import AtomsOnSlice

DATA = Path(__file__).resolve().parents[2] / "data"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/figure_of_a_protein")
out.mkdir(parents=True, exist_ok=True)

prepared = vp.prepare(DATA / "1hvr.pdb.gz")
print(*prepared.lines, sep="\n")
structure = prepared.structure

potential = vp.potential_map(structure, medium="screened", spacing=1.0)
middle = structure.positions.mean(0).round()
planes = [page.Panel(potential, vp.Plane.parse(f"{axis}={middle['xyz'.index(axis)]:g}")) for axis in "zxy"]
figure = page.compose_slices(planes, value_range=(-5, 5), contours=5, drawn=AtomsOnSlice(structure), width=183).figure
for name in ("planes.pdf", "planes.png"):
    page.save(figure, out / name, dpi=300, force=True)

surface = vp.surface(structure, spacing=1.0, mesh_spacing=0.5, view=("z", "-z"), figure=out / "surface.png", force=True)
print(*surface.lines, sep="\n")
