"""The electrostatic energy of solvation that a map in a continuum has with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential.results import Columns, Tabular


class Residues(Protocol):
    """A structure whose atoms are in residues."""

    @property
    def residue_starts(self) -> NDArray[np.int64]:
        """Index of the first atom of every residue, and the number of atoms, (R + 1,)."""


@dataclass(frozen=True, eq=False)
class Solvation(Tabular):
    """The electrostatic energy of a molecule in a continuum, less that in a medium of its own permittivity.

    Parameters
    ----------
    energies : (N,) float64, kcal/mol
        Of each atom of the structure; 0 for those that were not selected.
    error : float, kcal/mol
        Of the total, from two lattices.
    """

    energies: NDArray[np.float64]
    error: float

    def __repr__(self) -> str:
        return f"Solvation({self.total:.1f} kcal/mol of {len(self.energies)} atoms, error {self.error:.1f})"

    @property
    def total(self) -> float:
        """kcal/mol."""
        return float(self.energies.sum())

    def table(self) -> Columns:
        """Return a row for each atom, kcal/mol."""
        return {"atom": np.arange(len(self.energies)), "energy": self.energies}

    def by_residue(self, structure: Residues) -> NDArray[np.float64]:
        """Return the energies of the residues (R,) of the structure, kcal/mol."""
        sums: NDArray[np.float64] = np.add.reduceat(self.energies, structure.residue_starts[:-1])
        return sums
