"""The speed of this machine, by which the seconds of estimates are scaled.

The costs of an engine (:mod:`vmdpotential.engines.costs`) are those of one machine. A short map by a mesh, which has
each kind of work, and on a CPU a direct one, which gains more from wide vectors, are measured once for each engine and
machine, and their time over the estimated one is kept next to compiled kernels. They are measured when seconds are
first needed; the choice between methods needs none.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import platform
import time
from functools import cache
from pathlib import Path

import numpy as np

from vmdpotential import __version__, progress, registry
from vmdpotential import cache as disk
from vmdpotential.engines import Engine
from vmdpotential.errors import BackendError, MemoryPlanError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.kernels import threads
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.mesh import over_cell
from vmdpotential.sums.costs import SumSize, mesh_sum_seconds
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum

log = logging.getLogger(__name__)

#: Folder of the measured ratios in the cache.
FOLDER = "speed"

#: Edge of the cell of the measured map, spacing of its lattice and of its mesh, A; its charges, and number of runs.
EDGE, SPACING, MESH, CHARGES, RUNS = 30.0, 0.5, 1.0, 2700, 3

#: Number of planes of the direct map, which then takes about half as long.
PLANES = 6

#: Order of the mesh, and ratio of split radius and spacing.
ORDER, RATIO = 6, 4.0

#: A method that takes longer than this, s, and this many times as long as the fastest one, is not taken instead of it.
MAX_SECONDS, MAX_RATIO = 60.0, 10.0

#: Limits of a measured ratio; a file with another one is damaged.
MIN_SPEED_RATIO, MAX_SPEED_RATIO = 1e-3, 1e3


def expected_seconds(estimated: float, engine: Engine) -> float:
    """Return the time of a sum on this machine, from that by the costs of the engine.

    Threads share all of it but the fixed time; the costs of an engine whose threads share the cores are those of one.
    """
    fixed = min(estimated, engine.costs.fixed)
    try:
        workers = 1 if engine.devices() else threads.count()
        return measured_ratio(engine) * (fixed + (estimated - fixed) / workers)
    except BackendError:  # the plan is for another machine
        return estimated


def is_worth_waiting(estimated: float, fastest: float, engine: Engine) -> bool:
    """Return whether a method may be taken instead of the fastest one, which does not fit into memory."""
    return estimated <= MAX_RATIO * fastest or expected_seconds(estimated, engine) <= MAX_SECONDS


def measured_ratio(engine: Engine) -> float:
    """Return the time of a map on one thread of this machine, over that by the costs of the engine."""
    with threads.sharing(threads.count()):
        return _ratio(engine.name, f"{engine.describe()}, {_processor()}, {__version__}")


@cache
def _ratio(name: str, machine: str) -> float:
    entry = f"{name}-{hashlib.sha256(machine.encode()).hexdigest()[:16]}"
    if (kept := _kept(entry)) is not None:
        return kept
    try:  # without a lock, because a GPU's kernels may have to be compiled, which locks their entries
        with progress.listen_to_progress(lambda label, fraction: None):
            result = measure(registry.get("engine", name))
    except MemoryPlanError as error:  # the GPU is full
        log.debug("the speed of the %s engine cannot be measured: %s", name, error)
        return 1.0
    disk.write(entry, repr(result).encode(), FOLDER)
    return result


def _kept(entry: str) -> float | None:
    try:
        ratio = float(disk.read(entry, FOLDER) or b"")
    except ValueError:
        return None
    return ratio if MIN_SPEED_RATIO <= ratio <= MAX_SPEED_RATIO else None


def measure(engine: Engine) -> float:
    """Return the shortest of a few times of a map, over that by the costs of the engine."""
    random, cell = np.random.default_rng(1), Cell(np.eye(3) * EDGE)
    positions, charges = random.uniform(0, EDGE, (CHARGES, 3)), random.normal(size=CHARGES)
    lattice, part = (Lattice(np.zeros(3), np.full(3, SPACING), (round(EDGE / SPACING),) * 2 + (planes,))
                     for planes in (round(EDGE / SPACING), PLANES))
    size = SumSize(CHARGES, lattice.size, SPACING, CHARGES / EDGE**3, (EDGE,) * 3, True)
    works, expected = [], 0.0
    if engine.has_transforms:
        works.append(PotentialSum.split(lattice, over_cell(cell, MESH, ORDER, RATIO)))
        expected += mesh_sum_seconds(size, engine.costs, MESH, MESH * RATIO, ORDER)
    if not works or not engine.devices():
        works.append(PotentialSum(part, COULOMB.bind()))
        expected += engine.costs.fixed + engine.costs.direct * CHARGES * part.size
    # of one thread that shares the cores with other programs, the time that it has a core
    clock, times = time.perf_counter if engine.devices() else time.process_time, []
    for _ in range(1 + RUNS):  # the first one also imports and compiles
        start = clock()
        for work in works:
            prepare_sum(engine, work).run(positions, charges).values()
        times.append(clock() - start)
    return min(times[1:]) / expected


@cache
def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
