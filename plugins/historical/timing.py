"""The command ``benchmark-pairs``: pair forces in a box of water, as in the papers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from vmdpotential import registry
from vmdpotential.arrays import Floats
from vmdpotential.engines import get_engine
from vmdpotential.parameters import Command, Option
from vmdpotential.results import Result
from vmdpotential.units import DEFAULT_TEMPERATURE

from . import buffer, nbody, samples
from .lists import PRECISIONS, ListedPairs

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


def benchmark_pairs(
    pairs: Annotated[str, Option(
        "Lennard-Jones with a reaction field (rf) or Ewald's real-space part (ewald), gravity, gravity with jerks, or "
        "Lennard-Jones and Coulomb of all pairs", choices=(*LISTED, *BODIES), positional=True)],
    engine: Annotated[str, Option(
        "compute engine: cpu, cuda, or auto for a GPU if there is one",
        choices=lambda: ("auto", *registry.available("engine")))] = "auto",
    box: Annotated[float, Option("edge length of the cubic box of water", unit="A", low=10, high=500)] = 100.0,
    cutoff: Annotated[float, Option("cutoff of rf and ewald", unit="A", low=1, high=100)] = 12.0,
    precision: Annotated[str, Option("floating-point precision of the sums", choices=PRECISIONS)] = "single",
    drift: Annotated[float, Option(
        "accepted energy drift of a pair list that is kept for 10 steps of 2 fs, which sets its buffer; 0 for no "
        "buffer", unit="kT/ns/atom", low=0, high=1e3)] = 0.0,
    repeats: Annotated[int, Option("number of timed runs, of which the median counts", low=1, high=1000)] = 5,
) -> Times:
    """Time the forces of pairs in a box of random water molecules on this machine.

    The first run, which compiles or loads kernels, is left out.
    """
    backend = get_engine(engine)
    water = samples.water(box)
    atoms = water.atoms
    about: dict[str, Any] = {"engine": backend.name, "hardware": backend.describe(), "pairs": pairs,
                             "precision": precision, "atoms": len(atoms)}
    if pairs in BODIES:
        kernel, columns = _bodies(pairs, water)
        return BodyTimes(**about, seconds=_seconds(
            lambda: nbody.sum_bodies(backend, kernel, columns, precision, False, 0.1), repeats))
    potential = samples.potential(pairs, cutoff)
    gap = 0.0
    if drift:
        kinds = buffer.AtomKinds.of(potential, atoms, water.masses, water.cell.volume,
                                    constraints=buffer.Constraints.of_water(atoms.positions))
        gap = buffer.buffer_for(kinds, drift * buffer.GAS_CONSTANT * DEFAULT_TEMPERATURE, LIFE)
    prepared = ListedPairs(backend, potential, water.cell, precision, buffer=gap)
    match = prepared.search(atoms)
    searches = _seconds(lambda: prepared.search(atoms), repeats)
    return ListTimes(
        **about, seconds=_seconds(lambda: match.run(), repeats), cutoff=cutoff, drift=drift, buffer=gap,
        searches=searches, slots=match.slots, useful=samples.useful(len(atoms), water.cell.volume, cutoff))


class Times(Result):
    """Times of pair forces, s."""

    engine: str
    hardware: str
    pairs: str
    precision: str
    atoms: int
    seconds: Sequence[float]

    @cached_property
    def median(self) -> float:
        """Median time of the forces, s."""
        return statistics.median(self.seconds)

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "engine": self.engine, "hardware": self.hardware, "pairs": self.pairs, "precision": self.precision,
            "atoms": self.atoms, "seconds": self.seconds, "median": self.median}

    def text(self) -> Iterator[str]:
        """Yield a line on the system."""
        yield f"{self.pairs}, {self.atoms} atoms, {self.precision} precision, {self.engine} engine ({self.hardware})"


class BodyTimes(Times):
    """Times of sums over all pairs."""

    @cached_property
    def pairs_per_second(self) -> float:
        """Pairs per second, each pair counted from both sides."""
        return self.atoms**2 / self.median

    @cached_property
    def flops(self) -> float:
        """Operations per second, as the papers count them."""
        return self.pairs_per_second * BODIES[self.pairs]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {"pairs_per_second": self.pairs_per_second, "flops": self.flops}

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
    searches: Sequence[float]

    @cached_property
    def list_median(self) -> float:
        """Median time of the search for pairs, s."""
        return statistics.median(self.searches)

    @cached_property
    def useful_per_second(self) -> float:
        """Pairs within the cutoff per second."""
        return self.useful / self.median

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "cutoff": self.cutoff, "drift": self.drift, "buffer": self.buffer, "slots": self.slots,
            "useful": self.useful, "list_median": self.list_median, "useful_per_second": self.useful_per_second}

    def text(self) -> Iterator[str]:
        """Yield lines on the system and the speed."""
        yield from super().text()
        drift = f", buffer {self.buffer:.2f} A for a drift of {self.drift:g} kT/ns an atom" if self.drift else ""
        yield f"cutoff {self.cutoff:g} A{drift}"
        yield (f"list median {self.list_median * 1e3:.4g} ms, forces median {self.median * 1e3:.4g} ms of "
               f"{len(self.seconds)}: {self.useful_per_second:.3g} pairs in range/s, "
               f"{self.slots / self.median:.3g} pairs/s computed")



command = Command.of(benchmark_pairs, name="benchmark-pairs", examples=(
    "benchmark-pairs rf --box 60 --repeats 3",
    "benchmark-pairs gravity --engine cpu --box 20",
))
