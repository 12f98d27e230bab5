"""Electrostatic potential maps, ion placement and slice images inside PyMOL.

Adds commands such as potential_map, potential_live and potential_ionize, and a dialog for them; ``help
potential_map`` shows how to use them. PyMOL loads this file in three ways: as a plugin of its start-up
folder, by ``run plugins/pymol/__init__.py``, and by ``import vmdpotential.plugins.pymol``. In the first
two ways this file only imports the installed package, or installs it when the user asks for it.
"""

import contextlib
import subprocess
import sys
import tempfile
import time
from importlib import import_module, invalidate_caches
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGE = "vmdpotential.plugins.pymol"

#: What pip installs for the plugin.
_REQUIREMENT = "vmdpotential[all]"

_MENU = "Electrostatic potential"

#: Commands that explain what is missing if the package cannot be imported, which has the list of those that there are.
_COMMANDS = ("map", "slice", "surface", "average", "compare", "complementarity", "density", "profile", "field",
             "ionize", "live", "orbital", "energy", "forces", "rdf", "patches", "born", "probe", "titrate", "view",
             "undo", "dialog")


def _load() -> None:
    from pymol import cmd, colorprinting

    try:
        if __name__ == _PACKAGE:
            import_module(f"{_PACKAGE}.commands").register(cmd)
        else:
            import_module(_PACKAGE)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        message = (f"vmdpotential: PyMOL's Python has no package '{missing}'; to install it, click Install in the menu "
                   f"Plugin, {_MENU}, or type potential_install")
        colorprinting.error(f" {message}")
        for name in _COMMANDS:
            cmd.extend(f"potential_{name}", _refusal(message))
        cmd.extend("potential_install", potential_install)


def potential_install(quiet: Any = 1, *, _self: Any = None) -> None:
    """DESCRIPTION

    Install the package vmdpotential, and what it needs, into PyMOL's Python by pip.

USAGE

    potential_install
"""
    from pymol import CmdException

    line = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", _REQUIREMENT]
    with contextlib.suppress(PackageNotFoundError):  # PyMOL is compiled for this one, and others make it useless
        line.append(f"numpy=={version('numpy')}")
    print(f" vmdpotential: installing {_REQUIREMENT} into {sys.executable}; this may take some minutes")
    with tempfile.TemporaryFile("w+", errors="replace") as written:  # a pipe would be full at some point, and block pip
        try:
            process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=written,
                                       creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0))
        except OSError as error:
            raise CmdException(f"pip cannot be started: {error.strerror}") from None
        qt = sys.modules.get("pymol.Qt")
        while qt is not None and qt.QtWidgets.QApplication.instance() is not None and process.poll() is None:
            qt.QtWidgets.QApplication.processEvents()  # so that the window can be used meanwhile
            time.sleep(0.05)
        failed = process.wait()
        written.seek(0)
        errors = written.read().strip().splitlines()
    if failed:
        raise CmdException(f"pip has not installed it: {errors[-1] if errors else 'it was ended'}")
    invalidate_caches()
    _load()
    if f"{_PACKAGE}.commands" in sys.modules:
        print(" vmdpotential: it is installed; type help potential_map, or open the menu Plugin")
        __init_plugin__()


def _refusal(message: str) -> Any:
    """Return a function of PyMOL that raises an error with the message, whatever is typed."""
    from pymol import CmdException

    def refuse(*typed: str, _self: Any = None, **named: str) -> None:
        raise CmdException(message)

    return refuse


def __init_plugin__(app: Any = None) -> None:  # noqa: N807 - PyMOL's name
    """Add an entry for each command to PyMOL's Plugin menu, if it has a Qt window."""
    from pymol import cmd
    from pymol.plugins import QtNotAvailableError, addmenuitemqt

    if f"{_PACKAGE}.commands" in sys.modules:
        commands = import_module(f"{_PACKAGE}.commands")
        names = [(f"{_MENU}|{command.name.capitalize()} ...", f"potential_dialog {command.name}")
                 for command in commands.viewer_commands()]
    else:
        names = [(f"{_MENU}|Install", "potential_install")]
    with contextlib.suppress(QtNotAvailableError):
        for label, line in names:
            addmenuitemqt(label, lambda line=line: cmd.do(line, echo=0))


try:
    _load()
except ModuleNotFoundError as _error:
    # the package is also imported outside PyMOL, to build the plugin
    if _error.name != "pymol" or __name__ != _PACKAGE:
        raise
