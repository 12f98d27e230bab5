"""A kernel of another package: its library is compiled when that is built, or here by ``python nearest.py``."""

from pathlib import Path

import numpy as np

from vmdpotential.engines import get_engine
from vmdpotential.kernels.build import build_libraries
from vmdpotential.kernels.launch import KernelFile

SOURCE = Path(__file__).with_name("nearest.cu")
KERNELS = KernelFile(SOURCE, SOURCE.parent / "libraries")


def distances_to_nearest(points, atoms, engine="auto"):
    """Return the distances (P,) of points (P, 3) to the nearest of some atoms (N, 3), A."""
    backend = get_engine(engine)
    with backend.room(32 * len(points) + 24 * len(atoms)):
        squares = backend.empty(len(points), np.float64)
        backend.launch(KERNELS["find_nearest_atom"], len(points), "nearest atoms", 0, points=points, atoms=atoms,
                       squares=squares, number=len(atoms))
        return np.sqrt(backend.to_host(squares))


if __name__ == "__main__":
    build_libraries([SOURCE], KERNELS.libraries)
