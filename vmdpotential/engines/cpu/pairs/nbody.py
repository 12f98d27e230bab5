"""Sums over all pairs of atoms on the CPU, by the kernels in nbody.cu.

For potentials without a cutoff, such as gravity (E. Elsen, V. Vishal, M. Houston, V. Pande, P. Hanrahan, E. Darve,
"N-body simulations on GPUs", arXiv:0706.3060, 2007). As in that paper, an iteration of the loop computes several atoms
i with vectors of atoms j; in contrast to it, each pair is computed once, for both of its atoms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines.cpu.pairs.clusters import aligned
from vmdpotential.engines.pairs import Atoms, PairList, PairResult, PairSum
from vmdpotential.errors import UsageError
from vmdpotential.interactions import compiled
from vmdpotential.interactions.pairs import PairPotential, ScaledPairs
from vmdpotential.interactions.program import Program, evaluate_all
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, bind

Floats = NDArray[np.float64]

KERNELS = KernelFile(Path(__file__).with_name("nbody.cu"))

#: The programs' unit of length, A: 1/r in this unit is 2/r in 1/A, which a Newton step without its factor 1/2 yields.
LENGTH = 2.0

#: Numbers of atoms i that are combined with blocks of atoms j, and greatest numbers of them and of blocks in a tile:
#: GROUP, ATOMS and BLOCKS of the kernels.
GROUP, ATOMS, BLOCKS = 4, 256, 128

#: Number of pairs that take less time than starting threads, and that take one thread about a second.
FEW, MANY = 2**22, 2**32

#: Number of lists of blocks with special pairs that are kept for the next runs.
KEPT = 8


class AllPairs:
    """A sum over all pairs; see :class:`vmdpotential.engines.pairs.PreparedPairs`.

    In single precision coordinates are relative to the centre of all atoms: the relative error of forces is 1e-5 in
    systems of about 50 A, that of gravity in systems of any size.

    Raises
    ------
    UsageError
        If another layout than ``auto`` is requested, or the virial for forces that are not equal and opposite.
    """

    def __init__(self, work: PairSum) -> None:
        if work.layout != "auto":
            raise UsageError("layout", "of sums over all pairs is auto", value=work.layout)
        potential = work.potential
        outputs = ("slope", *(["bend"] if work.jerk else []), *(["energy"] if work.energy else []))
        scaled = potential.scaled(outputs, LENGTH)
        excluded = potential.scaled(outputs, LENGTH, excluded=True) if potential.corrects_excluded else None
        symmetric = all(_symmetric(p.program) for p in (scaled, excluded) if p is not None)
        if work.virial and not symmetric:
            raise UsageError("virial", "needs forces that are equal and opposite", value=", ".join(potential.names))
        self.work = work
        #: First column of parameters in tables, and of energies in sums, after those of vectors; and number of sums.
        self._first = 6 if work.jerk else 3
        self._size = self._first + (len(potential.names) if work.energy else 0)
        self._real = np.float64 if work.precision == "double" else np.float32
        self._width = 64 // self._real().itemsize  # atoms j in a block
        self._corrected = excluded is not None
        self._names, fixed = self._program(scaled, excluded)
        self._kernel = bind(
            KERNELS["sum_all_pairs_double" if work.precision == "double" else "sum_all_pairs"], **fixed,
            symmetric=symmetric, soft2=potential.softening**2, jerk=work.jerk, energy=work.energy,
            term_count=len(potential.names))
        self._special: dict[Any, tuple[Any, ...]] = {}

    def _program(self, scaled: ScaledPairs, excluded: ScaledPairs | None) -> tuple[list[str], dict[str, Any]]:
        """Return the names of the parameters in tables, and the kernel's arguments that describe the potential."""
        potential, real = self.work.potential, self._real
        terms = [PairPotential((term,)).scaled(compiled.JERK if self.work.jerk else compiled.PAIR, LENGTH)
                 for term in potential.terms]
        numbers = [compiled.number_of(term.program) for term in terms]
        if excluded is None and len(terms) <= 2 and -1 not in numbers:
            names = [name for term in terms for name in compiled.atom_parameters(term.program)]
        else:
            names, numbers = list(potential.atoms), [-1]
        uniforms = [compiled.uniforms(term.program, term.values).astype(real) for term in terms]
        inputs = ["r2", "rinv", *(f"{side}.{name}" for side in "ij" for name in names),
                  *(f"pair.{name}" for name in potential.tables)]
        fixed: dict[str, Any] = {
            "number": numbers[0], "second": [*numbers, -1][1], "uniforms": uniforms[0],
            "second_uniforms": uniforms[-1], "parameter_count": len(names), "table_count": len(potential.tables)}
        for prefix, of in (("", scaled), ("excluded_", excluded or scaled)):
            made = compiled.instructions(of.program, of.values, inputs)
            fixed |= {prefix + name: value for name, value in (
                ("steps", made.steps), ("results", made.results), ("constants", made.constants.astype(real)),
                ("tables", made.tables.astype(real)), ("step_count", len(made.steps)),
                ("constant_count", len(made.constants)), ("register_count", made.registers))}
        return names, fixed

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
        work, width, size = self.work, self._width, self._size
        if min(map(len, sets)) == 0:
            return self._results([np.zeros((size, len(s))) for s in sets], sets)
        places = [np.ascontiguousarray(s.positions.T) for s in sets]
        centre = (np.min([p.min(1) for p in places], 0) + np.max([p.max(1) for p in places], 0)) / 2
        groups, blocks = -(-len(atoms) // GROUP), -(-len(sets[-1]) // width)
        # a tile has many atoms j for some atoms i, of which it has fewer if there are not enough tiles for the threads
        workers = threads.count() if len(atoms) * len(sets[-1]) > FEW else 1
        many = GROUP * max(1, min(ATOMS // GROUP, groups // (4 * workers)))
        tiles = -(-groups * GROUP // many) * -(-blocks // BLOCKS)
        parts = 1 if workers == 1 else min(tiles, 4 * workers)
        parts = max(parts, min(tiles, len(atoms) * len(sets[-1]) // MANY))
        memory.require(workers * size * 8 * sum(map(len, sets)), "sums over so many pairs", "use fewer threads")
        tables = [self._table(s, p - centre[:, None]) for s, p in zip(sets, places, strict=True)]
        rows = [np.zeros(table.shape[1], np.int64) for table in tables]
        looked_up = np.zeros((0, 1, 1), self._real)
        if work.potential.tables:
            for row, s in zip(rows, sets, strict=True):
                row[: len(s)] = 0 if s.types is None else s.types
            looked_up = np.array([np.asarray(atoms.tables[name]) / LENGTH**power
                                  for name, power in work.potential.tables.items()], self._real)
        start, step, left, excluded = self._listed(len(atoms), len(sets[-1]), others is None,
                                                   atoms.exclusions if others is None else None)
        values = {
            "table_i": tables[0], "table_j": tables[-1], "types_i": rows[0], "types_j": rows[-1],
            "stride_i": tables[0].shape[1], "stride_j": tables[-1].shape[1], "groups": groups, "blocks": blocks,
            "start": start, "step": step, "left": left, "excluded": excluded, "alone": others is None,
            "looked_up": looked_up, "type_count": looked_up.shape[1], "atoms": many, "parts": parts}
        free = deque([np.zeros((size, table.shape[1])) for table in tables] for _ in range(min(workers, parts)))
        all_sums = list(free)

        def task(first: int, last: int) -> None:
            own = free.pop()  # one for each thread
            self._kernel(first, last, **values, sums_i=own[0], sums_j=own[-1])
            free.append(own)

        if parts == 1:
            task(0, 1)
        else:
            threads.run(task, parts, "pairs")
        sums = [sum(own[n][:, : len(s)] for own in all_sums) for n, s in enumerate(sets)]
        return self._results(sums, sets)

    def _table(self, atoms: Atoms, places: Floats) -> Any:
        """Return coordinates, velocities and parameters as columns, padded to whole blocks."""
        count, first = len(atoms), self._first
        padded = (-(-count // self._width) + 1) * self._width  # columns a whole page apart would share cache lines
        table = aligned((first + len(self._names), padded), self._real)
        table.fill(0)
        table[:3, :count] = places
        if self.work.jerk:
            if atoms.velocities is None:
                raise UsageError("velocities", "are needed for jerks")
            table[3:6, :count] = atoms.velocities.T
        for n, name in enumerate(self._names):
            if name not in atoms.parameters:
                raise UsageError("parameters", f"of atoms lack {name}")
            power = self.work.potential.atoms[name]
            table[first + n, :count] = np.asarray(atoms.parameters[name]) / LENGTH**power
        return table

    def _listed(self, count: int, others: int, alone: bool, exclusions: Any) -> tuple[Any, ...]:
        """Return the blocks with pairs that do not count as others do, see :func:`_special`; recent ones are kept."""
        key = (count, others, alone, None if exclusions is None else exclusions.tobytes())
        result = self._special.get(key)
        if result is None:
            if len(self._special) >= KEPT:
                self._special.clear()
            result = _special(count, others, alone, exclusions, self._corrected, self._width)
            self._special[key] = result
        return result

    def _results(self, sums: Sequence[Any], sets: Sequence[Atoms]) -> PairResult:
        """Return the result of one or two sets of atoms from their sums."""
        first, work = self._first, self.work
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


def _special(count: int, others: int, alone: bool, exclusions: Any, corrected: bool,
             width: int) -> tuple[Any, ...]:
    """Return the blocks of atoms j with pairs that do not count, or are excluded, for each group of atoms i.

    Returns
    -------
    start : (groups + 1,) int64
        First index of each group in the other arrays.
    step : (S,) int64
        Numbers of the blocks, ascending within each group.
    left, excluded : (S,) uint64
        Bits of the pairs that do not count, and of excluded pairs with a correction: `width` for each atom of a group.
    """
    groups, blocks = -(-count // GROUP), -(-others // width)
    keys, masks = [], []

    def add(i: Any, block: Any, lanes: Any, kind: int) -> None:
        """Mark some lanes of blocks for atoms i."""
        keys.append(np.asarray((i // GROUP) * blocks + block))
        bits = np.zeros((len(keys[-1]), 2), np.uint64)
        bits[:, kind] = np.asarray(lanes, np.uint64) << (i % GROUP * width).astype(np.uint64)
        masks.append(bits)

    bit, every = np.uint64(1), np.uint64(2**width - 1)
    i = np.arange(count)
    if alone:  # no pairs of an atom with itself and with those before it
        add(i, i // width, (bit << (i % width + 1).astype(np.uint64)) - bit, 0)
        if exclusions is not None and len(exclusions):
            first, second = exclusions.T
            add(first, second // width, bit << (second % width).astype(np.uint64), 1 if corrected else 0)
    if others % width:  # padding of the last block
        add(i, np.full(count, blocks - 1), every - ((bit << np.uint64(others % width)) - bit), 0)
    absent, block = np.meshgrid(np.arange(count, groups * GROUP), np.arange(blocks))
    add(absent.ravel(), block.ravel(), every, 0)
    key, place = np.unique(np.concatenate(keys), return_inverse=True)
    bits = np.zeros((len(key), 2), np.uint64)
    np.bitwise_or.at(bits, place, np.concatenate(masks))
    start = np.searchsorted(key, np.arange(groups + 1) * blocks)
    return start, key % blocks, np.ascontiguousarray(bits[:, 0]), np.ascontiguousarray(bits[:, 1])
