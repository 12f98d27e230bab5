"""The plugin as 'vmdpotential install pymol' puts it, found by a PyMOL of its own in an empty home."""

from pathlib import Path

import pytest
from test_loading import SHOW, check, pymol

from vmdpotential.plugins.viewers.install import command

START = ("python\nimport pymol.plugins\npymol.plugins.initialize(-1)\n"
         "print('LOADED', pymol.plugins.plugins['vmdpotential_plugin'].loaded)\npython end\n"
         f"help potential_map\n{SHOW}")


@pytest.mark.parametrize("own", [None, "import pymol.plugins\npymol.plugins.set_pref_changed = lambda: None\n"])
def test_installed_plugin_is_found(tmp_path, monkeypatch, own):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("APPDATA", raising=False)
    path = Path(tmp_path, ".pymolpluginsrc.py")
    if own is not None:
        path.write_text(own)
    command(viewer="pymol", yes=True)
    output = pymol(tmp_path, START)
    assert "LOADED True" in output
    check(output)
    command(viewer="pymol", uninstall=True, yes=True)
    assert (path.read_text() if own else path.exists()) == (own or False)
    assert not (tmp_path / ".pymol" / "startup" / "vmdpotential_plugin").exists()
