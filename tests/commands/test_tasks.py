"""The commands as functions of Python: objects of other packages, arrays, frames, and what their documentation says."""

import inspect
import json
from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from helpers import shell
from matplotlib.figure import Figure
from MDAnalysisTests.datafiles import PRM_NCBOX, TRJ_NCBOX

import vmdpotential as vp
from vmdpotential import registry, tasks
from vmdpotential.results import Result

DATA = Path(__file__).resolve().parents[2] / "data"


@pytest.fixture
def universe():
    return MDAnalysis.Universe(PRM_NCBOX, TRJ_NCBOX)


@pytest.mark.slow
def test_frames_of_a_universe_are_those_of_its_file(universe):
    of_file = vp.rdf(PRM_NCBOX, TRJ_NCBOX, between=("//*/(WAT)/O", "//*/(WAT)/O"), range=6.0, frames="1:6:2")
    universe.trajectory[4]
    oxygens = universe.select_atoms("resname WAT and name O")
    for frames in (universe.trajectory[1:6:2], universe.trajectory[[1, 3, 5]]):
        result = vp.rdf(universe, frames, between=(oxygens, oxygens.ix), range=6.0)
        np.testing.assert_allclose(result.to_dataframe().iloc[:, 1], of_file.to_dataframe().iloc[:, 1], rtol=1e-5)
    result = vp.rdf(universe, universe, frames="1:6:2", between=(oxygens, oxygens), range=6.0)
    np.testing.assert_allclose(result.to_dataframe().iloc[:, 1], of_file.to_dataframe().iloc[:, 1], rtol=1e-5)
    assert universe.trajectory.frame == 4  # nothing is moved that the caller has


@pytest.mark.slow
def test_selections_are_words_masks_indices_and_groups(universe):
    structure = vp.Structure.from_mdanalysis(universe.atoms)
    mask = vp.select(structure, "water")
    columns = []
    for water in ("water", mask, np.flatnonzero(mask), np.flatnonzero(mask).tolist(), universe.atoms[mask]):
        made = vp.field(structure, at="//*/(ACE)", from_=[water])
        columns.append(made.to_dataframe().select_dtypes("number").to_numpy())
    for other in columns[1:]:
        np.testing.assert_allclose(other, columns[0])
    with pytest.raises(vp.UsageError) as error:
        vp.field(structure, at=np.array([10**9]))
    assert error.value.parameter == "at"


def test_charges_are_files_or_an_array(universe):
    structure = vp.Structure.from_mdanalysis(universe.atoms)
    table = vp.profile(structure, smear=1.0).to_dataframe()
    two = vp.profile(structure, smear=1.0, charges=2 * structure.charges).to_dataframe()
    np.testing.assert_allclose(two.iloc[:, 1:], 2 * table.iloc[:, 1:], rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_atom_groups_select_of_the_atoms_that_the_structure_is(universe):
    oxygens = universe.select_atoms("name O and resname WAT")
    whole = vp.potential_map(universe, atoms=universe.select_atoms("resname ACE"), spacing=4.0, medium="explicit")
    np.testing.assert_array_equal(whole.values, vp.potential_map(universe, atoms="//*/(ACE)", spacing=4.0,
        medium="explicit").values)
    np.testing.assert_array_equal(np.flatnonzero(vp.select(universe, oxygens)), oxygens.ix)
    np.testing.assert_array_equal(vp.select(universe, oxygens.residues), vp.select(universe, "water"))
    water = universe.select_atoms("resname WAT")
    of_part = vp.profile(water, smear=1.0, from_=[oxygens]).to_dataframe().iloc[:, 1:]
    of_whole = vp.profile(universe, smear=1.0, from_=[oxygens]).to_dataframe().iloc[:, 1:]
    same = [name for name in of_part if "between" not in name and name in of_whole and "from_1" in name]
    assert same
    np.testing.assert_allclose(of_part[same], of_whole[same], atol=1e-9)
    for call in (lambda: vp.profile(water, smear=1.0, from_=[universe.select_atoms("resname ACE")]),
                 lambda: vp.select(water, oxygens)):
        with pytest.raises(vp.UsageError):
            call()


def test_cells_are_numbers_as_other_packages_have_them(universe):
    cell = [40.0, 41.0, 42.0, 90.0, 90.0, 80.0]
    for given in (cell, np.array(cell, np.float32), "40,41,42,90,90,80"):
        made = vp.density(universe, universe.trajectory[:1], atoms="all", spacing=5.0, boundary="periodic", cell=given)
        np.testing.assert_allclose(made.objects["structure"].cell.parameters, cell, rtol=1e-5)
    with pytest.raises(vp.UsageError) as error:
        vp.rdf(universe, between=("water", "water"), cell=(40.0, 41.0))
    assert error.value.parameter == "cell"


@pytest.mark.slow
def test_frames_are_slices_ranges_numbers_and_text(universe):
    def frames(value, trajectory=universe):
        return vp.profile(universe, trajectory, smear=1.0, frames=value).to_dataframe()

    for value in ("1:6:2", range(1, 6, 2), slice(1, 6, 2)):
        for trajectory in (universe, TRJ_NCBOX):
            np.testing.assert_allclose(frames(value, trajectory), frames("1:6:2"), atol=1e-5)
    np.testing.assert_allclose(frames(3), frames("3"))
    for wrong in ([1, 3], "a", 3.5):
        with pytest.raises(vp.UsageError) as error:
            frames(wrong)
        assert error.value.parameter == "frames"
    mean = vp.average(universe, universe.trajectory[1:6:2], spacing=4.0)
    assert mean.grid.provenance.frames == vp.average(universe, universe, frames="1:6:2",
                                                     spacing=4.0).grid.provenance.frames


def test_points_are_a_file_or_an_array(universe, tmp_path):
    (tmp_path / "points.csv").write_text("3,4,5\n9,8,7\n")
    structure = vp.Structure.from_mdanalysis(universe)
    of_file = vp.field(structure, points=tmp_path / "points.csv").to_dataframe().select_dtypes("number")
    for points in ([[3, 4, 5], [9, 8, 7]], np.array([[3, 4, 5], [9, 8, 7]])):
        np.testing.assert_allclose(vp.field(structure, points=points).to_dataframe().select_dtypes("number"), of_file)
    with pytest.raises(vp.UsageError) as error:
        vp.field(structure, points=[3, 4])
    assert error.value.parameter == "points"


@pytest.mark.slow
def test_prepare_takes_files_and_objects(tmp_path, capsys):
    of_file = vp.prepare(DATA / "1hvr.pdb.gz", output=[tmp_path / "out.pqr"])
    assert (tmp_path / "out.pqr").exists()
    assert len(of_file.to_dataframe()) == 199
    of_universe = vp.prepare(MDAnalysis.Universe(str(DATA / "1hvr.pdb.gz")))
    np.testing.assert_allclose(of_universe.structure.charges, of_file.structure.charges)
    code, out, _ = shell(capsys, "prepare", DATA / "1hvr.pdb.gz", "--json")  # a report alone
    assert code == 0
    assert json.loads(out)["files"] == []
    as_is = vp.prepare(DATA / "1hvr.pdb.gz", prepare="never")
    np.testing.assert_array_equal(as_is.structure.positions, vp.read_structure(DATA / "1hvr.pdb.gz").positions)
    assert len(as_is.to_dataframe()) == 1
    with pytest.raises(vp.InputError):
        vp.prepare(MDAnalysis.Universe(PRM_NCBOX, TRJ_NCBOX))  # has charges


def test_arguments_are_checked():
    with pytest.raises(vp.UsageError) as error:
        vp.rdf(PRM_NCBOX, between=("water", "water"), cutof=3)
    assert error.value.parameter == "cutof"
    with pytest.raises(vp.UsageError):
        vp.rdf(3, between=("water", "water"))
    with pytest.raises(TypeError):
        vp.compare(1, 2, 3, 4)
    with pytest.raises(TypeError):
        vp.rdf(PRM_NCBOX, structure=PRM_NCBOX, between=("water", "water"))


@pytest.mark.parametrize("name", registry.available("task"))
def test_a_function_has_the_parameters_of_its_command(name):
    function, command = getattr(vp, name), registry.get("command", name)
    assert all(issubclass(kind, Result) for kind in tasks.result_kinds(command))
    parameters = inspect.signature(function).parameters
    assert {key.rstrip("_") for key in parameters} == {p.name for p in command.parameters}
    for p in command.parameters:
        assert (parameters.get(p.name) or parameters[f"{p.name}_"]).default == p.default


@pytest.mark.slow
def test_results_of_files_need_no_output(capsys):
    mean = vp.average(PRM_NCBOX, TRJ_NCBOX, frames="0:2", spacing=4.0)
    assert np.isfinite(mean.grid.values).all()
    assert vp.density(PRM_NCBOX, TRJ_NCBOX, frames="0:2", atoms="water", spacing=4.0).grid.values.sum() > 0
    for command in ("average", "density"):  # in a shell they would be lost
        assert shell(capsys, command, PRM_NCBOX, TRJ_NCBOX)[0] == 2


@pytest.mark.slow
def test_placements_and_prepared_structures_have_data_frames():
    structure = vp.read_structure(DATA / "1hvr.pdb.gz")
    prepared = vp.prepare(structure)
    frame = prepared.to_dataframe()
    assert frame["net_charge"].sum() == pytest.approx(prepared.structure.net_charge, abs=1e-3)
    water = vp.read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz")
    placed = vp.place_ions(water)
    ions = placed.to_dataframe()
    assert len(ions) == len(placed.ions)
    np.testing.assert_allclose(ions[["x_A", "y_A", "z_A"]], [ion.position for ion in placed.ions])
    assert ions["charge"].sum() == pytest.approx(placed.structure.net_charge - water.net_charge, abs=1e-3)


#: Files of a force field of OpenMM.
AMBER = ["amber14-all.xml", "amber14/tip3p.xml"]

#: Arguments after the structure, of every exported function of one but the commands, whose tests read files.
CALLS = {
    "assign_charges": {},
    "binding_energy": {"first": "(ACE)", "second": "(LYS)", "spacing": 1.5},
    "nonbonded": {"files": AMBER},
    "place_ions": {"ions": {"Na+": 1, "Cl-": 1}, "site": "random", "seed": 1},
    "place_replicas": {"replicas": 1, "ions": {"Na+": 1, "Cl-": 1}, "site": "random", "seed": 1},
    "potential_at": {"points": [[1.0, 2.0, 3.0]]},
    "potential_map": {"spacing": 4.0, "medium": "explicit"},
    "select": {"selection": "name O"},
    "solvation_energy": {"spacing": 1.5},
    "write_structure": {"path": "out.pdb", "force": True},
}


def test_every_function_of_a_structure_is_called_with_files():
    functions = [name for name in vp.__all__ if inspect.isfunction(getattr(vp, name))]
    of_structures = {name for name in functions if "structure" in inspect.signature(getattr(vp, name)).parameters}
    tested = {*registry.available("task"), "draw_slice"}  # draw_slice with its figures
    assert of_structures - tested == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_a_structure_may_be_a_file_without_charges(name, tmp_path, monkeypatch, universe):
    monkeypatch.chdir(tmp_path)
    path = Path(__file__).parents[1] / "data" / "caps_amber.pdb"  # a peptide, for a continuum without water
    if name not in ("binding_energy", "solvation_energy"):
        path = tmp_path / "water.pdb"
        vp.write_structure(vp.Structure.from_mdanalysis(universe.select_atoms("resname WAT")), path)
    results = [getattr(vp, name)(each, **CALLS[name]) for each in (path, str(path), vp.read_structure(path))]
    assert repr(results[0]) == repr(results[1]) == repr(results[2])  # with the numbers of atoms, sums and ranges


def test_standard_errors_and_statistics_of_means(universe):
    mean = vp.average(universe, universe.trajectory, spacing=4.0)
    both = vp.average(universe, universe.trajectory, spacing=4.0, stat=("mean", "std", "sem"))
    np.testing.assert_array_equal(mean.sem.values, both.sem.values)
    assert mean.std is None
    assert (both.std.values > both.sem.values).all()
    assert vp.density(universe, universe.trajectory, atoms="water", spacing=4.0).sem.unit == "1/A^3"
    assert vp.average(universe, universe.trajectory[:1], spacing=4.0).sem is None
    with pytest.raises(vp.UsageError) as error:
        vp.average(universe, universe.trajectory, spacing=4.0, stat=("mean", "median"))
    assert error.value.parameter == "stat"


def test_a_map_draws_a_slice_of_itself():
    x, y, z = np.meshgrid(*[np.arange(5.0)] * 3, indexing="ij")
    grid = vp.Grid(vp.Lattice((0, 0, 0), 1.0, (5, 5, 5)), z + 0 * x * y, "kT/e")
    for ax in (None, Figure().add_subplot()):
        for plane, value in ((None, 2.0), ("z=1", 1.0), (vp.Plane.parse("z=3.5"), 3.5)):
            drawn = grid.plot(ax, plane, value_range=(-5, 5))
            np.testing.assert_allclose(drawn.images[-1].get_array(), value)
            assert drawn.images[-1].get_clim() == (-5, 5)
            assert len(drawn.figure.axes) == (2 if ax is None else 1)  # with a colour bar
    with pytest.raises(vp.UsageError):
        grid.plot(plane="z=9")
    path = Path(__file__).parents[1] / "data" / "caps_amber.pdb"
    points = [[item.get_offsets() for item in grid.plot(structure=each).collections]
              for each in (path, str(path), vp.read_structure(path))]
    assert len(points[0][0])
    for other in points[1:]:
        np.testing.assert_array_equal(other, points[0])


@pytest.mark.parametrize(("call", "parameter", "shown"), [
    (lambda: vp.potential_map(DATA / "1hvr.pdb.gz", method="pb", parameters={"salt": "much"}), "salt", "salt=much: "),
    (lambda: vp.solvation_energy(DATA / "1hvr.pdb.gz", spacin=1.0), "spacin", "spacin: "),
    (lambda: vp.field(DATA / "1hvr.pdb.gz", at="protein", from_=["//Z"]), "from", "from_=//Z: "),
    (lambda: vp.average(DATA / "1hvr.pdb.gz"), "trajectory", "trajectory: "),
])
def test_errors_name_parameters_as_python_does(call, parameter, shown):
    with pytest.raises(vp.UsageError) as error:
        call()
    assert error.value.parameter == parameter
    assert str(error.value).startswith(shown)
