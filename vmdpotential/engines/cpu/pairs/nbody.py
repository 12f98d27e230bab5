"""Sums over all pairs of atoms on the CPU, by :mod:`~vmdpotential.engines.cpu.pairs.nbody_kernel`.

For potentials without a cutoff, such as gravity (E. Elsen, V. Vishal, M. Houston, V. Pande, P. Hanrahan, E. Darve,
"N-body simulations on GPUs", arXiv:0706.3060, 2007). As in that paper, an iteration of the loop computes several atoms
i with vectors of atoms j; in contrast to it, each pair is computed once, for both of its atoms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.compiling import build, threads
from vmdpotential.engines.cpu.pairs.clusters import aligned
from vmdpotential.engines.pairs import Atoms, PairList, PairResult, PairSum
from vmdpotential.errors import UsageError
from vmdpotential.interactions.pairs import ScaledPairs
from vmdpotential.interactions.program import Program, evaluate_all

Floats = NDArray[np.float64]

#: The programs' unit of length, A: 1/r in this unit is 2/r in 1/A, which a Newton step without its factor 1/2 yields.
LENGTH = 2.0

#: Number of atoms i and of vectors of atoms j in an iteration of the loop, by layout; the first is the fastest.
LAYOUTS = {"4x1": (4, 1), "1x1": (1, 1), "1x4": (1, 4), "4x4": (4, 4), "2x1": (2, 1)}

#: Number of pairs that take less time than starting threads, and that take one thread about a second.
FEW, MANY = 2**22, 2**32

#: Number of lists of vectors with special pairs that are kept for the next runs.
KEPT = 8


@dataclass(frozen=True)
class PairShape:
    """The constants for which a kernel of pairs is compiled.

    Parameters
    ----------
    programs : (Program, Program or None)
        Program of pairs, and of excluded pairs if these contribute a correction. Results are the slope, with `jerk` the
        bend, and energies.
    names, tables : tuple of str
        Names of the parameters of an atom and of two types, in the order of their columns and tables.
    symmetric : bool
        Whether forces are equal and opposite.
    jerk : bool
        Whether jerks are computed.
    terms : int
        Number of energies; 0 if they are not computed.
    bits : int
        Size of the floating-point numbers.
    unroll_i, unroll_j : int
        Number of atoms i and of vectors of atoms j in an iteration of the loop.
    """

    programs: tuple[Program, Program | None]
    names: tuple[str, ...]
    tables: tuple[str, ...]
    symmetric: bool
    jerk: bool
    terms: int
    bits: int
    unroll_i: int
    unroll_j: int

    @property
    def first(self) -> int:
        """First column of parameters in tables, and of energies in sums, after those of vectors."""
        return 6 if self.jerk else 3

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the uniform parameters."""
        return self.programs[0].parameters


class AllPairs:
    """A sum over all pairs; see :class:`vmdpotential.engines.pairs.PreparedPairs`.

    In single precision coordinates are relative to the centre of all atoms: the relative error of forces is 1e-5 in
    systems of about 50 A, that of gravity in systems of any size.

    Raises
    ------
    UsageError
        If the layout is not in :data:`LAYOUTS`, or the virial is requested for forces that are not equal and opposite.
    """

    def __init__(self, work: PairSum) -> None:
        layout = "4x1" if work.layout == "auto" else work.layout
        if layout not in LAYOUTS:
            raise UsageError("layout", f"choose one of auto, {', '.join(LAYOUTS)}", value=work.layout)
        potential = work.potential
        outputs = ("slope", *(["bend"] if work.jerk else []), *(["energy"] if work.energy else []))
        scaled = potential.scaled(outputs, LENGTH)
        excluded = potential.scaled(outputs, LENGTH, excluded=True).program if potential.corrects_excluded else None
        symmetric = all(_symmetric(p) for p in (scaled.program, excluded) if p is not None)
        if work.virial and not symmetric:
            raise UsageError("virial", "needs forces that are equal and opposite", value=", ".join(potential.names))
        self.work = work
        self._scaled: ScaledPairs = scaled
        self._shape = PairShape((scaled.program, excluded), tuple(potential.atoms), tuple(potential.tables), symmetric,
                                work.jerk, len(potential.names) if work.energy else 0,
                                64 if work.precision == "double" else 32, *LAYOUTS[layout])
        self._kernel = build.load("nbody_kernel", shape=self._shape)
        self._real = np.float64 if work.precision == "double" else np.float32
        self._special: dict[Any, tuple[Any, ...]] = {}

    def search(self, atoms: Atoms, others: Atoms | None = None) -> PairList:
        """Raise an error, because there is no list of pairs without a cutoff.

        Raises
        ------
        UsageError
            Always.
        """
        raise UsageError("cutoff", "a list of pairs in range needs one", "run the sum over all pairs")

    def run(self, atoms: Atoms, others: Atoms | None = None) -> PairResult:
        """Return the sum over all pairs, or over those of the atoms and the other atoms.

        Raises
        ------
        UsageError
            If atoms lack a parameter of the potential, or velocities for jerks.
        MemoryPlanError
            If the sums do not fit into memory.
        """
        sets = (atoms,) if others is None else (atoms, others)
        work, shape, kernel = self.work, self._shape, self._kernel
        unroll, width = shape.unroll_i, kernel.WIDTH
        if min(map(len, sets)) == 0:
            return self._results([np.zeros((shape.first + shape.terms, len(s))) for s in sets], sets)
        places = [np.ascontiguousarray(s.positions.T) for s in sets]
        centre = (np.min([p.min(1) for p in places], 0) + np.max([p.max(1) for p in places], 0)) / 2
        groups, vectors = -(-len(atoms) // unroll), -(-len(sets[-1]) // width)
        # a tile has many atoms j for some atoms i, of which it has fewer if there are not enough tiles for the threads
        workers = threads.count() if len(atoms) * len(sets[-1]) > FEW else 1
        many = unroll * max(1, min(kernel.ATOMS // unroll, groups // (4 * workers)))
        tiles = -(-groups * unroll // many) * -(-vectors // kernel.VECTORS)
        parts = 1 if workers == 1 else min(tiles, 4 * workers)
        parts = max(parts, min(tiles, len(atoms) * len(sets[-1]) // MANY))
        size = shape.first + shape.terms
        memory.require(workers * size * 8 * sum(map(len, sets)), "sums over so many pairs", "use fewer threads")
        tables = [self._table(s, p - centre[:, None]) for s, p in zip(sets, places, strict=True)]
        rows = [s.types if s.types is not None and shape.tables else np.zeros(0, np.int64) for s in sets]
        if shape.tables:
            rows[-1] = np.pad(rows[-1], (0, vectors * width - len(rows[-1])))
            rows[0] = np.pad(rows[0], (0, groups * unroll - len(rows[0]))) if others is not None else rows[-1]
        looked_up = np.zeros((0, 1, 1), self._real)
        if shape.tables:
            looked_up = np.array([np.asarray(atoms.tables[name]) / LENGTH**power
                                  for name, power in work.potential.tables.items()], self._real)
        exclusions = atoms.exclusions if others is None else None
        fixed = (tables[0], rows[0], tables[-1], rows[-1], vectors, np.array(self._scaled.values, self._real),
                 looked_up, looked_up.shape[1], self._real(work.potential.softening**2), others is None,
                 *self._listed(len(atoms), len(sets[-1]), others is None, exclusions))
        free = deque(self._buffers(sets, tables) for _ in range(min(workers, parts)))
        all_buffers = list(free)

        def task(first: int, last: int) -> None:
            buffers = free.pop()  # one for each thread
            for part in range(first, last):
                kernel.run(*fixed, buffers[0], buffers[1], many, buffers[2], buffers[-1], part, parts)
            free.append(buffers)

        if parts == 1:
            task(0, 1)
        else:
            threads.run(task, parts, "pairs")
        sums = [sum(buffers[2 + n][:, : len(s)] for buffers in all_buffers) for n, s in enumerate(sets)]
        return self._results(sums, sets)

    def _buffers(self, sets: Sequence[Atoms], tables: Sequence[Any]) -> tuple[Any, ...]:
        """Return the work arrays of a thread: sums of atoms i, sums of atoms j, and float64 sums of each set."""
        shape, kernel = self._shape, self._kernel
        size = shape.first + shape.terms
        return (_zeros((size, shape.unroll_i * kernel.WIDTH), self._real),
                _zeros((size, kernel.VECTORS * kernel.WIDTH), self._real),
                *(np.zeros((size, table.shape[1])) for table in tables))

    def _table(self, atoms: Atoms, places: Floats) -> Any:
        """Return coordinates, velocities and parameters as columns, padded to whole vectors."""
        shape, count = self._shape, len(atoms)
        padded = -(-count // self._kernel.WIDTH) * self._kernel.WIDTH
        padded += max(self._kernel.WIDTH, shape.unroll_i)  # columns a whole page apart would share cache lines
        table = _zeros((shape.first + len(shape.names), padded), self._real)
        table[:3, :count] = places
        if shape.jerk:
            if atoms.velocities is None:
                raise UsageError("velocities", "are needed for jerks")
            table[3:6, :count] = atoms.velocities.T
        for n, (name, power) in enumerate(self.work.potential.atoms.items()):
            if name not in atoms.parameters:
                raise UsageError("parameters", f"of atoms lack {name}")
            table[shape.first + n, :count] = np.asarray(atoms.parameters[name]) / LENGTH**power
        return table

    def _listed(self, count: int, others: int, alone: bool, exclusions: Any) -> tuple[Any, ...]:
        """Return the vectors with pairs that do not count as others do, see :func:`_special`; recent ones are kept."""
        key = (count, others, alone, None if exclusions is None else exclusions.tobytes())
        result = self._special.get(key)
        if result is None:
            if len(self._special) >= KEPT:
                self._special.clear()
            corrected = self._shape.programs[1] is not None
            result = _special(count, others, alone, exclusions, corrected, self._shape.unroll_i, self._kernel.WIDTH)
            self._special[key] = result
        return result

    def _results(self, sums: Sequence[Any], sets: Sequence[Atoms]) -> PairResult:
        """Return the result of one or two sets of atoms from their sums."""
        first, work = self._shape.first, self.work
        results: list[PairResult] = []
        virial = np.zeros((3, 3)) if work.virial else None
        if virial is not None:  # a sum over atoms, because forces are equal and opposite, and there are no images
            centre = sets[0].positions.sum(0) / max(1, len(sets[0]))
            for total, atoms in zip(sums, sets, strict=True):
                virial += (atoms.positions - centre).T @ (total[:3].T / LENGTH**2)
        for total in reversed(sums):
            results.append(PairResult(
                np.ascontiguousarray(total[:3].T) / LENGTH**2, total[first:].T / 2 if work.energy else None, virial,
                np.ascontiguousarray(total[3:6].T) / LENGTH**2 if work.jerk else None, *results))
        return results[-1]


def _symmetric(program: Program) -> bool:
    """Return whether a program has the same results when atoms i and j are exchanged, tested for random values."""
    rng = np.random.default_rng(0)
    values = {name: rng.uniform(0.5, 1.5) for name in (*program.inputs, *program.parameters)}
    for name in program.inputs:
        if name.startswith("i."):
            values.setdefault("j." + name[2:], rng.uniform(0.5, 1.5))
        if name.startswith("j."):
            values.setdefault("i." + name[2:], rng.uniform(0.5, 1.5))
    exchanged = {{"i.": "j.", "j.": "i."}.get(name[:2], name[:2]) + name[2:]: value for name, value in values.items()}
    return np.allclose(evaluate_all(program, values), evaluate_all(program, exchanged), rtol=1e-12, atol=0)


def _zeros(shape: tuple[int, int], real: Any) -> Any:
    """Return an array of zeros that begins at a cache line."""
    result = aligned(shape, real)
    result.fill(0)
    return result


def _special(count: int, others: int, alone: bool, exclusions: Any, corrected: bool, unroll: int,
             width: int) -> tuple[Any, ...]:
    """Return the vectors of atoms j with pairs that do not count, or are excluded, for each group of atoms i.

    Returns
    -------
    start : (groups + 1,) int64
        First index of each group in the other arrays.
    step : (S,) int64
        Numbers of the vectors, ascending within each group.
    left, excluded : (S,) uint64
        Bits of the pairs that do not count, and of excluded pairs with a correction: `width` for each atom of a group.
    """
    groups, vectors = -(-count // unroll), -(-others // width)
    keys, masks = [], []

    def add(i: Any, vector: Any, lanes: Any, kind: int) -> None:
        """Mark some lanes of vectors for atoms i."""
        keys.append(np.asarray((i // unroll) * vectors + vector))
        bits = np.zeros((len(keys[-1]), 2), np.uint64)
        bits[:, kind] = np.asarray(lanes, np.uint64) << (i % unroll * width).astype(np.uint64)
        masks.append(bits)

    bit, every = np.uint64(1), np.uint64(2**width - 1)
    i = np.arange(count)
    if alone:  # no pairs of an atom with itself and with those before it
        add(i, i // width, (bit << (i % width + 1).astype(np.uint64)) - bit, 0)
        if exclusions is not None and len(exclusions):
            first, second = exclusions.T
            add(first, second // width, bit << (second % width).astype(np.uint64), 1 if corrected else 0)
    if others % width:  # padding of the last vector
        add(i, np.full(count, vectors - 1), every - ((bit << np.uint64(others % width)) - bit), 0)
    absent, vector = np.meshgrid(np.arange(count, groups * unroll), np.arange(vectors))
    add(absent.ravel(), vector.ravel(), every, 0)
    key, place = np.unique(np.concatenate(keys), return_inverse=True)
    bits = np.zeros((len(key), 2), np.uint64)
    np.bitwise_or.at(bits, place, np.concatenate(masks))
    start = np.searchsorted(key, np.arange(groups + 1) * vectors)
    return start, key % vectors, np.ascontiguousarray(bits[:, 0]), np.ascontiguousarray(bits[:, 1])
