"""Sums over the pairs of atoms within a cutoff, on any engine, by the kernels of search.cu and sums.cu.

:class:`PairsInRange` is prepared once for a potential and a cell. It then *searches* the pairs of some atoms, and the
:class:`PairList` is *run*. Each pair counts once, with half of its energy for each of its atoms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.arrays import Floats, Integers
from vmdpotential.engines import Engine
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import coordinate_bounds
from vmdpotential.kernels.launch import KernelFile
from vmdpotential.molecule.cell import Cell

from . import clusters
from .clusters import AtomClusters, CellBox, ClusterShape, Images
from .pair_terms import PairPotential
from .programs import CPU_LENGTH, PairProgram

KERNELS = KernelFile(Path(__file__).with_name("sums.cu"))

#: Fraction of atoms that have to lack a term, so that it is left out for clusters of which half of the atoms lack it.
WORTH = 0.25

#: Number of pairs that a thread computes, in about a tenth of a second, before it checks for Ctrl-C, and that take less
#: time than starting threads.
AT_ONCE, FEW_PAIRS = 2**27, 2**17

#: Overhead of a chunk and of an entry of the list, as a number of pairs that take as long.
PAIRS_OF_CHUNK, PAIRS_OF_ENTRY = 45, 250

#: Density of liquids, atoms per A^3.
LIQUID = 0.1

#: Number of items of work for a multiprocessor of a GPU, with energies and without: few balance the load, but each item
#: has an overhead. Least and largest number of entries of an item.
ITEMS, ITEM_ENTRIES = (64, 192), (8, 64)

#: Number of warps of a block that sums: of forces alone in single precision, and otherwise.
WARPS = {True: 2, False: 1}


@dataclass(frozen=True, eq=False)
class Atoms:
    """Atoms with the parameters that a pair potential needs of them.

    Parameters
    ----------
    positions : (N, 3) float64, A
        Positions, inside or outside of the periodic cell, into which they are wrapped.
    parameters : mapping of (N,) float64
        Arrays by the names in `PairPotential.atoms`, in A and kcal/mol.
    types : (N,) int64, optional
        Row of each atom in the tables.
    tables : mapping of (T, T) float64
        Tables by the names in `PairPotential.tables`.
    exclusions : (E, 2) int64, optional
        Excluded pairs i < j, sorted. Only their nearest images are excluded; others within the cutoff count.
    """

    positions: Floats
    parameters: Mapping[str, Floats] = field(default_factory=dict)
    types: Integers | None = None
    tables: Mapping[str, Floats] = field(default_factory=dict)
    exclusions: Integers | None = None

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class PairResult:
    """Forces and energies of a sum over pairs.

    Parameters
    ----------
    forces : (N, 3) float64, kcal/mol/A
        Force on each atom.
    energies : (N, terms) float64 or None, kcal/mol
        Half of the energies of all pairs of each atom, by the terms of the potential.
    other : PairResult or None
        Result of the second set of atoms, if pairs of two sets were summed.
    """

    forces: Floats
    energies: Floats | None = None
    other: PairResult | None = None


class PairsInRange:
    """A sum over the pairs of atoms within a cutoff; for any thread, any number of times.

    Parameters
    ----------
    engine : Engine
    potential : PairPotential
        Potential with its cutoff.
    cell : Cell, optional
        Periodic cell; every image within the cutoff counts, those of the atom itself included.

    Attributes
    ----------
    reach : float, A
        Distance up to which pairs are listed.
    shape : ClusterShape
        Layout of the clusters.
    """

    #: Type of terms and sums: energies of opposite sign nearly cancel, and those of excluded pairs, up to 1e6 kcal/mol,
    #: are added and subtracted again. And whether energies are computed in addition to forces.
    real: type[np.float32] | type[np.float64] = np.float64
    energy: bool = True

    def __init__(self, engine: Engine, potential: PairPotential, cell: Cell | None = None) -> None:
        if potential.cutoff is None:
            raise UsageError("cutoff", "pairs are summed up to a cutoff, and this potential has none")
        self.engine, self.potential, self.cell, self.reach = engine, potential, cell, potential.cutoff
        self.shape = ClusterShape.of(engine.vector_size, self.real)
        self.program = PairProgram(potential, self.energy, self.real)

    def run(self, atoms: Atoms, others: Atoms | None = None) -> PairResult:
        """Return the sum over the pairs in range, as a list that is used once."""
        return self.search(atoms, others).run()

    def search(self, atoms: Atoms, others: Atoms | None = None) -> PairList:
        """Return the pairs in range: among the atoms, or of each atom with each of the others, without exclusions."""
        return PairList(self, [atoms] if others is None else [atoms, others])

    def missing_terms(self, atoms: Atoms) -> tuple[int, NDArray[np.bool_]]:
        """Return the term that is worth leaving out, or -1, and whether each atom lacks it (N,)."""
        terms, best, lacking = self.potential.terms, -1, np.zeros(len(atoms), bool)
        if len(terms) < 2 or not len(atoms) or self.shape.for_warps:
            return best, lacking
        for number, term in enumerate(terms):
            if term.rule.pair:
                continue
            mine = SimpleNamespace(**{name: atoms.parameters[name] for name in term.rule.atoms})
            theirs = SimpleNamespace(**dict.fromkeys(term.rule.atoms, 1.0))
            combined = term.rule.combine(mine, theirs, SimpleNamespace())
            zero = [np.broadcast_to(np.asarray(value) == 0, len(atoms)) for value in combined.values()]
            lacks = zero[list(combined).index("weight")] if "weight" in combined else np.logical_and.reduce(zero)
            if lacks.mean() > max(WORTH, lacking.mean()):
                best, lacking = self.program.order.index(number), lacks
        return best, lacking

    @cached_property
    def box(self) -> CellBox | None:
        """The box of the cell."""
        return None if self.cell is None else CellBox.around(self.cell)

    @property
    def length(self) -> float:
        """The programs' unit of length, A."""
        return 1.0 if self.shape.for_warps else CPU_LENGTH

    def rows(self, atoms: Atoms) -> NDArray[Any]:
        """Return the parameters and types of atoms (R, N), in the programs' units."""
        rows: list[tuple[Any, float]] = []
        for name in self.program.rows:
            if name not in atoms.parameters:
                raise UsageError("parameters", f"atoms need {name}")
            rows.append((atoms.parameters[name], self.length ** self.potential.atoms[name]))
        if self.potential.tables:
            if atoms.types is None:
                raise UsageError("types", "atoms need the rows of the tables that they look up")
            rows.append((atoms.types, 1.0))
        result = np.empty((len(rows), len(atoms)), self.real)
        for row, (values, unit) in zip(result, rows, strict=True):
            if np.shape(values) != row.shape:
                raise UsageError("parameters", f"{np.shape(values)} do not fit {len(atoms)} atoms")
            np.divide(values, unit, out=row, casting="same_kind")
        return result

    def tables(self, atoms: Atoms) -> tuple[NDArray[Any], int]:
        """Return the tables of parameters by two types (K, T, T), for warps (T, T, K), and the number T of types."""
        powers = self.potential.tables
        results = [np.asarray(atoms.tables[name], np.float64) / self.length ** powers[name]
                   for name in self.program.tables]
        if not results:
            return np.zeros(1, self.real), 0
        return np.stack(results, -1 if self.shape.for_warps else 0).astype(self.real), len(results[0])


def _positions(values: Any) -> Floats:
    """Return positions (N, 3) as contiguous float64, or raise UsageError for another shape."""
    positions: Floats = np.ascontiguousarray(values, np.float64)
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise UsageError("positions", f"{positions.shape} are not (N, 3)")
    return positions


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of the clusters' atoms, in the memory of an engine.

    Parameters
    ----------
    shares : (workers + 1,) int64
        First part of the list of each worker, with the end of the last.
    steps : tuple of int
        Numbers between chunks, atoms and channels of `values`.
    values : list of arrays (workers, chunks, channels, n)
        Forces and, on a CPU, energies of each set of atoms.
    energies : list of arrays (places, terms) float64, or None
        Energies of each set of atoms, if they are apart.
    """

    shares: Integers
    steps: tuple[int, int, int]
    values: list[Any]
    energies: list[Any]


class PairList:
    """The pairs of one set of atoms, or of two sets, in range.

    Parameters
    ----------
    pairs : PairsInRange
    atoms : list of Atoms
        One set or two.

    Attributes
    ----------
    sets : list of AtomClusters
    slots : int
        Number of computed pairs, whether in range or not.
    """

    def __init__(self, pairs: PairsInRange, atoms: list[Atoms]) -> None:
        self.pairs, self.counts, self.slots = pairs, [len(one) for one in atoms], 0
        engine, shape, same = pairs.engine, pairs.shape, len(atoms) == 1
        positions = [_positions(one.positions) for one in atoms]
        self.empty = not min(self.counts)
        if self.empty:
            return
        rows = [pairs.rows(one) for one in atoms]
        reach = pairs.reach + (clusters.MARGIN if shape.for_warps else 0)
        bounds = [coordinate_bounds(each) for each in positions]
        if not np.isfinite(bounds).all():
            raise InputError("a position is not a finite number")
        box = pairs.box or CellBox.around(None, *bounds)
        images = Images.of(box, reach, same, *bounds)
        light, lacks = pairs.missing_terms(atoms[0])
        size = sum(self.counts) * (8 * (3 + len(rows[0])) + 40)
        memory.require(size, "the list of pairs", "use fewer atoms")
        with engine.room(size):
            self.sets = sets = [
                AtomClusters(engine, shape, box, x, ends, its, flags, reach, images.grid) for x, ends, its, flags in
                zip(positions, bounds, rows, (lacks, np.zeros(self.counts[-1], bool)), strict=False)]
            exclusions = atoms[0].exclusions if same else None
            excluded = None
            if exclusions is not None and len(exclusions):
                excluded = clusters.sort_exclusions(sets[0], exclusions,
                                                    pairs.cell is not None and not pairs.cell.orthogonal)
            expected = self._expected(sets[-1], reach, same)
            self.listed = listed = clusters.list_pairs(
                sets[0], sets[-1], images, reach, excluded, pairs.potential.corrects_excluded, expected,
                self._item_entries(expected * sets[0].chunk_count))
            self.slots = int(listed.counts[:, 4].sum())
            tables, kinds = pairs.tables(atoms[0])
            arguments = pairs.program.arguments(pairs.length)
            arguments |= {
                "entries": listed.entries, "chunks": listed.chunks, "bits": listed.bits, "masks": listed.masks,
                "max_entries": listed.limits[0], "max_chunks": listed.limits[1], "max_masks": listed.limits[2],
                "tables": tables, "kinds": kinds, "item_entries": listed.item_entries, "light": light,
                "packed": shape.packed,
                # near enough that powers of the distance are not denormal numbers, which take a hundred cycles
                "aside": -2 * (reach + sets[0].largest) - 1}
            for name, value in (("counts", listed.counts), ("steps", listed.steps), ("rests", listed.remainders)):
                arguments[name] = None if shape.for_warps else value
            arrays = KERNELS["sum_pairs" + shape.suffix].arguments.arrays
            self._fixed = {name: engine.array(value) if name in arrays and isinstance(value, np.ndarray) else value
                           for name, value in arguments.items()}

    def _expected(self, j: AtomClusters, reach: float, same: bool) -> float:
        """Return the expected number of entries of a chunk for a warp, or of chunks near a cluster, at mean density."""
        shape, half = self.pairs.shape, 0.5 if same else 1.0
        density = len(j) / max(float(np.prod(j.extent)), 1.0)
        if not shape.for_warps:  # that of a liquid, which may fill a small part of the cell
            return float(4.2 * (reach + 3 * clusters.CLOSE / 4) ** 3 * max(density, LIQUID) / shape.n * half + 8)
        side = (shape.n / density) ** (1 / 3)
        volume = side**3 + 6 * side**2 * reach + 3 * np.pi * side * reach**2 + 4 / 3 * np.pi * reach**3
        return float(density * volume / 4 * half)

    def _item_entries(self, expected: float) -> int:
        """Return the number of entries in an item of work, of which so many are expected."""
        if not self.pairs.shape.for_warps:
            return 1
        items = ITEMS[not self.pairs.energy] * self.pairs.engine.team_size((1, 2**20))
        least, most = ITEM_ENTRIES
        return int(min(most, max(least, 2 ** int(np.log2(max(1, expected / items))))))

    def run(self) -> PairResult:
        """Return the sum over the pairs."""
        pairs = self.pairs
        if not self.empty:
            with pairs.engine.room(0, beside=self.sets[0].places):
                sums = self.new_sums()
                self.add_pairs(sums)
                return self.gather(sums)
        count = len(pairs.potential.terms)
        results = [PairResult(np.zeros((n, 3)), np.zeros((n, count)) if pairs.energy else None) for n in self.counts]
        return replace(results[0], other=results[1] if len(results) > 1 else None)

    def new_sums(self) -> Sums:
        """Return sums to which nothing has been added."""
        pairs, counts = self.pairs, self.listed.counts
        engine, shape, terms = pairs.engine, pairs.shape, len(pairs.potential.terms) if pairs.energy else 0
        workers, shares = 1, np.array([0, 1])
        if not shape.for_warps:
            workers = max(1, min(engine.team_size((self.slots // FEW_PAIRS, 1)), len(counts)))
            work = np.cumsum(np.append(0, counts[:, 4] + PAIRS_OF_CHUNK * counts[:, 1] + PAIRS_OF_ENTRY * counts[:, 0]))
            shares = np.append(np.searchsorted(work[1:], work[-1] * np.arange(workers) / workers - 0.5), len(counts))
        channels = 3 + terms
        steps = (3 * shape.n, 3, 1) if shape.for_warps else (channels * shape.n, 1, shape.n)
        return Sums(
            shares.astype(np.int64), steps,
            [engine.zeros((workers, one.chunk_count * steps[0]), pairs.real) for one in self.sets],
            [engine.zeros((one.chunk_count * shape.n, terms), np.float64) if terms and shape.for_warps else None
             for one in self.sets])

    def add_pairs(self, sums: Sums) -> None:
        """Add all pairs to sums."""
        pairs, sets, counts = self.pairs, self.sets, self.listed.counts
        items = int(counts[0, 0]) // self.listed.item_entries
        threads = clusters.WARP * WARPS[pairs.real is np.float32 and not pairs.energy]
        kernel = KERNELS["sum_pairs" + pairs.shape.suffix].for_blocks(threads, pairs.program)
        step = max(1, int(len(counts) * AT_ONCE / max(self.slots, 1)))
        for begin in range(0, max(1, int(np.diff(sums.shares).max())), step):
            pairs.engine.launch(
                kernel, (len(sums.shares) - 1, clusters.WARP * items), "pairs", 1, **self._fixed,
                atoms_i=sets[0].atoms, atoms_j=sets[-1].atoms, centres_i=sets[0].centres, centres_j=sets[-1].centres,
                sums_i=sums.values[0], sums_j=sums.values[-1], energies_i=sums.energies[0],
                energies_j=sums.energies[-1], shares=None if pairs.shape.for_warps else sums.shares, begin=begin,
                step=step, item_count=items,
                chunks_i=sets[0].chunk_count, chunks_j=sets[-1].chunk_count)

    def gather(self, sums: Sums) -> PairResult:
        """Return the sums in the order of the atoms."""
        pairs = self.pairs
        engine, shape, terms = pairs.engine, pairs.shape, len(pairs.potential.terms) if pairs.energy else 0
        order = np.arange(terms) if shape.for_warps else np.array(pairs.program.order)
        results = []
        for one, values, apart in zip(self.sets, sums.values, sums.energies, strict=True):
            forces = engine.empty((len(one), 3), np.float64)
            energies = engine.empty((len(one), terms), np.float64) if terms else None
            engine.launch(
                KERNELS["gather_pairs" + shape.suffix], one.chunk_count * shape.n, "pairs", clusters.GRAIN,
                sums=values, energy_sums=apart, slots=one.slots, forces=forces, energies=energies,
                terms=order.astype(np.int32), rotation=one.box.rotation, factor=1 / pairs.length**2,
                size=one.chunk_count * sums.steps[0], chunk_step=sums.steps[0], atom_step=sums.steps[1],
                row_step=sums.steps[2], workers=len(sums.shares) - 1, energy_count=terms, n=shape.n)
            results.append(PairResult(engine.to_host(forces), engine.to_host(energies) if terms else None))
        return replace(results[0], other=results[1] if len(results) > 1 else None)
