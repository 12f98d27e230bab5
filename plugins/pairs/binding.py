"""Energies of binding of two parts of a structure in water: their interaction, desolvation and surface.

The charges of each part are solvated in the shape of the part alone, and in the shape of the complex, from which more
water is excluded. All states of the thermodynamic cycle have the same grid points, so that errors of the grid cancel
(M. K. Gilson, B. Honig, Proteins 4 (1988) 7); a part alone only has those around it, unless no ions shield it from
errors at the faces. With a Generalized Born model, the complex has other Born radii than the parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.maps.medium import Medium
from vmdpotential.maps.options import MapOptions
from vmdpotential.maps.solute import in_continuum
from vmdpotential.maps.solution import solution_of, with_membrane
from vmdpotential.maps.solver import SolventRequest, describe_solution, in_solution
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.conversions import StructureLike
from vmdpotential.molecule.selection import Selection, is_solvated, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.whole import WholeComplex
from vmdpotential.parameters import takes_aliases
from vmdpotential.preparation.charged import with_charges
from vmdpotential.results import TableColumns, Tabular
from vmdpotential.sums import ChargeStatistics, Request
from vmdpotential.surfaces.areas import lost_areas
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant

from ..continuum.boundary import exposed_to_faces
from ..continuum.lattices import aligned_lattice
from ..continuum.node_potential import NodePotential
from ..continuum.request import continuum_of_request
from ..continuum.solution import TwoLattices, solve_charge_sets
from ..continuum.stated_errors import combine_errors, least_error_of_change
from .all_pairs import coulomb_between
from .generalized_born import MODELS, GeneralizedBorn

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Margin of the lattice around both parts, A, beyond which the solution is that on the coarse lattice; and where ions
#: shield the parts from errors at the faces.
PADDING, SHIELDED_PADDING = 6.0, 4.0

#: Error of energies of solvation by the tolerance of the solutions and by values at faces, relative to them.
SOLVED = 3e-6

#: Radius of the probe of the accessible surface, A.
SURFACE_PROBE = 1.4

#: What :meth:`BindingPlan.run` returns of each atom.
ATOM_TERMS = ("coulomb", "screening", "desolvation", "surface")


@dataclass(frozen=True)
class Binding(Tabular):
    """Binding energy of two rigid parts in a continuum, kcal/mol, without their van der Waals energy.

    Parameters
    ----------
    coulomb : float
        Coulomb energy between their charges, in a medium of the permittivity of the molecules.
    screening : float
        Contribution of the water around both parts and its ions to the interaction.
    desolvation : tuple of float
        Change of each part's energy of solvation, because the other part excludes water.
    error : float
        Error of the total, from the difference of the total on two lattices; 0 for Generalized Born models, which have
        no lattice.
    surface : float
        Energy of the surface that is buried between them.
    """

    coulomb: float
    screening: float
    desolvation: tuple[float, float]
    error: float
    surface: float = 0.0

    def table(self) -> TableColumns:
        """Return the columns of a table with one row; energies are in kcal/mol."""
        parts = {f"desolvation_{n}": [energy] for n, energy in enumerate(self.desolvation, 1)}
        return {"coulomb": [self.coulomb], "screening": [self.screening], **parts, "surface": [self.surface],
                "total": [self.total], "error": [self.error]}

    @property
    def total(self) -> float:
        """Sum of all terms, kcal/mol."""
        return self.coulomb + self.screening + sum(self.desolvation) + self.surface


@dataclass(frozen=True)
class SurfaceEnergy:
    """Energy of the solvent-accessible surface of a molecule: tension times area, plus an offset.

    Parameters
    ----------
    tension : float, kcal/mol/A^2
    offset : float, kcal/mol
    """

    tension: float = 0.0
    offset: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.tension or self.offset)

    def of_binding(self, positions: Floats, radii: Floats, first: Mask) -> Floats:
        """Return the change by binding for each atom (n,) at positions (n, 3), A; `first` are those of the first part.

        The offset, by which two molecules have more than one, is divided by the areas that atoms lose.
        """
        if not self:
            return np.zeros(len(radii))
        lost = lost_areas(positions, radii, SURFACE_PROBE, first)
        whole = float(lost.sum())
        return -self.tension * lost - self.offset * (lost / whole if whole > 0 else np.full(len(lost), 1 / len(lost)))


@dataclass(eq=False)
class BindingPlan(ABC):
    """Binding energies of two parts of a structure, planned for the first positions, and run for others.

    Parameters
    ----------
    structure : Structure
    chosen : (N,) bool
        Atoms of both parts.
    first : (n,) bool
        Which of the chosen atoms are in the first part.
    surface : SurfaceEnergy
    inside : float
        Permittivity of both parts.
    engine : str
    together : WholeComplex or None
        Makes molecules whole that a periodic cell splits.
    """

    structure: Structure
    chosen: Mask
    first: Mask
    surface: SurfaceEnergy
    inside: float
    engine: str
    together: WholeComplex | None

    @property
    @abstractmethod
    def description(self) -> str:
        """The model and its parameters, for reports."""

    @property
    def membrane(self) -> Mapping[str, float]:
        """The parameters of the membrane that the molecules are in."""
        return {}

    def identity(self) -> object:
        """Return the data that determine the energies, for fingerprints of inputs."""
        return type(self).__name__, {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @abstractmethod
    def solvation(self, positions: Floats, coulomb: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Return what the solvent contributes at positions (n, 3), A, of the chosen atoms.

        These are the screening and the desolvation of each atom (n,), kcal/mol, the atoms' radii (n,), A, and the error
        of the energy, kcal/mol. `coulomb` (n,), kcal/mol, are the Coulomb energies of atoms.
        """

    def run(self, positions: Floats, cell: Cell | None) -> tuple[Floats, float]:
        """Return the energies (n, terms) of the chosen atoms, kcal/mol, and their error, for positions (N, 3), A.

        The terms are :data:`ATOM_TERMS`; half of a pair's energy is assigned to each atom.
        """
        places = (positions if self.together is None else self.together(positions, cell))[self.chosen]
        root = np.sqrt(coulomb_constant("kcal/mol/e") / self.inside)
        charges = root * self.structure.known_charges[self.chosen]
        coulomb = np.empty(len(places))
        parts = self.first, ~self.first
        for part, energies in zip(parts, coulomb_between(
                get_engine(self.engine), *(values[part] for part in parts for values in (places, charges))),
                strict=True):
            coulomb[part] = energies
        screening, desolvation, radii, error = self.solvation(places, coulomb)
        surface = self.surface.of_binding(places, radii, self.first)
        return np.stack([coulomb, screening, desolvation, surface], 1), error

    def binding(self, terms: Floats, error: float) -> Binding:
        """Return the sums of energies (n, terms) of atoms."""
        coulomb, screening, _, surface = terms.sum(0).tolist()
        return Binding(coulomb, screening, (float(terms[self.first, 2].sum()), float(terms[~self.first, 2].sum())),
                       error, surface)

    def for_block(self) -> BindingPlan:
        """Return a copy whose results do not depend on positions that others had."""
        return copy(self)


@dataclass(eq=False)
class BornBinding(BindingPlan):
    """Binding energies by a Generalized Born model.

    Parameters
    ----------
    model : str
    born : GeneralizedBorn
        That of the chosen atoms.
    """

    model: str
    born: GeneralizedBorn

    @property
    def description(self) -> str:
        """The model and its parameters."""
        born = self.born
        return (f"Generalized Born, {self.model} with {born.model.radii} radii, kappa {born.kappa:.4g}/A, dielectric "
                f"{born.outside:g}, {born.inside:g} inside")

    def solvation(self, positions: Floats, coulomb: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Return screening, desolvation, radii, and no error."""
        rows = np.flatnonzero(self.first), np.flatnonzero(~self.first)
        (a, x), (b, y) = parts = [(self.born.take(each), positions[each]) for each in rows]
        both, bound = a.integrals_between(x, b, y), []
        desolvation, screening = np.empty(len(positions)), np.empty(len(positions))
        for row, (part, places), more in zip(rows, parts, both, strict=True):
            alone = part.integrals(places)
            bound.append(part.born_radii(alone + more))
            desolvation[row] = part.changes_of(places, bound[-1], part.born_radii(alone))
        for row, energies in zip(rows, a.energies_between(x, bound[0], b, y, bound[1]), strict=True):
            screening[row] = 0.5 * energies
        return screening, desolvation, self.born.radii, 0.0


@dataclass(eq=False)
class PbBinding(BindingPlan):
    """Binding energies by the linear Poisson-Boltzmann equation.

    Parameters
    ----------
    spacing : float, A
    solution : SolventRequest
        The solution around the chosen atoms.
    """

    spacing: float
    solution: SolventRequest
    _sums: list[NodePotential] = field(init=False)

    def __post_init__(self) -> None:
        #: The potentials at nodes of the charges of each part, by methods that are chosen for the first frame.
        self._sums = [NodePotential(self.engine, keeps_values=True) for _ in range(2)]

    def for_block(self) -> PbBinding:
        """Return a copy without what depends on other positions than the first."""
        result = copy(self)
        result._sums = [copy(each) for each in self._sums]
        return result

    @property
    def description(self) -> str:
        """The solution, and how its surface and the equation are discretised."""
        solution = self.solution
        probe = "" if solution.values["gaussian"] else f"probe {solution.values['probe']:g} A, "
        return (f"{describe_solution(solution.values, solution.dielectric)}, radii {solution.source}, {probe}"
                f"spacing {self.spacing:g} A")

    @property
    def membrane(self) -> Mapping[str, float]:
        """The parameters of the membrane, also of one that was found."""
        return {name: self.solution.values[name] for name in ("membrane", "membrane_centre")}

    def solvation(self, positions: Floats, coulomb: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Return screening, desolvation, radii and the error from two lattices."""
        engine, radii = get_engine(self.engine), self.solution.radii
        charges = self.structure.known_charges[self.chosen]
        whole = continuum_of_request(self.solution, positions, charges)
        padding = PADDING if exposed_to_faces(whole) else SHIELDED_PADDING
        lattice = Lattice.around(positions, self.spacing, padding)
        parts = [self.first, ~self.first]
        alone_in = [continuum_of_request(replace(self.solution, radii=radii[part]), positions[part], charges[part])
                    for part in parts]
        # a ligand may close a pore, which is there in all states
        slab = next((c.membrane for c in (*alone_in, whole) if c.membrane is not None and c.membrane.pores is not None),
                    whole.membrane)
        whole, *alone_in = (replace(c, membrane=slab) for c in (whole, *alone_in))

        sources, within, ratio = [np.where(part, charges, 0.0) for part in parts], [], 2
        for solved in solve_charge_sets(whole, lattice, engine, sources, self._sums, energies=True):
            within.append(np.stack([solved.reaction, solved.reaction_errors().expected]))
            ratio = solved.ratio
        del solved
        screening, desolvation, depths = (np.empty(len(charges)) for _ in range(3))
        sizes, whole_size = [], 0.0
        errors = np.zeros(len(charges))  # of the sum, by atoms: those of large energies of solvation cancel
        for number in range(2):
            part, potential = parts[number], within[number]
            nodes = lattice
            if not exposed_to_faces(alone_in[number]):  # otherwise, errors at faces that are the same cancel
                nodes = aligned_lattice(Lattice.around(positions[part], self.spacing, padding), lattice, ratio)
            alone = TwoLattices(alone_in[number], nodes, engine, self._sums[number], energies=True)
            change = 0.5 * charges[part] * (potential[:, part] - [alone.reaction, alone.reaction_errors().expected])
            interaction = charges[~part] * potential[:, ~part]
            desolvation[part], screening[~part] = change[0], 0.5 * interaction[0]
            depths[part] = alone.continuum.covers.depths
            sizes.append(float(interaction[0].sum()))
            whole_size += 0.5 * abs(float(charges[part] @ alone.reaction))
            errors[part] += change[1]
            errors[~part] += 0.5 * interaction[1]
        values, spacing = self.solution.values, float(lattice.spacing.max())
        sharp = values["probe"] < spacing and not values["gaussian"]
        kt = coulomb_constant("kcal/mol/e") / coulomb_constant("kT/e", self.solution.temperature)
        changes = [(float(desolvation[part].sum()), desolvation[part], depths[part]) for part in parts]
        changes.append((float((screening + coulomb / kt).sum()), screening, depths))
        error = np.linalg.norm([
            combine_errors(errors, sharp, spacing), 0.5 * (sizes[0] - sizes[1]), SOLVED * whole_size,
            *(least_error_of_change(*change, spacing) for change in changes)])
        return kt * screening, kt * desolvation, radii, kt * float(error)


@dataclass(frozen=True, kw_only=True)
class BindingOptions:
    """How energies of binding are computed; see :func:`binding_energy`."""

    model: str = "pb"
    spacing: float = 0.5
    radii: str = "auto"
    parameters: Mapping[str, float] | None = None
    temperature: float = DEFAULT_TEMPERATURE
    dielectric: float | None = None
    surface: SurfaceEnergy = SurfaceEnergy()
    engine: str = "auto"


def plan_binding(structure: Structure, a: Mask, b: Mask, options: BindingOptions, frames: bool = False) -> BindingPlan:
    """Return the plan of binding energies of two parts of a structure with charges.

    `frames` tells whether positions come from a trajectory.
    """
    model, parameters, surface, engine = options.model, options.parameters, options.surface, options.engine
    spacing, temperature, dielectric = options.spacing, options.temperature, options.dielectric
    if (a & b).any():
        raise UsageError("between", f"{int((a & b).sum())} atoms are in both selections",
                         "choose parts that share no atoms")
    if (parameters or {}).get("voltage"):
        raise UsageError("set", "energies of binding do not contain the work of a voltage", "leave out voltage")
    if (parameters or {}).get("nonlinear"):
        raise UsageError("set", "the energies of parts only add up for the linear equation", "leave out nonlinear")
    structure, chosen, together = in_continuum(structure, a | b, Medium.continuum(), frames)
    first, atoms = a[chosen], structure.take(chosen)
    if is_solvated(atoms):
        raise InputError(f"{structure.where}: most of the selected atoms are of waters, which the continuum replaces",
                         "select the parts without them in {between}")
    if model in MODELS:
        born = GeneralizedBorn.of(atoms, model, parameters, dielectric, temperature, engine)
        return BornBinding(structure, chosen, first, surface, born.inside, engine, together, model, born)
    given: dict[str, Any] = {**(parameters or {}), "dielectric": dielectric}
    medium = with_membrane(Medium.continuum(method="pb", temperature=temperature, **given), structure, chosen)
    solution = solution_of(atoms, np.ones(len(atoms), bool), options.radii, medium, "kT/e")
    request = Request(Lattice.around(atoms.positions, spacing, PADDING), None, COULOMB.bind(),
                      ChargeStatistics.of(atoms.positions, atoms.known_charges))
    registry.get("solver", "pb").require(in_solution(request, solution), get_engine(engine))
    return PbBinding(structure, chosen, first, surface, solution.values["inside"], engine, together, spacing, solution)


@takes_aliases(MapOptions)
def binding_energy(structure: StructureLike, first: Selection, second: Selection, *, model: str = "pb",
                   spacing: float = 0.5,
                   radii: str = "auto", parameters: Mapping[str, float] | None = None,
                   temperature: float = DEFAULT_TEMPERATURE, dielectric: float | None = None,
                   engine: str = "auto") -> Binding:
    """Return the binding energy of two rigid parts of a structure in water, without their van der Waals energy.

    Parameters
    ----------
    structure : Structure or path
        Structure. If it has no charges, these are assigned, and missing atoms are added, which is logged. Atoms that
        are in neither part are left out.
    first, second : str or array
        Atoms of each part, see :func:`vmdpotential.molecule.selection.select`.
    model : str
        ``pb``, the linear Poisson-Boltzmann equation; or a Generalized Born model, ``obc2`` or ``gbn2``, which has
        radii of its own.
    spacing : float, A
        Spacing of the lattice of ``pb``.
    radii, parameters, temperature, dielectric, engine : object
        See :func:`vmdpotential.maps.potential_map` with the method ``pb``. Generalized Born models have the parameters
        ``salt`` (0.15 M) and ``inside`` (1).

    Returns
    -------
    Binding
        The energies in kcal/mol, and their error.

    Raises
    ------
    UsageError
        For parts that share atoms, or the nonlinear equation, whose energies do not add up.
    InputError
        If there are no charges or radii.
    TaskError
        If the solution does not converge.
    MemoryPlanError
        If the lattice does not fit into memory.

    Examples
    --------
    >>> structure = vp.prepare("data/1hvr.pdb.gz").structure
    >>> bound = vp.binding_energy(structure, "//*/(XK2)", "protein", spacing=1.5)
    >>> bound.to_dataframe().columns.tolist()
    ['coulomb', 'screening', 'desolvation_1', 'desolvation_2', 'surface', 'total', 'error']
    """
    structure, (_, first, second) = with_charges(structure, None, first, second)
    options = BindingOptions(model=model, spacing=spacing, radii=radii, parameters=parameters, temperature=temperature,
                             dielectric=dielectric, engine=engine)
    plan = plan_binding(structure, select(structure, first, "first"), select(structure, second, "second"), options)
    return plan.binding(*plan.run(structure.positions, structure.cell))
