"""Pair lists with a buffer, which are used again for atoms that have moved, in single or double precision."""

from __future__ import annotations

import math

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.cell import Cell

from ..pairs.in_range import Atoms, PairList, PairResult, PairsInRange
from ..pairs.pair_terms import PairPotential

#: ``single``: terms in float32. ``double``: all in float64.
PRECISIONS = ("single", "double")


class ListedPairs(PairsInRange):
    """A sum over the pairs of atoms within a cutoff, whose lists are used several times.

    Parameters
    ----------
    engine, potential, cell
        As in :class:`.PairsInRange`.
    precision : str
        One of :data:`PRECISIONS`.
    energy : bool
        Whether energies are computed in addition to forces.
    buffer : float, A
        Distance beyond the cutoff up to which pairs are listed.
    """

    def __init__(self, engine: Engine, potential: PairPotential, cell: Cell | None = None, precision: str = "single",
                 energy: bool = False, buffer: float = 0.0) -> None:
        if precision not in PRECISIONS:
            raise UsageError("precision", f"choose one of {', '.join(PRECISIONS)}", value=precision)
        self.real = np.float32 if precision == "single" else np.float64
        self.energy, self.precision, self.buffer = energy, precision, buffer
        super().__init__(engine, potential, cell)
        self.reach += buffer

    def search(self, atoms: Atoms, others: Atoms | None = None) -> BufferedList:
        """Return the pairs in range: among the atoms, or of each atom with each of the others, without exclusions."""
        return BufferedList(self, [atoms] if others is None else [atoms, others])


class BufferedList(PairList):
    """Pairs in range, valid as long as no atom has moved by more than half of the buffer."""

    pairs: ListedPairs

    def __init__(self, pairs: ListedPairs, atoms: list[Atoms]) -> None:
        super().__init__(pairs, atoms)
        self._before = [np.array(one.positions, np.float64) for one in atoms]

    def run_moved(self, *positions: Floats) -> PairResult:
        """Return the sum for positions (N, 3) of each set of atoms, which may have been wrapped in another way.

        Raises
        ------
        UsageError
            If an atom has moved further than the list allows.
        """
        if [np.shape(x) for x in positions] != [x.shape for x in self._before]:
            raise UsageError("positions", "are not those for which the pairs were searched")
        if not all(np.isfinite(x).all() for x in positions):
            raise InputError("a position is not a finite number")
        for one, x, before in zip(self.sets, positions, self._before, strict=True):
            box, engine = one.box, self.pairs.engine
            moved = (x - before) @ box.rotation
            moved -= np.rint(moved @ box.inverse) @ box.vectors
            farthest, longest = math.sqrt((moved**2).sum(1).max(initial=0)), self.pairs.buffer / 2
            if farthest > longest:
                raise UsageError(
                    "buffer", f"an atom moved by {farthest:.3g} A since the pairs were searched, and the list is valid "
                    f"up to {longest:g} A", "search them again, or use a longer {buffer}")
            with engine.room(0, beside=one.places):
                one.write(engine.array(engine.to_host(one.places) + moved))
        return self.run()
