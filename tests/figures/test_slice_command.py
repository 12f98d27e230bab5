"""The command slice."""

from __future__ import annotations

import json

import pytest
from drawn import atoms_of, make, protein_like
from helpers import refused
from matplotlib.figure import Figure
from messages import naming

from vmdpotential.commands.slice import command
from vmdpotential.errors import UsageError
from vmdpotential.frontend import cli
from vmdpotential.grid.planes import Plane, middle_plane, values_on
from vmdpotential.io.maps import write_map


@pytest.fixture
def map_file(tmp_path):
    write_map(make(), tmp_path / "my map.dx")
    return tmp_path / "my map.dx"


def test_command_writes_and_reports(map_file, tmp_path):
    report = command(
        maps=str(map_file), plane=["z=15", "x=5"], normal="1,1,0", point="9,15,17", range="-5,5", contours="4",
        profile="z", width="double", dpi="150", output=str(tmp_path / "f.png"))
    assert (tmp_path / "f.png").is_file()
    data = json.loads(json.dumps(report.data, allow_nan=False))
    assert data["range"] == [-5, 5]
    assert data["unit"] == "kT/e"
    assert data["width_mm"] == 183
    assert [panel["plane"] for panel in data["panels"]] == ["z = 15 Å", "x = 5 Å", "normal (1, 1, 0)"]
    values = values_on(make(), Plane.parse("z=15"))[0]
    assert data["panels"][0]["minimum"] == pytest.approx(values.min(), rel=1e-5)
    assert data["panels"][0]["within_range"] == pytest.approx((abs(values) <= 5).mean(), abs=1e-3)
    assert data["panels"][2]["point"] == [9, 15, 17]
    text = "\n".join(report.lines)
    for word in ("f.png: 183 x ", "a: z = 15 Å", "normal (1, 1, 0), through 9 15 17 A", "colours: -5 to 5 kT/e",
                 "along z"):
        assert word in text
    assert len(report.objects["figure"].axes) == 5


def test_default_is_the_middle_and_no_file(map_file):
    report = command(maps=[map_file])
    grid = make()
    assert report.data["panels"][0]["point"][2] == middle_plane(grid.lattice).point[2] == 17.5
    assert report.data["figure"] is None
    assert report.data["range"][0] == -report.data["range"][1]
    assert isinstance(report.objects["figure"], Figure)


def test_objects_instead_of_files():
    grid = make()
    report = command(maps=grid, plane=[Plane.parse("z=15")], structure=protein_like())
    assert len(atoms_of(report.objects["figure"].axes[0])[0]) == 5
    report = command(maps=[grid, grid], plane="z=15")
    assert [ax.get_title() for ax in report.objects["figure"].axes[:2]] == ["map 1\nz = 15 Å", "map 2\nz = 15 Å"]


def test_profile_alone_and_legend(map_file):
    report = command(maps=[map_file, map_file], profile="x")
    (ax,) = report.objects["figure"].axes
    assert len(ax.lines) == 3  # two curves and zero
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["my map", "my map"]
    assert report.data["panels"] == []


def test_shell(map_file, tmp_path, capsys):
    out = tmp_path / "fig 1.svg"
    assert cli.main(["slice", str(map_file), "--plane", "z=15", "--range", "-3,3", "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["range"] == [-3, 3]
    assert "z = 15 Å" in out.read_text()
    assert cli.main(["slice", str(map_file), "--plane", "z=15", "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert error == f"vmdpotential: {out}: exists; use --force to replace it\n"
    assert cli.main(["slice", str(map_file), "--plane", "z=15", "-o", str(out), "--force"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plane": "z=99"}, "misses the map, which covers z"),
        ({"normal": "0,0,0"}, "three numbers, not all 0"),
        ({"point": "1,2,3"}, "give normal too"),
        ({"range": "5,-5"}, "the first value must be below"),
        ({"contours": "-1"}, "must be at least 0"),
        ({"width": "wide"}, "give single"),
        ({"width": "1in"}, "from 40 to 1000 mm"),
        ({"height": "tall"}, "such as 120mm"),
        ({"height": "30mm", "profile": "z", "plane": ["z=15", "x=5", "y=15"]}, "too low for the panels"),
        ({"caption": "caption.txt"}, "there is no figure"),
        ({"dpi": "10"}, "must be at least 50"),
        ({"slab": "-1"}, "must be at least 0"),
        ({"interior": "masked"}, "give structure too"),
        ({"interior": "grey"}, "choose one of shown, outlined, masked"),
        ({"profile": "w"}, "choose one of x, y, z"),
        ({"maps": []}, "a map file is needed"),
    ],
)
def test_wrong_usage(map_file, options, message):
    with naming(UsageError, message) as caught:
        command(**{"maps": [map_file], **options})
    assert caught.value.parameter == next(iter(options))
    assert "\n" not in str(caught.value)


def test_maps_that_cannot_share_a_scale():
    with refused("maps"):
        command(maps=[make(), make(unit="V")], plane="z=15")
    with refused("maps"):
        command(maps=[make(), make(temperature=310.0)], plane="z=15")
    with refused("maps"):
        command(maps=[make(unit=""), make(unit="V")], profile="z")
