"""Sorting of atoms into bins on the CPU, for the cutoff sums of 2008."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.arrays import Floats, Integers
from vmdpotential.grid.lattice import Lattice

#: Number of points along each side of a region, which a thread block sums.
REGION = 8

#: Largest number of atoms in a small bin, and its side, A.
CAPACITY, SIDE = 8, 4.0

#: Largest fraction of the atoms that ``overlap`` leaves to the CPU, and the smallest side that it tries, A.
OVERFLOW, SMALLEST = 0.01, 1.0


@dataclass(frozen=True)
class Bins:
    """Equal boxes around a lattice: lowest corner (A), sides (A), and numbers along x, y, z."""

    low: Floats
    side: Floats
    shape: Integers

    @property
    def size(self) -> int:
        """Number of bins."""
        return int(self.shape.prod())

    def numbers(self, positions: Floats) -> Integers:
        """Return the number of the bin of each position (N, 3), -1 outside of all bins."""
        number, outside = np.zeros(len(positions)), np.zeros(len(positions), bool)
        for d in range(3):
            place = np.floor((positions[:, d] - self.low[d]) / self.side[d])
            outside |= (place < 0) | (place >= self.shape[d])
            number = number * self.shape[d] + place
        number[outside] = -1
        return number.astype(np.int64)

    def sort(self, number: Integers) -> tuple[Integers, Integers, Integers]:
        """Return the atoms in the order of their bins, the bin of each, and the first atom of every bin.

        Atoms with negative bin numbers are left out.
        """
        order = np.argsort(number.astype(np.int32) if self.size < 2**31 else number, kind="stable")
        order = order[np.count_nonzero(number < 0):]
        starts = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.bincount(number[order], minlength=self.size), out=starts[1:])
        return order, number[order], starts


def large_bins(lattice: Lattice, reach: float) -> Bins:
    """Return bins at least as wide as the cutoff and a region, which cover the lattice and the cutoff around it."""
    side = np.maximum(reach, REGION * lattice.spacing)
    low = lattice.origin - reach
    return Bins(low, side, np.floor((lattice.last + reach - low) / side).astype(np.int64) + 1)


def small_bins(lattice: Lattice, reach: float, side: float) -> tuple[Bins, list[Integers], Integers]:
    """Return cubic bins with a side (A), and the lists by which a region finds the bins within the cutoff.

    Returns
    -------
    bins : Bins
    homes : list of three arrays
        Index of the home bin, which contains the region's centre, for the regions along x, y and z.
    steps : (S,) int64
        Differences between the numbers of the bins that may be within the cutoff and that of the home bin. The list is
        valid for every region, wherever its centre is in the home bin. It is shortest if regions coincide with bins,
        as with 8 points at 0.5 A in bins of 4 A.
    """
    homes, low, shape, places, gaps = [], [], [], [], []
    for d in range(3):
        h = lattice.spacing[d]
        regions = -(-lattice.shape[d] // REGION)
        half = 0.5 * (REGION - 1) * h
        centre = np.arange(regions) * (REGION * h / side) + 0.5  # in bins; the first is the centre of its bin
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
    """Return the largest side (A) of small bins for which few enough atoms overflow."""
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
    """Return small bins filled with atoms, and the atoms that do not fit.

    Parameters
    ----------
    bins : Bins
    positions : (N, 3) float64, A
    atoms : (N, 4) float32
        Data of the atoms for the kernel, the charge last.

    Returns
    -------
    filled : (bins, capacity, 4) float32
        Data of the atoms in each bin, filled from the front; a charge of zero marks the end.
    overflow : (M,) int64
        Indices of the atoms that do not fit.
    """
    memory.require(16 * CAPACITY * bins.size, f"{bins.size} bins", "use a longer {cutoff} or a smaller map")
    filled = np.zeros((bins.size, CAPACITY, 4), np.float32)
    number = bins.numbers(positions)
    number[atoms[:, 3] == 0] = -1
    order, number, starts = bins.sort(number)
    rank = np.arange(len(order)) - starts[number]
    fits = rank < CAPACITY
    # moving an atom as one item of 16 bytes is several times as fast as moving four numbers
    places, items = filled.reshape(-1).view(np.complex128), np.ascontiguousarray(atoms).view(np.complex128)[:, 0]
    places[(number * CAPACITY + rank)[fits]] = items[order[fits]]
    return filled, order[~fits]


@dataclass(frozen=True)
class BinnedAtoms:
    """Atoms in their bins, and those left to the CPU.

    Parameters
    ----------
    kernel : str
        Kernel for these bins, ``largebin`` or ``smallbin``.
    bins : Bins
        The bins.
    arrays : mapping
        Arrays for the kernel, by the field of its task that gets the address.
    steps : (S,) int64
        List of bins, see :func:`small_bins`; empty for large bins, which need none.
    overflow : (M,) int64
        Indices of the atoms for the CPU.
    """

    kernel: str
    bins: Bins
    arrays: Mapping[str, NDArray[Any]]
    steps: Integers
    overflow: Integers


def place(name: str, lattice: Lattice, positions: Floats, atoms: NDArray[np.float32], reach: float) -> BinnedAtoms:
    """Return atoms at positions (N, 3), A, in the bins of a method; `atoms` (N, 4) are their data for the kernel."""
    none = np.zeros(0, np.int64)
    if name == "largebin":
        bins = large_bins(lattice, reach)
        order, _, starts = bins.sort(bins.numbers(positions))
        return BinnedAtoms("largebin", bins, {"atoms": atoms[order], "starts": starts.astype(np.int32)}, none, none)
    side = SIDE if name == "smallbin" else overlap_side(lattice, reach, positions)
    bins, homes, steps = small_bins(lattice, reach, side)
    filled, overflow = fill(bins, positions, atoms)
    indices = np.concatenate(homes).astype(np.int32)
    return BinnedAtoms("smallbin", bins, {"atoms": filled, "index": indices}, steps, overflow)
