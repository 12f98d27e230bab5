"""Figure of a protein.

The potential of HIV protease with an inhibitor, from the deposited entry, as figures for a paper: three planes as
panels on one scale, two columns (183 mm) wide, as a PDF with editable text; and the molecular surface from two sides,
as PNG. `prepare` adds hydrogens, protonation states, charges and radii, and reports them. The planes show the medium
`screened`, with one permittivity everywhere, so that values inside the protein can be compared with those outside; the
surface shows the potential in water, by the Poisson-Boltzmann equation.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

import vmdpotential as vp

DATA = Path(__file__).resolve().parents[2] / "data"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/figure_of_a_protein")
out.mkdir(parents=True, exist_ok=True)
plt.rcParams.update({"font.size": 7, "pdf.fonttype": 42})

prepared = vp.prepare(DATA / "1hvr.pdb.gz")
print(*prepared.lines, sep="\n")
structure = prepared.structure

potential = vp.potential_map(structure, medium="screened", spacing=1.0)
figure, panels = plt.subplots(1, 3, figsize=(183 / 25.4, 2.6), layout="constrained")
for panel, axis, position in zip(panels, "zxy", structure.positions.mean(0)[[2, 0, 1]].round(), strict=True):
    image = vp.draw_slice(panel, potential, f"{axis}={position:g}", value_range=(-5, 5), contours=5,
                          structure=structure)
figure.colorbar(image, ax=panels, label=f"potential ({potential.unit})")
figure.savefig(out / "planes.pdf")
figure.savefig(out / "planes.png", dpi=150)

surface = vp.surface(structure, spacing=1.0, mesh_spacing=0.8, view=("z", "-z"), figure=out / "surface.png", force=True)
print(*surface.lines, sep="\n")
