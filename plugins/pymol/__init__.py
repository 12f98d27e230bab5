"""Electrostatic potential maps, ion placement and slice images inside PyMOL.

Adds commands such as potential_map, potential_live and potential_ionize, and a dialog for them; ``help
potential_map`` shows how to use them. PyMOL loads this file in three ways: as a plugin of its start-up
folder, by ``run plugins/pymol/__init__.py``, and by ``import vmdpotential.plugins.pymol``. In the first
two ways this file only imports the installed package.
"""

import sys
from importlib import import_module
from typing import Any

_PACKAGE = "vmdpotential.plugins.pymol"


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
        colorprinting.error(f" vmdpotential: PyMOL's Python has no package '{missing}'; {remedy}")


def __init_plugin__(app: Any = None) -> None:  # noqa: N807 - PyMOL's name
    """Add an entry for each command to PyMOL's Plugin menu, if it has a Qt window."""
    if f"{_PACKAGE}.commands" not in sys.modules:
        return  # _load has reported what is missing
    from pymol import cmd
    from pymol.plugins import QtNotAvailableError, addmenuitemqt

    commands = import_module(f"{_PACKAGE}.commands")
    try:
        for name in [command.name for command in commands.viewer_commands()]:
            addmenuitemqt(f"Electrostatic potential|{name.capitalize()} ...",
                          lambda name=name: commands.potential_dialog(name, _self=cmd))
    except QtNotAvailableError:
        pass


try:
    _load()
except ModuleNotFoundError as _error:
    # the package is also imported outside PyMOL, to build the plugin
    if _error.name != "pymol" or __name__ != _PACKAGE:
        raise
