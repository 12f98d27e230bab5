"""Matching by bonds of residues whose atom names are not the dictionary's (older entries, other programs)."""

from __future__ import annotations

import numpy as np

from vmdpotential.extras import load_optional
from vmdpotential.molecule.structure import Floats

from .components import Component

#: Tolerance of a covalent bond's length above the sum of its atoms' covalent radii, and its smallest length, A.
BOND_TOLERANCE, SHORTEST_BOND = 0.3, 0.8
#: Smallest number of atoms that can be recognised by their bonds.
_FEWEST = 3


def match_names(component: Component, elements: list[str], positions: Floats) -> tuple[str, ...] | None:
    """Return the dictionary's names for the atoms of a residue, None if its bonds are not those of the component.

    Only leaving atoms may be missing, as a smaller fragment could belong to other components, too.

    Parameters
    ----------
    component : Component
    elements : list of str
        Elements of the residue's heavy atoms.
    positions : (n, 3) float64, A
        Their positions.
    """
    lacking = len(component.atoms) - len(elements)
    if len(elements) < _FEWEST or not 0 <= lacking <= np.count_nonzero(component.leaving):
        return None
    nx = load_optional("networkx", "residues with other names of atoms", "prepare")
    ours, theirs = nx.Graph(), nx.Graph()
    ours.add_nodes_from((n, {"element": element}) for n, element in enumerate(elements))
    ours.add_edges_from(bonded(elements, positions))
    theirs.add_nodes_from((n, {"element": element}) for n, element in enumerate(component.elements))
    theirs.add_edges_from(component.bonds[:, :2].tolist())
    matcher = nx.algorithms.isomorphism.GraphMatcher(
        theirs, ours, node_match=lambda a, b: a["element"] == b["element"])
    for match in matcher.subgraph_isomorphisms_iter():
        if all(component.leaving[row] for row in range(len(component.atoms)) if row not in match):
            names = {place: component.atoms[row] for row, place in match.items()}
            return tuple(names[n] for n in range(len(elements)))
    return None


def bonded(elements: list[str], positions: Floats) -> list[tuple[int, int]]:
    """Return the pairs of atoms at distances of covalent bonds."""
    import gemmi
    from scipy.spatial import cKDTree

    radii = np.array([gemmi.Element(element).covalent_r for element in elements])
    pairs = cKDTree(positions).query_pairs(2 * float(radii.max()) + BOND_TOLERANCE, output_type="ndarray")
    length = np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1)
    good = (length < radii[pairs].sum(1) + BOND_TOLERANCE) & (length > SHORTEST_BOND)
    return [(int(a), int(b)) for a, b in pairs[good]]
