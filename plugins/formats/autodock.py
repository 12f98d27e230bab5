"""Maps of AutoDock and Vina: text with six header lines, then one value on each line, x fastest."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.files import text as files
from vmdpotential.io.files.numbers import parse_real, parse_whole
from vmdpotential.io.maps.mapformat import MapFormat, finish_map, header_lines_of, read_numbers

#: Keywords of the header, with the count of numbers after each.
_HEADER = {"GRID_PARAMETER_FILE": 0, "GRID_DATA_FILE": 0, "MACROMOLECULE": 0, "SPACING": 1, "NELEMENTS": 3, "CENTER": 3}


def check_lattice(grid: Grid) -> None:
    """Check that AutoDock can read a map: it needs equal spacings and an odd number of nodes along each axis.

    Raises
    ------
    UsageError
    """
    lattice = grid.lattice
    if np.ptp(lattice.spacing) > 1e-6 * lattice.spacing[0] or any(n % 2 == 0 for n in lattice.shape):
        raise UsageError("like", "AutoDock's maps have equal spacings and odd numbers of points along x, y and z",
                         "leave it out, or write another format", value=" x ".join(map(str, lattice.shape)))


def write_autodock(path: Path, grid: Grid, name: str) -> None:
    """Write a map of energies in kcal/mol; `name` is the name of the receptor.

    Raises
    ------
    UsageError
        When the format cannot hold the map's lattice.
    """
    check_lattice(grid)
    lattice = grid.lattice
    centre = (lattice.origin + lattice.last) / 2
    header = [
        f"GRID_PARAMETER_FILE {name}.gpf", f"GRID_DATA_FILE {name}.maps.fld", f"MACROMOLECULE {name}.pdbqt",
        f"SPACING {lattice.spacing[0]:.9g}", f"NELEMENTS {' '.join(str(n - 1) for n in lattice.shape)}",
        f"CENTER {' '.join(f'{x:.9g}' for x in centre)}",
    ]
    values = grid.values.ravel(order="F")
    with path.open("w", encoding="ascii", newline="\n") as stream:
        stream.write("\n".join(header) + "\n")
        stream.write("\n".join(map("{:.3f}".format, values.tolist())) + "\n")


def read_autodock(path: Path) -> Grid:
    """Read a map of energies, in kcal/mol.

    Raises
    ------
    InputError
        When the file is not a map of AutoDock, or is truncated.
    """
    with files.opened(path) as stream:
        lines, result, number = header_lines_of(path, stream, "a map of AutoDock"), {}, 0
        for word, count in _HEADER.items():
            number, line = next(lines)
            words = line.split()
            try:
                if words[:1] != [word] or (count and len(words) != 1 + count):
                    raise ValueError
                parse = parse_whole if word == "NELEMENTS" else parse_real
                result[word] = [parse(text) for text in words[1 : 1 + count]]
            except ValueError:
                numbers = f" and {count} number{'s' * (count > 1)}" if count else ""
                raise InputError(f"{path}: line {number}: {word}{numbers} is missing, so it is not a map of "
                                 "AutoDock") from None
        spacing, centre = float(result["SPACING"][0]), np.array(result["CENTER"], float)
        # NELEMENTS are intervals between nodes
        nx, ny, nz = (int(n) + 1 for n in result["NELEMENTS"])
        if not (0 < spacing < 1e3 and np.isfinite(centre).all() and min(nx, ny, nz) > 0):
            raise InputError(f"{path}: its spacing, counts or centre are impossible", "correct its header")
        values, _ = read_numbers(path, stream, nx * ny * nz, number + 1)
    lattice = Lattice(centre - spacing * (np.array([nx, ny, nz]) - 1) / 2, np.full(3, spacing), (nx, ny, nz))
    return finish_map(path, lattice, values.reshape((nx, ny, nz), order="F"),
                  {"unit": "kcal/mol", "quantity": "energy of a probe atom"})


AUTODOCK = MapFormat(read_autodock, write_autodock)
