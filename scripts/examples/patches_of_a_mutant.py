"""Patches of a mutant.

The charged patches of lysozyme's surface at 1 kT/e, from the deposited entry, and what becomes of them when three of
its arginines are alanines: their side chains are cut, and all else that is missing is added. The figures show the
patches on the surface, and the residues with the largest changes; the table has a row for each residue, with its area
in positive and negative patches of both structures.
"""

import sys
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import vmdpotential as vp
from vmdpotential.figures.slices import CURVE_COLOURS
from vmdpotential.figures.style import figure_style

DATA = Path(__file__).resolve().parents[2] / "data"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/patches_of_a_mutant")
out.mkdir(parents=True, exist_ok=True)

lysozyme = vp.read_structure(DATA / "1aki.pdb.gz")
changed = np.isin(lysozyme.residue_ids, [68, 112, 125]) & (lysozyme.residue_names == "ARG")
mutant = replace(lysozyme, residue_names=np.where(changed, "ALA", lysozyme.residue_names))
mutant = mutant.take(np.flatnonzero(~changed | np.isin(mutant.atom_names, ["N", "CA", "C", "O", "CB"])))
vp.write_structure(mutant, out / "mutant.pdb", force=True)

on_surface = vp.surface(DATA / "1aki.pdb.gz", medium="water", method="pb", patches=1.0, spacing=1.0, mesh_spacing=0.6,
                        figure=out / "patches.png", force=True)
print(*on_surface.lines, sep="\n")

found = vp.patches(DATA / "1aki.pdb.gz", others=[out / "mutant.pdb"], output=out / "residues.csv", force=True)
print(*found.lines, sep="\n")
table = found.to_dataframe()
table["change"] = table["mutant positive_area"] - table["positive_area"]
largest = table.reindex(table["change"].abs().sort_values(ascending=False).index)[:12][::-1]
places = np.arange(len(largest))
with figure_style():
    figure, ax = plt.subplots(figsize=(3.5, 2.8), layout="constrained")  # 89 mm, the width of a column
    ax.barh(places + 0.2, largest["positive_area"], 0.4, color=CURVE_COLOURS[0], label="lysozyme")
    ax.barh(places - 0.2, largest["mutant positive_area"], 0.4, color=CURVE_COLOURS[1], label="mutant")
    ax.set_yticks(places, largest["name"].str.removeprefix("A/"))
    ax.set(xlabel="Area in positive patches (Å²)", ylim=(-0.6, len(largest) - 0.4))
    ax.legend(frameon=False)
    figure.savefig(out / "residues.png", dpi=300)
