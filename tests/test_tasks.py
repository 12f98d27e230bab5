"""The commands as functions of Python: objects of other packages, arrays, frames, and what their documentation says."""

import inspect
from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from MDAnalysisTests.datafiles import PRM_NCBOX, TRJ_NCBOX

import vmdpotential as vp
from vmdpotential import registry, tasks
from vmdpotential.results import Result

DATA = Path(__file__).resolve().parent.parent / "data"


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
def test_frames_of_an_atom_group_are_those_of_its_atoms(universe):
    group = universe.select_atoms("resname WAT")
    whole = vp.density(universe, universe.trajectory[:2], atoms=group, spacing=3.0, boundary="periodic")
    part = vp.density(group, universe.trajectory[:2], atoms="all", spacing=3.0, boundary="periodic")
    np.testing.assert_allclose(part.grid.values.sum(), whole.grid.values.sum(), rtol=1e-5)
    with pytest.raises(vp.InputError):  # a structure that is no part of the Universe must have all atoms
        vp.density(vp.Structure.from_mdanalysis(group), universe.trajectory[:2], atoms="all", spacing=3.0)


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


@pytest.mark.parametrize("name", tasks.__all__)
def test_a_function_has_the_parameters_of_its_command(name):
    function, command = getattr(vp, name), registry.get("command", name)
    assert issubclass(inspect.signature(command.function, eval_str=True).return_annotation, Result)
    parameters = inspect.signature(function).parameters
    assert {key.rstrip("_") for key in parameters} == {p.name for p in command.parameters}
    for p in command.parameters:
        assert (parameters.get(p.name) or parameters[f"{p.name}_"]).default == p.default


@pytest.mark.slow
def test_placements_and_prepared_structures_have_data_frames():
    structure = vp.read_structure(DATA / "1hvr.pdb.gz")
    prepared = vp.prepare_structure(structure)
    frame = prepared.to_dataframe()
    assert frame["net_charge"].sum() == pytest.approx(prepared.structure.net_charge, abs=1e-3)
    water = vp.read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz")
    placed = vp.place_ions(water)
    ions = placed.to_dataframe()
    assert len(ions) == len(placed.ions)
    np.testing.assert_allclose(ions[["x_A", "y_A", "z_A"]], [ion.position for ion in placed.ions])
    assert ions["charge"].sum() == pytest.approx(placed.structure.net_charge - water.net_charge, abs=1e-3)
