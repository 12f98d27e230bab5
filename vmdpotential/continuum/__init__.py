"""A molecule in a continuum: the permittivity and the ions around it on a lattice, and the Poisson-Boltzmann equation.

What the equation is of (:mod:`~vmdpotential.continuum.molecule`), which nodes are inside
(:mod:`~vmdpotential.continuum.region`), what the jump of the unknown at the surface makes
(:mod:`~vmdpotential.continuum.jump`), and the solution (:mod:`~vmdpotential.continuum.equation`).
"""
