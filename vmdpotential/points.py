"""The potential of a structure at arbitrary points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError
from vmdpotential.maps import MediumOptions, bind, check_tolerance, choose_cell, medium_of
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.molecule.selection import Selection, select
from vmdpotential.parameters import changed, takes_fields


@dataclass(frozen=True, kw_only=True)
class PointOptions(MediumOptions):
    """All options of the potential at points, see :func:`potential_at`."""

    method: str = "auto"
    boundary: str = "auto"
    tolerance: float = 1e-4
    atoms: Selection = "all"
    unit: str = "kT/e"
    engine: str = "auto"


@takes_fields(PointOptions)
def potential_at(structure: StructureLike, points: ArrayLike, options: PointOptions | None = None,
                 **keywords: Any) -> NDArray[np.float64]:
    """Return the full electrostatic potential of a structure with charges at points.

    Options are keywords, or one object of :class:`PointOptions`, which keywords then change.

    Parameters
    ----------
    structure : Structure
    points : (P, 3) array_like, A
    options : PointOptions, optional
    method : str
        ``direct`` is exact: the sum over all pairs, in a periodic cell Ewald's sum. ``pme`` is a particle mesh
        sum, in a time proportional to atoms and points. ``auto`` takes the fastest of all methods that sum at points,
        those of other packages too.
    boundary : {"auto", "open", "periodic"}
        ``auto`` is periodic where the structure has a cell. Periodic: all images in conducting surroundings, with a
        background that neutralises the cell, so that the mean of the potential is zero.
    tolerance : float
        Of ``pme``: root mean square error over that of the potential at the points, 1e-6 to 0.1; measured at 200
        of the points.
    atoms : str or array
        The atoms whose charges make the potential, see :func:`vmdpotential.molecule.selection.select`.
    unit, temperature, dielectric, screened, medium
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
    structure = as_structure(structure)
    from vmdpotential.methods.points import request_at, sum_at

    chosen = changed(PointOptions, options, keywords)
    medium = medium_of(chosen)
    if chosen.method != "auto" and "points" not in registry.get("method", chosen.method).targets:
        raise UsageError("method", "makes maps alone, no sums at points", "use {method auto}", value=chosen.method)
    check_tolerance(chosen.tolerance)
    places = np.asarray(points, np.float64)
    if places.ndim != 2 or places.shape[1] != 3 or not np.isfinite(places).all():
        raise UsageError("points", f"an array of finite numbers (P, 3) is needed, not {places.shape}")
    cell = choose_cell(structure, "auto", chosen.boundary)
    charges = structure.known_charges
    sources = select(structure, chosen.atoms)
    positions, charges = structure.positions[sources], charges[sources]
    if not len(places):
        return np.zeros(0)
    request = request_at(places, positions, charges, cell, bind(chosen, cell), tolerance=chosen.tolerance)
    method = "ewald" if chosen.method == "direct" and cell is not None else chosen.method
    return medium.constant(chosen.unit) * sum_at(
        request, places, positions, charges, get_engine(chosen.engine), method).potential
