"""Sums over all pairs of N bodies: gravity, and Lennard-Jones with Coulomb.

After E. Elsen, V. Vishal, M. Houston, V. Pande, P. Hanrahan, E. Darve, "N-body simulations on GPUs", arXiv:0706.3060,
2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import units
from vmdpotential.engines import get_engine
from vmdpotential.engines.pairs import Atoms, PairResult, PairSum
from vmdpotential.errors import UsageError
from vmdpotential.interactions import coulomb, distance_dependent, lennard_jones, sigmoidal_dielectric
from vmdpotential.interactions.pairs import CHARGES, LORENTZ_BERTHELOT, SOURCES, PairPotential, Term

Floats = NDArray[np.float64]

#: The paper's dielectrics. The coefficients of its sigmoidal one are not published; those of Mehler and Solmajer are
#: used.
DIELECTRICS = {"constant": coulomb, "linear": distance_dependent, "sigmoidal": sigmoidal_dielectric}


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


@cache
def gravity_potential(softening: float) -> PairPotential:
    """Return the gravitational pair potential with Plummer softening."""
    return PairPotential((Term("gravity", coulomb.INTERACTION.bind(), SOURCES),), softening)


@cache
def ljc_potential(dielectric: str) -> PairPotential:
    """Return the pair potential of Lennard-Jones and Coulomb in a dielectric, one of :data:`DIELECTRICS`.

    Raises
    ------
    UsageError
        For an unknown dielectric.
    """
    if dielectric not in DIELECTRICS:
        raise UsageError("dielectric", f"choose one of {', '.join(DIELECTRICS)}", value=dielectric)
    return PairPotential((Term("coulomb", DIELECTRICS[dielectric].INTERACTION.bind(), CHARGES),
                          Term("lennard_jones", lennard_jones.INTERACTION.bind(), LORENTZ_BERTHELOT)))


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
    motion = None if velocities is None else _array("velocities", velocities, places.shape)
    work = PairSum(gravity_potential(float(softening)), precision=precision, energy=True, jerk=motion is not None)
    bodies = Atoms(places, {"source": -constant * weights}, velocities=motion)
    result = get_engine(engine).prepare_pairs(work).run(bodies)
    assert result.energies is not None
    return Gravity(result.forces, result.jerks, float(weights @ result.energies[:, 0]))


def lennard_jones_coulomb(positions: ArrayLike, charges: ArrayLike, half_rmin: ArrayLike, depth: ArrayLike,
                          dielectric: str = "constant", exclusions: ArrayLike | None = None,
                          engine: str = "auto", precision: str = "single") -> PairResult:
    """Return forces (kcal/mol/A) and energies (kcal/mol) of all pairs of atoms by Lennard-Jones and Coulomb.

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
    exclusions : (E, 2), optional
        Pairs that are left out.
    engine : str
        Name of the engine.
    precision : str
        ``single`` or ``double``.

    Returns
    -------
    PairResult
        Energies have columns for Coulomb and Lennard-Jones.

    Raises
    ------
    UsageError
        For arrays that do not fit together, or an unknown dielectric.
    """
    places = np.asarray(positions, np.float64).reshape(-1, 3)
    shape = places.shape[:1]
    parameters = {"charge": _array("charges", charges, shape) * units.coulomb_constant("kcal/mol/e") ** 0.5,
                  "half_rmin": _array("half_rmin", half_rmin, shape),
                  "root_depth": np.sqrt(12 * _array("depth", depth, shape))}
    left_out = None
    if exclusions is not None:
        left_out = np.unique(np.sort(np.asarray(exclusions, np.int64).reshape(-1, 2), axis=1), axis=0)
        if len(left_out) and not 0 <= left_out.min() <= left_out.max() < len(places):
            raise UsageError("exclusions", "refer to atoms that do not exist")
    work = PairSum(ljc_potential(dielectric), precision=precision, energy=True)
    return get_engine(engine).prepare_pairs(work).run(Atoms(places, parameters, exclusions=left_out))
