"""Orbitals and electron densities of quantum chemistry as maps."""
