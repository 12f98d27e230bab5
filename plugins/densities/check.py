"""Check of densities of atoms against a histogram."""

from __future__ import annotations

import numpy as np

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.molecule.cell import Cell

from .over_frames import Densities
from .quantities import CountedAtoms


def check_counts(engine: Engine, seed: int) -> list[tuple[str, float, float]]:
    """Return the largest error of the density of atoms in a triclinic cell, against the histogram of all images."""
    positions = np.random.default_rng(seed).uniform(-40, 40, (2000, 3))
    cell = Cell.from_parameters(24, 25, 26, 70, 65, 80)
    lattice = Lattice.over_cell(cell, 1.0)
    counted = CountedAtoms("number", "1/A^3", np.arange(len(positions)), np.ones(len(positions)), None, "")
    work = Densities(LoadedFrames("box", [(positions, cell)]), None, lattice, cell, True, None, counted, 0.0,
                     engine.name)
    result = work.block(range(1))
    values = np.zeros(lattice.size)
    values[result["density.nodes"]] = result["density.sums"]
    half = lattice.spacing / 2
    images = cell.images_in_box(positions, lattice.origin - half, lattice.last + half)[0]
    edges = [np.append(axis - h, axis[-1] + h) for axis, h in zip(lattice.axes(), half, strict=True)]
    error = np.abs(values.reshape(lattice.shape) - np.histogramdd(images, edges)[0]).max()
    return [("densities of atoms, counts in a triclinic cell", float(error), 0.0)]
