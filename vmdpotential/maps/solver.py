"""Solvers of the Poisson-Boltzmann equation, registered under their names: their inputs and parameters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.errors import MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Quantity, complete_parameters
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY
from vmdpotential.maps.solution_ions import ion_concentrations, ions_of, is_neutral
from vmdpotential.sums import Plan, PotentialMethod, Refusal, Request
from vmdpotential.sums.result import Result
from vmdpotential.units import MAX_SALT

log = logging.getLogger(__name__)

#: Largest permittivity of a molecule, in those of the solvent: the potential outside of a more polar molecule is so
#: much steeper than inside that the two lattices do not show their error (10 in 2: four times larger than stated).
MOST_POLAR = 4.0

#: Parameters of a membrane.
SLAB = ("membrane", "membrane_centre", "membrane_inside", "voltage", "pores")


@dataclass(frozen=True, eq=False)
class SolventRequest:
    """The solution around the charges.

    Parameters
    ----------
    values : mapping
        Values of the solver's parameters.
    radii : (N,) float64, A
        Radii of the charged atoms, in their order.
    source : str
        Origin of the radii, for reports.
    dielectric : float
        Relative permittivity of the solvent.
    temperature : float, K
    unit : str
        Unit of the resulting potential.
    charge : float
        1 e in the unit of the charges, in which the sum of q / r is the potential in vacuum.
    spacing : float, A
        Spacing of the lattice from which values at points are interpolated.
    """

    values: Mapping[str, float]
    radii: Floats
    source: str
    dielectric: float
    temperature: float
    unit: str
    charge: float
    spacing: float = 0.5

    @property
    def permittivity_ratio(self) -> float:
        """The permittivity of the solvent over that of the molecule."""
        return self.dielectric / self.values["inside"]


@dataclass(frozen=True, eq=False)
class SolverRequest(Request):
    """A request with the solution around the charges."""

    solution: SolventRequest = field(kw_only=True)


def in_solution(request: Request, solution: SolventRequest) -> SolverRequest:
    """Return a request for the same charges in a solution."""
    return SolverRequest(**{**vars(request), "solution": solution})


class ContinuumSolver(PotentialMethod[SolverRequest]):
    """A solver of the Poisson-Boltzmann equation; not a sum, so that ``auto`` never chooses it.

    It states its errors itself (:attr:`.Result.errors`), if they are known.
    """

    boundaries = ("open",)
    boundary_reason = ": the equation is solved for one molecule in an endless solution"
    interactions = ("coulomb",)
    #: The default relative permittivity of the solvent.
    dielectric: float = WATER_PERMITTIVITY
    #: Parameters of the solver.
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
        """Return the values of all parameters; those not given take their defaults, named ions replace the salt.

        Raises
        ------
        UsageError
            For an unknown parameter or one outside its limits.
        """
        ions = ion_concentrations(values)
        for name, molar in ions.items():
            if not 0 <= molar <= MAX_SALT:
                raise UsageError(name, f"the method {self.name} takes 0 to {MAX_SALT:g} M", value=f"{molar:g}")
        others = {name: value for name, value in values.items() if name not in ions}
        result = {**complete_parameters(self.quantities, {**({"salt": 0.0} if ions else {}), **others},
                                        f"the method {self.name}"), **ions}
        if not is_neutral(ions_of(result)):
            raise UsageError("set", "the ions of the solution do not add up to a charge of 0",
                             "give concentrations that balance, such as {set Mg2+=0.1,Cl-=0.2}")
        return result

    def refusal(self, request: SolverRequest) -> Refusal | None:
        """Return why a request is not possible, or None if it is."""
        values = request.solution.values
        if values["nonlinear"] not in (0, 1):
            return Refusal("solves the linear equation (nonlinear=0) or the full one (nonlinear=1)",
                           "choose one by {set}")
        if values.get("gaussian", 0.0) and values.get("membrane", 0.0):
            return Refusal("has no smooth permittivity in a membrane", "leave out gaussian or membrane in {set}")
        if values.get("voltage", 0.0) and not values["membrane"]:
            return Refusal("has a voltage only across a membrane", "give one, such as membrane=30, or leave out "
                           "voltage in {set}")
        if values.get("voltage", 0.0) and values["nonlinear"]:
            return Refusal("has a voltage only in the linear equation", "leave out nonlinear or voltage in {set}")
        if values["inside"] > MOST_POLAR * request.solution.dielectric:
            return Refusal(f"needs a permittivity inside that is at most {MOST_POLAR:g} times that of the solvent",
                           "choose another inside in {set}, or {dielectric}")
        return super().refusal(request)

    def solve(self, request: SolverRequest, positions: Floats, charges: Floats, engine: Engine) -> tuple[Plan, Result]:
        """Return the plan for a request and its result for positions (N, 3), A, and charges (N,)."""
        plan = self.plan(request, engine)
        log.debug("%s", plan)
        return plan, plan.run(positions, charges)

    def closed_form(self, engine: Engine) -> tuple[float, float] | None:
        """Return the relative error in a case with a closed form, and its limit; None if there is no such case."""
        return None

    def describe_equation(self, solution: SolventRequest) -> str:
        """Return the equation with its parameters, for reports."""
        kind, smooth = "full" if solution.values["nonlinear"] else "linear", solution.values.get("gaussian", 0.0)
        hidden = ("nonlinear", "probe" if smooth else "gaussian",
                  *([] if solution.values.get("membrane", 0.0) else SLAB))
        values = ", ".join(f"{q.name} {solution.values[q.name]:g} {q.unit}".strip() for q in self.quantities
                           if q.name not in hidden)
        values += "".join(f", {name} {molar:g} M" for name, molar in ion_concentrations(solution.values).items())
        return f"poisson_boltzmann ({kind}, radii {solution.source}, {values})"


def describe_solution(values: Mapping[str, float], dielectric: float) -> str:
    """Return the description of a solution, for legends and reports, from the values of a solver's parameters."""
    parts = [f"{values.get(name, 0.0):.3g} M{kind}" for name, kind in (("salt", ""), ("divalent", " of a 2:1 salt"))
             if values.get(name, 0.0) > 0]
    parts += [f"{molar:.3g} M {name}" for name, molar in ion_concentrations(values).items() if molar > 0]
    parts = [*parts, f"ion radius {values['ion_radius']:g} A"] if parts else ["no salt"]
    if values.get("membrane", 0.0):
        parts.append(f"a membrane of {values['membrane']:g} A with its centre at z = "
                     f"{values.get('membrane_centre', 0.0):g} A"
                     + (f", the solution below at {values['voltage']:g} V" if values.get("voltage", 0.0) else ""))
    smooth = [f"Gaussian densities of {values['gaussian']:g} radii"] if values.get("gaussian", 0.0) else []
    equation = "nonlinear Poisson-Boltzmann" if values.get("nonlinear", 0.0) else "Poisson-Boltzmann"
    return ", ".join([f"water ({equation})", *parts, f"dielectric {dielectric:g}",
                      f"{values.get('inside', 0.0):g} inside", *smooth])


def refuse_lattice(lattice: Lattice, taken: int, needed: Callable[[Lattice], int]) -> Refusal:
    """Return the refusal of a lattice that takes too much memory (bytes), with the spacing of one that would fit.

    `needed` returns the bytes that another lattice takes.
    """
    room = memory.limit()
    extent, size, coarser = lattice.spacing * (np.array(lattice.shape) - 1), 1.0, lattice
    while min(coarser.shape) > 2:
        size *= 1.1
        a, b, c = (np.ceil(extent / (size * lattice.spacing)) + 1).astype(int).tolist()
        coarser = Lattice(lattice.origin, size * lattice.spacing, (a, b, c))
        if needed(coarser) < room:
            break
    points, fits = (" x ".join(map(str, each.shape)) for each in (lattice, coarser))
    return Refusal(f"{memory.size(taken)} are needed for {points} points, and {memory.size(room)} are available; "
                   f"{fits} points, {coarser.spacing.max():.2g} A apart, would fit",
                   "use a larger {spacing} or less {padding}", MemoryPlanError)
