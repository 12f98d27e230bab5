"""Fourier series of charges along an axis of a periodic cell, in one frame; :mod:`.profile` has their means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import UsageError
from vmdpotential.execution.work import Arrays, WorkNeeds
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.statistics import BlockMean
from vmdpotential.frames.sums import FrameSum, TotalOverFrames, named_arrays
from vmdpotential.frames.task import FrameTask
from vmdpotential.io.trajectories.frames import cell_of
from vmdpotential.molecule.cell import Cell
from vmdpotential.units import coulomb_constant

Mask = NDArray[np.bool_]

#: Half the number of bins per shortest wavelength, and number of terms of the Taylor series in each bin. With these the
#: error is 1e-8 of a charge.
FINE, TERMS = 4, 8

#: Least length, A, of a part of the cell without atoms that is taken for vacuum.
VACUUM = 8.0

#: A cell vector is perpendicular to the axis if its component along it is less than this fraction of its length.
_LEVEL = 1e-4

#: A group of atoms has no centre along a periodic axis if the mean of their phase factors is smaller than this.
_SPREAD = 0.02


def waves(fraction: Floats, charges: Floats, count: int) -> NDArray[np.complex128]:
    """Return the sums over atoms of q exp(-2 pi i n f), n from 0 to `count`.

    For the atoms of a bin around f_b, exp(-2 pi i n (f - f_b)) is expanded in a Taylor series, so that a few moments of
    each bin are enough for all n: each moment needs one histogram and one Fourier transform.

    Parameters
    ----------
    fraction : (N,) float64
        Positions along the axis in periods.
    charges : (N,) float64
    count : int
    """
    bins = 2 * FINE * max(1, count)
    offset = fraction - np.floor(fraction)
    offset *= bins
    index = offset.astype(np.int64)
    offset -= index
    offset -= 0.5
    index[index == bins] = 0  # of a negative fraction that is rounded to 1
    k = 2 * np.pi / bins * np.arange(count + 1)
    weights = np.array(charges, np.float64)
    total, factor = np.zeros(count + 1, np.complex128), np.exp(-0.5j * k)
    for term in range(TERMS):
        total += factor * np.fft.rfft(np.bincount(index, weights, bins))[: count + 1]
        factor *= -1j * k / (term + 1)
        weights *= offset
    return total


def period_of(cell: Cell, axis: int, where: str = "") -> float:
    """Return the period, A, of the cell along an axis to which two cell vectors are perpendicular.

    The message of an error begins with `where`.

    Raises
    ------
    UsageError
        When no two cell vectors are; its hint names the axes that have a period.
    """
    heights = np.abs(cell.vectors)
    level = heights < _LEVEL * np.linalg.norm(cell.vectors, axis=1)[:, None]
    if level[:, axis].sum() == 2:
        return float(heights[:, axis].max())
    others = [f"{{axis {'xyz'[d]}}}" for d in range(3) if level[:, d].sum() == 2]
    raise UsageError(
        "axis", f"{where}the cell ({cell}) has no period along it, because no two of its vectors are perpendicular to "
        "it", f"use {' or '.join(others)}" if others else "rotate the structure so that two vectors of its cell are",
        value="xyz"[axis])


@dataclass(frozen=True, eq=False)
class Profiles(FrameTask):
    """Sums of profiles over blocks of frames; small and picklable.

    Parameters
    ----------
    frames : CellFrames
    charges : (N,) float64, e
    parts : sequence of (A,) int64
        Disjoint sets of atoms, which together are all atoms.
    rows : (names, parts) bool
        Which parts are added for each curve; the first curve is the total.
    region : (A,) int64 or None
        Atoms over whose density the mean potential is 0.
    centre : (A,) int64 or None
        Atoms whose centre is moved to the middle of the profile.
    axis, nodes : int
    finer : int
        Factor by which the Fourier series has more nodes than the profile; it ends at half of their number.
    smear : float, A
        Standard deviation of Gaussian charges, 0 for points.
    start : float
        Fraction of the cell at which the profile begins.
    constant : float
        Coulomb constant in the unit of the potential.
    slab : bool
        Whether the slab correction is applied.
    """

    frames: CellFrames
    charges: Floats
    parts: Sequence[NDArray[np.int64]]
    rows: Mask
    region: NDArray[np.int64] | None
    centre: NDArray[np.int64] | None
    axis: int
    nodes: int
    finer: int
    smear: float
    start: float
    constant: float
    slab: bool = False

    def needs(self) -> WorkNeeds:
        """Return the memory for a frame and the sums."""
        return WorkNeeds(memory=200 * len(self.charges) + 200 * self.nodes * len(self.rows))

    def sums(self) -> Mapping[str, FrameSum]:
        """Return the mean curves (rows, 3, n), and totals: the density (n,) of the region's atoms, the ``integral``
        (n + 1,), and ``cells`` (4,): period, its square, 1/V, and the field of all charges in the vacuum, V/A.
        """
        return {"curves": BlockMean(spread=False), "region": TotalOverFrames(), "integral": TotalOverFrames(),
                "cells": TotalOverFrames()}

    def block(self, numbers: range) -> Arrays:
        """Return the arrays of the sums over some frames."""
        values, region = np.zeros((len(self.rows), 3, self.nodes)), np.zeros(self.nodes)
        cells, integral = np.zeros(4), np.zeros(self.nodes + 1)
        for frame in self.frames.part(numbers):
            cell = cell_of(self.frames.source.name, frame)
            potential, density, period, inside = self.of(frame.positions, cell, f"in frame {frame.number} ")
            values += potential
            region += density
            cells += period, period**2, 1 / cell.volume, inside
            integral += self.integral(frame.positions, cell)
        return named_arrays(len(numbers), {"curves": {"mean": values / len(numbers)}, "region": {"sum": region},
                                    "integral": {"sum": integral}, "cells": {"sum": cells}})

    def of(self, positions: Floats, cell: Cell, where: str = "") -> tuple[Floats, Floats, float, float]:
        """Return the curves (rows, 3, n) of one frame, the density (n,) of the region's atoms, the period, A, and the
        field of all charges in the vacuum, V/A, which is 0 without a vacuum.
        """
        period = period_of(cell, self.axis, where)
        most = (self.finer * self.nodes - 1) // 2
        fraction = self._fractions(positions, period)
        no_groups = len(self.parts) == 1
        sums = np.array([waves(*((fraction, self.charges) if no_groups else (fraction[part], self.charges[part])), most)
                         for part in self.parts])
        k = 2 * np.pi / period * np.arange(most + 1)
        gaussian = np.exp(-0.5 * (self.smear * k) ** 2)
        spectrum = np.zeros((len(self.rows), 3, most + 1), np.complex128)
        density = (self.rows @ sums) * (gaussian / cell.volume)
        volts = 4 * np.pi * coulomb_constant("V")
        spectrum[:, 0] = density
        spectrum[:, 1, 1:] = -1j * volts * density[:, 1:] / k[1:]
        spectrum[:, 2, 1:] = 4 * np.pi * self.constant * density[:, 1:] / k[1:] ** 2
        values = self._at_nodes(spectrum)
        gap, gap_centre = vacuum(fraction, period)
        inside = self._fields_at(gap_centre, fraction, period, cell) if gap >= VACUUM else np.zeros(len(self.rows))
        if self.slab:
            if gap < VACUUM:
                raise UsageError(
                    "slab_correction", f"{where}the cell has no vacuum along the axis: the longest part without atoms "
                    f"is {gap:.3g} A long, and {VACUUM:g} A are needed", "leave it out")
            line = (np.arange(self.nodes) / self.nodes - gap_centre) % 1 * period
            values[:, 1] -= inside[:, None]
            values[:, 2] += inside[:, None] * (self.constant / coulomb_constant("V") * (line - line.mean()))
        atoms = np.zeros(self.nodes)
        if self.region is not None:
            place = fraction[self.region]
            atoms = self._at_nodes(waves(place, np.ones(len(place)), most) * gaussian) / len(place)
        return values, atoms, period, float(inside[0])

    def _fractions(self, positions: Floats, period: float) -> Floats:
        """Return positions (N,) along the axis from the left edge, in periods."""
        fraction: Floats = positions[:, self.axis] / period
        return fraction - (self.start if self.centre is None else middle(fraction[self.centre]) - 0.5)

    def integral(self, positions: Floats, cell: Cell) -> Floats:
        """Return the potential (n + 1,) by double integration of the point charges from the left edge.

        Field and potential are taken to be 0 there, as by ``gmx potential``, whose result approaches this one with
        thinner slices.
        """
        period = period_of(cell, self.axis)
        place = self._fractions(positions, period) % 1
        index = np.minimum((place * self.nodes).astype(int), self.nodes - 1)
        charge, moment = (np.append(0, np.cumsum(np.bincount(index, weights, self.nodes)))
                          for weights in (self.charges, self.charges * place))
        return -4 * np.pi * self.constant * period**2 / cell.volume * (
            np.arange(self.nodes + 1) / self.nodes * charge - moment)

    def _fields_at(self, place: float, fraction: Floats, period: float, cell: Cell) -> Floats:
        """Return the field, V/A, of each curve's point charges at a position, a fraction of the period."""
        apart = self.charges * ((fraction - place) % 1 - 0.5)
        parts = np.array([apart[part].sum() for part in self.parts])
        return 4 * np.pi * coulomb_constant("V") * period / cell.volume * (self.rows @ parts)

    def _at_nodes(self, spectrum: NDArray[np.complex128]) -> Floats:
        """Return the values at the nodes (..., n) of a Fourier series (..., most + 1)."""
        return np.fft.irfft(spectrum, self.finer * self.nodes, norm="forward")[..., :: self.finer]


def vacuum(fraction: Floats, period: float) -> tuple[float, float]:
    """Return the length, A, of the longest part of a period without atoms, and its centre as a fraction."""
    bins = max(4, int(period / 0.5))
    taken = np.zeros(bins, bool)
    taken[(fraction % 1 * bins).astype(int) % bins] = True
    full = np.flatnonzero(taken)
    gaps = np.diff(full, append=full[0] + bins)
    first = int(gaps.argmax())
    length = int(gaps[first]) - 1
    return length * period / bins, (full[first] + 1 + length / 2) / bins % 1


def middle(fraction: Floats) -> float:
    """Return the centre of positions along a periodic axis, in fractions of the period.

    The mean of the phase factors gives a first centre; then the positions are averaged in their images nearest to it.

    Raises
    ------
    UsageError
        When the group is spread evenly.
    """
    mean = np.exp(2j * np.pi * fraction).mean()
    if abs(mean) < _SPREAD:
        raise UsageError("center", "its atoms are spread evenly along the axis and have no centre",
                         "choose a layer, such as {center lipid}")
    centre = float(np.angle(mean)) / (2 * np.pi)
    for _ in range(3):  # the nearest images depend on the centre
        apart = fraction - centre
        centre += float((apart - np.rint(apart)).mean())
    return centre
