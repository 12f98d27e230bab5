"""Frames whose cells change their shape, not their lengths alone: what follows them, and what refuses them by name."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import relative_rms, water

from vmdpotential.commands.average import command as average
from vmdpotential.errors import InputError, UsageError
from vmdpotential.frames.field import Places, field_at
from vmdpotential.frames.profile import profile
from vmdpotential.io.trajectories.frames import Loaded
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell

CELL = Cell.from_parameters(9.3, 9.6, 10.2, 80, 95, 104)
#: Angles that change, and lengths alone.
SHEARED = [CELL, Cell.from_parameters(9.4, 9.6, 10.0, 81, 94, 103), Cell.from_parameters(9.2, 9.5, 10.3, 79, 96, 106)]
STRETCHED = [Cell(CELL.vectors * by) for by in ([1, 1, 1], [1.02, 0.99, 1.01], [0.99, 1.02, 0.98])]
BOX = water(9.0, CELL)
OPTIONS = {"spacing": 1.5, "tolerance": 1e-3, "engine": "cpu", "smear": 1.5}


def frames(cells):
    """Return the box in other cells, each atom at the same fractions of them."""
    return Loaded("frames", [(BOX.positions @ np.linalg.inv(CELL.vectors) @ cell.vectors, cell) for cell in cells])


def test_an_average_follows_lengths_and_names_the_frame_of_another_shape():
    made = average(structure=BOX, trajectory=frames(STRETCHED), fit="none", **OPTIONS).objects["grid"]
    planned = potential_map(BOX, **OPTIONS).lattice
    maps = []
    for (positions, cell), by in zip(frames(STRETCHED).buffered, ([1, 1, 1], [1.02, 0.99, 1.01], [0.99, 1.02, 0.98]),
                                     strict=True):
        lattice = replace(planned, origin=planned.origin * by, spacing=planned.spacing * by)
        maps.append(potential_map(replace(BOX, positions=positions, cell=cell), lattice=lattice, **OPTIONS).values)
    assert relative_rms(made.values, np.mean(maps, axis=0)) < 2e-3
    with pytest.raises(InputError, match=r"frames: the cell of frame 1 \(9.4 x .*\) differs .*other frames"):
        average(structure=BOX, trajectory=frames(SHEARED), fit="none", **OPTIONS)


def test_a_profile_meets_at_fractions_of_its_axis():
    result = profile(BOX, frames(SHEARED), axis=2, spacing=0.5, smear=0.5)
    one_by_one = [profile(replace(BOX, positions=positions, cell=cell), axis=2, spacing=cell.vectors[2, 2] / 20.5,
                          smear=0.5) for positions, cell in frames(SHEARED).buffered]
    assert result.values.shape == one_by_one[0].values.shape
    assert relative_rms(result.values, np.mean([item.values for item in one_by_one], axis=0)) < 1e-3
    assert result.period == pytest.approx(np.mean([cell.vectors[2, 2] for cell in SHEARED]))
    level = Cell.from_parameters(9.3, 9.6, 10.2)
    with pytest.raises(UsageError, match=r"axis=x: in frame 1 the cell .* has no period .*use axis=z"):
        profile(BOX, frames([level, SHEARED[1]]), axis=0)


def test_fields_are_those_of_each_frames_own_cell():
    places = Places.atoms(np.arange(5), ["O"] * 5)
    result = field_at(BOX, places, frames(SHEARED))
    for n, (positions, cell) in enumerate(frames(SHEARED).buffered):
        alone = field_at(replace(BOX, positions=positions, cell=cell), places)
        assert relative_rms(result.field[n], alone.field[0]) < 1e-4
        assert relative_rms(result.potential[n], alone.potential[0]) < 1e-4
