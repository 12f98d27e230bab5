"""What is done in a worker: once, in the order that was asked for, and still when the worker ends."""

import numpy as np

#: A worker that the test sees, and that learns of the second map late.
WATCHED = """window.posted = []; const Plain = Worker; window.Worker = class extends Plain {
    constructor(...given) { super(...given); window.watched = this; }
    postMessage(task) {
      window.posted.push(task.name + task.what.n);
      if (task.name === "map" && task.what.n === 1) setTimeout(() => super.postMessage(task), 300);
      else super.postMessage(task);
    } };"""


def choose(browser, *numbers):
    browser.run("{ const list = document.querySelector('#map'); "
                f"for (const n of {list(numbers)}) {{ list.value = n; list.dispatchEvent(new Event('change')); }} }}")


def test_the_map_chosen_last_is_shown_and_each_is_unpacked_once(browser, sphere):
    with browser.before_pages(WATCHED):
        browser.open(sphere.path, wait=False)
        browser.wait("window.vmdpotential?.state?.map")
        choose(browser, 1, 0)
        browser.run("vmdpotential.ready.then(() => vmdpotential.complete)")
        browser.settle()
        assert browser.run("vmdpotential.maps.indexOf(vmdpotential.state.map)") == 0
        choose(browser, 1)
        browser.settle()
    assert browser.run("vmdpotential.maps.indexOf(vmdpotential.state.map)") == 1
    assert browser.run("posted.filter((name) => name.startsWith('map'))") == ["map0", "map1"]


def test_isosurfaces_are_drawn_after_the_worker_has_ended(browser, sphere):
    with browser.before_pages(WATCHED):
        browser.open(sphere.path)
    browser.click("#positive")
    before = browser.run("vmdpotential.state.triangles")
    assert before[0] > 100
    browser.do("watched.onerror(); const number = document.querySelector('#level-number'); number.value = 4; "
               "number.dispatchEvent(new Event('change'))")
    after = browser.run("vmdpotential.state.triangles")
    assert after[0] > 1.2 * before[0]  # a sphere of 6 A in place of 5
    browser.click("#inside")  # what was known of the molecule is known again
    assert browser.run("vmdpotential.state.triangles")[0] >= after[0]
    assert browser.problems() == []
    assert len(browser.run("posted")) == len(set(browser.run("posted")))


def test_what_is_typed_and_is_no_number_above_0_is_put_back(browser, sphere):
    browser.open(sphere.path)
    for name in ("range", "level-number"):
        before = browser.run(f"document.querySelector('#{name}').value")
        browser.set(f"#{name}", "-3")
        assert browser.run(f"document.querySelector('#{name}').value") == before
        assert float(before) > 0


def test_reset_ends_the_way_to_an_ion(browser, small):
    browser.open(small.path)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "no-preference"}])
    first, moved, last = browser.run("""(() => {
        const view = () => vmdpotential.scene.viewer.getView(), plain = window.requestAnimationFrame, late = [];
        const draw = (after) => late.splice(0).forEach((step) => step(performance.now() + after));
        const seen = [view()];
        window.requestAnimationFrame = (step) => late.push(step);
        document.querySelector('#ions tr').click();
        draw(100);
        seen.push(view());
        document.querySelector('#reset').click();
        draw(1000);
        seen.push(view());
        window.requestAnimationFrame = plain;
        return seen; })()""")
    assert np.abs(np.subtract(moved, first)[:3]).max() > 0.01
    np.testing.assert_allclose(last, first, atol=1e-6)
