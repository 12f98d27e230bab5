"""Trajectories, read frame by frame."""
