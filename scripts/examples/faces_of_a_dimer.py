"""Faces of a dimer.

The electrostatic complementarity of the two chains of HIV protease, from the deposited entry: the figure of both faces,
turned apart like the pages of a book, and the residues that contribute most. Each face is shown with its own potential
above and with that of the other chain below. On complementary places they have opposite colours.
"""

import sys
from pathlib import Path

import vmdpotential as vp

DATA = Path(__file__).resolve().parents[2] / "data"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/faces_of_a_dimer")
out.mkdir(parents=True, exist_ok=True)

structure = vp.prepare(DATA / "1hvr.pdb.gz").structure
faces = vp.complementarity(structure, between=["//A/1-99", "//B/1-99"], spacing=1.0, mesh_spacing=0.6,
                           figure=out / "faces.png", output=[out / "residues.csv"], force=True)
print(*faces.lines, sep="\n")
table = faces.to_dataframe().sort_values("contribution")
print(table.tail(5).to_string(index=False))
