"""Cutoff summation: the atoms within the cutoff of each lattice point (Rodrigues et al. 2008).

Pair by pair, work is proportional to the number of points and to the cube of the cutoff. In a
periodic cell all images within the cutoff count, also where the cutoff is longer than the cell.
Relative rms error against float64: below 1e-6 in single precision where the spacing is no longer than
the cutoff.

By a mesh (:mod:`vmdpotential.splitting.shifted`) the shifted potential takes about as long for
every cutoff, and keeps a tolerance that is measured at 200 points of the lattice. The longer the cutoff
and the looser the tolerance, the more is won: a potential that ends is not smooth enough for a mesh to
be exact, see there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.errors import MemoryPlanError, TaskError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.methods import Method, Sources
from vmdpotential.methods.accuracy import Attempts, exact
from vmdpotential.methods.costs import COSTS, Task, cheapest, parts
from vmdpotential.methods.pme import charge_density, make_mesh, task
from vmdpotential.splitting.mesh import Mesh
from vmdpotential.splitting.shifted import optimal_for_cutoff

#: How the sum is done: pair by pair, on a mesh to the tolerance, or by what takes less time.
ALGORITHMS = ("pair", "mesh", "auto")

#: How many times smaller than the tolerance the predicted error is at first: the waves that the cutoff
#: leaves are shorter than what correlates the charges of molecules (measured in water: 0.95 to 1.1 of it).
MARGIN = 1.2

#: Seconds that are too few to look for something faster.
SOON = 0.02

#: Time of a pair of the shifted potential over that of a short-range part with its polynomial, on either engine.
PAIR = 0.6


def compute(lattice: Lattice, sources: Sources, engine: Engine) -> NDArray[np.float32]:
    """Return the sum over the atoms within the cutoff, see :class:`vmdpotential.methods.Method`."""
    return engine.cutoff(lattice, sources.positions, sources.charges, sources.interaction, sources.precision,
                         sources.cell, sources.field)


def compute_by_mesh(lattice: Lattice, sources: Sources, engine: Engine) -> NDArray[np.float32]:
    """Return the sum of the shifted potential to the tolerance, see :class:`vmdpotential.methods.Method`.

    Raises
    ------
    TaskError
        When the tolerance cannot be kept.
    MemoryPlanError
        When the mesh does not fit into memory.
    """
    sample = exact(lattice, sources, engine)
    sources = _near(lattice, sources)
    if not sample.rms:  # hardly a point has an atom within the cutoff
        return compute(lattice, sources, engine)
    attempts = Attempts("cutoff", sources.tolerance, sources.precision)
    attempts.margin = MARGIN
    while True:
        mesh = plan(lattice, sources, attempts.target(sample.rms), engine.name)[0]
        values = engine.pme(lattice, sources.positions, sources.charges, mesh, sources.precision, sources.field)
        if attempts.enough(sample.error(values)):
            return values


def _near(lattice: Lattice, sources: Sources) -> Sources:
    """Return the sources without the atoms of an open boundary that no lattice point sees."""
    if sources.cell is not None:
        return sources
    low, high = lattice.origin - _cutoff(sources), lattice.last + _cutoff(sources)
    near = ((sources.positions > low) & (sources.positions < high)).all(1)
    return replace(sources, positions=sources.positions[near], charges=sources.charges[near])


def _cutoff(sources: Sources) -> float:
    assert sources.interaction.cutoff is not None
    return sources.interaction.cutoff


def _task(lattice: Lattice, sources: Sources) -> Task:
    """Return the size of a map for the cost model: an open mesh is padded by the cutoff, not to twice its size."""
    full = task(lattice, sources)
    if full.periodic:
        return full
    a, b, c = (extent + _cutoff(sources) for extent in full.extents)
    return replace(full, extents=(a, b, c), periodic=True)


def plan(lattice: Lattice, sources: Sources, error: float, engine: str) -> tuple[Mesh, float]:
    """Return the cheapest mesh for an error, and the seconds that the sum should take.

    Parameters
    ----------
    lattice : Lattice
    sources : Sources
        With a shifted potential.
    error : float, e/A
        Root mean square, of the potential.
    engine : str
        Whose costs count.

    Raises
    ------
    TaskError
        When no mesh is good enough.
    MemoryPlanError
        When it does not fit into memory.
    """
    density = charge_density(sources)
    split = partial(optimal_for_cutoff, _cutoff(sources))
    try:
        spacing, ratio, order, seconds = cheapest(
            _task(lattice, sources), COSTS.get(engine, COSTS["cpu"]), error / density if density > 0 else 1.0, split)
    except TaskError:
        raise TaskError(f"--tolerance {sources.tolerance:g}: no mesh reaches it with a cutoff of "
                        f"{_cutoff(sources):g} A; use a larger one, or --algorithm pair") from None
    cure = "use a larger --tolerance or --algorithm pair"
    return make_mesh(lattice, sources, spacing, ratio, order, cure, split), seconds


def pairwise_seconds(lattice: Lattice, sources: Sources, engine: str) -> float:
    """Return the time that the sum pair by pair should take."""
    size, reach = task(lattice, sources), _cutoff(sources)
    # few atoms near to each other are not within reach of every point
    size = replace(size, density=min(size.density, size.atoms / (4 / 3 * np.pi * reach**3)))
    counts = parts(size, 1.0, reach, 4)
    fixed, *_, pair, candidate, point, _ = np.array(COSTS.get(engine, COSTS["cpu"])) * counts
    return float(fixed + PAIR * pair + candidate + point)


METHOD = Method("cutoff", "atoms within the cutoff of a point", ("open", "periodic"), "shifted_coulomb", compute)

BY_MESH = replace(METHOD, compute=compute_by_mesh, exact=False)


def choose_algorithm(algorithm: str, lattice: Lattice, sources: Sources, engine: Engine) -> tuple[Method, Sources]:
    """Return the method for an algorithm, and the sources, with the sample that the choice needed.

    ``auto`` takes the mesh for the shifted potential where it should be faster.

    Raises
    ------
    UsageError
        For an algorithm that is none of :data:`ALGORITHMS`, or another interaction by mesh.
    """
    if algorithm not in ALGORITHMS:
        raise UsageError(f"--algorithm '{algorithm}': choose one of {', '.join(ALGORITHMS)}")
    shifted = sources.interaction.interaction.name == METHOD.interaction
    if algorithm == "mesh" and not shifted:
        raise UsageError(f"--algorithm mesh: sums {METHOD.interaction} alone, not "
                         f"{sources.interaction.interaction.name}; use --algorithm pair")
    if algorithm == "mesh":
        return BY_MESH, sources
    pairwise = pairwise_seconds(lattice, sources, engine.name) if len(sources.positions) else 0.0
    if algorithm == "pair" or not shifted or not engine.has_transforms or pairwise < SOON:
        return METHOD, sources
    sample = exact(lattice, sources, engine)
    try:
        _, seconds = plan(lattice, _near(lattice, sources), sample.rms * sources.tolerance / MARGIN, engine.name)
    except (TaskError, MemoryPlanError):  # no mesh will do
        return METHOD, sources
    return (BY_MESH, replace(sources, sample=sample)) if seconds < pairwise else (METHOD, sources)
