"""The page for everybody: screen readers, small and dark screens, no 3D graphics, and texts that mean harm."""

import sys
from pathlib import Path

import pytest

AXE = Path(sys.prefix, "node_modules", "axe-core", "axe.min.js")


def nodes(browser):
    """Return (role, name, focusable) of what a screen reader sees."""
    tree = browser.call("Accessibility.getFullAXTree")["nodes"]
    results = []
    for node in tree:
        if node.get("ignored"):
            continue
        focusable = any(p["name"] == "focusable" and p["value"]["value"] for p in node.get("properties", ()))
        results.append((node["role"]["value"], node.get("name", {}).get("value", ""), focusable))
    return results


def test_everything_that_takes_the_focus_has_a_name(browser, small):
    browser.open(small.path)
    browser.click("input[name=axis][value='2']")
    results = [node for node in nodes(browser) if node[2] and node[0] != "RootWebArea"]
    assert len(results) > 20
    assert [node for node in results if not node[1].strip() and node[0] not in ("generic",)] == []
    roles = {role for role, _, _ in nodes(browser)}
    assert {"slider", "table", "columnheader", "rowheader", "status", "radiogroup", "heading", "application"} <= roles
    sliders = [name for role, name, _ in results if role == "slider"]
    assert sliders == ["Opacity", "Level", "Opacity", "At"]


def test_focus_goes_through_the_page_in_order(browser, small):
    browser.open(small.path)
    browser.click("input[name=axis][value='2']")
    browser.run("document.activeElement.blur(); window.getSelection().removeAllRanges()")
    browser.run("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
    seen = []
    for _ in range(25):
        browser.press("Tab")
        seen.append(browser.run("(document.activeElement.id || document.activeElement.name || "
                                "document.activeElement.className || document.activeElement.tagName)"))
        outline = browser.run("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", seen
    assert seen[:22] == ["skip", "save", "reset", "theme", "scene", "range", "surface", "surface-opacity", "positive",
                         "negative", "level", "level-number", "opacity", "inside", "axis", "position", "style",
                         "show-ions", "residues", "measure", "clear", "table"]
    # one button of the table of ions, however many there are, then the two texts that unfold
    assert len(small.ions) > 1
    assert seen[22:] == ["BUTTON", "SUMMARY", "SUMMARY"]


CONTRASTS = """(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgb = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92
    : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
  return [...document.querySelectorAll('body *')].filter((e) => e.offsetParent && !e.closest(':disabled')
      && !e.querySelector(':disabled') && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((e) => { const a = light(rgb(getComputedStyle(e).color)), b = light(ground(e));
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + '#' + e.id]; });
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out(browser, small, scheme):
    browser.open(small.path, scheme=scheme)
    browser.click("input[name=axis][value='0']")
    assert browser.run("document.documentElement.dataset.theme") == scheme
    browser.click("#ions tr:nth-child(2) button")
    result = browser.run(CONTRASTS)
    assert len(result) > 60
    assert [item for item in result if item[0] < 4.5] == []


def test_theme_button(browser, small):
    browser.open(small.path)
    browser.click("#theme")
    assert browser.run("document.querySelector('#theme').getAttribute('aria-pressed')") == "true"
    assert browser.run("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    theme, reset = (browser.run(f"getComputedStyle(document.querySelector('#{name}')).backgroundColor")
                    for name in ("theme", "reset"))
    assert theme != reset  # it is seen to be pressed


@pytest.mark.parametrize("name", ["small", "sphere"])
def test_ions_are_offered_if_there_are_any(browser, request, name):
    browser.open(request.getfixturevalue(name).path)
    assert browser.run("document.querySelector('#show-ions').checkVisibility()") == (name == "small")


def test_the_table_of_ions_is_one_stop_of_tab(browser, small):
    browser.open(small.path)
    last = len(small.ions) - 1
    stops = "[...document.querySelectorAll('#ions button')].flatMap((b, n) => b.tabIndex < 0 ? [] : [n])"
    focused = "[...document.querySelectorAll('#ions button')].indexOf(document.activeElement)"
    assert browser.run(stops) == [0]
    browser.run("document.querySelector('#ions button').focus()")
    for key, expected in (("ArrowUp", 0), ("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", last),
                          ("ArrowDown", last), ("Home", 0), ("ArrowDown", 1)):
        browser.press(key)
        assert browser.run(focused) == expected
        assert browser.run(stops) == [expected]
    browser.press("Enter")
    assert browser.run("document.querySelector('#status').textContent").startswith(
        f"{small.ions[1].name} {small.ions[1].residue_id},")
    browser.press("Tab")
    assert browser.run(focused) == -1


def test_landmarks_have_names_of_their_own(browser, small):
    browser.open(small.path)
    found = [(role, name) for role, name, _ in nodes(browser) if role in ("region", "main", "navigation")]
    assert len(found) > 3
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("size", [(390, 844), (1280, 800)])
def test_page_fits_the_screen(browser, small, size):
    browser.open(small.path, size)
    assert browser.run("document.documentElement.scrollWidth") <= size[0]
    view, panel = browser.run("['#view', '#panel'].map((s) => { const r = document.querySelector(s)"
                              ".getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })")
    if size[0] < 760:
        assert panel[1] >= view[1] + view[3]
        assert view[2] == panel[2] == size[0]
        assert 300 <= view[3] <= 0.6 * size[1]
    else:
        assert panel[0] >= view[0] + view[2]
        assert view[2] > 850
        assert browser.run("document.documentElement.scrollHeight") <= size[1]


@pytest.mark.parametrize("size", [(390, 844), (1280, 800)])
def test_axe_finds_nothing(browser, small, size):
    """The rules of axe-core, from its npm package, also for what is hidden at first."""
    browser.open(small.path, size)
    browser.run(f"{AXE.read_text('utf-8')};undefined")
    browser.do("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    browser.click("input[name=axis][value='0']")
    browser.click("#ions tr:nth-child(2) button")
    passed, violated = browser.run("""axe.run().then(({ passes, violations }) => [passes.length,
        violations.map((rule) => [rule.id, rule.impact, ...rule.nodes.map((node) => node.html)])])""")
    assert violated == []
    assert passed > 30
    browser.do("document.body.append(document.createElement('button'))")  # it sees what it is to see
    assert "button-name" in browser.run("axe.run().then(({ violations }) => violations.map((rule) => rule.id))")


def test_without_webgl_the_page_says_so_and_shows_the_rest(browser_without_webgl, protein):
    browser = browser_without_webgl
    browser.open(protein.path)
    assert "WebGL is switched off" in browser.run("document.querySelector('#message').innerText")
    assert ("alert", True) in [(role, "WebGL" in name or not name) for role, name, _ in nodes(browser)]
    assert browser.run("document.querySelector('#level').matches(':disabled')")
    browser.click("#ions tr:nth-child(4) button")
    assert browser.run("document.querySelector('#status').textContent").startswith("SOD 4")
    assert "298.15 K" in browser.run("document.querySelector('#about').innerText")
    assert browser.problems() == []


def test_hostile_texts_are_shown_and_do_nothing(browser, sphere, hostile):
    browser.open(sphere.path)
    browser.set("#map", 1)
    browser.do("vmdpotential.choose({ kind: 'atom', atom: 0, point: [0, 0, 0] })")
    assert browser.run("window.hacked") is None
    assert browser.run("document.querySelectorAll('img').length") == 0
    shown = " ".join(hostile.split())
    assert browser.run("document.title") == browser.run("document.querySelector('h1').textContent") == shown
    assert browser.run("document.querySelector('#map').selectedOptions[0].textContent") == hostile
    assert '"<b>' in browser.run("document.querySelector('#status').textContent")
    assert browser.problems() == []
