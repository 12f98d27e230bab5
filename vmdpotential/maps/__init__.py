"""Potential maps: from a structure to a Grid.

What may be chosen (options), the medium (medium), the interaction (binding), where (places), by which method (choice),
and the map with every choice made (plan).
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.maps.medium import Medium, stated_medium
from vmdpotential.maps.options import CUTOFF, LEAST_TOLERANCE, GridOptions, MapOptions, MediumOptions, SumOptions
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.parameters import changed, takes_fields

if TYPE_CHECKING:
    from vmdpotential.maps.choice import choose_method
    from vmdpotential.maps.interaction import bind, check_tolerance, medium_of
    from vmdpotential.maps.places import choose_cell, lay_lattice
    from vmdpotential.maps.plan import MapPlan, plan_map
    from vmdpotential.methods.slabs import Sink

__all__ = [
    "CUTOFF", "LEAST_TOLERANCE", "GridOptions", "MapOptions", "MapPlan", "Medium", "MediumOptions", "SumOptions",
    "bind", "check_tolerance", "choose_cell", "choose_method", "lay_lattice", "medium_of", "plan_map", "potential_map",
    "stated_medium",
]

#: Modules that are imported when first used, as options are declared without them.
_LATER = {
    "choice": ("choose_method",), "interaction": ("bind", "check_tolerance", "medium_of"),
    "places": ("choose_cell", "lay_lattice"), "plan": ("MapPlan", "plan_map"),
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

    Options are keywords, as in ``potential_map(structure, spacing=1.0, tolerance=1e-3)``, or one object of
    :class:`MapOptions`, which keywords then change.

    Parameters
    ----------
    structure : Structure
        With charges.
    options : MapOptions, optional
        All others in one object.
    method : str
        ``direct``, ``cutoff``, ``pme`` or another registered method; ``auto`` takes the one that has
        the full potential within the tolerance fastest.
    boundary : {"auto", "open", "periodic"}
        ``auto`` is periodic where the atoms fill the structure's cell and the method can do it.
    spacing : float
        A, between lattice points; in an orthogonal periodic cell at most this, so that it divides
        the cell.
    padding : float
        A, around the atoms in an open boundary.
    cutoff : float, optional
        A, of interactions that have one, and of the method cutoff for others; 12 unless given.
    algorithm : {"pair", "mesh", "auto"}
        Of the method cutoff: pair by pair, exactly; the shifted potential on a mesh, to the tolerance;
        or the faster of the two.
    interaction : str
        A registered interaction; ``auto`` is the method's own.
    parameters : mapping
        Further parameters of the interaction, or of a method that has some of its own; also as `set` and
        `interaction_params`, as commands name them.
    smear : float
        A, standard deviation of the Gaussian that every charge is, erf(r / (sqrt(2) s)) / r; 0 for points. VMD's
        PMEPot gives it as an Ewald factor, 1 / (sqrt(2) s).
    radii : str
        Of the atoms, for methods that need them: ``auto`` for the file's own, one of
        :data:`vmdpotential.molecule.radii.SETS`, or ``auto+mbondi2`` for that set where the file has none.
    tolerance : float, optional
        Of methods that are not exact: root mean square error over that of the potential, 1e-6 to 0.1, over all
        points, and over those farther than 2 A from every charge; of the field too where it is asked for; 1e-4 unless
        given. The map's provenance states the errors that were measured. Where it is given, the method ``pb`` uses
        smaller spacings until the errors outside of the molecule and at its surface are within it.
    atoms : str or array
        The atoms whose charges make the potential, see :func:`vmdpotential.molecule.selection.select`.
    sources : str or array, optional
        Those of the atoms whose charges count, with the permittivity and the ions around all of them; for ``pb``.
    unit, temperature, dielectric : object
        Of the values, see :func:`vmdpotential.units.coulomb_constant`; a dielectric of 1 unless given, or of 78.5 where
        the potential is screened; also as `dielectric_constant`.
    screened : float, optional
        M, of a 1:1 salt in water, whose ions screen the potential after Debye and Hueckel: exp(-r / L) / (eps r), in a
        periodic cell of all images; the method cutoff ends it where the rest is below the tolerance. Also as
        `ionic_strength`.
    medium : Medium, optional
        Instead of `screened`, `dielectric`, `temperature` and, of a continuum, `method` and `parameters`:
        :meth:`Medium.vacuum`, :meth:`Medium.screened` or :meth:`Medium.continuum`.
    field : bool
        Whether to compute the electric field too, as the map's attribute ``field``: three maps, in V/A.
    precision : {"single", "compensated", "double"}
        Of the sums; values are float32.
    engine : str
        What computes: ``auto``, ``cpu``, ``cuda`` or another registered one.
    lattice : Lattice, optional
        Where to compute, instead of around the atoms or over the cell.
    sink : Sink, optional
        What a map goes to, slab by slab, that does not fit into memory, such as
        :class:`vmdpotential.io.maps.MapWriters`.

    Returns
    -------
    Grid
        A point nearer than 0.01 A to an atom has the potential at 0.01 A, and no field from it. Of a map that went
        to the sink, a :class:`vmdpotential.grid.stored.StoredGrid` that says what it is and has no values.

    Raises
    ------
    InputError
        When there are no charges, no atoms, or no cell for a periodic boundary, or when values would
        be larger than float32 holds.
    UsageError
        For names, values and combinations that do not fit, such as a cutoff for a method that has none.
    MemoryPlanError
        When the map does not fit into memory.
    TaskError
        When the tolerance cannot be kept.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> grid = vp.potential_map(structure, atoms="protein", screened=0.15, spacing=2.0)
    >>> grid.unit, grid.provenance.method
    ('kT/e', 'pme')
    """
    from vmdpotential.maps.interaction import check_tolerance
    from vmdpotential.maps.plan import plan_map
    from vmdpotential.maps.refine import refined

    structure = as_structure(structure)
    chosen = changed(MapOptions, options, keywords)
    tolerance, own = chosen.tolerance, chosen.own

    def attempt(spacing: float) -> tuple[Grid, float]:
        planned, result = plan_map(structure, replace(chosen, spacing=spacing), lattice=lattice, field=field, sink=sink)
        grid = planned.grid(result)
        made = grid.provenance
        if tolerance is not None and own is not None and made.error is None:
            raise UsageError("tolerance", f"the method {own.name} does not state its error", "leave it out",
                             value=f"{tolerance:g}")
        return grid, max(made.error or 0.0, made.error_away or 0.0)

    if tolerance is None or own is None or lattice is not None:
        return attempt(chosen.spacing)[0]
    return refined(check_tolerance(tolerance), chosen.spacing, attempt)
