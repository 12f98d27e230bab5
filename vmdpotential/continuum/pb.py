"""Poisson-Boltzmann: a molecule of low permittivity in a solution of ions, on the lattice of the map.

The equation is solved on two lattices (:mod:`vmdpotential.continuum.solution`), whose difference gives an error.
Values at points are interpolated between nodes; inside of the molecule the charges' own potential is added as an exact
sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import memory
from vmdpotential.continuum.equation import KnownSolution, enclosing_lattice
from vmdpotential.continuum.ions import ion_concentrations, ions_of, is_neutral
from vmdpotential.continuum.solution import (
    FREE_COARSE_NODES,
    NodePotential,
    TwoLattices,
    coarse_lattice_around,
    continuum_of_request,
)
from vmdpotential.continuum.stated_errors import ReactionErrors
from vmdpotential.engines import MULTIGRID_BYTES as BYTES
from vmdpotential.engines import SOFT_CORE, Engine, get_engine
from vmdpotential.engines.inputs import charges_and_positions
from vmdpotential.engines.result import HostResult, SolvationTerms
from vmdpotential.errors import MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.interactions import Bound, Quantity
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY
from vmdpotential.sums import (
    ChargeStatistics,
    Estimate,
    Method,
    Plan,
    Refusal,
    Request,
    SolventRequest,
    result_bytes,
)
from vmdpotential.sums.accuracy import Errors
from vmdpotential.units import MAX_SALT, coulomb_constant

Floats = NDArray[np.float64]

#: Bytes per atom: its neighbours and the arcs of its surface.
ATOM_BYTES = 2000

#: Largest permittivity of a molecule, in those of the solvent: the potential outside of a more polar molecule is so
#: much steeper than inside that the two lattices do not show their error (10 in 2: four times larger than stated).
MOST_POLAR = 4.0

#: Parameters of a membrane.
SLAB = ("membrane", "membrane_centre", "membrane_inside")

#: Padding of the fine lattice for values at points, A; points outside of it use the coarse lattice.
PADDING = 6.0


class ContinuumResult(HostResult):
    """The potential in a continuum, with its errors, reaction potentials and energies.

    Parameters
    ----------
    maps : (1 or 4, nx, ny, nz) float32
        The potential, and the field if it was requested.
    errors : Errors
        From two lattices: outside of the molecule, and at its surface.
    charges : (N,) float64, e
    reaction : (N,) float64, kT/e
        The reaction potential at each atom: the potential without that of the charges in a uniform medium of the
        molecule's permittivity.
    reaction_errors : ReactionErrors
        Those of the reaction potentials, from two lattices.
    ions : (float, float), kT
        The energy of the ions beyond those of the charges in their reaction potentials, and its error; 0 for the linear
        equation.
    """

    def __init__(self, maps: NDArray[np.float32], errors: Errors, charges: Floats, reaction: Floats,
                 reaction_errors: ReactionErrors, ions: tuple[float, float]) -> None:
        super().__init__(maps, errors=errors)
        self.charges, self.reaction, self._reaction_errors = charges, reaction, reaction_errors
        self._ions = ions

    @property
    def energies(self) -> Floats:
        """The electrostatic energy of solvation of each atom (N,), kT: half its charge times the reaction potential."""
        result: Floats = 0.5 * self.charges * self.reaction
        return result

    @property
    def solvated(self) -> SolvationTerms:
        """The reaction potentials and the energies of solvation."""
        ions, error = self._ions
        return SolvationTerms(self.reaction, self.energies, ions,
                              float(np.hypot(self._reaction_errors.of_energy(), error)),
                        self._reaction_errors.expected)


@dataclass(frozen=True, eq=False)
class PbPlan(Plan):
    """A solution of the equation with every choice made; see :class:`vmdpotential.sums.Plan`."""

    request: Request
    solution: SolventRequest
    engine: str
    estimate: Estimate
    method: str = field(default="pb", init=False)
    error: float | None = field(default=None, init=False)  # known when it is solved
    _total: NodePotential = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_total", NodePotential(self.engine))

    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> ContinuumResult:
        """Return the potential of positions (N, 3), A, and charges (N,) in the request's unit.

        Raises
        ------
        TaskError
            When the solution does not converge.
        """
        self.refuse_parts(target)
        return self.follow(positions, charges, None)[0]

    def follow(self, positions: ArrayLike, charges: ArrayLike,
               before: tuple[KnownSolution, KnownSolution] | None) -> tuple[ContinuumResult,
                                                                            tuple[KnownSolution, KnownSolution]]:
        """Return the potential of a frame and its solutions; starts from the solutions of another frame, if any."""
        places, sources = charges_and_positions(positions, charges)
        solvent = self.solution
        continuum = continuum_of_request(solvent, places, sources / solvent.charge)
        solved = TwoLattices(continuum, self.request.lattice, get_engine(self.engine), self._total, before)
        unit = coulomb_constant(solvent.unit, solvent.temperature) / coulomb_constant("kT/e", solvent.temperature)
        values, errors = solved.values(unit)[None], solved.errors()
        if self.request.field:
            values = np.concatenate([values, np.float32(unit) * solved.field()])
            errors = solved.with_field(errors)
        return ContinuumResult(values, errors, continuum.charges, solved.reaction,
                               solved.reaction_errors(), (solved.of_ions, solved.ion_error)), solved.known

    def in_order(self) -> Frames:
        """Return a callable for consecutive frames, which starts each from the solution of the last."""
        return Frames(self)

    def __str__(self) -> str:
        nodes = " x ".join(map(str, enclosing_lattice(self.request.lattice)[0].shape))
        return f"pb, {nodes} nodes; {self.estimate.describe(self.engine)}"


class Frames:
    """A plan for consecutive frames, each of which starts from the solution of the last.

    Parameters
    ----------
    plan : PbPlan
    """

    def __init__(self, plan: PbPlan) -> None:
        self._plan = plan
        self._before: tuple[KnownSolution, KnownSolution] | None = None

    def __call__(self, positions: ArrayLike, charges: ArrayLike) -> ContinuumResult:
        """Return the potential of the next frame."""
        result, self._before = self._plan.follow(positions, charges, self._before)
        return result


@dataclass(frozen=True, eq=False)
class PbPointPlan(Plan):
    """The potential of a molecule in a continuum at points; see :class:`vmdpotential.sums.Plan`."""

    request: Request
    solution: SolventRequest
    engine: str
    estimate: Estimate
    method: str = field(default="pb", init=False)
    error: float | None = field(default=None, init=False)  # known when it is solved
    _total: NodePotential = field(init=False, repr=False)
    needs_all_atoms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "_total", NodePotential(self.engine))

    @property
    def permittivity(self) -> float:
        """The permittivity of the solvent over that of the molecule."""
        return self.solution.dielectric / self.solution.values["inside"]

    @property
    def self_potential(self) -> float:
        """Potential of a unit charge at its own position without the response of the water, 1/A."""
        return self.permittivity / SOFT_CORE

    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> HostResult:
        """Return potential, e/A, and field, e/A^2, of charges (N,) in the solvent's permittivity, with their errors.

        Raises
        ------
        TaskError
            When the solution does not converge.
        """
        solution, points = self.solution, (target or self.request.target).points()
        positions, charges = charges_and_positions(positions, charges)
        maps = 4 if self.request.field else 1
        if not charges.any():
            return HostResult(np.zeros((maps, len(points))))
        counted = (solution.radii > 0) | (charges != 0)
        continuum = continuum_of_request(replace(solution, radii=solution.radii[counted]), positions[counted],
                                         charges[counted])
        solved = TwoLattices(continuum, Lattice.around(continuum.positions, solution.spacing, PADDING),
                             get_engine(self.engine), self._total)
        values, slope, *errors = solved.at(points)
        sizes = [float(np.sqrt(np.mean(each**2))) for each in (values, slope)]
        relative = [error / size if size > 0 else 0.0 for error, size in zip(errors, sizes, strict=True)]
        factor = solution.dielectric / continuum.constant
        return HostResult(factor * np.concatenate([values[None], slope.T])[:maps],
                          errors=Errors(relative[0], field=relative[1] if maps > 1 else None))

    def __str__(self) -> str:
        return (f"pb at points, a lattice of {self.solution.spacing:g} A; {self.estimate.describe(self.engine)}")


class ContinuumMethod(Method):
    """Base of methods that solve the Poisson-Boltzmann equation: its parameters, and their report."""

    boundaries = ("open",)
    boundary_reason = ": the equation is solved for one molecule in an endless solution"
    interactions = ("coulomb",)
    superposes = False
    dielectric = WATER_PERMITTIVITY
    quantities: Sequence[Quantity] = (
        Quantity("salt", "M", 0.15, 0.0, MAX_SALT, "1:1 salt"),
        Quantity("divalent", "M", 0.0, 0.0, MAX_SALT, "salt of a divalent cation and two anions"),
        Quantity("ion_radius", "A", 2.0, 0.0, 10.0, "closest distance of an ion's centre to an atom's surface"),
        Quantity("inside", "", 2.0, 1.0, 200.0, "relative permittivity of the molecule"),
        Quantity("probe", "A", 1.4, 0.0, 10.0, "radius of the probe that rolls over the surface; 0: van der Waals, "
                 "with errors proportional to the spacing instead of its square"),
        Quantity("nonlinear", "", 0.0, 0.0, 1.0, "1 solves the full equation, 0 the linear one"),
    )

    def parameters(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the values of all parameters; named ions replace the default salt."""
        ions = ion_concentrations(values)
        for name, molar in ions.items():
            if not 0 <= molar <= MAX_SALT:
                raise UsageError(name, f"the method {self.name} takes 0 to {MAX_SALT:g} M", value=f"{molar:g}")
        others = {name: value for name, value in values.items() if name not in ions}
        result = {**super().parameters({**({"salt": 0.0} if ions else {}), **others}), **ions}
        if not is_neutral(ions_of(result)):
            raise UsageError("set", "the ions of the solution do not add up to a charge of 0",
                             "give concentrations that balance, such as {set Mg2+=0.1,Cl-=0.2}")
        return result

    def unsuitable(self, request: Request) -> Refusal | None:
        """Return why no method of this kind can serve a request, or None."""
        if request.solution is None:
            return Refusal("needs radii of atoms, which this command does not give", "make a map")
        if request.solution.values["nonlinear"] not in (0, 1):
            return Refusal("solves the linear equation (nonlinear=0) or the full one (nonlinear=1)",
                           "choose one by {set}")
        if request.solution.values.get("gaussian", 0.0) and request.solution.values.get("membrane", 0.0):
            return Refusal("has no smooth permittivity in a membrane", "leave out gaussian or membrane in {set}")
        if request.solution.values["inside"] > MOST_POLAR * request.solution.dielectric:
            return Refusal(f"needs a permittivity inside that is at most {MOST_POLAR:g} times that of the solvent",
                           "choose another inside in {set}, or {dielectric}")
        return None

    def medium(self, request: Request, dielectric: float, temperature: float) -> str:
        """Return the description of the medium around the charges."""
        values = {} if request.solution is None else request.solution.values
        salts = [f"{values.get(name, 0.0):.3g} M{kind}" for name, kind in (("salt", ""), ("divalent", " of a 2:1 salt"))
                 if values.get(name, 0.0) > 0]
        if values.get("membrane", 0.0):
            salts.append(f"a membrane of {values['membrane']:g} A with its centre at z = "
                         f"{values.get('membrane_centre', 0.0):g} A")
        salts += [f"{molar:.3g} M {name}" for name, molar in ion_concentrations(values).items() if molar > 0]
        smooth = [f"Gaussian densities of {values['gaussian']:g} radii"] if values.get("gaussian", 0.0) else []
        return ", ".join(["water (Poisson-Boltzmann)", *(salts or ["no salt"]), f"dielectric {dielectric:g}",
                          f"{values.get('inside', 0.0):g} inside", *smooth])

    def sums(self, request: Request, summed: Bound) -> str:
        """Return the equation with its parameters."""
        solution = request.solution
        assert solution is not None
        kind, smooth = "full" if solution.values["nonlinear"] else "linear", solution.values.get("gaussian", 0.0)
        hidden = ("nonlinear", "probe" if smooth else "gaussian",
                  *([] if solution.values.get("membrane", 0.0) else SLAB))
        values = ", ".join(f"{q.name} {solution.values[q.name]:g} {q.unit}".strip() for q in self.quantities
                           if q.name not in hidden)
        values += "".join(f", {name} {molar:g} M" for name, molar in ion_concentrations(solution.values).items())
        return f"poisson_boltzmann ({kind}, radii {solution.source}, {values})"


class PoissonBoltzmann(ContinuumMethod):
    """The continuum method of our own engines; see :class:`vmdpotential.sums.Method`."""

    name = "pb"
    summary = "Poisson-Boltzmann: a molecule in a continuum of water and ions"
    targets = ("grid", "points")
    quantities = (
        *ContinuumMethod.quantities,
        Quantity("gaussian", "", 0.0, 0.0, 2.0, "width of each atom's Gaussian density over its radius, such as 0.93, "
                 "for a smooth permittivity; 0: a sharp surface"),
        Quantity("membrane", "A", 0.0, 0.0, 1000.0, "thickness of a slab across z in the place of the water; 0: none"),
        Quantity("membrane_centre", "A", 0.0, -1e5, 1e5, "z of the slab's centre"),
        Quantity("membrane_inside", "", 2.0, 1.0, 200.0, "relative permittivity of the slab"),
    )

    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return the expected time and memory of a solution, or a refusal."""
        if (refusal := self.unsuitable(request)) is not None:
            return refusal
        assert request.solution is not None
        lattice = _lattice(request)
        fine = enclosing_lattice(lattice)[0]
        nodes, largest = fine.size, float(request.solution.radii.max(initial=0.0))
        box = request.charges.box
        coarse = coarse_lattice_around(fine, np.array(box.low) - largest, np.array(box.high) + largest)[0].size
        if coarse > max(FREE_COARSE_NODES, nodes) and (needed := BYTES * coarse) > memory.limit():
            return Refusal(f"{memory.size(needed)} are needed for the surroundings of an atom with a radius of "
                           f"{largest:g} A, and {memory.size(memory.limit())} are available",
                           "correct the radii, or use a larger {spacing}", MemoryPlanError)
        maps = 200 * request.target.size if request.at_points else result_bytes(request)
        held = nodes + max(0, coarse - max(FREE_COARSE_NODES, nodes))
        taken = maps + BYTES * held + ATOM_BYTES * request.charges.count
        if taken > memory.limit() or (not request.at_points and request.planes is not None):
            return _too_large(lattice, request.charges.count, taken)
        costs, steps = engine.costs, 4 if request.solution.values["nonlinear"] else 1
        return Estimate(costs.fixed + steps * costs.continuum_node * nodes
                        + costs.continuum_atom * request.charges.count, taken)

    def plan(self, request: Request, engine: Engine) -> PbPlan | PbPointPlan:
        """Return the plan.

        Raises
        ------
        UsageError
            For what the method cannot do.
        MemoryPlanError
            When the map does not fit into memory.
        """
        estimate = self.require(request, engine)
        assert request.solution is not None
        kind = PbPointPlan if request.at_points else PbPlan
        return kind(request, request.solution, engine.name, estimate)

    def closed_form(self, engine: Engine) -> tuple[float, float]:
        """Return the error of the energy of Born's ion in a solution of ions, and its limit."""
        places, charges, radius, start = np.array([[0.13, 0.07, 0.21]]), np.ones(1), 3.0, 5.0
        values = {q.name: q.default for q in self.quantities}
        solvent = SolventRequest(values, np.array([radius]), "", WATER_PERMITTIVITY, 298.15, "kT/e", 1.0)
        lattice = Lattice(np.full(3, -8.0), np.full(3, 0.5), (33, 33, 33))
        request = Request(lattice, None, COULOMB.bind(), ChargeStatistics.of(places, charges), solution=solvent)
        result = PbPlan(request, solvent, engine.name, Estimate(0.0, 0)).run(places, charges)
        c = continuum_of_request(solvent, places, charges)
        ions = c.kappa / (1 + c.kappa * start) / c.outside
        exact = 0.5 * c.constant * ((1 / c.outside - 1 / c.inside) / radius - ions)
        return abs(float(result.energies[0]) / exact - 1), 5e-3


def _lattice(request: Request) -> Lattice:
    """Return the lattice of a map, or the one that points are interpolated from."""
    if not request.at_points:
        return request.lattice
    assert request.solution is not None
    return Lattice.around(np.array([request.charges.box.low, request.charges.box.high]), request.solution.spacing,
                          PADDING)


def _too_large(lattice: Lattice, atoms: int, taken: int) -> Refusal:
    """Return the refusal of a lattice that does not fit, with the spacing of one that would."""
    room = memory.limit()
    extent, size = lattice.spacing * (np.array(lattice.shape) - 1), 1.0
    shape = lattice.shape
    while min(shape) > 2:
        size *= 1.1
        a, b, c = (np.ceil(extent / (size * lattice.spacing)) + 1).astype(int).tolist()
        shape = (a, b, c)
        coarser = Lattice(lattice.origin, size * lattice.spacing, shape)
        if BYTES * enclosing_lattice(coarser)[0].size + 4 * coarser.size + ATOM_BYTES * atoms < room:
            break
    points, fits = (" x ".join(map(str, counts)) for counts in (lattice.shape, shape))
    return Refusal(f"{memory.size(taken)} are needed for {points} points, and {memory.size(room)} are available; "
                   f"{fits} points, {size * lattice.spacing.max():.2g} A apart, would fit",
                   "use a larger {spacing} or less {padding}", MemoryPlanError)


METHOD = PoissonBoltzmann()
