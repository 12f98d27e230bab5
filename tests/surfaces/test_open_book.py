"""Two molecules turned apart by `surface`, compared with the surface of each alone."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import charges_at
from PIL import Image

import vmdpotential as vp
from vmdpotential.errors import UsageError
from vmdpotential.frontend import cli
from vmdpotential.surfaces.contact import find_faces

DATA = Path(__file__).parents[2] / "data"
RADIUS, PROBE, APART = 1.7, 1.4, 4.0


def two_balls():
    """Carbon atoms of opposite charges, chains A and B, on the axis z."""
    made = charges_at([[0, 0, 0], [0, 0, APART]], [1.0, -1.0])
    return replace(made, elements=["C", "C"], radii=np.full(2, RADIUS), chain_ids=["A", "B"], residue_ids=[1, 2],
                   residue_index=[0, 1])


def book_of(**options):
    return vp.surface(two_balls(), **{"between": ["//A", "//B"], "medium": "water", "spacing": 0.8,
                                      "mesh_spacing": 0.2, **options})


@pytest.mark.parametrize("kind", ["molecular", "accessible"])
def test_faces_of_two_balls_are_caps(kind):
    """The centre of the probe is hidden within a cone: 2 pi r^2 (1 - d / 2 (R + p)), r that of the surface."""
    first = np.array([True, False])
    faces = find_faces(two_balls(), first, ~first, kind=kind, spacing=0.1)
    radius = RADIUS + (PROBE if kind == "accessible" else 0.0)
    for face in faces:
        assert face.areas.sum() == pytest.approx(2 * np.pi * radius**2 * (1 - APART / (2 * (RADIUS + PROBE))), rel=0.04)


def test_each_molecule_has_the_potential_of_its_own_charges():
    book = book_of()
    parts = np.split(book.values, [len(book.faces[0].buried)])
    for part, name in zip(parts, ("//A", "//B"), strict=True):
        alone = vp.surface(two_balls(), atoms=name, medium="water", spacing=0.8, mesh_spacing=0.2)
        assert part == pytest.approx(alone.values, rel=1e-6)
    assert parts[0].min() > 0 > parts[1].max()
    assert "own charges" in book.caption


def test_a_map_is_read_on_both_molecules():
    grid = vp.potential_map(two_balls(), atoms="all", medium="water", spacing=0.8)
    book = vp.surface(two_balls(), grid, between=["//A", "//B"], mesh_spacing=0.2)
    for face, part in zip(book.faces, np.split(book.values, [len(book.faces[0].buried)]), strict=True):
        assert part == pytest.approx(face.surface.sample(grid, 1.4), nan_ok=True)
    assert "own charges" not in book.caption


def test_faces_are_turned_to_the_reader_and_touching_points_are_opposite():
    book = book_of()
    towards = [np.cross(panel.right, panel.up) for panel in book.book.panels()]
    assert towards[0] == pytest.approx([0, 0, 1], abs=0.02)
    assert towards[1] == pytest.approx([0, 0, -1], abs=0.02)
    mesh, size = book.drawn, len(book.faces[0].buried)
    assert mesh.vertices[:size, 0].max() < mesh.vertices[size:, 0].min()
    for face, part in zip(book.faces, (slice(None, size), slice(size, None)), strict=True):
        places = mesh.vertices[part]
        assert places[face.buried, 2].min() > places[:, 2].mean()  # +z is the side of the viewer
    one, two = (panel.limits - face.places.mean(0) @ np.stack([panel.right, panel.up], 1)
                for panel, face in zip(book.book.panels(), book.faces, strict=True))
    assert one[:, 0] == pytest.approx(-two[::-1, 0], abs=0.1)


@pytest.mark.parametrize("options", [
    {"between": ["//A"]}, {"between": ["//A", "//A"]}, {"between": ["//A", "//B"], "figure": Path("turn.gif")}])
def test_no_two_molecules_and_no_movie(options):
    with pytest.raises(UsageError) as caught:
        book_of(**options)
    assert caught.value.parameter == ("figure" if "figure" in options else "between")


@pytest.mark.slow
def test_a_dimer_by_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["surface", str(DATA / "1hvr.pdb.gz"), "--between", "//A/1-99", "//B/1-99", "--medium", "water",
                     "--spacing", "1.2", "--mesh-spacing", "0.8", "--patches", "1", "--figure", "book.png", "--dpi",
                     "80", "-o", "book.ply", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    one, two = data["between"]
    assert one["buried"] == pytest.approx(two["buried"], rel=0.05)
    assert one["area"] + two["area"] == pytest.approx(data["area"])
    with Image.open("book.png") as image:
        assert image.text["Description"] == data["caption"]
