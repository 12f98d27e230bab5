"""Methods: how a map is summed, written over an engine.

A method takes charges and a lattice and returns the sum of ``q V(r)`` in e/A; it knows neither
files nor viewers nor units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Bound
from vmdpotential.molecule.cell import Cell

if TYPE_CHECKING:
    from vmdpotential.methods.accuracy import Sample


@dataclass(frozen=True, eq=False)
class Sources:
    """What makes the potential.

    Parameters
    ----------
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
        Periodic boundary where given, open otherwise.
    interaction : Bound
    precision : str
        One of :data:`vmdpotential.engines.PRECISIONS`.
    tolerance : float
        Root mean square error over that of the potential that a method which is not exact may make.
    field : bool
        Whether the field is wanted beside the potential.
    sample : Sample, optional
        The exact potential at some points of the lattice, where it has been computed already.
    """

    positions: NDArray[np.float64]
    charges: NDArray[np.float64]
    cell: Cell | None
    interaction: Bound
    precision: str = "single"
    tolerance: float = 1e-4
    field: bool = False
    sample: Sample | None = None


@dataclass(frozen=True)
class Method:
    """A way to sum a map.

    Parameters
    ----------
    name : str
    summary : str
        One line for help texts.
    boundaries : tuple of str
        Of ``open`` and ``periodic``, those it can do.
    interaction : str
        The interaction it sums unless another is asked for.
    compute : callable
        ``compute(lattice, sources, engine)`` returns (nx, ny, nz) float32 in e/A, or where the field is
        wanted (4, nx, ny, nz): the potential, and the field in e/A^2.
    exact : bool
        Whether rounding is its only error; else it keeps the tolerance of the sources.
    """

    name: str
    summary: str
    boundaries: tuple[str, ...]
    interaction: str
    compute: Callable[[Lattice, Sources, Engine], NDArray[np.float32]]
    exact: bool = True
