"""Lattices, maps on them, and planes through them."""
