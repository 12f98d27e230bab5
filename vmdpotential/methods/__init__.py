"""Methods: how a map is summed, written over an engine.

A method takes charges and a lattice and returns the sum of ``q V(r)`` in e/A; it knows neither
files nor viewers nor units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.cell import Cell
from vmdpotential.engines import Engine
from vmdpotential.interactions import Bound
from vmdpotential.lattice import Lattice


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
    """

    positions: NDArray[np.float64]
    charges: NDArray[np.float64]
    cell: Cell | None
    interaction: Bound
    precision: str = "single"


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
        ``compute(lattice, sources, engine)`` returns (nx, ny, nz) float32 in e/A.
    """

    name: str
    summary: str
    boundaries: tuple[str, ...]
    interaction: str
    compute: Callable[[Lattice, Sources, Engine], NDArray[np.float32]]
