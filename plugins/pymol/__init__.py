"""Electrostatic potential maps, ion placement and slice images inside PyMOL.

Adds the commands potential_map, potential_ionize and potential_slice; ``help potential_map`` tells how to
use them. PyMOL loads this file in three ways: as a plugin of its start-up folder, by
``run plugins/pymol/__init__.py``, and by ``import vmdpotential.plugins.pymol``. In the first two it is
a copy that hands over to the installed package.
"""

import sys
from importlib import import_module

from pymol import cmd, colorprinting

_PACKAGE = "vmdpotential.plugins.pymol"

try:
    if __name__ == _PACKAGE:
        import_module(f"{_PACKAGE}.commands").register(cmd)
    else:
        import_module(_PACKAGE)
except ModuleNotFoundError as error:
    _missing = str(error.name).partition(".")[0]
    colorprinting.error(
        f" vmdpotential: PyMOL's Python has no package '{_missing}'; install it with: "
        f'"{sys.executable}" -m pip install {_missing}'
    )
