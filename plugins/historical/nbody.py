"""Sums over all pairs of N bodies: gravity, and Lennard-Jones with Coulomb, by the kernels of nbody.cu.

After E. Elsen, V. Vishal, M. Houston, V. Pande, P. Hanrahan, E. Darve, "N-body simulations on GPUs", arXiv:0706.3060,
2007. As in that paper, an iteration of the CPU's loop computes several atoms i with vectors of atoms j; in contrast to
it, each pair is computed once, for both of its atoms.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential import units
from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine, get_engine
from vmdpotential.errors import UsageError
from vmdpotential.kernels.launch import KernelFile

from ..pairs.all_pairs import sum_all_pairs

KERNELS = KernelFile(Path(__file__).with_name("nbody.cu"))

#: The paper's dielectrics. The coefficients of its sigmoidal one are not published; those of Mehler and Solmajer are
#: used.
DIELECTRICS = ("constant", "linear", "sigmoidal")


@dataclass(frozen=True, eq=False)
class Gravity:
    """Results of the gravity of masses.

    Parameters
    ----------
    accelerations : (N, 3) float64
        Accelerations of the masses.
    jerks : (N, 3) float64 or None
        Time derivatives of the accelerations, if velocities were given.
    energy : float
        Potential energy of all pairs.
    """

    accelerations: Floats
    jerks: Floats | None
    energy: float


@dataclass(frozen=True, eq=False)
class LennardJonesCoulomb:
    """Forces (N, 3), kcal/mol/A, and half of the energies of each atom's pairs (N, 2), Coulomb and Lennard-Jones."""

    forces: Floats
    energies: Floats


def sum_bodies(engine: Engine, name: str, columns: Floats, precision: str = "single", energy: bool = True,
               softening: float = 0.0) -> Floats:
    """Return the sums (S, N) of a kernel: forces, jerks, and energies, which are always there in double precision.

    Parameters
    ----------
    engine : Engine
    name : str
        ``gravity``, ``gravity_jerk`` or one of :data:`DIELECTRICS`.
    columns : (C, N) float64
        Coordinates, and the numbers of a body, as nbody.cu states.
    precision : str
        ``single`` or ``double``.
    energy : bool
        Whether energies are computed too.
    softening : float
        Softening length of gravity.
    """
    energy = energy or precision == "double"
    count = (6 if name == "gravity_jerk" else 3) + energy * (2 if name in DIELECTRICS else 1)
    centred = columns.copy()
    if columns.shape[1]:
        low, high = columns[:3].min(1), columns[:3].max(1)
        centred[:3] -= ((low + high) / 2)[:, None]
    kernel = KERNELS[f"{name}{'_energy' if energy else ''}_{precision}"]
    return sum_all_pairs(engine, kernel, count, centred, soft2=softening**2)


def _array(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(values, np.float64)
    if array.shape != shape:
        raise UsageError(name, f"{array.shape} instead of {shape}")
    return array


def gravity(positions: ArrayLike, masses: ArrayLike, velocities: ArrayLike | None = None, softening: float = 0.0,
            constant: float = 1.0, engine: str = "auto", precision: str = "single") -> Gravity:
    """Return accelerations, jerks and the energy of masses, in any consistent units.

    The acceleration of i is the sum of G m_j d / (d^2 + softening^2)^(3/2), with the vector d from i to j.

    Parameters
    ----------
    positions : (N, 3)
        Positions of the masses.
    masses : (N,)
        The masses.
    velocities : (N, 3), optional
        Velocities, needed for jerks.
    softening : float
        Softening length.
    constant : float
        Gravitational constant G.
    engine : str
        Name of the engine.
    precision : str
        ``single`` (relative error about 1e-6) or ``double``.

    Raises
    ------
    UsageError
        For arrays that do not fit together.
    """
    places = np.asarray(positions, np.float64).reshape(-1, 3)
    weights = _array("masses", masses, places.shape[:1])
    motion = np.zeros((len(places), 0)) if velocities is None else _array("velocities", velocities, places.shape)
    sums = constant * sum_bodies(get_engine(engine), "gravity" if velocities is None else "gravity_jerk",
                                 np.column_stack([places, motion, weights / 8]).T, precision, softening=softening)
    jerks = None if velocities is None else sums[3:6].T.copy()
    return Gravity(sums[:3].T.copy(), jerks, float(0.5 * weights @ sums[-1]))


def lennard_jones_coulomb(positions: ArrayLike, charges: ArrayLike, half_rmin: ArrayLike, depth: ArrayLike,
                          dielectric: str = "constant", engine: str = "auto",
                          precision: str = "single") -> LennardJonesCoulomb:
    """Return forces and energies of all pairs of atoms by Lennard-Jones and Coulomb.

    Parameters
    ----------
    positions : (N, 3), A
        Positions of the atoms.
    charges : (N,), e
        Their charges.
    half_rmin, depth : (N,), A and kcal/mol
        Half of the distance with the lowest energy, and the depth of the well; pairs follow the Lorentz-Berthelot rule.
    dielectric : str
        One of :data:`DIELECTRICS`: 1, 4 r with r in A, or sigmoidal.
    engine : str
        Name of the engine.
    precision : str
        ``single`` or ``double``.

    Raises
    ------
    UsageError
        For arrays that do not fit together, or an unknown dielectric.
    """
    if dielectric not in DIELECTRICS:
        raise UsageError("dielectric", f"choose one of {', '.join(DIELECTRICS)}", value=dielectric)
    places = np.asarray(positions, np.float64).reshape(-1, 3)
    shape = places.shape[:1]
    columns = np.column_stack([
        places, _array("charges", charges, shape) * units.coulomb_constant("kcal/mol/e") ** 0.5,
        _array("half_rmin", half_rmin, shape), np.sqrt(12 * _array("depth", depth, shape))])
    sums = sum_bodies(get_engine(engine), dielectric, columns.T, precision)
    return LennardJonesCoulomb(sums[:3].T.copy(), sums[3:].T / 2)
