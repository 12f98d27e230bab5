"""Radial distribution functions g(r) between two selections, over frames of a periodic cell.

All periodic images of pairs are counted, so that the range may exceed half of the cell. Let n(r) be the mean number of
pairs of different atoms, one of A and one of B, in the shell of a bin, and V the mean volume; then ::

    g(r) = V n(r) / (pairs * 4/3 pi (r_high^3 - r_low^3)),    pairs = |A| |B| - |A and B|

`count` is the running coordination number: the mean number of atoms of B within r of an atom of A.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.arrays import Floats, Integers
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, Message, TaskError, UsageError, count_of
from vmdpotential.molecule.cell import Cell

from .distances import count_distances

log = logging.getLogger(__name__)

#: Numbers of pairs in a frame that take a minute on one thread, and more than a day.
MANY_PAIRS, MOST_PAIRS = 5e10, 1e14


@dataclass(frozen=True, eq=False)
class Distribution:
    """Radial distribution function.

    Parameters
    ----------
    edges : (bins + 1,) float64, A
        Edges of the bins.
    g : (bins,) float64
    count : (bins,) float64
        Mean number of atoms of B within the upper edge of each bin from an atom of A.
    frames : int
    """

    edges: Floats
    g: Floats
    count: Floats
    frames: int

    def __repr__(self) -> str:
        return f"Distribution({len(self.g)} bins to {self.edges[-1]:g} A, {count_of(self.frames, 'frame')})"

    @property
    def r(self) -> Floats:
        """(bins,) centre of each bin, A."""
        centres: Floats = (self.edges[1:] + self.edges[:-1]) / 2
        return centres


class PairHistogram:
    """Histogram of the distances of pairs between two selections.

    Parameters
    ----------
    a, b : (N,) bool
        The selections, which may overlap or be the same.
    reach : float, A
        Range of the histogram.
    bins : int
    left_out : (E, 2) int64, optional
        Pairs of atoms whose nearest image is not counted.
    engine : str
    """

    def __init__(self, a: ArrayLike, b: ArrayLike, reach: float = 15.0, bins: int = 150,
                 left_out: Integers | None = None, engine: str = "auto") -> None:
        self.a, self.b = np.asarray(a, bool), np.asarray(b, bool)
        if not self.a.any() or not self.b.any():
            raise UsageError("between", "a selection contains no atoms")
        self.engine, self.reach, self.bins = get_engine(engine), reach, bins
        both = self.a & self.b
        #: Sets between which pairs are counted (None: within the first set), and the factor of their counts, which is
        #: 2 within a set, because each pair counts in both orders.
        self.parts = [(first, second, times) for first, second, times in (
            (self.a & ~both, self.b, 1), (both, self.b & ~both, 1), (both, None, 2))
            if first.any() and (second is None or second.any())]
        self.pairs = int(self.a.sum()) * int(self.b.sum()) - int(both.sum())
        if not self.pairs:
            raise UsageError("between", "both selections are the same single atom, which forms no pair")
        pairs = np.zeros((0, 2), np.int64) if left_out is None else left_out
        i, j = pairs[:, 0], pairs[:, 1]
        orders = (self.a[i] & self.b[j]).astype(np.int64) + (self.a[j] & self.b[i])
        self.left_out = np.repeat(pairs, orders, axis=0)
        self._checked = False

    def identity(self) -> tuple[object, ...]:
        """Return all attributes on which the counts of a frame depend."""
        return (self.a, self.b, self.reach, self.bins, self.left_out, self.engine.name)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state, in which the engine is replaced by its name."""
        return {**self.__dict__, "engine": self.engine.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, engine=get_engine(state["engine"]))

    def count(self, positions: Floats, cell: Cell | None) -> Integers:
        """Return the number of pairs (bins,) in each bin, of a frame.

        Raises
        ------
        InputError
            If there is no cell.
        TaskError
            If there are more pairs within the range than can be counted.
        """
        cell, counts = self.check(cell), np.zeros(self.bins, np.int64)
        for first, second, times in self.parts:
            others = None if second is None else np.ascontiguousarray(positions[second])
            counts += times * count_distances(
                self.engine, np.ascontiguousarray(positions[first]), others, cell, self.reach, self.bins)
        if len(self.left_out):
            d = cell.minimum_image(positions[self.left_out[:, 0]] - positions[self.left_out[:, 1]])
            position = np.sqrt((d * d).sum(1)) * (self.bins / self.reach)
            counts -= np.bincount(position[position < self.bins].astype(np.int64), minlength=self.bins)
        return counts

    def check(self, cell: Cell | None) -> Cell:
        """Return the cell after checking it and the number of pairs: warn if a frame takes minutes, refuse if days.

        Raises
        ------
        InputError, TaskError
            As in :meth:`count`.
        """
        if cell is None:
            raise InputError("g(r) needs a periodic cell, because it is relative to the mean density", "give {cell}")
        if self._checked:
            return cell
        self._checked = True
        pairs = self.pairs * 4 / 3 * np.pi * self.reach**3 / cell.volume
        text = f"within {self.reach:g} A there are {pairs:.1e} pairs of atoms, with their images, in each frame"
        if pairs > MOST_PAIRS:
            raise TaskError(text, "use a smaller {range}", parameter="range")
        if pairs > MANY_PAIRS:
            log.warning(Message("%s, which takes minutes; a smaller {range} takes less"), text)
        return cell

    def distribution(self, counts: Integers, volumes: ArrayLike) -> Distribution:
        """Return the distribution of the sum of the counts (bins,) of frames whose cells have these volumes (F,), A^3.
        """
        volume, frames = sum(np.asarray(volumes).tolist()), np.size(volumes)
        edges = np.linspace(0, self.reach, self.bins + 1)
        shells = 4 / 3 * np.pi * np.diff(edges**3)
        mean = counts / frames
        density = self.pairs / (volume / frames)
        return Distribution(edges, mean / (density * shells), np.cumsum(mean) / int(self.a.sum()), frames)


def same_residue(residue_index: Integers, chosen: NDArray[np.bool_]) -> Integers:
    """Return all pairs (E, 2), i < j, of atoms of the mask `chosen` (N,) that are in the same residue."""
    atoms = np.flatnonzero(chosen)
    residues = residue_index[atoms]
    results = []
    for step in range(1, len(atoms)):  # as many steps as the largest residue has atoms
        same = residues[step:] == residues[:-step]
        if not same.any():
            break
        results.append(np.stack([atoms[:-step][same], atoms[step:][same]], axis=1))
    return np.concatenate(results) if results else np.zeros((0, 2), np.int64)
