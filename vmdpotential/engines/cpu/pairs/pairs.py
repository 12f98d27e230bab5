"""Sums over pairs of atoms within a cutoff on the CPU: parameters and threads for the kernels of pair_sums.cu."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.engines.cpu.pairs.clusters import (
    AtomClusters,
    CellBox,
    ClusterSearch,
    ClusterShape,
    aligned_array,
    search_cluster_pairs,
)
from vmdpotential.engines.pairs import Atoms, PairResult, PairSum
from vmdpotential.errors import InputError, UsageError
from vmdpotential.interactions.compiled import PAIR_RESULTS, interpreter_instructions, number_of, uniform_values
from vmdpotential.interactions.pairs import PairPotential
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, bind_kernel, load_library

Floats = NDArray[np.float64]

KERNELS = KernelFile(Path(__file__).with_name("pair_sums.cu"))

#: The programs' unit of length, A: 1/r in this unit is 2/r in 1/A, which the kernels' inverse square roots yield.
LENGTH = 2.0

#: Fraction of atoms that have to lack a term, so that it is left out for clusters of which half of the atoms lack it.
WORTH = 0.25

#: Number of pairs that a thread computes, in about a tenth of a second, before it checks for Ctrl-C.
AT_ONCE = 2**27

#: Overhead of a chunk and of an entry of the list, as a number of pairs that take as long.
PAIRS_OF_CHUNK, PAIRS_OF_ENTRY = 45, 250

#: Largest number of terms of a potential, and of their parameters of an atom.
MAX_TERMS, MAX_PARAMETERS = 8, 17


def cluster_sizes(precision: str) -> tuple[int, int, bool]:
    """Return the atoms of a cluster i, the atoms of a chunk j, which a vector holds, and whether atoms j are packed."""
    floats = int(load_library().vector_floats())
    n = floats if precision == "single" else floats // 2
    return min(4, n), n, floats == 16


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


class PairProgram:
    """A pair potential as the kernels need it: functions of :mod:`~vmdpotential.interactions.compiled`, or programs.

    Parameters
    ----------
    potential : PairPotential
    energy : bool
        Whether energies are computed.
    real : numpy type
        Type of the kernels' numbers.
    """

    def __init__(self, potential: PairPotential, energy: bool, real: Any) -> None:
        outputs = PAIR_RESULTS if energy else PAIR_RESULTS[:1]
        self.scaled = potential.scaled(outputs, LENGTH)
        corrected = potential.corrects_excluded
        columns: list[list[int]] = []
        values: list[Floats] = []
        for term in potential.terms:
            alone = PairPotential((term,))
            numbers, places = [-1, -1], [0, 0]
            for k, excluded in enumerate((False, True)[: 1 + (term.bound.interaction.excluded is not None)]):
                scaled = alone.scaled(PAIR_RESULTS, LENGTH, excluded)
                numbers[k], places[k] = number_of(scaled.program), sum(map(len, values))
                values.append(uniform_values(scaled.program, scaled.values))
            columns.append([*numbers, *places, len(term.rule.atoms), len(term.rule.pair)])
        #: Whether the interpreter runs all terms, because one of them has no function.
        self.interpreted = any(row[0] < 0 or (row[1] < 0 and term.bound.interaction.excluded is not None)
                               for row, term in zip(columns, potential.terms, strict=True))
        every = range(len(potential.terms))
        #: The terms in the order of the kernels' energies and rows.
        self.order = [*every] if self.interpreted else sorted(every, key=lambda t: columns[t][0])
        terms = [potential.terms[t] for t in self.order]
        #: Names of the parameters of an atom, and of two types.
        self.rows = [name for term in terms for name in sorted(term.rule.atoms)]
        self.tables = [name for term in terms for name in sorted(term.rule.pair)]
        if len(terms) > MAX_TERMS or len(self.rows) > MAX_PARAMETERS or len(self.tables) > MAX_PARAMETERS:
            raise UsageError("potential", f"has more than {MAX_TERMS} terms or {MAX_PARAMETERS} parameters of an atom")
        inputs = ["r2", "rinv", *(f"{side}.{name}" for side in "ij" for name in self.rows),
                  *(f"pair.{name}" for name in self.tables)]
        #: Arguments of the kernels.
        self.arguments: dict[str, Any] = {
            "terms": np.array([columns[t] for t in self.order], np.int32), "term_count": len(terms),
            "uniforms": np.concatenate([*values, np.zeros(1)]).astype(real), "name_count": len(self.tables),
            "interpreted": self.interpreted, "energy": energy, "corrected": corrected}
        for prefix, used in (("", self.interpreted), ("excluded_", self.interpreted and corrected)):
            scaled = potential.scaled(outputs, LENGTH, bool(prefix))
            made = interpreter_instructions(scaled.program, scaled.values, inputs) if used else None
            self.arguments |= {prefix + name: value for name, value in {
                "operations": None if made is None else made.steps,
                "operation_count": 0 if made is None else len(made.steps),
                "results": None if made is None else made.results,
                "constants": None if made is None else made.constants.astype(real),
                "constant_count": 0 if made is None else len(made.constants),
                "values": None if made is None else np.append(made.tables, 0).astype(real),
                "register_count": len(inputs) if made is None else made.registers}.items()}


class ClusterPairs:
    """A pair sum with a cutoff; see :class:`vmdpotential.engines.pairs.PreparedPairs`."""

    def __init__(self, work: PairSum) -> None:
        self.work = work
        self.m, self.n, self.packed = cluster_sizes(work.precision)
        self.real = np.float32 if work.precision == "single" else np.float64
        self.program = PairProgram(work.potential, work.energy, self.real)

    @cached_property
    def suffix(self) -> str:
        """The ending of the kernels' names."""
        return "" if self.work.precision == "single" else "_double"

    def search(self, atoms: Atoms, others: Atoms | None = None) -> ClusterList:
        """Return the pairs in range, see :mod:`vmdpotential.engines.pairs`."""
        work = self.work
        box = CellBox.around(work.cell, *(_positions(a.positions) for a in (atoms, others) if a is not None))
        without, lacks = missing_terms(work.potential, atoms)
        light = self.program.order.index(without[0]) if without else -1
        shape = ClusterShape(self.m, self.n, self.real)
        sets = [AtomClusters(shape, box, _positions(a.positions), self._rows(a), flags, work.reach)
                for a, flags in ((atoms, lacks), (others, None if others is None else np.zeros(len(others), bool)))
                if a is not None and flags is not None]
        tables = self._tables(atoms)
        around = work.cell is not None and not work.cell.orthogonal
        result = search_cluster_pairs(box, sets[0], sets[-1], work.reach,
                                      None if others is not None else atoms.exclusions,
                       around, work.potential.corrects_excluded)
        return ClusterList(self, sets, result, tables, light)

    def run(self, atoms: Atoms, others: Atoms | None = None) -> PairResult:
        """Return the sum over the pairs in range."""
        return self.search(atoms, others).run(atoms.positions, None if others is None else others.positions)

    def _rows(self, atoms: Atoms) -> Floats:
        """Return the parameters and types of atoms (R, N), in the programs' units."""
        potential = self.work.potential
        rows = []
        for name in self.program.rows:
            if name not in atoms.parameters:
                raise UsageError("parameters", f"atoms need {name}")
            rows.append(np.asarray(atoms.parameters[name], np.float64) / LENGTH ** potential.atoms[name])
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
        powers = self.work.potential.tables
        results = [np.asarray(atoms.tables[name], np.float64) / LENGTH ** powers[name] for name in self.program.tables]
        if not results:
            return np.zeros((1, 1), self.real), 0
        return np.array([table.ravel() for table in results]).astype(self.real), len(results[0])


def _positions(values: Any) -> Floats:
    """Return positions (N, 3) as contiguous float64, or raise UsageError for another shape."""
    positions: Floats = np.ascontiguousarray(values, np.float64)
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise UsageError("positions", f"{positions.shape} are not (N, 3)")
    return positions


class ClusterList:
    """Pairs of clusters in range; see :class:`vmdpotential.engines.pairs.PairList`."""

    def __init__(self, pairs: ClusterPairs, sets: list[AtomClusters], search_result: ClusterSearch,
                 tables: tuple[NDArray[Any], int], light: int) -> None:
        self.pairs = pairs
        self.sets, self.search_result = sets, search_result
        self.totals = [np.empty(0) for _ in sets]
        extent = sets[0].chunk_boxes
        # near enough that powers of the distance are not denormal numbers, which take a hundred cycles
        self.out_of_range = -2 * (pairs.work.reach + (extent[:, 3:] - extent[:, :3]).max(initial=0)) - 1
        self.parts = parts = search_result.parts
        #: Number of computed pairs, whether in range or not.
        self.slots = sum(self._slots(part.entries) for part in parts)
        self.part_starts: list[int] = []
        self.step = max(1, int(len(parts) * AT_ONCE / max(self.slots, 1)))
        self.addresses = np.array([(part.entries.ctypes.data, len(part.entries), part.chunks.ctypes.data,
                                    part.bits.ctypes.data, part.masks.ctypes.data) for part in parts],
                                  np.int64).reshape(-1, 5)
        scaled, chunks = pairs.program.scaled, search_result.chunks
        self._sum = bind_kernel(
            KERNELS["sum_pairs" + pairs.suffix], **pairs.program.arguments, parts=self.addresses, atoms_i=chunks[0],
            atoms_j=chunks[-1], centres_i=sets[0].centres, centres_j=sets[-1].centres, steps=search_result.steps,
            rests=search_result.remainders, tables=tables[0], kinds=tables[1], chunks_i=len(chunks[0]),
            chunks_j=len(chunks[-1]), cutoff2=scaled.cutoff2 * LENGTH**2,
            aside=self.out_of_range, light=light, written=threads.WRITTEN, summed=threads.SUMMED, packed=pairs.packed)
        self.channels = 3 + (len(pairs.program.order) if pairs.work.energy else 0)
        self._gather = [bind_kernel(
            KERNELS["gather_pairs" + pairs.suffix], slots=part.slots, terms=np.array(pairs.program.order, np.int32),
            chunks=len(chunks[n]), rotation=part.box.rotation, factor=1 / LENGTH**2,
            counter=threads.TAKEN + len(sets) + n, summed=threads.SUMMED, channels=self.channels, n=pairs.n)
            for n, part in enumerate(sets)]

    def _divide(self, workers: int) -> tuple[list[int], list[NDArray[Any]]]:
        """Return the first part of each worker with the end of the last, and arrays for their sums."""
        if len(self.part_starts) != workers + 1:
            work = np.cumsum([0] + [self._slots(part.entries) + PAIRS_OF_CHUNK * len(part.chunks)
                                    + PAIRS_OF_ENTRY * len(part.entries) for part in self.parts])
            ends = np.searchsorted(work[1:], work[-1] * np.arange(workers) / workers - 0.5)
            self.part_starts = [*ends.tolist(), len(self.parts)]
        if len(self.totals[0]) != workers:
            self.totals = [aligned_array((workers, len(c), self.channels, self.pairs.n), self.pairs.real)
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
        work = self.pairs.work
        chunks, sets, step = self.search_result.chunks, self.sets, self.step
        workers = max(1, min(threads.count(), len(self.parts)))
        part_starts, totals = self._divide(workers)
        displacements = [0.0] * workers
        count = len(work.potential.terms)
        results = [PairResult(np.empty((len(item), 3)), np.empty((len(item), count)) if work.energy else None)
                   for item in sets]

        def run_thread(worker: int, counters: NDArray[np.int64]) -> None:
            """Write positions, sum pairs and gather results as one thread; threads wait for each other in between."""
            for n, (part, x) in enumerate(zip(sets, values, strict=True)):
                displacement = part.write(x, chunks[n], counters, threads.TAKEN + n, work.buffer / 2)
                displacements[worker] = max(displacements[worker], displacement)
            first, last = part_starts[worker : worker + 2]
            for at in range(first, max(last, first + 1), step):
                end = min(at + step, last)
                self._sum(at, end, counters=counters, writes=workers * len(sets), sums_i=totals[0][worker],
                          sums_j=totals[-1][worker], fresh=at == first, last=end == last)
                if counters[threads.STOP]:
                    return
                if worker == 0:
                    progress.report_progress("pairs", min((at + step - first) / max(last - first, 1), 0.999))
            for n, result in enumerate(results):
                self._gather[n](0, 1, counters=counters, sums=totals[n], forces=result.forces, energies=result.energies,
                                workers=workers)

        threads.together(run_thread, workers)
        self._check(max(displacements))
        progress.report_progress("pairs", 1.0)
        return replace(results[0], other=results[1] if others is not None else None)
