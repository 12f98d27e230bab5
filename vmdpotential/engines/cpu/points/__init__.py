"""Sums at arbitrary points on the CPU."""
