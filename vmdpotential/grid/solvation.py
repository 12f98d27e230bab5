"""Electrostatic solvation energy, which is computed together with a map in a continuum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential.results import TableColumns, Tabular


class Residues(Protocol):
    """Structure whose atoms are grouped into residues."""

    @property
    def residue_starts(self) -> NDArray[np.int64]:
        """Index of the first atom of every residue, and the number of atoms, (R + 1,)."""


@dataclass(frozen=True, eq=False)
class Solvation(Tabular):
    """Electrostatic energy of a molecule in a continuum, minus that in a uniform medium of its own permittivity.

    Parameters
    ----------
    energies : (N,) float64, kcal/mol
        Energy of each atom of the structure; 0 for atoms that were not selected.
    error : float, kcal/mol
        Error of the total, estimated from two lattices.
    ions : float, kcal/mol
        Energy of the ions of the solution that is not assigned to atoms; 0 for the linear equation.
    """

    energies: NDArray[np.float64]
    error: float
    ions: float = 0.0

    def __repr__(self) -> str:
        return f"Solvation({self.total:.1f} kcal/mol of {len(self.energies)} atoms, error {self.error:.1f})"

    @property
    def total(self) -> float:
        """Sum over the atoms and the ions of the solution, kcal/mol."""
        return float(self.energies.sum()) + self.ions

    def table(self) -> TableColumns:
        """Return the columns of a table with a row for each atom; energies are in kcal/mol."""
        return {"atom": np.arange(len(self.energies)), "energy": self.energies}

    def by_residue(self, structure: Residues) -> NDArray[np.float64]:
        """Return the energies of the residues (R,) of the structure, kcal/mol."""
        sums: NDArray[np.float64] = np.add.reduceat(self.energies, structure.residue_starts[:-1])
        return sums
