"""Cells of frames: missing, too small, or changing their lengths and angles."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at, refused, relative_rms, water
from messages import Words, naming

from vmdpotential.commands.average import command as average
from vmdpotential.errors import InputError, UsageError
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.whole import FrameAlignment
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.fields.field import field_at
from vmdpotential.plugins.fields.profile import profile, profile_of_map
from vmdpotential.plugins.fields.sites import FieldSites
from vmdpotential.plugins.pairs.rdf_command import command as rdf

CUBE, LARGER = Cell.from_parameters(20, 20, 20, 90, 90, 90), Cell.from_parameters(21, 21, 21, 90, 90, 90)
POSITIONS = np.random.default_rng(0).uniform(0, 20, (12, 3))
STRUCTURE = replace(charges_at(POSITIONS, np.tile([1.0, -1.0], 6), CUBE), atom_names=np.full(12, "C"))


def frames(*cells):
    return LoadedFrames("the viewer", [(POSITIONS, cell) for cell in cells])


def cells_of(source):
    return [frame.cell for frame in source.part(source.numbers())]


TASKS = {
    "pairs": lambda source, cell=None: cells_of(CellFrames.of(STRUCTURE, source, "auto", cell)),
    "field": lambda source,
    cell=None: field_at(STRUCTURE, FieldSites.atoms(np.arange(2), ["a", "b"]), source, cell=cell),
    "profile": lambda source, cell=None: profile(STRUCTURE, source, cell=cell),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_frame_without_a_cell_among_others_is_refused(task):
    with naming(InputError, "the viewer: frame 2 "):
        TASKS[task](frames(CUBE, LARGER, None))
    TASKS[task](frames(CUBE, LARGER, None), CUBE)  # as the user says
    TASKS[task](frames(None, None))  # a format without cells: the structure's


def test_cells_of_frames_for_pairs():
    cells = TASKS["pairs"]
    assert cells(frames(CUBE, LARGER)) == [CUBE, LARGER]
    assert cells(frames(CUBE, LARGER), LARGER) == [LARGER, LARGER]
    assert cells(frames(None, None)) == [CUBE, CUBE]


@pytest.mark.parametrize("boundary", ["auto", "periodic"])
def test_a_cell_that_the_atoms_of_a_frame_do_not_fit_into_is_refused(boundary):
    with naming(InputError, Words.OUTSIDE_OF_CELL):
        CellFrames.of(STRUCTURE, frames(Cell.from_parameters(2, 2, 2)), boundary)


def test_rdf_without_a_cell_says_what_it_takes():
    for wrong, message in ((None, "density of pairs; give cell"), (replace(CUBE, space_group="P 21 21 21"), "expand")):
        with pytest.raises(InputError, match=message):  # and not a boundary, which it has not
            rdf(structure=replace(STRUCTURE, cell=wrong), between=("all", "all"))


def test_errors_name_the_map_and_the_parameter():
    grid = Grid(Lattice(np.zeros(3), np.ones(3), (4, 4, 4)), np.zeros((4, 4, 4), np.float32), unit="V")
    with naming(InputError, "mean.dx: "):
        profile_of_map(grid, name="mean.dx")
    with pytest.raises(UsageError) as caught:
        FrameAlignment.of(STRUCTURE, np.ones(12, bool), boundary="periodic", rotate=True)
    assert caught.value.parameter == "motion"


CELL = Cell.from_parameters(9.3, 9.6, 10.2, 80, 95, 104)
#: Angles that change, and lengths alone.
SHEARED = [CELL, Cell.from_parameters(9.4, 9.6, 10.0, 81, 94, 103), Cell.from_parameters(9.2, 9.5, 10.3, 79, 96, 106)]
STRETCHED = [Cell(CELL.vectors * by) for by in ([1, 1, 1], [1.02, 0.99, 1.01], [0.99, 1.02, 0.98])]
BOX = water(9.0, CELL)
OPTIONS = {"spacing": 1.5, "tolerance": 1e-3, "engine": "cpu", "smear": 1.5}


def box_frames(cells):
    """Return the box in other cells, each atom at the same fractions of them."""
    return LoadedFrames("frames",
                        [(BOX.positions @ np.linalg.inv(CELL.vectors) @ cell.vectors, cell) for cell in cells])


def test_an_average_follows_lengths_and_names_the_frame_of_another_shape():
    made = average(structure=BOX, trajectory=box_frames(STRETCHED), fit="none", **OPTIONS).objects["grid"]
    planned = potential_map(BOX, **OPTIONS).lattice
    maps = []
    for (positions, cell), by in zip(box_frames(STRETCHED).held, ([1, 1, 1], [1.02, 0.99, 1.01], [0.99, 1.02, 0.98]),
                                     strict=True):
        lattice = replace(planned, origin=planned.origin * by, spacing=planned.spacing * by)
        maps.append(potential_map(replace(BOX, positions=positions, cell=cell), lattice=lattice, **OPTIONS).values)
    assert relative_rms(made.values, np.mean(maps, axis=0)) < 2e-3
    with naming(InputError, "frames: ", " frame 1 (9.4 x ", ") "):
        average(structure=BOX, trajectory=box_frames(SHEARED), fit="none", **OPTIONS)


def test_a_profile_meets_at_fractions_of_its_axis():
    result = profile(BOX, box_frames(SHEARED), axis=2, spacing=0.5, smear=0.5)
    one_by_one = [profile(replace(BOX, positions=positions, cell=cell), axis=2, spacing=cell.vectors[2, 2] / 20.5,
                          smear=0.5) for positions, cell in box_frames(SHEARED).held]
    assert result.values.shape == one_by_one[0].values.shape
    assert relative_rms(result.values, np.mean([item.values for item in one_by_one], axis=0)) < 1e-3
    assert result.period == pytest.approx(np.mean([cell.vectors[2, 2] for cell in SHEARED]))
    level = Cell.from_parameters(9.3, 9.6, 10.2)
    with refused("axis", "x"):
        profile(BOX, box_frames([level, SHEARED[1]]), axis=0)


def test_fields_are_those_of_each_frames_own_cell():
    places = FieldSites.atoms(np.arange(5), ["O"] * 5)
    result = field_at(BOX, places, box_frames(SHEARED))
    for n, (positions, cell) in enumerate(box_frames(SHEARED).held):
        alone = field_at(replace(BOX, positions=positions, cell=cell), places)
        assert relative_rms(result.field[n], alone.field[0]) < 1e-4
        assert relative_rms(result.potential[n], alone.potential[0]) < 1e-4
