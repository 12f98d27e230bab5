"""An entry whose molecular surface has the same colours in all programs, and what they are compared with."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import matplotlib.colors
import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.spatial import cKDTree

import vmdpotential as vp
from vmdpotential.figures.colours import COLOUR_STOPS
from vmdpotential.molecule.elements import van_der_waals_radii

#: Largest difference of the value that a colour stands for, as a fraction of the range of the colours.
TOLERANCE = 0.01

#: Range of the colours, kT/e, and number of shades of the references.
LOW, HIGH, SHADES = -5.0, 5.0, 4001

#: Spacing of the map, A.
SPACING = 1.0


@dataclass
class Entry:
    """Lysozyme in a file, and its potential in water."""

    path: Path
    structure: vp.Structure
    grid: vp.Grid

    @cached_property
    def shades(self):
        """Red, green and blue (SHADES, 3), 0 to 1, of equidistant values of the range."""
        scale = matplotlib.colors.LinearSegmentedColormap.from_list("", COLOUR_STOPS, SHADES)
        return scale(np.linspace(0, 1, SHADES))[:, :3]

    def value_at(self, vertices, normals):
        """Return the values 1.4 A outside; NaN where this would be within a water of another wall."""
        value = RegularGridInterpolator(self.grid.lattice.axes(), self.grid.values.astype(float), bounds_error=True)
        places = vertices + 1.4 * normals
        distance, atom = cKDTree(self.structure.positions).query(places, 16)
        near = distance - van_der_waals_radii(self.structure.elements)[atom]
        return np.where(near.min(1) > 1.3, value(places), np.nan)

    def check(self, colours, values):
        """Compare the values that colours (N, 3), 0 to 1, stand for, at 1,000 vertices whose values are known."""
        known = np.flatnonzero(np.isfinite(values))
        chosen = np.random.default_rng(3).choice(known, 1000, replace=False)
        stated = np.linspace(LOW, HIGH, SHADES)[cKDTree(self.shades).query(colours[chosen])[1]]
        differences = np.abs(stated - np.clip(values[chosen], LOW, HIGH))
        assert differences.max() < TOLERANCE * (HIGH - LOW)


def write_entry(folder):
    """Write the entry to a folder and return it."""
    structure = vp.prepare(vp.read_structure(Path(__file__).parents[2] / "data" / "1aki.pdb.gz")).structure
    vp.write_structure(structure.take(vp.select(structure, "protein")), folder / "entry.pqr")
    structure = vp.read_structure(folder / "entry.pqr")
    return Entry(folder / "entry.pqr", structure, vp.potential_map(structure, spacing=SPACING))
