"""The errors that energies, forces and fields state, against sums over waves and over all pairs."""

import ewald
import numpy as np
import pytest
from helpers import charges_at, rms

from vmdpotential.engines import get_engine
from vmdpotential.frames.field import Places, field_at
from vmdpotential.methods.points import request_at, sum_at
from vmdpotential.molecule.cell import Cell, same_cell
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.pairs.energy import Between
from vmdpotential.pairs.options import EnergyOptions
from vmdpotential.units import coulomb_constant

CELLS = [Cell.from_parameters(24, 31, 37), Cell.from_parameters(28, 33, 30, 70, 100, 115)]

#: How much more than the stated error the actual one may be.
MORE = 1.3


def system(cell, seed, count=400):
    """Return charges of mixed signs, and no Lennard-Jones."""
    random = np.random.default_rng(seed)
    structure = charges_at(random.random((count, 3)) @ cell.vectors, random.normal(0.02, 0.5, count), cell)
    zero = np.zeros((1, 1))
    return structure, Nonbonded("none", ("X",), np.zeros(count, np.int64), zero, zero, np.zeros((0, 2), np.int64),
                                np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(0), np.zeros(0))


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
@pytest.mark.parametrize("cell", CELLS)
def test_energies_and_forces(cell, tolerance):
    for seed in range(2):
        structure, terms = system(cell, seed)
        a = np.arange(len(structure)) < 150
        pair = Between(structure, terms, a, ~a, EnergyOptions(cutoff=9.0, tolerance=tolerance), forces=True)
        actual = pair.run(structure.positions, cell)
        exact = Between(structure, terms, a, ~a, EnergyOptions(electrostatics="ewald", cutoff=9.0), forces=True)
        expected = exact.run(structure.positions, cell)
        assert exact.error is None
        assert max(pair.error, pair.error_forces) <= tolerance
        assert rms(actual.coulomb - expected.coulomb) < MORE * pair.error * rms(expected.coulomb)
        assert rms(actual.forces - expected.forces) < MORE * pair.error_forces * rms(expected.forces)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
@pytest.mark.parametrize("cell", CELLS)
def test_fields(cell, tolerance):
    for seed in range(2):
        structure, _ = system(cell, seed)
        places = np.random.default_rng(9).random((150, 3)) @ cell.vectors
        result = field_at(structure, Places.at(places, [str(n) for n in range(150)]), tolerance=tolerance)
        potential, *field = coulomb_constant("V") * ewald.with_field(
            places, structure.positions, structure.charges, cell.vectors)
        stated = result.relative_errors
        assert max(stated) <= tolerance
        assert rms(result.potential[0, 0] - potential) < MORE * stated[0] * rms(potential)
        assert rms(result.field[0, 0].T - field) < MORE * stated[1] * rms(np.array(field))


def test_values_at_points():
    random = np.random.default_rng(4)
    positions, charges = random.random((500, 3)) * 30, random.normal(0, 0.5, 500)
    points = random.random((3000, 3)) * 30
    exact = (charges / np.linalg.norm(points[:, None] - positions, axis=2)).sum(1)
    request = request_at(points, positions, charges, None, tolerance=1e-4)
    result = sum_at(request, points, positions, charges, get_engine("cpu"), "pme")
    assert rms(result.potential - exact) < MORE * result.error * rms(exact)


def test_cells_are_compared_by_one_rule():
    cell, other = (Cell.from_parameters(20, 21, 22 + change) for change in (0, 1e-6))
    assert same_cell(cell, cell)
    assert same_cell(None, None)
    assert not same_cell(cell, other)
    assert not same_cell(cell, None)
    assert same_cell(cell, other, 1e-6)
