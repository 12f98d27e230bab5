"""Pair interactions: energies and forces between atoms, n bodies, and distances."""
