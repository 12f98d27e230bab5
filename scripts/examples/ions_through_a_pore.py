"""Sodium and chloride through gramicidin.

The free energy of each ion along the axis of gramicidin A (PDB entry 1GRM) in a membrane of 24 A. Desolvation costs
both ions nearly the same; the carbonyl groups of the wall attract sodium and repel chloride, and gramicidin conducts
cations only. The structure is rigid, so the barriers are upper bounds. In the third panel the solution below the
membrane is at 0.2 V, which drives sodium upwards.
"""

import sys
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
from MDAnalysisTests.datafiles import PDB_HOLE

import vmdpotential as vp
from vmdpotential.figures.style import figure_style

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/ions_through_a_pore")
out.mkdir(parents=True, exist_ok=True)

channel = vp.prepare(PDB_HOLE).structure
positions = channel.positions[:, [2, 0, 1]]  # its axis, y, becomes z
channel = replace(channel, positions=positions - positions.mean(0))

with figure_style():
    figure, axes = plt.subplots(1, 3, figsize=(183 / 25.4, 2.8), layout="constrained", sharey=True)
    for ax, ion, volts in zip(axes, ("Na+", "Cl-", "Na+"), (0.0, 0.0, 0.2), strict=True):
        made = vp.born(channel, ion=ion, positions=9, spacing=1.0,
                       parameters={"membrane": 24, "pores": 1, "voltage": volts})
        print(*made.lines, sep="\n")
        made.to_dataframe().to_csv(out / f"{ion}{f' at {volts} V' if volts else ''}.csv", index=False)
        made.plot(ax).set_title({"Na+": "Na⁺", "Cl-": "Cl⁻"}[ion] + (f", {volts} V" if volts else ""))
        ax.get_legend().remove()
        ax.label_outer()
    figure.legend(axes[2].lines[1:5], ["desolvation", "interaction", "voltage", "sum"], loc="outside upper center",
                  ncols=4, frameon=False)
    figure.savefig(out / "ions_through_a_pore.png", dpi=300)
