"""Sums over pairs of atoms on the CPU, and histograms of their distances."""
