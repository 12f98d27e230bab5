"""What `verify` checks of orbitals."""

from __future__ import annotations

import numpy as np
from scipy.special import erf

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.units import BOHR, coulomb_constant

from .evaluate import density_map, orbital_map
from .potential import potential_map
from .shells import Shell
from .wavefunction import Channel, Wavefunction


def check_gaussian(engine: Engine, seed: int) -> list[tuple[str, float, float]]:
    """Return errors of an orbital, a density and the potential of a Gaussian centred at a proton: closed forms."""
    exponent, unit = 0.4, np.ones(1)
    shell = Shell(np.zeros(3), 0, np.array([exponent]), unit, ("1",))
    alpha, beta = Channel(np.ones((1, 1)), unit, None), Channel(np.ones((1, 1)), 0 * unit, None)
    atom = Wavefunction("H", np.array([1]), np.zeros((1, 3)), (shell,), alpha, beta, True)
    lattice = Lattice(np.array([0.1, -1.0, -2.0]), np.full(3, 0.37), (12, 13, 35))
    r = np.linalg.norm(lattice.points(), axis=1) / BOHR
    value = (2 * exponent / np.pi) ** 0.75 * np.exp(-exponent * r * r)
    field = coulomb_constant("V") / BOHR * (1 - erf(np.sqrt(2 * exponent) * r)) / r
    results = [("orbital", orbital_map(atom, lattice, 0, length="bohr", engine=engine.name), value),
               ("electron density", density_map(atom, lattice, length="bohr", engine=engine.name), value**2),
               ("potential", potential_map(atom, lattice, "V", engine=engine.name), field)]
    return [(f"{what} of a Gaussian, closed form",
             float(np.abs(grid.values.ravel() - exact).max() / np.abs(exact).max()), 1e-5)
            for what, grid, exact in results]
