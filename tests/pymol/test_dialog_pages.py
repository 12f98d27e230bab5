"""What a page of the dialog shows at once, a first picture by one click, and the live map by a check box."""

from pymol.Qt import QtWidgets
from PyQt5.QtTest import QTest
from test_dialog import application, click, fill, form, run, wait, window  # noqa: F401 - fixtures

from vmdpotential.plugins.pymol.session import Session


def test_what_everybody_sets_is_in_front_and_the_rest_folded(window):  # noqa: F811
    page = form(window, "Map")
    front = [name for name, field in page.fields.items() if field.isVisibleTo(page.widget)]
    assert front == ["selection", "surface", "hide_water", "range", "medium"]
    assert all(sum(entry.front for entry in other.entries) <= 5 for other in window.panel.forms)
    page.fold.click()
    assert page.fields["tolerance"].isVisibleTo(page.widget)
    page.fold.click()
    assert not page.fields["tolerance"].isVisibleTo(page.widget)
    assert page.texts()["padding"] == "10.0"


def test_one_click_draws_a_coloured_surface_with_a_legend_and_again(window, cmd):  # noqa: F811
    page = form(window, "Map")
    fill(page, "spacing", "1")
    height, view = window.panel.status.height(), cmd.get_view()
    for _ in range(2):  # what the first run made is no part of the system
        assert run(window).startswith("map: object potential_surface")
        assert window.panel.status.height() == height
    assert cmd.get_view() == view
    texts = []
    cmd.iterate("potential_legend", "texts.append(label)", space={"texts": texts})
    assert " ".join(texts[0].split()).endswith(
        "kT/e at 298.15 K, water (Poisson-Boltzmann), 0.15 M, ion radius 2 A, dielectric 78.5, 2 inside")
    assert "potential_ramp" in cmd.get_names("objects", enabled_only=1)
    fill(page, "range", "7")
    run(window)
    texts.clear()
    cmd.iterate("potential_legend", "texts.append(label)", space={"texts": texts})
    assert texts[0].startswith("potential: -7 to 7 kT/e")


def test_the_live_map_has_a_check_box(window, cmd):  # noqa: F811
    panel = window.panel
    fill(form(window, "Live"), "selection", "resn ANI")
    click(panel.live_box)
    wait(lambda: panel.work is None and panel.live_box.isChecked())
    assert Session.of(cmd).live.running
    cmd.translate([1, 0, 0], "resn ANI", camera=0)
    wait(lambda: Session.of(cmd).live.latest.done > 0)
    click(panel.live_box)
    assert "ended after" in panel.status.text()
    QTest.qWait(150)
    assert not panel.live_box.isChecked()
    assert Session.of(cmd).live is None
    assert isinstance(panel.live_box, QtWidgets.QCheckBox)
