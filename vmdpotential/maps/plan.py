"""A map planned once, with every choice made, and run for one set of positions after another."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential import __version__
from vmdpotential.engines import Engine, get_engine
from vmdpotential.engines.inputs import near
from vmdpotential.engines.result import Result
from vmdpotential.errors import InputError, TaskError, UsageError, Words
from vmdpotential.grid.lattice import Box, Grid, Lattice, Provenance
from vmdpotential.grid.solvation import Solvation
from vmdpotential.grid.stored import StoredGrid
from vmdpotential.maps.choice import choose_method
from vmdpotential.maps.interaction import bind, check_tolerance, medium_of_sum
from vmdpotential.maps.medium import Medium, stated_medium
from vmdpotential.maps.options import TOLERANCE, MapOptions
from vmdpotential.maps.places import choose_cell, lay_lattice
from vmdpotential.maps.solute import in_continuum
from vmdpotential.maps.solution import solution_of
from vmdpotential.methods import Charges, Method, Planned, Request, accuracy
from vmdpotential.methods.choice import SOON
from vmdpotential.methods.slabs import Sink, by_slabs
from vmdpotential.molecule.cell import SAME, Cell, same_cell
from vmdpotential.molecule.selection import is_solvated, is_water, named_selection, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.whole import Complex
from vmdpotential.parameters import warn_unused
from vmdpotential.units import coulomb_constant

log = logging.getLogger(__name__)

@dataclass(frozen=True, eq=False)
class MapPlan:
    """A map with every choice made, for one set of positions after another.

    Parameters
    ----------
    structure : Structure
        What it was planned for.
    chosen : (N,) bool
        Which atoms make the potential.
    charges : (n,) float64
        Theirs, in units in which the sum of q V(r) is the potential.
    method : Method
    request : Request
        With the box in which the atoms of an open boundary have to stay.
    plan : Planned
    engine : Engine
    options : MapOptions
    medium : Medium
    provenance : Provenance
        Of the maps.
    margin : float, A
        Of the box around the atoms of an open boundary.
    together : Complex or None
        Of a continuum, what makes molecules whole that a periodic cell splits.
    """

    structure: Structure
    chosen: NDArray[np.bool_]
    charges: NDArray[np.float64]
    method: Method
    request: Request
    plan: Planned
    engine: Engine
    options: MapOptions
    medium: Medium
    provenance: Provenance
    margin: float
    together: Complex | None = None

    def whole(self, positions: NDArray[np.float64], cell: Cell | None) -> NDArray[np.float64]:
        """Return positions (N, 3), A, as the medium has them: in a continuum molecules are whole."""
        return positions if self.together is None else self.together(positions, cell)

    def fits(self, positions: NDArray[np.float64], cell: Cell | None) -> bool:
        """Return whether the plan is for atoms at these positions (N, 3), A, and for their cell."""
        if self.request.cell is not None:
            return same_cell(self.request.cell, cell, SAME)
        return self.request.charges.box.holds(positions[self.chosen])

    def run(self, positions: NDArray[np.float64],
            run: Callable[[NDArray[np.float64], NDArray[np.float64]], Result] | None = None) -> Result:
        """Return the sum for all atoms at other positions (N, 3), A; by what :meth:`Planned.in_order` returned."""
        return (run or self.plan.run)(*_counted(self.request, positions[self.chosen], self.charges))

    def again(self, positions: NDArray[np.float64], cell: Cell | None) -> MapPlan:
        """Return the plan for positions, or a cell, that this one is not for; as good as this one, not measured."""
        structure = replace(self.structure, positions=positions, cell=cell)
        chosen, cell = positions[self.chosen], None if self.request.cell is None else cell
        lattice = lay_lattice(structure, chosen, cell, self.options.spacing, self.options.padding)
        error = self.plan.error
        request = replace(self.request, target=lattice, cell=cell, charges=_statistics(
            *_counted(replace(self.request, target=lattice, cell=cell), chosen, self.charges), cell, self.margin))
        if error is not None:
            request = request.with_error(min(request.error, accuracy.SPARE * error))
        provenance = replace(self.provenance, cell=None if cell is None else tuple(cell.vectors.ravel().tolist()))
        return replace(self, structure=structure, request=request, plan=self.method.plan(request, self.engine),
                       provenance=provenance)

    def grid(self, result: Result) -> Grid:
        """Return the map of a result."""
        unit, temperature, dielectric = self.options.unit, self.medium.temperature, self.medium.dielectric
        volts = coulomb_constant("V", dielectric=dielectric) / self.medium.constant(unit)
        lattice = self.request.lattice
        if result.extremes is not None:
            described = StoredGrid.described(lattice, unit, temperature, dielectric, self.provenance, result.extremes)
            if self.request.field:
                x, y, z = (StoredGrid.described(lattice, "V/A", None, dielectric, made)
                           for made in _of_field(self.provenance))
                object.__setattr__(described, "field", (x, y, z))
            return described
        return Grid(lattice, result.values(), unit, temperature, dielectric, self.provenance,
                    _field(result, volts, lattice, dielectric, self.provenance), self._solvation(result))

    def _solvation(self, result: Result) -> Solvation | None:
        """Return the energy of solvation of a result, where its method has it."""
        solvated = result.solvated
        if solvated is None:
            return None
        kt = coulomb_constant("kcal/mol/e") / coulomb_constant("kT/e", self.medium.temperature)
        energies = np.zeros(len(self.structure))
        energies[self.chosen] = kt * solvated.energies
        return Solvation(energies, kt * solvated.error)


def plan_map(structure: Structure, options: MapOptions, *, lattice: Lattice | None = None, field: bool = False,
             margin: float = 0.0, soon: float = SOON, sink: Sink | None = None) -> tuple[MapPlan, Result]:
    """Return the plan of a map that keeps the tolerance, and what it gives; see :func:`potential_map`.

    `margin` is how far (A) atoms of an open boundary may leave the box around them; `soon` is 0 where a plan is made
    for many frames, so that the fastest method is worth looking for; `sink` takes a map in slabs.
    """
    medium, unit = medium_of_sum(options), options.unit
    tolerance = TOLERANCE if options.tolerance is None else options.tolerance
    in_water_twice = medium.replaces_water and not medium.method and is_solvated(structure)
    constant = medium.constant(unit)
    cell = choose_cell(structure, options.summation, options.boundary)
    structure, chosen, together = in_continuum(structure, options.atoms, medium)
    if in_water_twice and is_water(structure)[chosen].any():
        log.warning(Words("%s: water is among the charges and around them, and screens twice; {atoms solute} leaves "
                          "it to the medium"), structure.where)
    # in units in which the sum of q V(r) is the potential
    positions, own = structure.positions[chosen], constant * structure.known_charges[chosen]
    if options.sources is not None:
        if not medium.method:
            raise UsageError("sources",
                             "sources are selected in a continuum only, where the other atoms belong to the molecule",
                             "use {method pb}, or {atoms}")
        charged = select(structure, options.sources)
        if (charged & ~chosen).any():
            raise UsageError("sources", f"has {int((charged & ~chosen).sum())} atoms that {{atoms}} leaves out",
                             "choose some of {atoms}", value=str(named_selection(options.sources)))
        own[~charged[chosen]] = 0
    if not own.any():
        log.warning(Words("%s: the charges that make the potential are all 0, and so is the potential; {topology} or "
                          "{charges} may give them"), structure.where)
    if lattice is None:
        lattice = lay_lattice(structure, positions, cell, options.spacing, options.padding)
    backend = get_engine(options.engine)
    bound = bind(options, cell)
    charges = own
    if bound.cutoff is not None and cell is None:
        positions, charges = near(lattice, bound.cutoff, positions, charges)
    request = Request(lattice, cell, bound, _statistics(positions, charges, cell, margin), options.precision,
                      check_tolerance(tolerance), field,
                      solution=solution_of(structure, chosen, options.radii, medium, options.unit))
    volts = coulomb_constant("V", dielectric=medium.dielectric) / constant
    if sink is not None:
        request = by_slabs(request)
    in_units = None if sink is None else _InUnits(sink, volts)
    while True:
        summing, request, exact = choose_method(options, request, positions, charges, backend, soon)
        try:
            plan, result, errors = accuracy.run_to_tolerance(summing, request, positions, charges, exact, backend,
                                                             in_units)
            break
        except TaskError as error:  # rounding is part of the error, most where a potential is small as in a long cell
            if options.summation != "auto" or request.precision == "double" or error.parameter != "tolerance":
                raise
            log.warning(Words("%s: rounding in %s precision is more than {tolerance} %g allows; {precision double} is "
                              "used"), structure.where, request.precision, tolerance)
            request = replace(request, precision="double")
    if not np.isfinite(result.mean_squares()).all():
        raise InputError(f"{structure.where}: its potential is too large for a map (3e38 {unit})",
                         "correct the charges, {temperature} or {dielectric}")
    if options.summation != "auto" and summing.superposes and errors is None:
        warn_unused(("tolerance",), f"the method {options.summation} sums exactly")
    if options.summation == "auto" and summing.name != "cutoff":
        warn_unused(("algorithm",), "only the method cutoff has algorithms; use {method cutoff}")
    if medium.method:
        warn_unused(("precision",), f"the method {medium.method} is computed in a precision of its own")
    if medium.salt is None and not medium.method and not unit.startswith("kT"):
        warn_unused(("temperature",), f"a potential without salt, in {unit}, does not depend on it")
    summed = plan.summed or bound
    provenance = Provenance(
        method=summing.name, interaction=summing.sums(request, summed),
        medium=stated_medium(summing.medium(request, medium.dielectric, medium.temperature), structure, chosen),
        boundary=request.boundary,
        cell=None if cell is None else tuple(cell.vectors.ravel().tolist()), cutoff=summed.cutoff,
        tolerance=tolerance if errors is not None and summing.superposes else None, precision=request.precision,
        engine=backend.name,
        atoms=str(named_selection(options.atoms)),
        inputs=tuple(Path(name).name for name in structure.sources), program=f"vmdpotential {__version__}",
    )
    if errors is not None:
        provenance = replace(provenance, error=errors.everywhere, error_away=errors.away, error_field=errors.field,
                             error_field_away=errors.field_away)
    return MapPlan(structure, chosen, own, summing, request, plan, backend, options, medium, provenance, margin,
                   together), result


def _counted(request: Request, positions: NDArray[np.float64],
             charges: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the charges that a map sees."""
    reach = request.interaction.cutoff
    if reach is None or request.cell is not None:
        return positions, charges
    return near(request.lattice, reach, positions, charges)


def _statistics(positions: NDArray[np.float64], charges: NDArray[np.float64], cell: Cell | None,
                margin: float) -> Charges:
    """Return the statistics of charges that may leave their box by `margin`, A."""
    result = Charges.of(positions, charges, cell)
    if not margin:
        return result
    (a, b, c), (d, e, f) = result.box.low, result.box.high
    return replace(result, box=Box((a - margin, b - margin, c - margin), (d + margin, e + margin, f + margin)))


def _field(result: Result, factor: float, lattice: Lattice, dielectric: float,
           provenance: Provenance) -> tuple[Grid, Grid, Grid] | None:
    """Return the maps of the field along x, y and z, V/A."""
    parts = result.field()
    if parts is None:
        return None
    parts *= np.float32(factor)
    x, y, z = (Grid(lattice, part, "V/A", None, dielectric, made)
               for made, part in zip(_of_field(provenance), parts, strict=True))
    return x, y, z


def _of_field(provenance: Provenance) -> list[Provenance]:
    """Return how the maps of a field along x, y and z were made, with the potential."""
    return [replace(provenance, quantity=f"electric field along {axis}", error=provenance.error_field,
                    error_away=provenance.error_field_away, error_field=None, error_field_away=None) for axis in "xyz"]


class _InUnits:
    """A sink whose field is in V/A."""

    def __init__(self, sink: Sink, factor: float) -> None:
        self.begin, self._put, self._factor = sink.begin, sink.put, np.float32(factor)

    def put(self, start: int, maps: NDArray[np.float32]) -> None:
        """Pass a slab on."""
        maps[1:] *= self._factor
        self._put(start, maps)
