"""Screened potentials on a mesh on a GPU, against the CPU's exact sum and the same map there."""

import numpy as np
import pytest
import sums
from helpers import charges_at, relative_rms

from vmdpotential.maps import potential_map
from vmdpotential.molecule.samples import water_box

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("boundary", sums.CELLS)
@pytest.mark.parametrize("salt", [0.15, 1.0])
def test_the_tolerance_is_kept(engine, boundary, salt):
    positions, charges = water_box(30.0)
    structure = charges_at(positions, charges + 0.01, sums.CELLS[boundary])  # k = 0 counts
    options = {"method": "pme", "screened": salt, "spacing": 0.7, "field": True}
    actual, expected = (potential_map(structure, tolerance=tolerance, engine=name, **options)
                       for name, tolerance in ((engine.name, 1e-4), ("cpu", 1e-5)))
    made = actual.provenance
    assert (made.method, made.engine) == ("pme", engine.name)
    assert 0 < max(made.error, made.error_away, made.error_field, made.error_field_away) <= 1e-4
    assert relative_rms(actual.values, expected.values) < 1.3e-4
    fields = (np.array([part.values for part in grid.field]) for grid in (actual, expected))
    assert relative_rms(*fields) < 1.3e-4
