"""Limits of options hold wherever options are made, in Python as in a shell, and none is ignored in silence."""

import pytest
from helpers import shell

import vmdpotential as vp
from vmdpotential.errors import UsageError
from vmdpotential.frames.options import Execution
from vmdpotential.maps.options import MapOptions
from vmdpotential.plugins.densities.over_frames import DensityOptions
from vmdpotential.plugins.fields.field import FieldOptions
from vmdpotential.plugins.fields.profile import ProfileOptions
from vmdpotential.plugins.ions.options import IonOptions
from vmdpotential.plugins.pairs.options import EnergyOptions
from vmdpotential.points import PointOptions


@pytest.fixture
def ion(tmp_path):
    path = tmp_path / "ion.pqr"
    path.write_text("ATOM 1 C X 1 0.0 0.0 0.0 1.0 1.0\n")
    return path


@pytest.mark.parametrize(("kind", "name", "value"), [
    (MapOptions, "screened", 150), (MapOptions, "screened", -0.1), (MapOptions, "spacing", 0.0),
    (MapOptions, "spacing", float("nan")), (MapOptions, "spacing", "wide"), (MapOptions, "spacing", [1.0]),
    (MapOptions, "tolerance", 1.0), (MapOptions, "dielectric", 0.0), (MapOptions, "temperature", -1),
    (MapOptions, "cutoff", 0.1), (MapOptions, "smear", -1.0), (MapOptions, "unit", "mV"),
    (MapOptions, "boundary", "closed"), (MapOptions, "precision", "half"), (MapOptions, "method", "pmee"),
    (PointOptions, "screened", 150), (PointOptions, "boundary", "closed"), (PointOptions, "tolerance", 1.0),
    (PointOptions, "spacing", 0.0), (FieldOptions, "spacing", 5.0), (FieldOptions, "exclude", "chain"),
    (IonOptions, "concentration", 150), (IonOptions, "sweeps", -1), (IonOptions, "site", "any"),
    (EnergyOptions, "cutoff", 0.0), (EnergyOptions, "electrostatics", "pmee"), (ProfileOptions, "spacing", 0.0),
    (DensityOptions, "smear", -1.0), (DensityOptions, "bulk", 0.0), (Execution, "workers", -1),
    (vp.Medium, "salt", 150), (vp.Medium, "dielectric", 0.0), (vp.Medium, "temperature", 0.0),
])
def test_an_invalid_value_is_refused_where_options_are_made(kind, name, value):
    with pytest.raises(UsageError) as caught:
        kind(**{name: value})
    assert caught.value.parameter == name


@pytest.mark.parametrize("call", [
    lambda s: vp.potential_map(s, screened=150),
    lambda s: vp.potential_map(s, MapOptions(), ionic_strength=150),
    lambda s: vp.potential_at(s, s.positions + 1, screened=150),
    lambda s: vp.potential_map(s, medium=vp.Medium.screened(150)),
    lambda s: vp.potential_map(s, method="pb", screened=150),
    lambda s: vp.potential_map(s, medium=vp.Medium.continuum(150)),
    lambda s: vp.potential_map(s, method="pb", parameters={"salt": 150}),
    lambda s: vp.potential_map(s, method="pb", parameters={"Na+": 150, "Cl-": 150}),
])
def test_a_concentration_in_millimoles_is_refused(call, ion):
    with pytest.raises(UsageError) as caught:
        call(vp.read_structure(ion))
    assert caught.value.parameter in ("screened", "salt", "Na+")
    assert "6 M" in str(caught.value)


@pytest.mark.parametrize("words", [
    ["--screened", "6.5"], ["--method", "pb", "--set", "salt=6.5"], ["--method", "pb", "--set", "Na+=7,Cl-=7"]])
def test_more_salt_than_dissolves_is_refused_in_a_shell(words, ion, tmp_path, capsys):
    code, _, error = shell(capsys, "map", ion, "-o", tmp_path / "m.dx", *words)
    assert code == 2
    assert "6 M" in error


def test_text_is_converted_as_in_a_shell_and_numbers_of_any_type_are_taken():
    import numpy as np

    assert MapOptions(spacing="1").spacing == 1.0
    assert MapOptions(spacing=np.float32(2)).spacing == 2.0
    assert MapOptions(smear="0.25/A").smear == pytest.approx(2.8284271)  # 1 / (sqrt(2) 0.25)
    assert MapOptions(atoms=np.array([0, 2])).atoms.tolist() == [0, 2]


@pytest.mark.parametrize("call", [
    lambda s: vp.potential_map(s, spacin=1), lambda s: vp.potential_at(s, s.positions, spacin=1),
    lambda s: vp.place_ions(s, concentratoin=0.1), lambda s: vp.average(s, s, spacin=1)])
def test_an_unknown_keyword_gets_a_suggestion(call, ion):
    with pytest.raises(UsageError, match=r"'(spacing|concentration)'") as caught:
        call(vp.read_structure(ion))
    assert caught.value.parameter in ("spacin", "concentratoin")


@pytest.mark.parametrize("words", [
    ["--spacing", "2", "--spacing", "3"], ["--screened", "0.1", "--ionic-strength", "0.2"], ["--force", "--no-force"],
    ["--atoms", "all", "--atoms", "protein"], ["--set", "a=1", "--set", "a=2"], ["--set", "a=1,a=2"]])
def test_an_option_with_two_values_is_refused(words, ion, tmp_path, capsys):
    code, _, error = shell(capsys, "map", ion, "-o", tmp_path / "m.dx", *words)
    assert code == 2
    assert "twice" in error
    assert not (tmp_path / "m.dx").exists()


def test_options_of_several_values_add_up(ion, tmp_path, capsys):
    both, apart = tmp_path / "both.npz", tmp_path / "apart.npz"
    for path, words in ((both, ["--set", "salt=0,inside=4"]), (apart, ["--set", "salt=0", "--set", "inside=4"])):
        code, _, error = shell(capsys, "map", ion, "--method", "pb", "--spacing", 1, "--padding", 4, "-o", path, *words)
        assert code == 0, error
    assert "no salt" in vp.read_map(apart).provenance.medium
    assert (vp.read_map(both).values == vp.read_map(apart).values).all()


@pytest.mark.parametrize(("words", "meant"), [
    (["map", "ION", "-o", "m.npz", "--atoms", "protien"], "protein"), (["map", "ION", "--method", "bp"], "pb"),
    (["map", "ION", "-o", "m.npz", "--atoms", "protien and name CA"], "protein"),
    (["pictur"], "slice"), (["hydrogens"], "prepare"),
    (["mpa"], "map"), (["map", "ION", "--spacin", "1"], "--spacing")])
def test_a_misspelt_word_gets_a_suggestion(words, meant, ion, capsys):
    code, _, error = shell(capsys, *(ion if word == "ION" else word for word in words))
    assert code == 2
    assert f"did you mean '{meant}'" in error


def test_a_word_without_a_like_gets_none(capsys):
    code, _, error = shell(capsys, "xyzzy")
    assert code == 2
    assert "did you mean" not in error


@pytest.mark.parametrize("header", ["structure,field", "structure,spacing,spacing", "structure,structure"])
def test_columns_of_a_batch_that_cannot_be_used_are_named(header, ion, tmp_path, capsys):
    table = tmp_path / "runs.csv"
    table.write_text(f"{header}\n{','.join([str(ion)] * len(header.split(',')))}\n")
    code, _, error = shell(capsys, "batch", "map", table, "-o", tmp_path / "out")
    assert code == 2
    assert f"'{header.rpartition(',')[2]}'" in error or f" {header.rpartition(',')[2]} and " in error
    assert "did you mean" not in error
    assert len(error) < 400
