"""Poisson-Boltzmann on a GPU, against the CPU engine and Born's closed form."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at, relative_rms

from vmdpotential import potential_map

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("nonlinear", [0, 1])
def test_map_is_that_of_the_cpu(engine, nonlinear):
    rng = np.random.default_rng(8)
    places = rng.uniform(-6, 6, (60, 3))
    molecule = replace(charges_at(places, rng.normal(size=60)), radii=np.full(60, 1.7))
    actual, expected = (potential_map(molecule, method="pb", spacing=0.4, engine=name,
                                     parameters={"nonlinear": nonlinear}) for name in (engine.name, "cpu"))
    assert actual.provenance.engine == engine.name
    assert relative_rms(actual.values, expected.values) < 1e-5
