"""Potential maps: from a structure to a Grid."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as field_
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential import __version__, memory, registry
from vmdpotential.engines import Engine, get_engine, near
from vmdpotential.engines.result import Result
from vmdpotential.errors import InputError, UsageError, Words
from vmdpotential.grid.lattice import Box, Grid, Lattice, Provenance, bounds
from vmdpotential.grid.stored import StoredGrid
from vmdpotential.interactions import Bound, complete
from vmdpotential.interactions.screened_coulomb import WATER, in_water
from vmdpotential.methods import (
    Charges,
    Estimate,
    Method,
    Plan,
    Planned,
    Refusal,
    Request,
    Solution,
    accuracy,
    check_memory,
    map_bytes,
)
from vmdpotential.methods.accuracy import Sample
from vmdpotential.methods.slabs import Sink, SlabResult, by_slabs
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.molecule.selection import Selection, is_solvated, is_water, named_selection, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant

log = logging.getLogger(__name__)

#: Atoms in 1 A^3 that no matter has (water 0.1, diamond 0.18): a cell with more is a mistake.
DENSEST = 1.0

#: A, of interactions that have one, unless asked for otherwise.
CUTOFF = 12.0

#: Below this the rounding of single precision values counts.
LEAST_TOLERANCE = 1e-6

#: Sums that take less than this many times an engine's fixed cost are not worth looking for a faster one.
SOON = 2.0


def potential_map(
    structure: Structure,
    *,
    method: str = "auto",
    boundary: str = "auto",
    spacing: float = 0.5,
    padding: float = 10.0,
    cutoff: float | None = None,
    algorithm: str = "pair",
    interaction: str = "auto",
    parameters: Mapping[str, float] | None = None,
    smear: float = 0.0,
    radii: str = "auto",
    tolerance: float = 1e-4,
    atoms: Selection = "all",
    unit: str = "kT/e",
    temperature: float = DEFAULT_TEMPERATURE,
    dielectric: float | None = None,
    screened: float | None = None,
    field: bool = False,
    precision: str = "single",
    engine: str = "auto",
    lattice: Lattice | None = None,
    sink: Sink | None = None,
) -> Grid:
    """Return the electrostatic potential map of a structure with charges.

    Parameters
    ----------
    structure : Structure
    method : str
        ``direct``, ``cutoff``, ``pme`` or another registered method; ``auto`` takes the one that has
        the full potential within the tolerance soonest.
    boundary : {"auto", "open", "periodic"}
        ``auto`` is periodic where the structure has a cell and the method can do it.
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
        Further parameters of the interaction, or of a method that has some of its own.
    smear : float
        A, standard deviation of the Gaussian that every charge is, erf(r / (sqrt(2) s)) / r; 0 for points. VMD's
        PMEPot gives it as an Ewald factor, 1 / (sqrt(2) s).
    radii : str
        Of the atoms, for methods that need them: ``auto`` for the file's own, or one of
        :data:`vmdpotential.molecule.radii.SETS`.
    tolerance : float
        Of methods that are not exact: root mean square error over that of the potential, 1e-6 to 0.1, over all
        points, and over those farther than 2 A from every charge; of the field too where it is asked for. The
        map's provenance states the errors that were measured.
    atoms : str or array
        The atoms whose charges make the potential, see :func:`vmdpotential.molecule.selection.select`.
    unit, temperature, dielectric
        Of the values, see :func:`vmdpotential.units.coulomb_constant`; a dielectric of 1 unless given, or of 78.5 where
        the potential is screened.
    screened : float, optional
        M, of a 1:1 salt in water, whose ions screen the potential after Debye and Hueckel: exp(-r / L) / (eps r), in a
        periodic cell of all images; the method cutoff ends it where the rest is below the tolerance.
    field : bool
        Whether to compute the electric field too, as the map's attribute ``field``: three maps, in V/A.
    precision : {"single", "compensated", "double"}
        Of the sums; values are float32.
    engine : str
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
    """
    planned, result = plan_map(
        structure, Wanted(method, algorithm, interaction, parameters or {}, cutoff, smear, screened, radii),
        boundary=boundary, spacing=spacing, padding=padding, tolerance=tolerance, atoms=atoms, unit=unit,
        temperature=temperature, dielectric=dielectric, field=field, precision=precision, engine=engine,
        lattice=lattice, sink=sink)
    return planned.grid(result)


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
    unit, temperature, dielectric, provenance
        Of the maps.
    spacing, padding, margin : float, A
        Of the lattice, and of the box around the atoms of an open boundary.
    """

    structure: Structure
    chosen: NDArray[np.bool_]
    charges: NDArray[np.float64]
    method: Method
    request: Request
    plan: Planned
    engine: Engine
    unit: str
    temperature: float
    dielectric: float
    provenance: Provenance
    spacing: float
    padding: float
    margin: float

    def fits(self, positions: NDArray[np.float64], cell: Cell | None) -> bool:
        """Tell whether the plan is for atoms at these positions (N, 3), A, and for their cell."""
        planned = self.request.cell
        if planned is not None:
            return cell is not None and bool(np.allclose(planned.vectors, cell.vectors, rtol=0, atol=1e-4))
        return self.request.charges.box.holds(positions[self.chosen])

    def run(self, positions: NDArray[np.float64]) -> Result:
        """Return the sum for all atoms at other positions (N, 3), A."""
        return self.plan.run(*_counted(self.request, positions[self.chosen], self.charges))

    def again(self, positions: NDArray[np.float64], cell: Cell | None) -> MapPlan:
        """Return the plan for positions, or a cell, that this one is not for; as good as this one, not measured."""
        structure = replace(self.structure, positions=positions, cell=cell)
        chosen, cell = positions[self.chosen], None if self.request.cell is None else cell
        lattice = lay_lattice(structure, chosen, cell, self.spacing, self.padding)
        error = self.plan.error
        request = replace(self.request, lattice=lattice, cell=cell, charges=_statistics(
            *_counted(replace(self.request, lattice=lattice, cell=cell), chosen, self.charges), cell, self.margin))
        if error is not None:
            request = request.with_error(min(request.error, accuracy.SPARE * error))
        provenance = replace(self.provenance, cell=None if cell is None else tuple(cell.vectors.ravel().tolist()))
        return replace(self, structure=structure, request=request, plan=self.method.plan(request, self.engine),
                       provenance=provenance)

    def grid(self, result: Result) -> Grid:
        """Return the map of a result."""
        volts = coulomb_constant("V", dielectric=self.dielectric) / coulomb_constant(
            self.unit, self.temperature, self.dielectric)
        lattice = self.request.lattice
        if isinstance(result, SlabResult):
            described = StoredGrid.described(lattice, self.unit, self.temperature, self.dielectric, self.provenance,
                                             (result.low, result.high))
            if self.request.field:
                x, y, z = (StoredGrid.described(lattice, "V/A", None, self.dielectric, made)
                           for made in _of_field(self.provenance))
                object.__setattr__(described, "field", (x, y, z))
            return described
        return Grid(lattice, result.values(), self.unit, self.temperature, self.dielectric, self.provenance,
                    _field(result, volts, lattice, self.dielectric, self.provenance))


def _counted(request: Request, positions: NDArray[np.float64],
             charges: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the charges that a map sees."""
    reach = request.interaction.cutoff
    if reach is None or request.cell is not None:
        return positions, charges
    return near(request.lattice, reach, positions, charges)


def _solution(structure: Structure, chosen: NDArray[np.bool_], wanted: Wanted, unit: str, temperature: float,
              dielectric: float) -> Solution | None:
    """Return what a method is told that has parameters of its own."""
    if wanted.own is None:
        return None
    found, source = atomic_radii(structure, chosen, wanted.radii)
    return Solution(wanted.parameters, found, source, dielectric, temperature, unit,
                    coulomb_constant(unit, temperature, dielectric))


def _statistics(positions: NDArray[np.float64], charges: NDArray[np.float64], cell: Cell | None,
                margin: float) -> Charges:
    """Return the statistics of charges that may leave their box by `margin`, A."""
    found = Charges.of(positions, charges, cell)
    if not margin:
        return found
    (a, b, c), (d, e, f) = found.box.low, found.box.high
    return replace(found, box=Box((a - margin, b - margin, c - margin), (d + margin, e + margin, f + margin)))


def plan_map(structure: Structure, wanted: Wanted, *, boundary: str, spacing: float, padding: float, tolerance: float,
             atoms: Selection, unit: str, temperature: float, dielectric: float | None, field: bool, precision: str,
             engine: str, lattice: Lattice | None = None, margin: float = 0.0, soon: float = SOON,
             sink: Sink | None = None) -> tuple[MapPlan, Result]:
    """Return the plan of a map that keeps the tolerance, and what it gives; see :func:`potential_map`.

    `margin` is how far (A) atoms of an open boundary may leave the box around them; `soon` is 0 where a plan is made
    for many frames, so that the fastest method is worth looking for; `sink` takes a map in slabs.
    """
    in_water_twice = (wanted.screened is not None or wanted.own is not None) and is_solvated(structure)
    wanted, dielectric = in_medium(wanted, dielectric, temperature)
    constant = coulomb_constant(unit, temperature, dielectric)
    cell = choose_cell(structure, wanted.method, boundary)
    chosen = select(structure, atoms)
    if in_water_twice and is_water(structure)[chosen].any():
        if wanted.own is not None:
            raise InputError(f"{_name(structure)}: its waters are among the charges, and the solution replaces them",
                             "use {atoms solute}")
        log.warning(Words("%s: water is among the charges and around them, and screens twice; {atoms solute} leaves "
                          "it to the medium"), _name(structure))
    # in units in which the sum of q V(r) is the potential
    positions, own = structure.positions[chosen], constant * structure.known_charges[chosen]
    if lattice is None:
        lattice = lay_lattice(structure, positions, cell, spacing, padding)
    backend = get_engine(engine)
    bound = bind(wanted, cell)
    charges = own
    if bound.cutoff is not None and cell is None:
        positions, charges = near(lattice, bound.cutoff, positions, charges)
    request = Request(lattice, cell, bound, _statistics(positions, charges, cell, margin), precision,
                      check_tolerance(tolerance), field,
                      solution=_solution(structure, chosen, wanted, unit, temperature, dielectric))
    volts = coulomb_constant("V", dielectric=dielectric) / constant
    if sink is not None:
        request = by_slabs(request)
    summing, request, exact = choose_method(wanted, request, positions, charges, backend, soon)
    plan, result, errors = accuracy.run_to_tolerance(summing, request, positions, charges, exact, backend,
                                                     None if sink is None else _InUnits(sink, volts))
    if not np.isfinite(result.mean_squares()).all():
        raise InputError(f"{_name(structure)}: its potential is too large for a map (3e38 {unit})",
                         "correct the charges, {temperature} or {dielectric}")
    summed = plan.work.pairs if isinstance(plan, Plan) else None
    if summed is None or summed.end is None:  # where the method has not ended it
        summed = bound
    provenance = Provenance(
        method=summing.name, interaction=summing.sums(request, summed),
        medium=summing.medium(request, dielectric, temperature), boundary=request.boundary,
        cell=None if cell is None else tuple(cell.vectors.ravel().tolist()), cutoff=summed.cutoff,
        tolerance=None if errors is None else tolerance, precision=precision, engine=backend.name,
        atoms=str(named_selection(atoms)),
        inputs=tuple(Path(name).name for name in structure.sources), program=f"vmdpotential {__version__}",
    )
    if errors is not None:
        provenance = replace(provenance, error=errors.everywhere, error_away=errors.away, error_field=errors.field,
                             error_field_away=errors.field_away)
    return MapPlan(structure, chosen, own, summing, request, plan, backend, unit, temperature, dielectric, provenance,
                   spacing, padding, margin), result


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


def check_tolerance(tolerance: float) -> float:
    """Return a tolerance that can be kept.

    Raises
    ------
    UsageError
    """
    if not LEAST_TOLERANCE <= tolerance <= 0.1:
        raise UsageError("tolerance", f"give {LEAST_TOLERANCE:g} to 0.1", value=f"{tolerance:g}")
    return tolerance


@dataclass(frozen=True)
class Wanted:
    """What of a sum is asked for by name: method, algorithm, interaction with its parameters, cutoff and smear in A.

    `screened` is the molarity of a salt in water, in the place of an interaction (:func:`in_medium`); `radii` are a
    set's name, for methods that need them.
    """

    method: str = "auto"
    algorithm: str = "pair"
    interaction: str = "auto"
    parameters: Mapping[str, float] = field_(default_factory=dict)
    cutoff: float | None = None
    smear: float = 0.0
    screened: float | None = None
    radii: str = "auto"

    @property
    def own(self) -> Method | None:
        """The method that is named, where it has parameters of its own."""
        method: Method | None = None if self.method == "auto" else registry.get("method", self.method)
        return method if method is not None and method.quantities else None

    @property
    def methods(self) -> list[Method]:
        """The methods there are to choose from: the one that is named, or all that sum charges."""
        if self.method != "auto":
            return [registry.get("method", self.method)]
        found: list[Method] = [registry.get("method", name) for name in registry.available("method")]
        return [method for method in found if method.superposes]


def in_medium(wanted: Wanted, dielectric: float | None, temperature: float) -> tuple[Wanted, float]:
    """Return what is wanted with the interaction of its medium, and the permittivity: 1, or water's, unless given.

    Raises
    ------
    UsageError
        For a screened potential of another interaction.
    """
    own = wanted.own
    if own is not None:
        salt = {} if wanted.screened is None else {"salt": wanted.screened}
        values = complete(own.quantities, {**salt, **wanted.parameters}, f"the method {own.name}")
        return replace(wanted, parameters=values, screened=None), own.dielectric if dielectric is None else dielectric
    if wanted.radii != "auto":
        raise UsageError("radii", "are for a method that needs them", "use {method pb}", value=wanted.radii)
    if wanted.screened is None:
        return wanted, 1.0 if dielectric is None else dielectric
    if wanted.interaction != "auto" or wanted.smear or wanted.parameters:
        raise UsageError("screened", "is an interaction by itself", "leave out {interaction}, {set} and {smear}",
                         value=f"{wanted.screened:g}")
    dielectric = WATER if dielectric is None else dielectric
    bound = in_water(wanted.screened, temperature, dielectric)
    return replace(wanted, interaction=bound.interaction.name, parameters=bound.values, screened=None), dielectric


def bind(wanted: Wanted, cell: Cell | None) -> Bound:
    """Return the interaction that is wanted, with its parameters.

    One without a cutoff of its own is ended at `cutoff` where the method asks for it, or where no method sums it
    whole.

    Raises
    ------
    UsageError
        For names and values that do not fit.
    """
    methods = wanted.methods
    name = wanted.interaction
    values = {} if wanted.own else dict(wanted.parameters)
    if wanted.smear:
        if name not in ("auto", "gaussian"):
            raise UsageError("smear", f"makes the interaction gaussian, not {name}", "leave out {interaction}",
                             value=f"{wanted.smear:g}")
        name, values["smear"] = "gaussian", wanted.smear
        if all(method.interactions is not None and name not in method.interactions for method in methods):
            raise UsageError("smear", f"the method {wanted.method} sums point charges alone", "use {method auto}",
                             value=f"{wanted.smear:g}")
    if name == "auto":
        name = "coulomb" if wanted.method == "auto" else methods[0].interaction
    interaction = registry.get("interaction", name)
    has_cutoff = any(quantity.name == "cutoff" for quantity in interaction.quantities)
    if has_cutoff:
        values.setdefault("cutoff", wanted.cutoff or CUTOFF)
    bound: Bound = interaction.bind(**values)
    boundary = "open" if cell is None else "periodic"
    whole = [method for method in methods if not method.cutoff and boundary in method.boundaries
             and (method.interactions is None or name in method.interactions)]
    truncated = not has_cutoff and not whole and any(method.cutoff for method in methods)
    truncated = truncated and (bound.decay is None or wanted.cutoff is not None)  # else the tolerance tells where
    if truncated:
        bound = bound.truncated(wanted.cutoff or CUTOFF)
    if bound.cutoff is None and wanted.cutoff is not None:
        raise UsageError("cutoff", f"the method {wanted.method} has none" if wanted.method != "auto" else
                         f"the full potential of {name} has none", "use {method cutoff}", value=f"{wanted.cutoff:g}")
    if truncated and wanted.cutoff is None:  # an end that nobody asked for
        rest = abs(float(bound(np.nextafter(CUTOFF, 0)))) * CUTOFF
        if rest > 0.01:
            log.warning(
                Words("%s is cut off at %g A, where it is still %.2g %% of q/r; {cutoff} sets another distance"),
                name, CUTOFF, 100 * rest)
    return bound


def choose_method(wanted: Wanted, request: Request, positions: NDArray[np.float64], charges: NDArray[np.float64],
                  engine: Engine, soon: float = SOON) -> tuple[Method, Request, Sample | None]:
    """Return the method that is wanted, or the one that should be the soonest of all that keep the tolerance.

    One that does not fit into memory is taken only where none does; one that is exact, without looking further, where
    it takes less than `soon` times the engine's fixed cost.

    Returns
    -------
    Method
    Request
        With the error that keeps the tolerance, where the method is not exact.
    Sample or None
        The exact potential at some points, where the method is not exact.

    Raises
    ------
    UsageError
        When the method, or none, can do what is requested.
    """
    check_memory(request, Estimate(0.0, map_bytes(request)))
    refused: list[tuple[str, Refusal]] = []
    best: tuple[tuple[bool, float], Method] | None = None
    room = memory.limit()
    exact = None
    # those that are exact first: where one is soon enough, nothing has to be sampled
    for method in sorted(_ways(wanted, request.interaction), key=lambda method: not method.exact):
        estimate: Estimate | Refusal | None = method.refusal(request)
        if estimate is None:
            if best is not None and not method.exact and best[0] < (False, soon * engine.costs.fixed):
                break
            if not method.exact and exact is None:
                exact = accuracy.sample(request, positions, charges, engine)
                goal = request.tolerance * exact.goal
                request = request.with_error(goal if goal > 0 else np.inf)
            estimate = method.estimate(request, engine)
        if isinstance(estimate, Refusal):
            refused.append((method.name, estimate))
        elif best is None or (estimate.bytes > room, estimate.seconds) < best[0]:
            best = (estimate.bytes > room, estimate.seconds), method
    if best is None:
        name, why = refused[0]
        raise why.as_error(name)
    return best[1], request, None if best[1].exact else exact


def _ways(wanted: Wanted, bound: Bound) -> list[Method]:
    """Return the methods that are wanted, of one that has several algorithms each."""
    result: list[Method] = []
    for method in wanted.methods:
        ways: Mapping[str, Method] = getattr(method, "algorithms", {})
        if not ways and wanted.algorithm != "pair" and wanted.method != "auto":
            raise UsageError("algorithm", "is for the method cutoff", "use {method cutoff}", value=wanted.algorithm)
        if ways and wanted.algorithm not in (*ways, "auto"):
            raise UsageError("algorithm", f"choose one of {', '.join(ways)}, auto", value=wanted.algorithm)
        if not ways:
            result.append(method)
        elif bound.decay is not None and bound.cutoff is None and wanted.algorithm != "mesh":
            result.append(getattr(method, "of_tail", method))
        elif wanted.algorithm == "auto":
            result.extend(ways.values())
        else:
            result.append(ways[wanted.algorithm])
    return result


def _name(structure: Structure) -> str:
    return structure.sources[0] if structure.sources else "structure"


def choose_cell(structure: Structure, method: str, boundary: str) -> Cell | None:
    """Return the periodic cell, None for an open boundary; `method` and `boundary` may be ``auto``.

    A crystal's asymmetric unit, a part of what its cell holds, has an open boundary by itself.

    Raises
    ------
    UsageError
        When the method cannot do the boundary.
    InputError
        When the structure has no cell for a periodic one, or is a crystal's asymmetric unit.
    """
    boundaries = ("open", "periodic") if method == "auto" else registry.get("method", method).boundaries
    if boundary == "auto":
        boundary = "periodic" if structure.cell is not None and "periodic" in boundaries else "open"
        if structure.cell is None and is_solvated(structure):
            log.warning("%s: is solvated and has no periodic cell, so the boundary is open; {cell} gives it one",
                        _name(structure))
        if boundary == "periodic" and structure.cell is not None and not structure.cell.whole:
            boundary = "open"
            log.warning("%s: is the asymmetric unit of a crystal (%s); the boundary is open, with these atoms alone",
                        _name(structure), structure.cell.space_group)
    if boundary not in boundaries:
        reason = registry.get("method", method).boundary_reason
        raise UsageError("boundary", f"the method {method} cannot do it{reason}", value=boundary,
                         cure=f"use {' or '.join(f'{{boundary {b}}}' for b in boundaries)}, or another {{method}}")
    if boundary == "open":
        return None
    name = _name(structure)
    if structure.cell is None:
        raise InputError(f"{name}: has no periodic cell", "use {boundary open}")
    structure.require_whole_cell("use {boundary open}, expand it to the cell")
    if structure.cell.volume * DENSEST < len(structure):
        raise InputError(
            f"{name}: {len(structure)} atoms do not fit into its periodic cell of {structure.cell.volume:.3g} A^3",
            "correct the cell, or use {boundary open}"
        )
    return structure.cell


def lay_lattice(
    structure: Structure, positions: NDArray[np.float64], cell: Cell | None, spacing: float, padding: float
) -> Lattice:
    """Return the lattice around positions, or over the periodic cell.

    The cell is laid around the middle of the structure's atoms, since programs differ in where they
    put its corner.
    """
    if cell is None:
        return Lattice.around(positions, spacing, padding)
    if not len(structure):
        raise InputError("there are no atoms to put a lattice around")
    low, high = bounds(structure.positions)
    return Lattice.over_cell(cell, spacing, (low + high) / 2 - cell.vectors.sum(0) / 2)
