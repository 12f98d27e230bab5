"""Densities of atoms: counted quantities, their units, and sites of high density."""
