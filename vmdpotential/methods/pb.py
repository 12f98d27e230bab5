"""Poisson-Boltzmann: a molecule of low permittivity in a solution of ions, on the lattice of the map.

The equation is solved twice (:mod:`vmdpotential.continuum.equation`): at the map's spacing, and at twice that or more
on a lattice that reaches far beyond the molecule, whose faces have the sum of the charges' screened potentials. The
second gives the first its boundary, is corrected by it where both are, and solved again for a better one. Both together
give an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import memory
from vmdpotential.continuum.equation import Problem, enclosing
from vmdpotential.continuum.ions import ions_of, named, neutral, strength
from vmdpotential.continuum.molecule import Continuum, Membrane, Sum
from vmdpotential.engines import MULTIGRID_BYTES as BYTES
from vmdpotential.engines import Engine, PointSum, charges_and_positions, get_engine
from vmdpotential.engines.result import HostResult, Solvated
from vmdpotential.errors import MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice, bounds
from vmdpotential.interactions import Bound, Quantity
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.interactions.screened_coulomb import INTERACTION as SCREENED
from vmdpotential.interactions.screened_coulomb import WATER
from vmdpotential.methods import Charges, Estimate, Method, Planned, Refusal, Request, Solution, map_bytes
from vmdpotential.methods.accuracy import Errors
from vmdpotential.methods.points import request_at, sum_at
from vmdpotential.units import coulomb_constant, debye_length

Floats = NDArray[np.float64]

#: Seconds that a node and an atom take (measured).
SECONDS, ATOM = 6e-7, 5e-5

#: The coarse lattice reaches this far beyond the molecule, A.
BEYOND = 16.0

#: Nodes that it may have in any case.
FREE = 800_000

#: Of the fine lattice's first solution, which the coarse one is corrected by.
START = 1e-5

#: What extrapolated errors of potentials and energies are multiplied by: so that at most one in twenty of 50 structures
#: has a larger error (scripts/pb_errors.py).
SAFETY, ENERGY_SAFETY = 0.8, 1.5

#: Of the sum of charges at nodes; far from the molecule their potential is summed from nodes of this spacing, A.
TOLERANCE, CLUSTERS = 1e-5, 5.0


class Continued(HostResult):
    """The potential in a continuum, with what else the solution gives.

    Parameters
    ----------
    maps : (1, nx, ny, nz) float32
    errors : Errors
        From two lattices: outside of the molecule, and at its surface.
    charges : (N,) float64, e
    reaction : (N,) float64, kT/e
        The reaction potential at each atom: what the charges do not make in a medium of the molecule's permittivity.
    energy_error : float, kT
        Of the sum of the energies, from two lattices.
    """

    def __init__(self, maps: NDArray[np.float32], errors: Errors, charges: Floats, reaction: Floats,
                 energy_error: float) -> None:
        super().__init__(maps)
        self._errors, self.charges, self.reaction, self.energy_error = errors, charges, reaction, energy_error

    @property
    def errors(self) -> Errors:
        """Outside of the molecule, and at its surface."""
        return self._errors

    @property
    def energies(self) -> Floats:
        """The electrostatic energy of solvation of each atom (N,), kT: half its charge times the reaction potential."""
        result: Floats = 0.5 * self.charges * self.reaction
        return result

    @property
    def solvated(self) -> Solvated:
        """What the solution around the charges adds to their energy."""
        return Solvated(self.reaction, self.energies, self.energy_error)


@dataclass(frozen=True, eq=False)
class PbPlan(Planned):
    """A solution of the equation with every choice made; see :class:`vmdpotential.methods.Planned`."""

    request: Request
    solution: Solution
    engine: str
    estimate: Estimate
    method: str = field(default="pb", init=False)
    error: float | None = field(default=None, init=False)  # known when it is solved

    def run(self, positions: ArrayLike, charges: ArrayLike) -> Continued:
        """Return the potential of positions (N, 3), A, and charges (N,) in the request's unit.

        Raises
        ------
        TaskError
            When the solution does not converge.
        """
        places, sources = charges_and_positions(positions, charges)
        told = self.solution
        continuum = described(told, places, sources / told.charge)
        engine = get_engine(self.engine)
        total: Sum = partial(_sum, engine)
        fine, first, depth = enclosing(self.request.lattice)
        wide, levels, ratio = around(fine, places, told)
        far = Problem(continuum, wide, levels, total, engine)
        far.solve(far_field(continuum, engine, far.faces))
        solved = Problem(continuum, fine, depth, total, engine)
        solved.solve(far.potential_at(solved.faces), START)
        coarse = far.unknown.copy()
        far.agree(solved, ratio)
        far.solve(far_field(continuum, engine, far.faces))
        solved.solve(far.potential_at(solved.faces))
        x, y, z = (slice(a, a + n) for a, n in zip(first, self.request.lattice.shape, strict=True))
        values = solved.potential((x, y, z))
        reaction = solved.reaction()
        differences = 0.5 * continuum.charges * (reaction - far.reaction(coarse))
        unit = coulomb_constant(told.unit, told.temperature) / coulomb_constant("kT/e", told.temperature)
        return Continued(np.ascontiguousarray(unit * values, np.float32)[None], _errors(solved, far, coarse, ratio),
                         continuum.charges, reaction, _energy_error(differences, ratio))

    def __str__(self) -> str:
        nodes = " x ".join(map(str, enclosing(self.request.lattice)[0].shape))
        return f"pb, {nodes} nodes; about {self.estimate.seconds:.2g} s, {memory.size(self.estimate.bytes)}"


class ContinuumMethod(Method):
    """What methods that solve the Poisson-Boltzmann equation share: its parameters, and how they are reported."""

    boundaries = ("open",)
    boundary_reason = ": the equation is solved for one molecule in an endless solution"
    interactions = ("coulomb",)
    field = False
    superposes = False
    dielectric = WATER
    quantities: Sequence[Quantity] = (
        Quantity("salt", "M", 0.15, 0.0, 10.0, "1:1 salt"),
        Quantity("divalent", "M", 0.0, 0.0, 10.0, "salt of a divalent cation and two anions"),
        Quantity("ion_radius", "A", 2.0, 0.0, 10.0, "closest distance of an ion's centre to an atom's surface"),
        Quantity("inside", "", 2.0, 1.0, 200.0, "relative permittivity of the molecule"),
        Quantity("probe", "A", 1.4, 0.0, 10.0, "radius of the probe that rolls over the surface; 0: van der Waals"),
        Quantity("nonlinear", "", 0.0, 0.0, 1.0, "1 solves the full equation, 0 the linear one"),
    )

    def parameters(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the values of all parameters; ions that are named replace the default salt."""
        ions = named(values)
        for name, molar in ions.items():
            if not 0 <= molar <= 10:
                raise UsageError(name, f"the method {self.name} takes 0 to 10 M", value=f"{molar:g}")
        others = {name: value for name, value in values.items() if name not in ions}
        found = {**super().parameters({**({"salt": 0.0} if ions else {}), **others}), **ions}
        if not neutral(ions_of(found)):
            raise UsageError("set", "the ions of the solution have a net charge",
                             "give concentrations that balance, such as {set Mg2+=0.1,Cl-=0.2}")
        return found

    def unsuitable(self, request: Request) -> Refusal | None:
        """Return why no method of this kind can serve a request, None where one can."""
        if request.solution is None:
            return Refusal("needs radii of atoms, which this command does not give", "make a map")
        if request.solution.values["nonlinear"] not in (0, 1):
            return Refusal("solves the linear equation (nonlinear=0) or the full one (nonlinear=1)",
                           "choose one by {set}")
        return None

    def medium(self, request: Request, dielectric: float, temperature: float) -> str:
        """Return what is between the charges."""
        values = {} if request.solution is None else request.solution.values
        salts = [f"{values.get(name, 0.0):.3g} M{kind}" for name, kind in (("salt", ""), ("divalent", " of a 2:1 salt"))
                 if values.get(name, 0.0) > 0]
        if values.get("membrane", 0.0):
            salts.append(f"a membrane of {values['membrane']:g} A")
        salts += [f"{molar:.3g} M {name}" for name, molar in named(values).items() if molar > 0]
        return ", ".join(["continuum (Poisson-Boltzmann)", *(salts or ["no salt"]), f"dielectric {dielectric:g}",
                          f"{values.get('inside', 0.0):g} inside"])

    def sums(self, request: Request, summed: Bound) -> str:
        """Return the equation with its parameters."""
        solution = request.solution
        assert solution is not None
        kind, values_of_slab = "full" if solution.values["nonlinear"] else "linear", solution.values.get("membrane", 0)
        values = ", ".join(f"{q.name} {solution.values[q.name]:g} {q.unit}".strip() for q in self.quantities
                           if q.name != "nonlinear" and (values_of_slab or not q.name.startswith("membrane")))
        values += "".join(f", {name} {molar:g} M" for name, molar in named(solution.values).items())
        return f"poisson_boltzmann ({kind}, radii {solution.source}, {values})"


class PoissonBoltzmann(ContinuumMethod):
    """The continuum method of our own engines; see :class:`vmdpotential.methods.Method`."""

    name = "pb"
    summary = "Poisson-Boltzmann: a molecule in a continuum of water and ions"
    quantities = (
        *ContinuumMethod.quantities,
        Quantity("membrane", "A", 0.0, 0.0, 1000.0, "thickness of a slab across z in the place of the water; 0: none"),
        Quantity("membrane_centre", "A", 0.0, -1e5, 1e5, "z of the slab's centre"),
        Quantity("membrane_inside", "", 2.0, 1.0, 200.0, "relative permittivity of the slab"),
    )

    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return what a solution should take."""
        if (refusal := self.unsuitable(request)) is not None:
            return refusal
        assert request.solution is not None
        nodes = enclosing(request.lattice)[0].size
        taken = map_bytes(request) + BYTES * nodes
        if taken > memory.limit() or request.planes is not None:
            return _too_large(request, taken)
        steps = 4 if request.solution.values["nonlinear"] else 1
        return Estimate(0.1 + steps * SECONDS * nodes + ATOM * request.charges.count, taken)

    def plan(self, request: Request, engine: Engine) -> PbPlan:
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
        return PbPlan(request, request.solution, engine.name, estimate)

    def closed_form(self, engine: Engine) -> tuple[float, float]:
        """Return the error of the energy of Born's ion in a solution of ions, and its limit."""
        places, charges, radius, start = np.array([[0.13, 0.07, 0.21]]), np.ones(1), 3.0, 5.0
        values = {q.name: q.default for q in self.quantities}
        told = Solution(values, np.array([radius]), "", WATER, 298.15, "kT/e", 1.0)
        lattice = Lattice(np.full(3, -8.0), np.full(3, 0.5), (33, 33, 33))
        request = Request(lattice, None, COULOMB.bind(), Charges.of(places, charges), solution=told)
        found = PbPlan(request, told, engine.name, Estimate(0.0, 0)).run(places, charges)
        c = described(told, places, charges)
        ions = c.kappa / (1 + c.kappa * start) / c.outside
        exact = 0.5 * c.constant * ((1 / c.outside - 1 / c.inside) / radius - ions)
        return abs(float(found.energies[0]) / exact - 1), 5e-3


def described(told: Solution, positions: Floats, charges: Floats) -> Continuum:
    """Return the continuum of a request, for charges in e."""
    values, ions = told.values, ions_of(told.values)
    half, centre = 0.5 * values.get("membrane", 0.0), values.get("membrane_centre", 0.0)
    full = np.array([(z, c * z * z) for z, c in ions] if values["nonlinear"] else []).reshape(-1, 2)
    full[:, 1] /= max(1e-30, full[:, 1].sum())
    return Continuum(positions, charges, told.radii, coulomb_constant("kT/e", told.temperature), values["inside"],
                     told.dielectric, values["probe"], values["ion_radius"],
                     1 / debye_length(strength(ions), told.temperature, told.dielectric), full,
                     Membrane(centre - half, centre + half, values["membrane_inside"]) if half else None)


def around(fine: Lattice, positions: Floats, told: Solution) -> tuple[Lattice, int, int]:
    """Return a coarser lattice around molecule and map, with every second node of another or fewer.

    With it come the levels of multigrid, and the ratio of the spacings.
    """
    low, high = bounds(positions)
    margin = BEYOND + float(told.radii.max(initial=0.0)) + told.values.get("membrane", 0.0)
    ratio = 2
    while True:
        spacing = ratio * fine.spacing
        before = np.maximum(1, np.ceil((fine.origin - (low - margin)) / spacing)).astype(int)
        after = np.maximum(1, np.ceil((high + margin - fine.origin) / spacing)).astype(int)
        after = np.maximum(after, np.ceil((np.array(fine.shape) - 1) / ratio).astype(int) + 1)
        a, b, c = (int(n) for n in before + after + 1)
        if a * b * c <= max(FREE, fine.size) or ratio >= 16:
            found, _, levels = enclosing(Lattice(fine.origin - before * spacing, spacing, (a, b, c)))
            return found, levels, ratio
        ratio *= 2


def far_field(continuum: Continuum, engine: Engine, points: Floats) -> Floats:
    """Return the potential (P,), kT/e, far from the molecule: of charges that the ions around each screen.

    P. Debye, E. Hueckel, Phys. Z. 24 (1923) 185; exact for one ion. In a membrane it goes in a straight line from one
    side's to the other's.
    """
    membrane = continuum.membrane
    if membrane is not None:
        share = (points[:, 2] - membrane.low) / (membrane.high - membrane.low)
        within = (share > 0) & (share < 1)
        solution, sides = replace(continuum, membrane=None), []
        for z in (membrane.low, membrane.high):
            moved = points.copy()
            moved[within, 2] = z
            sides.append(far_field(solution, engine, moved))
        share = np.where(within, share, 0.0)
        result: Floats = (1 - share) * sides[0] + share * sides[1]
        return result
    start = continuum.radii + continuum.ion_radius
    charges = continuum.charges * np.exp(continuum.kappa * start) / (1 + continuum.kappa * start)
    positions = continuum.positions
    if len(charges) > 200:
        positions, charges = _gathered(positions, charges)
    bound = SCREENED.bind(debye_length=1 / continuum.kappa) if continuum.kappa > 0 else COULOMB.bind()
    values = engine.prepare_points(PointSum(bound)).at(points, positions, charges)[0]
    return continuum.constant / continuum.outside * values


def _gathered(positions: Floats, charges: Floats) -> tuple[Floats, Floats]:
    """Return charges shared by the nodes around them, which keeps their sum and their dipole."""
    low = positions.min(0)
    place = (positions - low) / CLUSTERS
    cell = place.astype(np.int64)
    shape = cell.max(0) + 2
    sums = np.zeros(int(shape.prod()))
    for corner in np.ndindex(2, 2, 2):
        weights = np.where(corner, place - cell, 1 - place + cell).prod(1)
        sums += np.bincount(np.ravel_multi_index(tuple((cell + corner).T), tuple(shape)), weights * charges, len(sums))
    nodes = np.flatnonzero(sums)
    return low + CLUSTERS * np.stack(np.unravel_index(nodes, tuple(shape)), 1), sums[nodes]


def _sum(engine: Engine, points: Floats, positions: Floats, charges: Floats) -> Floats:
    return sum_at(request_at(points, positions, charges, None, tolerance=TOLERANCE), points, positions, charges,
                  engine).potential


def _errors(fine: Problem, far: Problem, coarse: NDArray[np.float32], ratio: int) -> Errors:
    """Return the errors outside of the molecule, and next to its surface, by the nodes that both lattices have.

    Extrapolated as those of a scheme of the first order (L. F. Richardson, Phil. Trans. R. Soc. A 226 (1927) 299): the
    flow through faces that the surface cuts is no better where the field is along it.
    """
    part, a = far.shared(fine, ratio)
    inside, b = far.within[part], coarse[part]
    near = np.zeros_like(inside)
    for axis in range(3):
        for step in (-1, 1):
            near |= np.roll(inside, step, axis)
    near &= ~inside
    difference = a - b

    def relative(chosen: NDArray[np.bool_]) -> float:
        size = float(np.mean(a[chosen] ** 2)) if chosen.any() else 0.0
        return float(np.sqrt(np.mean(difference[chosen] ** 2) / size)) if size > 0 else 0.0

    outside, surface = relative(~inside), relative(near) if near.any() else relative(~inside)
    return Errors(SAFETY * outside / (ratio - 1), SAFETY * surface / (ratio - 1))


def _energy_error(differences: Floats, ratio: int) -> float:
    """Return the error of the sum of energies (N,), from their differences between two lattices.

    The sum's own difference may be small by chance, and is then no measure of it: nor are independent errors, where a
    tenth of them has the same sign.
    """
    size = max(abs(differences.sum()), np.linalg.norm(differences), 0.1 * abs(differences).sum())
    return ENERGY_SAFETY / (ratio**2 - 1) * float(size)


def _too_large(request: Request, taken: int) -> Refusal:
    """Return the refusal of a lattice that does not fit, with the spacing of one that would."""
    lattice, room = request.lattice, memory.limit()
    extent, size = lattice.spacing * (np.array(lattice.shape) - 1), 1.0
    shape = lattice.shape
    while min(shape) > 2:
        size *= 1.1
        a, b, c = (np.ceil(extent / (size * lattice.spacing)) + 1).astype(int).tolist()
        shape = (a, b, c)
        coarser = Lattice(lattice.origin, size * lattice.spacing, shape)
        if BYTES * enclosing(coarser)[0].size + 4 * coarser.size + 200 * request.charges.count < room:
            break
    points, fits = (" x ".join(map(str, counts)) for counts in (lattice.shape, shape))
    return Refusal(f"{memory.size(taken)} are needed for {points} points, and {memory.size(room)} are available; "
                   f"{fits} points, {size * lattice.spacing.max():.2g} A apart, would fit",
                   "use a larger {spacing} or less {padding}", MemoryPlanError)


METHOD = PoissonBoltzmann()
