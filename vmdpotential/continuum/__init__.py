"""A molecule in a continuum: the permittivity and the ions around it on a lattice, and the Poisson-Boltzmann equation.

Which nodes are inside (:mod:`~vmdpotential.continuum.region`), and the solution
(:mod:`~vmdpotential.continuum.equation`).
"""
