"""The CPU engine against float64 definitions and independent programs."""

from functools import partial

import numpy as np
import pytest
import sums
from helpers import interaction, random_charges, refused, relative_rms
from messages import Words, naming

from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.shifted import optimal_for_cutoff
from vmdpotential.sums.potential_sum import PRECISIONS, PotentialSum

ENGINE = get_engine("cpu")


@pytest.mark.slow
def test_direct_equals_the_fast_multipole_method():
    import fmm3dpy

    positions, charges = water_box(40.0)
    lattice = Lattice(np.full(3, 0.3), np.full(3, 1.0), (40, 40, 40))
    pick = np.random.default_rng(1).integers(0, 40, (2000, 3))
    actual = fmm3dpy.lfmm3d(eps=1e-9, sources=positions.T.copy(), charges=charges,
                           targets=lattice.points(pick).T.copy(), pgt=1)
    reference = 4 * np.pi * actual.pottarg
    for precision, tolerance in (("single", 1e-5), ("compensated", 2e-6), ("double", 2e-6)):
        values = sums.direct(ENGINE, lattice, positions, charges, interaction("coulomb"), precision)
        assert relative_rms(values[tuple(pick.T)], reference) < tolerance


def test_a_cutoff_much_shorter_than_the_spacing():
    lattice = Lattice(np.zeros(3), np.full(3, 100.0), (9, 10, 11))
    atoms = lattice.points() + np.random.default_rng(4).uniform(-0.4, 0.4, (lattice.size, 3))
    charges = np.random.default_rng(5).normal(size=lattice.size)
    bound = interaction("shifted_coulomb", cutoff=1.0)
    expected = charges * bound(np.maximum(np.linalg.norm(atoms - lattice.points(), axis=1), 0.01))
    values = sums.cutoff(ENGINE, lattice, atoms, charges, bound, "double")
    assert relative_rms(values.ravel(), expected) < 1e-7


def test_an_interaction_without_end_has_no_periodic_sum_of_pairs():
    with refused("cell") as error:
        PotentialSum(Lattice(np.zeros(3), np.ones(3), (3, 3, 3)), interaction("coulomb"), Cell(np.eye(3)))
    assert error.value.parameter == "cell"
    with naming(UsageError, Words.CHOICES, "single") as error:
        PotentialSum(Lattice(np.zeros(3), np.ones(3), (3, 3, 3)), interaction("coulomb"), precision="half")
    assert error.value.parameter == "precision"


def test_charges_outside_of_the_box_that_was_planned_for():
    """A smooth part without end cannot do them; one that ends leaves out those that no point sees."""
    lattice = Lattice(np.zeros(3), np.full(3, 1.0), (10, 10, 10))
    positions, charges = random_charges(100, 0, 9)
    for smooth in (sums.mesh_around(lattice, positions, 1.0, 6, 3.0),
                   sums.levels_around(lattice, positions, radius=4.0, spacing=1.0)):
        with pytest.raises(InputError):
            sums.by_mesh(ENGINE, lattice, positions + 50.0, charges, smooth)
    ending = sums.mesh_around(lattice, positions, 1.0, 6, 3.0, partial(optimal_for_cutoff, 6.0))
    far = np.concatenate([positions, positions - 60.0]), np.concatenate([charges, charges])
    np.testing.assert_array_equal(sums.by_mesh(ENGINE, lattice, *far, ending),
                                  sums.by_mesh(ENGINE, lattice, positions, charges, ending))


def test_maps_do_not_depend_on_the_number_of_threads(monkeypatch):
    positions, charges = random_charges(500, 0, 20)
    lattice = Lattice(np.zeros(3), np.full(3, 0.9), (22, 23, 24))
    maps = []
    for count in ("1", "3"):
        monkeypatch.setenv("VMDPOTENTIAL_THREADS", count)
        maps.append(sums.cutoff(ENGINE, lattice, positions, charges, interaction("shifted_coulomb")))
    np.testing.assert_array_equal(*maps)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_pads_a_tile_is_on_no_lattice_point(precision):
    """Spacings of hundreds of cutoffs, in which a tile reaches as far as the atoms that must not count."""
    lattice = Lattice(np.zeros(3), np.array([40.0, 51.2, 51.2]), (8, 8, 8))
    bound = interaction("shifted_coulomb", cutoff=0.1)
    values = sums.cutoff(ENGINE, lattice, lattice.spacing[None], np.ones(1), bound, precision)
    expected = np.zeros(lattice.shape)
    expected[1, 1, 1] = bound(0.01)
    np.testing.assert_allclose(values, expected, rtol=1e-6)
