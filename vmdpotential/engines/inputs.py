"""What engines take: positions and charges as arrays, and those of them that a sum is for."""

from __future__ import annotations

from typing import Any

import numpy as np

from vmdpotential.engines import Floats, LatticeSum
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Lattice


def charges_and_positions(positions: Any, charges: Any) -> tuple[Floats, Floats]:
    """Return positions (N, 3) and charges (N,) as contiguous float64.

    Raises
    ------
    UsageError
        For arrays that do not fit together.
    """
    positions = np.ascontiguousarray(positions, np.float64)
    charges = np.ascontiguousarray(charges, np.float64)
    if positions.ndim != 2 or positions.shape[1] != 3 or charges.shape != positions.shape[:1]:
        raise UsageError("positions", f"{positions.shape}, and charges {charges.shape}, do not fit: (N, 3) and (N,) "
                         "are needed")
    return positions, charges


def near(lattice: Lattice, reach: float, positions: Floats, charges: Floats) -> tuple[Floats, Floats]:
    """Return the charges that a lattice sees in an open boundary: no others are within `reach` (A) of a point."""
    seen = ((positions > lattice.origin - reach) & (positions < lattice.last + reach)).all(1)
    return (positions, charges) if seen.all() else (positions[seen], charges[seen])


def in_box(work: LatticeSum, positions: Floats, charges: Floats) -> tuple[Floats, Floats]:
    """Return the charges that a sum was planned for: of a smooth part that ends, those in its box, else all.

    Raises
    ------
    InputError
        For charges outside of the box where they count.
    """
    smooth = work.smooth
    if smooth is None or smooth.box is None:
        return positions, charges
    if smooth.end < np.inf:
        positions, charges = near(work.lattice, smooth.end, positions, charges)
    if smooth.box.holds(positions):
        return positions, charges
    raise InputError("charges are outside of the box that the sum was planned for", "plan it for a larger one")
