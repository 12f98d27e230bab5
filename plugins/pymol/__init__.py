"""Electrostatic potential maps, ion placement and slice images inside PyMOL.

Adds commands such as potential_map, potential_live and potential_ionize, and a dialog for them; ``help
potential_map`` shows how to use them. PyMOL loads this file in three ways: as a plugin of its start-up
folder, by ``run plugins/pymol/__init__.py``, and by ``import vmdpotential.plugins.pymol``. In the first
two ways this file only imports the installed package.
"""

import contextlib
import sys
from importlib import import_module
from typing import Any

_PACKAGE = "vmdpotential.plugins.pymol"

#: Commands that explain what is missing if the package cannot be imported, which has the list of those that there are.
_COMMANDS = ("map", "ionize", "slice", "surface", "compare", "average", "profile", "field", "energy", "forces", "rdf",
             "density", "live", "complementarity", "orbital", "patches", "probe", "titrate", "view", "undo", "dialog")


def _load() -> None:
    from pymol import cmd, colorprinting

    try:
        if __name__ == _PACKAGE:
            import_module(f"{_PACKAGE}.commands").register(cmd)
        else:
            import_module(_PACKAGE)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        remedy = (f'install it with: "{sys.executable}" -m pip install {missing}' if missing != "vmdpotential" else
                  f"'vmdpotential install pymol' in a shell prints how to install it into {sys.executable}")
        message = f"vmdpotential: PyMOL's Python has no package '{missing}'; {remedy}"
        colorprinting.error(f" {message}")
        for name in _COMMANDS:
            cmd.extend(f"potential_{name}", _refusal(message))


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
        names = [(f"Electrostatic potential|{command.name.capitalize()} ...", f"potential_dialog {command.name}")
                 for command in commands.viewer_commands()]
    else:  # the command reports again what is missing
        names = [("Electrostatic potential ...", "potential_dialog")]
    with contextlib.suppress(QtNotAvailableError):
        for label, line in names:
            addmenuitemqt(label, lambda line=line: cmd.do(line, echo=0))


try:
    _load()
except ModuleNotFoundError as _error:
    # the package is also imported outside PyMOL, to build the plugin
    if _error.name != "pymol" or __name__ != _PACKAGE:
        raise
