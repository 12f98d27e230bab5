"""Choice of a map's boundary (a periodic cell or open) and lattice."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.errors import InputError, Message, UsageError
from vmdpotential.grid.lattice import Lattice, coordinate_bounds
from vmdpotential.maps.options import named_method
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.filling import partial_fraction
from vmdpotential.molecule.selection import is_solvated
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import warn_unused

log = logging.getLogger(__name__)

#: Atoms per A^3 above which a cell must be wrong; water has 0.1 and diamond 0.18.
DENSEST = 1.0


def choose_cell(structure: Structure, method: str, boundary: str) -> Cell | None:
    """Return the periodic cell, or None for an open boundary; `method` and `boundary` may be ``auto``.

    A crystal's asymmetric unit, or a molecule without its solvent, is only a part of the contents of its cell; with
    ``auto`` its boundary is open.

    Raises
    ------
    UsageError
        If the method does not support the boundary.
    InputError
        If a periodic boundary is requested and the structure has no cell, or is a crystal's asymmetric unit.
    """
    named = named_method(method)
    boundaries = ("open", "periodic") if named is None else named.boundaries
    if boundary == "auto":
        boundary = "periodic" if structure.cell is not None and "periodic" in boundaries else "open"
        if structure.cell is None and is_solvated(structure) and method not in registry.available("solver"):
            log.warning(Message("%s: is solvated but has no periodic cell, so the boundary is open; {cell} sets one"),
                        structure.where)
        if boundary == "periodic" and structure.cell is not None and not structure.cell.whole:
            boundary = "open"
            log.warning("%s: is the asymmetric unit of a crystal (%s); the boundary is open, with these atoms alone",
                        structure.where, structure.cell.space_group)
        elif boundary == "periodic" and structure.cell is not None and "open" in boundaries:
            part = partial_fraction(replace(structure.whole or structure, cell=structure.cell))
            if part is not None:
                boundary = "open"
                log.warning(Message("%s: fills only %.0f %% of its periodic cell (%s), like an asymmetric unit or a "
                                    "molecule without solvent; it is treated as not periodic, and {boundary periodic} "
                                    "includes the images"), structure.where, 100 * part, structure.cell)
    if boundary not in boundaries:
        reason = "" if named is None else named.boundary_reason
        raise UsageError("boundary", f"the method {method} does not support this boundary{reason}", value=boundary,
                         hint=f"use {' or '.join(f'{{boundary {b}}}' for b in boundaries)}, or another {{method}}")
    if boundary == "open":
        return None
    name = structure.where
    if structure.cell is None:
        raise InputError(f"{name}: has no periodic cell", "use {boundary open}")
    structure.require_whole_cell("use {boundary open}, or {expand cell}")
    if structure.cell.volume * DENSEST < len(structure):
        raise InputError(
            f"{name}: {len(structure)} atoms do not fit into its periodic cell of {structure.cell.volume:.3g} A^3",
            "correct the cell, or use {boundary open}"
        )
    return structure.cell


def build_lattice(
    structure: Structure, positions: NDArray[np.float64], cell: Cell | None, spacing: float, padding: float
) -> Lattice:
    """Return the lattice around positions, or over the periodic cell.

    The cell is centred at the centre of the atoms' bounding box, because programs differ in where they put its corner.
    """
    if cell is None:
        return Lattice.around(positions, spacing, padding)
    warn_unused(("padding",), "the grid covers the periodic cell; {boundary open} has a margin")
    if not len(structure):
        raise InputError("there are no atoms to put a lattice around")
    low, high = coordinate_bounds(structure.positions)
    return Lattice.over_cell(cell, spacing, (low + high) / 2 - cell.vectors.sum(0) / 2)
