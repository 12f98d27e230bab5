"""Times of pair forces in a box of water, as the papers measured them: `benchmark --pairs NAME`."""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any

import numpy as np

from vmdpotential.engines import Engine
from vmdpotential.engines.pairs import Atoms, PairSum
from vmdpotential.errors import UsageError
from vmdpotential.pairs import samples
from vmdpotential.parameters import Report
from vmdpotential.units import DEFAULT_TEMPERATURE

from . import buffer, nbody

#: Sums with a cutoff, and sums over all pairs with the operations of a pair as the papers count them.
LISTED = ("rf", "ewald")
BODIES = {"gravity": 19, "gravity-jerk": 42, "lennard-jones-coulomb": 30}

#: Life of a pair list in fs: 10 steps of 2 fs.
LIFE = 20.0


def _seconds(work: Any, repeats: int) -> list[float]:
    times = []
    for _ in range(repeats + 1):  # what is compiled or made once is in the first
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times[1:]


def _bodies(name: str, water: samples.Water, precision: str) -> tuple[PairSum, Atoms]:
    """Return a sum over all pairs of atoms that pull, or act, on each other."""
    positions, masses = water.atoms.positions, water.masses
    if name != "lennard-jones-coulomb":
        jerk = name == "gravity-jerk"
        velocities = np.random.default_rng(2007).normal(size=positions.shape) if jerk else None
        return (PairSum(nbody.gravity_potential(0.1), precision=precision, jerk=jerk),
                Atoms(positions, {"source": -masses}, velocities=velocities))
    oxygen = np.tile([1.0, 0.0, 0.0], len(masses) // 3)
    parameters = {"charge": water.atoms.parameters["charge"], "half_rmin": oxygen * samples.SIGMA * 2 ** (1 / 6) / 2,
                  "root_depth": oxygen * np.sqrt(12 * samples.EPSILON)}
    return PairSum(nbody.ljc_potential("constant"), precision=precision), Atoms(positions, parameters)


def time_pairs(name: str, backend: Engine, box: float, cutoff: float, precision: str, drift: float,
               repeats: int) -> Report:
    """Return the times of pair forces in a box of water.

    Parameters
    ----------
    name : str
        One of :data:`LISTED` or :data:`BODIES`.
    backend : Engine
    box, cutoff : float, A
        Edge of the cube of water, and cutoff of the listed sums.
    precision : str
        ``single`` or ``double``.
    drift : float, kT/ns per atom
        Energy drift that the pair list's buffer allows; 0 for no buffer.
    repeats : int

    Raises
    ------
    UsageError
        For a precision that pair sums do not have.
    """
    if precision == "compensated":
        raise UsageError("precision", "pairs are summed in single or double", value=precision)
    water = samples.water(box)
    atoms = water.atoms
    data: dict[str, Any] = {"engine": backend.name, "hardware": backend.describe(), "pairs": name,
                            "precision": precision, "atoms": len(atoms)}
    head = f"{name}, {len(atoms)} atoms, {precision} precision, {backend.name} engine ({backend.describe()})"
    if name in BODIES:
        work, bodies = _bodies(name, water, precision)
        prepared = backend.prepare_pairs(work)
        seconds = _seconds(lambda: prepared.run(bodies), repeats)
        median = statistics.median(seconds)
        rate = len(atoms) ** 2 / median
        data |= {"seconds": seconds, "median": median, "pairs_per_second": rate, "flops": rate * BODIES[name]}
        return Report([head, f"median {median * 1e3:.4g} ms of {repeats}, {rate:.3g} pairs/s, "
                             f"{rate * BODIES[name] / 1e9:.4g} GFLOPS ({BODIES[name]} operations a pair)"], data)
    potential = samples.potential(name, cutoff)
    gap = 0.0
    if drift:
        kinds = buffer.Kinds.of(potential, atoms, water.masses, water.cell.volume,
                                constraints=buffer.Constraints.of_water(atoms.positions))
        gap = buffer.buffer_for(kinds, drift * buffer.GAS_CONSTANT * DEFAULT_TEMPERATURE, LIFE)
    prepared = backend.prepare_pairs(PairSum(potential, water.cell, precision, buffer=gap))
    match = prepared.search(atoms)
    searches = _seconds(lambda: prepared.search(atoms), repeats)
    seconds = _seconds(lambda: match.run(atoms.positions), repeats)
    count = samples.useful(len(atoms), water.cell.volume, cutoff)
    median, search = statistics.median(seconds), statistics.median(searches)
    data |= {"cutoff": cutoff, "drift": drift, "buffer": gap, "seconds": seconds, "median": median,
             "list_median": search, "slots": match.slots, "useful": count, "useful_per_second": count / median}
    return Report([
        head,
        f"cutoff {cutoff:g} A" + (f", buffer {gap:.2f} A for a drift of {drift:g} kT/ns an atom" if drift else ""),
        f"list median {search * 1e3:.4g} ms, forces median {median * 1e3:.4g} ms of {repeats}: "
        f"{count / median:.3g} pairs in range/s, {match.slots / median:.3g} pairs/s computed",
    ], data)


RF, EWALD, GRAVITY, GRAVITY_JERK, LENNARD_JONES_COULOMB = (partial(time_pairs, name) for name in (*LISTED, *BODIES))
