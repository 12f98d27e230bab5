"""Atoms and bonds drawn over a slice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane
from vmdpotential.molecule.names import ION_RESIDUES, WATER_RESIDUES, in_table
from vmdpotential.molecule.structure import Structure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_ELEMENT_COLOURS = {
    "C": "#808080", "N": "#3050f8", "O": "#e8271a", "S": "#d9b600", "P": "#f08000", "H": "#ffffff",
    "F": "#80e0a0", "CL": "#1fb01f", "BR": "#a62929", "I": "#5a0060", "NA": "#9020c8", "K": "#e070e0",
    "MG": "#c0e000", "CA": "#0f6b4f", "ZN": "#6f7fb8", "FE": "#8a4a10",
}  # fmt: skip
_OTHER_COLOUR, _OTHERS = "#ff9ad5", "other elements"
#: Diameter of an atom, A, and the largest one relative to the picture's longer side, so that atoms do not hide a small
#: map; ions have twice that.
_DIAMETER, _LARGEST = 1.1, 0.022
_IONS_DRAWN_LARGER = frozenset(("NA", "K", "CL", "MG", "CA", "ZN", "LI", "RB", "CS", "BR", "I"))


def draw_atoms(
    ax: Axes, structure: Structure, plane: Plane, slab: float = 3.0, waters: bool = False, periodic: Grid | None = None
) -> Floats:
    """Draw the heavy atoms near a plane, and the bonds between them, into Axes.

    Sites without an element, such as those of four-site waters, are left out. Each element gets an entry in the legend
    of the Axes, from which :func:`key` makes the key of a figure.

    Parameters
    ----------
    ax : Axes
        Axes with their limits set.
    structure : Structure
    plane : Plane
    slab : float, A
        Thickness of the slab around the plane whose atoms are drawn.
    waters : bool
        Whether to draw waters too.
    periodic : Grid, optional
        Periodic map; the periodic images of atoms inside of it are drawn.

    Returns
    -------
    (M, 2) float64
        Coordinates of the drawn atoms in the picture.
    """
    from matplotlib.collections import EllipseCollection, LineCollection

    from vmdpotential.molecule import elements as chemistry
    elements = np.char.upper(
        chemistry.complete_elements(structure.elements, structure.atom_names, structure.residue_names))
    drawn = ~np.isin(elements, ["H", "D"]) & ~chemistry.is_massless_site(structure.atom_names, structure.residue_names)
    if not waters:
        drawn &= ~in_table(structure.residue_names, WATER_RESIDUES)
    index = np.flatnonzero(drawn)
    positions = structure.positions[index]
    if periodic is not None and structure.cell is not None:
        low, high = periodic.lattice.origin, periodic.lattice.last
        positions, where = structure.cell.images_in_box(positions, low, high)
        index = index[where]
    s, t, height = plane.coordinates(positions).T
    (left, right), (bottom, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    near = (np.abs(height) <= slab / 2) & (s >= left) & (s <= right) & (t >= bottom) & (t <= top)
    if not near.any():
        return np.zeros((0, 2))
    index, positions = index[near], positions[near]
    points, elements, height = np.stack([s[near], t[near]], 1), elements[index], height[near]
    bonds = _bonds(positions, chemistry.van_der_waals_radii(elements))
    # one grey for all bonds: halves in the colours of their atoms would clutter the picture
    ax.add_collection(
        LineCollection(list(points[bonds]), colors="#303030", linewidths=0.6, capstyle="round", zorder=2),
        autolim=False)
    order = np.argsort(height, kind="stable")
    largest = _LARGEST * max(right - left, top - bottom)
    size = np.where(np.isin(elements, list(_IONS_DRAWN_LARGER)), 2.0, 1.0)[order] * min(_DIAMETER, largest)
    ions = np.where(in_table(structure.residue_names[index], ION_RESIDUES), structure.residue_names[index], "")
    face = [_ELEMENT_COLOURS.get(str(element), _OTHER_COLOUR) for element in elements[order]]
    atoms = EllipseCollection(
        size, size, np.zeros(len(order)), units="xy", offsets=points[order], offset_transform=ax.transData,
        facecolors=face, edgecolors="#202020", linewidths=0.25, zorder=3,
    )
    ax.add_collection(atoms, autolim=False)
    kinds = dict.fromkeys(zip(map(str, elements), map(str, ions), strict=True))
    for label, colour in {(_label(*kind), _ELEMENT_COLOURS.get(kind[0], _OTHER_COLOUR)) for kind in kinds}:
        ax.plot([], [], "o", color=colour, label=label, markersize=4, markeredgecolor="#202020",
                markeredgewidth=0.25, scalex=False, scaley=False)
    return points


def _label(element: str, ion: str) -> str:
    """Return the label of an element, or of an ion given by its residue name, for the key."""
    if element not in _ELEMENT_COLOURS:
        return _OTHERS
    charge = ION_RESIDUES[ion.upper()].charge if ion else 0
    return element.capitalize() + ("⁺", "²⁺", "³⁺", "⁻")[charge - 1 if charge > 0 else 3] * bool(charge)


def key(axes: Iterable[Axes]) -> dict[str, Artist]:
    """Return labels and symbols of the elements that :func:`draw_atoms` drew, in the same order for all figures."""
    result: dict[str, Artist] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            result.setdefault(label, handle)
    order = [element.capitalize() for element in _ELEMENT_COLOURS]
    return dict(sorted(result.items(), key=lambda entry: (
        entry[0] == _OTHERS, entry[0][-1:] in "⁺⁻", [entry[0].strip("⁺⁻²³") == e for e in order][::-1])))


#: Longest bond between heavy atoms, A, for a large one.
_LONGEST_BOND = 2.2


def _bonds(positions: Floats, radius: Floats) -> NDArray[np.int64]:
    """Return pairs (M, 2) of atoms that are closer than the longest bond between heavy atoms."""
    # atoms are sorted along the longest side; importing scipy's tree would take longer than this for a slab's atoms
    along = int(np.ptp(positions, axis=0).argmax())
    order = np.argsort(positions[:, along], kind="stable")
    pairs = [np.zeros((0, 2), np.int64)]
    for step in range(1, len(order)):
        first, second = order[:-step], order[step:]
        apart = positions[second] - positions[first]
        if apart[:, along].min() > _LONGEST_BOND:
            break
        length = np.linalg.norm(apart, axis=1)
        bonded = length < np.where((radius[first] > 1.75) | (radius[second] > 1.75), _LONGEST_BOND, 1.7)
        pairs.append(np.sort(np.stack([first[bonded], second[bonded]], 1), axis=1))
    return np.unique(np.concatenate(pairs), axis=0)
