"""Units and the Coulomb constant, from CODATA through ``scipy.constants``.

Lengths are in angstrom (A) and charges in elementary charges (e) everywhere; a potential is
``C q / r`` with ``C`` from :func:`coulomb_constant`.
"""

from __future__ import annotations

from vmdpotential.errors import UsageError

#: Units in which a potential can be asked for.
POTENTIAL_UNITS = ("kT/e", "V", "kcal/mol/e")

#: Default temperature in K, the one VMD's tools use.
DEFAULT_TEMPERATURE = 298.15


def coulomb_constant(
    unit: str = "kT/e", temperature: float = DEFAULT_TEMPERATURE, dielectric: float = 1.0
) -> float:
    """Return C of ``phi = C q / r`` for q in e and r in A.

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
        560.46 for kT/e at 298.15 K, 14.3996 for V, 332.06 for kcal/mol/e, over `dielectric`.

    Raises
    ------
    UsageError
        When the unit is unknown, or temperature or dielectric is not positive (or hardly so).
    """
    from scipy import constants

    if not temperature > 0:
        raise UsageError("temperature", "must be above 0 K", value=str(temperature))
    if not dielectric > 0:
        raise UsageError("dielectric", "must be above 0", value=str(dielectric))
    volt = constants.e / (4 * constants.pi * constants.epsilon_0 * constants.angstrom)
    if unit == "V":
        factor = volt
    elif unit == "kT/e":
        factor = volt * constants.e / constants.k / temperature
    elif unit == "kcal/mol/e":
        factor = volt * constants.e * constants.N_A / (1000 * constants.calorie)
    else:
        raise UsageError("unit", f"choose one of {', '.join(POTENTIAL_UNITS)}", value=unit)
    result = float(factor / dielectric)
    if not 0 < result < float("inf"):
        raise UsageError(
            "dielectric", f"makes no potential at {temperature:g} K", "correct one of them", value=f"{dielectric:g}")
    return result
