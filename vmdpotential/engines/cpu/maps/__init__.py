"""Sums on the nodes of a grid: pairs, meshes and levels."""
