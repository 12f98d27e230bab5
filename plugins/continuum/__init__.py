"""A molecule in a continuum: the permittivity and the ions around it on a lattice, and the Poisson-Boltzmann equation.

What the equation is of (:mod:`~.molecule`), which nodes are inside (:mod:`~vmdpotential.surfaces.region`), what the
jump of the unknown at the surface makes (:mod:`~.jump`), the equation on one lattice (:mod:`~.equation`), its solution
on two (:mod:`~.solution`), the errors that these show (:mod:`~.stated_errors`), and the method `pb`, which uses sums
(:mod:`~.pb`).

The solver registers through the entry-point group ``vmdpotential.plugins``, as that of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register the solver by its dotted name, which is imported only when the solver is used."""
    from vmdpotential import registry

    registry.register("solver", "pb", f"{__name__}.pb:SOLVER")
