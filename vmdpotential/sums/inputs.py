"""Preparation of positions and charges for engines: checks, and the selection of charges that contribute to a sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.sums.potential_sum import PotentialSum


def charges_and_positions(positions: Any, charges: Any) -> tuple[Floats, Floats]:
    """Return positions (N, 3) and charges (N,) as contiguous float64.

    Raises
    ------
    UsageError
        If the shapes of the arrays do not fit together.
    """
    positions = np.ascontiguousarray(positions, np.float64)
    charges = np.ascontiguousarray(charges, np.float64)
    if positions.ndim != 2 or positions.shape[1] != 3 or charges.shape != positions.shape[:1]:
        raise UsageError("positions", f"{positions.shape}, and charges {charges.shape}, do not fit: (N, 3) and (N,) "
                         "are needed")
    return positions, charges


def charges_near(lattice: Lattice, reach: float, positions: Floats, charges: Floats) -> tuple[Floats, Floats]:
    """Return the charges within `reach` (A) of the lattice along each axis; no others matter in an open boundary."""
    near_lattice = ((positions > lattice.origin - reach) & (positions < lattice.last + reach)).all(1)
    return (positions, charges) if near_lattice.all() else (positions[near_lattice], charges[near_lattice])


def in_box(work: PotentialSum, positions: Floats, charges: Floats) -> tuple[Floats, Floats]:
    """Return the charges that contribute to a sum: only those near the lattice if the smooth part has an end.

    Raises
    ------
    InputError
        If contributing charges are outside of the box that the smooth part was planned for.
    """
    smooth = work.smooth
    if smooth is None or smooth.box is None:
        return positions, charges
    if smooth.end < np.inf:
        positions, charges = charges_near(work.lattice, smooth.end, positions, charges)
    if smooth.box.holds(positions):
        return positions, charges
    raise InputError("charges are outside of the box that the sum was planned for", "plan it for a larger one")
