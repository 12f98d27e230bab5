"""Run inside PyMOL with its window: `pymol -q window.py -- STRUCTURE TOPOLOGY FOLDER`, by test_window.py.

Opens the dialog from the Plugin menu, clicks through a map and a placement of ions, and writes FOLDER/window.png, the
whole screen; the picture in the plugin's README is made by it.
"""

import sys
import time
import traceback
from pathlib import Path

from PIL import Image
from pymol import cmd
from pymol.Qt import QtCore, QtWidgets
from PyQt5.QtTest import QTest

STRUCTURE, TOPOLOGY, FOLDER = sys.argv[-3:]


def main():
    (window,) = [w for w in QtWidgets.QApplication.topLevelWidgets() if isinstance(w, QtWidgets.QMainWindow)]
    window.setGeometry(0, 0, 760, 700)
    cmd.bg_color("white")
    cmd.load(STRUCTURE, "dhfr")
    cmd.hide("everything")
    cmd.show("cartoon", "polymer")
    entry("Map ...", window).trigger()
    (dialog,) = [w for w in QtWidgets.QApplication.topLevelWidgets() if w.windowTitle().startswith("Electrostatic")]
    dialog.setGeometry(760, 0, 520, 700)
    page = dialog.panel.forms[0]
    enter(page, selection="dhfr", topology=TOPOLOGY, atoms="solute", spacing="1", cut="z=30")
    tell("MAP", run(dialog))
    entry("Ionize ...", window).trigger()
    page = dialog.panel.forms[dialog.panel.tabs.currentIndex()]
    enter(page, selection="dhfr", topology=TOPOLOGY, concentration="0.02")
    tell("IONS", run(dialog))
    cmd.hide("everything", "ionized")
    cmd.set("label_size", 16)
    cmd.orient("polymer")
    cmd.zoom("ionized_ions", 4)
    cmd.set("label_color", "black")
    for name in ("dhfr", "potential_cut"):
        cmd.disable(name)
    cmd.set("ray_opaque_background", 1)
    cmd.set("ray_shadows", 0)
    tell("OBJECTS", *cmd.get_names("objects"))
    QTest.qWait(500)
    cmd.ray()
    QTest.qWait(1000)
    path = str(Path(FOLDER, "window.png"))
    QtWidgets.QApplication.primaryScreen().grabWindow(0).save(path)
    Image.open(path).convert("RGB").save(path, optimize=True)  # few colours would make steps in the surface


def tell(*words):
    """Tell the test, and not PyMOL's window, of which there is a picture."""
    print(*words, file=sys.__stdout__, flush=True)


def entry(text, window):
    """Return the entry of the Plugin menu."""
    (action,) = [action for action in window.findChildren(QtWidgets.QAction) if action.text() == text
                 and isinstance(action.parent(), QtWidgets.QMenu)
                 and action.parent().title() == "Electrostatic potential"]
    return action


def enter(page, **texts):
    for argument, text in texts.items():
        field = page.fields[argument]
        edit = field.lineEdit() if isinstance(field, QtWidgets.QComboBox) else field
        edit.selectAll()
        QTest.keyClicks(edit, text)


def run(dialog):
    QTest.mouseClick(dialog.panel.run_button, QtCore.Qt.MouseButton.LeftButton)
    end = time.monotonic() + 120
    while dialog.panel.work is not None and time.monotonic() < end:
        QTest.qWait(50)
    return dialog.panel.status.text()


def guarded():
    try:
        main()
        tell("DONE")
    except BaseException:
        traceback.print_exc(file=sys.__stdout__)
    finally:
        cmd.quit()


QtCore.QTimer.singleShot(1000, guarded)
