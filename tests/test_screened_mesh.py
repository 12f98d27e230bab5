"""Screened potentials on a mesh: the split, one ion, and maps against the sum over all images written out."""

import numpy as np
import pytest
import sums
from helpers import relative_rms

from vmdpotential.engines import get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import screened_coulomb, short_screened
from vmdpotential.methods import accuracy, pme
from vmdpotential.methods.reference import ewald_splitting, full_potential
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.coulomb import optimal
from vmdpotential.splitting.mesh import over_cell
from vmdpotential.splitting.screened import MOST, Screened, optimal_for_screened

ENGINE = get_engine("cpu")
CUBE = Cell.from_parameters(19, 19, 19)
TRICLINIC = Cell.from_parameters(18, 21, 20, 75, 80, 112)


def screened(length):
    return screened_coulomb.INTERACTION.bind(debye_length=length)


def images_written_out(points, positions, charges, cell, length, decays=25.0):
    """Return the sum over all images within some Debye lengths in float64."""
    positions, index = cell.images_in_box(positions, points.min(0) - decays * length, points.max(0) + decays * length)
    charges, found = charges[index], np.zeros(len(points))
    for part in np.array_split(np.arange(len(points)), 1 + len(points) * len(positions) // 4_000_000):
        d2 = np.maximum(((points[part] ** 2).sum(1)[:, None] - 2 * points[part] @ positions.T
                         + (positions**2).sum(1)), 1e-4)
        r = np.sqrt(d2)
        found[part] = (np.exp(-r / length) / r) @ charges
    return found


@pytest.mark.parametrize(("length", "order", "ratio"), [(0.4 * 4, 4, 3.0), (7.85, 6, 4.5), (1e4, 8, 7.0)])
def test_the_two_parts_are_the_screened_potential(length, order, ratio):
    smooth, error = optimal_for_screened(length, 4.0, 4.0 / ratio, order)
    r = np.linspace(0.02, 8.0, 500)
    np.testing.assert_allclose(smooth.short()(r) + smooth.long(r), screened(length)(r), atol=1e-12)
    np.testing.assert_allclose(np.polynomial.polynomial.polyval((r[r < 4] / 4) ** 2, smooth.polynomial),
                               smooth.long(r[r < 4]), atol=1e-12)
    below, above = smooth.long(4.0 + np.array([-1e-9, 1e-9]))
    assert below == pytest.approx(above, abs=2e-9)
    assert smooth.short().cutoff == 4.0
    assert error == pytest.approx(optimal(4.0, 4.0 / ratio, order)[1] / smooth.strength)
