"""What dialogs show at once, and how viewers colour a surface, without a viewer."""

import numpy as np
import pytest

from vmdpotential import registry
from vmdpotential.frontend import adapters
from vmdpotential.frontend.declarations import declarations, in_front
from vmdpotential.frontend.display import surface_options
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.molecule.structure import Structure


def test_ranks_are_declared_and_what_is_needed_is_in_front():
    commands = declarations()["commands"]
    front = {name: [option["name"] for option in command["options"] if option["front"]]
             for name, command in commands.items()}
    assert {"structure", "atoms", "spacing"} <= set(front["map"])
    assert len(front["map"]) < len(commands["map"]["options"]) / 3
    for name, command in commands.items():
        assert {option["name"] for option in command["options"] if option["required"]} <= set(front[name])


def test_a_command_without_ranks_is_shown_whole():
    command = registry.get("command", "forces")
    bare = type(command)("bare", command.function, tuple(p for p in command.parameters if not p.option.front))
    assert all(in_front(bare, parameter) for parameter in bare.parameters)


@pytest.mark.parametrize(("text", "wanted"), [("5", (-5, 5)), ("-5", (-5, 5)), ("-5,20", (-5, 20)), ("1 2", (1, 2))])
def test_range_of_colours(text, wanted):
    assert adapters.colour_range(text) == wanted


@pytest.mark.parametrize("text", ["", "spam", "2,1", "1,2,3", "0", "inf"])
def test_no_range_of_colours(text):
    with pytest.raises(ValueError, match="a number such as 5"):
        adapters.colour_range(text)


def structure(residue):
    return Structure(np.array([[0.0, 0, 0], [1.5, 0, 0]]), np.array(["C1", "C2"]), np.array([residue] * 2),
                     np.array([1, 1]), np.array([0, 0]), elements=np.array(["C", "C"]))


@pytest.mark.parametrize("residue", ["LIG", "HOH"])
def test_colours_follow_the_map_beside_the_molecule(residue):
    lattice = Lattice(np.full(3, -12.0), np.ones(3), (26, 26, 26))
    points = lattice.points(np.stack(np.meshgrid(*[np.arange(26)] * 3, indexing="ij"), -1).reshape(-1, 3))
    distance = np.linalg.norm(points[:, None] - structure(residue).positions, axis=2).min(1)
    # large inside and far away, and from -7 to 7 beside the molecule
    values = np.where((distance > 1.5) & (distance < 4), 7 * np.sign(points[:, 1]), 5000.0)
    grid = Grid(lattice, values.reshape(lattice.shape), "kT/e", 300.0, provenance=Provenance(medium="vacuum"))
    span = adapters.surface_range(grid, structure(residue))
    assert span == (-5, 5)
    assert adapters.surface_range(grid, None).high >= 5000
    assert adapters.legend(grid, span) == "-5 to 5 kT/e at 300 K, vacuum"


def test_no_surface_around_ions_beside_a_molecule():
    made = Structure(np.zeros((4, 3)), np.array(["C1", "C2", "SOD", "CLA"]), np.array(["LIG", "LIG", "SOD", "CLA"]),
                     np.array([1, 1, 2, 3]), np.array([0, 0, 1, 2]), elements=np.array(["C", "C", "Na", "Cl"]))
    assert adapters.with_surface(made).tolist() == [True, True, False, False]
    assert adapters.with_surface(made.take(np.array([2, 3]))).all()


def test_only_commands_that_make_a_map_draw_a_surface():
    names = {command.name: [p.name for p in surface_options(command)] for command in adapters.viewer_commands(print)}
    assert names["map"] == names["average"] == ["surface", "range"]
    assert names["live"] == ["range"]
    assert names["energy"] == names["ionize"] == []
