"""The potential of a structure at arbitrary points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.engines import get_engine, with_transforms
from vmdpotential.errors import UsageError
from vmdpotential.io.files.points import as_points
from vmdpotential.maps import bind_interaction, check_tolerance, choose_cell
from vmdpotential.maps.interaction import medium_of_sum
from vmdpotential.maps.options import (
    DEFAULT_TOLERANCE,
    Boundary,
    Engine,
    MethodOptions,
    Spacing,
    Tolerance,
    Unit,
    named_method,
)
from vmdpotential.maps.solute import in_continuum
from vmdpotential.maps.solution import solution_of, with_membrane
from vmdpotential.molecule.conversions import StructureLike
from vmdpotential.molecule.selection import Selection
from vmdpotential.parameters import change_options, takes_fields
from vmdpotential.preparation.charged import with_charges
from vmdpotential.sums.refinement import BY_SPACING, PlanAttempt, refine_to_tolerance


@dataclass(frozen=True, kw_only=True)
class PointOptions(MethodOptions):
    """All options of the potential at points, see :func:`potential_at`."""

    boundary: Boundary = "auto"
    tolerance: Tolerance = None
    spacing: Spacing = 0.5
    atoms: Selection = "all"
    unit: Unit = "kT/e"
    engine: Engine = "auto"


@takes_fields(PointOptions)
def potential_at(structure: StructureLike, points: ArrayLike, options: PointOptions | None = None,
                 **keywords: Any) -> NDArray[np.float64]:
    """Return the full electrostatic potential of a structure with charges at points.

    Options are keywords, or one object of :class:`PointOptions`, which keywords then change.

    Parameters
    ----------
    structure : Structure or path
        Structure. If it has no charges, these are assigned, and missing atoms are added, which is logged.
    points : (P, 3) or (3,) array_like, A
        Positions at which the potential is computed, or a single one.
    options : PointOptions, optional
        All other parameters in one object.
    method : str
        ``direct`` is exact: the sum over all pairs, or in a periodic cell the Ewald sum. ``pme`` is a particle mesh
        sum, whose time is proportional to the numbers of atoms and points. ``auto`` takes the fastest of all methods
        for points, including those of other packages. ``pb`` solves the Poisson-Boltzmann equation on a lattice around
        the molecule; the reaction field of water and ions is interpolated, and the Coulomb potential of the charges
        inside of the molecule is exact.
    boundary : {"auto", "open", "periodic"}
        ``auto`` is periodic if the atoms fill the structure's cell. A periodic boundary includes all images, in
        conducting surroundings, and a background that neutralises the cell, so that the mean of the potential is zero.
    tolerance : float, optional
        Largest root mean square error relative to the rms of the potential at the points, 1e-6 to 0.1. For ``pme`` it
        is measured at 200 of the points, and 1e-4 unless given. If it is given, ``pb`` reduces its spacing until the
        error, from two lattices, is within it, except at points more than 16 A away from the molecule.
    spacing : float
        Lattice spacing of ``pb``, A.
    parameters, radii : object
        Options of ``pb``, see :func:`vmdpotential.maps.potential_map`; `parameters` also as `interaction_params`.
    atoms : str or array
        The atoms whose charges make the potential, see :func:`vmdpotential.molecule.selection.select`.
    unit, temperature, dielectric, screened, medium : object
        Unit and medium of the potential, see :func:`vmdpotential.maps.potential_map`. A screened potential has no
        background. Also as `dielectric_constant` and `ionic_strength`.
    engine : str
        Where an engine has no Fourier transforms, the CPU computes sums on a mesh instead.

    Returns
    -------
    (P,) or () float64, in `unit`
        An atom nearer than 0.01 A to a point contributes as at that distance.

    Raises
    ------
    InputError
        When there are no charges, or no cell for a periodic boundary.
    UsageError
        For invalid names and values.
    TaskError
        When the method cannot reach the tolerance.
    MemoryPlanError
        When the mesh or lattice does not fit into memory.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> vp.potential_at(structure, structure.positions[:3] + 1.0, atoms="protein", screened=0.15).shape
    (3,)
    """
    from vmdpotential.maps.solver import in_solution
    from vmdpotential.sums.points import request_at, sum_at

    chosen = change_options(PointOptions, options, keywords)
    structure, (atoms,) = with_charges(structure, chosen.atoms)
    chosen = replace(chosen, atoms=atoms)
    medium = medium_of_sum(chosen)
    if (named := named_method(chosen.method)) is not None and "points" not in named.targets:
        raise UsageError("method", "this method only computes maps, not values at points", "use {method auto}",
                         value=chosen.method)
    tolerance = check_tolerance(DEFAULT_TOLERANCE if chosen.tolerance is None else chosen.tolerance)
    places, shape = as_points(points)
    cell = choose_cell(structure, "auto" if (solver := chosen.solver) is None else solver.name, chosen.boundary)
    structure, sources, _ = in_continuum(structure, chosen.atoms, medium)
    medium = with_membrane(medium, structure, sources)
    charges = structure.known_charges
    positions, charges = structure.positions[sources], charges[sources]
    if not len(places):
        return np.zeros(shape)
    request = request_at(places, positions, charges, cell, bind_interaction(chosen, cell), tolerance=tolerance)
    engine, constant = get_engine(chosen.engine), medium.constant(chosen.unit)
    if solver is None:
        method = "ewald" if chosen.method == "direct" and cell is not None else chosen.method
        return constant * sum_at(request, positions, charges, engine, method)[1].values().reshape(shape)

    def attempt(spacing: float) -> PlanAttempt[NDArray[np.float64]]:
        solution = solution_of(structure, sources, chosen.radii, medium, chosen.unit, spacing)
        _, result = solver.solve(in_solution(request, solution), positions, charges, with_transforms(engine))
        return PlanAttempt(constant * result.values().reshape(shape), result.errors.largest if result.errors else 0.0)

    return attempt(chosen.spacing).result if chosen.tolerance is None else refine_to_tolerance(
        tolerance, chosen.spacing, attempt, BY_SPACING)
