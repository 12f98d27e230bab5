"""Lattice sums on the CPU: pairs of atoms and lattice points, and the smooth part by a mesh."""
