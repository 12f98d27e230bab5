"""The ways in which PyMOL loads the plugin, each in a PyMOL of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).resolve().parents[2] / "plugins" / "pymol"
COMMANDS = ("potential_map", "potential_ionize", "potential_slice")
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
    assert set(COMMANDS) <= set(commands_in(output))
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


@pytest.mark.parametrize("package", ["vmdpotential", "numpy"])
def test_missing_package_is_one_line_with_the_cure(tmp_path, package):
    output = pymol(tmp_path, (
        "python\nimport sys\n"
        f"for name in [n for n in sys.modules if n.partition('.')[0] == {package!r}]: del sys.modules[name]\n"
        f"sys.modules[{package!r}] = None\npython end\n"
        f"run {PLUGIN / '__init__.py'}\n{SHOW}"))
    assert commands_in(output) == []
    (line,) = [line for line in output.splitlines() if "pip install" in line]
    assert f"no package '{package}'" in line
    assert f"-m pip install {package}" in line
    assert "Traceback" not in output
