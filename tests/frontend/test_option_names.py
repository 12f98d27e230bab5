"""Further names of options in Python, in tables of batches and in what viewers are sent; the shell's: test_options."""

import csv
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, shell

import vmdpotential as vp
from vmdpotential import registry
from vmdpotential.parameters import by_own_names, other_names
from vmdpotential.plugins.viewers.vmd import command_declarations


@pytest.fixture(scope="module")
def ligand(tmp_path_factory):
    """A file of two ions with charges."""
    path = tmp_path_factory.mktemp("aliases") / "ions.pqr"
    path.write_text("ATOM      1  NA  NA      1       0.000   0.000   0.000  1.0000 1.3000\n"
                    "ATOM      2  CL  CL      2       6.000   0.000   0.000 -1.0000 1.8000\n")
    return path


def test_functions_of_maps_and_points_take_aliases(ligand):
    structure = vp.read_structure(ligand)
    screened = vp.potential_map(structure, spacing=2.0, screened=0.3, dielectric=70.0)
    other = vp.potential_map(structure, spacing=2.0, ionic_strength=0.3, dielectric_constant=70.0)
    np.testing.assert_array_equal(other.values, screened.values)
    assert other.provenance.medium == screened.provenance.medium
    points = [[2.0, 1.0, 0.0], [8.0, 3.0, 2.0]]
    np.testing.assert_array_equal(vp.potential_at(structure, points, ionic_strength=0.3),
                                  vp.potential_at(structure, points, screened=0.3))
    length = vp.potential_map(structure, spacing=2.0, interaction="screened_coulomb", set={"debye_length": 4.0})
    for name in ("parameters", "interaction_params"):
        again = vp.potential_map(structure, spacing=2.0, interaction="screened_coulomb",
                                 **{name: {"debye_length": 4.0}})
        np.testing.assert_array_equal(again.values, length.values)


def test_functions_without_options_as_objects_take_aliases(ligand):
    structure = vp.read_structure(ligand)
    by_name, by_alias = (vp.solvation_energy(structure, spacing=1.0, radii="bondi", **options).total for options in (
        {"dielectric": 40.0, "parameters": {"probe": 1.2}},
        {"dielectric_constant": 40.0, "interaction_params": {"probe": 1.2}}))
    assert by_alias == by_name
    with refused("permittivity"):
        vp.solvation_energy(structure, permittivity=40.0)


def test_commands_as_functions_take_aliases(ligand):
    structure = vp.read_structure(ligand)
    by_name, by_alias = (vp.field(structure, at="all", **{name: 0.3}) for name in ("screened", "ionic_strength"))
    assert by_alias.data["error"] == by_name.data["error"]
    np.testing.assert_array_equal(by_alias.to_dataframe().select_dtypes("number"),
                                  by_name.to_dataframe().select_dtypes("number"))
    command = registry.get("command", "field")
    assert by_own_names(command.parameters, {"from_": 1, "ionic_strength": 2}) == {"from": 1, "screened": 2}


@pytest.mark.parametrize("call", [
    lambda structure: vp.potential_map(structure, screened=0.1, ionic_strength=0.2),
    lambda structure: vp.field(structure, at="all", ionic_strength=0.2, screened=0.1),
])
def test_a_value_and_its_alias_are_not_both_given(call, ligand):
    with pytest.raises(vp.UsageError) as error:
        call(vp.read_structure(ligand))
    assert error.value.parameter == "screened"


def test_tables_of_batches_have_columns_of_aliases(ligand, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(f"name,structure,ionic-strength,dielectric_constant\na,{ligand},0.3,70\n"
                                f"b,{ligand},0.1,70\n")
    assert shell(capsys, "batch", "map", "rows.csv", "-o", "maps", "--spacing", 2, "--workers", 1)[0] == 0
    expected = vp.potential_map(vp.read_structure(ligand), spacing=2.0, screened=0.3, dielectric=70.0)
    np.testing.assert_allclose(vp.read_map("maps/a.npz").values, expected.values, rtol=1e-5)
    with open("maps/report.csv", newline="") as stream:
        assert {row["name"] for row in csv.DictReader(stream)} == {"a", "b"}
    Path("twice.csv").write_text(f"structure,ionic-strength,screened\n{ligand},0.3,0.3\n")
    assert shell(capsys, "batch", "map", "twice.csv", "-o", "twice")[0] == 2


def test_viewers_that_run_the_program_get_the_aliases():
    for name, command in command_declarations()["commands"].items():
        others = other_names(registry.get("command", name).parameters)
        for option in command["options"]:
            assert all(others[alias] == option["name"] for alias in option["aliases"])
    options = {option["name"]: option for option in command_declarations()["commands"]["map"]["options"]}
    assert options["screened"]["aliases"] == ["ionic_strength"]


def test_errors_name_the_option_as_it_was_typed(ligand, capsys):
    for name in ("--ionic-strength", "--screened"):
        code, _, err = shell(capsys, "map", ligand, name, "150", "-o", "map.dx")
        assert code == 2
        assert f"{name} 150" in err
