"""Sums over pairs of atoms within a cutoff on the CPU: parameters, kernels and threads for lists of clusters."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.compiling import build, threads
from vmdpotential.engines.cpu.pairs.clusters import CellBox, Clusters, ClusterShape, Search, aligned, search
from vmdpotential.engines.pairs import Atoms, PairResult, PairSum
from vmdpotential.errors import InputError, UsageError
from vmdpotential.interactions.pairs import PairPotential

Floats = NDArray[np.float64]

#: The programs' unit of length, A: 1/r in this unit is 2/r in 1/A, which the kernels' inverse square roots yield.
LENGTH = 2.0

#: Number of atoms of a cluster i and of a chunk j, by layout; 0 means the number of lanes of a vector.
LAYOUTS = {"2x2": (2, 2), "4x4": (4, 4), "4x8": (4, 8), "8x8": (8, 8), "4x16": (4, 16), "compressed": (4, 0)}

#: Fraction of atoms that have to lack a term, so that it is left out for clusters of which half of the atoms lack it.
WORTH = 0.25

#: Number of pairs that a thread computes, in about a tenth of a second, before it checks for Ctrl-C.
AT_ONCE = 2**27

#: Overhead of a chunk and of an entry of the list, as a number of pairs that take as long.
PAIRS_OF_CHUNK, PAIRS_OF_ENTRY = 45, 250

#: Passed to kernels if energies are not requested.
NONE = np.empty((0, 0))


def layout(name: str, precision: str) -> tuple[int, int, bool]:
    """Return the atoms of a cluster, the atoms of a chunk, and whether atoms j are packed, for a layout by name.

    Raises
    ------
    UsageError
        If there is no layout of that name, or this processor lacks the instructions for it.
    """
    bits = 32 if precision == "single" else 64
    lanes, packs = 256 // bits, False
    if not build.plain():
        from vmdpotential.compiling import simd

        lanes, packs = simd.LANES[bits], simd.LEVEL == "avx512"
    if name == "auto":
        return 4, lanes, packs
    if name not in LAYOUTS:
        raise UsageError("layout", f"choose one of auto, {', '.join(LAYOUTS)}", value=name)
    if name == "compressed":
        if not packs:
            raise UsageError("layout", "needs a processor with AVX-512", "use another {layout}", value=name)
        return 4, lanes, True
    return *LAYOUTS[name], False


def missing_terms(potential: PairPotential, atoms: Atoms) -> tuple[tuple[int, ...], NDArray[np.bool_]]:
    """Return the terms that are worth leaving out, one or none, and whether each atom lacks them (N,)."""
    best: tuple[tuple[int, ...], NDArray[np.bool_]] = ((), np.zeros(len(atoms), bool))
    if len(potential.terms) < 2 or not len(atoms):
        return best
    for number, term in enumerate(potential.terms):
        if term.rule.pair:
            continue
        mine = SimpleNamespace(**{name: atoms.parameters[name] for name in term.rule.atoms})
        theirs = SimpleNamespace(**dict.fromkeys(term.rule.atoms, 1.0))
        combined = term.rule.combine(mine, theirs, SimpleNamespace())
        zero = [np.broadcast_to(np.asarray(value) == 0, len(atoms)) for value in combined.values()]
        lacks = zero[list(combined).index("weight")] if "weight" in combined else np.logical_and.reduce(zero)
        if lacks.mean() > max(WORTH, best[1].mean()):
            best = ((number,), lacks)
    return best


class ClusterPairs:
    """A pair sum with a cutoff; see :class:`vmdpotential.engines.pairs.PreparedPairs`."""

    def __init__(self, work: PairSum) -> None:
        if work.potential.cutoff is None or work.reach is None:
            raise UsageError("cutoff", "pairs are listed up to a cutoff, and this potential has none")
        if work.jerk:
            raise UsageError("jerk", "jerks are only computed without a cutoff")
        self.work, self.reach = work, work.reach
        self.m, self.n, self.packed = layout(work.layout, work.precision)
        self.outputs = ("slope", "energy") if work.energy else ("slope",)
        self.scaled = work.potential.scaled(self.outputs, LENGTH)
        inputs = self.scaled.program.inputs
        # for example gravity, where only the mass of j enters the acceleration of i
        self.one_sided = {n[2:] for n in inputs if n.startswith("i.")} != {n[2:] for n in inputs if n.startswith("j.")}

    def kernel(self, without: tuple[int, ...]) -> Any:
        """Return the module that sums, which also has a program without the terms `without`."""
        work, terms = self.work, self.work.potential.terms
        bits = 32 if work.precision == "single" else 64
        every = tuple(range(len(terms)))
        kept = tuple(k for k in every if k not in without)
        light = excluded = None
        if without and not self.one_sided:
            potential = PairPotential(tuple(terms[k] for k in kept), work.potential.softening)
            light = potential.scaled(self.outputs, LENGTH).program
        if work.potential.corrects_excluded:
            excluded = work.potential.scaled(self.outputs, LENGTH, excluded=True).program
        names = (every, kept) if work.energy else ((), ())
        return build.load("pair_kernel", programs=(self.scaled.program, light, excluded), outputs=names,
                          names=tuple(work.potential.atoms), tables=tuple(work.potential.tables), m=self.m, n=self.n,
                          bits=bits, packed=self.packed, virial=work.virial, soft=work.potential.softening > 0,
                          one_sided=self.one_sided)

    def search(self, atoms: Atoms, others: Atoms | None = None) -> ClusterList:
        """Return the pairs in range, see :mod:`vmdpotential.engines.pairs`."""
        work = self.work
        box = CellBox.around(work.cell, *(_positions(a.positions) for a in (atoms, others) if a is not None))
        without, lacks = missing_terms(work.potential, atoms)
        sums = self.kernel(without)
        shape = ClusterShape(self.m, self.n, np.float32 if work.precision == "single" else np.float64)
        sets = [Clusters(shape, box, _positions(a.positions), self._rows(a), flags, self.reach)
                for a, flags in ((atoms, lacks), (others, None if others is None else np.zeros(len(others), bool)))
                if a is not None and flags is not None]
        tables = self._tables(atoms)
        around = work.cell is not None and not work.cell.orthogonal
        result = search(box, sets[0], sets[-1], self.reach, None if others is not None else atoms.exclusions,
                       around, work.potential.corrects_excluded)
        return ClusterList(self, sums, sets, result, tables)

    def run(self, atoms: Atoms, others: Atoms | None = None) -> PairResult:
        """Return the sum over the pairs in range."""
        return self.search(atoms, others).run(atoms.positions, None if others is None else others.positions)

    def _rows(self, atoms: Atoms) -> Floats:
        """Return the parameters and types of atoms (R, N), in the programs' units."""
        potential = self.work.potential
        rows = []
        for name, power in potential.atoms.items():
            if name not in atoms.parameters:
                raise UsageError("parameters", f"atoms need {name}")
            rows.append(np.asarray(atoms.parameters[name], np.float64) / LENGTH**power)
        if potential.tables:
            if atoms.types is None:
                raise UsageError("types", "atoms need the rows of the tables that they look up")
            rows.append(np.asarray(atoms.types, np.float64))
        for row in rows:
            if row.shape != (len(atoms),):
                raise UsageError("parameters", f"{row.shape} do not fit {len(atoms)} atoms")
        return np.array(rows).reshape(len(rows), len(atoms))

    def _tables(self, atoms: Atoms) -> tuple[NDArray[Any], int]:
        """Return the tables of parameters by two types (K, T * T), and the number T of types."""
        real = np.float32 if self.work.precision == "single" else np.float64
        results = [np.asarray(atoms.tables[name], np.float64) / LENGTH**power
                 for name, power in self.work.potential.tables.items()]
        if not results:
            return np.zeros((1, 1), real), 0
        return np.array([table.ravel() for table in results]).astype(real), len(results[0])


def _positions(values: Any) -> Floats:
    """Return positions (N, 3) as contiguous float64, or raise UsageError for another shape."""
    positions: Floats = np.ascontiguousarray(values, np.float64)
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise UsageError("positions", f"{positions.shape} are not (N, 3)")
    return positions


class ClusterList:
    """Pairs of clusters in range; see :class:`vmdpotential.engines.pairs.PairList`."""

    def __init__(self, pairs: ClusterPairs, sums: Any, sets: list[Clusters], search_result: Search,
                 tables: tuple[NDArray[Any], int]) -> None:
        self.pairs, self.sums = pairs, sums
        self.sets, self.search_result = sets, search_result
        self.totals = [np.empty(0) for _ in sets]
        extent = sets[0].chunk_boxes
        # near enough that powers of the distance are not denormal numbers, which take a hundred cycles
        self.out_of_range = -2 * (pairs.reach + (extent[:, 3:] - extent[:, :3]).max(initial=0)) - 1
        scaled, real = pairs.scaled, sums.REAL
        values = np.array(scaled.values, real) if scaled.values else np.zeros(1, real)
        self.fixed = (values, *tables, search_result.steps, search_result.remainders, real(scaled.cutoff2 * LENGTH**2),
                      real(scaled.softening2 * LENGTH**2), real(self.out_of_range))
        self.parts = parts = search_result.parts
        #: Number of computed pairs, whether in range or not.
        self.slots = sum(self._slots(part.entries) for part in parts)
        self.part_starts: list[int] = []
        self.step = max(1, int(len(parts) * AT_ONCE / max(self.slots, 1)))
        self.addresses = np.array([(part.entries.ctypes.data, len(part.entries), part.chunks.ctypes.data,
                                    part.bits.ctypes.data, part.masks.ctypes.data) for part in parts],
                                  np.int64).reshape(-1, 5)

    def _divide(self, workers: int) -> tuple[list[int], list[NDArray[Any]]]:
        """Return the first part of each worker with the end of the last, and arrays for their sums."""
        if len(self.part_starts) != workers + 1:
            work = np.cumsum([0] + [self._slots(part.entries) + PAIRS_OF_CHUNK * len(part.chunks)
                                    + PAIRS_OF_ENTRY * len(part.entries) for part in self.parts])
            ends = np.searchsorted(work[1:], work[-1] * np.arange(workers) / workers - 0.5)
            self.part_starts = [*ends.tolist(), len(self.parts)]
        if len(self.totals[0]) != workers:
            self.totals = [aligned((workers, len(c), self.sums.CHANNELS, self.sums.N), self.sums.REAL)
                           for c in self.search_result.chunks]
        return self.part_starts, self.totals

    def _slots(self, entries: NDArray[np.int64]) -> int:
        """Return the number of pairs that some entries compute."""
        m, n = self.pairs.m, self.pairs.n
        whole = entries[:, 5] - entries[:, 2]
        if self.pairs.packed:
            whole = entries[:, 4] - entries[:, 2] - (-entries[:, 8] // n)
        return int(whole.sum()) * m * n

    @property
    def entries(self) -> int:
        """Number of entries of the list, each of a cluster i and chunks of one image."""
        return sum(len(part.entries) for part in self.parts)

    @property
    def masked(self) -> int:
        """Number of pairs of a cluster and a chunk that need masks."""
        return sum(len(part.masks) for part in self.parts)

    def _positions_of_sets(self, positions: Floats, others: Floats | None) -> list[Floats]:
        """Return the positions of each set.

        Raises
        ------
        UsageError
            If their number differs from that of the list's atoms.
        """
        values = [_positions(x) for x in (positions, others) if x is not None]
        if [len(x) for x in values] != [len(x) for x in self.sets]:
            raise UsageError("positions", "are not those for which the pairs were searched")
        return values

    def _check(self, displacement: float) -> None:
        """Raise an error if an atom has moved further than the list allows."""
        if not math.isfinite(displacement):
            raise InputError("a position is not a finite number")
        longest = self.pairs.work.buffer / 2
        if not displacement <= longest:
            raise UsageError("buffer", f"an atom moved by {displacement:.3g} A since the pairs were searched, and the "
                             f"list is valid up to {longest:g} A", "search them again, or use a longer {buffer}")

    def run(self, positions: Floats, others: Floats | None = None) -> PairResult:
        """Return the sum for the atoms, which have moved by less than half of the buffer since the search.

        Raises
        ------
        UsageError
            If an atom has moved further.
        """
        values = self._positions_of_sets(positions, others)
        sums, work = self.sums, self.pairs.work
        chunks, sets, step = self.search_result.chunks, self.sets, self.step
        workers = max(1, min(threads.count(), len(self.parts)))
        part_starts, totals = self._divide(workers)
        displacements, virials = [0.0] * workers, np.zeros((workers, 6))
        results = [PairResult(np.empty((len(item), 3)), np.empty((len(item), sums.ENERGIES)) if work.energy else None)
                   for item in sets]

        def run_thread(worker: int, counters: NDArray[np.int64]) -> None:
            """Write positions, sum pairs and gather results as one thread; threads wait for each other in between."""
            for n, (part, x) in enumerate(zip(sets, values, strict=True)):
                displacement = part.write(x, chunks[n], counters, threads.TAKEN + n, work.buffer / 2)
                displacements[worker] = max(displacements[worker], displacement)
            first, last = part_starts[worker : worker + 2]
            for at in range(first, max(last, first + 1), step):
                sums.run(counters, workers * len(sets), at, min(at + step, last), first, last, self.addresses,
                         chunks[0], sets[0].centres, totals[0][worker], chunks[-1], sets[-1].centres,
                         totals[-1][worker], *self.fixed, virials[worker])
                if counters[threads.STOP]:
                    return
                if worker == 0:
                    progress.report("pairs", min((at + step - first) / max(last - first, 1), 0.999))
            for n, (part, result) in enumerate(zip(sets, results, strict=True)):
                sums.gather(counters, workers, threads.TAKEN + len(sets) + n, part.slots, totals[n], part.box.rotation,
                            1 / LENGTH**2, result.forces, NONE if result.energies is None else result.energies)

        threads.together(run_thread, workers)
        self._check(max(displacements))
        progress.report("pairs", 1.0)
        virial = None
        if work.virial:
            xx, xy, xz, yy, yz, zz = virials.sum(0) / LENGTH**2
            rotation = self.sets[0].box.rotation
            virial = rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ rotation.T
        return replace(results[0], virial=virial, other=results[1] if others is not None else None)
