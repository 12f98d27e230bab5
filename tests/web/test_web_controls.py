"""The controls work, by mouse and by keyboard."""

import io
from pathlib import Path

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")  # comes with matplotlib

PICTURE = Path(__file__).resolve().parent.parent.parent / "plugins" / "web" / "page.jpg"


def state(browser, name):
    return browser.run(f"vmdpotential.state.{name}")


def pixels(browser):
    return np.asarray(Image.open(io.BytesIO(browser.picture())).convert("RGB")).astype(int)


def test_level_slider(browser, small):
    browser.open(small.path)
    level = state(browser, "level")
    both = state(browser, "triangles")
    assert min(both) > 1000
    browser.run("document.querySelector('#level').focus()")
    browser.press("ArrowRight", 60)
    higher = state(browser, "level")
    assert higher > 1.2 * level
    assert all(np.less(state(browser, "triangles"), both))
    text = browser.run("document.querySelector('#level').getAttribute('aria-valuetext')")
    assert text.startswith("plus and minus ")
    assert text.endswith(" kT/e")
    assert float(browser.run("document.querySelector('#level-number').value")) == pytest.approx(higher, rel=0.01)
    browser.click("#level", (0.1, 0.5))
    assert state(browser, "level") < level


def test_level_as_a_number_and_the_two_signs(browser, small):
    browser.open(small.path)
    browser.do("document.querySelector('#level-number').select()")
    browser.press("5")
    browser.press("0")
    browser.press("Enter")
    assert state(browser, "level") == 50
    browser.click("#negative")
    positive, negative = state(browser, "triangles")
    assert positive > 1000
    assert negative == 0
    browser.click("#positive")
    assert state(browser, "triangles") == [0, 0]


def test_surfaces_are_blue_and_red(browser, small):
    browser.open(small.path)
    browser.click("#show-ions")
    browser.set("#style", "none")
    for hidden, strong, weak in (("#negative", 2, 0), ("#positive", 0, 2)):
        browser.click(hidden)
        image = pixels(browser)[60:400, 20:400].reshape(-1, 3)
        drawn = image[(image != 255).any(1)]
        assert len(drawn) > 3000
        assert (drawn[:, strong] >= drawn[:, weak]).mean() > 0.99
        browser.click(hidden)


def test_slice_by_keyboard(browser, small):
    browser.open(small.path)
    assert browser.run("document.querySelector('#position').disabled")
    browser.run("document.querySelector('input[name=axis][value=\"\"]').focus()")
    browser.press("ArrowRight", 3)
    assert state(browser, "axis") == 2
    browser.run("document.querySelector('#position').focus()")
    before = state(browser, "position")
    browser.press("ArrowRight", 5)
    assert state(browser, "position") == pytest.approx(before + 0.5, abs=0.11)
    assert browser.run("document.querySelector('#position').getAttribute('aria-valuetext')").startswith("z = ")


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_slice_is_dragged_along_its_axis(browser, sphere, axis):
    browser.open(sphere.path)
    browser.click(f"input[name=axis][value='{axis}']")
    browser.do(f"vmdpotential.scene.lookAt({axis})")
    before = state(browser, "position")
    grip = browser.run("vmdpotential.scene.grip()")
    grip[axis] += 2.5  # where it is to come
    x, y, width, height = browser.box("#handle")
    left, top = browser.box("#scene")[:2]
    target = browser.run(f"vmdpotential.scene.toScreen({grip})")
    browser.drag((x + width / 2, y + height / 2), (left + target[0], top + target[1]))
    assert state(browser, "position") == pytest.approx(before + 2.5, abs=0.15)
    assert browser.run("vmdpotential.scene.plane.position") == state(browser, "position")


@pytest.mark.parametrize("turn", [0, 55, 130, 180])
def test_slice_has_the_colours_of_its_scale_from_all_sides(browser, sphere, turn):
    browser.open(sphere.path)
    browser.set("#map", 1)
    for selector in ("#positive", "#negative", "input[name=axis][value='2']"):
        browser.click(selector)
    browser.set("#style", "none")
    browser.do(f"vmdpotential.scene.viewer.rotate({turn}, 'y')")
    image = pixels(browser)
    left, top = browser.box("#scene")[:2]
    for x in (-6.0, -2.5, 0.0, 2.5, 6.0):
        place = [x, 3.3, state(browser, "position")]
        u, v = browser.run(f"vmdpotential.scene.toScreen({place})")
        colour = browser.run(f"vmdpotential.colour({x}, vmdpotential.state.range)")
        expected = np.array([colour[c] for c in "rgb"]) * 255
        assert np.abs(image[round(top + v), round(left + u)] - expected).max() < 9


def centre_of(browser):
    _, _, width, height = browser.box("#scene")
    return width / 2, height / 2


def test_choosing_an_ion_centres_it(browser, small):
    browser.open(small.path)
    for n, choose in ((0, "mouse"), (3, "keyboard"), (1, "mouse")):
        button = f"#ions tr:nth-child({n + 1}) button"
        if choose == "mouse":
            browser.click(button)
        else:
            browser.run(f"document.querySelector({button!r}).focus()")
            browser.press("Enter")
        browser.settle()
        ion = small.ions[n]
        place = browser.run(f"vmdpotential.scene.toScreen({list(ion.position)})")
        assert place == pytest.approx(centre_of(browser), abs=1)
        assert browser.run(f"document.querySelector({button!r}).getAttribute('aria-current')") == "true"
        assert browser.run("document.querySelectorAll('#ions [aria-current]').length") == 1
        text = browser.run("document.querySelector('#status').textContent").replace("−", "-")
        assert text.startswith(f"{ion.name} {ion.residue_id}, charge {ion.charge:+d}, at {ion.position[0]:.1f}, ")
        assert f"{ion.energy:.4g} kcal/mol" in text


def test_an_ion_and_an_atom_are_chosen_in_the_view(browser, small):
    browser.open(small.path)
    for selector in ("#positive", "#negative"):
        browser.click(selector)
    left, top = browser.box("#scene")[:2]
    # the ion that is nearest to the eye is hidden by nothing
    places = [browser.run(f"vmdpotential.scene.toScreen({list(ion.position)})") for ion in small.ions]
    n = int(np.argmax([ion.position[2] for ion in small.ions]))
    browser.drag((left + places[n][0], top + places[n][1]), (left + places[n][0], top + places[n][1]), 1)
    browser.wait("vmdpotential.state.ion >= 0")
    assert state(browser, "ion") == n
    browser.click("#reset")
    sulphur = small.structure.positions[4]
    u, v = browser.run(f"vmdpotential.scene.toScreen({sulphur.tolist()})")
    browser.drag((left + u, top + v), (left + u, top + v), 1)
    browser.wait("document.querySelector('#status').textContent.startsWith('ANI1:S1, potential ')")


def test_view_by_keyboard(browser, small):
    browser.open(small.path)
    browser.run("document.querySelector('#scene').focus()")
    first = browser.run("vmdpotential.scene.viewer.getView()")
    browser.press("ArrowRight", 3)
    browser.press("ArrowUp", 2)
    turned = browser.run("vmdpotential.scene.viewer.getView()")
    assert np.abs(np.subtract(turned, first)[4:8]).max() > 0.05
    browser.press("+", 2)
    assert browser.run("vmdpotential.scene.viewer.getView()")[3] > turned[3]
    browser.press("Home")
    np.testing.assert_allclose(browser.run("vmdpotential.scene.viewer.getView()"), first, atol=1e-6)


def test_maps_are_switched(browser, sphere):
    browser.open(sphere.path)
    assert browser.run("!document.querySelector('#map-choice').hidden")
    assert browser.run("vmdpotential.state.map.name") == "ball"
    browser.run("document.querySelector('#map').focus()")
    browser.press("ArrowDown")
    assert browser.run("vmdpotential.state.map === vmdpotential.maps[1]")


def test_picture_for_the_page_of_the_plugin(browser, protein, request, tmp_path):
    """What the documents show is this page: blue, red, ions, and a slice seen at a slant."""
    browser.open(protein.path, (1100, 680))
    browser.click("input[name=axis][value='2']")
    browser.do("vmdpotential.scene.lookAt(2)")
    image = Image.open(io.BytesIO(browser.picture())).convert("RGB")
    path = PICTURE if request.config.getoption("--pictures", default=False) else tmp_path / PICTURE.name
    image.save(path, quality=82, optimize=True)
    assert path.stat().st_size < 100_000
    r, _, b = np.asarray(image).astype(int)[60:, :700].reshape(-1, 3).T
    assert (b - r > 60).mean() > 0.02
    assert (r - b > 60).mean() > 0.02
