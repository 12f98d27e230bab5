"""Conversion of maps to and from GridDataFormats and xarray; unit and provenance become attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vmdpotential import extras
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid, Lattice


def to_griddata(grid: Grid) -> Any:
    """Return a map as a ``gridData.Grid``; raises BackendError without GridDataFormats."""
    package = extras.load_optional("gridData", "grids of GridDataFormats", "traj")
    return package.Grid(grid.values, origin=grid.lattice.origin, delta=grid.lattice.spacing, metadata=grid.header())


def from_griddata(grid: Any) -> Grid:
    """Return the map of a ``gridData.Grid``.

    Raises
    ------
    InputError
        If its axes are not along x, y and z.
    """
    delta = np.asarray(grid.delta, np.float64)
    if delta.ndim == 2:
        if np.abs(delta - np.diag(np.diagonal(delta))).max() > 1e-6:
            raise InputError("the axes of the gridData.Grid do not lie along x, y and z", "resample it")
        delta = np.diagonal(delta)
    return _grid(np.array(grid.origin, np.float64), delta, np.asarray(grid.grid), grid.metadata or {})


def to_xarray(grid: Grid) -> Any:
    """Return a map as an ``xarray.DataArray``; raises BackendError without xarray."""
    package = extras.load_optional("xarray", "objects of xarray", "large", "use numpy.asarray")
    axes = {axis: start + step * np.arange(count) for axis, start, step, count in zip(
        "xyz", grid.lattice.origin, grid.lattice.spacing, grid.lattice.shape, strict=True)}
    return package.DataArray(grid.values, axes, tuple("xyz"), grid.provenance.quantity or None, grid.header())


def from_xarray(array: Any) -> Grid:
    """Return the map of an ``xarray.DataArray``.

    Raises
    ------
    InputError
        If its coordinates are not evenly spaced and increasing.
    """
    array = array.transpose("x", "y", "z")
    axes = [np.asarray(array[axis], np.float64) for axis in "xyz"]
    spacing = np.array([(axis[-1] - axis[0]) / (len(axis) - 1) if len(axis) > 1 else 1.0 for axis in axes])
    for axis, step in zip(axes, spacing, strict=True):
        if step <= 0 or np.abs(np.diff(axis) - step).max(initial=0) > 1e-3 * step:
            raise InputError("the coordinates of the xarray object are not evenly spaced and increasing",
                             "interpolate its values")
    return _grid(np.array([axis[0] for axis in axes]), spacing, array.values, array.attrs)


def _grid(origin: Any, spacing: Any, values: Any, header: Mapping[Any, Any]) -> Grid:
    nx, ny, nz = values.shape
    return Grid.from_header(Lattice(origin, np.array(spacing), (nx, ny, nz)), values,
                            {str(name): str(text) for name, text in header.items()})
