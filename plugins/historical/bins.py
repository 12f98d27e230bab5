"""Atoms in bins, for the cutoff sums of 2008; all of it takes place on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Points along each side of a region, the work of a block.
REGION = 8

#: Atoms that a small bin has room for, and its side in A.
CAPACITY, SIDE = 8, 4.0

#: Share of the atoms that ``overlap`` leaves to the CPU at most, and the smallest side in A that it tries.
OVERFLOW, SMALLEST = 0.01, 1.0


@dataclass(frozen=True)
class Bins:
    """Equal boxes around a lattice: where they begin (A), their sides (A), how many along x, y, z."""

    low: Floats
    side: Floats
    shape: Integers

    @property
    def size(self) -> int:
        """Number of bins."""
        return int(self.shape.prod())

    def numbers(self, positions: Floats) -> Integers:
        """Return the bin of each position (N, 3), -1 outside all."""
        number, outside = np.zeros(len(positions)), np.zeros(len(positions), bool)
        for d in range(3):
            place = np.floor((positions[:, d] - self.low[d]) / self.side[d])
            outside |= (place < 0) | (place >= self.shape[d])
            number = number * self.shape[d] + place
        number[outside] = -1
        return number.astype(np.int64)

    def sort(self, number: Integers) -> tuple[Integers, Integers, Integers]:
        """Return the atoms in the order of their bins, the bin of each, and the first atom of every bin.

        Atoms with a negative number are left out.
        """
        order = np.argsort(number.astype(np.int32) if self.size < 2**31 else number, kind="stable")
        order = order[np.count_nonzero(number < 0):]
        starts = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.bincount(number[order], minlength=self.size), out=starts[1:])
        return order, number[order], starts


def large_bins(lattice: Lattice, reach: float) -> Bins:
    """Return bins at least as wide as the cutoff and as a region, over all that is in range of the lattice."""
    side = np.maximum(reach, REGION * lattice.spacing)
    low = lattice.origin - reach
    return Bins(low, side, np.floor((lattice.last + reach - low) / side).astype(np.int64) + 1)


def small_bins(lattice: Lattice, reach: float, side: float) -> tuple[Bins, list[Integers], Integers]:
    """Return bins of one side (A) and what the regions of the lattice find in them.

    Returns
    -------
    bins : Bins
    homes : list of three arrays
        The place of the bin at a region's centre, for the regions along x, y and z.
    steps : (S,) int64
        From that bin's number to the numbers of all bins that may be in range of the region. One
        list is good for every region, wherever in its home bin a region's centre is; where
        regions are whole bins, as with 8 points of 0.5 A in bins of 4 A, it is the shortest.
    """
    homes, low, shape, places, gaps = [], [], [], [], []
    for d in range(3):
        h = lattice.spacing[d]
        regions = -(-lattice.shape[d] // REGION)
        half = 0.5 * (REGION - 1) * h
        centre = np.arange(regions) * (REGION * h / side) + 0.5  # in bins; the first is at the centre of its own
        home = np.floor(centre).astype(np.int64)
        left, right = ((centre - home).min() * side - half, (centre - home).max() * side + half)
        first, last = int(np.floor((left - reach) / side)), int(np.floor((right + reach) / side))
        place = np.arange(first, last + 1)
        homes.append(home - first)
        low.append(lattice.origin[d] + half + (first - 0.5) * side)
        shape.append(int(home[-1]) - first + last + 1)
        places.append(place)
        gaps.append(np.maximum(0, np.maximum(place * side - right, left - (place + 1) * side)) ** 2)
    near = gaps[0][:, None, None] + gaps[1][:, None] + gaps[2] < reach**2
    step = (places[0][:, None, None] * shape[1] + places[1][:, None]) * shape[2] + places[2]
    return Bins(np.array(low), np.full(3, side), np.array(shape)), homes, step[near]


def overlap_side(lattice: Lattice, reach: float, positions: Floats) -> float:
    """Return the side (A) of small bins of which few enough overflow."""
    side = SIDE
    while side > SMALLEST:
        number = small_bins(lattice, reach, side)[0].numbers(positions)
        inside = number[number >= 0]
        over = np.maximum(np.bincount(inside) - CAPACITY, 0).sum()
        if over <= OVERFLOW * len(inside):
            break
        side *= 0.9
    return side


def fill(bins: Bins, positions: Floats, atoms: NDArray[np.float32]) -> tuple[NDArray[np.float32], Integers]:
    """Put atoms in small bins.

    Parameters
    ----------
    bins : Bins
    positions : (N, 3) float64, A
    atoms : (N, 4) float32
        What is put there, the charge last.

    Returns
    -------
    filled : (bins, capacity, 4) float32
        From the front; a charge of zero ends a bin.
    overflow : (M,) int64
        Atoms that did not fit.
    """
    memory.require(16 * CAPACITY * bins.size, f"{bins.size} bins", "use a longer {cutoff} or a smaller map")
    filled = np.zeros((bins.size, CAPACITY, 4), np.float32)
    number = bins.numbers(positions)
    number[atoms[:, 3] == 0] = -1
    order, number, starts = bins.sort(number)
    rank = np.arange(len(order)) - starts[number]
    fits = rank < CAPACITY
    # an atom is moved as one item of 16 bytes, which is several times as fast as four numbers
    places, items = filled.reshape(-1).view(np.complex128), np.ascontiguousarray(atoms).view(np.complex128)[:, 0]
    places[(number * CAPACITY + rank)[fits]] = items[order[fits]]
    return filled, order[~fits]


@dataclass(frozen=True)
class Placed:
    """Atoms in their bins, and those left to the CPU.

    Parameters
    ----------
    kernel : str
        That takes them, ``largebin`` or ``smallbin``.
    bins : Bins
    arrays : mapping
        By the field of the task that gets the address.
    steps : (S,) int64
        The list of bins; empty for large bins, which need none.
    overflow : (M,) int64
        Atoms for the CPU.
    """

    kernel: str
    bins: Bins
    arrays: Mapping[str, NDArray[Any]]
    steps: Integers
    overflow: Integers


def place(name: str, lattice: Lattice, positions: Floats, atoms: NDArray[np.float32], reach: float) -> Placed:
    """Put atoms in the bins of a method: positions (N, 3) in A say where, atoms (N, 4) is what the kernel reads."""
    none = np.zeros(0, np.int64)
    if name == "largebin":
        bins = large_bins(lattice, reach)
        order, _, starts = bins.sort(bins.numbers(positions))
        return Placed("largebin", bins, {"atoms": atoms[order], "starts": starts.astype(np.int32)}, none, none)
    side = SIDE if name == "smallbin" else overlap_side(lattice, reach, positions)
    bins, homes, steps = small_bins(lattice, reach, side)
    filled, overflow = fill(bins, positions, atoms)
    return Placed("smallbin", bins, {"atoms": filled, "index": np.concatenate(homes).astype(np.int32)}, steps, overflow)
