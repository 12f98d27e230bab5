"""Hydrogen bonds of probes on a lattice on the CPU."""

from __future__ import annotations

from functools import partial

import numpy as np

from vmdpotential.compiling import build, threads
from vmdpotential.engines.bonds import BondSum, Floats


def bonds(work: BondSum) -> Floats:
    """Return the energies (P, nx, ny, nz), kcal/mol; see :class:`vmdpotential.engines.Engine`."""
    lattice = work.lattice
    values = np.empty((len(work.distances), *lattice.shape))
    threads.run(partial(build.load("bond_kernel").run, np.ascontiguousarray(work.positions), work.kinds,
                        work.directions, work.normals, work.powers, work.types, work.distances, work.depths,
                        work.extremes, work.smooth, work.cap, work.cutoff, lattice.origin, lattice.spacing, values),
                lattice.shape[0], "hydrogen bonds", 1)
    return values
