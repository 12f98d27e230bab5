"""Electrostatic binding energy of two parts of a structure in water: their interaction and desolvation.

All states of the thermodynamic cycle use the same grid (M. K. Gilson, B. Honig, Proteins 4 (1988) 7): the charges of
each part are solvated in the shape of the part alone, and in the shape of the complex, from which more water is
excluded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.continuum.stated_errors import combine_errors
from vmdpotential.engines import PotentialSum, get_engine
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Points
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.maps.medium import Medium
from vmdpotential.maps.options import MapOptions
from vmdpotential.maps.places import build_lattice
from vmdpotential.maps.plan import plan_map
from vmdpotential.maps.solute import in_continuum
from vmdpotential.molecule.conversions import StructureLike
from vmdpotential.molecule.selection import Selection, select
from vmdpotential.parameters import takes_aliases
from vmdpotential.preparation.charged import with_charges
from vmdpotential.results import TableColumns, Tabular
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant

#: Margin of the lattice around both parts, A; beyond it the solution is that on the coarse lattice.
PADDING = 6.0


@dataclass(frozen=True)
class Binding(Tabular):
    """Electrostatic binding energy of two parts in a continuum, kcal/mol.

    Parameters
    ----------
    coulomb : float
        Coulomb energy between their charges, in a medium of the permittivity of the molecules.
    screening : float
        Contribution of the water around both parts and its ions to the interaction.
    desolvation : tuple of float
        Change of each part's energy of solvation, because the other part excludes water.
    error : float
        Error of the total, from the difference of the total on two lattices.
    """

    coulomb: float
    screening: float
    desolvation: tuple[float, float]
    error: float

    def table(self) -> TableColumns:
        """Return the columns of a table with one row; energies are in kcal/mol."""
        parts = {f"desolvation_{n}": [energy] for n, energy in enumerate(self.desolvation, 1)}
        return {"coulomb": [self.coulomb], "screening": [self.screening], **parts, "total": [self.total],
                "error": [self.error]}

    @property
    def total(self) -> float:
        """Electrostatic energy of binding of rigid parts, kcal/mol."""
        return self.coulomb + self.screening + sum(self.desolvation)


@takes_aliases(MapOptions)
def binding_energy(structure: StructureLike, first: Selection, second: Selection, *, spacing: float = 0.5,
                   radii: str = "auto", parameters: Mapping[str, float] | None = None,
                   temperature: float = DEFAULT_TEMPERATURE, dielectric: float | None = None,
                   engine: str = "auto") -> Binding:
    """Return the electrostatic binding energy of two parts of a structure by the linear Poisson-Boltzmann equation.

    Parameters
    ----------
    structure : Structure or path
        Structure. If it has no charges, these are assigned, and missing atoms are added, which is logged. Atoms that
        are in neither part are left out.
    first, second : str or array
        Atoms of each part, see :func:`vmdpotential.molecule.selection.select`.
    spacing : float, A
        Spacing of the lattice.
    radii, parameters, temperature, dielectric, engine : object
        See :func:`vmdpotential.maps.potential_map` with the method ``pb``.

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
    ['coulomb', 'screening', 'desolvation_1', 'desolvation_2', 'total', 'error']
    """
    structure, (_, first, second) = with_charges(structure, None, first, second)
    a, b = select(structure, first, "first"), select(structure, second, "second")
    if (a & b).any():
        raise UsageError("between", f"{int((a & b).sum())} atoms are in both selections",
                         "choose parts that share no atoms")
    if (parameters or {}).get("nonlinear"):
        raise UsageError("set", "the energies of parts only add up for the linear equation", "leave out nonlinear")
    both = a | b
    structure = in_continuum(structure, both, Medium.continuum())[0]
    lattice = build_lattice(structure, structure.positions[both], None, spacing, PADDING)

    def solved(atoms: NDArray[np.bool_], sources: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the reaction potential at all atoms and its expected error, (2, N) kT/e."""
        planned, result = plan_map(structure, MapOptions(
            method="pb", parameters=parameters, radii=radii, sources=sources, boundary="open", spacing=spacing,
            padding=PADDING, atoms=atoms, temperature=temperature, dielectric=dielectric, engine=engine),
            lattice=lattice)
        solvated = result.solvated
        assert solvated is not None
        reaction = np.zeros((2, len(structure)))
        reaction[:, planned.chosen] = solvated.reaction, solvated.reaction_errors
        return reaction

    charges = structure.known_charges
    reactions, screening = [], []
    errors = np.zeros(len(structure))  # of the sum, by atoms: those of large energies of solvation cancel
    for part, other in ((a, b), (b, a)):
        within, alone = solved(both, part), solved(part, part)
        desolvation = 0.5 * np.where(part, charges, 0.0) * (within - alone)
        interaction = np.where(other, charges, 0.0) * within
        reactions.append(float(desolvation[0].sum()))
        screening.append(float(interaction[0].sum()))
        errors += desolvation[1] + 0.5 * interaction[1]
    kt = coulomb_constant("kcal/mol/e") / coulomb_constant("kT/e", temperature)
    potential = get_engine(engine).prepare(PotentialSum(Points(structure.positions[b]), COULOMB.bind())).run(
        structure.positions[a], charges[a]).values()
    values = registry.get("solver", "pb").parameters(parameters or {})
    sharp = values["probe"] < lattice.spacing.max() and not values["gaussian"]
    return Binding(coulomb_constant("kcal/mol/e") / values["inside"] * float(charges[b] @ potential),
                   kt * float(np.mean(screening)), (kt * reactions[0], kt * reactions[1]),
                   kt * float(np.hypot(combine_errors(errors, sharp), 0.5 * (screening[0] - screening[1]))))
