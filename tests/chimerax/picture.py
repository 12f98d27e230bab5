"""Draw the picture of plugins/chimerax/README.md with ChimeraX's own graphics: picture.py HOME STRUCTURE OUTPUT.

HOME is a user folder that has the bundle, as core.build makes it. OSMesa draws, so no screen is needed; Qt, which
writes the key's letters and makes the dialog, is PyQt5 by ChimeraX's name for it. The core has no main window: scene
and dialog are put side by side, as ChimeraX's window has them.
"""

import os
import sys
import time
import types
from pathlib import Path

os.environ["PYOPENGL_PLATFORM"] = "osmesa"
os.environ["QT_QPA_PLATFORM"] = "offscreen"

import core
from PIL import Image
from PyQt5 import QtCore, QtGui, QtWidgets

#: Of the scene, and how wide the dialog is.
WIDTH, HEIGHT, DIALOG = 560, 500, 420

#: As the page says.
MAP = {"structure": "#1"}
HIDE = "hide #1 cartoons"


def tool(session):
    """Open the dialog from the bundle, in a window of its own."""
    class MainToolWindow:
        def __init__(self, tool):
            self.ui_area = QtWidgets.QWidget()

        def manage(self, place):
            self.ui_area.resize(DIALOG, HEIGHT)
            self.ui_area.show()

    sys.modules["chimerax.ui"] = types.ModuleType("chimerax.ui")
    sys.modules["chimerax.ui"].MainToolWindow = MainToolWindow
    session.tools = types.SimpleNamespace(add=lambda tools: None, remove=lambda tools: None)
    bundle = session.toolshed.find_bundle("ChimeraX-VMDPotential", session.logger)
    return bundle.get_module().bundle_api.start_tool(session, bundle, bundle.tools[0])


def main():
    home, structure, output = map(Path, sys.argv[1:])
    application = QtWidgets.QApplication([])
    application.setFont(QtGui.QFont("Liberation Sans", 9))
    qt = types.ModuleType("Qt")
    qt.QtCore, qt.QtGui, qt.QtWidgets = QtCore, QtGui, QtWidgets
    qt.qt_image_bytes = lambda image: image.bits().asstring(image.sizeInBytes())
    sys.modules.update({"Qt": qt, "Qt.QtCore": QtCore, "Qt.QtGui": QtGui, "Qt.QtWidgets": QtWidgets})
    session = core.start(home)
    from chimerax.core.commands import run
    from chimerax.graphics import qimage_to_numpy
    from chimerax.graphics.opengl import OffScreenRenderingContext
    from chimerax.pdb import open_pdb
    from chimerax.std_commands import hide, lighting

    view = session.main_view
    view.initialize_rendering(OffScreenRenderingContext(WIDTH, HEIGHT))
    view.resize(WIDTH, HEIGHT)
    session.ui.is_gui = session.ui.has_graphics = True
    session.triggers.add_trigger("mouse hover")
    hide.register_command(session.logger)
    (model,), _ = open_pdb(session, str(structure), "1hvr")
    session.models.add([model])
    panel = tool(session).panel
    for name, text in MAP.items():
        field = panel.forms[0].fields[name]
        (field.setCurrentText if isinstance(field, QtWidgets.QComboBox) else field.setText)(text)
    panel.run_button.click()
    while panel.work is not None:
        application.processEvents()
        time.sleep(0.02)
    print(panel.status.text())
    for line in HIDE.splitlines():
        run(session, line)
    lighting.lighting(session, preset="soft")
    view.background_color = (1, 1, 1, 1)
    view.silhouette.enabled = True
    view.view_all(pad=0.0)
    picture = Image.new("RGB", (WIDTH + DIALOG, HEIGHT))
    picture.paste(view.image(WIDTH, HEIGHT, supersample=3))
    dialog = qimage_to_numpy(panel.widget.window().grab().toImage())[::-1, :, :3]
    picture.paste(Image.fromarray(dialog.copy()), (WIDTH, 0))
    picture.quantize(256, method=Image.Quantize.MAXCOVERAGE).save(output, optimize=True)


if __name__ == "__main__":
    main()
