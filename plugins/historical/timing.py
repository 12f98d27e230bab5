"""Benchmarks of pair forces in a box of water, as in the papers: `benchmark --pairs NAME`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.engines.pairs import PairSum
from vmdpotential.errors import UsageError
from vmdpotential.pairs import samples
from vmdpotential.results import Result, hidden, key
from vmdpotential.units import DEFAULT_TEMPERATURE

from . import buffer, nbody

Floats = NDArray[np.float64]

#: Sums with a cutoff, by pair lists.
LISTED = ("rf", "ewald")
#: Sums over all pairs, with the number of operations per pair as the papers count them.
BODIES = {"gravity": 19, "gravity-jerk": 42, "lennard-jones-coulomb": 30}

#: Time for which a pair list is used, fs: 10 steps of 2 fs.
LIFE = 20.0


def _seconds(work: Any, repeats: int) -> list[float]:
    times = []
    for _ in range(repeats + 1):  # the first, which includes compilation, is left out
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times[1:]


def _bodies(name: str, water: samples.WaterBox) -> tuple[str, Floats]:
    """Return the kernel of a sum over all pairs of atoms, by gravity or Lennard-Jones and Coulomb, and its columns."""
    positions, masses = water.atoms.positions, water.masses
    if name == "lennard-jones-coulomb":
        oxygen = np.tile([1.0, 0.0, 0.0], len(masses) // 3)
        columns = [water.atoms.parameters["charge"], oxygen * samples.SIGMA * 2 ** (1 / 6) / 2,
                   oxygen * np.sqrt(12 * samples.EPSILON)]
        return "constant", np.column_stack([positions, *columns]).T
    moving = [np.random.default_rng(2007).normal(size=positions.shape)] if name == "gravity-jerk" else []
    return name.replace("-", "_"), np.column_stack([positions, *moving, masses / 8]).T


def time_pairs(name: str, backend: Engine, box: float, cutoff: float, precision: str, drift: float,
               repeats: int) -> Times:
    """Return the times of pair forces in a box of water.

    Parameters
    ----------
    name : str
        One of :data:`LISTED` or :data:`BODIES`.
    backend : Engine
    box, cutoff : float, A
        Edge of the cube of water, and cutoff of the sums by pair lists.
    precision : str
        ``single`` or ``double``.
    drift : float, kT/ns per atom
        Energy drift that determines the pair list's buffer; 0 for no buffer.
    repeats : int
        Number of measurements.

    Raises
    ------
    UsageError
        For a precision that pair sums do not have.
    """
    if precision == "compensated":
        raise UsageError("precision", "pairs are summed in single or double", value=precision)
    water = samples.water(box)
    atoms = water.atoms
    about: dict[str, Any] = {"engine": backend.name, "hardware": backend.describe(), "pairs": name,
                             "precision": precision, "atoms": len(atoms)}
    if name in BODIES:
        kernel, columns = _bodies(name, water)
        return BodyTimes(**about, seconds=_seconds(
            lambda: nbody.sum_bodies(backend, kernel, columns, precision, False, 0.1), repeats))
    potential = samples.potential(name, cutoff)
    gap = 0.0
    if drift:
        kinds = buffer.AtomKinds.of(potential, atoms, water.masses, water.cell.volume,
                                    constraints=buffer.Constraints.of_water(atoms.positions))
        gap = buffer.buffer_for(kinds, drift * buffer.GAS_CONSTANT * DEFAULT_TEMPERATURE, LIFE)
    prepared = backend.prepare_pairs(PairSum(potential, water.cell, precision, buffer=gap))
    match = prepared.search(atoms)
    searches = _seconds(lambda: prepared.search(atoms), repeats)
    return ListTimes(
        **about, seconds=_seconds(lambda: match.run(atoms.positions), repeats), cutoff=cutoff, drift=drift, buffer=gap,
        searches=searches, slots=match.slots, useful=samples.useful(len(atoms), water.cell.volume, cutoff))


class Times(Result):
    """Times of pair forces, s."""

    engine: str
    hardware: str
    pairs: str
    precision: str
    atoms: int
    seconds: Sequence[float]

    @key
    def median(self) -> float:
        """Median time of the forces, s."""
        return statistics.median(self.seconds)

    def text(self) -> Iterator[str]:
        """Yield a line on the system."""
        yield f"{self.pairs}, {self.atoms} atoms, {self.precision} precision, {self.engine} engine ({self.hardware})"


class BodyTimes(Times):
    """Times of sums over all pairs."""

    @key
    def pairs_per_second(self) -> float:
        """Pairs per second, each pair counted from both sides."""
        return self.atoms**2 / self.median

    @key
    def flops(self) -> float:
        """Operations per second, as the papers count them."""
        return self.pairs_per_second * BODIES[self.pairs]

    def text(self) -> Iterator[str]:
        """Yield lines on the system and the speed."""
        yield from super().text()
        yield (f"median {self.median * 1e3:.4g} ms of {len(self.seconds)}, {self.pairs_per_second:.3g} pairs/s, "
               f"{self.flops / 1e9:.4g} GFLOPS ({BODIES[self.pairs]} operations a pair)")


class ListTimes(Times):
    """Times of making pair lists, and of the forces by these; of `slots` computed pairs, `useful` are in range."""

    cutoff: float
    drift: float
    buffer: float
    slots: int
    useful: float
    searches: Sequence[float] = hidden()

    @key
    def list_median(self) -> float:
        """Median time of the search for pairs, s."""
        return statistics.median(self.searches)

    @key
    def useful_per_second(self) -> float:
        """Pairs within the cutoff per second."""
        return self.useful / self.median

    def text(self) -> Iterator[str]:
        """Yield lines on the system and the speed."""
        yield from super().text()
        drift = f", buffer {self.buffer:.2f} A for a drift of {self.drift:g} kT/ns an atom" if self.drift else ""
        yield f"cutoff {self.cutoff:g} A{drift}"
        yield (f"list median {self.list_median * 1e3:.4g} ms, forces median {self.median * 1e3:.4g} ms of "
               f"{len(self.seconds)}: {self.useful_per_second:.3g} pairs in range/s, "
               f"{self.slots / self.median:.3g} pairs/s computed")


RF, EWALD, GRAVITY, GRAVITY_JERK, LENNARD_JONES_COULOMB = (partial(time_pairs, name) for name in (*LISTED, *BODIES))
