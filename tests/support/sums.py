"""Sums on a lattice by an engine: (nx, ny, nz) float32 of the potential, or with the field (4, nx, ny, nz)."""

import numpy as np
from helpers import interaction

from vmdpotential.engines import get_engine
from vmdpotential.grid.targets import Box, Points
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.historical import levels
from vmdpotential.splitting import mesh
from vmdpotential.sums import ChargeStatistics, Request, accuracy
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum

#: Boundaries of a box of water of 30 A.
CELLS = {"open": None, "orthogonal": Cell.from_parameters(31, 33, 35),
         "triclinic": Cell.from_parameters(32, 33, 34, 78, 72, 105)}


def run(engine, work, positions, charges):
    """Return the maps of a PotentialSum."""
    result = prepare_sum(engine, work).run(positions, charges)
    return np.stack([result.values(), *result.field()]) if work.field else result.values()


def at_points(engine, points, positions, charges, bound=None, cell=None, nearest=None):
    """Return the potential at points, of Coulomb unless given; `nearest` is filled with distances to charges."""
    result = prepare_sum(engine, PotentialSum(Points(points), bound or interaction("coulomb"), cell,
                                         distances=nearest is not None)).run(positions, charges)
    if nearest is not None:
        nearest[:] = result.distances
    return result.values()


def direct(engine, lattice, positions, charges, bound, precision="single", field=False):
    return run(engine, PotentialSum(lattice, bound, None, precision, field), positions, charges)


def cutoff(engine, lattice, positions, charges, bound, precision="single", cell=None, field=False):
    assert bound.cutoff is not None
    return run(engine, PotentialSum(lattice, bound, cell, precision, field), positions, charges)


def by_mesh(engine, lattice, positions, charges, smooth, precision="single", field=False):
    return run(engine, PotentialSum.split(lattice, smooth, precision, field), positions, charges)


by_levels = by_mesh


def mesh_around(lattice, positions, *options):
    """Return the mesh of an open boundary around a lattice and charges."""
    return mesh.mesh_around(lattice, Box.around(positions), *options)


def levels_around(lattice, positions, cell=None, **options):
    """Return the levels of a sum over a lattice and charges."""
    return levels.make(lattice, Box.around(positions), cell, **options)


def to_tolerance(method, lattice, positions, charges, cell, bound, tolerance, engine=None, **options):
    """Return the potential by a method that keeps a tolerance, and the errors that were measured."""
    engine = engine or get_engine("cpu")
    request = Request(lattice, cell, bound, ChargeStatistics.of(positions, charges, cell), tolerance=tolerance,
                      **options)
    sample = accuracy.sample(request, positions, charges, engine)
    request = request.with_error(tolerance * sample.target_rms or np.inf)
    _, result, errors = accuracy.run_to_tolerance(method, request, positions, charges, sample, engine)
    return result.values(), errors
