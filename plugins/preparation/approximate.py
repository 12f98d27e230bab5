"""Approximate charges of residues without a template: Gasteiger's, adjusted to the formal charge of the molecule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import TaskError, listed_words
from vmdpotential.molecule.gasteiger import gasteiger_charges
from vmdpotential.molecule.names import ION_RESIDUES
from vmdpotential.molecule.structure import Floats

from .assemble import Assembly
from .components import find_component
from .draft import METAL_ELEMENTS
from .states import METAL_CLUSTERS

#: Usual charges of metals in molecules, e.
_OXIDATION = {"Fe": 2, "Zn": 2, "Mg": 2, "Mn": 2, "Co": 2, "Ni": 2, "Cu": 2, "Ca": 2, "Mo": 4, "V": 4, "Na": 1, "K": 1,
              "Cd": 2, "Hg": 2, "Pt": 2, "Pd": 2, "Ru": 2, "Rh": 3, "Al": 3, "W": 4, "Ir": 3, "Os": 2, "Cr": 3, "Li": 1,
              "Be": 2, "Rb": 1, "Cs": 1, "Sr": 2, "Ba": 2, "Ga": 3, "In": 3, "Tl": 1, "Sn": 4, "Pb": 2, "Bi": 3,
              "Sc": 3, "Ti": 4, "Y": 3, "Zr": 4, "Nb": 5, "Ag": 1, "Au": 1, "Hf": 4, "Ta": 5, "Re": 1, "Th": 4, "U": 6,
              **dict.fromkeys(("La", "Ce", "Pr", "Nd", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu"), 3)}


def approximate_charges(assembly: Assembly, untyped: NDArray[np.bool_], others: Floats) -> Floats:
    """Return charges (N,), e, with approximate ones for atoms without a template; NaN where this is impossible.

    The net charge of every molecule is its formal charge, also if a part of it has charges of templates: the difference
    is spread evenly over the atoms without a template. A metal in a molecule has its usual charge, which is balanced by
    the other atoms bonded to it; an ion of a metal has its formal charge. The net charge of a cluster of metals is that
    of :data:`~vmdpotential.plugins.preparation.states.METAL_CLUSTERS`, or the one that the dictionary states.

    Parameters
    ----------
    assembly : Assembly
    untyped : (N,) bool
        Mask of the atoms without a template.
    others : (N,) float64, e
        Charges of the other atoms.

    Raises
    ------
    TaskError
        For a cluster of metals whose net charge is not known.
    """
    structure = assembly.structure
    metal = np.isin(structure.elements, list(METAL_ELEMENTS))
    formal = assembly.formal.astype(np.float64)
    alone = np.flatnonzero(untyped & metal & (np.bincount(assembly.residue)[assembly.residue] == 1))
    for atom in alone.tolist():
        formal[atom] = _alone(str(structure.residue_names[atom]), str(structure.elements[atom]))
    _spread_clusters(assembly, untyped & metal, formal)
    charges = _by_bonds(assembly, untyped)
    charges[alone] = formal[alone]
    _balance(assembly, metal, untyped, formal, charges)
    charges = np.where(untyped, charges, others)
    molecule = _molecules(assembly)
    count = int(molecule.max()) + 1
    number = np.bincount(molecule[untyped], minlength=count)
    missing = np.bincount(molecule, formal - charges, count)
    missing[~np.isfinite(missing)] = 0
    charges[untyped] += (missing / np.maximum(number, 1))[molecule[untyped]]
    return charges


def _by_bonds(assembly: Assembly, untyped: NDArray[np.bool_]) -> Floats:
    """Return Gasteiger charges (N,), e, of untyped atoms, computed with their residues up to the second neighbours."""
    pairs = assembly.residue[assembly.bonds[:, :2]]
    near = np.zeros(int(assembly.residue.max()) + 1, bool)
    near[assembly.residue[untyped]] = True
    for _ in range(2):
        near[pairs[near[pairs].any(1)]] = True
    rows = np.flatnonzero(near[assembly.residue])
    new = np.full(len(assembly.residue), -1, np.int64)
    new[rows] = np.arange(len(rows))
    bonds = assembly.bonds[(new[assembly.bonds[:, :2]] >= 0).all(1)]
    bonds = np.column_stack([new[bonds[:, :2]], bonds[:, 2]])
    charges = np.full(len(assembly.residue), np.nan)
    charges[rows] = gasteiger_charges(assembly.structure.elements[rows], assembly.formal[rows], bonds)
    return charges


def _alone(residue: str, element: str) -> float:
    """Return the charge of a metal ion, e."""
    ion = ION_RESIDUES.get(residue.upper())
    if ion is not None:
        return float(ion.charge)
    result = find_component(residue)
    charge = 0 if result is None or len(result.atoms) != 1 else int(result.charges[0])
    return float(charge or _OXIDATION.get(element, np.nan))


def _spread_clusters(assembly: Assembly, metal: NDArray[np.bool_], formal: Floats) -> None:
    """Spread the net charges of clusters of metals over their atoms; raise TaskError for one that is not known."""
    unknown = []
    for residue in np.flatnonzero(np.bincount(assembly.residue[metal]) > 1).tolist():
        rows = np.flatnonzero(assembly.residue == residue)
        known = METAL_CLUSTERS.get(str(assembly.structure.residue_names[rows[0]]).upper())
        if known is not None:
            formal[rows] = known[0] / len(rows)
        elif not formal[rows][metal[rows]].any():
            unknown.append(assembly.structure.label(int(rows[0])).partition(":")[0])
    if unknown:
        raise TaskError(
            f"{assembly.structure.where}: the net charge of {listed_words(unknown, 80)} is not known: it depends on "
            "the oxidation state of its metals",
            "give its charges by {charges}, or remove it by {leave_out}")


def _balance(assembly: Assembly, metal: NDArray[np.bool_], untyped: NDArray[np.bool_], formal: Floats,
             charges: Floats) -> None:
    """Set the charges of metals in molecules to the usual ones, and subtract these from the atoms bonded to them."""
    for atom in np.flatnonzero(metal & untyped & ~np.isfinite(charges)).tolist():
        value = _OXIDATION.get(str(assembly.structure.elements[atom]), np.nan)
        pairs = assembly.bonds[(assembly.bonds[:, :2] == atom).any(1), :2]
        partners = pairs[(pairs != atom) & ~metal[pairs]]
        charges[atom] = value
        if len(partners):
            charges[partners] += (formal[atom] - value) / len(partners)


def _molecules(assembly: Assembly) -> NDArray[np.int64]:
    """Return the number (N,) of each atom's molecule, which consists of residues bonded to each other."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    count = int(assembly.residue.max()) + 1
    pairs = assembly.residue[assembly.bonds[:, :2]]
    graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    return np.asarray(labels, np.int64)[assembly.residue]
