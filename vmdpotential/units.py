"""Units and the Coulomb constant.

The constants are those of the SI, exact since 2019, except for the electric constant, which is from CODATA 2022. They
are defined here because importing ``scipy.constants`` takes as long as a small map.

Lengths are in angstrom (A) and charges in elementary charges (e) everywhere; a potential is ``C q / r`` with ``C`` from
:func:`coulomb_constant`.
"""

from __future__ import annotations

import math

from vmdpotential.errors import UsageError

#: Units of the potential.
POTENTIAL_UNITS = ("kT/e", "V", "kcal/mol/e")

#: Default temperature in K, the one VMD's tools use.
DEFAULT_TEMPERATURE = 298.15

#: Largest concentration of a salt, M; that of a saturated solution of NaCl.
MAX_SALT = 6.0

#: Elementary charge, C; Boltzmann's constant, J/K; Avogadro's, 1/mol; electric constant, F/m; calorie, J; angstrom, m.
ELEMENTARY_CHARGE, BOLTZMANN, AVOGADRO = 1.602176634e-19, 1.380649e-23, 6.02214076e23
EPSILON_0 = 8.8541878188e-12
CALORIE, ANGSTROM = 4.184, 1e-10

#: One debye, 1e-21 / c in C m, in e A.
DEBYE = 1e-21 / 299_792_458 / (ELEMENTARY_CHARGE * ANGSTROM)

#: Bohr radius, A (CODATA 2022).
BOHR = 0.529177210544


def debye_length(salt: float, temperature: float, dielectric: float) -> float:
    """Return the Debye length, sqrt(eps kT / (2 N_A e^2 I)), in A.

    Over this distance a salt screens potentials by a factor of 1/e (P. Debye, E. Hueckel, Phys. Z. 24 (1923) 185). It
    is 7.85 A for 0.15 M at 298.15 K with a dielectric constant of 78.5, and infinite without salt.

    Parameters
    ----------
    salt : float
        Concentration of a 1:1 salt, or ionic strength, M.
    temperature : float, K
    dielectric : float
        Relative permittivity of the solvent.
    """
    return math.sqrt(_debye(temperature, dielectric) / salt) if salt > 0 else math.inf


def ionic_strength(length: float, temperature: float, dielectric: float) -> float:
    """Return the ionic strength, M, for a Debye length, A."""
    return _debye(temperature, dielectric) / length**2


def _debye(temperature: float, dielectric: float) -> float:
    """Return the square of the Debye length times the ionic strength, A^2 M."""
    per_metre = dielectric * EPSILON_0 * BOLTZMANN * temperature / (2 * AVOGADRO * ELEMENTARY_CHARGE**2)
    return per_metre * 1e-3 / ANGSTROM**2


def coulomb_constant(
    unit: str = "kT/e", temperature: float = DEFAULT_TEMPERATURE, dielectric: float = 1.0
) -> float:
    """Return the Coulomb constant C in ``phi = C q / r``, for q in e and r in A.

    Parameters
    ----------
    unit : str
        One of :data:`POTENTIAL_UNITS`.
    temperature : float
        Temperature in K; matters for ``kT/e`` only.
    dielectric : float
        Relative permittivity of a uniform medium.

    Returns
    -------
    float
        560.46 for kT/e at 298.15 K, 14.3996 for V, 332.06 for kcal/mol/e, divided by `dielectric`.

    Raises
    ------
    UsageError
        When the unit is unknown, temperature or dielectric is not positive, or the result is 0 or infinite.
    """
    if not temperature > 0:
        raise UsageError("temperature", "must be above 0 K", value=str(temperature))
    if not dielectric > 0:
        raise UsageError("dielectric", "must be above 0", value=str(dielectric))
    volt = ELEMENTARY_CHARGE / (4 * math.pi * EPSILON_0 * ANGSTROM)
    if unit == "V":
        factor = volt
    elif unit == "kT/e":
        factor = volt * ELEMENTARY_CHARGE / BOLTZMANN / temperature
    elif unit == "kcal/mol/e":
        factor = volt * ELEMENTARY_CHARGE * AVOGADRO / (1000 * CALORIE)
    else:
        raise UsageError("unit", f"choose one of {', '.join(POTENTIAL_UNITS)}", value=unit)
    result = float(factor / dielectric)
    if not 0 < result < float("inf"):
        raise UsageError(
            "dielectric", f"the potential at {temperature:g} K is 0 or not a finite number", "correct one of them",
            value=f"{dielectric:g}")
    return result
