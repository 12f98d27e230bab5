"""What is between the charges: screened potentials, and the words for it in files, legends and reports."""


from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at, interaction, random_charges, refused, relative_rms

from vmdpotential.commands.average import command as average
from vmdpotential.commands.map import command as map_
from vmdpotential.errors import UsageError
from vmdpotential.figures.page import Panel, compose_slices
from vmdpotential.figures.slices import quantity_label
from vmdpotential.grid import planes
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.maps import read_map, write_map
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.maps import MapOptions, Medium, potential_map
from vmdpotential.maps.interaction import implied_medium, in_medium, medium_of_sum
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.live.command import command as live
from vmdpotential.points import potential_at
from vmdpotential.sums.reference import definition
from vmdpotential.units import coulomb_constant, debye_length, ionic_strength


@pytest.fixture
def ions():
    return charges_at(*random_charges(12, 2, 8, seed=3))


def test_debye_length_is_that_of_textbooks():
    assert debye_length(1.0, 298.15, 78.5) == pytest.approx(3.04, abs=0.005)
    assert debye_length(0.15, 298.15, 78.5) == pytest.approx(3.042 / np.sqrt(0.15), rel=1e-3)
    assert debye_length(0.15, 2 * 298.15, 78.5) == pytest.approx(np.sqrt(2) * debye_length(0.15, 298.15, 78.5))
    assert ionic_strength(debye_length(0.3, 310, 74), 310, 74) == pytest.approx(0.3)
    assert debye_length(0.0, 298.15, 78.5) == np.inf


def test_one_word_screens_a_map_and_files_and_labels_say_so(ions, tmp_path):
    lattice = Lattice.around(ions.positions, 2.0, 4.0)
    grid = potential_map(ions, screened=0.15, lattice=lattice)
    length = debye_length(0.15, 298.15, 78.5)
    expected = coulomb_constant("kT/e", 298.15, 78.5) * definition(
        lattice.points(), ions.positions, ions.charges, interaction("screened_coulomb", debye_length=length), None)
    assert relative_rms(grid.values.ravel(), expected) < 1e-6
    assert grid.dielectric == 78.5
    for name in ("a.dx", "a.npz", "a.mrc"):
        write_map(grid, tmp_path / name)
        assert read_map(tmp_path / name).provenance.medium == "screened, 0.15 M, dielectric 78.5"
    assert quantity_label(grid) == ("Electrostatic potential, screened, 0.15 M, dielectric 78.5 (kT/e, T = 298.15 K)")
    plain = potential_map(ions, lattice=lattice, medium="explicit")
    assert "vacuum, no screening" in quantity_label(plain)
    assert (grid - plain).provenance.medium == "screened, 0.15 M, dielectric 78.5 minus vacuum, no screening"
    # the old way, by name, and without salt
    other = potential_map(ions, interaction="screened_coulomb", parameters={"debye_length": length}, dielectric=78.5,
                          lattice=lattice)
    assert np.array_equal(other.values, grid.values)
    assert potential_map(ions, screened=0.0, lattice=lattice).provenance.medium == "dielectric 78.5, no screening"
    assert potential_map(ions, screened=0.1, dielectric=40, lattice=lattice).dielectric == 40


def test_a_medium_is_one_object(ions):
    lattice = Lattice.around(ions.positions, 2.0, 4.0)
    for medium, options in (
            (Medium.vacuum(), {"medium": "vacuum"}),
            (Medium.vacuum(4.0, 310.0), {"medium": "vacuum", "dielectric": 4.0, "temperature": 310.0}),
            (Medium.screened(0.15), {"screened": 0.15}),
            (Medium.screened(0.1, 40.0, 310.0), {"screened": 0.1, "dielectric": 40.0, "temperature": 310.0})):
        by_object = potential_map(ions, medium=medium, lattice=lattice)
        by_options = potential_map(ions, lattice=lattice, **options)
        assert np.array_equal(by_object.values, by_options.values)
        assert by_object.provenance == by_options.provenance
        points = lattice.points()[:20]
        options.pop("medium", None)
        np.testing.assert_array_equal(potential_at(ions, points, medium=medium), potential_at(ions, points, **options))
    for wrong in ({"screened": 0.15}, {"dielectric": 4.0}, {"temperature": 310.0}, {"method": "pb"}):
        with pytest.raises(UsageError) as caught:
            potential_map(ions, medium=Medium.screened(0.15), **wrong)
        assert caught.value.parameter == "medium"


@pytest.mark.slow
def test_a_continuum_is_a_medium(ions):
    lattice = Lattice.around(ions.positions, 1.0, 8.0)
    by_object = potential_map(ions, medium=Medium.continuum(0.1, inside=4.0), radii="bondi", lattice=lattice)
    by_options = potential_map(ions, method="pb", parameters={"salt": 0.1, "inside": 4.0}, radii="bondi",
                               lattice=lattice)
    assert by_object.provenance == by_options.provenance
    assert np.array_equal(by_object.values, by_options.values)
    with pytest.raises(UsageError) as caught:
        Medium.continuum(method="pme")
    assert caught.value.parameter == "method"


@pytest.mark.slow
def test_the_tail_counts_in_the_error_of_a_periodic_map():
    rng = np.random.default_rng(5)
    cell = Cell.from_parameters(9.0, 10.0, 11.0)
    ions = charges_at(*random_charges(30, 0, 9, seed=4), cell)
    length = debye_length(1.5, 298.15, 78.5)
    bound = interaction("screened_coulomb", debye_length=length)
    grid = potential_map(ions, method="cutoff", screened=1.5, spacing=1.0, tolerance=1e-3)
    made = grid.provenance
    assert made.method == "cutoff"
    assert "truncated at" in made.interaction
    assert made.cutoff < 60
    assert 0 < min(made.error, made.error_away) <= max(made.error, made.error_away) <= 1e-3
    indices = rng.integers(0, grid.lattice.shape, (100, 3))
    expected = coulomb_constant("kT/e", 298.15, 78.5) * definition(
        grid.lattice.points(indices), ions.positions, ions.charges, bound.truncated(60.0), cell)
    assert 1e-9 < relative_rms(grid.values[tuple(indices.T)], expected) < 1e-3
    points = rng.uniform(0, 9, (300, 3))
    actual = potential_at(ions, points, screened=1.5, tolerance=1e-4)
    expected = coulomb_constant("kT/e", 298.15, 78.5) * definition(
        points, ions.positions, ions.charges, bound.truncated(60.0), cell)
    assert relative_rms(actual, expected) < 1e-4


def test_screened_is_an_interaction_by_itself(ions):
    for options in ({"smear": 1.0}, {"interaction": "distance_dependent"}, {"parameters": {"debye_length": 8.0}}):
        with refused("screened"):
            potential_map(ions, screened=0.15, **options)
    for command in (map_, average, live):
        assert {"screened", "radii"} <= {parameter.name for parameter in command.parameters}


def test_panels_of_several_media_have_scales_on_which_none_is_blank(ions):
    lattice = Lattice.around(ions.positions, 2.0, 4.0)
    vacuum, screened = (potential_map(ions, lattice=lattice, screened=salt) for salt in (None, 0.15))
    middle = planes.middle_plane(lattice)
    page = compose_slices([Panel(vacuum, middle), Panel(screened, middle)])
    assert page.ranges[1] == (-5, 5)
    for ax in page.axes:
        (image,) = ax.images
        low, high = image.get_clim()
        assert np.ptp(np.clip(image.get_array(), low, high)) > 0.2 * (high - low)
    asked = compose_slices([Panel(vacuum, middle), Panel(screened, middle)], value_range=(-9, 9))
    assert asked.ranges == ((-9, 9), (-9, 9))
    assert len(asked.figure.axes) == 3


@pytest.fixture(scope="module")
def wet():
    """A ligand and a sodium ion in 120 waters, with charges and without radii."""
    rng = np.random.default_rng(8)
    shape = np.array([[0, 0, 0], [0.76, 0.59, 0], [-0.76, 0.59, 0]])
    water = (rng.uniform(0, 20, (120, 1, 3)) + shape).reshape(-1, 3)
    numbers = np.concatenate([[1, 1, 2], np.repeat(np.arange(3, 123), 3)])
    return Structure(
        np.concatenate([[[10, 10, 10], [11.4, 10, 10], [30, 10, 10]], water]),
        np.array(["C1", "O1", "NA", *["O", "H1", "H2"] * 120]), np.array(["LIG", "LIG", "NA", *["HOH"] * 360]),
        numbers, numbers - 1, elements=np.array(["C", "O", "Na", *["O", "H", "H"] * 120]),
        charges=np.array([0.5, -0.5, 1.0, *[-0.8, 0.4, 0.4] * 120]))


WATER, DEBYE, SUM = {"method": "pb", "screened": None}, {"method": "auto", "screened": 0.15}, {"screened": None}


@pytest.mark.parametrize(("given", "medium", "atoms", "values", "option"), [
    ({}, "water", "solute", WATER, ""), ({"medium": "water"}, "water", "solute", WATER, None),
    ({"medium": "screened"}, "screened", "solute", DEBYE, None), ({"medium": "vacuum"}, "vacuum", "solute", SUM, None),
    ({"medium": "explicit"}, "explicit", "all", SUM, None), ({"atoms": "all"}, "explicit", "all", SUM, "atoms"),
    ({"atoms": "water"}, "explicit", "water", SUM, "atoms"),
    ({"atoms": "(LIG)"}, "water", "(LIG)", WATER, ""), ({"radii": "bondi"}, "water", "solute", WATER, ""),
    ({"method": "apbs"}, "water", "solute", {"method": "apbs"}, "method"),
    ({"method": "pb", "screened": 0.5}, "water", "solute", {"method": "pb", "screened": 0.5}, "method"),
    ({"screened": 0.5}, "screened", "solute", {"method": "auto", "screened": 0.5}, "screened"),
    ({"screened": 0.5, "medium": "water"}, "water", "solute", {"method": "pb", "screened": 0.5}, None),
    ({"method": "pme"}, "explicit", "all", {"method": "pme"}, "method"),
    ({"method": "pme", "atoms": "(LIG)"}, "vacuum", "(LIG)", {"method": "pme"}, "method"),
    ({"method": "pme", "medium": "screened"}, "screened", "solute", {"method": "pme", "screened": 0.15}, None),
    ({"cutoff": 9.0}, "explicit", "all", SUM, "cutoff"), ({"smear": 1.0}, "explicit", "all", SUM, "smear"),
    ({"boundary": "periodic"}, "explicit", "all", SUM, "boundary"),
    ({"interaction": "shifted_coulomb"}, "explicit", "all", SUM, "interaction"),
])
def test_options_imply_a_medium_which_sets_the_others(wet, given, medium, atoms, values, option):
    options = MapOptions(**given)
    if option is not None:
        assert implied_medium(options, wet) == (medium, option)
    made = in_medium(options, wet)
    assert (made.word, made.atoms) == (medium, atoms)
    assert values.items() <= vars(made).items()
    assert in_medium(made, wet) == made
    assert made.word == medium_of_sum(made).kind


@pytest.mark.parametrize(("given", "parameter"), [
    ({"medium": "honey"}, "medium"), ({"medium": "water", "method": "pme"}, "method"),
    ({"medium": "water", "boundary": "periodic"}, "boundary"), ({"medium": "water", "smear": 1.0}, "smear"),
    ({"medium": "water", "atoms": "all"}, "atoms"), ({"medium": "vacuum", "atoms": "all"}, "atoms"),
    ({"screened": 0.15, "atoms": "all"}, "atoms"), ({"medium": "explicit", "method": "pb"}, "method"),
    ({"medium": "screened", "method": "pb"}, "method"), ({"medium": "vacuum", "screened": 0.15}, "screened"),
    ({"medium": "explicit", "screened": 0.15}, "screened"), ({"method": "pb", "cutoff": 9.0}, "cutoff"),
    ({"method": "pb", "interaction": "shifted_coulomb"}, "interaction"), ({"method": "pb", "atoms": "all"}, "atoms"),
    ({"medium": "vacuum", "radii": "bondi"}, "radii"), ({"medium": "screened", "smear": 1.0}, "screened"),
])
def test_options_of_different_media_do_not_go_together(wet, given, parameter):
    with pytest.raises(UsageError) as caught:
        potential_map(wet, spacing=4.0, **given)
    assert caught.value.parameter == parameter


def test_a_map_is_that_of_the_solute_in_water_and_says_so(wet):
    options = {"structure": wet, "spacing": 2.0, "padding": 4.0}
    made = map_(**options)
    assert made.data["medium"].startswith("water (Poisson-Boltzmann), 0.15 M")
    assert (made.options.word, made.count) == ("water", 2)
    assert made.grid.provenance.molecule.startswith("2 atoms around 10.70 10.00 10.00")
    python = potential_map(wet, spacing=2.0, padding=4.0)
    assert np.array_equal(python.values, made.grid.values)
    assert live(**options).objects["grid"].provenance.medium == python.provenance.medium
    dry = wet.take(np.arange(2))
    assert np.array_equal(potential_map(dry, spacing=2.0, padding=4.0).values, python.values)
    water = map_(structure=wet.take(np.arange(3, len(wet))), spacing=4.0)
    assert (water.options.word, water.data["medium"]) == ("explicit", "explicit water")


def test_a_mean_over_frames_is_that_of_all_charges(wet):
    frames = LoadedFrames("frames", [(wet.positions, None), (wet.positions + 1.0, None)])
    made = average(structure=wet, trajectory=frames, spacing=4.0)
    assert made.data["medium"] == "explicit water"
    assert made.planning.map.chosen.all()
    assert average(structure=wet, trajectory=frames, spacing=4.0, medium="screened").planning.map.chosen.sum() == 2
    made = average(structure=wet, trajectory=frames, spacing=4.0, screened=0.1)
    assert made.data["medium"].startswith("screened, 0.1 M")


def test_marks_of_a_membrane_are_no_atoms(wet):
    names = wet.residue_names.copy()
    names[2] = "DUM"
    marked = replace(wet, residue_names=names)
    assert map_(structure=marked, spacing=4.0).count == 2
