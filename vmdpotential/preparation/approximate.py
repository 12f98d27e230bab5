"""Charges of residues without a template: Gasteiger's, with the formal charge of what hangs together as their sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.molecule.gasteiger import gasteiger
from vmdpotential.molecule.names import IONS
from vmdpotential.molecule.structure import Floats
from vmdpotential.preparation.assemble import Assembly
from vmdpotential.preparation.components import component
from vmdpotential.preparation.draft import METALS

#: Usual charges of metals that are bound within a molecule, e.
_OXIDATION = {"Fe": 2, "Zn": 2, "Mg": 2, "Mn": 2, "Co": 2, "Ni": 2, "Cu": 2, "Ca": 2, "Mo": 4, "V": 4, "Na": 1, "K": 1,
              "Cd": 2, "Hg": 2, "Pt": 2, "Pd": 2, "Ru": 2, "Rh": 3, "Al": 3, "W": 4, "Ir": 3, "Os": 2, "Cr": 3, "Li": 1,
              "Be": 2, "Rb": 1, "Cs": 1, "Sr": 2, "Ba": 2, "Ga": 3, "In": 3, "Tl": 1, "Sn": 4, "Pb": 2, "Bi": 3,
              "Sc": 3, "Ti": 4, "Y": 3, "Zr": 4, "Nb": 5, "Ag": 1, "Au": 1, "Hf": 4, "Ta": 5, "Re": 1, "Th": 4, "U": 6,
              **dict.fromkeys(("La", "Ce", "Pr", "Nd", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu"), 3)}


def approximate(made: Assembly, asked: NDArray[np.bool_], others: Floats) -> Floats:
    """Return charges (N,), e, for the atoms asked for; NaN where there is no way to have them.

    A molecule keeps its formal charge, also where a part of it has charges of templates: what is missing is spread over
    the atoms asked for. A metal within a molecule has its usual charge, which the atoms that it is bonded to balance;
    alone it has its formal charge.

    Parameters
    ----------
    made : Assembly
    asked : (N,) bool
    others : (N,) float64, e
        Charges of the atoms that are not asked for.
    """
    structure = made.structure
    metal = np.isin(structure.elements, list(METALS))
    formal = made.formal.astype(np.float64)
    alone = np.flatnonzero(asked & metal & (np.bincount(made.residue)[made.residue] == 1))
    for atom in alone.tolist():
        formal[atom] = _alone(str(structure.residue_names[atom]), str(structure.elements[atom]))
    charges = _by_bonds(made, asked)
    charges[alone] = formal[alone]
    _balance(made, asked & metal, charges)
    charges = np.where(asked, charges, others)
    molecule = _molecules(made)
    count = int(molecule.max()) + 1
    number = np.bincount(molecule[asked], minlength=count)
    missing = np.bincount(molecule, formal - charges, count)
    missing[~np.isfinite(missing)] = 0
    charges[asked] += (missing / np.maximum(number, 1))[molecule[asked]]
    return charges


def _by_bonds(made: Assembly, asked: NDArray[np.bool_]) -> Floats:
    """Return Gasteiger charges (N,) of the atoms asked for, from them and the two residues next to them."""
    pairs = made.residue[made.bonds[:, :2]]
    near = np.zeros(int(made.residue.max()) + 1, bool)
    near[made.residue[asked]] = True
    for _ in range(2):
        near[pairs[near[pairs].any(1)]] = True
    rows = np.flatnonzero(near[made.residue])
    new = np.full(len(made.residue), -1, np.int64)
    new[rows] = np.arange(len(rows))
    bonds = made.bonds[(new[made.bonds[:, :2]] >= 0).all(1)]
    bonds = np.column_stack([new[bonds[:, :2]], bonds[:, 2]])
    charges = np.full(len(made.residue), np.nan)
    charges[rows] = gasteiger(made.structure.elements[rows], made.formal[rows], bonds)
    return charges


def _alone(residue: str, element: str) -> float:
    ion = IONS.get(residue.upper())
    if ion is not None:
        return float(ion.charge)
    result = component(residue)
    charge = 0 if result is None or len(result.atoms) != 1 else int(result.charges[0])
    return float(charge or _OXIDATION.get(element, np.nan))


def _balance(made: Assembly, metal: NDArray[np.bool_], charges: Floats) -> None:
    """Give metals that are bonded within residues their charge, and take it from the atoms that hold them."""
    for atom in np.flatnonzero(metal & ~np.isfinite(charges)).tolist():
        value = _OXIDATION.get(str(made.structure.elements[atom]), np.nan)
        pairs = made.bonds[(made.bonds[:, :2] == atom).any(1), :2]
        partners = pairs[pairs != atom]
        charges[atom] = value
        if len(partners):
            charges[partners] += (made.formal[atom] - value) / len(partners)


def _molecules(made: Assembly) -> NDArray[np.int64]:
    """Return a number (N,) for every molecule: residues that are bonded."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    count = int(made.residue.max()) + 1
    pairs = made.residue[made.bonds[:, :2]]
    graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    return np.asarray(labels, np.int64)[made.residue]
