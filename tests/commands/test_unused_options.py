"""Options without an effect: one line names them and says why."""

import logging
from dataclasses import replace

import golden
import pytest
from helpers import charges_at, shell

import vmdpotential as vp
from vmdpotential import io, registry
from vmdpotential.frontend import cli
from vmdpotential.molecule.cell import Cell
from vmdpotential.parameters import options_set, warn_unused


@pytest.fixture(scope="module")
def salt():
    """Four charges in a cell that they fill."""
    corners = [[1.0, 1, 1], [1, 6, 6], [6, 1, 6], [6, 6, 1]]
    return charges_at(corners, [1.0, -1, 1, -1], Cell.from_parameters(10, 10, 10))


@pytest.fixture(scope="module")
def like(salt, tmp_path_factory):
    path = tmp_path_factory.mktemp("maps") / "like.npz"
    vp.write_map(vp.potential_map(salt, spacing=2.0, medium="explicit"), path)
    return path


def notices(caplog, command, **values):
    """Return the notices of options without an effect in a run of a command."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "vmdpotential"):
        registry.get("command", command)(**values)
    return [text for text in map(str, caplog.messages) if " no effect: " in text]


@pytest.mark.parametrize(("values", "expected"), [
    ({}, []),
    ({"padding": 5.0, "medium": "explicit"}, ["padding has no effect: the grid covers the periodic cell"]),
    ({"padding": 5.0, "boundary": "open"}, []),
    ({"boundary": "open", "method": "direct", "tolerance": 1e-3},
     ["tolerance has no effect: the method direct sums exactly"]),
    ({"temperature": 310.0, "unit": "V", "medium": "explicit"}, ["temperature has no effect"]),
    ({"temperature": 310.0}, []),
    ({"temperature": 310.0, "unit": "V", "screened": 0.1}, []),
    ({"algorithm": "mesh", "medium": "explicit"}, ["algorithm has no effect"]),
    ({"force_field": "amber14", "ph": 5.0}, ["force_field has no effect", "ph has no effect"]),
])
def test_map(salt, caplog, values, expected):
    found = notices(caplog, "map", structure=salt, **{"spacing": 3.0, **values})
    assert len(found) == len(expected)
    for text, start in zip(found, expected, strict=True):
        assert text.startswith(start)


def test_map_on_the_grid_of_another(salt, like, caplog):
    options = {"structure": salt, "like": like}
    assert notices(caplog, "map", **options) == []
    (text,) = notices(caplog, "map", **options, spacing=1.0, padding=3.0)
    assert text == "spacing and padding have no effect: the grid is that of like"
    (text,) = notices(caplog, "map", **options, padding=3.0, boundary="open")
    assert text == "padding has no effect: the grid is that of like"


def test_other_commands(salt, like, caplog, tmp_path):
    grid = vp.read_map(like)
    assert notices(caplog, "slice", maps=[grid], slab=2.0)[0].startswith("slab has no effect")
    (text,) = notices(caplog, "slice", maps=[grid], rate=5.0, output=tmp_path / "still.png", dpi=50)
    assert text.startswith("rate has no effect")
    (text,) = notices(caplog, "surface", structure=salt, map=grid, atoms="all", mesh_spacing=1.0, rate=5.0)
    assert text.startswith("rate has no effect")
    vp.write_map(replace(grid, lattice=grid.lattice), tmp_path / "map.npz")
    (text,) = notices(caplog, "profile", structure=tmp_path / "map.npz", smear=1.0, output=tmp_path / "profile.csv")
    assert text.startswith("smear has no effect")
    (text,) = notices(caplog, "field", structure=salt, at="all", spacing=0.3)
    assert text == "spacing has no effect: only a continuum has a grid; add method=pb"
    (text,) = notices(caplog, "probe", structure=salt, probe=["C"], spacing=2.0, orientations=3, stat="mean,sem")
    assert text == "orientations and stat have no effect: no ligand is given"


def test_shell_spells_the_options(salt, like, capsys, tmp_path):
    vp.write_structure(salt, tmp_path / "salt.pqr")
    code, _, stderr = shell(capsys, "map", str(tmp_path / "salt.pqr"), "--like", str(like), "--spacing", "1", "-o",
                            str(tmp_path / "map.npz"))
    assert code == 0, stderr
    assert "--spacing has no effect: the grid is that of --like" in stderr


def test_python_functions_warn(salt, caplog):
    lattice = vp.potential_map(salt, spacing=3.0, medium="explicit").lattice
    with caplog.at_level(logging.WARNING, "vmdpotential"):
        vp.potential_map(salt, lattice=lattice, spacing=1.0, medium="explicit")
        vp.potential_map(salt, vp.MapOptions(spacing=1.0, medium="explicit"), lattice=lattice)
    assert [str(text) for text in caplog.messages] == ["spacing has no effect: the grid is that of lattice"]


def test_a_notice_comes_once_and_counts_what_the_outer_task_was_given(caplog):
    warn_unused(["spacing"], "there is no task")
    with caplog.at_level(logging.WARNING, "vmdpotential"), options_set(["spacing"]), options_set(["padding"]):
        warn_unused(["spacing", "padding"], "it is a test")
        warn_unused(["spacing"], "it is a test")
    assert [str(text) for text in caplog.messages] == ["spacing has no effect: it is a test"]


@pytest.mark.parametrize(("words", "option"), [
    ("field in.pqr --at all --resume", "--resume"), ("profile in.pqr --resume -o -", "--resume"),
    ("ionize in.pqr --parameters frcmod -o out.pdb", "--parameters"),
])
def test_options_that_would_do_nothing_are_refused(words, option, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    io.write_structure(golden.structure(), tmp_path / "in.pqr")
    assert cli.main(words.split()) == 2
    assert f"vmdpotential: {option}" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.pqr"]
