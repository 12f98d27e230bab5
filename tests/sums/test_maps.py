"""potential_map and the command map."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at, refused, water
from messages import Words, naming
from scipy import constants

from vmdpotential import registry
from vmdpotential.commands.map import command
from vmdpotential.errors import IncompleteError, InputError, TaskError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io import read_map
from vmdpotential.maps import SumOptions, bind_interaction, check_tolerance, choose_cell, potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

DIPOLE = charges_at([[0, 0, 0.5], [0, 0, -0.5]], [1, -1])


def test_open_map_of_a_dipole_in_volt():
    grid = potential_map(DIPOLE, unit="V", padding=4, spacing=0.5, precision="double", medium="explicit")
    assert grid.provenance.method == "direct"
    assert grid.provenance.boundary == "open"
    points = grid.lattice.points().reshape(*grid.lattice.shape, 3)
    r = [np.maximum(np.linalg.norm(points - [0, 0, z], axis=-1), 0.01) for z in (0.5, -0.5)]
    volt = constants.e / (4 * np.pi * constants.epsilon_0) * 1e10 * (1 / r[0] - 1 / r[1])
    np.testing.assert_allclose(grid.values, volt, rtol=1e-6, atol=1e-6)
    assert grid.lattice.origin == pytest.approx([-4, -4, -4.5])
    assert grid.lattice.last == pytest.approx([4, 4, 4.5])


def test_units_temperature_and_dielectric_scale_the_values():
    volt = potential_map(DIPOLE, unit="V", padding=2, medium="explicit")
    thermal = potential_map(DIPOLE, unit="kT/e", temperature=310.0, dielectric=4.0, padding=2, medium="explicit")
    np.testing.assert_allclose(thermal.values, volt.values * constants.e / constants.k / 310 / 4, rtol=1e-6,
                               atol=1e-6)  # on a plane of symmetry there is only rounding, of float32
    assert (thermal.unit, thermal.temperature, thermal.dielectric) == ("kT/e", 310.0, 4.0)


@pytest.mark.parametrize(("options", "error"), [
    ({"precision": "half"}, "precision=half: is unknown; choose one of single"),
    ({"dielectric": 1e-320}, "is 0 or not a finite"),
    ({"temperature": 1e-320}, "is 0 or not a finite"),
    ({"dielectric": np.inf}, "a finite number is needed"),
    ({"dielectric": 1e-38}, "too large for a map"),
    ({"method": "cutoff", "interaction": "coulomb", "cutoff": np.inf}, "a finite number is needed"),
])
def test_values_that_no_map_can_hold_are_refused(options, error):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((UsageError, InputError), match=error):
            potential_map(DIPOLE, padding=1, **{"medium": "vacuum", **options})


def test_what_is_wanted_is_checked_at_its_limits():
    for tolerance in (1e-6, 0.1):
        assert check_tolerance(tolerance) == tolerance
    for tolerance in (0.99e-6, 0.101, np.nan):
        with refused("tolerance"):
            check_tolerance(tolerance)
    # an interaction with a cutoff of its own has the one that is asked for
    bound = [bind_interaction(SumOptions(method="cutoff", cutoff=cutoff), None) for cutoff in (None, 7.5)]
    assert [each.cutoff for each in bound] == [12.0, 7.5]
    # no matter has more than an atom in 1 A^3
    cell = Cell.from_parameters(5, 5, 5)
    places = np.random.default_rng(0).random((126, 3)) * 5
    assert choose_cell(charges_at(places[:124], np.zeros(124), cell), "pme", "periodic") == cell
    with naming(InputError, "126 atoms"):
        choose_cell(charges_at(places, np.zeros(126), cell), "pme", "periodic")


def test_periodic_map_covers_the_cell_around_the_atoms():
    cell = Cell.from_parameters(20, 21, 22)
    grid = potential_map(charges_at([[100, 0, 0], [101, 1, 1]], [1, -1], cell), spacing=0.9, medium="explicit")
    assert grid.provenance.boundary == "periodic"
    assert grid.provenance.method in ("pme", "msm")
    assert grid.lattice.spacing * grid.lattice.shape == pytest.approx([20, 21, 22])
    assert (grid.lattice.spacing <= 0.9).all()
    middle = grid.lattice.origin + np.array([10, 10.5, 11])
    assert middle == pytest.approx([100.5, 0.5, 0.5], abs=0.46)  # to half a spacing
    whole = grid.lattice.origin / grid.lattice.spacing
    assert whole == pytest.approx(np.rint(whole), abs=1e-9)


def test_atoms_choose_the_sources_but_not_the_cell():
    names = Structure(np.array([[0.0, 0, 0], [3, 0, 0]]), np.array(["OH2", "C"]), np.array(["TIP3", "LIG"]),
                      np.array([1, 2]), np.array([0, 1]), charges=np.array([5.0, 1.0]), elements=np.array(["O", "C"]),
                      cell=Cell.from_parameters(30, 30, 30))
    whole = potential_map(names, spacing=1, medium="explicit")
    solute = potential_map(names, spacing=1, atoms="solute", medium="explicit")
    alone = potential_map(names.take([1]), spacing=1, padding=0, lattice=solute.lattice, medium="explicit")
    assert solute.lattice.shape == whole.lattice.shape
    np.testing.assert_array_equal(solute.values, alone.values)
    assert solute.provenance.atoms == "solute"


def test_choices_that_do_not_fit():
    with refused("boundary", "periodic"):
        potential_map(DIPOLE, method="direct", boundary="periodic")
    with naming(InputError, Words.NO_CELL):
        potential_map(DIPOLE, boundary="periodic")
    # nothing is known of this residue, and without the extra prepare nothing can be completed
    with pytest.raises((TaskError, IncompleteError), match=r"no template|no charmm36 charge"):
        potential_map(Structure(np.zeros((1, 3)), *(np.array([x]) for x in ("C", "M", 1, 0))), medium="explicit")
    with refused("kappa"):
        potential_map(DIPOLE, interaction="screened_coulomb", parameters={"kappa": 1})


def test_an_end_that_nobody_asked_for_is_told(caplog):
    dipole = charges_at(DIPOLE.positions, DIPOLE.charges, Cell.from_parameters(20, 20, 20))
    damped = {"interaction": "distance_dependent", "parameters": {"slope": 5.0}, "spacing": 2}
    assert potential_map(dipole, **damped).provenance.cutoff == 12
    assert f"cut off at 12 A, where it is still {100 / (5 * 12):.2g} % of q/r" in caplog.text
    caplog.clear()
    potential_map(dipole, **damped, cutoff=20)
    potential_map(dipole, **damped | {"parameters": {"slope": 10.0}})
    potential_map(DIPOLE, **damped)
    assert not caplog.text


def test_charges_that_are_all_0_are_told(caplog):
    assert not potential_map(charges_at(DIPOLE.positions, np.zeros(len(DIPOLE))), spacing=2,
        medium="explicit").values.any()
    assert "are 0, and so is the potential" in caplog.text
    caplog.clear()
    potential_map(DIPOLE, spacing=2, medium="explicit")
    assert not caplog.text


def test_a_crystals_asymmetric_unit_is_no_periodic_system(caplog):
    cell = Cell.from_parameters(20, 20, 20, space_group="P 21 21 21")
    crystal = charges_at(DIPOLE.positions, DIPOLE.charges, cell)
    grid = potential_map(crystal, spacing=2, padding=4, medium="explicit")
    assert "asymmetric unit of a crystal (P 21 21 21); the boundary is open" in caplog.text
    assert grid.provenance.boundary == "open"
    np.testing.assert_array_equal(grid.values, potential_map(DIPOLE, spacing=2, padding=4, medium="explicit").values)
    with naming(InputError, "boundary=open"):
        potential_map(crystal, spacing=2, boundary="periodic")
    for name in ("P 1", "P1", " ", "no group"):
        whole = charges_at(DIPOLE.positions, DIPOLE.charges, Cell.from_parameters(20, 20, 20, space_group=name))
        assert potential_map(whole, spacing=2, medium="explicit").provenance.boundary == "periodic"


@pytest.mark.parametrize(("options", "message"), [
    ({"cutoff": 10.0}, "cutoff=10: the potential of coulomb is summed without a cutoff"),
    ({"method": "pme", "cutoff": 10.0}, "cutoff=10: the method pme has no cutoff; leave it out, or use method=cutoff"),
    ({"method": "msm", "cutoff": 10.0}, "cutoff=10: the method msm has no cutoff; leave it out, or use method=cutoff"),
    ({"method": "direct", "boundary": "open", "cutoff": 10.0}, "cutoff=10: the method direct has no cutoff"),
    ({"method": "cutoff", "algorithm": "fast"}, "algorithm=fast: is unknown; choose one of pair, mesh, auto"),
    ({"method": "pme", "algorithm": "mesh"}, "algorithm=mesh: only applies to the method cutoff; use method=cutoff"),
])
def test_options_that_would_change_nothing_are_refused(options, message):
    dipole = charges_at(DIPOLE.positions, DIPOLE.charges, Cell.from_parameters(20, 20, 20))
    with naming(UsageError, message) as error:
        potential_map(dipole, spacing=2, **options)
    assert error.value.parameter == message.partition("=")[0]


def test_other_interactions_by_cutoff_are_truncated():
    grid = potential_map(DIPOLE, method="cutoff", interaction="coulomb", cutoff=3.0, padding=8, unit="V")
    assert grid.provenance.interaction == "coulomb (truncated at 3 A)"
    assert grid.values[0, 0, 0] == 0
    assert grid.sample([0, 0, 3.0]) == pytest.approx(14.3996 * (1 / 2.5), rel=0.02)


def test_command_writes_a_map_with_its_provenance(tmp_path):
    path = tmp_path / "two charges.pqr"
    path.write_text("ATOM 1 C A 1 0.0 0.0 0.5 1.0 1.0\nATOM 2 C A 1 0.0 0.0 -0.5 -1.0 1.0\n")
    output = tmp_path / "map.dx"
    report = registry.get("command", "map")(structure=path, output=output, padding=3, temperature=300, medium="vacuum")
    assert report.data["net_charge"] == 0
    grid = read_map(output)
    assert isinstance(report.objects["grid"], Grid)
    np.testing.assert_allclose(grid.values, report.objects["grid"].values, rtol=1e-5)
    assert grid.provenance.inputs == ("two charges.pqr",)
    assert grid.temperature == 300
    assert grid.provenance.method == "direct"
    with naming(UsageError, output):
        registry.get("command", "map")(structure=path, output=output)


def test_a_structure_in_memory_needs_no_output():
    report = registry.get("command", "map")(structure=DIPOLE, padding=1)
    assert report.data["file"] is None
    assert report.objects["grid"].lattice.shape == (5, 5, 7)


class TestLattice:

    def test_sampling_is_exact_for_trilinear_functions(self):
        lattice = Lattice(np.array([-1, 2, 3]), np.array([0.5, 1, 0.25]), (5, 6, 7))
        x, y, z = lattice.points().T
        grid = Grid(lattice, (1 + x * y - 2 * x * y * z).reshape(lattice.shape))
        inside = np.random.default_rng(0).uniform(lattice.origin, lattice.last, (50, 3))
        expected = 1 + inside[:, 0] * inside[:, 1] - 2 * inside.prod(1)
        np.testing.assert_allclose(grid.sample(inside), expected, rtol=1e-5)
        assert grid.sample(lattice.last) == pytest.approx(grid.values[-1, -1, -1])
        assert np.isnan(grid.sample(lattice.last + 0.01))
        assert grid.sample(lattice.origin - 1, outside=0.0) == 0

    @pytest.mark.parametrize("options", [
        {"method": "cutoff"}, {"method": "msm", "tolerance": 1e-3},
        {"method": "pme", "tolerance": 1e-3, "field": True}])
    def test_header_round_trip(self, options):
        grid = potential_map(DIPOLE, padding=4, spacing=1, **options)
        again = Grid.from_header(grid.lattice, grid.values, grid.header())
        errors = [name for name in ("error", "error_away", "error_field", "error_field_away")
                  if getattr(grid.provenance, name) is not None]
        assert len(errors) == {"cutoff": 0, "msm": 2, "pme": 4}[options["method"]]
        for name in errors:
            assert 0 < getattr(grid.provenance, name) <= 1e-3
            assert getattr(again.provenance, name) == pytest.approx(getattr(grid.provenance, name), rel=1e-8)
        same = dict.fromkeys(errors)
        assert replace(again.provenance, **same) == replace(grid.provenance, **same)
        assert (again.unit, again.temperature, again.dielectric) == (grid.unit, grid.temperature, grid.dielectric)

    def test_impossible_lattices_are_refused(self):
        for origin, spacing, shape in (([0, 0, 0], 0.5, (1, 0, 1)), ([0, 0, 0], 0, (1, 1, 1)),
                                       ([np.nan, 0, 0], 1, (1, 1, 1))):
            with pytest.raises(UsageError, match=r"lattice|distance|coordinates"):
                Lattice(np.array(origin), np.full(3, spacing), shape)
        with naming(InputError, Words.NO_ATOMS):
            Lattice.around(np.zeros((0, 3)), 1.0)
        for spacing, padding, named in ((0, 1, "spacing"), (np.inf, 1, "spacing"), (1, -1, "padding")):
            with pytest.raises(UsageError, match=named):
                Lattice.around(np.zeros((1, 3)), spacing, padding)

    def test_a_cell_vector_may_point_to_negative_coordinates(self):
        cell = Cell(np.diag([-20.0, 21, 22]))
        grid = potential_map(charges_at([[5, 5, 5], [6, 6, 6]], [1, -1], cell), spacing=1, medium="explicit")
        middle = (grid.lattice.origin + grid.lattice.last) / 2
        assert middle == pytest.approx([5.5, 5.5, 5.5], abs=1)
        assert grid.sample([5.0, 5, 5]) > 100
        assert grid.sample([6.0, 6, 6]) < -100

    def test_lattice_around_atoms_covers_the_padding_with_whole_multiples(self):
        atoms = np.array([[-3.3, 0.1, 7.9], [2.2, 0.1, 9.1]])
        lattice = Lattice.around(atoms, 0.7, 2.0)
        assert (lattice.origin <= atoms.min(0) - 2 + 1e-6).all()
        assert (lattice.last >= atoms.max(0) + 2 - 1e-6).all()
        assert (lattice.origin > atoms.min(0) - 2.7).all()
        assert (lattice.last < atoms.max(0) + 2.7).all()
        whole = lattice.origin / 0.7
        assert whole == pytest.approx(np.rint(whole), abs=1e-9)


def test_a_solvated_system_without_a_cell_is_told(caplog):
    """No CRYST1, as psfgen, VMD and NAMD write: the boundary is open, with a word, unless that was asked for."""
    box = water(16.0)
    options = {"spacing": 4.0, "padding": 1.0, "method": "direct"}
    report = command(structure=box, **options)
    assert report.data["boundary"] == "open"
    assert "is solvated but has no periodic cell, so the boundary is open" in caplog.text
    caplog.clear()
    assert command(structure=box, boundary="open", **options).data["cell"] is None
    assert not caplog.records
    report = command(structure=box, cell="16,16,16", spacing=4.0)
    assert report.data["cell"] == [16, 16, 16, 90, 90, 90]
    assert report.data["charges"] == "structure"
    assert report.data["force_field"] is None
    assert any("periodic boundary (cell 16 x 16 x 16 A)" in line for line in report.lines)
    assert not caplog.records
