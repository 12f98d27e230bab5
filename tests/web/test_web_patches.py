"""Patches of the surface, and faces of two molecules, in the page."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree
from test_web_access import AXE
from test_web_content import meshes

import vmdpotential as vp
from vmdpotential import registry

BETWEEN = ("//A/1-14", "//A/15-24")


@pytest.fixture(scope="module")
def peptide(tmp_path_factory):
    """24 residues of HIV protease."""
    entry = vp.read_structure(Path(__file__).parents[2] / "data" / "1hvr.pdb.gz")
    path = tmp_path_factory.mktemp("patches") / "peptide.pdb"
    vp.write_structure(entry.take(np.flatnonzero((entry.chain_ids == "A") & (entry.residue_ids < 25))), path)
    return path


@pytest.fixture(scope="module")
def page(peptide):
    path = peptide.with_name("page.html")
    registry.get("command", "view")(structure=peptide, patches=1.0, between=BETWEEN, output=path)
    return path


@pytest.fixture(scope="module")
def expected(peptide):
    """What the command surface reports of the same patches."""
    return vp.surface(peptide, patches=1.0, mesh_spacing=0.5)


def rows(browser, table):
    row = "(r) => [...r.cells].map((c) => c.innerText)"
    return browser.run(f"[...document.querySelectorAll('#{table} tr')].map({row})")


def test_patches_are_listed_and_drawn_in_the_colours_of_their_means(browser, page, expected):
    browser.open(page)
    large = [patch for patch in expected.patches if patch["area"] >= 30]
    assert len(large) > 1
    for shown, patch in zip(rows(browser, "patches"), large, strict=True):
        name, *numbers, residues = (text.replace("−", "-") for text in shown)
        assert name == patch["patch"]
        np.testing.assert_allclose([float(x) for x in numbers], [patch[key] for key in ("area", "integral", "mean")],
                                   rtol=0.02, atol=1)
        assert residues.split()[0] == next(iter(patch["residues"])).split("/")[-1].rstrip("0123456789")
    values = meshes(browser, "patches")[2]
    means = [patch["mean"] for patch in expected.patches]
    known = np.isfinite(np.array(values, float))
    assert 0.1 < known.mean() < 0.95
    assert cKDTree(np.reshape(means, (-1, 1))).query(np.reshape(values[known], (-1, 1)))[0].max() < 0.05
    assert browser.run("vmdpotential.scene.meshes.surface") is None
    browser.click("#patched")
    assert len(meshes(browser, "surface")[0])
    assert browser.run("vmdpotential.scene.meshes.patches") is None
    assert browser.run("vmdpotential.scene.names.length") == 0
    assert browser.problems() == []


def test_a_patch_is_chosen_by_keyboard_and_turned_to_the_viewer(browser, page, expected):
    browser.open(page)
    browser.run("document.querySelector('#patches button').focus()")
    browser.press("ArrowDown")
    browser.press("Enter")
    name = expected.patches[1]["patch"].replace("-", "−")
    assert browser.run("document.querySelector('#status').textContent").startswith(f"patch {name}: ")
    assert browser.run("document.querySelectorAll('#patches [aria-current]').length") == 1
    origin, away = browser.run("vmdpotential.scene.ray(document.querySelector('#scene').clientWidth / 2, "
                               "document.querySelector('#scene').clientHeight / 2)")
    normal, label = browser.run("[vmdpotential.state.patches.rows[1].normal, vmdpotential.state.patches.rows[1].label]")
    np.testing.assert_allclose(away, np.negative(normal), atol=1e-6)
    to = np.subtract(label, origin)
    assert np.linalg.norm(np.cross(to, away)) < 1e-3


def test_a_click_on_a_patch_chooses_its_row(browser, page):
    browser.open(page)
    browser.do("""{ const { label, mean } = vmdpotential.state.patches.rows[0];
        vmdpotential.choose({ kind: 'patches', atom: 0, point: label, value: Math.fround(mean) }); }""")
    assert browser.run("document.querySelector('#patches tr.chosen').rowIndex") == 1


def test_faces_are_shown_in_place_of_the_molecule(browser, page, peptide):
    faces = vp.complementarity(peptide, between=BETWEEN)
    browser.open(page)
    browser.do("{ const field = document.querySelector('#residues'); field.value = '3-5'; "
               "field.dispatchEvent(new Event('change')); }")
    assert browser.run("vmdpotential.scene.highlighted !== null")
    browser.run("document.querySelector('#apart').focus()")
    browser.press(" ")
    assert browser.run("[vmdpotential.scene.highlighted, ...['residues', 'measure', 'clear'].map((id) => "
                       "document.querySelector(`#${id}`).disabled)]") == [None, True, True, True]
    vertices, _, values, _ = meshes(browser, "faces")
    drawn = faces.objects["mesh"]
    used = np.unique(drawn.surface.triangles)
    distance, nearest = cKDTree(vertices).query(drawn.surface.vertices[used])
    assert distance.max() < 0.01
    near = cKDTree(vertices).query_ball_point(drawn.surface.vertices[used], 0.02)
    alone = np.isfinite(drawn.values[used]) & [len(found) == 1 for found in near]
    assert alone.mean() > 0.2
    np.testing.assert_allclose(values[nearest][alone].astype(float), drawn.values[used][alone], rtol=1e-5)
    assert browser.run("Object.keys(vmdpotential.scene.meshes)") == ["faces"]
    assert browser.run("vmdpotential.scene.drawn") == "none"
    assert browser.run("document.querySelector('#high').textContent") == f"+{max(drawn.span):g}"
    listed = rows(browser, "faces")
    assert len(listed) == len(faces.rows)
    assert listed[0][0] == max(faces.rows, key=lambda row: row["contribution"])["name"]
    browser.press(" ")
    assert browser.run("Object.keys(vmdpotential.scene.meshes)") == ["patches"]
    assert browser.run("document.querySelector('#high').textContent") == "+5"
    assert browser.problems() == []


@pytest.mark.parametrize("size", [(390, 844), (1280, 800)])
def test_axe_finds_nothing_and_all_fits(browser, page, size):
    browser.open(page, size)
    browser.run(f"{AXE.read_text('utf-8')};undefined")
    browser.click("#patches tr:nth-child(2) button")
    for _ in range(2):
        assert browser.run("axe.run().then(({ violations }) => violations.map((rule) => [rule.id, rule.impact]))") == []
        assert browser.run("document.documentElement.scrollWidth") <= size[0]
        assert browser.run("['patches', 'faces'].map((id) => document.querySelector(`#${id}`).offsetWidth "
                           "- document.querySelector(`#${id}`).closest('.table').clientWidth)") == [0, 0]
        browser.click("#apart")


def test_faces_need_no_map(browser, peptide):
    path = peptide.with_name("faces.html")
    registry.get("command", "view")(structure=peptide, medium="no", between=BETWEEN, output=path)
    browser.open(path)
    assert browser.run("Object.keys(vmdpotential.scene.meshes)") == ["faces"]
    browser.click("#apart")
    assert browser.run("[vmdpotential.scene.drawn, document.querySelector('#legend').hidden]") == ["cartoon", True]
    assert browser.problems() == []
