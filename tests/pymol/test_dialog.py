"""The Qt dialog, clicked through with a small molecule."""

import logging
import os
import threading
import time

import pytest

if not os.environ.get("DISPLAY"):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import golden
from pymol.Qt import QtCore, QtWidgets
from PyQt5.QtTest import QTest

from vmdpotential import progress, registry
from vmdpotential.errors import TaskError
from vmdpotential.parameters import Report
from vmdpotential.plugins.pymol import arguments, dialog, feedback
from vmdpotential.plugins.viewers import adapters

LEFT = QtCore.Qt.MouseButton.LeftButton


@pytest.fixture(scope="module")
def application():
    return QtWidgets.QApplication.instance() or QtWidgets.QApplication([])


@pytest.fixture
def window(application, cmd, tmp_path):
    cmd.load(str(golden.write(tmp_path)["pqr"]), "box")
    cmd.set_symmetry("box", *golden.LENGTHS, 90, 90, 90, "P 1")
    opened = dialog.open_dialog(cmd)
    assert QTest.qWaitForWindowExposed(opened)
    yield opened
    opened.close()
    wait(lambda: opened.panel.work is None or not opened.panel.work.running)


def wait(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        QTest.qWait(20)


def form(window, name):
    """Bring a page to the front by a choice in the list of commands."""
    position = window.panel.pages.findText(name)
    window.panel.pages.setCurrentIndex(position)
    assert window.panel.tabs.currentIndex() == position
    return window.panel.forms[position]


def fill(form, argument, text):
    """Type into a field, or choose in a list."""
    field = form.fields[argument]
    if isinstance(field, QtWidgets.QCheckBox):
        if field.isChecked() != (text == "yes"):
            QTest.keyClick(field, QtCore.Qt.Key.Key_Space)
    elif isinstance(field, QtWidgets.QComboBox) and not field.isEditable():
        QTest.keyClicks(field, text)
        assert field.currentText() == text
    else:
        edit = field.lineEdit() if isinstance(field, QtWidgets.QComboBox) else field
        edit.selectAll()
        QTest.keyClick(edit, QtCore.Qt.Key.Key_Delete)
        QTest.keyClicks(edit, text)


def click(button):
    assert button.isEnabled()
    QTest.mouseClick(button, LEFT)


def run(window):
    click(window.panel.run_button)
    wait(lambda: window.panel.work is None)
    return window.panel.status.text()


def test_every_argument_has_its_field_default_help_and_choices(window):
    assert [form.command.name for form in window.panel.forms][:3] == ["map", "slice", "surface"]
    for form in window.panel.forms:
        expected = arguments.arguments(form.command)
        assert sorted(form.fields) == sorted(expected)
        given = form.texts()
        for argument, parameter in expected.items():
            field = form.fields[argument]
            assert field.toolTip() == adapters.describe_parameter(parameter) != ""
            assert given[argument] == adapters.default_text(parameter)
            if parameter is not None and parameter.option.shown() and isinstance(field, QtWidgets.QComboBox):
                items = [field.itemText(n) for n in range(field.count())]
                assert items[-1] == parameter.option.shown()[-1]
    assert not window.panel.stop_button.isEnabled()


def test_map(window, cmd):
    page = form(window, "Map")
    for argument, text in (("selection", "resn ANI"), ("name", "m"), ("spacing", "1"), ("boundary", "open"),
                           ("unit", "V"), ("isosurface", "2"), ("cut", "z=3")):
        fill(page, argument, text)
    assert run(window).startswith("map: slice object m_cut")
    made = {"m", "m_ramp", "m_legend", "m_positive", "m_negative", "m_surface", "m_outside", "m_cut", "m_group"}
    assert {"box", *made} == set(cmd.get_names("objects"))
    low, high = cmd.get_extent("m")
    assert [round(x, 3) for x in cmd.get_volume_field("m").shape] == [round(b - a) + 1 for a, b in
                                                                        zip(low, high, strict=True)]
    assert cmd._vmdpotential.header("m")["unit"] == "V"
    # the pages offer what the session has now
    maps = form(window, "Slice").fields["maps"]
    assert [maps.itemText(n) for n in range(maps.count())] == ["m"]
    assert maps.currentText() == "m"


def test_ions_and_undo(window, cmd):
    page = form(window, "Ionize")
    fill(page, "selection", "box")
    fill(page, "ions", "SOD=3,CLA=2")
    fill(page, "labels", "no")
    assert "5 ions" in run(window)
    assert cmd.count_atoms("ionized_ions") == 5
    labels = set()
    cmd.iterate("ionized_ions", "labels.add(label)", space={"labels": labels})
    assert labels == {""}
    click(window.panel.actions["Undo placement"])
    assert "deleted ionized and ionized_ions" in window.panel.status.text()
    assert cmd.get_names("objects") == ["box"]
    click(window.panel.actions["Undo placement"])
    assert window.panel.status.text() == "Error: there is no placement of ions to undo"


@pytest.mark.parametrize(("page", "argument", "text", "message"), [
    ("Map", "spacing", "abc", "Error: spacing=abc"),
    ("Map", "selection", "not ( a selection", "Error: "),
    ("Map", "name", "box", "Error: name=box: the object box exists already"),
    ("Ionize", "topology", "no/such.psf", "no/such.psf"),
    ("Slice", "maps", "box", "Error: object 'box' is not a map"),
])
def test_error_is_one_line_in_the_dialog(window, cmd, page, argument, text, message, capfd):
    fill(form(window, page), argument, text)
    assert message in run(window)
    assert window.panel.status.text().count("Error") == 1
    assert window.panel.status.text().startswith("Error: ")
    assert "\n" not in window.panel.status.text()
    assert "--" not in window.panel.status.text()
    assert "Traceback" not in capfd.readouterr().err
    assert cmd.get_names("objects") == ["box"]
    assert window.panel.run_button.isEnabled()


def test_warnings_of_the_thread_are_told(window, cmd, monkeypatch, capfd):
    def warned(self, **given):
        logging.getLogger("vmdpotential.maps").warning("%s: a larger {spacing} sets another", "{box}")
        raise TaskError("no map")

    monkeypatch.setattr(type(registry.get("command", "map")), "__call__", warned)
    assert run(window) == "Error: no map"
    assert " warning: {box}: a larger spacing sets another" in capfd.readouterr().out.splitlines()


def test_stop(window, cmd, monkeypatch):
    """A long run is shown, can be stopped, and leaves PyMOL as it was."""
    going = threading.Event()
    command = registry.get("command", "map")

    def endless(**given):
        while True:
            progress.report_progress("the potential", 0.25)
            going.set()
            time.sleep(0.01)

    monkeypatch.setattr(type(command), "__call__", lambda self, **given: endless(**given))
    fill(form(window, "Map"), "selection", "box")
    click(window.panel.run_button)
    wait(going.is_set)
    wait(lambda: window.panel.progress.value() == 250)
    assert "the potential" in window.panel.progress.text()
    assert not window.panel.run_button.isEnabled()
    click(window.panel.stop_button)
    wait(lambda: window.panel.work is None)
    assert window.panel.status.text() == "stopped; nothing was made"
    assert cmd.get_names("objects") == ["box"]
    assert window.panel.run_button.isEnabled()


def test_atoms_that_change_while_it_runs_are_not_taken_for_others(window, cmd, monkeypatch):
    release = threading.Event()
    command = registry.get("command", "ionize")
    real = type(command).__call__
    monkeypatch.setattr(type(command), "__call__", lambda self, **given: (release.wait(30), real(self, **given))[1])
    fill(form(window, "Ionize"), "selection", "box")
    click(window.panel.run_button)
    cmd.remove("box and index 1-30")
    release.set()
    wait(lambda: window.panel.work is None)
    assert window.panel.status.text() == "Error: the selected atoms were changed while the command ran; run it again"
    assert cmd.get_names("objects") == ["box"]


def test_dialog_is_one_and_keeps_what_was_entered(window, cmd):
    fill(form(window, "Map"), "spacing", "0.75")
    window.close()
    again = dialog.open_dialog(cmd, "ionize")
    assert again is window
    assert window.panel.tabs.tabText(window.panel.tabs.currentIndex()) == "Ionize"
    assert form(window, "Map").texts()["spacing"] == "0.75"


def test_typed_command_can_be_stopped_in_a_box(window, cmd, do, monkeypatch):
    """A long command that is typed opens a box with progress; its button stops the command."""
    seen = []

    def compute(self, **given):
        for step in range(10_000):
            progress.report_progress("the potential", step / 10_000)
            boxes = [w for w in QtWidgets.QApplication.topLevelWidgets()
                     if isinstance(w, QtWidgets.QProgressDialog) and w.isVisible()]
            if boxes and not seen:
                seen.append(boxes[0].labelText())
                QTest.mouseClick(boxes[0].findChild(QtWidgets.QPushButton), LEFT)
        return Report([], {})

    monkeypatch.setattr(type(registry.get("command", "map")), "__call__", compute)
    monkeypatch.setattr(feedback, "DELAY", 0.0)
    output = do("potential_map box")
    assert seen == ["the potential"]
    assert "Error: stopped; nothing was made" in output
    assert "Traceback" not in output
    assert cmd.get_names("objects") == ["box"]


@pytest.mark.parametrize(("window", "expected"), [
    ((0, 0, 1000, 800), (1000, 0)), ((900, 50, 1020, 800), (160, 50)), ((0, 0, 1920, 1080), (1180, 540))])
def test_the_dialog_opens_beside_the_molecule(window, expected):
    place = dialog.position_beside(QtCore.QRect(*window), QtCore.QSize(740, 540), QtCore.QRect(0, 0, 1920, 1080))
    assert (place.x(), place.y()) == expected
