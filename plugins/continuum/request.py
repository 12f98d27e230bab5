"""The molecule in a solution that a request describes."""

from __future__ import annotations

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError
from vmdpotential.maps.solution_ions import ionic_strength_of, ions_of
from vmdpotential.maps.solver import SolventRequest
from vmdpotential.units import coulomb_constant, debye_length

from .molecule import Continuum, Membrane
from .pores import find_pores


def continuum_of_request(solution: SolventRequest, positions: Floats, charges: Floats) -> Continuum:
    """Return the continuum of a request, for charges in e.

    Raises
    ------
    InputError
        For charged atoms without a density, which a permittivity without a sharp surface needs.
    """
    values, ions = solution.values, ions_of(solution.values)
    bare = int(((charges != 0) & (solution.radii <= 0)).sum()) if values.get("gaussian", 0.0) else 0
    if bare:
        raise InputError(f"{bare} charged atoms have no radius, which a smooth permittivity needs",
                         "choose other {radii}, or leave out gaussian")
    half, centre = 0.5 * values.get("membrane", 0.0), values.get("membrane_centre", 0.0)
    volts = values.get("voltage", 0.0) * (coulomb_constant("kT/e", solution.temperature)
                                          / coulomb_constant("V", solution.temperature))
    pores = None
    if half and values.get("pores", 0.0):
        pores = find_pores(positions, solution.radii, values["pores"], centre - half, centre + half)
    full = np.array([(z, c * z * z) for z, c in ions] if values["nonlinear"] else []).reshape(-1, 2)
    full[:, 1] /= max(1e-30, full[:, 1].sum())
    return Continuum(positions, charges, solution.radii, coulomb_constant("kT/e", solution.temperature),
                     values["inside"], solution.dielectric, values["probe"], values["ion_radius"],
                     1 / debye_length(ionic_strength_of(ions), solution.temperature, solution.dielectric), full,
                     Membrane(centre - half, centre + half, values["membrane_inside"], pores, volts) if half else None,
                     values.get("gaussian", 0.0))
