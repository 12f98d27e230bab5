"""Completing structures: missing hydrogens and atoms, protonation states, charges and radii."""
