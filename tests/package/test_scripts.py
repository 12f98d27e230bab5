"""The scripts: names that they import, and the shell functions that they share."""

import ast
import importlib
import inspect
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: A machine's programs: apt-get installs by making the file $MARK, and asks for root.
PROGRAMS = {
    "id": "echo $TEST_UID",
    "sudo": '[ "$1" = -n ] && [ "$TEST_SUDO" = free ] && shift && TEST_UID=0 exec "$@"',
    "apt-get": '[ "$TEST_UID" = 0 ] && touch "$MARK"',
}


@pytest.mark.parametrize(("user", "sudo", "installed"), [
    ("0", "none", True), ("1000", "free", True), ("1000", "asks", False)], ids=["root", "sudo", "password"])
def test_packages_of_debian(user, sudo, installed, tmp_path):
    """As root, or as on a hosted machine, where sudo asks for no password; otherwise the message names the package."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "MARK": str(tmp_path / "mark"),
                   "TEST_UID": user, "TEST_SUDO": sudo}
    script = 'source scripts/environment; debian test -f "$MARK" -- some-package'
    done = subprocess.run(["bash", "-euc", script], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) == installed == (tmp_path / "mark").exists()
    assert ("some-package" in done.stderr) != installed


def python_scripts() -> list[Path]:
    """Return the scripts in Python."""
    return [path for path in sorted((ROOT / "scripts").iterdir()) if path.is_file()
            and (path.suffix == ".py" or path.read_text().startswith("#!/usr/bin/env python3"))]


@pytest.mark.parametrize("path", python_scripts(), ids=lambda path: path.name)
def test_scripts_use_names_that_there_are(path):
    """Most scripts measure or make something, and do not run here."""
    modules = {}
    for node in ast.walk(tree := ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "vmdpotential":
            for name in node.names:
                value = getattr(importlib.import_module(node.module), name.name, None)
                value = value or importlib.import_module(f"{node.module}.{name.name}")
                modules |= {name.asname or name.name: value} if inspect.ismodule(value) else {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            assert hasattr(modules[node.value.id], node.attr)
