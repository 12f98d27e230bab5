"""Figure of a protein.

The potential of HIV protease with an inhibitor, from the deposited entry, as figures for a paper: three planes as
panels on one scale, two columns (183 mm) wide, as a PDF with editable text; and the molecular surface from two sides,
as PNG. `prepare_structure` adds hydrogens, protonation states, charges and radii, and reports them. `screened=0.15` is
the potential in water with 0.15 mol/L of salt: on the planes with one permittivity everywhere, so that values inside
the protein can be compared with those outside, and on the surface by the Poisson-Boltzmann equation (`method="pb"`).
"""

import sys
from pathlib import Path

import vmdpotential as vp
from vmdpotential.figures.colours import colour_range
from vmdpotential.figures.page import WIDTHS, Panel, compose, save
from vmdpotential.figures.slices import short_label
from vmdpotential.figures.surfaces import figure
from vmdpotential.surfaces import molecular_surface

DATA = Path(__file__).resolve().parents[2] / "data"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/figure_of_a_protein")
out.mkdir(parents=True, exist_ok=True)

prepared = vp.prepare_structure(vp.read_structure(DATA / "1hvr.pdb.gz"))
print(*prepared.lines(), sep="\n")
structure = prepared.structure
potential = vp.potential_map(structure, spacing=1.0, boundary="open", screened=0.15)

x, y, z = structure.positions.mean(0).round()
planes = [vp.Plane.parse(text) for text in (f"z={z:g}", f"x={x:g}", f"y={y:g}")]
page = compose([Panel(potential, plane) for plane in planes], contours=5, structure=structure, width=WIDTHS["double"])
save(page.figure, out / "planes.pdf", force=True)
save(page.figure, out / "planes.png", dpi=150, force=True)

potential = vp.potential_map(structure, spacing=1.0, method="pb", screened=0.15)
surface = molecular_surface(structure, spacing=0.8)
values = surface.sample(potential, 1.4)  # A, where a water's centre would be
print(f"{surface.area:.0f} A^2, mean {(values * surface.areas).sum() / surface.areas.sum():.1f} {potential.unit}")
drawn = figure(surface, values, ["z", "-z"], colour_range([potential], [values]), short_label(potential))
save(drawn, out / "surface.png", dpi=200, force=True)
