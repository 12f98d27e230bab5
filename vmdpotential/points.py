"""The potential of a structure at arbitrary points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError
from vmdpotential.maps import Wanted, bind, check_tolerance, choose_cell, in_medium
from vmdpotential.molecule.selection import Selection, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant

METHODS = ("auto", "direct", "pme")


def potential_at(
    structure: Structure,
    points: ArrayLike,
    *,
    method: str = "auto",
    boundary: str = "auto",
    tolerance: float = 1e-4,
    atoms: Selection = "all",
    unit: str = "kT/e",
    temperature: float = DEFAULT_TEMPERATURE,
    dielectric: float | None = None,
    screened: float | None = None,
    engine: str = "auto",
) -> NDArray[np.float64]:
    """Return the full electrostatic potential of a structure with charges at points.

    Parameters
    ----------
    structure : Structure
    points : (P, 3) array_like, A
    method : {"auto", "direct", "pme"}
        ``direct`` is exact: the sum over all pairs, in a periodic cell Ewald's sum. ``pme`` is a particle mesh
        sum, in a time proportional to atoms and points. ``auto`` takes the one that is sooner.
    boundary : {"auto", "open", "periodic"}
        ``auto`` is periodic where the structure has a cell. Periodic: all images in conducting surroundings, with a
        background that neutralises the cell, so that the mean of the potential is zero.
    tolerance : float
        Of ``pme``: root mean square error over that of the potential at the points, 1e-6 to 0.1; measured at 200
        of the points.
    atoms : str or array
        The atoms whose charges make the potential, see :func:`vmdpotential.molecule.selection.select`.
    unit, temperature, dielectric, screened
        Of the values, see :func:`vmdpotential.maps.potential_map`. A screened potential has no background.
    engine : str
        What sums; the CPU's takes its place for a mesh where it has no transforms.

    Returns
    -------
    (P,) float64, in `unit`
        An atom nearer than 0.01 A to a point counts at that distance.

    Raises
    ------
    InputError
        When there are no charges, or no cell for a periodic boundary.
    UsageError
        For names and values that do not fit.
    TaskError
        When ``pme`` cannot keep the tolerance.
    MemoryPlanError
        When the mesh does not fit into memory.
    """
    from vmdpotential.methods.points import request_at, sum_at

    wanted, dielectric = in_medium(Wanted(screened=screened), dielectric, temperature)
    constant = coulomb_constant(unit, temperature, dielectric)
    if method not in METHODS:
        raise UsageError("method", f"choose one of {', '.join(METHODS)}", value=method)
    check_tolerance(tolerance)
    places = np.asarray(points, np.float64)
    if places.ndim != 2 or places.shape[1] != 3 or not np.isfinite(places).all():
        raise UsageError("points", f"an array of finite numbers (P, 3) is needed, not {places.shape}")
    cell = choose_cell(structure, "auto", boundary)
    charges = structure.known_charges
    sources = select(structure, atoms)
    positions, charges = structure.positions[sources], charges[sources]
    if not len(places):
        return np.zeros(0)
    request = request_at(places, positions, charges, cell, bind(wanted, cell), tolerance=tolerance)
    method = "ewald" if method == "direct" and cell is not None else method
    return constant * sum_at(request, places, positions, charges, get_engine(engine), method).potential
