"""Densities of atoms: what is counted, in which unit, and the sites where atoms gather."""
