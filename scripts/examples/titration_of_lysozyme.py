"""Titration of lysozyme.

The pKa values of hen egg-white lysozyme by the Poisson-Boltzmann equation, drawn next to measured ones and those of
model compounds; its titration curves, with the net charge; and the sites that are shifted most.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

import vmdpotential as vp
from vmdpotential.figures.slices import CURVE_COLOURS
from vmdpotential.figures.style import figure_style

DATA = Path(__file__).resolve().parents[2] / "data"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/titration_of_lysozyme")
out.mkdir(parents=True, exist_ok=True)

# by NMR: K. Bartik, C. Redfield, C. M. Dobson, Biophys. J. 66 (1994) 1180
MEASURED = {"GLU7": 2.85, "HIS15": 5.36, "ASP18": 2.66, "GLU35": 6.20, "ASP52": 3.68, "ASP87": 2.07, "ASP101": 4.08,
            "ASP119": 3.20}

titration = vp.titrate(DATA / "1aki.pdb.gz", figure=out / "curves.png", curves=out / "curves.csv", force=True)
print(*titration.lines, sep="\n")
sites = titration.to_dataframe()
sites["shift"] = sites["pka"] - sites["model_pka"]
print(sites.nlargest(5, "shift")[["site", "pka", "shift"]])

known = sites[sites["site"].str.removesuffix(" A").isin(MEASURED)]
measured = [MEASURED[site.removesuffix(" A")] for site in known["site"]]
with figure_style():
    figure, ax = plt.subplots(figsize=(3.5, 3.5), layout="constrained")  # 89 mm, the width of a column
    ax.plot([1, 7], [1, 7], color="grey", linewidth=0.8)
    ax.errorbar(measured, known["pka"], yerr=known["error"], fmt="o", color=CURVE_COLOURS[0], markersize=4,
                label="computed in the protein")
    ax.plot(measured, known["model_pka"], "x", color=CURVE_COLOURS[1], markersize=4, label="model compounds")
    for site, x, y in zip(known["site"], measured, known["pka"], strict=True):
        side = 1 if y > x else -1  # slanting away from the line, so that those of neighbours do not overlap
        ax.annotate(site.removesuffix(" A"), (x, y), xytext=(-3 * side, 3 * side), rotation=-40,
                    textcoords="offset points", ha="right" if side > 0 else "left", va="bottom" if side > 0 else "top",
                    rotation_mode="anchor")
    ax.set(xlabel="measured pKa", ylabel="computed pKa", xlim=(0.5, 7.3), ylim=(0.5, 7.3), aspect="equal")
    ax.legend(frameon=False)
    figure.savefig(out / "measured.png", dpi=300)
