"""Masked arrays are refused where values are masked: those below the mask have no meaning."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import water
from messages import Words, naming

from vmdpotential import potential_at, potential_map, select
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.maps import MapOptions
from vmdpotential.plugins.live.live_map import LiveMap


@pytest.fixture
def structure():
    return water(8.0)


def masked(values):
    values = np.ma.array(values, copy=True)
    values[1] = np.ma.masked
    return values


@pytest.mark.parametrize("name", ["positions", "charges", "radii", "residue_ids"])
def test_masked_values_of_atoms_are_refused(structure, name):
    values = getattr(structure, name)
    values = np.ones(len(structure)) if values is None else values
    with naming(InputError, Words.MASKED) as caught:
        replace(structure, **{name: masked(values)})
    assert name.replace("_", " ") in str(caught.value)
    whole = replace(structure, **{name: np.ma.array(values)})  # without a masked value it is an array like others
    np.testing.assert_array_equal(getattr(whole, name), values)


def test_masked_points_maps_selections_and_frames_are_refused(structure):
    lattice = Lattice((0, 0, 0), 1.0, (3, 3, 3))
    grid = potential_map(structure, lattice=lattice, method="direct")
    points = masked(np.zeros((3, 3)))
    chosen = masked(np.ones(len(structure), bool))
    for action in (lambda: potential_at(structure, points), lambda: grid(points), lambda: select(structure, chosen),
                   lambda: Grid(lattice, masked(grid.values), "kT/e"),
                   lambda: LiveMap(structure, MapOptions(method="direct", spacing=2.0, padding=2.0)).update(
                       masked(structure.positions))):
        with naming(InputError, Words.MASKED):
            action()
