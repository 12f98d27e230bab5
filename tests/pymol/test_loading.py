"""The ways in which PyMOL loads the plugin, each in a PyMOL of its own."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import vmdpotential
from vmdpotential.extras import pip_requirement
from vmdpotential.plugins.pymol.package import build_zip
from vmdpotential.plugins.viewers.adapters import viewer_commands

PLUGIN = Path(__file__).resolve().parents[2] / "plugins" / "pymol"
COMMANDS = {f"potential_{command.name}" for command in viewer_commands(pytest.fail)}
SHOW = "python\nprint('COMMANDS', *[name for name in cmd.keyword if name.startswith('potential_')])\npython end\n"


def pymol(tmp_path, script, **environment):
    """Run a PyMOL script in a program of its own, with an empty home, and return what it prints."""
    path = tmp_path / "script.pml"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, "-m", "pymol", "-cq", path], capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def commands_in(output):
    (line,) = [line for line in output.splitlines() if line.startswith("COMMANDS")]
    return line.split()[1:]


def check(output):
    assert set(commands_in(output)) >= COMMANDS
    assert "Error" not in output
    assert "'vmdpotential_plugin' (" not in output  # "Unable to initialize plugin ..."
    assert "DESCRIPTION" in output
    assert "selection of atoms" in output


def test_run(tmp_path):
    check(pymol(tmp_path, f"run {PLUGIN / '__init__.py'}\nhelp potential_map\n{SHOW}"))


def test_run_twice_keeps_abbreviations(tmp_path):
    run = f"run {PLUGIN / '__init__.py'}\n"
    output = pymol(tmp_path, f"{run}{run}help potential_map\npotential_i nothing_here\n{SHOW}")
    assert "ambiguous" not in output
    assert "nothing_here" in output


def test_import_of_the_installed_package(tmp_path):
    check(pymol(tmp_path, f"import vmdpotential.plugins.pymol\nhelp potential_map\n{SHOW}"))


@pytest.mark.parametrize("start", ["initialize(-1)", "initialize(None)"])
def test_start_up_folder(tmp_path, start):
    folder = tmp_path / "start up"
    shutil.copytree(PLUGIN, folder / "vmdpotential_plugin", ignore=shutil.ignore_patterns("__pycache__"))
    output = pymol(tmp_path, (
        "python\nimport pymol.plugins\n"
        f"pymol.plugins.set_startup_path([{str(folder)!r}], False)\n"
        f"pymol.plugins.{start}\n"
        "print('LOADED', pymol.plugins.plugins['vmdpotential_plugin'].loaded)\npython end\n"
        f"help potential_map\n{SHOW}"))
    check(output)
    assert "LOADED True" in output


def test_zip_through_the_plugin_manager(tmp_path):
    """PyMOL's own installer takes the zip, and the next PyMOL loads the plugin by itself."""
    archive = build_zip(tmp_path / "vmdpotential_plugin.zip")
    assert build_zip(tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    folder = tmp_path / "start up"
    folder.mkdir()
    install = (
        "python\nimport pymol.plugins, pymol.plugins.installation as installation\n"
        "said = []\n"
        "class Box:\n"
        "    def __getattr__(self, kind): return lambda *words, **named: said.append((kind, words)) or True\n"
        "pymol.plugins.legacysupport.tkMessageBox = installation.tkMessageBox = Box()\n"
        "pymol.plugins.legacysupport.get_tk_focused = lambda: None\n"
        "pymol.plugins.initialize(-1)\n"
        f"installation.installPluginFromFile({str(archive)!r}, 'window', {str(folder)!r})\n"
        "info = pymol.plugins.plugins['vmdpotential_plugin']\n"
        "print('INSTALLED', said, info.get_version(), info.loaded)\npython end\n")
    output = pymol(tmp_path, f"{install}help potential_map\n{SHOW}")
    check(output)
    (line,) = [line for line in output.splitlines() if line.startswith("INSTALLED")]
    assert "('showinfo', ('Success', 'Plugin \"vmdpotential_plugin\" has been installed.'))" in line
    assert line.endswith(f"{vmdpotential.__version__} True")
    assert "COMMANDS potential_" in pymol(tmp_path, (
        f"python\nexec(open({str(tmp_path / '.pymolpluginsrc.py')!r}).read())\n"
        f"pymol.plugins.initialize(-1)\npython end\n{SHOW}"))


def test_menu_has_an_entry_for_each_command(tmp_path):
    """PyMOL's menu, as its Qt window keeps it; without the window there are the commands only."""
    output = pymol(tmp_path, (
        "python\nimport pymol.plugins\n"
        "class Bar:\n"
        "    def addcascademenu(self, parent, name, **more): pass\n"
        "    def addmenuitem(self, menu, kind, label, command): print('ENTRY', menu, label, callable(command))\n"
        "class Window: menuBar = Bar()\n"
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('plugin', {str(PLUGIN / '__init__.py')!r})\n"
        "plugin = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(plugin)\n"
        "print('ALONE', plugin.__init_plugin__())\n"
        "pymol.plugins.HAVE_QT = True\npymol.plugins.addmenuitem.__globals__['get_pmgapp'] = Window\n"
        "plugin.__init_plugin__()\npython end\n"
        "potential_dialog map\n"))
    assert "ALONE None" in output
    entries = [line for line in output.splitlines() if line.startswith("ENTRY")]
    assert entries[:3] == [f"ENTRY PluginQt|Electrostatic potential {name} ... True"
                           for name in ("Map", "Slice", "Surface")]
    assert "there is no window; type the commands" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("package", ["vmdpotential", "numpy"])
def test_missing_package_is_one_line_with_a_hint(tmp_path, package):
    output = pymol(tmp_path, (
        f"{without(package)}"
        f"run {PLUGIN / '__init__.py'}\npython\nprint('QUIET', __init_plugin__())\npython end\n{SHOW}"
        "potential_map all, spacing=1\n"))
    assert set(commands_in(output)) == COMMANDS | {"potential_undo", "potential_dialog", "potential_install"}
    assert "QUIET None" in output
    lines = [line for line in output.splitlines() if f"no package '{package}'" in line]
    assert len(lines) == 2  # when it is loaded, and of the command
    assert all("potential_install" in line for line in lines)
    assert "Traceback" not in output


def without(package):
    """A script that hides a package from PyMOL's Python."""
    return (
        "python\nimport sys\n"
        f"for name in [n for n in sys.modules if n.partition('.')[0] == {package!r}]: del sys.modules[name]\n"
        f"sys.modules[{package!r}] = None\npython end\n")


#: A window in place of Qt's, which is looked after for 20 seconds at most.
WINDOW = """
import types
turns = iter(range(400))
application = types.SimpleNamespace(instance=lambda: True, processEvents=lambda: next(turns))
sys.modules["pymol.Qt"] = types.SimpleNamespace(QtWidgets=types.SimpleNamespace(QApplication=application))
"""


@pytest.mark.parametrize("works", [True, False])
def test_one_command_installs_the_package(tmp_path, works):
    """With a program in pip's place, which says what it was asked for, and more errors than a pipe holds."""
    archive = build_zip(tmp_path / "vmdpotential_plugin.zip")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path)
    pip = tmp_path / "pip in between"
    pip.write_text(f"#!/bin/sh\necho \"$@\" > '{tmp_path}/asked'\nseq 50000 >&2\n"
                   f"echo no network >&2\nexit {int(not works)}\n")
    pip.chmod(0o700)
    output = pymol(tmp_path, (
        f"{without('vmdpotential')}"
        f"run {tmp_path / 'vmdpotential_plugin' / '__init__.py'}\n"
        f"python\nsys.executable = {str(pip)!r}\n{WINDOW}"
        f"if {works}: del sys.modules['vmdpotential']\npython end\n"
        f"potential_install\nhelp potential_map\n{SHOW}"))
    asked = (tmp_path / "asked").read_text().strip()
    # with another NumPy than the one it is compiled for, PyMOL has no coordinates
    assert asked == (f"-m pip install --quiet --disable-pip-version-check {pip_requirement('all')} "
                     f"numpy=={np.__version__}")
    assert "Traceback" not in output
    if works:
        check(output)
    else:
        assert "Error: pip has not installed it: no network" in output
        assert "selection of atoms" not in output
