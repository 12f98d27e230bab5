"""The controls work, by mouse and by keyboard."""

import base64
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


def with_isosurfaces(browser, case):
    browser.open(case.path)
    for selector in ("#surface", "#positive", "#negative"):
        browser.click(selector)


def test_level_slider(browser, small):
    with_isosurfaces(browser, small)
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
    with_isosurfaces(browser, small)
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
    with_isosurfaces(browser, small)
    browser.click("#inside")
    browser.click("#show-ions")
    browser.set("#style", "none")
    for hidden, strong, weak in (("#negative", 2, 0), ("#positive", 0, 2)):
        browser.click(hidden)
        image = pixels(browser)[120:400, 20:400].reshape(-1, 3)
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
    for selector in ("#surface", "input[name=axis][value='2']"):
        browser.click(selector)
    browser.set("#range", 8)
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
        assert f"{ion.energy:.1f} kcal/mol" in text


def test_an_ion_and_an_atom_are_chosen_in_the_view(browser, small):
    browser.open(small.path)
    browser.click("#surface")
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
    browser.wait("document.querySelector('#status').textContent.startsWith('ANI 1 LIG, S1, potential ')")


def tip(browser):
    return browser.run("document.querySelector('#tip').hidden ? null : document.querySelector('#tip').textContent")


def test_what_is_under_the_mouse_is_told(browser, small):
    browser.open(small.path)
    left, top, _, height = browser.box("#scene")
    point = np.array(browser.run("""(() => {
        const { positions: p } = vmdpotential.scene.meshes.surface.groups[0];
        let best = 0;  // what is nearest to the eye
        for (let n = 0; n < p.length; n += 3) if (p[n + 2] > p[best + 2]) best = n;
        return Array.from(p.slice(best, best + 3)); })()"""))
    u, v = browser.run(f"vmdpotential.scene.toScreen({point.tolist()})")
    browser.hover(left + u, top + v)
    atoms = small.structure.take(small.structure.residue_names == "ANI")
    nearest = np.linalg.norm(atoms.positions - point, axis=1).argmin()
    text = tip(browser)
    assert text.startswith(f"ANI 1 LIG, {atoms.atom_names[nearest]}, potential ")
    value, unit = text.rsplit("potential ")[1].split()
    assert unit == "kT/e"
    assert float(value.replace("−", "-")) == pytest.approx(float(small.grid.sample(point[None])[0]), rel=0.02)
    # with as many decimals as make three digits of the range
    span = state(browser, "range")
    assert len(value.partition(".")[2]) == max(0, 2 - int(np.floor(np.log10(span))))
    browser.hover(left + 3, top + height - 3)
    assert tip(browser) is None


def test_rays_go_through_the_pixels_where_points_are_drawn(browser, small):
    browser.open(small.path, (500, 700))
    browser.do("vmdpotential.scene.viewer.rotate(40, 'y'); vmdpotential.scene.viewer.rotate(-25, 'x')")
    for ion in small.ions:
        origin, away = (np.array(row) for row in browser.run(
            f"vmdpotential.scene.ray(...vmdpotential.scene.toScreen({list(ion.position)}))"))
        offset = ion.position - origin
        assert np.linalg.norm(offset - offset @ away * away) < 0.1


def test_a_slice_is_smooth_between_the_points_of_a_map(browser, sphere):
    browser.open(sphere.path)
    worst = browser.run("""(() => {  // a cone: 10 - r, whose kinks are at its tip alone
        const map = vmdpotential.maps[0], axis = 2, at = 0.1, [group] = vmdpotential.slice(map, axis, at);
        let worst = [0, 0];
        for (let n = 0; n < group.values.length; n++) {
          const [x, y, z] = group.positions.slice(3 * n, 3 * n + 3), r = Math.hypot(x, y, z);
          if (r < 1.5) continue;
          worst[0] = Math.max(worst[0], Math.abs(10 - r - group.values[n]));
          worst[1] = Math.max(worst[1], Math.abs(10 - r - map.sample(x, y, z)));
        }
        return worst; })()""")
    assert 3 * worst[0] < worst[1]


@pytest.mark.parametrize("size", [(390, 844), (844, 390), (1280, 800)])
def test_nothing_that_is_shown_is_cut(browser, small, size):
    browser.open(small.path, size)
    for selector in ("#negative", "input[name=axis][value='2']", "input[name=axis][value='0']"):
        browser.click(selector)
        width, height, legend, hint = browser.run(
            "(() => { const s = document.querySelector('#scene'); "
            "return [s.clientWidth, s.clientHeight, ...vmdpotential.scene.covered()]; })()")
        assert legend > 40
        assert (hint > 20) == (size == (1280, 800))  # there it has room
        places = np.array(browser.run("""(() => { const { scene } = vmdpotential;
            const points = Object.values(scene.meshes).flatMap(({ groups }) => groups.flatMap(({ positions }) =>
              Array.from({ length: positions.length / 3 }, (_, n) => Array.from(positions.slice(3 * n, 3 * n + 3)))));
            for (const ion of scene.content.ions) points.push(ion.position);
            return points.filter((_, n) => n % 7 === 0).map((point) => scene.toScreen(point)); })()"""))
        assert places.min(0)[0] >= 0
        assert places.min(0)[1] >= legend - 1
        assert (places.max(0) <= [width, height - hint + 1]).all()
        # and it fills the view in one direction
        assert (np.ptp(places, axis=0) / [width, height - legend - hint]).max() > 0.7


def test_a_long_legend_is_wrapped_in_a_narrow_picture(browser, small):
    browser.open(small.path, (390, 844))
    browser.run("document.querySelector('#legend-text').textContent = 'many words and '.repeat(8)")
    data = browser.run("""(() => {  // of the texts alone
        vmdpotential.scene.picture = (finer) => Object.assign(document.createElement('canvas'),
          { width: finer * 390, height: finer * 400 });
        return vmdpotential.picture().toDataURL('image/png'); })()""")
    drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))))[2 * 46:, :, 3] > 0
    assert drawn.any(1).nonzero()[0][-1] > 2 * 30  # several lines
    assert 2 * 300 < drawn.any(0).nonzero()[0][-1] < 2 * 380


def test_a_picture_is_saved_twice_as_fine_with_its_legend(browser, small):
    browser.open(small.path)
    width, height = browser.run("[vmdpotential.scene.host.clientWidth, vmdpotential.scene.host.clientHeight]")
    data = browser.run("vmdpotential.picture().toDataURL('image/png')")
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))).convert("RGB")).astype(int)
    assert image.shape == (2 * height, 2 * width, 3)
    bar = image[36, 2 * 12 + 4:2 * 232 - 4]
    assert bar[0][0] > bar[0][2] + 60  # red
    assert bar[-1][2] > bar[-1][0] + 60  # blue
    below = image[160:]
    assert (np.ptp(below, axis=2) > 40).mean() > 0.02
    assert (below == 255).all(2).mean() > 0.2


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
    """What the documents show is this page: a surface in blue and red, and ions."""
    browser.open(protein.path, (1100, 680))
    image = Image.open(io.BytesIO(browser.picture())).convert("RGB")
    path = PICTURE if request.config.getoption("--pictures", default=False) else tmp_path / PICTURE.name
    image.save(path, quality=82, optimize=True)
    assert path.stat().st_size < 100_000
    r, _, b = np.asarray(image).astype(int)[60:, :700].reshape(-1, 3).T
    assert (b - r > 60).mean() > 0.02
    assert (r - b > 60).mean() > 0.02


def test_maps_of_other_media_have_scales_of_their_own(browser, media):
    browser.open(media.path)
    ranges, levels = [state(browser, "range")], [state(browser, "level")]
    for n in (1, 2):
        browser.set("#map", str(n))
        ranges.append(state(browser, "range"))
        levels.append(state(browser, "level"))
    assert ranges[1] == 5
    assert ranges[0] > 50
    assert levels[0] > 5 * levels[1]
    ticks = [browser.run(f"document.querySelector('#{name}').textContent") for name in ("low", "middle", "high")]
    assert ticks[0] == "0"
    assert all(text.startswith("+") for text in ticks[1:])
    assert float(ticks[2]) == pytest.approx(2 * float(ticks[1]), rel=0.01)


def test_residues_are_selected_by_text_and_by_a_click(browser, small):
    browser.open(small.path)
    names = browser.run("Array.from({ length: vmdpotential.atoms.residueCount }, "
                        "(_, r) => vmdpotential.atoms.residueNames.of(r))")
    starts = browser.run("[...vmdpotential.atoms.starts]")
    browser.set("#residues", names[-1])
    same = browser.run(f"vmdpotential.residuesOf(vmdpotential.atoms, '{names[-1]}')")
    assert same == [n for n, name in enumerate(names) if name == names[-1]]
    highlighted = "vmdpotential.scene.highlighted?.selectedAtoms({}).length ?? 0"
    assert browser.run(highlighted) == sum(starts[n + 1] - starts[n] for n in same)
    browser.set("#residues", "XYZ 5")
    assert browser.run("document.querySelector('#residues').getAttribute('aria-invalid')") == "true"
    browser.do("vmdpotential.choose({ kind: 'atom', atom: 0, point: vmdpotential.atoms.place(0) })")
    assert browser.run(highlighted) == starts[1]
    browser.click("#clear")
    assert browser.run(highlighted) == 0
    assert browser.problems() == []


def test_distances_are_measured(browser, small):
    browser.open(small.path)
    browser.click("#measure")
    for atom in (0, 1):
        browser.do(f"vmdpotential.choose({{ kind: 'atom', atom: {atom}, point: vmdpotential.atoms.place({atom}) }})")
    places = np.array([browser.run(f"vmdpotential.atoms.place({atom})") for atom in (0, 1)])
    text = browser.run("document.querySelector('#distances').textContent")
    assert text.endswith(f"{np.linalg.norm(places[1] - places[0]):.2f} Å")
    assert browser.run("vmdpotential.scene.measured.length") == 1
    browser.click("#clear")
    assert browser.run("vmdpotential.scene.measured.length") == 0
    assert browser.run("document.querySelector('#distances').children.length") == 0
    assert browser.problems() == []
