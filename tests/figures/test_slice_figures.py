"""Figures of slices: what is where on the page, and their files."""

from __future__ import annotations

import re
import zlib
from functools import cache

import matplotlib
import numpy as np
import pytest
from drawn import make, protein_like
from helpers import slow
from PIL import Image

from vmdpotential.figures import page as figures
from vmdpotential.figures.slices import AtomsOnSlice
from vmdpotential.figures.style import figure_style
from vmdpotential.grid.planes import Plane

EVERY_LAYOUT = {
    "one": (["z=15"], [], False, 89),
    "one flat": (["y=15"], [], False, 89),
    "two": (["z=15", "x=5"], [], False, 89),
    "three wide": (["z=15", "x=5", "y=20"], [(1, 2, 3)], False, 183),
    "five": (["z=15", "x=5", "y=20", "z=9"], [(1, 1, 0)], False, 183),
    "with profile": (["z=15"], [(1, 1, 0)], True, 183),
    "profile": ([], [], True, 89),
    "profile whose ticks come and go": ([], [], True, 91),
    "narrow": (["z=15"], [], False, 40),
    "narrow pair": (["z=15", "y=15"], [], False, 60),
    "narrow profile": ([], [], True, 40),
}


@cache
def page_of(name, **settings):
    planes, normals, profile, width = EVERY_LAYOUT[name]
    grid = make()
    chosen = [Plane.parse(text) for text in planes] + [Plane.through((9, 15, 17), n) for n in normals]
    return figures.compose_slices(
        [figures.Panel(grid, plane) for plane in chosen], profiles=[("", grid)] if profile else [], width=width,
        drawn=AtomsOnSlice(protein_like()), contours=4, **settings)


@pytest.mark.parametrize("name", slow(EVERY_LAYOUT, ["one", "three wide", "five", "with profile"]))
def test_nothing_is_cut_and_nothing_overlaps(name):
    page = page_of(name)
    with figure_style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        renderer = FigureCanvasAgg(page.figure).get_renderer()
        whole = page.figure.bbox
        boxes = [ax.get_tightbbox(renderer) for ax in page.figure.axes]
        scales = []
        for ax in page.axes:
            inner = ax.get_window_extent(renderer)
            scales.append(inner.width / np.ptp(ax.get_xlim()))
    for box in boxes:
        assert box.x0 > -1
        assert box.y0 > -1
        assert box.x1 < whole.width + 1
        assert box.y1 < whole.height + 1
    for n, a in enumerate(boxes):
        for other in boxes[:n]:
            assert a.x1 < other.x0 + 1 or other.x1 < a.x0 + 1 or a.y1 < other.y0 + 1 or other.y1 < a.y0 + 1
    # the width is used: at most 2 mm are left on either side, and all slices have the same scale
    assert min(box.x0 for box in boxes) < 2 / 25.4 * page.figure.dpi
    number = len(EVERY_LAYOUT[name][0]) + len(EVERY_LAYOUT[name][1])
    assert np.ptp(scales[:number]) < 1e-3 * scales[0] if number else True
    assert page.figure.get_figwidth() * 25.4 == pytest.approx(EVERY_LAYOUT[name][3])


def test_names_of_maps_are_drawn_as_they_are(tmp_path):
    grid, plane = make(), Plane.parse("z=15")
    names = [r"$\frac{a}$_x%", "a$b$c_{d}^2"]
    page = figures.compose_slices([figures.Panel(grid, plane, name) for name in names],
                           profiles=[(name, grid) for name in names])
    figures.save(page.figure, tmp_path / "names.svg")
    text = (tmp_path / "names.svg").read_text()
    assert all(text.count(f">{name}<") == 2 for name in names)  # title and legend


def test_panels_share_one_scale_and_one_colour_bar():
    page = page_of("three wide")
    assert len(page.axes) == 4
    assert len(page.figure.axes) == 5  # and the colour bar
    assert {ax.images[0].get_clim() for ax in page.axes} == set(page.ranges)
    assert [ax.get_title(loc="left") for ax in page.axes] == ["a", "b", "c", "d"]
    assert [ax.get_title() for ax in page.axes] == ["z = 15 Å", "x = 5 Å", "y = 20 Å", "normal (1, 2, 3)"]
    assert page.figure.axes[-1].get_xlabel() == "kT/e"


@pytest.mark.slow
def test_settings_of_the_session_stay_and_do_not_matter(tmp_path):
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "image.cmap": "jet", "svg.fonttype": "path"}):
        page = page_of.__wrapped__("one")
        figures.save(page.figure, tmp_path / "a.svg")
        assert matplotlib.rcParams["font.size"] == 30
    figures.save(page_of.__wrapped__("one").figure, tmp_path / "b.svg")
    assert dict(matplotlib.rcParams) == before
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("width", slow([89, 183, 120.5], [183, 120.5]))
def test_png_has_the_size_and_resolution_asked_for(tmp_path, width):
    page = figures.compose_slices([figures.Panel(make(), Plane.parse("z=15"))], width=width)
    figures.save(page.figure, tmp_path / "f.png", dpi=300, title="a title")
    with Image.open(tmp_path / "f.png") as image:
        assert image.width == pytest.approx(width / 25.4 * 300, abs=1)
        assert image.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert image.info["Software"].startswith("vmdpotential ")
        assert image.info["Title"] == "a title"
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
    assert ((pixels[:, 0] - pixels[:, 2]) > 60).any()  # red
    assert ((pixels[:, 2] - pixels[:, 0]) > 60).any()  # blue


@pytest.mark.slow
def test_pdf_embeds_truetype_and_has_its_size(tmp_path):
    figures.save(page_of("two").figure, tmp_path / "f.pdf")
    raw = (tmp_path / "f.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", raw)
    assert float(box.group(1)) / 72 * 25.4 == pytest.approx(89, abs=0.01)
    streams = b"".join(
        zlib.decompressobj().decompress(part) for part in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", raw, re.DOTALL)
        if part[:1] == b"x")
    assert b"/FontFile2" in raw + streams  # 42: TrueType, which journals take
    assert b"/Type3" not in raw + streams


def test_print_sizes_of_text_and_lines():
    page = page_of("two")
    for ax in page.figure.axes:
        for text in (ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()):
            assert 6 <= text.get_fontsize() <= 8
        assert all(0.25 <= spine.get_linewidth() <= 1 for spine in ax.spines.values() if spine.get_visible())
