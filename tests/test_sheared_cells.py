"""Frames whose cells change their shape, not their lengths alone: what follows them, and what refuses them by name."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import relative_rms, water

from vmdpotential.commands.average import command as average
from vmdpotential.errors import InputError, UsageError
from vmdpotential.frames.profile import profile
from vmdpotential.io.trajectories.frames import Loaded
from vmdpotential.molecule.cell import Cell

CELL = Cell.from_parameters(9.3, 9.6, 10.2, 80, 95, 104)
SHEARED = [CELL, Cell.from_parameters(9.4, 9.6, 10.0, 81, 94, 103), Cell.from_parameters(9.2, 9.5, 10.3, 79, 96, 106)]
BOX = water(9.0, CELL)
OPTIONS = {"spacing": 1.5, "tolerance": 1e-3, "engine": "cpu", "smear": 1.5}


def frames(cells):
    """Return the box in other cells, each atom at the same fractions of them."""
    return Loaded("frames", [(BOX.positions @ np.linalg.inv(CELL.vectors) @ cell.vectors, cell) for cell in cells])


def test_an_average_names_the_frame_of_another_shape():
    with pytest.raises(InputError, match="frame 1"):
        average(structure=BOX, trajectory=frames(SHEARED), fit="none", **OPTIONS)


def test_a_profile_meets_at_fractions_of_its_axis():
    result = profile(BOX, frames(SHEARED), axis=2, spacing=0.5, smear=0.5)
    one_by_one = [profile(replace(BOX, positions=positions, cell=cell), axis=2, spacing=cell.vectors[2, 2] / 20.5,
                          smear=0.5) for positions, cell in frames(SHEARED).held]
    assert result.values.shape == one_by_one[0].values.shape
    assert relative_rms(result.values, np.mean([item.values for item in one_by_one], axis=0)) < 1e-3
    assert result.period == pytest.approx(np.mean([cell.vectors[2, 2] for cell in SHEARED]))
    level = Cell.from_parameters(9.3, 9.6, 10.2)
    with pytest.raises(UsageError, match=r"axis=x: in frame 1 the cell .* has no period .*use axis=z"):
        profile(BOX, frames([level, SHEARED[1]]), axis=0)
