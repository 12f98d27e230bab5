"""A screened potential and its field at points and atoms by a mesh, against sums over pairs and images."""

import numpy as np
import pytest
from helpers import charges_at, rms

from vmdpotential import potential_at
from vmdpotential.engines import SOFT_CORE, PointSum, get_engine
from vmdpotential.engines.cpu import CpuEngine
from vmdpotential.frames.field import Places, field_at
from vmdpotential.interactions.screened_coulomb import in_water
from vmdpotential.molecule.cell import Cell
from vmdpotential.units import coulomb_constant

CELLS = {"open": None, "box": Cell.from_parameters(17, 19, 21),
         "triclinic": Cell.from_parameters(18, 19, 20, 75, 85, 95)}

#: M, whose Debye length of 3 A lets the sums over images end soon.
SALT = 1.0


def bound():
    return in_water(SALT, 298.15, 78.5)


def system(cell, count=300):
    """Return random charges, which are not neutral, in a cell and around it, the same for an open boundary."""
    random = np.random.default_rng(7)
    vectors = np.diag([17.0, 19, 21]) if cell is None else cell.vectors
    return charges_at(random.uniform(-0.5, 1.5, (count, 3)) @ vectors, random.normal(0.05, 0.5, count), cell)


def by_pairs(points, ions, cell, own=False):
    """Return potential and field at points, V and V/A, of all pairs within 60 A; at atoms without their own potential.
    """
    potential, slope = get_engine("cpu").prepare_points(PointSum(bound().truncated(60.0), cell)).at(
        points, ions.positions, ions.charges, True)
    if own:
        potential = potential - ions.charges * bound()(SOFT_CORE)
    return coulomb_constant("V", 298.15, 78.5) * potential, coulomb_constant("V", dielectric=78.5) * slope


@pytest.mark.parametrize("name", CELLS)
def test_points_by_a_mesh(name):
    cell = CELLS[name]
    ions = system(cell)
    points = np.random.default_rng(8).uniform(-10, 30, (250, 3))
    expected, _ = by_pairs(points, ions, cell)
    for tolerance in (1e-3, 1e-5):
        actual = potential_at(ions, points, screened=SALT, unit="V", method="pme", tolerance=tolerance)
        assert 1e-9 < rms(actual - expected) / rms(expected) < tolerance
    exact = potential_at(ions, points[:40], screened=SALT, unit="V")
    assert rms(exact - expected[:40]) < 1e-7 * rms(expected)


def test_points_that_hardly_anything_reaches_are_summed_exactly():
    ions = system(None, 50)
    far = np.random.default_rng(9).uniform(-10, 10, (300, 3)) + 150.0
    expected, _ = by_pairs(far, ions, None)
    direct = potential_at(ions, far, screened=SALT, unit="V", method="direct")
    assert 0 < rms(direct) < 1e-15
    assert rms(potential_at(ions, far, screened=SALT, unit="V") - direct) < 1e-5 * rms(direct)
    assert not expected.any()  # beyond its end


@pytest.mark.parametrize("name", CELLS)
def test_field_at_atoms_by_a_mesh(name, monkeypatch):
    # so that a mesh takes less time for few atoms too
    monkeypatch.setattr(CpuEngine, "point_costs", CpuEngine.point_costs._replace(
        pair_field=1e-3, sort=1e-3, image=1e-3))
    cell = CELLS[name]
    ions = system(cell)
    result = field_at(ions, Places.atoms(np.arange(len(ions)), [str(n) for n in range(len(ions))]), screened=SALT)
    potential, slope = by_pairs(ions.positions, ions, cell, own=True)
    assert rms(result.potential[0, 0] - potential) < 2e-5 * rms(potential)
    error = rms(result.field[0, 0] - slope)
    assert error < 2e-5 * rms(slope)
    assert 0.2 * error < result.error < 5 * error
