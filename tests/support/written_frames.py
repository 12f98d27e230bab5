"""Trajectories that MDAnalysis writes."""

import warnings

import MDAnalysis
import numpy as np


def write_frames(path, positions, cell, dt=2.0, cells=None):
    """Write frames (n, N, 3) by MDAnalysis, the k-th at k * dt ps."""
    universe = MDAnalysis.Universe.empty(positions.shape[1], n_residues=1,
                                         atom_resindex=np.zeros(positions.shape[1], int), trajectory=True)
    for name, value in (("names", "C"), ("elements", "C"), ("resnames", ["MOL"]), ("chainIDs", "A"), ("resids", [1])):
        universe.add_TopologyAttr(name, value if isinstance(value, list) else [value] * positions.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with MDAnalysis.Writer(str(path), positions.shape[1], multiframe=True,
                               **({} if path.suffix == ".pdb" else {"dt": dt})) as writer:
            for number, frame in enumerate(positions):
                step = universe.trajectory.ts
                step.positions, step.frame, step.time, step.dt = frame, number, number * dt, dt
                step.data.update(step=number, time=number * dt)
                result = cell if cells is None else cells[number]
                step.dimensions = None if result is None else result.parameters
                writer.write(universe.atoms)
    return path
