"""Figures of pair interactions: energies of residues, radial distribution functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.figures.columns import column_figure
from vmdpotential.figures.slices import CURVE_COLOURS, drawable_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .rdf import Distribution


#: Largest number of residues drawn.
MOST = 20

#: Length of a name in a legend above which each name is on a line of its own.
LONG = 16

#: Number of frames below which each has a mark.
FEW = 50


def residues(draw: Callable[[Axes], Axes], count: int) -> Figure:
    """Return a figure of `count` residues, into which `draw` draws bars with :func:`draw_residues`."""
    return column_figure(lambda figure, axes: draw(axes[0]), 18 + 4 * min(count, MOST))


def without_chain(names: Sequence[str]) -> list[str]:
    """Return names of residues such as ``A/LEU10``, without the chain if it is that of all."""
    parts = [name.partition("/") for name in names]
    same = len({chain for chain, _, _ in parts}) == 1 and all(residue for _, _, residue in parts)
    return [residue for _, _, residue in parts] if same else list(names)


def draw_residues(ax: Axes, names: Sequence[str], coulomb: Floats, lennard_jones: Floats, spread: Floats | None = None,
                  title: str = "", labels: tuple[str, str] = ("Coulomb", "Lennard-Jones")) -> Axes:
    """Draw bars of the residues with the largest energies, of either sign, into Axes.

    Parameters
    ----------
    ax : Axes
    names : sequence of str
    coulomb, lennard_jones : (n,) float64, kcal/mol
    spread : (n,) float64, optional
        Half the widths of the 95 % intervals of the total energies over frames; NaN if there is none.
    title : str
    labels : (str, str)
        Names of the two energies.
    """
    names, total = without_chain(names), coulomb + lennard_jones
    rows = np.argsort(-np.abs(total), kind="stable")[:MOST]
    rows = rows[np.argsort(total[rows], kind="stable")]
    y = np.arange(len(rows))
    ax.barh(y - 0.2, coulomb[rows], 0.4, color=CURVE_COLOURS[0], label=labels[0])
    ax.barh(y + 0.2, lennard_jones[rows], 0.4, color=CURVE_COLOURS[1], label=labels[1])
    ax.errorbar(total[rows], y, xerr=None if spread is None else spread[rows], fmt="D", color="black",
                markersize=2.5, elinewidth=0.6, label="total")
    ax.axvline(0, color="#808080", linewidth=0.4)
    ax.set_yticks(y, [drawable_text(names[n]) for n in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlabel("Energy (kcal/mol)")
    # above, as one or two bars leave no place for it
    legend = ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    if title:
        ax.set_title(drawable_text(title), pad=2.6 * float(legend.get_texts()[0].get_fontsize()))
    return ax


def terms_of_frames(draw: Callable[[Axes], Axes]) -> Figure:
    """Return a figure of energies over frames, into which `draw` draws with :func:`draw_terms`."""
    return column_figure(lambda figure, axes: figure.legend(
        *draw(axes[0]).get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False), 70)


def draw_terms(ax: Axes, frames: Sequence[int], terms: Mapping[str, Floats], title: str = "") -> Axes:
    """Draw energies, kcal/mol, over the numbers of frames into Axes; the last one is the total."""
    colours = CURVE_COLOURS[:3] + CURVE_COLOURS[4:]  # without black, which is that of the total
    for n, (name, values) in enumerate(terms.items()):
        last = n == len(terms) - 1
        ax.plot(frames, values, color="black" if last else colours[n % len(colours)],
                marker="o" if len(frames) < FEW else "", markersize=2, label=drawable_text(name))
    ax.axhline(0, color="#808080", linewidth=0.4, zorder=0)
    ax.set(xlabel="Frame", ylabel="Energy (kcal/mol)")
    if title:
        ax.set_title(drawable_text(title))
    return ax


def draw_distributions(ax: Axes, curves: Sequence[Distribution], names: Sequence[str]) -> Axes:
    """Draw curves of g(r) into Axes."""
    for n, (curve, name) in enumerate(zip(curves, names, strict=True)):
        ax.plot(curve.r, curve.g, color=CURVE_COLOURS[n % len(CURVE_COLOURS)], label=drawable_text(name))
    ax.axhline(1, color="#808080", linewidth=0.4, zorder=0)
    ax.set(xlabel="r (Å)", ylabel="g(r)")
    ax.set_ylim(bottom=0)
    return ax


def distributions(curves: Sequence[Distribution], names: Sequence[str]) -> Figure:
    """Return a figure of curves of g(r), and below them the running coordination numbers."""
    def draw(figure: Figure, axes: Sequence[Axes]) -> None:
        above, below = axes
        draw_distributions(above, curves, names)
        for n, curve in enumerate(curves):
            below.plot(curve.edges[1:], curve.count, color=CURVE_COLOURS[n % len(CURVE_COLOURS)])
        above.set_xlabel("")
        columns = 1 if max(map(len, names)) > LONG else min(3, len(names))
        figure.legend(loc="outside upper center", ncols=columns, frameon=False)
        below.set_ylabel("Atoms within r")
        below.set_xlabel("r (Å)")
        below.set_xlim(0, float(curves[0].edges[-1]))
        below.set_ylim(0)

    return column_figure(draw, 90, (2, 1))
