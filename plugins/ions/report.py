"""Distances of ions from each other and from the solute: minimum distances and g(r) of one or more placements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import is_ion, is_water
from vmdpotential.parameters import ReportRows

from .placement import Placement

#: Range (A) and number of bins of g(r), which are wide because there are few ions.
RANGE, BINS = 15.0, 30

#: Name for all atoms that are neither water nor ions.
SOLUTE = "solute"


def least_distances(placements: Sequence[Placement]) -> dict[str, dict[str, float | None]]:
    """Return the minimum distance (A) of the placed ions of each kind to solute atoms and to other ions."""
    ions = [ion for placement in placements for ion in placement.ions]
    result: dict[str, dict[str, float | None]] = {}
    for name in dict.fromkeys(ion.name for ion in ions):
        same = [ion for ion in ions if ion.name == name]
        result[name] = {
            "solute": min((ion.solute_distance for ion in same if ion.solute_distance is not None), default=None),
            "ion": min((ion.ion_distance for ion in same if ion.ion_distance is not None), default=None),
        }
    return result


def radial_distributions(placements: Sequence[Placement]) -> dict[str, Any]:
    """Return g(r) for each pair of kinds of ions, and for each kind and the solute's atoms, over all placements.

    Existing ions are included; ions of several atoms count at their centres. The result is empty without a periodic
    cell, because g(r) is relative to the mean density.

    Returns
    -------
    dict
        ``r``, centres of the bins, A; ``g`` and ``count``, the mean number of the second kind within the upper edge of
        each bin from one of the first, lists by the names of pairs, such as ``SOD-CLA``; ``placements``, the number of
        placements.
    """
    first = placements[0].original
    if first.cell is None or not placements[0].ions:
        return {}
    free = is_ion(first)
    solute = ~is_water(first) & ~free
    fixed = np.concatenate([first.positions[solute], first.positions[free]])
    names = np.array([*[SOLUTE] * int(solute.sum()), *first.residue_names[free].tolist(),
                      *(ion.name for ion in placements[0].ions)])
    kinds = [name for name in dict.fromkeys(names.tolist()) if name != SOLUTE]
    pairs = [*itertools.combinations_with_replacement(kinds, 2), *((name, SOLUTE) for name in kinds)]
    sets = {f"{a}-{b}": (names == a, names == b) for a, b in pairs
            if (names == a).sum() * (names == b).sum() > (a == b)}
    positions = [np.concatenate([fixed, [ion.position for ion in placement.ions]]) for placement in placements]
    edges = np.linspace(0, RANGE, BINS + 1)
    counts = {name: np.mean([_distance_counts(each[a], each[b], first.cell, edges) for each in positions], axis=0)
              for name, (a, b) in sets.items()}
    densities = {name: (int(a.sum()) * int(b.sum()) - int((a & b).sum())) / first.cell.volume
                 for name, (a, b) in sets.items()}
    shells = 4 / 3 * np.pi * np.diff(edges**3)
    return {
        "r": ((edges[1:] + edges[:-1]) / 2).tolist() if counts else [], "placements": len(placements),
        "g": {name: (each / (densities[name] * shells)).tolist() for name, each in counts.items()},
        "count": {name: (np.cumsum(each) / int(sets[name][0].sum())).tolist() for name, each in counts.items()},
    }


def _distance_counts(a: Floats, b: Floats, cell: Cell, edges: Floats) -> Floats:
    """Return the number of pairs of different atoms, one at positions a (N, 3) and one at b (M, 3), by their distance.

    All images are counted, and of one set with itself each pair in both orders.
    """
    from scipy.spatial import cKDTree

    images, owners = cell.images_in_box(b, a.min(0) - edges[-1], a.max(0) + edges[-1])
    within: Floats = cKDTree(a).count_neighbors(cKDTree(images), edges).astype(float)
    if a.shape == b.shape and (a == b).all():
        within -= np.searchsorted(np.sort(np.linalg.norm(images - a[owners], axis=1)), edges, "right")
    return np.diff(within)


def distance_summary(least: dict[str, dict[str, float | None]], distributions: dict[str, Any]) -> list[str]:
    """Return the lines of the report on distances."""
    lines, parts, peaks = [], [], []
    for key, words in (("ion", "ion to ion"), ("solute", "ion to solute")):
        result = {name: value for name, each in least.items() if (value := each[key]) is not None}
        if result:
            name = min(result, key=lambda each: result[each])
            parts.append(f"{words} {result[name]:.2f} A ({name})")
    if parts:
        lines.append(f"minimum distances: {', '.join(parts)}")
    for name, g in distributions.get("g", {}).items():
        peak = int(np.argmax(g))
        if g[peak]:
            peaks.append(f"{name} {g[peak]:.2f} at {distributions['r'][peak]:.2f} A")
    if peaks:
        lines.append(f"highest g(r) up to {RANGE:g} A: {', '.join(peaks)}")
    return lines


def replica_lines(placements: Sequence[Placement]) -> list[str | ReportRows]:
    """Return the report of several placements: their common lines, then a line for each."""
    first = placements[0]
    lines = [*first.counts.lines, *(f"warning: {warning}" for warning in first.counts.warnings),
             f"placed {len(first.ions)} ions {len(placements)} times ({first.site}), energies at "
             f"{first.temperature:g} K, dielectric {first.dielectric:g}:"]

    def line(n: int) -> str:
        placement = placements[n]
        sampled = "" if placement.sampling is None else f"; {placement.sampling.line}"
        return (f"replica {n + 1}, seed {placement.seed}: {sum(ion.energy for ion in placement.ions):.2f} "
                f"kcal/mol, {placement.waters_removed} waters replaced{sampled}")

    return [*lines, ReportRows(line, range(len(placements)))]
