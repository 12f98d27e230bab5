"""What `verify` checks of patches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vmdpotential.engines import Engine
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import molecular_surface
from vmdpotential.surfaces.patches import find_patches


def check_dipole(engine: Engine, seed: int) -> list[tuple[str, float, float]]:
    """Return the error of the area of a cap of a ball, where the potential of a dipole exceeds a threshold."""
    radius, threshold = 6.0, 0.5
    one = np.zeros(1, np.int64)
    structure = Structure(np.array([[0.1, 0.2, 0.3]]), np.array(["C"]), np.array(["MOL"]), one, one,
                          elements=np.array(["C"]))
    made = molecular_surface(replace(structure), atoms="all", radii=np.array([radius]))
    values = (made.vertices - structure.positions)[:, 2] / radius
    (cap, other), _ = find_patches(made, values, threshold, np.zeros(len(values), np.int64))
    exact = 2 * np.pi * radius**2 * (1 - threshold)
    return [("patches of a dipole's potential on a ball, closed form",
             max(abs(cap.area / exact - 1), abs(other.area / exact - 1)), 5e-3)]
