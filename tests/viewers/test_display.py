"""What dialogs show at once, and how viewers colour a surface, without a viewer."""

from dataclasses import replace

import numpy as np
import pytest

from vmdpotential import registry
from vmdpotential.figures import colours
from vmdpotential.figures.page import Panel, compose_slices
from vmdpotential.frontend.declarations import in_front
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.grid.planes import Plane
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.viewers import adapters, map_surfaces
from vmdpotential.plugins.viewers.display import surface_options, vmd_options
from vmdpotential.plugins.viewers.vmd import command_declarations
from vmdpotential.plugins.web.content import map_content


def test_ranks_are_declared_and_what_is_needed_is_in_front():
    commands = command_declarations()["commands"]
    front = {name: [option["name"] for option in command["options"] if option["front"]]
             for name, command in commands.items()}
    # the parameters of a medium are folded where there is one to choose
    assert front["map"] == ["structure", "medium"]
    assert {"structure", "stat", "frames"} <= set(front["average"])
    assert len(front["average"]) < len(commands["average"]["options"]) / 3
    for name, command in commands.items():
        assert {option["name"] for option in command["options"] if option["required"]} <= set(front[name])


def test_a_command_without_ranks_is_shown_whole():
    command = registry.get("command", "forces")
    bare = type(command)("bare", command.function, tuple(p for p in command.parameters if not p.option.front))
    assert all(in_front(bare, parameter) for parameter in bare.parameters)


def test_range_of_colours():
    for text, expected in (("5", (-5, 5)), ("-5", (-5, 5)), ("-5,20", (-5, 20)), ("1 2", (1, 2))):
        assert map_surfaces.colour_range(text) == expected
    for text in ("", "spam", "2,1", "1,2,3", "0", "inf"):
        with pytest.raises(ValueError):
            map_surfaces.colour_range(text)


def structure(residue):
    return Structure(np.array([[0.0, 0, 0], [1.5, 0, 0]]), np.array(["C1", "C2"]), np.array([residue] * 2),
                     np.array([1, 1]), np.array([0, 0]), elements=np.array(["C", "C"]))


@pytest.mark.parametrize("residue", ["LIG", "HOH"])
def test_colours_follow_the_map_beside_the_molecule(residue):
    lattice = Lattice(np.full(3, -12.0), np.ones(3), (26, 26, 26))
    points = lattice.points(np.stack(np.meshgrid(*[np.arange(26)] * 3, indexing="ij"), -1).reshape(-1, 3))
    distance = np.linalg.norm(points[:, None] - structure(residue).positions, axis=2).min(1)
    # large inside and far away, and from -7 to 7 next to the molecule
    values = np.where((distance > 1.5) & (distance < 4), 7 * np.sign(points[:, 1]), 5000.0)
    grid = Grid(lattice, values.reshape(lattice.shape), "kT/e", 300.0, provenance=Provenance(medium="vacuum"))
    span = map_surfaces.surface_range(grid, structure(residue))
    assert span == (-8, 8)
    assert map_surfaces.surface_range(grid, None).high >= 5000
    assert map_surfaces.legend(grid, span) == "-8 to 8 kT/e at 300 K, vacuum"


@pytest.mark.parametrize(("medium", "kind", "unit", "limit"), [
    ("screened, 0.15 M, dielectric 78.5", "screened", "kT/e", 5),
    ("water (Poisson-Boltzmann), no salt", "water", "kT/e", 5),
    ("screened, 0.15 M, dielectric 78.5", "screened", "V", 0.1),
    ("screened, 0.15 M, dielectric 78.5", "screened", "kcal/mol/e", 3),
    ("vacuum, no screening", "vacuum", "kT/e", None), ("explicit water", "explicit", "kT/e", None),
    ("", "", "kT/e", None),
    ("screened, 0.15 M, dielectric 78.5 minus vacuum, no screening", "", "kT/e", None),
])
def test_potentials_in_water_have_one_range_in_every_viewer_page_and_figure(medium, kind, unit, limit):
    lattice = Lattice(np.zeros(3), np.ones(3), (9, 9, 9))
    values = 40 * np.random.default_rng(1).normal(size=lattice.shape)
    grid = Grid(lattice, values, unit, 298.15, provenance=Provenance(medium=medium, medium_kind=kind))
    spans = [map_surfaces.surface_range(grid, structure("LIG")), map_surfaces.surface_range(grid, None),
             compose_slices([Panel(grid, Plane.parse("z=4"))]).ranges[0]]
    if limit is not None:
        assert set(spans) == {(-limit, limit)}
        assert map_content(grid, "m", lattice.points(), 0, 1000)["limit"] == limit
    else:
        assert all(span[1] > 60 for span in spans)
        assert map_content(grid, "m", lattice.points(), 0, 1000)["limit"] is None


@pytest.mark.parametrize("span", [(-5, 5), (-1, 4), (0, 3), (-2, 0), (1, 6)])
def test_colours_between_the_stops_of_a_scale_are_those_of_every_value(span):
    values, shades = zip(*colours.scale(span), strict=True)
    assert values[0] == span[0]
    assert values[-1] == span[1]
    rgb = np.array([list(bytes.fromhex(shade[1:])) for shade in shades])
    at = np.linspace(*span, 101)
    between = np.stack([np.interp(at, values, channel) for channel in rgb.T], -1)
    assert np.abs(between - colours.rgb_of(at, span)).max() <= 2
    if span[0] <= 0 <= span[1]:
        assert colours.rgb_of([0.0], span).tolist() == [[247, 247, 247]]
    assert colours.rgb_of([np.nan], span).tolist() == [[204, 204, 204]]


def test_the_surface_is_that_of_the_atoms_of_the_map():
    """A ligand and a sodium ion in 110 waters, and a mark of a membrane."""
    residues = np.array(["LIG", "LIG", "SOD", "DUM", *["HOH"] * 330])
    numbers = np.concatenate([[1, 1, 2, 3], np.repeat(np.arange(4, 114), 3)])
    made = Structure(np.random.default_rng(1).uniform(0, 30, (334, 3)),
                     np.array(["C1", "C2", "SOD", "N", *["O", "H1", "H2"] * 110]), residues, numbers, numbers - 1,
                     elements=np.array(["C", "C", "Na", "N", *["O", "H", "H"] * 110]))
    assert np.flatnonzero(map_surfaces.with_surface(made)).tolist() == [0, 1]
    assert np.flatnonzero(map_surfaces.with_surface(made, "all")).tolist() == [0, 1]
    assert np.flatnonzero(map_surfaces.with_surface(made, "not water")).tolist() == [0, 1, 2]
    assert np.flatnonzero(map_surfaces.with_surface(made, "//*/1/C1")).tolist() == [0]
    assert map_surfaces.with_surface(made.take(np.arange(4, 334))).all()


def test_only_commands_that_make_a_map_draw_a_surface():
    names = {command.name: [p.name for p in surface_options(command)] for command in adapters.viewer_commands(print)}
    assert names["map"] == names["average"] == ["surface", "surface_of", "hide_water", "range"]
    assert names["live"] == ["range"]
    assert names["energy"] == names["ionize"] == []


def test_the_unit_of_a_trajectory_is_offered_where_its_file_is():
    for name in registry.available("command"):
        options = {p.name: p.option for p in registry.get("command", name).parameters}
        if "length_unit" in options:
            where = [(options[each].viewer, options[each].shell) for each in ("length_unit", "trajectory")]
            assert where[0] == where[1], name


def test_options_follow_from_what_a_command_declares_and_not_from_its_name():
    for command in adapters.viewer_commands(print):
        other = replace(command, name="of_another_package")
        assert surface_options(other) == surface_options(command)
        assert vmd_options(other) == vmd_options(command)
    names = {command.name: [p.name for p in vmd_options(command)] for command in adapters.viewer_commands(print)}
    assert names["map"] == names["average"] == ["draw", "isovalue", "surface_of", "hide_water", "range"]
    assert names["live"] == ["isovalue", "range"]
    assert names["orbital"] == ["isovalue"]
    assert names["compare"] == names["density"] == names["energy"] == []
