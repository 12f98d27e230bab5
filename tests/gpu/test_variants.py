"""The cutoff sums of 2008 on a GPU, against definitions in float64 and against our own kernel.

Run with ``pytest -m gpu``, as tests/gpu/test_cuda.py.
"""

import numpy as np
import pytest
from helpers import definition, random_charges, relative_rms

from vmdpotential import registry
from vmdpotential.commands.benchmark import VARIANTS, water_box
from vmdpotential.engines.cuda import bins, maps
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell

pytestmark = pytest.mark.gpu

CASES = [(variant, precision) for variant, precisions in bins.CUTOFF.items() for precision in precisions]


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
            values = bins.cutoff(variant, lattice, positions, charges, bound, precision)
            assert values.shape == shape
            reference = definition(lattice.points(), positions, charges, bound).reshape(shape)
            assert np.abs(values - reference).max() < 2e-5 * max(1, np.abs(reference).max())


@pytest.mark.parametrize(("variant", "precision"), CASES)
@pytest.mark.parametrize("cell", [Cell.from_parameters(24, 25, 26, 70, 80, 110), Cell.from_parameters(9, 10, 40)],
                         ids=["triclinic", "shorter than the cutoff"])
def test_images(engine, variant, precision, cell):
    positions, charges = random_charges(300, -40, 40)
    lattice = Lattice.over_cell(cell, 1.3, [-5.0, 2.0, 1.0])
    values = bins.cutoff(variant, lattice, positions, charges, shifted(11.0), precision, cell)
    pick = np.random.default_rng(2).integers(0, lattice.shape, (300, 3))
    reference = definition(lattice.points(pick), positions, charges, shifted(11.0), cell)
    assert relative_rms(values[tuple(pick.T)], reference) < 1e-5


def test_as_our_own_kernel_and_the_same_every_time(engine):
    positions, charges = water_box(46.4)
    positions = np.rint(positions * 4096) / 4096  # exact in single precision
    lattice = Lattice(np.full(3, 0.25), 0.5, (93, 93, 93))
    ours = engine.cutoff(lattice, positions, charges, shifted(12.0), "double").astype(float)
    error = {}
    for variant, precision in CASES:
        values = bins.cutoff(variant, lattice, positions, charges, shifted(12.0), precision)
        error[variant, precision] = relative_rms(values, ours)
        assert maps.device_seconds > 0
        np.testing.assert_array_equal(
            values, bins.cutoff(variant, lattice, positions, charges, shifted(12.0), precision))
    assert max(error.values()) < 3e-6
    # where coordinates lose nothing, sums do
    for variant in ("smallbin", "overlap"):
        assert error[variant, "compensated"] < error[variant, "single"]


@pytest.mark.parametrize(("variant", "precision"), CASES)
def test_bins_that_are_much_too_full(engine, variant, precision):
    rng = np.random.default_rng(0)
    positions = np.concatenate([3.3 + rng.normal(size=(2000, 3)) * 1e-3, rng.uniform(0, 8, (50, 3))])
    charges = np.ones(len(positions))
    charges[::7] = 0
    lattice = Lattice(np.zeros(3), 1.0, (9, 9, 9))
    values = bins.cutoff(variant, lattice, positions, charges, shifted(6.0), precision)
    reference = definition(lattice.points(), positions, charges, shifted(6.0)).reshape(9, 9, 9)
    assert relative_rms(values, reference) < 2e-5


def test_atoms_out_of_reach_give_zeros(engine):
    lattice = Lattice(np.zeros(3), 1.0, (3, 3, 3))
    for variant in bins.CUTOFF:
        assert not bins.cutoff(variant, lattice, np.full((2, 3), 1e3), np.ones(2), shifted(12.0)).any()


@pytest.mark.parametrize(("method", "variant"), [(m, v) for m, names in VARIANTS.items() for v in names])
def test_benchmark(engine, method, variant):
    report = registry.get("command", "benchmark")(engine="cuda", method=method, variant=variant, box=20, repeats=1)
    assert report.data["variant"] == variant
    assert report.data["device_median"] > 0
