"""Maps as AutoDock and Vina read them: text, six lines of header, and one value on a line, x fastest."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Grid


def check_lattice(grid: Grid) -> None:
    """Make sure that AutoDock can read a map: equal spacings, and an odd number of nodes along each axis.

    Raises
    ------
    UsageError
    """
    lattice = grid.lattice
    if np.ptp(lattice.spacing) > 1e-6 * lattice.spacing[0] or any(n % 2 == 0 for n in lattice.shape):
        raise UsageError("like", "AutoDock's maps have equal spacings and odd numbers of points along x, y and z",
                         "leave it out, or write another format", value=" x ".join(map(str, lattice.shape)))


def write_autodock(grid: Grid, path: Path, name: str) -> None:
    """Write a map of energies in kcal/mol; `name` is that of the receptor.

    Raises
    ------
    UsageError
        For a lattice that the format cannot hold.
    """
    check_lattice(grid)
    lattice = grid.lattice
    centre = (lattice.origin + lattice.last) / 2
    header = [
        f"GRID_PARAMETER_FILE {name}.gpf", f"GRID_DATA_FILE {name}.maps.fld", f"MACROMOLECULE {name}.pdbqt",
        f"SPACING {lattice.spacing[0]:.6g}", f"NELEMENTS {' '.join(str(n - 1) for n in lattice.shape)}",
        f"CENTER {' '.join(f'{x:.6g}' for x in centre)}",
    ]
    values = grid.values.ravel(order="F")
    with path.open("w", encoding="ascii", newline="\n") as stream:
        stream.write("\n".join(header) + "\n")
        stream.write("\n".join(map("{:.3f}".format, values.tolist())) + "\n")
