"""A molecule in a continuum: the permittivity and the ions around it on a lattice, and the Poisson-Boltzmann equation.

What the equation is of (:mod:`~vmdpotential.continuum.molecule`), which nodes are inside
(:mod:`~vmdpotential.continuum.region`), what the jump of the unknown at the surface makes
(:mod:`~vmdpotential.continuum.jump`), the equation on one lattice (:mod:`~vmdpotential.continuum.equation`), its
solution on two (:mod:`~vmdpotential.continuum.solution`), the errors that these show
(:mod:`~vmdpotential.continuum.stated_errors`), and the method `pb`, which uses sums
(:mod:`~vmdpotential.continuum.pb`).
"""
