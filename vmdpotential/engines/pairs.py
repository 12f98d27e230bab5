"""Sums over pairs of atoms: what is asked of an engine, and what it gives back.

An engine prepares a :class:`PairSum` once. With a cutoff it then *searches* the pairs in range of some atoms, which
makes a :class:`PairList` that holds as long as no atom moves by more than half of the buffer, and the list is *run* for
positions. Without a cutoff all pairs are summed. Each pair counts once, half of its energy for each of its atoms.
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

#: ``single``: terms in float32, energies and virials summed in float64. ``double``: all in float64.
PRECISIONS = ("single", "double")


@dataclass(frozen=True, eq=False)
class PairSum:
    """What is summed.

    Parameters
    ----------
    potential : PairPotential
        With its cutoff; without one all pairs are summed.
    cell : Cell or None
        Every image within the cutoff counts, of an atom's own images too.
    precision : str
        One of :data:`PRECISIONS`.
    energy, virial, jerk : bool
        What is wanted next to forces; a jerk only without a cutoff.
    buffer : float, A
        How much farther than the cutoff pairs are listed.
    layout : str
        Of clusters, one that the engine knows; it takes the fastest itself for ``auto``.
    """

    potential: PairPotential
    cell: Cell | None = None
    precision: str = "single"
    energy: bool = False
    virial: bool = False
    jerk: bool = False
    buffer: float = 0.0
    layout: str = "auto"

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UsageError("precision", f"choose one of {', '.join(PRECISIONS)}", value=self.precision)
        if self.potential.cutoff is None and self.cell is not None:
            raise UsageError("cell", "the sum over all pairs and their images has no end: it has no cutoff")

    @property
    def reach(self) -> float | None:
        """Distance in A up to which pairs are listed."""
        cutoff = self.potential.cutoff
        return None if cutoff is None else cutoff + self.buffer


@dataclass(frozen=True, eq=False)
class Atoms:
    """Atoms with what a pair potential takes of them.

    Parameters
    ----------
    positions : (N, 3) float64, A
        Anywhere; a cell wraps them.
    parameters : mapping of (N,) float64
        What `PairPotential.atoms` names, in its units of A and kcal/mol.
    types : (N,) int64, optional
        Rows of the tables.
    tables : mapping of (T, T) float64
        What `PairPotential.tables` names.
    exclusions : (E, 2) int64, optional
        Pairs i < j, sorted, that are left out: all images within the cutoff but the nearest one count.
    velocities : (N, 3) float64, optional
        A per unit of time, for jerks.
    """

    positions: Floats
    parameters: Mapping[str, Floats] = field(default_factory=dict)
    types: Integers | None = None
    tables: Mapping[str, Floats] = field(default_factory=dict)
    exclusions: Integers | None = None
    velocities: Floats | None = None

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class PairResult:
    """What pairs add up to.

    Parameters
    ----------
    forces : (N, 3) float64, kcal/mol/A
    energies : (N, terms) float64 or None, kcal/mol
        Half of the energy of every pair that an atom is in.
    virial : (3, 3) float64 or None, kcal/mol
        Sum over pairs of (x_i - x_j) times the force on i.
    jerks : (N, 3) float64 or None
        Rate of change of the forces.
    other : PairResult or None
        Of the other atoms, where pairs of two sets were summed.
    """

    forces: Floats
    energies: Floats | None = None
    virial: Floats | None = None
    jerks: Floats | None = None
    other: PairResult | None = None


class PairList(Protocol):
    """Pairs in range of some atoms."""

    @property
    def slots(self) -> int:
        """Pairs that are computed, in range or not."""

    def run(self, positions: Floats, others: Floats | None = None) -> PairResult:
        """Sum for the atoms, which have moved by less than half of the buffer since the search.

        Many times, but not from two threads at once: a list keeps what it works with.
        """


class PreparedPairs(Protocol):
    """A pair sum on an engine, with kernels compiled; from any thread, any number of times."""

    def search(self, atoms: Atoms, others: Atoms | None = None) -> PairList:
        """Return the pairs in range: of all atoms, or of each atom and the other atoms (no exclusions between)."""

    def run(self, atoms: Atoms, others: Atoms | None = None) -> PairResult:
        """Return the sum over all pairs, or over those of the atoms and the other atoms."""
