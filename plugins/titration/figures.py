"""Figure of titration curves, and of the net charge against the pH."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.figures.columns import column_figure
from vmdpotential.figures.slices import CURVE_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours of groups; some that titrate far apart share one.
_COLOURS = {"C-": 4, "ASP": 1, "GLU": 6, "HIS": 2, "N+": 5, "CYS": 4, "TYR": 3, "LYS": 0, "ARG": 0}

#: Names of the groups of termini in the legend.
_TERMINI = {"C-": "C-terminus", "N+": "N-terminus"}

#: Points of a drawn curve for each of its values of pH.
_BETWEEN = 8


def draw_curves(ax: Axes, ph: Floats, fractions: Floats, groups: Sequence[str], errors: Floats | None = None) -> Axes:
    """Draw titration curves into Axes, those of groups in their colours, and of ligands in black.

    Parameters
    ----------
    ax : Axes
    ph : (P,) float64
    fractions : (P, S) float64
        Fractions of sites that have their proton.
    groups : sequence of str
        Names of the sites' groups.
    errors : (P, S) float64, optional
        Standard errors, drawn as bands.
    """
    # between the values of pH, curves of single sites are straight lines in ln(f / (1 - f))
    points = np.linspace(ph[0], ph[-1], _BETWEEN * (len(ph) - 1) + 1)
    ratio = np.clip(fractions, 1e-9, 1 - 1e-9)
    ratio = np.log(ratio / (1 - ratio))
    named: set[str] = set()
    for n in sorted(range(len(groups)), key=lambda n: [*_COLOURS, groups[n]].index(groups[n])):
        group = groups[n]
        colour = CURVE_COLOURS[_COLOURS[group]] if group in _COLOURS else "black"
        style = "--" if group in ("ARG", "TYR") else "-"
        if errors is not None:
            ax.fill_between(ph, fractions[:, n] - errors[:, n], fractions[:, n] + errors[:, n], color=colour,
                            alpha=0.25, linewidth=0)
        curve = 1 / (1 + np.exp(-np.interp(points, ph, ratio[:, n])))
        ax.plot(points, curve, style, color=colour, linewidth=0.8,
                label="" if group in named else _TERMINI.get(group, group))
        named.add(group)
    ax.set(xlabel="pH", ylabel="Fraction protonated", xlim=(ph[0], ph[-1]), ylim=(-0.02, 1.02))
    return ax


def titration_figure(ph: Floats, fractions: Floats, groups: Sequence[str], net_charge: Floats,
                     marked: float | None, errors: Floats | None = None) -> Figure:
    """Return a figure of titration curves, and below them the net charge; `marked` is a pH to be marked."""
    def draw(figure: Figure, axes: Sequence[Axes]) -> None:
        above, below = axes
        draw_curves(above, ph, fractions, groups, errors)
        above.set_xlabel("")
        below.plot(ph, net_charge, color="black")
        below.axhline(0, color="#808080", linewidth=0.4, zorder=0)
        for ax in (above, below):
            if marked is not None:
                ax.axvline(marked, color="#808080", linewidth=0.6, linestyle=":")
        below.set(xlabel="pH", ylabel="Net charge (e)")
        figure.legend(loc="outside upper center", ncols=4, frameon=False)

    return column_figure(draw, 110, (2, 1))
