"""Multilevel summation: the full potential in a time proportional to the number of points, without transforms.

Pairs within a radius, and the rest on lattices each twice as coarse as the one before
(:mod:`vmdpotential.splitting.levels`; R. D. Skeel, I. Tezcan, D. J. Hardy, J. Comput. Chem. 23 (2002) 673;
D. J. Hardy, J. E. Stone, K. Schulten, Parallel Comput. 35 (2009) 164). A periodic cell, of any shape, has
a conducting boundary and a neutralising background as in :mod:`vmdpotential.methods.pme`.

Order, spacing and radius are the cheapest that should keep the tolerance, by errors that were measured
in water; the error that was reached is measured at 200 points of the lattice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.methods import Method, Sources
from vmdpotential.methods.accuracy import Attempts, exact
from vmdpotential.methods.costs import COSTS, Task, seconds
from vmdpotential.methods.pme import charge_density, task
from vmdpotential.splitting.levels import plan

#: Radii over spacings, and the error at each by order: root mean square of the potential in liquid
#: water over sqrt(spacing * sum of q^2 / volume), with half the order for the smoothness.
RATIOS = (3.0, 4.0, 6.0, 8.0, 10.0, 12.0)
ERRORS = {
    4: (1.4e-2, 8.2e-3, 3.2e-3, 1.6e-3, 8.7e-4, 6.3e-4),
    6: (8.0e-3, 3.0e-3, 7.3e-4, 2.2e-4, 8.5e-5, 4.2e-5),
    8: (4.2e-3, 1.7e-3, 2.9e-4, 7.0e-5, 2.1e-5, 9.0e-6),
}

#: Spacings of the finest level that are tried, A.
SPACINGS = tuple(0.6 + 0.1 * n for n in range(20))

#: The shortest radius, A: with shorter ones a molecule's charges no longer cancel, and errors are larger.
SHORTEST = 4.5

#: Time of an engine for a charge of a level and a node within its reach, over that of a pair.
STENCIL = {"cpu": 0.08, "cuda": 0.2}


def compute(lattice: Lattice, sources: Sources, engine: Engine) -> NDArray[np.float32]:
    """Return the full potential, see :class:`vmdpotential.methods.Method`.

    Raises
    ------
    TaskError
        When the tolerance cannot be kept.
    MemoryPlanError
        When the levels do not fit into memory.
    """
    sample = exact(lattice, sources, engine)
    attempts = Attempts("msm", sources.tolerance, sources.precision)
    size, density = task(lattice, sources), charge_density(sources)
    before, values = None, np.zeros(0, np.float32)
    while True:
        error = attempts.target(sample.rms) / density if density > 0 else np.inf
        order, spacing, radius, _ = cheapest(size, engine.name, error)
        if (order, spacing, radius) == before:  # the best there are
            if attempts.reached <= sources.tolerance:
                return values
            raise attempts.failure
        before = order, spacing, radius
        if np.isfinite(error):  # the next try has to do better than these levels, which may be better than was asked
            made = np.interp(np.log(radius / spacing), np.log(RATIOS), np.log(ERRORS[order]))
            attempts.margin *= max(1.0, error / (float(np.exp(made)) * spacing**0.5))
        levels = plan(lattice, sources.positions, sources.cell, order=order, spacing=spacing, radius=radius)
        values = engine.msm(lattice, sources.positions, sources.charges, levels, sources.precision, sources.field)
        if attempts.enough(sample.error(values)):
            return values


def cheapest(size: Task, engine: str, error: float) -> tuple[int, float, float, float]:
    """Return order, spacing (A), radius (A) and seconds of the cheapest levels for an error.

    Parameters
    ----------
    size : Task
    engine : str
        Whose costs count.
    error : float, 1/A
        For unit charges, one in 1 A^3, that are as correlated as those of molecules. One that no
        levels of the table reach gets the best there are.
    """
    # those of a mesh without its transforms
    costs = COSTS.get(engine, COSTS["cpu"])._replace(transform_open=0.0, transform_periodic=0.0)
    choices = []
    for order, errors in ERRORS.items():
        for spacing in SPACINGS:
            wanted = error / np.sqrt(spacing)
            if wanted < errors[-1]:
                continue
            ratio = float(np.exp(np.interp(-np.log(wanted), -np.log(errors), np.log(RATIOS))))
            nodes = float(np.prod([extent / spacing + order for extent in size.extents]))
            if ratio * spacing < SHORTEST:
                continue
            # all levels: 1 + 1/8 + 1/64 ... times the finest
            sums = 8 / 7 * nodes * 4 / 3 * np.pi * (2 * ratio) ** 3
            time = (seconds(size, costs, spacing, ratio * spacing, order)
                    + costs.pair * STENCIL.get(engine, STENCIL["cpu"]) * sums)
            choices.append((time, order, spacing, ratio * spacing))
    if not choices:
        order, spacing, ratio = max(ERRORS), SPACINGS[0], RATIOS[-1]
        return order, spacing, ratio * spacing, np.inf
    time, order, spacing, radius = min(choices)
    return order, spacing, radius, time


METHOD = Method("msm", "all atoms and images by multilevel summation, to the tolerance", ("open", "periodic"),
                "coulomb", compute, exact=False)
