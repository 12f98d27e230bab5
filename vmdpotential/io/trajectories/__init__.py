"""Trajectories, frame by frame."""
