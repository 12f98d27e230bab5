"""Poisson-Boltzmann: a molecule of low permittivity in a solution of ions, on the lattice of the map.

The equation is solved on two lattices (:mod:`.solution`), whose difference gives an error.
Values at points are interpolated between nodes; inside of the molecule the charges' own potential is added as an exact
sum.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine, get_engine
from vmdpotential.errors import MemoryPlanError
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.interactions import SOFT_CORE, Quantity
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY
from vmdpotential.maps.solver import ContinuumSolver, SolventRequest, SolverRequest, refuse_lattice
from vmdpotential.sums import ChargeStatistics, Estimate, Plan, Refusal, result_bytes
from vmdpotential.sums.inputs import charges_and_positions
from vmdpotential.sums.result import Errors, HostResult, SolvationTerms
from vmdpotential.units import coulomb_constant

from .boundary import FREE_COARSE_NODES, coarse_lattice_around
from .lattices import enclosing_lattice
from .molecule import Membrane
from .node_potential import NodePotential
from .pores import describe_pores
from .request import continuum_of_request
from .solution import (
    NODE_BYTES,
    TwoLattices,
)
from .solved_potential import SolvedPotential
from .stated_errors import ReactionErrors

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]

#: Bytes per atom: its neighbours and the arcs of its surface.
ATOM_BYTES = 2000

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
    membrane : Membrane or None
        With its pores.
    """

    def __init__(self, maps: NDArray[np.float32], errors: Errors, charges: Floats, reaction: Floats,
                 reaction_errors: ReactionErrors, ions: tuple[float, float], membrane: Membrane | None) -> None:
        super().__init__(maps, errors=errors)
        self.membrane = membrane
        self.charges, self.reaction, self._reaction_errors = charges, reaction, reaction_errors
        self._ions = ions

    @property
    def energies(self) -> Floats:
        """The electrostatic energy of solvation of each atom (N,), kT: half its charge times the reaction potential."""
        result: Floats = 0.5 * self.charges * self.reaction
        return result

    @property
    def solvated(self) -> SolvationTerms | None:
        """The reaction potentials and the energies of solvation; None with a voltage, whose work they do not have."""
        if self.membrane is not None and self.membrane.voltage:
            return None
        ions, error = self._ions
        return SolvationTerms(self.reaction, self.energies, ions,
                              self._reaction_errors.of_energy() + error,
                        self._reaction_errors.expected)


@dataclass(frozen=True, eq=False)
class _PbPlan(Plan):
    """What plans of maps and of values at points have in common."""

    request: SolverRequest
    engine: str
    estimate: Estimate
    method: str = field(default="pb", init=False)
    error: float | None = field(default=None, init=False)  # known when it is solved
    _total: NodePotential = field(init=False, repr=False)
    _told: list[str] = field(default_factory=list, init=False, repr=False)  # of pores, for the first frame

    def __post_init__(self) -> None:
        object.__setattr__(self, "_total", NodePotential(self.engine))


class PbPlan(_PbPlan):
    """A solution of the equation with every choice made; see :class:`vmdpotential.sums.Plan`."""

    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> ContinuumResult:
        """Return the potential of positions (N, 3), A, and charges (N,) in the request's unit.

        Raises
        ------
        TaskError
            When the solution does not converge.
        """
        self.refuse_parts(target)
        places, sources = charges_and_positions(positions, charges)
        solvent = self.request.solution
        continuum = continuum_of_request(solvent, places, sources / solvent.charge)
        solved = TwoLattices(continuum, self.request.lattice, get_engine(self.engine), self._total)
        potential = SolvedPotential(solved)
        unit = coulomb_constant(solvent.unit, solvent.temperature) / coulomb_constant("kT/e", solvent.temperature)
        values, errors = potential.values(unit)[None], potential.errors()
        if self.request.field:
            values = np.concatenate([values, np.float32(unit) * potential.field()])
            errors = potential.with_field(errors)
        result = ContinuumResult(values, errors, continuum.charges, solved.reaction, solved.reaction_errors(),
                                 (solved.of_ions, solved.ion_error), continuum.membrane)
        slab, atoms = result.membrane, np.asarray(positions)[self.request.solution.radii > 0]
        searched = self.request.solution.values["pores"] > 0
        beyond = slab is not None and (atoms[:, 2] < slab.low).any() and (atoms[:, 2] > slab.high).any()
        if slab is not None and searched and beyond and not self._told:
            self._told.append(describe_pores(slab.pores))
            log.warning("%s", self._told[0])
        return result

    def __str__(self) -> str:
        nodes = " x ".join(map(str, enclosing_lattice(self.request.lattice)[0].shape))
        return f"pb, {nodes} nodes; {self.estimate.describe(self.engine)}"


class PbPointPlan(_PbPlan):
    """The potential of a molecule in a continuum at points; see :class:`vmdpotential.sums.Plan`."""

    @property
    def self_potential(self) -> float:
        """Potential of a unit charge at its own position without the response of the water, 1/A."""
        return self.request.solution.permittivity_ratio / SOFT_CORE

    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> HostResult:
        """Return potential, e/A, and field, e/A^2, of charges (N,) in the solvent's permittivity, with their errors.

        Raises
        ------
        TaskError
            When the solution does not converge.
        """
        solution, points = self.request.solution, (target or self.request.target).points()
        positions, charges = charges_and_positions(positions, charges)
        maps = 4 if self.request.field else 1
        if not charges.any() and not solution.values["voltage"]:
            return HostResult(np.zeros((maps, len(points))))
        counted = (solution.radii > 0) | (charges != 0)
        counted |= not counted.any()  # a voltage alone
        continuum = continuum_of_request(replace(solution, radii=solution.radii[counted]), positions[counted],
                                         charges[counted])
        solved = TwoLattices(continuum, Lattice.around(continuum.positions, solution.spacing, PADDING),
                             get_engine(self.engine), self._total)
        values, slope, *errors = SolvedPotential(solved).at(points)
        sizes = [float(np.sqrt(np.mean(each**2))) for each in (values, slope)]
        relative = [error / size if size > 0 else 0.0 for error, size in zip(errors, sizes, strict=True)]
        factor = solution.dielectric / continuum.constant
        return HostResult(factor * np.concatenate([values[None], slope.T])[:maps],
                          errors=Errors(relative[0], field=relative[1] if maps > 1 else None))

    def __str__(self) -> str:
        spacing = self.request.solution.spacing
        return f"pb at points, a lattice of {spacing:g} A; {self.estimate.describe(self.engine)}"


class PoissonBoltzmann(ContinuumSolver):
    """The solver of our own engines; see :class:`vmdpotential.maps.solver.ContinuumSolver`."""

    name = "pb"
    summary = "Poisson-Boltzmann: a molecule in a continuum of water and ions"
    targets = ("grid", "points")
    quantities = (
        *ContinuumSolver.quantities,
        Quantity("gaussian", "", 0.0, 0.0, 2.0, "width of each atom's Gaussian density over its radius, such as 0.93, "
                 "for a smooth permittivity; 0: a sharp surface"),
        Quantity("membrane", "A", 0.0, 0.0, 1000.0, "thickness of a slab across z in the place of the water; 0: none; "
                 "auto: between the file's marks of a membrane, or its lipids", automatic=True),
        Quantity("membrane_centre", "A", 0.0, -1e5, 1e5, "z of the slab's centre"),
        Quantity("membrane_inside", "", 2.0, 1.0, 200.0, "relative permittivity of the slab"),
        Quantity("voltage", "V", 0.0, -10.0, 10.0, "potential of the solution below the slab against that above"),
        Quantity("pores", "A", 1.4, 0.0, 10.0, "radius of a water that gets through a pore, which is then filled with "
                 "the solution; 0: pores are filled with the slab"),
    )

    def estimate(self, request: SolverRequest, engine: Engine) -> Estimate | Refusal:
        """Return the expected time and memory of a solution, or a refusal."""
        lattice = _lattice(request)
        fine = enclosing_lattice(lattice)[0]
        nodes, largest = fine.size, float(request.solution.radii.max(initial=0.0))
        box = request.charges.box
        coarse = coarse_lattice_around(fine, np.array(box.low) - largest, np.array(box.high) + largest)[0].size
        if coarse > max(FREE_COARSE_NODES, nodes) and (needed := NODE_BYTES * coarse) > memory.limit():
            return Refusal(f"{memory.size(needed)} are needed for the surroundings of an atom with a radius of "
                           f"{largest:g} A, and {memory.size(memory.limit())} are available",
                           "correct the radii, or use a larger {spacing}", MemoryPlanError)
        maps = 200 * request.target.size if request.at_points else result_bytes(request)
        held = nodes + max(0, coarse - max(FREE_COARSE_NODES, nodes))
        taken = maps + NODE_BYTES * held + ATOM_BYTES * request.charges.count
        if taken > memory.limit() or (not request.at_points and request.planes is not None):
            return refuse_lattice(lattice, taken, lambda coarser: (
                NODE_BYTES * enclosing_lattice(coarser)[0].size + 4 * coarser.size
                + ATOM_BYTES * request.charges.count))
        costs, steps = engine.costs, 4 if request.solution.values["nonlinear"] else 1
        return Estimate(costs.fixed + steps * costs.continuum_node * nodes
                        + costs.continuum_atom * request.charges.count, taken)

    def plan(self, request: SolverRequest, engine: Engine) -> PbPlan | PbPointPlan:
        """Return the plan.

        Raises
        ------
        UsageError
            For what the method cannot do.
        MemoryPlanError
            When the map does not fit into memory.
        """
        estimate = self.require(request, engine)
        kind = PbPointPlan if request.at_points else PbPlan
        return kind(request, engine.name, estimate)

    def closed_form(self, engine: Engine) -> tuple[float, float]:
        """Return the error of the energy of Born's ion in a solution of ions, and its limit."""
        places, charges, radius, start = np.array([[0.13, 0.07, 0.21]]), np.ones(1), 3.0, 5.0
        values = {q.name: q.default for q in self.quantities}
        solvent = SolventRequest(values, np.array([radius]), "", WATER_PERMITTIVITY, 298.15, "kT/e", 1.0)
        lattice = Lattice(np.full(3, -8.0), np.full(3, 0.5), (33, 33, 33))
        request = SolverRequest(lattice, None, COULOMB.bind(), ChargeStatistics.of(places, charges), solution=solvent)
        result = PbPlan(request, engine.name, Estimate(0.0, 0)).run(places, charges)
        c = continuum_of_request(solvent, places, charges)
        ions = c.kappa / (1 + c.kappa * start) / c.outside
        exact = 0.5 * c.constant * ((1 / c.outside - 1 / c.inside) / radius - ions)
        return abs(float(result.energies[0]) / exact - 1), 5e-3


def _lattice(request: SolverRequest) -> Lattice:
    """Return the lattice of a map, or the one that points are interpolated from."""
    if not request.at_points:
        return request.lattice
    return Lattice.around(np.array([request.charges.box.low, request.charges.box.high]), request.solution.spacing,
                          PADDING)


SOLVER = PoissonBoltzmann()
