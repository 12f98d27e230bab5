"""A map and atoms that tests draw, and what was drawn."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure

from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.molecule.structure import Structure


def linear(p):
    return 2 * p[..., 0] - 3 * p[..., 1] + 0.5 * p[..., 2] + 4


def wave(p):
    return 5 * np.sin(p[..., 0] / 4) * np.cos(p[..., 1] / 5) + np.sin(p[..., 2] / 3)


def make(function=wave, shape=(25, 31, 41), spacing=(1.0, 0.75, 0.5), origin=(-3, 4, 7.5), **changes):
    lattice = Lattice(origin, spacing, shape)
    settings = {"unit": "kT/e", "temperature": 298.15} | changes
    return Grid(lattice, function(lattice.points()).reshape(shape).astype(np.float32), **settings)


def protein_like():
    """Eight atoms: a chain of C, N, O in the plane z = 15, waters, a hydrogen, an ion above it."""
    names = ["N", "CA", "C", "O", "H", "OW", "SG", "SOD"]
    elements = ["N", "C", "C", "O", "H", "O", "S", "Na"]
    residues = ["ALA"] * 5 + ["HOH", "CYS", "SOD"]
    positions = [[2, 10, 15], [3.4, 10, 15], [4.6, 10.8, 15.2], [5.8, 10.8, 15], [2, 9, 15], [10, 15, 15],
                 [12, 20, 15.5], [8, 8, 18]]
    return Structure(
        positions=np.array(positions, float), atom_names=np.array(names), residue_names=np.array(residues),
        residue_ids=np.arange(8), residue_index=np.array([0, 0, 0, 0, 0, 1, 2, 3]), elements=np.array(elements))


def axes(width=4, height=3):
    return Figure(figsize=(width, height)).add_axes((0.1, 0.1, 0.8, 0.8))


def atoms_of(ax):
    (atoms,) = [artist for artist in ax.collections if isinstance(artist, EllipseCollection)]
    return atoms.get_offsets(), atoms.get_facecolors()
