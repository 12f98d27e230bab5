"""Nonbonded parameters: Lennard-Jones by atom types, excluded pairs, and scaled 1-4 pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import memory
from vmdpotential.arrays import Floats, Integers

Names = NDArray[np.str_]

#: Largest relative difference between a table and the combination rule that it follows; it allows for rounded files.
_RULE = 1e-6


@dataclass(frozen=True, eq=False)
class Nonbonded:
    """Nonbonded parameters of a structure: Lennard-Jones by atom types, excluded pairs, and scaled 1-4 pairs.

    Parameters
    ----------
    source : str
        Origin, for reports: ``prmtop``, ``tpr``, ``CHARMM par_all36m_prot.prm``, ``OpenMM amber14-all.xml``.
    names : tuple of str
        Names of the T types.
    types : (N,) int64
        Type of each atom, as an index into the tables.
    c6, c12 : (T, T) float64, kcal/mol A^6 and kcal/mol A^12
        Symmetric tables of coefficients, E = c12 / r^12 - c6 / r^6. They include pairs with special parameters (NBFIX).
    exclusions : (E, 2) int64
        Pairs i < j, sorted and unique, that the pair sum leaves out: 1-2, 1-3 and 1-4 pairs (the latter are summed
        separately).
    pairs14 : (P, 2) int64
        The 1-4 pairs i < j, all of them also in `exclusions`.
    c6_14, c12_14 : (P,) float64, kcal/mol A^6 and kcal/mol A^12
        Lennard-Jones coefficients of the 1-4 pairs.
    charges14 : (P,) float64
        Factors on q_i q_j of the 1-4 pairs: 1/1.2 for Amber, 1 for CHARMM, fudgeQQ for GROMACS.
    """

    source: str
    names: tuple[str, ...]
    types: Integers
    c6: Floats
    c12: Floats
    exclusions: Integers
    pairs14: Integers
    c6_14: Floats
    c12_14: Floats
    charges14: Floats

    def __len__(self) -> int:
        return len(self.types)

    def __repr__(self) -> str:
        return (f"Nonbonded({len(self)} atoms of {len(self.names)} types, {len(self.exclusions)} exclusions, "
                f"{len(self.pairs14)} 1-4 pairs, {self.source})")

    def take(self, atoms: ArrayLike) -> Nonbonded:
        """Return the parameters of the selected atoms (increasing indices or a mask), and of pairs among them."""
        index = np.asarray(atoms)
        if index.dtype == bool:
            index = np.flatnonzero(index)
        new = np.full(len(self), -1, np.int64)
        new[index] = np.arange(len(index))
        exclusions, pairs = new[self.exclusions], new[self.pairs14]
        keep = (pairs >= 0).all(1)
        return replace(
            self, types=self.types[index], exclusions=exclusions[(exclusions >= 0).all(1)], pairs14=pairs[keep],
            c6_14=self.c6_14[keep], c12_14=self.c12_14[keep], charges14=self.charges14[keep],
        )

    @cached_property
    def sigma(self) -> Floats:
        """(T,) Lennard-Jones diameters, A; 0 for types without Lennard-Jones."""
        return self._diagonal[0]

    @cached_property
    def epsilon(self) -> Floats:
        """(T,) Lennard-Jones well depths, kcal/mol; 0 for types without Lennard-Jones."""
        return self._diagonal[1]

    @cached_property
    def _diagonal(self) -> tuple[Floats, Floats]:
        c6, c12 = np.diagonal(self.c6), np.diagonal(self.c12)
        has = (c6 > 0) & (c12 > 0)
        ratio = np.divide(c12, c6, out=np.zeros_like(c12), where=has)
        return ratio ** (1 / 6), np.divide(c6, 4 * ratio, out=np.zeros_like(c6), where=has)

    @cached_property
    def rule(self) -> str:
        """Combination rule of the tables, for the types that atoms have.

        ``geometric`` (geometric means of c6 and c12; also if both rules apply), ``lorentz-berthelot`` (arithmetic mean
        of sigma, geometric mean of epsilon), or ``table`` if neither applies.
        """
        used = np.unique(self.types)
        c6, c12 = self.c6[np.ix_(used, used)], self.c12[np.ix_(used, used)]
        rows6, rows12 = np.diagonal(c6), np.diagonal(c12)
        if (rows6 < 0).any() or (rows12 < 0).any():
            return "table"
        if _same(c6, np.sqrt(np.outer(rows6, rows6))) and _same(c12, np.sqrt(np.outer(rows12, rows12))):
            return "geometric"
        combined6, combined12 = lorentz_berthelot(self.sigma[used], self.epsilon[used])
        return "lorentz-berthelot" if _same(c6, combined6) and _same(c12, combined12) else "table"


def _same(table: Floats, combined: Floats) -> bool:
    return bool((np.abs(table - combined) <= _RULE * np.maximum(np.abs(table), combined)).all())


def lorentz_berthelot(sigma: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """Return the tables c6 and c12 (T, T) of types with sigma (T,), A, and epsilon (T,), kcal/mol."""
    return lennard_jones((sigma[:, None] + sigma) / 2, np.sqrt(np.outer(epsilon, epsilon)))


def lennard_jones(sigma: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """Return c6, kcal/mol A^6, and c12, kcal/mol A^12, from sigma, A, and epsilon, kcal/mol."""
    sixth = sigma**6
    return 4 * epsilon * sixth, 4 * epsilon * sixth**2


@dataclass(frozen=True, eq=False)
class LazyNonbonded:
    """A :class:`Nonbonded` that is read only when it is called, as most commands do not need it.

    Parameters
    ----------
    make : callable
        Function that returns the parameters of all atoms of a file.
    atoms : (N,) int64, optional
        Increasing indices of the selected atoms among these.
    """

    make: Callable[[], Nonbonded]
    atoms: Integers | None = None

    def take(self, atoms: Integers) -> LazyNonbonded:
        """Return the deferred parameters of the selected atoms (increasing indices)."""
        return LazyNonbonded(self.make, atoms if self.atoms is None else self.atoms[atoms])

    def __call__(self) -> Nonbonded:
        """Return the parameters of the selected atoms."""
        whole = self.make()
        return whole if self.atoms is None else whole.take(self.atoms)


def unique_pairs(pairs: Integers, count: int) -> Integers:
    """Return the distinct pairs (E, 2) of `count` atoms, i < j, sorted, without those of an atom with itself."""
    low, high = pairs.min(1, initial=count), pairs.max(1, initial=-1)
    keys = np.sort((low * count + high)[low != high])
    keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique takes four times as long
    return np.stack(np.divmod(keys, max(count, 1)), axis=1)


def positions_of(pairs: Integers, among: Integers, count: int) -> Integers:
    """Return the row of each pair i < j in `among` (sorted, unique), and -1 for pairs that are not in it."""
    keys, known = pairs[:, 0] * count + pairs[:, 1], among[:, 0] * count + among[:, 1]
    if not len(known):
        return np.full(len(keys), -1)
    rows = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[rows] == keys, rows, -1)


def pairs_by_bonds(bonds: Integers, count: int) -> tuple[Integers, Integers]:
    """Return the pairs of `count` atoms separated by one to three bonds (M, 2), and the 1-4 pairs among them.

    A 1-4 pair is separated by three bonds, and by no fewer on another path, as is possible in small rings.

    Raises
    ------
    MemoryPlanError
        When atoms have so many bonds that the pairs do not fit into memory.
    """
    from scipy.sparse import csr_matrix

    near = unique_pairs(bonds, count)
    degree = np.bincount(near.reshape(-1), minlength=count)
    walks = float(2 * (degree[near].astype(float).prod(1)).sum() + np.square(degree, dtype=float).sum())
    memory.require(int(48 * walks), "finding pairs by bonds", "remove wrong bonds")
    both = np.concatenate([near, near[:, ::-1]])
    bonded = csr_matrix((np.ones(len(both), np.int32), (both[:, 0], both[:, 1])), shape=(count, count))
    two = bonded @ bonded
    first, third = (_upper(matrix) for matrix in (two, two @ bonded))
    nearer = unique_pairs(np.concatenate([near, first]), count)
    third = unique_pairs(third, count)
    pairs14 = third[positions_of(third, nearer, count) < 0]
    return unique_pairs(np.concatenate([nearer, pairs14]), count), pairs14


def _upper(matrix: object) -> Integers:
    """Return the indices (E, 2) of a sparse matrix's entries above its diagonal."""
    from scipy.sparse import triu

    result = triu(matrix, k=1, format="coo")
    return np.stack([result.row, result.col], axis=1).astype(np.int64)
