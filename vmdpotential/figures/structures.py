"""Small picture of a structure without its water, seen along the direction in which it is thinnest."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vmdpotential.figures.atoms import draw_atoms
from vmdpotential.grid.planes import Plane
from vmdpotential.molecule.elements import complete_elements
from vmdpotential.molecule.selection import is_ion, is_water
from vmdpotential.molecule.structure import Structure

#: Number of atoms above which only those of a slab through the centre are drawn, and the slab's thickness, A.
_MOST, _SLAB = 20_000, 8.0

#: Width of the picture, mm, and dots per inch.
_WIDTH, _DPI = 70.0, 110


def structure_picture(structure: Structure) -> bytes:
    """Return a PNG of the heavy atoms of a structure that are not water; if there are none, of its other atoms."""
    from matplotlib.figure import Figure

    from vmdpotential.figures.page import render_figure

    heavy = ~np.isin(complete_elements(structure.elements, structure.atom_names, structure.residue_names), ["H", "D"])
    shown = heavy & ~is_water(structure)
    waters = not shown.any()
    if waters:
        shown = heavy if heavy.any() else ~heavy
    body = shown & ~is_ion(structure)
    centred = structure.positions[body if body.any() else shown]
    middle = centred.mean(0)
    axes = np.linalg.svd((centred - middle)[:: max(1, len(centred) // _MOST)], full_matrices=True)[2]
    normal = np.abs(axes[2]) if np.abs(axes[2]).max() > 1 - 1e-9 else axes[2]
    plane = Plane.through(middle, normal)
    across = plane.coordinates(structure.positions[shown])[:, :2]
    low, high = across.min(0) - 3, across.max(0) + 3
    width, height = high - low
    figure = Figure((_WIDTH / 25.4, max(0.3, min(1.5, height / width)) * _WIDTH / 25.4))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.set_axis_off()
    few = shown.sum() <= _MOST
    draw_atoms(ax, structure, plane, np.inf if few else _SLAB, waters)
    return render_figure(figure, Path("structure.png"), _DPI)
