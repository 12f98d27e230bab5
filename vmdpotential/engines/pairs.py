"""The interface of engines for sums over pairs of atoms.

An engine prepares a :class:`PairSum` once. It then *searches* the pairs of some atoms in range. The resulting
:class:`PairList` is valid as long as no atom moves by more than half of the buffer, and is *run* for positions. Each
pair counts once, with half of its energy for each of its atoms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError
from vmdpotential.interactions.pairs import PairPotential
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: ``single``: terms in float32. ``double``: all in float64.
PRECISIONS = ("single", "double")


@dataclass(frozen=True, eq=False)
class PairSum:
    """A sum over the pairs of atoms within a cutoff: the potential, its periodic cell, and the quantities to compute.

    Parameters
    ----------
    potential : PairPotential
        Potential with its cutoff.
    cell : Cell or None
        Periodic cell; every image within the cutoff counts, those of the atom itself included.
    precision : str
        One of :data:`PRECISIONS`.
    energy : bool
        Whether energies are computed in addition to forces.
    buffer : float, A
        Distance beyond the cutoff up to which pairs are listed.
    """

    potential: PairPotential
    cell: Cell | None = None
    precision: str = "single"
    energy: bool = False
    buffer: float = 0.0

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UsageError("precision", f"choose one of {', '.join(PRECISIONS)}", value=self.precision)
        if self.potential.cutoff is None:
            raise UsageError("cutoff", "pairs are summed up to a cutoff, and this potential has none")

    @property
    def reach(self) -> float:
        """Distance in A up to which pairs are listed."""
        assert self.potential.cutoff is not None
        return self.potential.cutoff + self.buffer


@dataclass(frozen=True, eq=False)
class Atoms:
    """Atoms with the parameters that a pair potential needs of them.

    Parameters
    ----------
    positions : (N, 3) float64, A
        Positions, inside or outside of the periodic cell, into which they are wrapped.
    parameters : mapping of (N,) float64
        Arrays by the names in `PairPotential.atoms`, in A and kcal/mol.
    types : (N,) int64, optional
        Row of each atom in the tables.
    tables : mapping of (T, T) float64
        Tables by the names in `PairPotential.tables`.
    exclusions : (E, 2) int64, optional
        Excluded pairs i < j, sorted. Only their nearest images are excluded; others within the cutoff count.
    """

    positions: Floats
    parameters: Mapping[str, Floats] = field(default_factory=dict)
    types: Integers | None = None
    tables: Mapping[str, Floats] = field(default_factory=dict)
    exclusions: Integers | None = None

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class PairResult:
    """Forces and energies of a sum over pairs.

    Parameters
    ----------
    forces : (N, 3) float64, kcal/mol/A
        Force on each atom.
    energies : (N, terms) float64 or None, kcal/mol
        Half of the energies of all pairs of each atom, by the terms of the potential.
    other : PairResult or None
        Result of the second set of atoms, if pairs of two sets were summed.
    """

    forces: Floats
    energies: Floats | None = None
    other: PairResult | None = None


class PairList(Protocol):
    """The pairs of some atoms in range."""

    @property
    def slots(self) -> int:
        """Number of computed pairs, whether in range or not."""

    def run(self, positions: Floats, others: Floats | None = None) -> PairResult:
        """Return the sum for positions of the atoms, which have moved by less than half of the buffer since the search.

        A list can be run many times, but not from two threads at once, because its work arrays are reused.
        """


class PreparedPairs(Protocol):
    """A pair sum on an engine, with compiled kernels; for any thread, any number of times."""

    def search(self, atoms: Atoms, others: Atoms | None = None) -> PairList:
        """Return the pairs in range: among the atoms, or of each atom with each of the others, without exclusions."""

    def run(self, atoms: Atoms, others: Atoms | None = None) -> PairResult:
        """Return the sum over the pairs in range, as a list that is used once."""
