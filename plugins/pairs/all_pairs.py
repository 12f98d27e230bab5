"""Sums over all pairs of atoms, on any engine, by kernels that include ``kernels/all_pairs.h``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.interactions import SOFT_CORE
from vmdpotential.kernels.launch import Kernel, KernelFile

KERNELS = KernelFile(Path(__file__).with_name("all_pairs.cu"))

#: Number of places of which tables have a multiple, and their coordinate where there is no atom, A.
PLACES, FAR_AWAY = 128, 1e5

#: Number of pairs that take less time than starting threads, and that take one thread about a second.
FEW_PAIRS, MANY_PAIRS = 2**22, 2**30

#: Number of blocks of places that keep a GPU busy.
BLOCKS = 1024


def sum_all_pairs(engine: Engine, kernel: Kernel, count: int, first: Floats, second: Floats | None = None,
                  **constants: Any) -> Floats:
    """Return the sums (count, N) of atoms over their pairs with each other, or with a second set.

    Parameters
    ----------
    engine : Engine
    kernel : Kernel
        A kernel that includes ``all_pairs.h``.
    count : int
        Number of its sums.
    first, second : (columns, N), (columns, M)
        Coordinates and parameters of the atoms; all are 0 where there is no atom, except for the coordinates.
    **constants
        The kernel's other arguments, arrays among them.
    """
    sets = [first] if second is None else [first, second]
    if not min(table.shape[1] for table in sets):
        return np.zeros((count, first.shape[1]))
    return _sums(engine, kernel, count, [_padded(table, kernel) for table in sets], constants)[:, : first.shape[1]]


def sum_pairs_between(engine: Engine, kernel: Kernel, count: int, first: Floats, second: Floats,
                      **constants: Any) -> tuple[Floats, Floats]:
    """Return the sums (count, N) and (count, M) of two parts over the pairs between them, each computed once on a CPU.

    The arguments are those of :func:`sum_all_pairs`, with a kernel for two parts.
    """
    if not min(first.shape[1], second.shape[1]):
        return np.zeros((count, first.shape[1])), np.zeros((count, second.shape[1]))
    tables = [_padded(table, kernel) for table in (first, second)]
    split = tables[0].shape[1]
    sums = _sums(engine, kernel, count, [np.concatenate(tables, 1)], {**constants, "split": split})
    return sums[:, : first.shape[1]], sums[:, split : split + second.shape[1]]


def _sums(engine: Engine, kernel: Kernel, count: int, tables: list[NDArray[Any]], constants: Mapping[str, Any]
          ) -> Floats:
    """Return the sums (count, places) of the first of one or two padded tables."""
    size, others = tables[0].shape[1], tables[-1].shape[1]
    parts = 1
    if size * others > FEW_PAIRS:
        parts = engine.team_size((size * others // FEW_PAIRS, 1)) * -(-size * others // MANY_PAIRS)
    pieces = max(1, min(BLOCKS * PLACES // size, others // PLACES))
    with engine.room(8 * parts * count * size + sum(table.nbytes for table in tables)):
        i = engine.array(tables[0])
        sums = engine.zeros((parts, count, size), np.float64)
        others_of_kernel = {name: engine.array(value) if isinstance(value, np.ndarray) else value
                            for name, value in constants.items()}
        engine.launch(kernel, (parts, size * pieces), "pairs", 1, table_i=i, size_i=size, size_j=others,
                      table_j=i if len(tables) == 1 else engine.array(tables[1]), alone=len(tables) == 1, parts=parts,
                      sums=sums, **others_of_kernel)
        total: Floats = engine.to_host(sums).sum(0)
    return total


def _padded(table: Floats, kernel: Kernel) -> NDArray[Any]:
    columns, count = table.shape
    result = np.zeros((columns, -(-count // PLACES) * PLACES), kernel.arguments.arrays["table_i"])
    result[:3] = FAR_AWAY
    result[:, :count] = table
    return result


def sum_coulomb(engine: Engine, positions: Floats, charges: Floats, others: tuple[Floats, Floats] | None = None
                ) -> tuple[Floats, Floats]:
    """Return the Coulomb energies (N,) of charges in vacuum, half of each pair's, and the forces (N, 3) on them.

    The pairs are those of the charges with each other, or with others. Charges nearer than 0.01 A to each other have
    the energy of that distance.

    Parameters
    ----------
    positions : (N, 3) float64, A
    charges : (N,) float64, sqrt(kcal/mol A)
        Charges times the square root of the Coulomb constant.
    others : tuple of (M, 3) and (M,) float64, optional
        Positions and charges of the other set.
    """
    tables = _halved_charges(positions, charges, *(others or ()))
    x, y, z, energy = sum_all_pairs(engine, KERNELS["sum_charges"], 4, *tables, soft2=SOFT_CORE**2,
                                    split=0)
    return energy, np.stack([x, y, z], 1) * 0.5


def coulomb_between(engine: Engine, positions: Floats, charges: Floats, others: Floats, their_charges: Floats
                    ) -> tuple[Floats, Floats]:
    """Return half of the Coulomb energies (N,) and (M,) of the charges of two parts with those of the other part.

    Positions and charges are those of :func:`sum_coulomb`.
    """
    first, second = sum_pairs_between(engine, KERNELS["sum_charges"], 4,
                                      *_halved_charges(positions, charges, others, their_charges), soft2=SOFT_CORE**2)
    return first[3], second[3]


def _halved_charges(*sets: Floats) -> list[Floats]:
    """Return tables of positions and charges, of one set after another.

    The kernel has 2 / r: halved charges have half of a pair's energy, and twice its force.
    """
    middle = sets[0].mean(0) if len(sets[0]) else np.zeros(3)
    return [np.concatenate([(x - middle).T, 0.5 * q[None]]) for x, q in zip(sets[::2], sets[1::2], strict=True)]
