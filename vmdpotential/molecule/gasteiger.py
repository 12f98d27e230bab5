"""Gasteiger charges: partial equalization of orbital electronegativity, from bonds and formal charges alone.

J. Gasteiger, M. Marsili, Tetrahedron 36, 1980, 3219. As in RDKit, formal charges are first divided equally among atoms
that are equivalent by conjugation (the oxygens of a carboxylate), and there are 12 steps.
"""

from __future__ import annotations

import numpy as np

from vmdpotential.molecule.structure import Floats, Integers, Names

#: Bond orders, numbered as in biotite and hydride.
SINGLE_BOND, DOUBLE_BOND, TRIPLE_BOND, AROMATIC_SINGLE, AROMATIC_DOUBLE, AROMATIC_TRIPLE = 1, 2, 3, 5, 6, 7

#: Electronegativity a + b q + c q^2, eV, by element and hybridization.
_PARAMETERS = {
    ("H", 3): (7.17, 6.24, -0.56),
    ("C", 3): (7.98, 9.18, 1.88), ("C", 2): (8.79, 9.32, 1.51), ("C", 1): (10.39, 9.45, 0.73),
    ("N", 3): (11.54, 10.82, 1.36), ("N", 2): (12.87, 11.15, 0.85), ("N", 1): (15.68, 11.70, -0.27),
    ("O", 3): (14.18, 12.92, 1.39), ("O", 2): (17.07, 13.79, 0.47),
    ("F", 3): (14.66, 13.85, 2.31), ("Cl", 3): (11.00, 9.69, 1.35), ("Br", 3): (10.08, 8.47, 1.16),
    ("I", 3): (9.90, 7.96, 0.96),
    ("S", 3): (10.14, 9.13, 1.38), ("S", 2): (10.88, 9.485, 1.325),
    ("P", 3): (8.90, 8.24, 0.96), ("Si", 3): (7.30, 6.567, 0.657), ("B", 3): (5.98, 6.82, 1.605),
    ("B", 2): (6.42, 6.807, 1.322),
}  # fmt: skip
#: Elements without parameters, which have those of another isotope or of a neighbour in their group.
_LIKE = {"D": "H", "Se": "S", "Te": "S", "As": "P"}
#: Electronegativity of H+, eV.
_PROTON = 20.02
_STEPS = 12
#: Charges beyond this, e, mean that the iteration has diverged.
_LARGEST = 10.0
_PI = (DOUBLE_BOND, TRIPLE_BOND, AROMATIC_SINGLE, AROMATIC_DOUBLE, AROMATIC_TRIPLE)


def gasteiger_charges(elements: Names, formal: Integers, bonds: Integers) -> Floats:
    """Return partial charges (N,), e; NaN for elements without parameters (metals) and atoms with impossible bonds.

    Parameters
    ----------
    elements : (N,) str
        Elements of all atoms, hydrogens included.
    formal : (N,) int64
        Formal charges, e.
    bonds : (B, 3) int64
        Two atoms and the order of their bond (1, 2, 3; 5, 6, 7 for aromatic bonds).
    """
    kinds = [_LIKE.get(element, element) for element in elements.tolist()]
    known = np.array([(kind, 3) in _PARAMETERS for kind in kinds], bool)
    pairs = bonds[known[bonds[:, 0]] & known[bonds[:, 1]]]
    neighbours: list[list[tuple[int, int]]] = [[] for _ in kinds]
    for a, b, order in pairs.tolist():
        neighbours[a].append((b, order))
        neighbours[b].append((a, order))
    hybrid, conjugated = _hybrids(kinds, neighbours)
    charges = _delocalized(kinds, formal, neighbours, conjugated)
    table = np.array([_PARAMETERS.get((kind, n), _PARAMETERS.get((kind, 3), (0.0, 0.0, 0.0)))
                      for kind, n in zip(kinds, hybrid, strict=True)]).reshape(-1, 3)
    positive = np.where([kind == "H" for kind in kinds], _PROTON, table.sum(1))
    first, second = pairs[:, 0], pairs[:, 1]
    with np.errstate(over="ignore", invalid="ignore"):  # atoms with far too many bonds
        for step in range(_STEPS):
            energy = table[:, 0] + charges * (table[:, 1] + charges * table[:, 2])
            difference = energy[second] - energy[first]
            moved = difference / np.where(difference > 0, positive[first], positive[second]) * 0.5 ** (step + 1)
            charges = charges + np.bincount(first, moved, len(kinds)) - np.bincount(second, moved, len(kinds))
        return np.where(known & (np.abs(charges) < _LARGEST), charges, np.nan)


def _hybrids(kinds: list[str], neighbours: list[list[tuple[int, int]]]) -> tuple[list[int], list[bool]]:
    """Return the hybridization of every atom (3 for sp3), and whether it is part of a conjugated system."""
    pi = [any(order in _PI for _, order in near) for near in neighbours]
    result, conjugated = [], list(pi)
    for k, (kind, near) in enumerate(zip(kinds, neighbours, strict=True)):
        orders = [order for _, order in near]
        if kind == "P" or (kind == "S" and len(near) > 2):
            result.append(3)
            conjugated[k] = False
        elif kind in ("C", "N") and (TRIPLE_BOND in orders or orders.count(DOUBLE_BOND) == 2):
            result.append(1)
        elif pi[k] or (kind == "B" and len(near) <= 3):
            result.append(2)
        else:
            lone = (kind == "N" and len(near) <= 3) or kind == "O" or (kind == "S" and len(near) == 1)
            conjugated[k] = lone and any(pi[j] and kinds[j] in ("C", "N") for j, _ in near)
            result.append(2 if conjugated[k] else 3)
    return result, conjugated


def _delocalized(kinds: list[str], formal: Integers, neighbours: list[list[tuple[int, int]]],
                 conjugated: list[bool]) -> Floats:
    """Return formal charges (N,), e, divided equally among equivalent atoms of a conjugated group."""
    result = formal.astype(np.float64)
    for k in np.flatnonzero(formal).tolist():
        if kinds[k] == "C" or not conjugated[k]:
            continue
        alike = {k}
        for j, _ in neighbours[k]:
            if conjugated[j]:
                alike |= {i for i, _ in neighbours[j] if kinds[i] == kinds[k] and conjugated[i]}
        group = sorted(alike)
        result[k] -= formal[k]
        result[group] += formal[k] / len(group)
    return result
