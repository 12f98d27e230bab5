"""Frames whose cell is not what it should be: no command takes that of another frame for it."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at, shell

from vmdpotential.commands.rdf import command as rdf
from vmdpotential.errors import InputError, UsageError
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.field import Places, field_at
from vmdpotential.frames.profile import profile, profile_of_map
from vmdpotential.frames.whole import Alignment
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io import write_structure
from vmdpotential.io.trajectories.frames import Loaded
from vmdpotential.molecule.cell import Cell

CUBE, LARGER = Cell.from_parameters(20, 20, 20, 90, 90, 90), Cell.from_parameters(21, 21, 21, 90, 90, 90)
POSITIONS = np.random.default_rng(0).uniform(0, 20, (12, 3))
STRUCTURE = replace(charges_at(POSITIONS, np.tile([1.0, -1.0], 6), CUBE), atom_names=np.full(12, "C"))


def frames(*cells):
    return Loaded("the viewer", [(POSITIONS, cell) for cell in cells])


def cells_of(source):
    return [frame.cell for frame in source.part(source.numbers())]


TASKS = {
    "pairs": lambda source, cell=None: cells_of(CellFrames.of(STRUCTURE, source, "auto", cell)),
    "field": lambda source, cell=None: field_at(STRUCTURE, Places.atoms(np.arange(2), ["a", "b"]), source, cell=cell),
    "profile": lambda source, cell=None: profile(STRUCTURE, source, cell=cell),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_frame_without_a_cell_among_others_is_refused(task):
    with pytest.raises(InputError, match="the viewer: frame 2 has no periodic cell"):
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
    with pytest.raises(InputError, match="do not fit"):
        CellFrames.of(STRUCTURE, frames(Cell.from_parameters(2, 2, 2)), boundary)


def test_rdf_without_a_cell_says_what_it_takes():
    for wrong, message in ((None, "density of pairs; give cell"), (replace(CUBE, space_group="P 21 21 21"), "expand")):
        with pytest.raises(InputError, match=message):  # and not a boundary, which it has not
            rdf(structure=replace(STRUCTURE, cell=wrong), between=("all", "all"))


def test_errors_name_the_map_and_the_parameter():
    grid = Grid(Lattice(np.zeros(3), np.ones(3), (4, 4, 4)), np.zeros((4, 4, 4), np.float32), unit="V")
    with pytest.raises(InputError, match=r"^mean\.dx: the map has no periodic cell"):
        profile_of_map(grid, name="mean.dx")
    with pytest.raises(UsageError) as caught:
        Alignment.of(STRUCTURE, np.ones(12, bool), boundary="periodic", rotate=True)
    assert caught.value.parameter == "motion"


def test_a_list_in_a_hint_is_not_one_word(capsys, tmp_path):
    path = tmp_path / "ion.pdb"
    write_structure(STRUCTURE, path)
    code, _, err = shell(capsys, "rdf", path, "--between", "all")
    assert code == 2
    assert err.endswith("such as --between protein water\n")  # in quotes it would be one selection
