"""Sums over all pairs of atoms, on any engine, by kernels that include ``kernels/all_pairs.h``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import SOFT_CORE, Engine
from vmdpotential.kernels.launch import Kernel, KernelFile

Floats = NDArray[np.float64]

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
    tables = [_padded(table, kernel.arguments.arrays["table_i"]) for table in sets]
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
                      table_j=i if second is None else engine.array(tables[1]), alone=second is None, parts=parts,
                      sums=sums, **others_of_kernel)
        total: Floats = engine.to_host(sums).sum(0)[:, : first.shape[1]]
    return total


def _padded(table: Floats, real: np.dtype[Any]) -> NDArray[Any]:
    columns, count = table.shape
    result = np.zeros((columns, -(-count // PLACES) * PLACES), real)
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
    middle = positions.mean(0) if len(positions) else np.zeros(3)
    # the kernel has 2 / r: halved charges have half of a pair's energy, and twice its force
    tables = [np.concatenate([(x - middle).T, 0.5 * q[None]])
              for x, q in ((positions, charges), *([others] if others else []))]
    x, y, z, energy = sum_all_pairs(engine, KERNELS["sum_charges"], 4, *tables, soft2=SOFT_CORE**2)
    return energy, np.stack([x, y, z], 1) * 0.5
