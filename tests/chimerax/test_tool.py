"""The dialog as ChimeraX's tool, in a made-up window, as the core has none; Qt is PyQt5 by ChimeraX's name for it."""

import os
import sys
import time
import types

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
QtWidgets = pytest.importorskip("PyQt5.QtWidgets", reason="PyQt5 is missing")
QtCore = pytest.importorskip("PyQt5.QtCore")

IONS = """\
HETATM    1 NA   NA  A   1       1.000   2.000   3.000  1.00  0.00          NA
HETATM    2 CL   CL  A   2       5.000   2.000   3.000  1.00  0.00          CL
HETATM    3 CL   CL  A   3       5.000   7.000   3.000  1.00  0.00          CL
END
"""


@pytest.fixture
def tool(session, opened, tmp_path, monkeypatch):
    application = QtWidgets.QApplication.instance() or QtWidgets.QApplication([])
    qt = types.ModuleType("Qt")
    qt.QtCore, qt.QtWidgets = QtCore, QtWidgets
    ui = types.ModuleType("chimerax.ui")

    class MainToolWindow:
        def __init__(self, tool):
            self.ui_area = QtWidgets.QWidget()

        def manage(self, place):
            self.ui_area.show()

        def destroy(self):
            self.ui_area.close()

    ui.MainToolWindow = MainToolWindow
    for name, module in (("Qt", qt), ("Qt.QtCore", QtCore), ("Qt.QtWidgets", QtWidgets), ("chimerax.ui", ui)):
        monkeypatch.setitem(sys.modules, name, module)
    (tmp_path / "ions.pdb").write_text(IONS)
    opened(tmp_path / "ions.pdb")
    session.tools = types.SimpleNamespace(add=lambda tools: None, remove=lambda tools: None)
    bundle = session.toolshed.find_bundle("ChimeraX-VMDPotential", session.logger)
    (info,) = bundle.tools
    made = bundle.get_module().bundle_api.start_tool(session, bundle, info)
    yield made
    made.delete()
    made.tool_window.ui_area.close()
    application.processEvents()


def finish(panel):
    end = time.monotonic() + 60
    while panel.work is not None and time.monotonic() < end:
        QtWidgets.QApplication.processEvents()
        time.sleep(0.02)


def test_one_click_makes_a_coloured_surface_beside_the_map(tool, session):
    panel = tool.panel
    form = panel.forms[0]
    front = [name for name, field in form.fields.items() if field.isVisibleTo(form.widget)]
    assert front == ["structure", "surface", "range", "atoms", "spacing", "screened"]
    assert form.fields["structure"].itemText(2) == "#1"
    panel.run_button.click()
    finish(panel)
    assert panel.status.text().startswith("map: surface #3, coloured from"), panel.status.text()
    volume, surface = (next(m for m in session.models.list() if m.id_string == number) for number in ("2", "3"))
    assert not volume.display
    assert surface.name.endswith("kT/e at 298.15 K, vacuum, no screening")
    near = surface.vertices[:, 0] < 2
    assert surface.vertex_colors[near, 2].mean() > 250  # beside sodium, blue
    form.fields["spacing"].setText("spam")
    panel.run_button.click()
    finish(panel)
    assert "spacing spam: a number is needed" in panel.status.text()


def test_the_live_box(tool, session):
    panel = tool.panel
    panel.live_box.click()
    finish(panel)
    assert session.vmdpotential_live.latest.running, panel.status.text()
    panel.live_box.click()
    assert "ended after" in panel.status.text()
