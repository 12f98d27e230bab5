"""Sums over pairs of atoms, and histograms of their distances."""
