"""Conversion between PyMOL's map objects and Grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from chempy.brick import Brick

from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice


def load_grid(cmd: Any, name: str, grid: Grid) -> None:
    """Make a map object with exactly the values of a grid."""
    if min(grid.lattice.shape) < 2:
        raise UsageError("spacing", "PyMOL shows maps of at least 2 points along each axis", "use a smaller one")
    lattice = grid.lattice
    cmd.load_brick(Brick.from_numpy(grid.values, lattice.spacing.tolist(), lattice.origin.tolist()), name)


def draw_grid(cmd: Any, name: str, grid: Grid) -> bool:
    """Put a grid into an existing map object; return whether the object was replaced, as the lattice had changed."""
    values, (low, high) = cmd.get_volume_field(name, copy=0), np.array(cmd.get_extent(name))
    lattice = grid.lattice
    if values.shape == lattice.shape and np.allclose([low, high], [lattice.origin, lattice.last], atol=1e-3):
        values[...] = grid.values
        return False
    cmd.load_brick(Brick.from_numpy(grid.values, lattice.spacing.tolist(), lattice.origin.tolist()), name, 1, zoom=0)
    return True


def read_grid(cmd: Any, name: str, header: Mapping[str, str]) -> Grid:
    """Return a map object as a Grid.

    Parameters
    ----------
    name : str
        Name of the object.
    header : mapping
        Data that PyMOL does not keep (unit, temperature and so on), in the form of :meth:`Grid.header`.

    Raises
    ------
    InputError
        When the object's axes are not at right angles.
    """
    symmetry = cmd.get_symmetry(name)
    if symmetry and any(abs(angle - 90) > 1e-3 for angle in symmetry[3:6]):
        raise InputError(f"map '{name}' has oblique axes", "only maps with right angles can be cut")
    values = np.asarray(cmd.get_volume_field(name), np.float32)
    low, high = np.array(cmd.get_extent(name), np.float64)
    lattice = Lattice(low, (high - low) / np.maximum(np.array(values.shape) - 1, 1), values.shape)
    return Grid.from_header(lattice, values, header)
