"""Adapters that bring the commands of this package into molecular viewers."""
