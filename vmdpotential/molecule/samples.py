"""Generated test systems, for benchmarks and self-tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def water_box(edge: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return positions (N, 3), A, and charges (N,), e, of a cubic box of TIP3P molecules at the density of water.

    The molecules are near the points of a cubic lattice, in random orientations: sums over them cost as much as over
    equilibrated water.
    """
    side = 3.104  # A; its cube, 29.9 A^3, is the volume of a molecule at 298 K
    count = max(1, round(edge / side))
    rng = np.random.default_rng(2008)
    oxygen = (np.stack(np.meshgrid(*[np.arange(count)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5) * edge / count
    oxygen += rng.uniform(-0.3, 0.3, oxygen.shape)
    bond, half_angle = 0.9572, np.radians(104.52 / 2)
    axis = rng.normal(size=(2, len(oxygen), 3))
    axis[0] /= np.linalg.norm(axis[0], axis=1)[:, None]
    axis[1] -= (axis[1] * axis[0]).sum(1)[:, None] * axis[0]
    axis[1] /= np.linalg.norm(axis[1], axis=1)[:, None]
    along, across = bond * np.cos(half_angle) * axis[0], bond * np.sin(half_angle) * axis[1]
    atoms = np.stack([oxygen, oxygen + along + across, oxygen + along - across], 1).reshape(-1, 3)
    return atoms, np.tile([-0.834, 0.417, 0.417], len(oxygen))
