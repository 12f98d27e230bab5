"""What `verify` checks of probes."""

from __future__ import annotations

import numpy as np

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box

from .bonds import DONOR, Directions, Wells, bond_energies
from .energies import ProbeSum


def check_probes(engine: Engine, seed: int) -> list[tuple[str, float, float]]:
    """Return errors of a probe's Lennard-Jones energy, against the sum over pairs, and of a hydrogen bond."""
    edge, cutoff = 40.0, 10.0
    positions = water_box(edge)[0][::3]
    groups = (np.arange(0, len(positions), 2), np.arange(1, len(positions), 2))
    probe = ProbeSum(np.array([3.4, 3.7]), groups, tuple(np.full(len(group), 0.15) for group in groups), cutoff)
    cell, lattice = Cell.from_parameters(edge, edge, edge), Lattice(np.zeros(3), np.full(3, 0.9), (33, 31, 35))
    result = probe.energies(engine, lattice, positions, cell).ravel()
    chosen = np.random.default_rng(seed).choice(np.flatnonzero(result < 100.0), 100, replace=False)
    exact = probe.at(lattice.points()[chosen], positions, cell)
    error = float(np.abs(result[chosen] - exact).max() / np.sqrt(np.square(exact).mean()))
    return [("probes, Lennard-Jones in a periodic cell", error, 1e-5),
            ("probes, hydrogen bond along its direction, closed form", _error_of_bond(engine), 1e-5)]


def _error_of_bond(engine: Engine) -> float:
    """Return the relative error of a hydrogen bond's energy along the donor's direction, on both sides of it."""
    along, distance, depth = np.array([[0.0, 0.0, 1.0]]), 1.9, 0.6
    lattice, unit = Lattice(np.array([0.0, 0.0, -6.05]), np.array([1.0, 1.0, 0.1]), (1, 1, 120)), np.ones((1, 1))
    first = np.zeros(1, np.int64)
    result = bond_energies(
        engine, lattice, np.zeros((1, 3)), first, Directions(first, np.array([DONOR]), along, 0 * along, 2 * unit[0]),
        Wells(distance * unit, depth * unit, np.zeros(1, bool), 0.0, 1e5, 5.0)).ravel()
    z = lattice.points()[:, 2]
    well = np.minimum(depth * (5 * (distance / z) ** 12 - 6 * (distance / z) ** 10), 1e5)
    exact = np.where(np.abs(z) < 5.0, np.where(z > 0, 1.0, np.clip(well / 100, 0.0, 1.0)) * well, 0.0)
    return float((np.abs(result - exact) / np.maximum(depth, np.abs(exact))).max())
