"""Sizes of figures, and what they are said to show."""

import re

import numpy as np
import pytest
from drawn import make, protein_like
from PIL import Image

import vmdpotential as vp
from vmdpotential.commands.slice import command
from vmdpotential.figures import page as figures
from vmdpotential.figures import surfaces
from vmdpotential.figures.sizes import width_in_mm
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Provenance
from vmdpotential.grid.planes import Plane
from vmdpotential.io.maps import write_map
from vmdpotential.surfaces import molecular_surface

WATER = Provenance(medium="water (Poisson-Boltzmann), 0.15 M, ion radius 2 A, dielectric 78.5, 2 inside",

                   medium_kind="water")


@pytest.mark.parametrize(("text", "width"), [
    ("89", 89), ("89mm", 89), ("12cm", 120), ("4.5in", 114.3), (60.0, 60), ("single", 89), ("acs-double", 7 * 25.4),
    ("science-single", 90)])
def test_widths_have_units_and_names(text, width):
    assert width_in_mm(text) == pytest.approx(width)


@pytest.mark.parametrize(("width", "height"), [("4in", "3in"), ("3.5in", "5in"), ("elsevier-single", "8cm")])
def test_pictures_have_the_size_in_pixels_that_is_asked_for(tmp_path, width, height):
    command(maps=[make()], plane=["z=15", "x=5"], width=width, height=height, dpi=100, output=tmp_path / "f.png")
    inches = {"4in": 4, "3.5in": 3.5, "elsevier-single": 90 / 25.4}[width], {"8cm": 8 / 2.54}.get(
        height, float(height[0]) if height[0].isdigit() else 0)
    with Image.open(tmp_path / "f.png") as image:
        assert image.size == pytest.approx((100 * inches[0], 100 * inches[1]), abs=1)


@pytest.mark.parametrize("height", [60.0, 120.0, 200.0])
def test_panels_fill_the_page_on_one_scale(height):
    panels = [figures.Panel(make(shape=(33, 33, 33)), Plane.parse(text)) for text in ("z=15", "x=5", "y=9")]
    page = figures.compose_slices(panels, width=89, height=height)
    assert page.figure.get_size_inches() * 25.4 == pytest.approx((89, height))
    boxes = [ax.get_position() for ax in page.figure.axes]
    for n, box in enumerate(boxes):  # nothing is outside, or over another panel
        assert min(box.x0, box.y0) >= 0
        assert max(box.x1, box.y1) <= 1
        assert not any(box.overlaps(other) for other in boxes[:n])
    of_panels = boxes[: len(panels)]
    across = max(box.x1 for box in of_panels) - min(box.x0 for box in of_panels)
    up = max(box.y1 for box in of_panels) - min(box.y0 for box in of_panels)
    assert across > 0.75 or up > 0.6


def test_pictures_of_a_surface_fill_a_high_page():
    mesh = molecular_surface(protein_like(), atoms="all", spacing=0.6)
    one = surfaces.figure(mesh, mesh.vertices[:, 0], ["x", "y"], (-1, 1), "kT/e", 89, None, 150)
    assert one.get_size_inches() * 25.4 == pytest.approx((89, 150))
    first, second = (ax.get_position() for ax in one.axes[:2])
    assert first.y0 >= second.y1
    assert first.width > 0.95  # which limits the scale of both, and so the height


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_the_medium_is_in_the_metadata_and_the_caption(tmp_path, suffix, capsys):
    write_map(make(provenance=WATER), tmp_path / "m.npz")
    assert cli.main(["slice", str(tmp_path / "m.npz"), "--plane", "z=15", "--range=-3,3", "--contours", "2", "-o",
                     str(tmp_path / f"f{suffix}"), "--caption", str(tmp_path / "f.txt"), "--dpi", "80"]) == 0
    caption = (tmp_path / "f.txt").read_text(encoding="utf-8").strip()
    assert f"caption: {caption}" in capsys.readouterr().out
    for words in (WATER.medium, "z = 15 Å", "−3 to 3 kT/e", "Contours: −2, 0, 2 kT/e"):
        assert words in caption
    content = (tmp_path / f"f{suffix}").read_bytes()
    if suffix == ".png":
        with Image.open(tmp_path / "f.png") as image:
            assert image.text["Description"] == caption
    elif suffix == ".svg":
        assert caption in content.decode()
        assert ">kT/e<" in content.decode()
    else:
        subject = re.search(rb"/Subject \((.*?[^\\])\)\n", content, re.S)
        text = re.sub(rb"\\([()\\])", rb"\1", subject[1])
        assert WATER.medium.encode("utf-16-be") in text


def test_the_caption_of_a_surface_has_its_views(tmp_path):
    structure = protein_like()
    result = vp.surface(structure, make(provenance=WATER), atoms="all", mesh_spacing=0.6, view=["1,1,0"], range=(-2, 2),
                        figure=tmp_path / "f.png", width="50mm", dpi=100, caption=tmp_path / "f.txt")
    caption = (tmp_path / "f.txt").read_text(encoding="utf-8").strip()
    assert caption == result.caption
    for words in ("probe 1.4 Å", WATER.medium, "1.4 Å outside", "−2 to 2 kT/e", "from (1, 1, 0)"):
        assert words in caption
    with Image.open(tmp_path / "f.png") as image:
        assert image.size[0] == pytest.approx(100 * 50 / 25.4, abs=1)
        assert np.array(image).std() > 0
        assert image.text["Description"] == caption
