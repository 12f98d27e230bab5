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
    assert front == ["structure", "surface", "hide_water", "range", "medium"]
    assert all(sum(entry.front for entry in other.entries) <= 5 for other in panel.forms)
    assert form.fields["structure"].itemText(2) == "#1"
    panel.run_button.click()
    finish(panel)
    assert panel.status.text().startswith("map: surface #1.1, coloured from"), panel.status.text()
    volume, surface = (next(m for m in session.models.list() if m.id_string == number) for number in ("2", "1.1"))
    assert not volume.display
    assert surface.name.endswith(
        "-5 to 5 kT/e at 298.15 K, water (Poisson-Boltzmann), 0.15 M, ion radius 2 A, dielectric 78.5, 2 inside")
    near = surface.vertices[:, 0] < 2
    red, _, blue, _ = surface.vertex_colors[near].astype(int).T
    assert (blue - red).mean() > 4  # near sodium; colours are read 1.4 A outside of the surface
    form.fields["spacing"].setText("spam")
    panel.run_button.click()
    finish(panel)
    assert "spacing spam: a number is needed" in panel.status.text()
    panel.say("a file named <b>x</b>")
    assert panel.status.textFormat() == QtCore.Qt.PlainText
    assert "a file named &lt;b&gt;x&lt;/b&gt;" in panel.status.toolTip()


def test_what_cannot_be_shown_leaves_no_model_and_a_dialog_that_works(tool, session, monkeypatch):
    from chimerax.vmdpotential import show

    def broken(*given):
        raise ValueError("no surface")

    panel, before, raised = tool.panel, session.models.list(), []
    monkeypatch.setattr(show, "_show_surface", broken)
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: raised.append(error))
    panel.run_button.click()
    finish(panel)
    QtWidgets.QApplication.processEvents()
    assert panel.status.text() == "Error: ValueError: no surface"
    assert [str(error) for error in raised] == ["no surface"]
    assert session.models.list() == before
    assert panel.run_button.isEnabled()


def test_the_live_box(tool, session):
    panel = tool.panel
    panel.live_box.click()
    finish(panel)
    assert session.vmdpotential_live.latest.running, panel.status.text()
    panel.live_box.click()
    assert "ended after" in panel.status.text()
