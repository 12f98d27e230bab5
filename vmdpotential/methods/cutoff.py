"""Cutoff summation: the atoms within the cutoff of each lattice point (Rodrigues et al. 2008).

Work is proportional to the number of points. In a periodic cell all images within the cutoff
count, also where the cutoff is longer than the cell. Relative rms error against float64: below
1e-6 in single precision where the spacing is no longer than the cutoff.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.lattice import Lattice
from vmdpotential.methods import Method, Sources


def compute(lattice: Lattice, sources: Sources, engine: Engine) -> NDArray[np.float32]:
    """Return the sum over the atoms within the cutoff, see :class:`vmdpotential.methods.Method`."""
    return engine.cutoff(
        lattice, sources.positions, sources.charges, sources.interaction, sources.precision, sources.cell)


METHOD = Method("cutoff", "atoms within the cutoff of a point", ("open", "periodic"), "shifted_coulomb", compute)
