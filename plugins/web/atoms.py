"""Content of the page for atoms: positions, names, and depths inside the molecular surface."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Grid
from vmdpotential.molecule.elements import fill_elements, van_der_waals_radii
from vmdpotential.molecule.names import unique_names
from vmdpotential.molecule.selection import is_nucleic, is_protein, is_water
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import depth_map

from .packing import packed

#: Unit of the positions, A.
STEP = 0.001

#: Spacing of a surface's lattice for SMALL atoms, and its smallest value, A. It increases with the number of atoms, so
#: that 100,000 atoms have about four times the vertices of 10,000.
SPACING, LEAST_SPACING, SMALL = 0.5, 0.35, 10_000

#: Largest number of points of a surface's lattice.
SURFACE_POINTS = 8_000_000


def words(names: NDArray[np.str_]) -> dict[str, Any]:
    """Return the distinct names, and the index of each name among them."""
    different, index = unique_names(names)
    return {"words": different.tolist(), "index": packed(index.astype("<u4"))}


def structure_content(structure: Structure) -> dict[str, Any]:
    """Return positions in units of 0.001 A, as differences from the preceding atom, names, and residues."""
    filled = fill_elements(structure)
    elements = words(filled.elements)
    first = structure.residue_starts[:-1]
    chains = np.where(structure.chain_ids != "", structure.chain_ids, structure.segment_ids)
    numbers = np.char.add(structure.residue_ids[first].astype("<U20"), structure.insertion_codes[first])
    # 0: other, 1: polymer, 2: water
    kinds = np.where(is_water(structure), 2, (is_protein(structure) | is_nucleic(structure)).astype(int))
    places = np.rint(structure.positions.T / STEP)
    return {
        "atoms": len(structure), "step": STEP, "places": packed(np.diff(places, axis=1, prepend=0).astype("<i4")),
        "names": words(structure.atom_names),
        "elements": {**elements, "radii": van_der_waals_radii(np.array(elements["words"], dtype=np.str_)).tolist()},
        "residues": {
            "count": structure.residue_count, "lengths": packed(np.diff(structure.residue_starts).astype("<u4")),
            "names": words(structure.residue_names[first]), "numbers": words(numbers), "chains": words(chains[first]),
            "kinds": packed(kinds[first].astype("u1")),
        },
    }


def surface_depth(structure: Structure, chosen: NDArray[np.bool_], cavities: bool = False) -> Grid:
    """Return depths inside the molecular surface of the chosen atoms, except waters; cavities are filled by default.

    Raises
    ------
    InputError
        When no atom has a radius.
    MemoryPlanError
        When the lattice does not fit into memory.
    """
    dry = chosen & ~is_water(structure)
    rows = dry if dry.any() else chosen
    extent = np.ptp(structure.positions[rows], axis=0) + 8
    spacing = max(LEAST_SPACING, SPACING * (rows.sum() / SMALL) ** 0.4,
                  float(np.prod(extent) / SURFACE_POINTS) ** (1 / 3))
    return depth_map(structure, rows, spacing, cavities=cavities)


def surface_content(depth: Grid) -> dict[str, Any]:
    """Return depths inside a molecular surface, in 8 bits.

    The unit is 1/32 of the spacing, so that the surface is accurate to 1/64 of it; beyond four spacings only the sign
    is kept.
    """
    lattice = depth.lattice
    step = float(lattice.spacing[0]) / 32
    return {
        "origin": lattice.origin.tolist(), "spacing": lattice.spacing.tolist(), "shape": list(lattice.shape),
        "step": step, "data": packed(np.clip(np.rint(depth.values / step), -127, 127).astype("i1")),
    }
