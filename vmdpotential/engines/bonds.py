"""The input of engines for angle-dependent energies of hydrogen bonds of probes on a lattice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Kinds of the receptor's atoms: hydrogens, nitrogens with one lone pair, and oxygens or sulfurs with two.
DONOR, ONE_PAIR, TWO_PAIRS = range(3)


@dataclass(frozen=True, eq=False)
class BondSum:
    """Hydrogen-bond energies of P probes with a receptor's N atoms, of T types, at the points of a lattice.

    Parameters
    ----------
    lattice : Lattice
    positions : (N, 3) float64, A
        Positions of the receptor's atoms that form hydrogen bonds.
    kinds : (N,) int64
        Kind of each atom: DONOR, ONE_PAIR or TWO_PAIRS; either all or none are donors.
    directions, normals : (N, 3) float64
        Unit vectors from the bonded atoms to each atom, and unit normals of the planes of two lone pairs; 0 where an
        atom has none.
    powers : (N,) float64
        Exponent of the cosine at a hydrogen or nitrogen, 2 or 4.
    types : (N,) int64
        Column of each atom in `distances` and `depths`.
    distances, depths : (P, T) float64, A and kcal/mol
        Positions and depths of the wells of each probe and type.
    extremes : (P,) bool
        Whether a probe's energy is the sum of its lowest and highest pair energy, instead of the sum of all.
    smooth : float, A
        Largest change of a distance towards the minimum of the well: the energy at the changed distance counts.
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
