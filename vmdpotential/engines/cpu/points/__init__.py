"""Sums at arbitrary points."""
