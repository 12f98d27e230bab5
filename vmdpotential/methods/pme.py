"""Particle mesh sum: the full potential in a time proportional to the number of points.

1/r is split into a part that ends at a radius, summed pair by pair, and a smooth one, whose charges
are spread to a mesh by B-splines, transformed by Fourier, multiplied and interpolated back (T. Darden,
D. York, L. Pedersen, J. Chem. Phys. 98 (1993) 10089; U. Essmann et al., J. Chem. Phys. 103 (1995)
8577; with the influence function of R. W. Hockney, J. W. Eastwood, Computer Simulation Using
Particles, 1988). A periodic cell has conducting surroundings and a background that neutralises it,
so that the mean of the potential is zero; it may have any shape. An open boundary is a convolution
with the mesh padded by zeros (Hockney, Eastwood, ch. 6).

Radius, mesh and order are the cheapest that keep the tolerance: the error is known beforehand
(:func:`vmdpotential.splitting.coulomb.optimal`), the cost is a model (:mod:`vmdpotential.methods.costs`),
and the error that was reached is measured at 200 points of the lattice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice, bounds
from vmdpotential.methods import Method, Sources
from vmdpotential.methods.accuracy import Attempts, exact
from vmdpotential.methods.costs import COSTS, Task, cheapest
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.coulomb import optimal
from vmdpotential.splitting.mesh import Mesh, Split, around, over_cell


def compute(lattice: Lattice, sources: Sources, engine: Engine) -> NDArray[np.float32]:
    """Return the full potential, see :class:`vmdpotential.methods.Method`.

    Raises
    ------
    TaskError
        When the tolerance cannot be kept.
    MemoryPlanError
        When the mesh does not fit into memory.
    """
    sample = exact(lattice, sources, engine)
    attempts = Attempts("pme", sources.tolerance, sources.precision)
    while True:
        mesh = plan(lattice, sources, attempts.target(sample.rms), engine.name)
        values = engine.pme(lattice, sources.positions, sources.charges, mesh, sources.precision, sources.field)
        if attempts.enough(sample.error(values)):
            return values


def task(lattice: Lattice, sources: Sources) -> Task:
    """Return the size of a map, for the cost model."""
    positions, cell = sources.positions, sources.cell
    low, high = bounds(positions)
    low, high = np.minimum(lattice.origin, low), np.maximum(lattice.last, high)
    extents = high - low if cell is None else np.linalg.norm(cell.vectors, axis=1)
    a, b, c = (float(x) for x in extents)
    density = len(positions) / shared_volume(positions, cell)
    return Task(len(positions), lattice.size, float(lattice.spacing.max()), density, (a, b, c), cell is not None)


def shared_volume(positions: NDArray[np.float64], cell: Cell | None) -> float:
    """Return the volume that charges share, A^3: of the cell, or the box around them."""
    if cell is not None:
        return cell.volume
    low, high = bounds(positions)
    return float(np.prod(high - low + 2.0))  # an atom has 1 A around it


def charge_density(sources: Sources) -> float:
    """Return the root of the sum of q^2 over the volume, e/A^(3/2), which the error is proportional to."""
    return float(np.sqrt(np.sum(sources.charges**2) / shared_volume(sources.positions, sources.cell)))


def plan(lattice: Lattice, sources: Sources, error: float, engine: str) -> Mesh:
    """Return the cheapest mesh for an error.

    Parameters
    ----------
    lattice : Lattice
    sources : Sources
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
    spacing, ratio, order, _ = cheapest(task(lattice, sources), COSTS.get(engine, COSTS["cpu"]),
                                        error / density if density > 0 else np.inf)
    return make_mesh(lattice, sources, spacing, ratio, order, "use a larger --tolerance or --spacing")


def make_mesh(lattice: Lattice, sources: Sources, spacing: float, ratio: float, order: int, cure: str,
              split: Split = optimal) -> Mesh:
    """Return a mesh over the cell, or around lattice and atoms.

    Parameters
    ----------
    lattice : Lattice
    sources : Sources
    spacing : float, A
        Of the mesh, at most.
    ratio : float
        Split radius over the spacing.
    order : int
        Of the B-splines.
    cure : str
        What to do when it does not fit.
    split : callable
        Makes the splitting for a radius, a mesh spacing and an order.

    Raises
    ------
    MemoryPlanError
        When it does not fit into memory with the map.
    """
    if sources.cell is not None:
        mesh = over_cell(sources.cell, spacing, order, ratio, split)
    else:
        mesh = around(lattice, sources.positions, spacing, order, ratio, split)
    # 3.5 numbers at most for each point of the transform, the influence among them; for each of the map the map's own
    # and two that are interpolated along one axis or two; atoms with the images that pairs are summed of
    images = sources.cell.images_near(lattice.origin, lattice.last, mesh.splitting.radius) if sources.cell else 0.0
    real, maps = 4 if sources.precision == "single" else 8, 4 if sources.field else 1
    memory.require(int(3.5 * real * float(np.prod(mesh.transform_shape)) + (4 * maps + 2 * real) * lattice.size
                       + (100 + 200 * images) * len(sources.charges)),
                   f"a mesh of {' x '.join(map(str, mesh.transform_shape))} points", cure)
    return mesh


METHOD = Method("pme", "all atoms and images by a mesh, to the tolerance", ("open", "periodic"), "coulomb", compute,
                exact=False)
