"""Coulomb and Lennard-Jones energies between two selections of atoms, and the forces of one on the other.

Each pair of atoms counts once, also if the selections overlap: the atoms are divided into those in A only, in B only,
and in both. Excluded pairs are omitted, and pairs three bonds apart (1-4) have their own parameters. With `pme` the
Coulomb energy includes all periodic images, with conducting surroundings and, for a selection with a net charge, a
neutralising background; in an open boundary it includes all pairs. Lennard-Jones is truncated at the cutoff, without a
shift or a correction.

Energies are assigned to the atoms of A. The energy of a pair of atoms that are both in A and in B is divided equally
between them, so that the energies of atoms sum to the total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, TaskError, UsageError
from vmdpotential.grid.lattice import Points
from vmdpotential.interactions import SOFT_CORE
from vmdpotential.maps import check_tolerance
from vmdpotential.molecule.cell import Cell, same_cell
from vmdpotential.molecule.charges import assign_charges
from vmdpotential.molecule.conversions import StructureLike
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.molecule.selection import Selection, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import change_options, takes_fields
from vmdpotential.results import TableColumns, Tabular
from vmdpotential.sums import Method, Plan, Request
from vmdpotential.sums.accuracy import choose_rows
from vmdpotential.sums.choice import plan_fastest
from vmdpotential.sums.points import FIRST_ERROR, request_at, rms_ratio
from vmdpotential.sums.potential_sum import Prepared
from vmdpotential.sums.reference import exact_values
from vmdpotential.sums.refinement import PlanAttempt, refine_to_tolerance
from vmdpotential.units import coulomb_constant

from .all_pairs import sum_coulomb
from .in_range import Atoms, PairsInRange
from .options import EnergyOptions
from .pair_terms import PairPotential
from .potentials import ELECTROSTATICS, lennard_jones_energy, lennard_jones_rule, pair_potential

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Energies(Tabular):
    """Interaction energies of the atoms of A with B.

    Parameters
    ----------
    atoms : (n,) int64
        Indices of the atoms of A, increasing.
    coulomb, lennard_jones : (n,) float64, kcal/mol
        Energies of each atom of A.
    forces : (n, 3) float64 or None, kcal/mol/A
        Force of B on each atom of A, if requested.
    """

    atoms: Integers
    coulomb: Floats
    lennard_jones: Floats
    forces: Floats | None = None

    def __repr__(self) -> str:
        sums = f"{self.coulomb.sum():.4f} Coulomb and {self.lennard_jones.sum():.4f} Lennard-Jones kcal/mol"
        return f"Energies({len(self.atoms)} atoms, {sums}{'' if self.forces is None else ', with forces'})"

    def table(self) -> TableColumns:
        """Return the columns of a table with a row for each atom; energies are in kcal/mol."""
        return {"atom": self.atoms, "coulomb": self.coulomb, "lennard_jones": self.lennard_jones, "total": self.total}

    @property
    def total(self) -> Floats:
        """(n,) sum of the Coulomb and Lennard-Jones energies, kcal/mol."""
        return self.coulomb + self.lennard_jones


@takes_fields(EnergyOptions)
def interaction_energy(structure: StructureLike, nonbonded: Nonbonded, a: Selection, b: Selection,
                       options: EnergyOptions | None = None, **keywords: Any) -> Energies:
    """Return the energies of the atoms of one selection with another, in the frame of the structure.

    Parameters
    ----------
    structure : Structure or path
        Structure. If it has no charges, these are assigned.
    nonbonded : Nonbonded
        Lennard-Jones parameters, exclusions and 1-4 pairs of its atoms.
    a, b : str or array
        Selections of atoms, see :func:`vmdpotential.molecule.selection.select`.
    options : EnergyOptions, optional
        All other options in one object.
    **keywords
        Fields of :class:`EnergyOptions`.

    Returns
    -------
    Energies
        Energies of the atoms of `a`, kcal/mol.

    Raises
    ------
    InputError
        For atoms whose charges are not known, or parameters of other atoms.
    UsageError
        For an empty selection, or a wrong option.

    Examples
    --------
    >>> from MDAnalysisTests.datafiles import PRM_NCBOX, TRJ_NCBOX
    >>> import MDAnalysis
    >>> structure = vp.Structure.from_mdanalysis(MDAnalysis.Universe(PRM_NCBOX, TRJ_NCBOX))
    >>> terms = vp.nonbonded(structure, [PRM_NCBOX])
    >>> from .energy import interaction_energy
    >>> interaction_energy(structure, terms, "protein", "water").total.shape
    (6,)
    """
    structure = assign_charges(structure)
    first, second = select(structure, a, "a"), select(structure, b, "b")
    between = InteractionEnergyPlan(structure, nonbonded, first, second,
                                    change_options(EnergyOptions, options, keywords))
    return between.run(structure.positions, structure.cell)


def by_residue(structure: Structure, atoms: Integers, values: Floats) -> tuple[Integers, Floats]:
    """Return the residues (rows of `residue_starts`) of atoms, and the sums of the atoms' values (n, ...) over each."""
    residues = structure.residue_of[atoms]
    result, first = np.unique(residues, return_index=True)
    return result, np.add.reduceat(values, first, axis=0)


class InteractionEnergyPlan:
    """Energies between two selections, planned once and run for every frame.

    Parameters are those of :func:`interaction_energy`, and `forces`, whether to compute forces too.

    Attributes
    ----------
    error, error_forces : float or None
        Rms errors, relative to the rms values, of the atoms' Coulomb energies and forces, measured in the first frame;
        None if they are exact up to rounding, or not computed.
    """

    error: float | None = None
    error_forces: float | None = None

    def __init__(self, structure: Structure, nonbonded: Nonbonded, a: ArrayLike, b: ArrayLike,
                 options: EnergyOptions | None = None, *, forces: bool = False) -> None:
        options = options or EnergyOptions()
        electrostatics, cutoff = options.electrostatics, options.cutoff
        if electrostatics not in ELECTROSTATICS:
            raise UsageError("electrostatics", f"choose one of {', '.join(ELECTROSTATICS)}", value=electrostatics)
        if not 0 < cutoff < np.inf:
            raise UsageError("cutoff", "must be a distance in A, above 0", value=f"{cutoff:g}")
        if len(nonbonded) != len(structure):
            raise InputError(f"the parameters are for {len(nonbonded)} atoms, but the structure has {len(structure)}")
        self.engine = get_engine(options.engine)
        self.electrostatics, self.cutoff, self.forces = electrostatics, cutoff, forces
        self.tolerance = check_tolerance(options.tolerance)
        self.known = structure.known_charges
        self.charges = self.known * np.sqrt(coulomb_constant("kcal/mol/e", dielectric=options.dielectric))
        self.nonbonded = nonbonded
        count = len(structure)
        self.in_a, self.in_b = _mask(a, count), _mask(b, count)
        self.atoms = np.flatnonzero(self.in_a)
        self.others = np.flatnonzero(self.in_b)
        self.both = np.flatnonzero(self.in_a & self.in_b)
        self.every = np.flatnonzero(self.in_a | self.in_b)
        self.row = np.cumsum(self.in_a) - 1
        #: Sets between which all pairs are summed; the pairs within `both` are summed in addition.
        self.sets = [(first, second) for first, second in (
            (np.flatnonzero(self.in_a & ~self.in_b), self.others), (self.both, np.flatnonzero(self.in_b & ~self.in_a)))
            if len(first) and len(second)]
        self.excluded = self._towards(nonbonded.exclusions)
        self.pairs14 = self._towards(nonbonded.pairs14)
        inner = self.in_a & self.in_b
        self.excluded_apart = self.excluded.subset(~(inner[self.excluded.first] & inner[self.excluded.second]))
        self._rule, self._parameters = lennard_jones_rule(nonbonded)
        self._own_exclusions = nonbonded.take(self.both).exclusions
        #: The potential that is summed over the pairs within the cutoff, and whether Coulomb is summed over all pairs.
        self._potential: PairPotential | None = None
        self._sums_all = False
        self._pairs: PairsInRange | None = None
        self._cell: Cell | None = None
        self._long: Plan | None = None
        self._field: Prepared | None = None
        self._smooth: tuple[Floats, Floats | None] | None = None

    def identity(self) -> dict[str, Any]:
        """Return all attributes on which the energies of a frame depend, without errors and derived attributes."""
        return {name: value for name, value in self.__getstate__().items()
                if name not in ("error", "error_forces", "_potential", "_removed")}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy with the plan but nothing prepared, in which the engine is replaced by its name.
        """
        return {**self.__dict__, "engine": self.engine.name, "_pairs": None, "_cell": None, "_field": None,
                "_smooth": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, engine=get_engine(state["engine"]))

    def run(self, positions: Floats, cell: Cell | None) -> Energies:
        """Return the energies for positions (N, 3), A, and a cell or None."""
        if self._potential is not None:
            return self._run(positions, cell)

        def attempt(error: float) -> PlanAttempt[Energies]:
            self._plan(positions, cell, error)
            result = self._run(positions, cell)
            measured = self._measure(result, positions, cell)
            return PlanAttempt(result, measured, self._long)

        return refine_to_tolerance(self.tolerance, FIRST_ERROR * self.tolerance, attempt)

    def _request(self, positions: Floats, cell: Cell | None) -> Request:
        """Return a request for the smooth part of the potential at the atoms of A."""
        every = positions[self.every]
        return request_at(positions[self.atoms], every, self.known[self.every], cell, tolerance=self.tolerance,
                          field=self.forces, radius=self.cutoff)

    def _measure(self, result: Energies, positions: Floats, cell: Cell | None) -> float:
        """Measure the errors at some atoms against an exact sum, and return the larger one."""
        self.error = self.error_forces = None
        if self._long is None or self._long.error is None or self._field is None or self._smooth is None:
            return 0.0
        rows, (potential, field) = choose_rows(len(self.atoms)), self._smooth
        q = self.charges[self.atoms[rows]]
        exact, slope, own = exact_values(
            self._long, self._request(positions, cell), Points(positions[self.atoms[rows]]), positions[self.others],
            self.charges[self.others], self.engine)
        exact = exact + np.where(self.in_b[self.atoms[rows]], q * (self._field.self_potential - own), 0.0)
        half = 0.5 if len(self.both) == len(self.others) else 1.0  # share of a pair's energy if both atoms have rows
        weight = np.where(self.in_b[self.atoms[rows]], half, 1.0)
        self.error = rms_ratio(weight * q * (potential[rows] - exact), result.coulomb)
        if result.forces is not None and field is not None and slope is not None:
            self.error_forces = rms_ratio(q[:, None] * (field[:, rows] - slope).T, result.forces)
        return max(self.error, self.error_forces or 0.0)

    def _run(self, positions: Floats, cell: Cell | None) -> Energies:
        pairs = self._prepare(positions, cell)
        energies, forces = np.zeros((len(self.atoms), 2)), np.zeros((len(self.atoms), 3))
        for first, second in [*self.sets, *([(self.both, None)] if len(self.both) else [])]:
            rows = self.row[first]
            # engines assign half of a pair's energy to each atom; here all of it, unless both atoms have rows
            share = 1 if second is None else 2
            result = pairs.run(self._engine_atoms(positions, first, second is None),
                               None if second is None else self._engine_atoms(positions, second, False))
            assert result.energies is not None
            energies[rows, 2 - result.energies.shape[1] :] += share * result.energies
            forces[rows] += result.forces
            if self._sums_all:
                others = None if second is None else (positions[second], self.charges[second])
                halves, push = sum_coulomb(self.engine, positions[first], self.charges[first], others)
                energies[rows, 0] += share * halves
                forces[rows] += push
        if self._field is not None:
            self._add_smooth(self._field, positions, energies, forces)
        self._add_bonded(positions, cell, energies, forces)
        return Energies(self.atoms, energies[:, 0].copy(), energies[:, 1].copy(), forces if self.forces else None)

    def _plan(self, positions: Floats, cell: Cell | None, error: float) -> None:
        """Choose the potentials that are summed over pairs, and a mesh with an error (e/A)."""
        self._pairs = None
        form = ELECTROSTATICS[self.electrostatics]
        if form.method:
            self._long = self._beyond(form.method, positions, cell, error)
        short = None if self._long is None else self._long.short
        summed = short or form.within(self.cutoff)
        self._removed = form.excluded(self.cutoff, summed)
        self._sums_all = summed.cutoff is None
        self._potential = pair_potential(summed, self.cutoff, self._rule)

    def _beyond(self, name: str, positions: Floats, cell: Cell | None, error: float) -> Plan | None:
        """Return a method's plan for the smooth part; None if all pairs of an open boundary are summed instead."""
        method: Method = registry.get("method", name)
        request, costs = self._request(positions, cell).with_error(error), self.engine.costs
        if cell is not None:
            return plan_fastest(request, self.engine, name)
        all_pairs = costs.point_pair * len(self.atoms) * len(self.others)
        if "open" not in method.boundaries or all_pairs < 2 * costs.fixed:  # a mesh could hardly be faster
            return None
        try:
            plan = plan_fastest(request, self.engine, name)
        except TaskError:
            return None
        return plan if plan.estimate.seconds < all_pairs else None

    def _prepare(self, positions: Floats, cell: Cell | None) -> PairsInRange:
        """Return the pair sum and prepare the mesh for a cell, unless the last frame had the same."""
        assert self._potential is not None
        if self._pairs is None or not same_cell(self._cell, cell):
            self._cell = cell
            self._pairs = PairsInRange(self.engine, self._potential, cell)
        if self._long is not None:
            self._field = self._long.prepare(Points(positions[self.every]), positions[self.every], cell)
        return self._pairs

    def _engine_atoms(self, positions: Floats, index: Integers, alone: bool) -> Atoms:
        """Return the atoms `index` for the engine, with exclusions if pairs among them alone are summed."""
        potential = self._potential
        assert potential is not None
        parameters = {"charge": self.charges, **self._parameters}
        tables = {"a6": 6 * self.nonbonded.c6, "a12": 12 * self.nonbonded.c12} if potential.tables else {}
        exclusions = self._own_exclusions if alone else None
        return Atoms(
            positions[index], {name: parameters[name][index] for name in potential.atoms},
            self.nonbonded.types[index] if tables else None, tables, exclusions)

    def _add_smooth(self, field: Prepared, positions: Floats, energies: Floats, forces: Floats) -> None:
        """Add the smooth part of the Coulomb energy, without the energy of atoms with themselves."""
        q, both = self.charges, self.both
        own = q * field.self_potential
        smooth = field.run(positions[self.others], q[self.others], Points(positions[self.atoms]))
        self._smooth = smooth.values(), smooth.field()
        potential, slope = self._smooth[0].copy(), self._smooth[1]
        if slope is not None:
            forces += q[self.atoms, None] * slope.T
        rows = self.row[both]
        potential[rows] -= own[both]
        if len(both):
            among = potential[rows] if len(both) == len(self.others) else (
                field.run(positions[both], q[both], Points(positions[both])).values() - own[both])
            potential[rows] -= among / 2
        energies[:, 0] += q[self.atoms] * potential

    def _add_bonded(self, positions: Floats, cell: Cell | None, energies: Floats, forces: Floats) -> None:
        """Subtract the energies of excluded pairs that were summed, and add those of the 1-4 pairs."""
        q, nonbonded = self.charges, self.nonbonded

        def add(pairs: Oriented, d: Floats, column: int, energy: Floats, slope: Floats) -> None:
            """Add the energies of pairs and, from -1/r dE/dr (`slope`), their forces."""
            rows = self.row[pairs.first]
            np.add.at(energies[:, column], rows, pairs.weight * energy)
            np.add.at(forces, rows, slope[:, None] * d)

        def displacement(pairs: Oriented) -> tuple[Floats, Floats]:
            d = positions[pairs.first] - positions[pairs.second]
            d = d if cell is None else cell.minimum_image(d)
            return d, np.sqrt((d * d).sum(1))

        def charges(pairs: Oriented) -> Floats:
            product: Floats = q[pairs.first] * q[pairs.second]
            return product

        if self._field is not None and len(self.excluded.first):  # the smooth part, 1/r minus the short-range part
            d, r = displacement(self.excluded)
            qq = charges(self.excluded)
            short = self._removed
            add(self.excluded, d, 0, qq * (short(r) - 1 / r), qq * (-short.derivative(r) / r - 1 / r**3))
        # kernels include excluded pairs of two sets, and the sum over all pairs any; the response of a reaction field's
        # medium to them remains
        summed = self.excluded if self._sums_all else self.excluded_apart
        if len(summed.first):
            d, r = displacement(summed)
            r = np.maximum(r, SOFT_CORE) if self._sums_all else r
            qq, law = charges(summed), self._removed
            add(summed, d, 0, -qq * law(r), qq * law.derivative(r) / r)
        apart = self.excluded_apart
        if len(apart.first):
            d, r = displacement(apart)
            inside = r < self.cutoff
            types = nonbonded.types[apart.first], nonbonded.types[apart.second]
            value, slope = lennard_jones_energy(nonbonded.c6[types] * inside, nonbonded.c12[types] * inside, r)
            add(apart, d, 1, -value, -slope)
        near = self.pairs14
        if len(near.first):
            d, r = displacement(near)
            qq = charges(near) * nonbonded.charges14[near.pair]
            law = ELECTROSTATICS[self.electrostatics].bonded
            add(near, d, 0, qq * law(r), -qq * law.derivative(r) / r)
            add(near, d, 1, *lennard_jones_energy(nonbonded.c6_14[near.pair], nonbonded.c12_14[near.pair], r))

    def _towards(self, pairs: Integers) -> Oriented:
        """Return the pairs among `pairs` (E, 2) with one atom in A and the other in B, oriented from A to B.

        Pairs whose atoms are both in A and in B are returned in both orientations, each with half of the energy.
        """
        number = np.arange(len(pairs))
        forth = self.in_a[pairs[:, 0]] & self.in_b[pairs[:, 1]]
        back = self.in_a[pairs[:, 1]] & self.in_b[pairs[:, 0]]
        weight = np.where(forth & back, 0.5, 1.0)
        return Oriented(
            np.concatenate([pairs[forth, 0], pairs[back, 1]]), np.concatenate([pairs[forth, 1], pairs[back, 0]]),
            np.concatenate([weight[forth], weight[back]]), np.concatenate([number[forth], number[back]]))


@dataclass(frozen=True, eq=False)
class Oriented:
    """Pairs oriented from A to B: indices of their atoms, weights of their energies, and indices of the pairs."""

    first: Integers
    second: Integers
    weight: Floats
    pair: Integers

    def subset(self, chosen: NDArray[np.bool_]) -> Oriented:
        """Return the pairs selected by a mask."""
        return Oriented(self.first[chosen], self.second[chosen], self.weight[chosen], self.pair[chosen])


def _mask(selection: ArrayLike, count: int) -> NDArray[np.bool_]:
    index = np.asarray(selection)
    mask = np.zeros(count, bool)
    mask[index] = True
    if not mask.any():
        raise UsageError("between", "a selection contains no atoms")
    return mask
