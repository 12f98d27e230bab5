"""Maps that are planned once, with all choices made, and run for many sets of positions."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import __version__
from vmdpotential.engines import Engine, get_engine
from vmdpotential.errors import InputError, Message, TaskError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.grid.solvation import Solvation
from vmdpotential.grid.stored import StoredGrid
from vmdpotential.grid.targets import Box
from vmdpotential.interactions import Bound
from vmdpotential.maps.choice import check_algorithm, choose_method
from vmdpotential.maps.interaction import bind_interaction, check_tolerance, in_medium, medium_of_sum
from vmdpotential.maps.medium import Medium
from vmdpotential.maps.options import DEFAULT_TOLERANCE, MapOptions
from vmdpotential.maps.places import build_lattice, choose_cell
from vmdpotential.maps.solute import describe_atoms, in_continuum
from vmdpotential.maps.solution import solution_of, with_membrane
from vmdpotential.maps.solver import in_solution
from vmdpotential.molecule.cell import SAME_CELL, Cell, same_cell
from vmdpotential.molecule.selection import is_solvated, is_water, named_selection, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.whole import WholeComplex
from vmdpotential.parameters import warn_unused
from vmdpotential.sums import ChargeStatistics, Method, Plan, PotentialMethod, Request, accuracy
from vmdpotential.sums.choice import QUICK_SUM_FACTOR
from vmdpotential.sums.inputs import charges_near
from vmdpotential.sums.refinement import SAFETY_FACTOR
from vmdpotential.sums.result import Errors, Result
from vmdpotential.sums.slabs import Sink, by_slabs
from vmdpotential.units import coulomb_constant

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class MapPlan:
    """Map with all choices made, which can be computed for many sets of positions.

    Parameters
    ----------
    structure : Structure
        Structure for which the map was planned.
    chosen : (N,) bool
        Mask of the atoms that contribute charges.
    charges : (n,) float64
        Charges of these atoms, in units in which the sum of q V(r) is the potential.
    method : PotentialMethod
    request : Request
        Request, with the box in which the atoms of an open boundary have to stay.
    plan : Plan
    engine : Engine
    options : MapOptions
    medium : Medium
    provenance : Provenance
        Provenance of the maps.
    margin : float, A
        Margin of the box around the atoms of an open boundary.
    together : Complex or None
        For a continuum, makes molecules whole that a periodic cell splits.
    """

    structure: Structure
    chosen: NDArray[np.bool_]
    charges: NDArray[np.float64]
    method: PotentialMethod[Any]
    request: Request
    plan: Plan
    engine: Engine
    options: MapOptions
    medium: Medium
    provenance: Provenance
    margin: float
    together: WholeComplex | None = None

    def whole(self, positions: NDArray[np.float64], cell: Cell | None) -> NDArray[np.float64]:
        """Return positions (N, 3), A, with molecules made whole if the medium is a continuum."""
        return positions if self.together is None else self.together(positions, cell)

    def fits(self, positions: NDArray[np.float64], cell: Cell | None) -> bool:
        """Return whether the plan is valid for atoms at positions (N, 3), A, and their cell."""
        if self.request.cell is not None:
            return same_cell(self.request.cell, cell, SAME_CELL)
        return self.request.charges.box.holds(positions[self.chosen])

    def run(self, positions: NDArray[np.float64]) -> Result:
        """Return the sum for positions (N, 3), A, of all atoms."""
        request = self.request
        return self.plan.run(*_counted(request.lattice, request.cell, request.interaction, positions[self.chosen],
                                       self.charges))

    def renewed(self, positions: NDArray[np.float64], cell: Cell | None, lattice: Lattice | None = None) -> MapPlan:
        """Return a plan for positions or a cell that this one is not valid for, of the same accuracy (not measured).

        The lattice is one around the atoms unless it is given.
        """
        structure = replace(self.structure, positions=positions, cell=cell)
        chosen, cell = positions[self.chosen], None if self.request.cell is None else cell
        lattice = lattice or build_lattice(structure, chosen, cell, self.options.spacing, self.options.padding)
        error = self.plan.error
        request = replace(self.request, target=lattice, cell=cell, charges=_statistics(
            *_counted(lattice, cell, self.request.interaction, chosen, self.charges), cell, self.margin))
        if error is not None:
            request = request.with_error(min(request.error, SAFETY_FACTOR * error))
        provenance = replace(self.provenance, cell=None if cell is None else tuple(cell.vectors.ravel().tolist()))
        return replace(self, structure=structure, request=request, plan=self.method.plan(request, self.engine),
                       provenance=provenance)

    def grid(self, result: Result, energies: bool = True) -> Grid:
        """Return a result as a map; in a continuum with the energies of solvation, unless they are not wanted."""
        unit, temperature, dielectric = self.options.unit, self.medium.temperature, self.medium.dielectric
        volts = coulomb_constant("V", dielectric=dielectric) / self.medium.constant(unit)
        lattice = self.request.lattice
        if result.extremes is not None:
            described = StoredGrid.described(lattice, unit, temperature, dielectric, self.provenance, result.extremes)
            if self.request.field:
                x, y, z = (StoredGrid.described(lattice, "V/A", None, dielectric, provenance)
                           for provenance in _field_provenances(self.provenance))
                object.__setattr__(described, "field", (x, y, z))
            return described
        return Grid(lattice, result.values(), unit, temperature, dielectric, self.provenance,
                    _field(result, volts, lattice, dielectric, self.provenance),
                    self._solvation(result) if energies else None)

    def _solvation(self, result: Result) -> Solvation | None:
        """Return the energy of solvation in a result; None if the method does not compute it."""
        solvated = result.solvated
        if solvated is None:
            return None
        kt = coulomb_constant("kcal/mol/e") / coulomb_constant("kT/e", self.medium.temperature)
        energies = np.zeros(len(self.structure))
        energies[self.chosen] = kt * solvated.energies
        return Solvation(energies, kt * solvated.error, kt * solvated.ions)


def plan_map(structure: Structure, options: MapOptions, *, lattice: Lattice | None = None, field: bool = False,
             margin: float = 0.0, soon: float = QUICK_SUM_FACTOR, sink: Sink | None = None) -> tuple[MapPlan, Result]:
    """Return the plan of a map that keeps the tolerance, and its result for the structure; see :func:`potential_map`.

    `margin` is the distance (A) by which atoms of an open boundary may leave the box around them later; `soon` is 0 if
    the plan is for many frames, for which a search for the fastest method pays off; `sink` receives a map in slabs.
    """
    options = in_medium(options, structure)
    medium, unit = medium_of_sum(options), options.unit
    tolerance = DEFAULT_TOLERANCE if options.tolerance is None else options.tolerance
    screened_and_solvated = medium.salt is not None and not medium.method and is_solvated(structure)
    constant = medium.constant(unit)
    cell = choose_cell(structure, options.summation, options.boundary)
    structure, chosen, together = in_continuum(structure, options.chosen, medium)
    if screened_and_solvated and is_water(structure)[chosen].any():
        log.warning(Message("%s: explicit water and the medium both screen; {atoms solute} leaves the explicit water "
                            "out"), structure.where)
    # in units in which the sum of q V(r) is the potential
    positions, own = structure.positions[chosen], constant * structure.known_charges[chosen]
    if options.sources is not None:
        if not medium.method:
            raise UsageError("sources",
                             "this option is for a continuum, where the other atoms are part of the molecule",
                             "use {method pb}, or {atoms}")
        charged = select(structure, options.sources)
        if (charged & ~chosen).any():
            raise UsageError("sources",
                             f"{int((charged & ~chosen).sum())} of these atoms are not among the atoms of the map",
                             "select some of {atoms}, or more {atoms}", value=str(named_selection(options.sources)))
        own[~charged[chosen]] = 0
    if not own.any():
        log.warning(Message("%s: all charges are 0, and so is the potential; {topology} or {charges} may provide "
                            "charges"), structure.where)
    if lattice is None:
        lattice = build_lattice(structure, positions, cell, options.spacing, options.padding)
    backend = get_engine(options.engine)
    bound = bind_interaction(options, cell)
    positions, charges = _counted(lattice, cell, bound, positions, own)
    request = Request(lattice, cell, bound, _statistics(positions, charges, cell, margin), options.precision,
                      check_tolerance(tolerance), field)
    volts = coulomb_constant("V", dielectric=medium.dielectric) / constant
    if sink is not None:
        request = by_slabs(request)
    in_units = None if sink is None else _InUnits(sink, volts)
    method: PotentialMethod[Any]
    solver = options.solver
    if solver is not None:
        check_algorithm(options)
        medium = with_membrane(medium, structure, chosen)
        solution = solution_of(structure, chosen, options.radii, medium, options.unit)
        method, request = solver, in_solution(request, solution)
        plan, result = solver.solve(request, positions, charges, backend)
        errors, equation = result.errors, solver.describe_equation(solution)
        warn_unused(("precision",), f"the method {solver.name} is computed in a precision of its own")
    else:
        method, request, plan, result, errors = _sum_to_tolerance(
            options, request, positions, charges, backend, soon, in_units, structure.where)
        equation = str(plan.summed or bound)
        if options.summation == "auto" and not method.cutoff:
            warn_unused(("algorithm",), "only the method cutoff has algorithms; use {method cutoff}")
        elif options.summation != "auto" and errors is None:
            warn_unused(("tolerance",), f"the method {options.summation} sums exactly")
    if not np.isfinite(result.mean_squares()).all():
        raise InputError(f"{structure.where}: its potential is too large for a map (3e38 {unit})",
                         "correct the charges, {temperature} or {dielectric}")
    if medium.salt is None and solver is None and not unit.startswith("kT"):
        warn_unused(("temperature",), f"a potential without salt, in {unit}, does not depend on it")
    provenance = Provenance(
        method=method.name, interaction=equation, medium=medium.describe(bound, structure, chosen),
        medium_kind=medium.stated_kind(structure, chosen), boundary=request.boundary,
        cell=None if cell is None else tuple(cell.vectors.ravel().tolist()), cutoff=(plan.summed or bound).cutoff,
        tolerance=tolerance if errors is not None and solver is None else None, precision=request.precision,
        engine=backend.name,
        atoms=str(named_selection(options.chosen)), molecule=describe_atoms(structure.positions[chosen]),
        state=structure.state,
        inputs=tuple(Path(name).name for name in structure.sources), program=f"vmdpotential {__version__}",
    )
    if errors is not None:
        provenance = replace(provenance, error=errors.everywhere, error_away=errors.away, error_field=errors.field,
                             error_field_away=errors.field_away)
    return MapPlan(structure, chosen, own, method, request, plan, backend, options, medium, provenance, margin,
                   together), result


def _sum_to_tolerance(options: MapOptions, request: Request, positions: NDArray[np.float64],
                      charges: NDArray[np.float64], engine: Engine, soon: float, sink: Sink | None,
                      where: str) -> tuple[Method, Request, Plan, Result, Errors | None]:
    """Return the chosen method of sums, its request and plan, and the result with its errors."""
    while True:
        method, request, exact = choose_method(options, request, positions, charges, engine, soon)
        try:
            return method, request, *accuracy.run_to_tolerance(method, request, positions, charges, exact, engine, sink)
        except TaskError as error:  # rounding is part of the error, a large one if the potential is small
            if options.summation != "auto" or request.precision == "double" or error.parameter != "tolerance":
                raise
            log.warning(Message("%s: rounding in %s precision is more than {tolerance} %g allows; {precision double} "
                                "is used"), where, request.precision, request.tolerance)
            request = replace(request, precision="double")


def _counted(lattice: Lattice, cell: Cell | None, bound: Bound, positions: NDArray[np.float64],
             charges: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the positions and charges within the interaction's cutoff of an open map's lattice; otherwise all."""
    if bound.cutoff is None or cell is not None:
        return positions, charges
    return charges_near(lattice, bound.cutoff, positions, charges)


def _statistics(positions: NDArray[np.float64], charges: NDArray[np.float64], cell: Cell | None,
                margin: float) -> ChargeStatistics:
    """Return the statistics of charges, with their box enlarged by `margin`, A."""
    result = ChargeStatistics.of(positions, charges, cell)
    if not margin:
        return result
    (a, b, c), (d, e, f) = result.box.low, result.box.high
    return replace(result, box=Box((a - margin, b - margin, c - margin), (d + margin, e + margin, f + margin)))


def _field(result: Result, factor: float, lattice: Lattice, dielectric: float,
           provenance: Provenance) -> tuple[Grid, Grid, Grid] | None:
    """Return the maps of the field along x, y and z, V/A."""
    components = result.field()
    if components is None:
        return None
    components *= np.float32(factor)
    x, y, z = (Grid(lattice, component, "V/A", None, dielectric, origin)
               for origin, component in zip(_field_provenances(provenance), components, strict=True))
    return x, y, z


def _field_provenances(provenance: Provenance) -> list[Provenance]:
    """Return the provenances of the field's maps along x, y and z, from that of the potential."""
    return [replace(provenance, quantity=f"electric field along {axis}", error=provenance.error_field,
                    error_away=provenance.error_field_away, error_field=None, error_field_away=None) for axis in "xyz"]


class _InUnits:
    """Sink that converts the field to V/A and passes slabs on to another sink."""

    def __init__(self, sink: Sink, factor: float) -> None:
        self.begin, self._put, self._factor = sink.begin, sink.put, np.float32(factor)

    def put(self, start: int, maps: NDArray[np.float32]) -> None:
        """Convert a slab's field and pass the slab on."""
        maps[1:] *= self._factor
        self._put(start, maps)
