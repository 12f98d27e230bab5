"""Potassium and chloride through a pore.

A model of a channel: a tube of uncharged atoms through a membrane of 30 A, filled with water, with three rings of
dipoles whose negative ends point to the axis, as the carbonyl groups of a selectivity filter do. The free energy of
each ion along the axis shows what the pore costs (desolvation, nearly the same for both) and what the dipoles add: they
cancel most of that for potassium in the middle, and double it for chloride. In the third panel the solution below the
membrane is at 0.2 V, which drives potassium upwards.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import vmdpotential as vp
from vmdpotential.figures.style import figure_style
from vmdpotential.plugins.pores.check import ATOM, tube

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/ions_through_a_pore")
out.mkdir(parents=True, exist_ok=True)

atoms = tube(3.5, 34.0, 1.6)
count, from_axis = len(atoms), np.hypot(*atoms[:, :2].T)
inner = from_axis < from_axis.mean()
charges = np.zeros(count)
for height in (-3.2, 0.0, 3.2):
    ring = abs(atoms[:, 2] - height) < 0.9
    for layer, charge in ((inner, -2.0), (~inner, 2.0)):
        charges[ring & layer] = charge / (ring & layer).sum()
channel = vp.Structure(
    atoms, np.full(count, "C"), np.full(count, "TUB"), np.ones(count, int), np.zeros(count, int),
    elements=np.full(count, "C"), charges=charges, radii=np.full(count, ATOM))

with figure_style():
    figure, axes = plt.subplots(1, 3, figsize=(183 / 25.4, 2.8), layout="constrained", sharey=True)
    for ax, ion, volts in zip(axes, ("K+", "Cl-", "K+"), (0.0, 0.0, 0.2), strict=True):
        made = vp.born(channel, ion=ion, positions=11, spacing=1.0, parameters={"membrane": 30, "voltage": volts})
        print(*made.lines, sep="\n")
        made.to_dataframe().to_csv(out / f"{ion}{f' at {volts} V' if volts else ''}.csv", index=False)
        made.plot(ax).set_title({"K+": "K⁺", "Cl-": "Cl⁻"}[ion] + (f", {volts} V" if volts else ""))
        ax.get_legend().remove()
        ax.label_outer()
    figure.legend(axes[2].lines[1:5], ["desolvation", "interaction", "voltage", "sum"], loc="outside upper center",
                  ncols=4, frameon=False)
    figure.savefig(out / "ions_through_a_pore.png", dpi=300)
