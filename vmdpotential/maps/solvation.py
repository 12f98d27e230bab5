"""Electrostatic energy of solvation, in total and by atom, by the method ``pb``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from vmdpotential.errors import UsageError
from vmdpotential.grid.solvation import Solvation
from vmdpotential.maps.interaction import check_tolerance
from vmdpotential.maps.options import MapOptions
from vmdpotential.maps.plan import plan_map
from vmdpotential.molecule.conversions import StructureLike
from vmdpotential.molecule.selection import Selection
from vmdpotential.parameters import takes_aliases
from vmdpotential.preparation.charged import with_charges
from vmdpotential.sums.refinement import BY_SPACING, PlanAttempt, refine_to_tolerance
from vmdpotential.units import DEFAULT_TEMPERATURE


@takes_aliases(MapOptions)
def solvation_energy(structure: StructureLike, *, spacing: float = 0.5, tolerance: float | None = None,
                     atoms: Selection = "solute", sources: Selection | None = None, radii: str = "auto",
                     parameters: Mapping[str, float] | None = None, temperature: float = DEFAULT_TEMPERATURE,
                     dielectric: float | None = None, engine: str = "auto") -> Solvation:
    """Return the electrostatic energy of solvation by the Poisson-Boltzmann equation.

    Parameters
    ----------
    structure : Structure or path
        Structure. If it has no charges, these are assigned, and missing atoms are added, which is logged.
    spacing : float, A
        Spacing of the lattice.
    tolerance : float, optional
        Largest relative error of the energy: the spacing is reduced until the estimated error is within it.
    atoms, sources, radii, parameters, temperature, dielectric, engine : object
        See :func:`vmdpotential.maps.potential_map` with the method ``pb``.

    Returns
    -------
    Solvation
        The energy of every atom in kcal/mol, and the error of their sum.

    Raises
    ------
    UsageError
        For a wrong option.
    InputError
        If there are no charges or radii.
    TaskError
        If the solution does not converge, or no spacing keeps the tolerance.
    MemoryPlanError
        If the lattice does not fit into memory.

    Examples
    --------
    >>> structure = vp.prepare("data/1hvr.pdb.gz").structure
    >>> vp.solvation_energy(structure, spacing=1.5).total < 0  # kcal/mol
    True
    """
    if (parameters or {}).get("voltage"):
        raise UsageError("set", "an energy of solvation does not contain the work of a voltage", "leave out voltage")
    structure, (atoms, sources) = with_charges(structure, atoms, sources)
    options = MapOptions(
        method="pb", parameters=parameters, radii=radii, sources=sources, padding=6.0, tolerance=1e-3, atoms=atoms,
        temperature=temperature, dielectric=dielectric, engine=engine)

    def attempt(spacing: float) -> PlanAttempt[Solvation]:
        planned, result = plan_map(structure, replace(options, spacing=spacing))
        solvation = planned.grid(result).solvation
        assert solvation is not None
        return PlanAttempt(solvation, solvation.error / max(1e-9, abs(solvation.total)))

    return attempt(spacing).result if tolerance is None else refine_to_tolerance(
        check_tolerance(tolerance), spacing, attempt, BY_SPACING)
