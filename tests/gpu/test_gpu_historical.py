"""The kernels of 2007 and 2008 on a GPU, against definitions in float64 and against our own kernel.

Run with ``pytest -m gpu``, as tests/gpu/test_cuda.py.
"""

import numpy as np
import pytest
from helpers import definition, random_charges, relative_rms

from vmdpotential import registry
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import METHODS, direct
from vmdpotential.sums import ChargeStatistics, Request

pytestmark = pytest.mark.gpu

CASES = [(name, precision) for name in METHODS["cutoff"] for precision in registry.get("method", name).precisions]


def run(engine, name, lattice, positions, charges, bound, precision="single", cell=None):
    """Return what a registered method gives."""
    request = Request(lattice, cell, bound, ChargeStatistics.of(positions, charges, cell), precision)
    return registry.get("method", name).plan(request, engine).run(positions, charges)


def shifted(cutoff):
    return registry.get("interaction", "shifted_coulomb").bind(cutoff=cutoff)


@pytest.mark.parametrize(("variant", "precision"), CASES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 8, 9), (17, 9, 20)])
def test_every_spacing_and_interaction(engine, variant, precision, shape):
    positions, charges = random_charges(3000, -10, 20)
    truncated = registry.get("interaction", "screened_coulomb").bind().truncated(5.0)
    for spacing in (0.5, [0.5, 0.7, 0.9]):
        lattice = Lattice(np.array([-3.0, 1.7, 2.2]), spacing, shape)
        for bound in (shifted(2.3), shifted(9.0), shifted(30.0), truncated):  # the third takes several launches
            values = run(engine, variant, lattice, positions, charges, bound, precision).values()
            assert values.shape == shape
            reference = definition(lattice.points(), positions, charges, bound).reshape(shape)
            assert np.abs(values - reference).max() < 2e-5 * max(1, np.abs(reference).max())


def test_as_our_own_kernel_and_the_same_every_time(engine):
    positions, charges = water_box(46.4)
    positions = np.rint(positions * 4096) / 4096  # exact in single precision
    lattice = Lattice(np.full(3, 0.25), 0.5, (93, 93, 93))
    ours = run(engine, "cutoff", lattice, positions, charges, shifted(12.0), "double").values().astype(float)
    error = {}
    for variant, precision in CASES:
        first, second = (run(engine, variant, lattice, positions, charges, shifted(12.0), precision) for _ in range(2))
        error[variant, precision] = relative_rms(first.values(), ours)
        assert first.device_seconds > 0
        assert first.parts["cutoff summation"] == first.device_seconds
        np.testing.assert_array_equal(first.values(), second.values())
    assert max(error.values()) < 3e-6
    # where coordinates lose nothing, sums do
    for variant in ("smallbin", "overlap"):
        assert error[variant, "compensated"] < error[variant, "single"]


@pytest.mark.parametrize("variant", METHODS["direct"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 9, 33), (2, 17, 257)])
def test_direct_sums_equal_the_definition(engine, variant, shape):
    positions, charges = random_charges(max(direct.BATCH.values()) + 100, -6, 14)
    lattice = Lattice(np.array([-3.0, 1.7, 2.2]), np.array([0.5, 0.7, 0.9]), shape)
    coulomb = registry.get("interaction", "coulomb").bind()
    values = run(engine, variant, lattice, positions, charges, coulomb).values()
    reference = definition(lattice.points(), positions, charges, coulomb, None).reshape(shape)
    assert relative_rms(values, reference) < 2e-5


@pytest.mark.parametrize("name", [*METHODS["direct"], *METHODS["cutoff"]])
def test_benchmark(engine, name):
    report = registry.get("command", "benchmark")(engine="cuda", box=20, repeats=1, method=name)
    assert report.data["method"] == name
    assert report.data["device_median"] > 0
