"""The Poisson-Boltzmann equation on the CPU: molecular surfaces on a lattice, and multigrid."""
