"""The plugin in PyMOL's own window, on a display that no one sees: menu, dialog, objects."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from vmdpotential.plugins.pymol.package import build_zip

ROOT = Path(__file__).resolve().parents[2]


def test_window(tmp_path):
    folder = tmp_path / "start up"
    zipfile.ZipFile(build_zip(tmp_path / "plugin.zip")).extractall(folder)
    (tmp_path / ".pymolpluginsrc.py").write_text(
        f"import pymol.plugins\npymol.plugins.set_startup_path([{str(folder)!r}], False)\n")
    environment = {name: value for name, value in os.environ.items() if name not in ("QT_QPA_PLATFORM", "QT_API")}
    done = subprocess.run(
        ["xvfb-run", "-a", "-s", "-screen 0 1280x700x24", sys.executable, "-m", "pymol", "-q",
         Path(__file__).with_name("window.py"), "--", ROOT / "data" / "dhfr.pdb.gz", ROOT / "data" / "dhfr.psf.gz",
         tmp_path],
        capture_output=True, text=True, timeout=180, cwd=tmp_path, env={**environment, "HOME": str(tmp_path)})
    output = done.stdout + done.stderr
    said = {line.partition(" ")[0]: line for line in output.splitlines()}
    assert "DONE" in said, output
    assert "Traceback" not in output
    assert "slice object potential_cut" in said["MAP"]
    assert "ions; object ionized_ions" in said["IONS"]
    assert set(said["OBJECTS"].split()[1:]) == {
        "dhfr", "potential", "potential_ramp", "potential_legend", "potential_surface", "potential_cut",
        "potential_group", "ionized", "ionized_ions", "ionized_group"}
    assert (tmp_path / "window.png").stat().st_size > 20_000
