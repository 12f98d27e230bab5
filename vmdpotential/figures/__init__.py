"""Figures of slices and profiles."""
