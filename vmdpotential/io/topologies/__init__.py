"""Topologies and force fields: charges, bonds, types and Lennard-Jones parameters."""
