"""Fields and energies by a mesh at points on a GPU, against the CPU engine."""

import numpy as np
import pytest
import sums
from helpers import charges_at, relative_rms

from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.fields.field import field_at
from vmdpotential.plugins.fields.sites import FieldSites
from vmdpotential.plugins.pairs.energy import InteractionEnergyPlan
from vmdpotential.plugins.pairs.options import EnergyOptions

pytestmark = pytest.mark.gpu

TOLERANCE = 1e-4


@pytest.mark.parametrize("boundary", sums.CELLS)
@pytest.mark.parametrize(("places", "salt"), [("atoms", None), ("points", None), ("atoms", 0.15)])
def test_fields_are_those_of_the_cpu(engine, boundary, places, salt):
    positions, charges = water_box(36.0 if boundary == "open" else 30.0)  # the exact sum of fewer takes less time
    structure = charges_at(positions, charges + 0.01, sums.CELLS[boundary])
    rows = np.arange(0, len(structure), 3)
    expected = FieldSites.atoms(rows, list(map(str, rows))) if places == "atoms" else FieldSites.at(
        positions[rows] + [0.7, -40.0 * (boundary != "open"), 0.1], list(map(str, rows)))
    sources = {"first": np.arange(len(structure)) < 500}
    actual, same, exact = (
        field_at(structure, expected, sources=sources, engine=name, screened=salt, tolerance=tolerance)
        for name, tolerance in ((engine.name, TOLERANCE), ("cpu", TOLERANCE), ("cpu", TOLERANCE / 100)))
    assert (actual.engine, same.engine) == (engine.name, "cpu")
    for series in (actual, same):  # they may choose different methods, and keep the tolerance each
        for n in range(len(actual.names)):
            assert relative_rms(series.potential[:, n], exact.potential[:, n]) < 1.3 * TOLERANCE
            assert relative_rms(series.field[:, n], exact.field[:, n]) < 1.3 * TOLERANCE


@pytest.mark.parametrize("boundary", sums.CELLS)
def test_energies_and_forces_are_those_of_the_cpu(engine, boundary):
    positions, charges = water_box(30.0)
    cell, count = sums.CELLS[boundary], len(charges)
    none, empty = np.zeros((0, 2), np.int64), np.zeros(0)
    terms = Nonbonded("test", ("X",), np.zeros(count, np.int64), np.full((1, 1), 600.0), np.full((1, 1), 6e5),
                      none, none, empty, empty, empty)
    a = np.arange(count) < 300
    for b in (~a, np.arange(count) >= 200):  # apart, and with some in both
        actual, expected = (
            InteractionEnergyPlan(charges_at(positions, charges, cell), terms, a, b,
                                  EnergyOptions(cutoff=9.0, engine=name),
                    forces=True).run(positions, cell) for name in (engine.name, "cpu"))
        assert relative_rms(actual.coulomb, expected.coulomb) < 1e-6
        assert relative_rms(actual.lennard_jones, expected.lennard_jones) < 1e-6
        assert relative_rms(actual.forces, expected.forces) < 1e-6
