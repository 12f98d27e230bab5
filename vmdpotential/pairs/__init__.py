"""Pair interactions: energies and forces between atoms, and distributions of distances."""
