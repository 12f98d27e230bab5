"""Potential maps: from a structure to a Grid.

Modules: the options (options), the medium (medium), the interaction (interaction), cell and lattice (places), the
summation method (choice), and planned maps (plan); energies of solvation and binding (solvation, binding).
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.maps.medium import Medium
from vmdpotential.maps.options import (
    DEFAULT_CUTOFF,
    LEAST_TOLERANCE,
    GridOptions,
    MapOptions,
    MediumOptions,
    SumOptions,
)
from vmdpotential.molecule.conversions import StructureLike
from vmdpotential.parameters import change_options, options_set, takes_fields, warn_unused
from vmdpotential.preparation.charged import with_charges

if TYPE_CHECKING:
    from vmdpotential.maps.choice import choose_method
    from vmdpotential.maps.interaction import bind_interaction, check_tolerance, medium_of
    from vmdpotential.maps.places import build_lattice, choose_cell
    from vmdpotential.maps.plan import MapPlan, plan_map
    from vmdpotential.sums.slabs import Sink

__all__ = [
    "DEFAULT_CUTOFF", "LEAST_TOLERANCE", "GridOptions", "MapOptions", "MapPlan", "Medium", "MediumOptions",
    "SumOptions", "bind_interaction", "build_lattice", "check_tolerance", "choose_cell", "choose_method",
    "medium_of", "plan_map", "potential_map",
]

#: Modules that are imported when first used, as options are declared without them.
_LATER = {
    "choice": ("choose_method",), "interaction": ("bind_interaction", "check_tolerance", "medium_of"),
    "places": ("choose_cell", "build_lattice"), "plan": ("MapPlan", "plan_map"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"vmdpotential.maps.{module}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


@takes_fields(MapOptions)
def potential_map(structure: StructureLike, options: MapOptions | None = None, *, field: bool = False,
                  lattice: Lattice | None = None, sink: Sink | None = None, **keywords: Any) -> Grid:
    """Return the electrostatic potential map of a structure with charges.

    Options are given as keywords, as in ``potential_map(structure, spacing=1.0, tolerance=1e-3)``, or as an object of
    :class:`MapOptions`, whose fields keywords override.

    Parameters
    ----------
    structure : Structure or path
        Structure. If it has no charges, these are assigned, and missing atoms are added, which is logged.
    options : MapOptions, optional
        All other options in one object.
    method : str
        Summation method: ``direct``, ``cutoff``, ``pme`` or another registered one; ``auto`` is the fastest of those
        that compute the full potential within the tolerance.
    boundary : {"auto", "open", "periodic"}
        ``auto`` is periodic if the atoms fill the structure's cell and the method supports periodic cells.
    spacing : float
        Distance between lattice points, A; in an orthogonal periodic cell the largest distance not above it that
        divides the cell.
    padding : float
        Margin around the atoms in an open boundary, A.
    cutoff : float, optional
        Cutoff distance of interactions that have one, and of the method cutoff for others, A; 12 unless given.
    algorithm : {"pair", "mesh", "auto"}
        Algorithm of the method cutoff: the exact sum over pairs; the shifted potential on a mesh, within the
        tolerance; or the faster of the two.
    interaction : str
        A registered interaction; ``auto`` is the method's own.
    parameters : mapping
        Further parameters of the interaction, or of a method that has parameters; also as `set` and
        `interaction_params`, as commands name them.
    smear : float
        Standard deviation s of Gaussian charges, A, with the potential erf(r / (sqrt(2) s)) / r; 0 for point charges.
        VMD's PMEPot has the Ewald factor 1 / (sqrt(2) s) instead.
    radii : str
        Atomic radii, for methods that need them: ``auto`` for those of the file, or those of mbondi2 if it has none, or
        one of :data:`vmdpotential.molecule.radii.RADII_SETS`.
    tolerance : float, optional
        Largest error of methods that are not exact: the rms error relative to the rms potential, 1e-6 to 0.1, over all
        points and over those farther than 2 A from every charge, and that of the field if it is computed; 1e-4 unless
        given. The map's provenance states the measured errors. If a tolerance is given, the method ``pb`` reduces the
        spacing until the errors outside the molecule and at its surface are within it.
    atoms : str or array, optional
        Atoms that contribute charges, see :func:`vmdpotential.molecule.selection.select`: the solute unless given, or
        all in the medium explicit. ``solute`` excludes the alkali and halide ions of a solvated system, except in the
        medium explicit.
    sources : str or array, optional
        For ``pb``, the atoms among `atoms` that contribute charges, while all of `atoms` determine the permittivity
        and the volume of the ions.
    unit, temperature, dielectric : object
        Unit of the values, and temperature and relative permittivity of the medium, see
        :func:`vmdpotential.units.coulomb_constant`. The permittivity is 1 unless given, or 78.5 if the potential is
        screened; also as `dielectric_constant`.
    screened : float, optional
        Concentration, M, of a 1:1 salt in water, whose ions screen the potential (Debye-Hueckel): exp(-r / L) / (eps
        r), with all images in a periodic cell; the method cutoff truncates it where the rest is below the tolerance.
        Also as `ionic_strength`.
    medium : str or Medium, optional
        ``water``, the solute in a Poisson-Boltzmann continuum of water with 0.15 M of salt; ``screened``, the solute's
        charges screened as by Debye and Hueckel; ``explicit``, all charges; or ``vacuum``, the solute alone. Unless
        given, the one that other options imply (a method for a continuum: water; `screened`: screened; another method,
        `cutoff`, `interaction`, `smear`, a periodic boundary, or `atoms` with water: explicit, or vacuum if there is no
        water), and otherwise water. Or an object, which replaces `screened`, `dielectric`, `temperature` and, for a
        continuum, `method` and `parameters`: :meth:`Medium.vacuum`, :meth:`Medium.screened` or
        :meth:`Medium.continuum`.
    field : bool
        Whether to compute the electric field too, as the map's attribute ``field``: three maps, in V/A.
    precision : {"single", "compensated", "double"}
        Floating-point precision of the sums; values are float32.
    engine : str
        Compute engine: ``auto``, ``cpu``, ``cuda`` or another registered one.
    lattice : Lattice, optional
        Points of the map, instead of those around the atoms or over the cell.
    sink : Sink, optional
        Receiver of the slabs of a map that does not fit into memory, such as
        :class:`vmdpotential.io.maps.MapWriters`.

    Returns
    -------
    Grid
        Map of the potential. A point closer than 0.01 A to an atom has the potential at 0.01 A, and no field from
        this atom. If the map went to the sink, a :class:`vmdpotential.grid.stored.StoredGrid` that describes it,
        without values.

    Raises
    ------
    InputError
        If there are no charges, no atoms, or no cell for a periodic boundary, or if values would exceed the range
        of float32.
    UsageError
        For invalid names, values and combinations, such as a cutoff for a method that has none.
    MemoryPlanError
        If the map does not fit into memory.
    TaskError
        If the tolerance cannot be kept.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> grid = vp.potential_map(structure, medium="screened", spacing=2.0)
    >>> grid.unit, grid.provenance.medium
    ('kT/e', 'screened, 0.15 M, dielectric 78.5')
    """
    from vmdpotential.maps.interaction import check_tolerance, in_medium
    from vmdpotential.maps.plan import plan_map
    from vmdpotential.sums.refinement import BY_SPACING, PlanAttempt, refine_to_tolerance

    if not isinstance(field, bool):
        raise UsageError("field", f"True or False is needed, not {type(field).__name__}")
    asked = change_options(MapOptions, options, keywords)
    structure, (atoms, sources) = with_charges(structure, asked.atoms, asked.sources)
    chosen = in_medium(replace(asked, atoms=atoms, sources=sources), structure)
    tolerance, own = chosen.tolerance, chosen.solver

    def attempt(spacing: float) -> PlanAttempt[Grid]:
        planned, result = plan_map(structure, replace(chosen, spacing=spacing), lattice=lattice, field=field, sink=sink)
        grid = planned.grid(result)
        provenance = grid.provenance
        if tolerance is not None and own is not None and provenance.error is None:
            raise UsageError("tolerance", f"the method {own.name} does not state its error", "leave it out",
                             value=f"{tolerance:g}")
        return PlanAttempt(grid, max(provenance.error or 0.0, provenance.error_away or 0.0))

    with options_set(keywords):
        if lattice is not None:
            warn_unused(("spacing", "padding"), "the grid is that of {lattice}")
            if own is not None:
                warn_unused(("tolerance",), "a given grid is not made finer")
        if tolerance is None or own is None or lattice is not None:
            return attempt(chosen.spacing).result
        return refine_to_tolerance(check_tolerance(tolerance), chosen.spacing, attempt, BY_SPACING)
