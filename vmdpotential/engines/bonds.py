"""Hydrogen bonds of probes on a lattice, whose energies depend on angles: what engines get."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Kinds of atoms of the receptor: hydrogens, nitrogens with a lone pair, and oxygens or sulfurs with two.
DONOR, ONE_PAIR, TWO_PAIRS = range(3)


@dataclass(frozen=True, eq=False)
class BondSum:
    """Energies of probes at the points of a lattice with the atoms that they form hydrogen bonds with.

    Parameters
    ----------
    lattice : Lattice
    positions : (N, 3) float64, A
    kinds : (N,) int64
        All donors, or none.
    directions, normals : (N, 3) float64
        Unit vectors from the bonded atoms to each, and of planes of two lone pairs; 0 where there is none.
    powers : (N,) float64
        Of the cosine at a hydrogen or nitrogen, 2 or 4.
    types : (N,) int64
        Of each atom in the tables.
    distances, depths : (P, T) float64, A and kcal/mol
        Of the wells of probes with types.
    extremes : (P,) bool
        Of which probes the least and the largest energy are added, instead of all.
    smooth : float, A
        Range within which the least energy counts.
    cap : float, kcal/mol
        Largest energy of a pair.
    cutoff : float, A
    """

    lattice: Lattice
    positions: Floats
    kinds: Integers
    directions: Floats
    normals: Floats
    powers: Floats
    types: Integers
    distances: Floats
    depths: Floats
    extremes: NDArray[np.bool_]
    smooth: float
    cap: float
    cutoff: float
